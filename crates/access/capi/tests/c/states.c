/* Snapshots and clones in C: `make` takes and makes some beside an open volume, `alone` opens them
 * without it, `delete` deletes them, open ones too, `threads` does all at once, `dies` ends without
 * closing anything, `after` looks what is left of that, and `none` asks for some where there are
 * none.
 */
#include <pthread.h>

#include "volumes.h"

static void refused(onode_heap *volume) {
    onode_snapshot snapshot;
    onode_clone clone;
    FAILS(onode_take_snapshot(volume, "monday") == -1, EEXIST, "monday");
    FAILS(onode_take_snapshot(volume, "work") == -1, EEXIST, "work");
    FAILS(onode_take_snapshot(volume, "a/b") == -1, EINVAL, "a/b");
    FAILS(onode_take_snapshot(volume, "") == -1, EINVAL, "");
    FAILS(onode_take_snapshot(volume, "\xff") == -1, EINVAL, "UTF-8");
    FAILS(onode_take_snapshot(volume, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_take_snapshot(NULL, "x") == -1, EINVAL, "NULL");
    FAILS(onode_delete_snapshot(volume, "sunday") == -1, ENOENT, "sunday");
    FAILS(onode_delete_snapshot(volume, "work") == -1, ENOENT, "work");
    FAILS(onode_delete_snapshot(volume, "monday") == -1, EBUSY, "monday");
    FAILS(onode_snapshot_bytes(volume, "sunday") == -1, ENOENT, "sunday");
    FAILS(onode_list_snapshots(volume, 0, NULL) == -1, EINVAL, "no place");
    FAILS(onode_list_snapshots(NULL, 0, &snapshot) == -1, EINVAL, "NULL");
    FAILS(onode_make_clone(volume, "work", "monday") == -1, EEXIST, "work");
    FAILS(onode_make_clone(volume, "monday", NULL) == -1, EEXIST, "monday");
    FAILS(onode_make_clone(volume, "other", "sunday") == -1, ENOENT, "other");
    FAILS(onode_make_clone(volume, "..", "monday") == -1, EINVAL, "..");
    FAILS(onode_make_clone(volume, NULL, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_delete_clone(volume, "monday") == -1, ENOENT, "monday");
    FAILS(onode_clone_bytes(volume, "sunday") == -1, ENOENT, "sunday");
    FAILS(onode_list_clones(volume, 0, NULL) == -1, EINVAL, "no place");
    FAILS(onode_list_clones(NULL, 0, &clone) == -1, EINVAL, "NULL");
    FAILS(onode_open_state(volume, "sunday") == NULL, ENOENT, "sunday");
    FAILS(onode_open_state(NULL, "monday") == NULL, EINVAL, "NULL");
    FAILS(onode_alloc(volume, 100) == NULL, EINVAL, "no memory");
    FAILS(onode_close_heap(volume) == -1, EINVAL, "onode_close_volume");
    FAILS(onode_tx_commit(volume) == -1, EINVAL, "no transaction");
    FAILS(onode_close_volume(NULL) == -1, EINVAL, "NULL");
    FAILS(onode_sync(NULL) == -1, EINVAL, "NULL");
    FAILS(onode_tick(NULL) == -1, EINVAL, "NULL");
}

/* What a snapshot, a clone or a transaction is not good for. */
static void wrong_handles(onode_heap *volume, onode_heap *state) {
    FAILS(onode_take_snapshot(state, "x") == -1, EINVAL, "is a snapshot or a clone");
    FAILS(onode_make_clone(state, "x", NULL) == -1, EINVAL, "is a snapshot or a clone");
    FAILS(onode_open_state(state, "monday") == NULL, EINVAL, "is a snapshot or a clone");
    FAILS(onode_clean_snapshots(state, 1) == -1, EINVAL, "is a snapshot or a clone");
    FAILS(onode_tx_begin(state) == NULL, EOPNOTSUPP, "no transactions");
    FAILS(onode_alloc(state, 1) == NULL, EINVAL, "no memory");
    onode_heap *tx = onode_tx_begin(volume);
    CHECK(tx);
    put(tx, "/in", "a transaction");
    FAILS(onode_take_snapshot(tx, "x") == -1, EINVAL, "is a transaction");
    FAILS(onode_tx_begin(tx) == NULL, EINVAL, "is a transaction");
    FAILS(onode_close_volume(tx) == -1, EINVAL, "no volume");
    CHECK(has(volume, "/in", NULL) && onode_tx_commit(tx) == 0 && has(volume, "/in", "a transaction"));
    CHECK(onode_unlink(volume, "/in") == 0);
}

static void make(const char *spec) {
    FAILS(onode_open_volume(spec, O_RDWR) == NULL, ENOENT, "");
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    FAILS(onode_open_volume(spec, O_RDWR) == NULL, EBUSY, "");
    onode_snapshot snapshot;
    onode_clone clone;
    CHECK(onode_list_snapshots(volume, 0, &snapshot) == 0 && onode_list_clones(volume, 0, &clone) == 0);
    CHECK(onode_mkdir(volume, "/d", 0755) == 0);
    put(volume, "/d/a", "one");
    /* Not synced, and in the snapshot. */
    CHECK(onode_take_snapshot(volume, "monday") == 0);
    put(volume, "/d/a", "two");
    put(volume, "/d/b", "new");
    CHECK(onode_take_snapshot(volume, "tuesday") == 0);
    CHECK(onode_list_snapshots(volume, 0, &snapshot) == 1 && !strcmp(snapshot.name, "monday"));
    CHECK(snapshot.number > 0 && snapshot.seconds > 1600000000 && snapshot.nanoseconds < 1000000000);
    uint32_t monday = snapshot.number;
    CHECK(onode_list_snapshots(volume, monday, &snapshot) == 1 && !strcmp(snapshot.name, "tuesday"));
    CHECK(snapshot.number > monday && onode_list_snapshots(volume, snapshot.number, &snapshot) == 0);
    CHECK(onode_snapshot_bytes(volume, "monday") > 0);

    CHECK(onode_make_clone(volume, "work", "monday") == 0);
    CHECK(onode_make_clone(volume, "now", NULL) == 0);
    CHECK(onode_list_clones(volume, 0, &clone) == 1 && !strcmp(clone.name, "work") && !strcmp(clone.base, "monday"));
    CHECK(clone.seconds > 1600000000 && onode_list_clones(volume, clone.number, &clone) == 1);
    CHECK(!strcmp(clone.name, "now") && !strcmp(clone.base, "now.base"));
    CHECK(onode_list_clones(volume, clone.number, &clone) == 0);
    refused(volume);

    onode_heap *then = onode_open_state(volume, "monday"), *again = onode_open_state(volume, "monday");
    onode_heap *work = onode_open_state(volume, "work"), *now = onode_open_state(volume, "now");
    CHECK(then && again && work && now);
    put(work, "/d/a", "changed in the clone");
    put(work, "/d/c", "made in the clone");
    put(volume, "/d/a", "three");
    CHECK(has(volume, "/d/a", "three") && has(volume, "/d/b", "new") && has(volume, "/d/c", NULL));
    CHECK(has(then, "/d/a", "one") && has(then, "/d/b", NULL) && has(again, "/d/a", "one"));
    CHECK(has(work, "/d/a", "changed in the clone") && has(work, "/d/b", NULL) && has(now, "/d/a", "two"));
    FAILS(onode_creat(then, "/x", 0644) == -1, EROFS, "");
    FAILS(onode_unlink(then, "/d/a") == -1, EROFS, "");
    onode_stat stat;
    onode_name name;
    CHECK(onode_stat_path(then, "/d/a", &stat) == 0 && stat.size == 3);
    CHECK(onode_readdir(work, "/d", 0, &name) > 0);
    CHECK(onode_unlink(now, "/d/a") == 0 && has(now, "/d/a", NULL) && has(volume, "/d/a", "three"));
    CHECK(onode_sync(work) == 0 && onode_clone_bytes(volume, "work") > 0);
    wrong_handles(volume, then);
    wrong_handles(volume, work);

    FAILS(onode_close_volume(volume) == -1, EBUSY, "are open");
    /* A descriptor that nobody closes goes with its clone. */
    CHECK(onode_open(work, "/d/a", O_RDWR, 0) == 0);
    CHECK(onode_close_volume(then) == 0 && onode_close_volume(again) == 0 && onode_close_volume(now) == 0);
    FAILS(onode_close_volume(volume) == -1, EBUSY, "are open");
    CHECK(onode_close_volume(work) == 0 && onode_close_volume(volume) == 0);
}

static void alone(const char *spec) {
    char text[4096];
    snprintf(text, sizeof text, "%s@monday", spec);
    FAILS(onode_open_volume(text, O_RDWR) == NULL, EINVAL, "does not change");
    onode_heap *then = onode_open_volume(text, O_RDONLY);
    CHECK(then && has(then, "/d/a", "one") && has(then, "/d/b", NULL));
    FAILS(onode_creat(then, "/x", 0644) == -1, EROFS, "");
    FAILS(onode_take_snapshot(then, "x") == -1, EOPNOTSUPP, "none of its own");
    FAILS(onode_open_state(then, "tuesday") == NULL, EOPNOTSUPP, "none of its own");
    FAILS(onode_tx_begin(then) == NULL, EROFS, "reading only");
    CHECK(onode_close_volume(then) == 0);

    snprintf(text, sizeof text, "%s@work", spec);
    onode_heap *work = onode_open_volume(text, O_RDWR);
    CHECK(work && has(work, "/d/a", "changed in the clone") && has(work, "/d/c", "made in the clone"));
    put(work, "/d/a", "alone");
    FAILS(onode_make_clone(work, "x", NULL) == -1, EOPNOTSUPP, "none of its own");
    onode_heap *tx = onode_tx_begin(work);
    CHECK(tx);
    put(tx, "/d/t", "together");
    FAILS(onode_close_volume(work) == -1, EBUSY, "are open");
    CHECK(onode_tx_commit(tx) == 0 && has(work, "/d/t", "together") && onode_close_volume(work) == 0);

    snprintf(text, sizeof text, "%s@sunday", spec);
    FAILS(onode_open_volume(text, O_RDONLY) == NULL, ENOENT, "sunday");
}

static void delete(const char *spec) {
    onode_heap *reading = onode_open_volume(spec, O_RDONLY);
    CHECK(reading && has(reading, "/d/a", "three"));
    FAILS(onode_take_snapshot(reading, "x") == -1, EROFS, "");
    FAILS(onode_delete_clone(reading, "work") == -1, EROFS, "");
    FAILS(onode_tx_begin(reading) == NULL, EROFS, "reading only");
    onode_heap *work = onode_open_state(reading, "work");
    CHECK(work && has(work, "/d/a", "alone") && has(work, "/d/t", "together"));
    FAILS(onode_creat(work, "/x", 0644) == -1, EROFS, "");
    CHECK(onode_close_volume(work) == 0 && onode_close_volume(reading) == 0);

    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_SYNC);
    CHECK(volume && has(volume, "/d/a", "three"));
    work = onode_open_state(volume, "work");
    onode_heap *then = onode_open_state(volume, "monday");
    CHECK(work && then);
    put(work, "/d/late", "not kept");
    char byte;
    int in_clone = onode_open(work, "/d/late", O_RDONLY, 0), in_snapshot = onode_open(then, "/d/a", O_RDONLY, 0);
    CHECK(in_clone >= 0 && in_snapshot >= 0);
    CHECK(onode_delete_clone(volume, "work") == 0 && onode_delete_snapshot(volume, "monday") == 0);
    FAILS(onode_delete_clone(volume, "work") == -1, ENOENT, "work");
    FAILS(onode_delete_snapshot(volume, "monday") == -1, ENOENT, "monday");
    FAILS(onode_open_state(volume, "work") == NULL, ENOENT, "work");
    FAILS(onode_read(then, in_snapshot, &byte, 1) == -1, ESTALE, "");
    FAILS(onode_read(work, in_clone, &byte, 1) == -1, ESTALE, "");
    FAILS(onode_creat(work, "/x", 0644) == -1, ESTALE, "");
    CHECK(onode_close_volume(work) == 0 && onode_close_volume(then) == 0);

    onode_clone clone;
    onode_snapshot snapshot;
    CHECK(onode_delete_clone(volume, "now") == 0 && onode_list_clones(volume, 0, &clone) == 0);
    CHECK(onode_list_snapshots(volume, 0, &snapshot) == 1 && !strcmp(snapshot.name, "tuesday"));
    CHECK(onode_list_snapshots(volume, snapshot.number, &snapshot) == 0);
    int more, steps = 0;
    while ((more = onode_clean_snapshots(volume, 1)) == 1) steps++;
    CHECK(more == 0 && steps > 2 && onode_clean_snapshots(volume, 1) == 0);
    then = onode_open_state(volume, "tuesday");
    CHECK(then && has(then, "/d/a", "two") && has(volume, "/d/a", "three") && onode_close_volume(then) == 0);
    CHECK(onode_close_volume(volume) == 0);
}

static void *writes(void *volume) {
    for (int round = 0; round < 300; round++) put(volume, "/t", round % 2 ? "odd" : "even");
    return NULL;
}

/* What a state has of a file that others write: one content or the other, and always the same. */
static void looks(onode_heap *volume, const char *name) {
    onode_heap *state = onode_open_state(volume, name);
    CHECK(state);
    int is_odd = has(state, "/t", "odd"), is_even = has(state, "/t", "even"), is_empty = has(state, "/t", "");
    CHECK(is_odd + is_even + is_empty == 1);
    CHECK(has(state, "/t", is_odd ? "odd" : is_even ? "even" : "") && onode_close_volume(state) == 0);
}

static void *takes(void *volume) {
    for (int round = 0; round < 30; round++) {
        CHECK(onode_take_snapshot(volume, "taken") == 0);
        looks(volume, "taken");
        CHECK(onode_delete_snapshot(volume, "taken") == 0 && onode_clean_snapshots(volume, 64) >= 0);
    }
    return NULL;
}

static void *makes(void *volume) {
    for (int round = 0; round < 30; round++) {
        CHECK(onode_make_clone(volume, "made", NULL) == 0);
        looks(volume, "made");
        onode_heap *state = onode_open_state(volume, "made");
        CHECK(state);
        put(state, "/of-the-clone", "made");
        CHECK(has(state, "/of-the-clone", "made") && onode_delete_clone(volume, "made") == 0);
        CHECK(onode_close_volume(state) == 0);
    }
    return NULL;
}

static void threads(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    put(volume, "/t", "even");
    void *(*all[])(void *) = {writes, takes, makes};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, all[i], volume) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    /* So does what a program calls about once a second. */
    int left;
    while ((left = onode_tick(volume)) == 1) {}
    CHECK(left == 0 && onode_clean_snapshots(volume, 1) == 0);
    FAILS(onode_open_state(volume, "taken") == NULL, ENOENT, "taken");
    FAILS(onode_open_state(volume, "made.base") == NULL, ENOENT, "made.base");
    CHECK(has(volume, "/of-the-clone", NULL));
    CHECK(has(volume, "/t", "odd") && onode_close_volume(volume) == 0);
}

