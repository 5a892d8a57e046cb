/* Hints of files in C: `set` sets some and reads them back, `keeps` finds them again, `wrong` hands
 * in what is none, `packed` compresses what is written, `two` places files on two disks, and on
 * flash that was made so files of `parity` choose how many lost pages they outlive.
 */
#include "volumes.h"

static int is(onode_heap *files, const char *path, const char *name, const char *value) {
    char found[64];
    ssize_t length = onode_hint(files, path, name, found, sizeof found);
    return length == (ssize_t)strlen(value) && !strcmp(found, value);
}

static void set(const char *spec) {
    onode_heap *volume = onode_open_compressed(spec, O_RDWR | O_CREAT, "auto", NULL);
    CHECK(volume && onode_mkdir(volume, "/d", 0755) == 0);
    put(volume, "/a", "a file");
    CHECK(is(volume, "/a", "lifetime", "unknown") && is(volume, "/a", "temperature", "unknown"));
    CHECK(is(volume, "/a", "size", "unknown") && is(volume, "/a", "compress", "auto"));
    CHECK(onode_set_hint(volume, "/a", "lifetime", "short") == 0 && is(volume, "/a", "lifetime", "short"));
    CHECK(onode_set_hint(volume, "/a", "temperature", "cold") == 0 && is(volume, "/a", "temperature", "cold"));
    CHECK(onode_set_hint(volume, "/a", "size", "65536") == 0 && is(volume, "/a", "size", "64K"));
    CHECK(onode_set_hint(volume, "/a", "size", "unknown") == 0 && is(volume, "/a", "size", "unknown"));
    CHECK(onode_set_hint(volume, "/a", "compress", "small") == 0 && is(volume, "/a", "compress", "small"));
    CHECK(has(volume, "/a", "a file"));
    /* What a directory says goes on to what is made in it. */
    CHECK(onode_set_hint(volume, "/d", "lifetime", "long") == 0);
    put(volume, "/d/b", "in it");
    CHECK(is(volume, "/d/b", "lifetime", "long") && is(volume, "/d", "lifetime", "long"));
    CHECK(onode_take_snapshot(volume, "s") == 0 && onode_set_hint(volume, "/d/b", "lifetime", "medium") == 0);
    onode_heap *then = onode_open_state(volume, "s");
    CHECK(then && is(then, "/d/b", "lifetime", "long"));
    FAILS(onode_set_hint(then, "/d/b", "lifetime", "short") == -1, EROFS, "");
    CHECK(onode_close_volume(then) == 0 && onode_close_volume(volume) == 0);
}

static void keeps(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume && is(volume, "/a", "lifetime", "short") && is(volume, "/a", "temperature", "cold"));
    CHECK(is(volume, "/a", "compress", "small") && is(volume, "/d/b", "lifetime", "medium"));
    FAILS(onode_set_hint(volume, "/a", "lifetime", "long") == -1, EROFS, "");
    CHECK(onode_close_volume(volume) == 0);
}

static void wrong(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    char value[6] = "_____";
    CHECK(volume);
    FAILS(onode_set_hint(volume, "/a", "liftime", "short") == -1, EINVAL, "lifetime, temperature");
    FAILS(onode_set_hint(volume, "/a", "lifetime", "hot") == -1, EINVAL, "short, medium or long");
    FAILS(onode_set_hint(volume, "/a", "size", "16777216T") == -1, EINVAL, "");
    FAILS(onode_set_hint(volume, "/a", "lifetime", "\xff") == -1, EINVAL, "UTF-8");
    FAILS(onode_set_hint(volume, "/a", "lifetime", NULL) == -1, EINVAL, "NULL");
    FAILS(onode_set_hint(volume, "/a", NULL, "short") == -1, EINVAL, "NULL");
    FAILS(onode_set_hint(volume, NULL, "lifetime", "short") == -1, EINVAL, "NULL");
    FAILS(onode_set_hint(NULL, "/a", "lifetime", "short") == -1, EINVAL, "NULL");
    FAILS(onode_set_hint(volume, "/none", "lifetime", "short") == -1, ENOENT, "");
    FAILS(onode_set_hint(volume, "/a", "placement", "pin") == -1, EOPNOTSUPP, "");
    FAILS(onode_hint(volume, "/a", "placement", value, sizeof value) == -1, EOPNOTSUPP, "");
    FAILS(onode_hint(volume, "/none", "lifetime", value, sizeof value) == -1, ENOENT, "");
    FAILS(onode_hint(volume, "/a", "copies", value, sizeof value) == -1, EINVAL, "no hint");
    FAILS(onode_set_hint(volume, "/a", "parity", "2") == -1, EOPNOTSUPP, "--parity 0-2");
    FAILS(onode_set_hint(volume, "/a", "parity", "two") == -1, EINVAL, "number of pages");
    FAILS(onode_hint(NULL, "/a", "lifetime", value, sizeof value) == -1, EINVAL, "NULL");
    FAILS(onode_hint(volume, "/a", "lifetime", NULL, 6) == -1, EINVAL, "no place");
    FAILS(onode_hint(volume, "/a", "lifetime", value, 5) == -1, ERANGE, "6 bytes");
    FAILS(onode_hint(volume, "/a", "lifetime", NULL, 0) == -1, ERANGE, "room for 0");
    CHECK(!strcmp(value, "_____") && onode_hint(volume, "/a", "lifetime", value, 6) == 5);
    CHECK(!strcmp(value, "short") && onode_close_volume(volume) == 0);
}

