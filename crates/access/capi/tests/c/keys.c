/* Encrypted volumes in C: `make` makes one and opens it again, `slots` gives it other keys,
 * `directories` gives one of its directories a key, `authenticated` makes one that tells what
 * somebody put back, `wrong` hands in what can be no key, `threads` opens two with different keys
 * at once, `plain` gives a key to a volume that is not encrypted, and `wiped` looks for keys in the
 * memory of the program.
 */
#include <pthread.h>

#include "volumes.h"

#define WORDS "a horse that nobody ever saw"
#define HIDDEN "words that lie hidden"

/* A passphrase that costs little to try. */
static onode_key words(const char *text) {
    return (onode_key){
        .kind = ONODE_PASSPHRASE, .bytes = text, .length = strlen(text), .memory_kib = 64, .passes = 1};
}

static onode_key bytes(const char *all) {
    return (onode_key){.kind = ONODE_KEY_BYTES, .bytes = all, .length = 32};
}

static const char ONE[] = "0123456789abcdef0123456789abcdef", TWO[] = "ffffffffffffffff0123456789abcdef";

static void make(const char *spec) {
    onode_key key = words(WORDS), wrong = words("another horse"), other = bytes(ONE);
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, ENOENT, "");
    onode_heap *volume = onode_open_encrypted(spec, O_RDWR | O_CREAT, &key);
    CHECK(volume);
    put(volume, "/a", HIDDEN);
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EBUSY, "");
    FAILS(onode_list_keys(spec, NULL, 0) == -1, EBUSY, "");
    CHECK(onode_close_volume(volume) == 0);

    FAILS(onode_open_volume(spec, O_RDWR) == NULL, ENOKEY, "no key");
    FAILS(onode_open_volume(spec, O_RDONLY) == NULL, ENOKEY, "no key");
    FAILS(onode_open_encrypted(spec, O_RDWR, &wrong) == NULL, ENOKEY, "");
    CHECK(!strstr(onode_error(), "horse"));
    FAILS(onode_open_encrypted(spec, O_RDWR | O_CREAT, &other) == NULL, ENOKEY, "");
    FAILS(onode_open_heap(spec) == NULL, EINVAL, "");
    /* The key of the last call is forgotten. */
    FAILS(onode_open_volume(spec, O_RDONLY) == NULL, ENOKEY, "no key");
    CHECK(strlen(onode_strerror(ENOKEY)) > 2);

    volume = onode_open_encrypted(spec, O_RDONLY, &key);
    CHECK(volume && has(volume, "/a", HIDDEN));
    FAILS(onode_creat(volume, "/x", 0644) == -1, EROFS, "");
    CHECK(onode_close_volume(volume) == 0);

    /* What belongs to the volume is open with it, and alone with the same key. */
    volume = onode_open_encrypted(spec, O_RDWR | O_SYNC, &key);
    CHECK(volume && onode_take_snapshot(volume, "then") == 0 && onode_make_clone(volume, "work", "then") == 0);
    put(volume, "/a", "new");
    onode_heap *then = onode_open_state(volume, "then"), *tx = onode_tx_begin(volume);
    CHECK(then && has(then, "/a", HIDDEN) && tx);
    put(tx, "/t", "together");
    CHECK(onode_tx_commit(tx) == 0 && onode_close_volume(then) == 0 && onode_close_volume(volume) == 0);
    char text[4096];
    snprintf(text, sizeof text, "%s@then", spec);
    FAILS(onode_open_volume(text, O_RDONLY) == NULL, ENOKEY, "no key");
    FAILS(onode_open_encrypted(text, O_RDONLY, &wrong) == NULL, ENOKEY, "");
    then = onode_open_encrypted(text, O_RDONLY, &key);
    CHECK(then && has(then, "/a", HIDDEN) && onode_close_volume(then) == 0);
    snprintf(text, sizeof text, "%s@work", spec);
    onode_heap *work = onode_open_encrypted(text, O_RDWR, &key);
    CHECK(work && has(work, "/a", HIDDEN));
    put(work, "/a", "in the clone");
    CHECK(onode_close_volume(work) == 0);
    volume = onode_open_encrypted(spec, O_RDWR, &key);
    CHECK(volume && has(volume, "/a", "new") && has(volume, "/t", "together") && onode_close_volume(volume) == 0);
}