static void dies(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    put(volume, "/unsynced", "kept by the snapshot");
    CHECK(onode_take_snapshot(volume, "last") == 0 && onode_make_clone(volume, "left", "last") == 0);
    onode_heap *clone = onode_open_state(volume, "left");
    CHECK(clone);
    put(clone, "/synced", "in the clone");
    CHECK(onode_sync(clone) == 0 && onode_unlink(volume, "/unsynced") == 0);
    _exit(0);
}

static void after(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_SYNC);
    CHECK(volume && has(volume, "/synced", NULL));
    onode_heap *then = onode_open_state(volume, "last"), *clone = onode_open_state(volume, "left");
    CHECK(then && has(then, "/unsynced", "kept by the snapshot"));
    CHECK(clone && has(clone, "/unsynced", "kept by the snapshot") && has(clone, "/synced", "in the clone"));
    CHECK(onode_close_volume(then) == 0 && onode_close_volume(clone) == 0 && onode_close_volume(volume) == 0);
}

/* A heap has no snapshots, and neither has a volume on the same memory. */
static void none(const char *spec) {
    onode_snapshot snapshot;
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    put(heap, "/a", "in memory");
    FAILS(onode_take_snapshot(heap, "x") == -1, EOPNOTSUPP, "a heap has neither");
    FAILS(onode_open_state(heap, "x") == NULL, EOPNOTSUPP, "a heap has neither");
    FAILS(onode_close_volume(heap) == -1, EINVAL, "no volume");
    CHECK(onode_close_heap(heap) == 0);
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && has(volume, "/a", "in memory"));
    FAILS(onode_take_snapshot(volume, "x") == -1, EOPNOTSUPP, "storage-class memory");
    FAILS(onode_list_snapshots(volume, 0, &snapshot) == -1, EOPNOTSUPP, "storage-class memory");
    FAILS(onode_make_clone(volume, "x", NULL) == -1, EOPNOTSUPP, "storage-class memory");
    FAILS(onode_open_state(volume, "x") == NULL, EOPNOTSUPP, "storage-class memory");
    CHECK(onode_close_volume(volume) == 0);
    FAILS(onode_open_volume("no:such,device", O_RDWR) == NULL, EINVAL, "no device kind");
    FAILS(onode_open_volume(NULL, O_RDWR) == NULL, EINVAL, "NULL");
}

int main(int count, char **words) {
    CHECK(count == 3);
    if (!strcmp(words[2], "make")) make(words[1]);
    if (!strcmp(words[2], "alone")) alone(words[1]);
    if (!strcmp(words[2], "delete")) delete(words[1]);
    if (!strcmp(words[2], "threads")) threads(words[1]);
    if (!strcmp(words[2], "dies")) dies(words[1]);
    if (!strcmp(words[2], "after")) after(words[1]);
    if (!strcmp(words[2], "none")) none(words[1]);
    return 0;
}
