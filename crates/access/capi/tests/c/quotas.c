/* Limits in C: `set` sets some and meets them, `keeps` finds them again, `stops` ends the setting
 * of one, `wrong` asks for what cannot be, and `none` asks where nothing counts.
 */
#include "volumes.h"

static int hear(uint64_t done, uint64_t total, void *context) {
    int *times = context;
    CHECK(total == 0 && done < 1000000);
    return (*times)-- == 0;
}

static onode_quota of(int kind, uint64_t number, uint64_t bytes, uint64_t files) {
    return (onode_quota){.kind = kind, .number = number, .limit_bytes = bytes, .limit_files = files};
}

static uint64_t number_of(onode_heap *volume, const char *path) {
    onode_stat stat;
    CHECK(onode_stat_path(volume, path, &stat) == 0);
    return stat.inode;
}

static void set(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT | O_SYNC);
    CHECK(volume && onode_list_quotas(volume, NULL, 0) == 0);
    CHECK(onode_mkdir(volume, "/d", 0755) == 0 && onode_mkdir(volume, "/d/e", 0755) == 0);
    put(volume, "/d/e/a", "0123456789");
    uint64_t number = number_of(volume, "/d");
    onode_quota limit = of(ONODE_QUOTA_DIRECTORY, number, 10000, 5), found[4];
    int left = 1 << 30;
    onode_progress progress = {hear, &left};
    CHECK(onode_set_quota(volume, &limit, &progress) == 0 && left < 1 << 30);
    memset(found, 0x55, sizeof found);
    CHECK(onode_list_quotas(volume, found, 4) == 1 && found[0].kind == ONODE_QUOTA_DIRECTORY);
    CHECK(found[0].number == number && found[0].limit_bytes == 10000 && found[0].limit_files == 5);
    CHECK(found[0].used_bytes == 10 && found[0].used_files == 3 && found[1].kind == 0x55555555);
    char path[64];
    CHECK(onode_directory_path(volume, number, path, sizeof path) == 2 && !strcmp(path, "/d"));

    /* As much as the limit says, and not more. */
    static char content[10000];
    int file = onode_creat(volume, "/d/b", 0644);
    CHECK(file >= 0 && onode_pwrite(volume, file, content, 9990, 0) == 9990);
    FAILS(onode_pwrite(volume, file, content, 1, 9990) == -1, EDQUOT, "");
    FAILS(onode_truncate(volume, file, 9991) == -1, EDQUOT, "");
    CHECK(onode_close(volume, file) == 0 && onode_mkdir(volume, "/d/f", 0755) == 0);
    FAILS(onode_creat(volume, "/d/c", 0644) == -1, EDQUOT, "");
    FAILS(onode_mkdir(volume, "/d/e/x", 0755) == -1, EDQUOT, "");
    FAILS(onode_rename(volume, "/d/b", "/b") == -1, EXDEV, "");
    put(volume, "/elsewhere", "no limit");

    /* Changed at once; others beside it. */
    limit = of(ONODE_QUOTA_DIRECTORY, number, ONODE_NO_LIMIT, 6);
    left = 0;
    CHECK(onode_set_quota(volume, &limit, &progress) == 0 && left == 0);
    file = onode_open(volume, "/d/b", O_WRONLY, 0);
    CHECK(file >= 0 && onode_pwrite(volume, file, content, 10000, 9990) == 10000 && onode_close(volume, file) == 0);
    onode_quota user = of(ONODE_QUOTA_USER, 1000, 4096, ONODE_NO_LIMIT), group = of(ONODE_QUOTA_GROUP, 7, 1, 2);
    CHECK(onode_set_quota(volume, &user, NULL) == 0 && onode_set_quota(volume, &group, NULL) == 0);
    CHECK(onode_list_quotas(volume, found, 2) == 3 && onode_list_quotas(volume, found, 4) == 3);
    CHECK(found[0].limit_bytes == ONODE_NO_LIMIT && found[0].limit_files == 6 && found[0].used_bytes == 20000);
    CHECK(found[1].kind == ONODE_QUOTA_USER && found[1].number == 1000 && found[1].limit_bytes == 4096);
    CHECK(found[1].limit_files == ONODE_NO_LIMIT && found[2].kind == ONODE_QUOTA_GROUP && found[2].number == 7);
    CHECK(onode_remove_quota(volume, ONODE_QUOTA_GROUP, 7) == 0);
    FAILS(onode_remove_quota(volume, ONODE_QUOTA_GROUP, 7) == -1, ENOENT, "");
    CHECK(onode_close_volume(volume) == 0);
}