/* A directory with a key of its own, in a volume that is encrypted. */
static void directories(const char *spec) {
    onode_key key = words(WORDS), own = bytes(ONE), other = bytes(TWO);
    onode_heap *volume = onode_open_encrypted(spec, O_RDWR | O_CREAT, &key);
    CHECK(volume && onode_mkdir(volume, "/d", 0700) == 0);
    put(volume, "/plain", "plain");
    FAILS(onode_new_directory_key(volume, "/plain", &own) == -1, EINVAL, "directory");
    FAILS(onode_new_directory_key(volume, "/none", &own) == -1, ENOENT, "");
    FAILS(onode_new_directory_key(volume, "/", &own) == -1, EINVAL, "topmost");
    int number = onode_new_directory_key(volume, "/d", &own);
    CHECK(number == 1);
    put(volume, "/d/a", HIDDEN);
    FAILS(onode_rename(volume, "/plain", "/d/plain") == -1, EXDEV, "");
    FAILS(onode_new_directory_key(volume, "/d", &own) == -1, EINVAL, "");
    CHECK(onode_lock_directories(volume, number) == 1 && onode_lock_directories(volume, number) == 0);
    FAILS(onode_open(volume, "/d/a", O_RDONLY, 0) == -1, ENOKEY, "");
    FAILS(onode_creat(volume, "/d/b", 0644) == -1, ENOKEY, "");
    FAILS(onode_lock_directories(volume, 7) == -1, ENOENT, "");
    FAILS(onode_unlock_directories(volume, &other) == -1, ENOKEY, "");
    CHECK(onode_unlock_directories(volume, &own) == 1 && has(volume, "/d/a", HIDDEN));
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_encrypted(spec, O_RDONLY, &key);
    CHECK(volume && has(volume, "/plain", "plain"));
    FAILS(onode_open(volume, "/d/a", O_RDONLY, 0) == -1, ENOKEY, "");
    CHECK(onode_unlock_directories(volume, &own) == 1 && has(volume, "/d/a", HIDDEN));
    CHECK(onode_close_volume(volume) == 0);
}

/* A volume that tells what somebody put back; `older` is where a copy of it goes. */
static void authenticated(const char *spec, const char *older) {
    onode_key key = words(WORDS);
    char noted[100], later[100], path[4096];
    onode_heap *volume = onode_open_authenticated(spec, O_RDWR | O_CREAT, &key, NULL);
    CHECK(volume);
    put(volume, "/a", "one");
    CHECK(onode_note_anchor(volume, noted, sizeof noted) > 2);
    FAILS(onode_note_anchor(volume, later, 3) == -1, ERANGE, "");
    CHECK(onode_close_volume(volume) == 0);
    /* The spec is flash:PATH,size=... */
    snprintf(path, sizeof path, "%s", spec + strlen("flash:"));
    *strchr(path, ',') = 0;
    FILE *from = fopen(path, "rb"), *to = fopen(older, "wb");
    CHECK(from && to);
    for (int byte; (byte = getc(from)) != EOF;) putc(byte, to);
    CHECK(fclose(from) == 0 && fclose(to) == 0);

    volume = onode_open_authenticated(spec, O_RDWR, &key, noted);
    CHECK(volume && has(volume, "/a", "one"));
    put(volume, "/a", "two");
    CHECK(onode_note_anchor(volume, later, sizeof later) > 2 && strcmp(noted, later));
    CHECK(onode_close_volume(volume) == 0);
    snprintf(path, sizeof path, "flash:%s", older);
    FAILS(onode_open_authenticated(path, O_RDONLY, &key, later) == NULL, EIO, "");
    volume = onode_open_authenticated(path, O_RDONLY, &key, noted);
    CHECK(volume && has(volume, "/a", "one") && onode_close_volume(volume) == 0);
    volume = onode_open_encrypted(spec, O_RDONLY, &key);
    CHECK(volume && has(volume, "/a", "two") && onode_close_volume(volume) == 0);
    FAILS(onode_open_authenticated(spec, O_RDONLY, &key, "nonsense") == NULL, EINVAL, "");
}

