/* Scrubs in C: `whole` verifies a volume, stops and goes on, `damaged` meets what cannot be read,
 * and `none` asks for one where nothing is verified.
 */
#include "volumes.h"

struct heard {
    int times, most;
};

static int hear(uint64_t done, uint64_t total, void *context) {
    struct heard *heard = context;
    CHECK(done <= total);
    return heard->times++ >= heard->most;
}

static void whole(const char *spec) {
    static char content[1 << 20];
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume && onode_list_damage(volume, NULL, 0) == 0);
    for (size_t at = 0; at + 16 <= sizeof content; at += 16) memcpy(content + at, "a mark to damage", 16);
    int file = onode_creat(volume, "/marked", 0644);
    CHECK(file >= 0 && onode_write(volume, file, content, sizeof content) == sizeof content);
    CHECK(onode_close(volume, file) == 0 && onode_sync(volume) == 0);
    onode_scrubbed found;
    struct heard heard = {.most = 1 << 30};
    onode_progress progress = {hear, &heard};
    CHECK(onode_scrub(volume, 0, &found, &progress) == 0 && heard.times > 0);
    CHECK(found.objects > 0 && found.bytes >= sizeof content && found.damaged_ranges == 0 && !found.is_cut);
    CHECK(onode_list_damage(volume, NULL, 0) == 0);
    heard = (struct heard){.most = 0};
    FAILS(onode_scrub(volume, 0, &found, &progress) == -1, ECANCELED, "go on from there");
    CHECK(heard.times == 1 && onode_scrub(volume, 1, NULL, NULL) == 0);
    FAILS(onode_scrub(NULL, 0, &found, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_list_damage(NULL, NULL, 0) == -1, EINVAL, "NULL");
    FAILS(onode_list_damage(volume, NULL, 1) == -1, EINVAL, "no place");
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume && onode_scrub(volume, 0, &found, NULL) == 0 && found.bytes >= sizeof content);
    CHECK(onode_close_volume(volume) == 0);
}

static void damaged(const char *spec) {
    onode_scrubbed found;
    onode_damage ranges[2];
    onode_stat stat;
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && onode_stat_path(volume, "/marked", &stat) == 0);
    CHECK(onode_scrub(volume, 0, &found, NULL) == 1 && found.damaged_ranges > 0);
    memset(ranges, 0x55, sizeof ranges);
    CHECK(onode_list_damage(volume, ranges, 1) >= 1 && ranges[1].inode == 0x5555555555555555);
    CHECK(ranges[0].inode == stat.inode && ranges[0].start < ranges[0].end && ranges[0].end <= stat.size);
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && onode_list_damage(volume, ranges, 2) >= 1 && ranges[0].inode == stat.inode);
    /* What is gone is no damage any more. */
    CHECK(onode_unlink(volume, "/marked") == 0 && onode_sync(volume) == 0);
    CHECK(onode_scrub(volume, 0, &found, NULL) == 0 && onode_list_damage(volume, ranges, 2) == 0);
    CHECK(onode_close_volume(volume) == 0);
}

static void none(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    FAILS(onode_scrub(volume, 0, NULL, NULL) == -1, EOPNOTSUPP, "no checksums");
    CHECK(onode_list_damage(volume, NULL, 0) == 0 && onode_close_volume(volume) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    const char *spec = arguments[1], *step = arguments[2];
    if (!strcmp(step, "whole")) whole(spec);
    if (!strcmp(step, "damaged")) damaged(spec);
    if (!strcmp(step, "none")) none(spec);
    return 0;
}