/* More than the volume has room for, if it were not compressed. */
static void packed(const char *spec, const char *compress, const onode_key *key) {
    static char content[1 << 20], found[1 << 20];
    memset(content, 'x', sizeof content);
    onode_heap *volume = onode_open_compressed(spec, O_RDWR | O_CREAT, compress, key);
    CHECK(volume);
    int file = onode_creat(volume, "/packed", 0644);
    CHECK(file >= 0);
    for (int i = 0; i < 40; i++) {
        CHECK(onode_write(volume, file, content, sizeof content) == sizeof content);
        CHECK(onode_fsync(volume, file) == 0);
    }
    CHECK(onode_close(volume, file) == 0 && onode_close_volume(volume) == 0);
    volume = key ? onode_open_encrypted(spec, O_RDWR, key) : onode_open_volume(spec, O_RDWR);
    CHECK(volume && (file = onode_open(volume, "/packed", O_RDWR, 0)) >= 0);
    for (int i = 0; i < 40; i++) {
        CHECK(onode_read(volume, file, found, sizeof found) == sizeof found);
        CHECK(!memcmp(content, found, sizeof found));
    }
    CHECK(onode_close(volume, file) == 0 && onode_close_volume(volume) == 0);
    FAILS(onode_open_compressed(spec, O_RDWR, "much", key) == NULL, EINVAL, "much");
    FAILS(onode_open_compressed(NULL, O_RDWR, "fast", key) == NULL, EINVAL, "NULL");
}

static void two(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    put(volume, "/a", "on the fast disk");
    CHECK(onode_set_hint(volume, "/a", "placement", "pin") == 0 && !is(volume, "/a", "placement", "default"));
    FAILS(onode_set_hint(volume, "/a", "placement", "nowhere") == -1, EINVAL, "");
    CHECK(onode_set_hint(volume, "/a", "placement", "default,unpin") == 0 && has(volume, "/a", "on the fast disk"));
    CHECK(onode_close_volume(volume) == 0);
}

static void parity(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    put(volume, "/a", "two pages of parity");
    CHECK(is(volume, "/a", "parity", "default") && onode_set_hint(volume, "/a", "parity", "2") == 0);
    CHECK(is(volume, "/a", "parity", "2") && has(volume, "/a", "two pages of parity"));
    CHECK(onode_set_hint(volume, "/a", "parity", "0") == 0 && is(volume, "/a", "parity", "none"));
    FAILS(onode_set_hint(volume, "/a", "parity", "3") == -1, EINVAL, "at most 2");
    CHECK(onode_close_volume(volume) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    const char *spec = arguments[1], *step = arguments[2];
    if (!strcmp(step, "set")) set(spec);
    if (!strcmp(step, "keeps")) keeps(spec);
    if (!strcmp(step, "wrong")) wrong(spec);
    if (!strcmp(step, "packed")) packed(spec, "fast", NULL);
    if (!strcmp(step, "packed-locked")) {
        onode_key key = {.kind = ONODE_KEY_BYTES, .bytes = "0123456789abcdef0123456789abcdef", .length = 32};
        packed(spec, "small", &key);
        FAILS(onode_open_compressed(spec, O_RDONLY, NULL, NULL) == NULL, ENOKEY, "no key");
    }
    if (!strcmp(step, "two")) two(spec);
    if (!strcmp(step, "parity")) parity(spec);
    return 0;
}