static void slots(const char *spec, const char *key_file) {
    onode_key first = words(WORDS), named = bytes(ONE), in_file = {.kind = ONODE_KEY_FILE};
    onode_key changed = words("a better one"), wrong = bytes(TWO);
    onode_key_slot found[4];
    named.label = "spare";
    in_file.bytes = key_file;
    in_file.length = strlen(key_file);
    CHECK(onode_list_keys(spec, NULL, 0) == 1 && onode_list_keys(spec, found, 4) == 1);
    CHECK(found[0].number == 0 && found[0].kind == ONODE_PASSPHRASE && !strcmp(found[0].label, ""));
    CHECK(found[0].memory_kib == 64 && found[0].passes == 1);

    FAILS(onode_add_key(spec, &wrong, &named) == -1, ENOKEY, "");
    FAILS(onode_test_key(spec, &named) == -1, ENOKEY, "");
    int spare = onode_add_key(spec, &first, &named);
    CHECK(spare == 1 && onode_test_key(spec, &named) == spare && onode_test_key(spec, &first) == 0);
    CHECK(onode_add_key(spec, &named, &in_file) == 2 && onode_test_key(spec, &in_file) == 2);
    /* Room for fewer than there are is filled, and not more. */
    memset(found, 0x55, sizeof found);
    CHECK(onode_list_keys(spec, found, 2) == 3 && found[1].number == 1 && found[1].kind == ONODE_KEY_BYTES);
    CHECK(!strcmp(found[1].label, "spare") && found[1].memory_kib == 0 && found[2].number == 0x55555555);

    int new = onode_change_key(spec, &first, &changed);
    CHECK(new > 2);
    FAILS(onode_open_encrypted(spec, O_RDWR, &first) == NULL, ENOKEY, "");
    FAILS(onode_change_key(spec, &first, &changed) == -1, ENOKEY, "");
    onode_heap *volume = onode_open_encrypted(spec, O_RDWR, &changed);
    CHECK(volume && has(volume, "/a", "new") && onode_close_volume(volume) == 0);
    volume = onode_open_encrypted(spec, O_RDWR, &in_file);
    CHECK(volume && has(volume, "/a", "new"));
    FAILS(onode_add_key(spec, &named, &first) == -1, EBUSY, "");
    FAILS(onode_remove_key(spec, &named, 2) == -1, EBUSY, "");
    CHECK(onode_close_volume(volume) == 0);

    FAILS(onode_remove_key(spec, &named, spare) == -1, EINVAL, "is to go");
    FAILS(onode_remove_key(spec, &named, 77) == -1, ENOENT, "");
    FAILS(onode_remove_key(spec, &wrong, 2) == -1, ENOKEY, "");
    CHECK(onode_remove_key(spec, &named, 2) == 0 && onode_remove_key(spec, &named, new) == 0);
    FAILS(onode_open_encrypted(spec, O_RDWR, &in_file) == NULL, ENOKEY, "");
    CHECK(onode_list_keys(spec, found, 4) == 1 && found[0].number == 1);

    /* As many as there can be, and no more. */
    int count = 1;
    while (onode_add_key(spec, &named, &in_file) >= 0) count++;
    CHECK(errno == ENOSPC && count == 32 && onode_list_keys(spec, found, 4) == 32);
    FAILS(onode_add_key(spec, &named, &in_file) == -1, ENOSPC, "at most 32");
    /* One that takes the place of another needs no room. */
    int taken = onode_change_key(spec, &in_file, &wrong);
    CHECK(taken > 2 && onode_test_key(spec, &wrong) == taken && onode_list_keys(spec, found, 4) == 32);
    CHECK(onode_remove_key(spec, &named, taken) == 0 && onode_list_keys(spec, found, 4) == 31);
    volume = onode_open_encrypted(spec, O_RDWR, &named);
    CHECK(volume && has(volume, "/a", "new") && onode_close_volume(volume) == 0);
}