static void keeps(const char *spec) {
    onode_quota found[4];
    onode_heap *volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume && onode_list_quotas(volume, found, 4) == 2 && found[0].used_files == 5);
    FAILS(onode_set_quota(volume, &found[1], NULL) == -1, EROFS, "");
    FAILS(onode_remove_quota(volume, ONODE_QUOTA_USER, 1000) == -1, EROFS, "");
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    put(volume, "/d/c", "the sixth");
    FAILS(onode_creat(volume, "/d/d", 0644) == -1, EDQUOT, "");
    CHECK(onode_remove_quota(volume, ONODE_QUOTA_DIRECTORY, found[0].number) == 0);
    put(volume, "/d/d", "the seventh");
    CHECK(onode_list_quotas(volume, found, 4) == 1 && onode_close_volume(volume) == 0);
}

static void stops(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    uint64_t number = number_of(volume, "/d");
    onode_quota limit = of(ONODE_QUOTA_DIRECTORY, number, 1, 1), found[4];
    int left = 0;
    onode_progress progress = {hear, &left};
    FAILS(onode_set_quota(volume, &limit, &progress) == -1, ECANCELED, "no new limit");
    CHECK(onode_list_quotas(volume, found, 4) == 1);
    put(volume, "/d/after", "no limit");
    CHECK(onode_rename(volume, "/d/after", "/after") == 0);
    /* Nobody waits for who was stopped. */
    CHECK(onode_set_quota(volume, &limit, NULL) == 0 && onode_list_quotas(volume, found, 4) == 2);
    FAILS(onode_creat(volume, "/d/more", 0644) == -1, EDQUOT, "");
    CHECK(onode_close_volume(volume) == 0);
}

static void wrong(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    uint64_t number = number_of(volume, "/d");
    onode_quota limit = of(ONODE_QUOTA_DIRECTORY, number_of(volume, "/d/e"), 1, 1);
    char path[3] = "xy";
    FAILS(onode_set_quota(volume, NULL, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_set_quota(NULL, &limit, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EEXIST, "");
    limit.number = number_of(volume, "/");
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EEXIST, "");
    limit.number = number_of(volume, "/elsewhere");
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, ENOTDIR, "");
    limit.number = UINT64_MAX;
    CHECK(onode_set_quota(volume, &limit, NULL) == -1);
    limit.number = 987654321;
    CHECK(onode_set_quota(volume, &limit, NULL) == -1);
    limit = of(ONODE_QUOTA_USER, 0, 1, 1);
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EINVAL, "super-user");
    limit.number = (uint64_t)1 << 32;
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EINVAL, "no number");
    limit.kind = 9;
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EINVAL, "no kind");
    FAILS(onode_remove_quota(volume, 9, 1) == -1, EINVAL, "no kind");
    FAILS(onode_remove_quota(NULL, ONODE_QUOTA_USER, 1) == -1, EINVAL, "NULL");
    FAILS(onode_remove_quota(volume, ONODE_QUOTA_USER, 5) == -1, ENOENT, "");
    FAILS(onode_list_quotas(volume, NULL, 1) == -1, EINVAL, "no place");
    FAILS(onode_list_quotas(NULL, NULL, 0) == -1, EINVAL, "NULL");
    FAILS(onode_directory_path(volume, number, path, 2) == -1, ERANGE, "3 bytes");
    FAILS(onode_directory_path(volume, number, NULL, 0) == -1, ERANGE, "room for 0");
    FAILS(onode_directory_path(volume, number, NULL, 9) == -1, EINVAL, "no place");
    CHECK(!strcmp(path, "xy") && onode_directory_path(volume, number, path, 3) == 2 && !strcmp(path, "/d"));
    onode_heap *tx = onode_tx_begin(volume);
    CHECK(tx);
    limit = of(ONODE_QUOTA_USER, 5, 1, 1);
    FAILS(onode_set_quota(tx, &limit, NULL) == -1, EPERM, "");
    CHECK(onode_tx_abort(tx) == 0 && onode_list_quotas(volume, NULL, 0) == 2);
    CHECK(onode_close_volume(volume) == 0);
}

static void none(const char *spec) {
    onode_quota limit = of(ONODE_QUOTA_USER, 5, 1, 1);
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume && onode_list_quotas(volume, &limit, 1) == 0);
    FAILS(onode_set_quota(volume, &limit, NULL) == -1, EOPNOTSUPP, "storage-class memory");
    FAILS(onode_remove_quota(volume, ONODE_QUOTA_USER, 5) == -1, EOPNOTSUPP, "storage-class memory");
    CHECK(onode_close_volume(volume) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    const char *spec = arguments[1], *step = arguments[2];
    if (!strcmp(step, "set")) set(spec);
    if (!strcmp(step, "keeps")) keeps(spec);
    if (!strcmp(step, "stops")) stops(spec);
    if (!strcmp(step, "wrong")) wrong(spec);
    if (!strcmp(step, "none")) none(spec);
    return 0;
}
