/* Sizes of volumes in C: `changes` makes one larger and smaller, `stops` ends a shrink in the
 * middle, `wrong` asks for what cannot be, `sooner` for an end among pages of the bitmap of two
 * disks of 32 MiB, and `none` asks where there is one size.
 */
#include <sys/stat.h>

#include "volumes.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t size_of(onode_heap *volume) {
    onode_extent extent;
    CHECK(onode_volume_extent(volume, &extent) == 0 && extent.unit > 0 && extent.bytes % extent.unit == 0);
    CHECK(extent.fewest <= extent.bytes && extent.most >= extent.bytes);
    return extent.bytes;
}

/* How often a call told how far it was, and after how often it is stopped. */
struct heard {
    int times, most;
    uint64_t done, total;
};

static int hear(uint64_t done, uint64_t total, void *context) {
    struct heard *heard = context;
    CHECK(done <= total);
    heard->done = done, heard->total = total;
    return heard->times++ >= heard->most;
}

/* Files of 64 KiB with a byte each. */
static void fill(onode_heap *volume, int from, int to) {
    static char content[64 << 10];
    for (int i = from; i < to; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        memset(content, i, sizeof content);
        int file = onode_creat(volume, path, 0644);
        CHECK(file >= 0 && onode_write(volume, file, content, sizeof content) == sizeof content);
        CHECK(onode_close(volume, file) == 0);
    }
    CHECK(onode_sync(volume) == 0);
}

static void look(onode_heap *volume, int from, int to) {
    static char found[64 << 10];
    for (int i = from; i < to; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        int file = onode_open(volume, path, O_RDONLY, 0);
        CHECK(file >= 0 && onode_read(volume, file, found, sizeof found) == sizeof found);
        for (size_t at = 0; at < sizeof found; at++) CHECK(found[at] == (char)i);
        CHECK(onode_close(volume, file) == 0);
    }
}

static void removed(onode_heap *volume, int from, int to) {
    for (int i = from; i < to; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        CHECK(onode_unlink(volume, path) == 0);
    }
    CHECK(onode_sync(volume) == 0);
}

static off_t file_size(const char *path) {
    struct stat found;
    CHECK(stat(path, &found) == 0);
    return found.st_size;
}

static void changes(const char *spec, const char *path) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    fill(volume, 0, 100);
    uint64_t before = size_of(volume);
    off_t file = file_size(path);
    CHECK(onode_resize(volume, before, NULL) == 0 && size_of(volume) == before);
    CHECK(onode_resize(volume, before + 16 * MIB, NULL) == 0);
    uint64_t larger = size_of(volume);
    CHECK(larger > before && larger <= before + 16 * MIB && file_size(path) > file);
    fill(volume, 100, 200);
    look(volume, 0, 200);
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && size_of(volume) == larger);
    look(volume, 0, 200);
    removed(volume, 0, 150);
    struct heard heard = {.most = 1 << 30};
    onode_progress progress = {hear, &heard};
    CHECK(onode_resize(volume, before, &progress) == 0 && size_of(volume) == before);
    CHECK(heard.times > 0 && file_size(path) < file + (off_t)(16 * MIB));
    look(volume, 150, 200);
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && size_of(volume) == before);
    look(volume, 150, 200);
    CHECK(onode_close_volume(volume) == 0);
}

static void stops(const char *spec, const char *path) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    uint64_t before = size_of(volume);
    off_t file = file_size(path);
    struct heard heard = {.most = 0};
    onode_progress progress = {hear, &heard}, silent = {NULL, NULL};
    FAILS(onode_resize(volume, before - 4 * MIB, &progress) == -1, ECANCELED, "as large as before");
    CHECK(heard.times == 1 && !strcmp(onode_strerror(ECANCELED), "the program stopped it"));
    CHECK(size_of(volume) == before && file_size(path) == file);
    look(volume, 150, 200);
    fill(volume, 0, 10);
    /* What was stopped can be done after all. */
    CHECK(onode_resize(volume, before - 4 * MIB, &silent) == 0 && size_of(volume) < before);
    look(volume, 150, 200);
    look(volume, 0, 10);
    CHECK(onode_close_volume(volume) == 0);
}

static void wrong(const char *spec) {
    onode_extent extent;
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && onode_take_snapshot(volume, "s") == 0);
    uint64_t before = size_of(volume);
    FAILS(onode_resize(NULL, MIB, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_volume_extent(NULL, &extent) == -1, EINVAL, "NULL");
    FAILS(onode_volume_extent(volume, NULL) == -1, EINVAL, "no place");
    CHECK(onode_resize(volume, 0, NULL) == -1 && (errno == EINVAL || errno == ENOSPC));
    CHECK(onode_resize(volume, 1, NULL) == -1 && (errno == EINVAL || errno == ENOSPC));
    CHECK(onode_resize(volume, UINT64_MAX, NULL) == -1 && (errno == EINVAL || errno == ENOSPC || errno == EFBIG));
    CHECK(size_of(volume) == before);
    onode_heap *then = onode_open_state(volume, "s"), *tx = onode_tx_begin(volume);
    CHECK(then && tx);
    FAILS(onode_volume_extent(then, &extent) == -1, EOPNOTSUPP, "");
    FAILS(onode_resize(then, 2 * before, NULL) == -1, EOPNOTSUPP, "");
    FAILS(onode_resize(tx, 2 * before, NULL) == -1, EOPNOTSUPP, "");
    CHECK(onode_tx_abort(tx) == 0 && onode_close_volume(then) == 0);
    CHECK(onode_delete_snapshot(volume, "s") == 0 && onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume && size_of(volume) == before);
    FAILS(onode_resize(volume, 2 * before, NULL) == -1, EROFS, "");
    FAILS(onode_resize(volume, before - MIB, NULL) == -1, EROFS, "");
    CHECK(onode_close_volume(volume) == 0);
}

/* The pages of the bitmap that came with a growth lie where the volume ended before it. */
static void sooner(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume && size_of(volume) == 32 * MIB);
    CHECK(onode_resize(volume, 256 * MIB, NULL) == 0 && size_of(volume) == 256 * MIB);
    CHECK(onode_resize(volume, 32 * MIB + 8192, NULL) == 0 && size_of(volume) == 32 * MIB);
    CHECK(onode_close_volume(volume) == 0);
}

/* On memory a volume has what its file has. */
static void none(const char *memory) {
    onode_extent extent;
    onode_heap *volume = onode_open_volume(memory, O_RDWR | O_CREAT);
    CHECK(volume);
    FAILS(onode_volume_extent(volume, &extent) == -1, EOPNOTSUPP, "");
    FAILS(onode_resize(volume, 64 * MIB, NULL) == -1, EOPNOTSUPP, "");
    CHECK(onode_close_volume(volume) == 0);
    onode_heap *heap = onode_open_heap(memory);
    CHECK(heap);
    FAILS(onode_resize(heap, 64 * MIB, NULL) == -1, EOPNOTSUPP, "");
    CHECK(onode_close_heap(heap) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    const char *spec = arguments[1], *step = arguments[2], *other = arguments[3];
    if (!strcmp(step, "changes")) changes(spec, other);
    if (!strcmp(step, "stops")) stops(spec, other);
    if (!strcmp(step, "wrong")) wrong(spec);
    if (!strcmp(step, "sooner")) sooner(spec);
    if (!strcmp(step, "none")) none(spec);
    return 0;
}