static void wrong(const char *spec, const char *key_file) {
    onode_key named = bytes(ONE), key = named;
    onode_key_slot slot;
    FAILS(onode_open_encrypted(spec, O_RDWR, NULL) == NULL, EINVAL, "NULL");
    FAILS(onode_open_encrypted(NULL, O_RDWR, &key) == NULL, EINVAL, "NULL");
    FAILS(onode_open_encrypted("no:such,device", O_RDWR, &key) == NULL, EINVAL, "no device kind");
    FAILS(onode_list_keys(NULL, &slot, 1) == -1, EINVAL, "NULL");
    FAILS(onode_list_keys(spec, NULL, 1) == -1, EINVAL, "no place");
    FAILS(onode_list_keys(spec, &slot, SIZE_MAX) == -1, EINVAL, "no place");
    FAILS(onode_list_keys("nothing.img", &slot, 1) == -1, ENOENT, "");
    FAILS(onode_test_key(spec, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_test_key(NULL, &key) == -1, EINVAL, "NULL");
    FAILS(onode_add_key(spec, &key, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_add_key(spec, NULL, &key) == -1, EINVAL, "NULL");
    FAILS(onode_change_key(spec, &key, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_remove_key(spec, NULL, 0) == -1, EINVAL, "NULL");

    key.bytes = NULL;
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "NULL");
    key = named, key.length = 31;
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "32");
    key.length = 0;
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "32");
    key.length = SIZE_MAX;
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "at most");
    key = named, key.kind = 0;
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "no kind of key");
    key = words("");
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EINVAL, "empty passphrase");
    /* A passphrase in the place of a path is not told. */
    key = words(WORDS), key.kind = ONODE_KEY_FILE;
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, ENOENT, "key file");
    CHECK(!strstr(onode_error(), "horse"));
    key.bytes = "/dev/zero", key.length = 9;
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EINVAL, "at most");
    key.bytes = "/dev/null";
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EINVAL, "32");
    key.bytes = "/dev", key.length = 4;
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EISDIR, "key file");
    key.bytes = key_file, key.length = strlen(key_file);
    onode_heap *volume = onode_open_encrypted(spec, O_RDWR, &key);
    CHECK(volume && onode_close_volume(volume) == 0);

    /* A key that cannot be made leaves those that there are. */
    key = words("new"), key.memory_kib = UINT32_MAX;
    FAILS(onode_change_key(spec, &named, &key) == -1, EINVAL, "Argon2id");
    key = words("new"), key.label = "\xff";
    FAILS(onode_change_key(spec, &named, &key) == -1, EINVAL, "UTF-8");
    key.label = "a name of more bytes than any slot has room for, which are sixty-four";
    FAILS(onode_change_key(spec, &named, &key) == -1, EINVAL, "label");
    CHECK(onode_test_key(spec, &named) == 1);
    /* Neither is anything made with one. */
    char text[4096];
    snprintf(text, sizeof text, "%s.new,size=24M", spec);
    FAILS(onode_open_encrypted(text, O_RDWR | O_CREAT, &key) == NULL, EINVAL, "label");
    *strrchr(text, ',') = 0;
    CHECK(access(strchr(text, ':') + 1, F_OK) == -1);
}

struct worker {
    char spec[4096];
    onode_key key, wrong;
};

static void *opens(void *worker) {
    struct worker *own = worker;
    for (int round = 0; round < 10; round++) {
        FAILS(onode_open_encrypted(own->spec, O_RDWR, &own->wrong) == NULL, ENOKEY, "");
        onode_heap *volume = onode_open_encrypted(own->spec, O_RDWR, &own->key);
        CHECK(volume);
        put(volume, "/t", "mine");
        CHECK(has(volume, "/t", "mine") && onode_close_volume(volume) == 0);
    }
    return NULL;
}

static void threads(const char *spec, const char *other) {
    struct worker all[2] = {{.key = bytes(ONE), .wrong = bytes(TWO)}, {.key = bytes(TWO), .wrong = bytes(ONE)}};
    pthread_t threads[2];
    snprintf(all[0].spec, sizeof all[0].spec, "%s", spec);
    snprintf(all[1].spec, sizeof all[1].spec, "%s", other);
    onode_heap *volume = onode_open_encrypted(other, O_RDWR | O_CREAT, &all[1].key);
    CHECK(volume && onode_close_volume(volume) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, opens, &all[i]) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A volume that lies open takes no key, so that nothing is written there by mistake. */
static void plain(const char *spec) {
    onode_key key = bytes(ONE);
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    put(volume, "/a", "open");
    CHECK(onode_close_volume(volume) == 0);
    FAILS(onode_open_encrypted(spec, O_RDWR, &key) == NULL, EINVAL, "not encrypted");
    FAILS(onode_open_encrypted(spec, O_RDWR | O_CREAT, &key) == NULL, EINVAL, "not encrypted");
    FAILS(onode_list_keys(spec, NULL, 0) == -1, EINVAL, "not encrypted");
    FAILS(onode_test_key(spec, &key) == -1, EINVAL, "not encrypted");
    FAILS(onode_add_key(spec, &key, &key) == -1, EINVAL, "not encrypted");
    FAILS(onode_open_encrypted("ram:size=4M", O_RDWR, &key) == NULL, EINVAL, "not encrypted");
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && has(volume, "/a", "open") && onode_close_volume(volume) == 0);
}

#define MASK 0x55

/* Whether the bytes that this masks stand anywhere in memory that the program can write. */
static int lies_open(const char *masked, size_t length) {
    char line[4096], rights[8];
    unsigned long from, to;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        CHECK(sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3);
        if (strncmp(rights, "rw", 2)) continue;
        for (const volatile char *at = (const char *)from; at + length <= (const char *)to; at++) {
            size_t same = 0;
            while (same < length && (at[same] ^ MASK) == masked[same]) same++;
            found += same == length;
        }
    }
    CHECK(fclose(maps) == 0);
    return found;
}

static void turn(volatile char *bytes, size_t length, char mask) {
    for (size_t i = 0; i < length; i++) bytes[i] ^= mask;
}

/* The library has keys while it opens a volume, and no longer. */
static void wiped(const char *spec, const char *key_file) {
    static char words[] = "only this program has these words", masked[sizeof words], file_masked[32];
    size_t length = strlen(words);
    memcpy(masked, words, sizeof words);
    turn(masked, length, MASK);
    FILE *file = fopen(key_file, "r");
    CHECK(file && setvbuf(file, NULL, _IONBF, 0) == 0 && fread(file_masked, 1, 32, file) == 32 && fclose(file) == 0);
    turn(file_masked, 32, MASK);
    CHECK(lies_open(masked, length) == 1 && lies_open(file_masked, 32) == 0);
    onode_key key = {.kind = ONODE_PASSPHRASE, .bytes = words, .length = length, .memory_kib = 64, .passes = 1};
    onode_key in_file = {.kind = ONODE_KEY_FILE, .bytes = key_file, .length = strlen(key_file)};
    onode_heap *volume = onode_open_encrypted(spec, O_RDWR | O_CREAT, &key);
    CHECK(volume && onode_close_volume(volume) == 0 && onode_add_key(spec, &key, &in_file) == 1);
    CHECK((volume = onode_open_encrypted(spec, O_RDWR, &in_file)) != NULL && onode_close_volume(volume) == 0);
    CHECK(onode_change_key(spec, &in_file, &in_file) >= 0);
    CHECK((volume = onode_open_encrypted(spec, O_RDWR, &key)) != NULL);
    put(volume, "/a", HIDDEN);
    turn(words, length, MASK);
    FAILS(onode_test_key(spec, &key) == -1, EBUSY, "");
    CHECK(lies_open(masked, length) == 0 && lies_open(file_masked, 32) == 0);
    CHECK(onode_close_volume(volume) == 0);
    FAILS(onode_test_key(spec, &key) == -1, ENOKEY, "");
    CHECK(lies_open(masked, length) == 0 && lies_open(file_masked, 32) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    const char *spec = arguments[1], *step = arguments[2], *other = arguments[3];
    if (!strcmp(step, "make")) make(spec);
    if (!strcmp(step, "slots")) slots(spec, other);
    if (!strcmp(step, "directories")) directories(spec);
    if (!strcmp(step, "authenticated")) authenticated(spec, other);
    if (!strcmp(step, "wrong")) wrong(spec, other);
    if (!strcmp(step, "threads")) threads(spec, other);
    if (!strcmp(step, "plain")) plain(spec);
    if (!strcmp(step, "wiped")) wiped(spec, other);
    return 0;
}
