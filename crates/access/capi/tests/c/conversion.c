/* Between memory and files nothing of a file is lost: its number, names, owner, size, and the
 * descriptors that are open. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static struct onode_stat stat_of(onode_heap *heap, const char *path) {
    struct onode_stat stat;
    CHECK(onode_stat_path(heap, path, &stat) == 0);
    return stat;
}

static int sparse(onode_heap *heap, const char *path) {
    int fd = onode_open(heap, path, O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && onode_write(heap, fd, "abc", 3) == 3 && onode_pwrite(heap, fd, "x", 1, 200000) == 1);
    return fd;
}

/* A look at a file with holes leaves it the file that it is. */
static void look(onode_heap *heap) {
    int fd = sparse(heap, "/sparse"), beside = onode_creat(heap, "/sparse.compact", 0644);
    CHECK(beside >= 0 && onode_close(heap, beside) == 0);
    struct onode_stat before = stat_of(heap, "/sparse");
    size_t bytes;
    char *memory = onode_map(heap, "/sparse", &bytes);
    CHECK(memory && bytes == 200001 && !memcmp(memory, "abc", 4) && memory[200000] == 'x');
    struct onode_stat after = stat_of(heap, "/sparse");
    CHECK(after.inode == before.inode && after.links == 1 && after.size == before.size);
    CHECK(after.modified_seconds == before.modified_seconds && after.modified_nanoseconds == before.modified_nanoseconds);
    CHECK(onode_unmap(heap, memory) == 0);
    CHECK(onode_close(heap, fd) == 0);
}

/* What is written later through the descriptor is in the file, and in the memory. */
static void keep(onode_heap *heap) {
    int fd = sparse(heap, "/w");
    char *memory = file_to_mm(fd, ONODE_KEEP), found[6] = {0};
    CHECK(memory && onode_pwrite(heap, fd, "LATER", 5, 0) == 5);
    int other = onode_open(heap, "/w", O_RDONLY, 0);
    CHECK(other >= 0 && onode_pread(heap, other, found, 5, 0) == 5 && !strcmp(found, "LATER"));
    CHECK(!memcmp(memory, "LATER", 5));
    memcpy(memory, "STORE", 5);
    CHECK(onode_pread(heap, fd, found, 5, 0) == 5 && !strcmp(found, "STORE"));
    CHECK(onode_unmap(heap, memory) == 0 && onode_close(heap, other) == 0 && onode_close(heap, fd) == 0);
}

/* A way back that is refused leaves the descriptor open; one that is not takes it along. */
static void drop(onode_heap *heap) {
    int fd = onode_open(heap, "/z", O_CREAT | O_RDWR, 0644), other;
    char found[4] = {0};
    CHECK(fd >= 0 && onode_write(heap, fd, "abc", 3) == 3);
    CHECK((other = onode_open(heap, "/z", O_RDONLY, 0)) >= 0);
    CHECK(file_to_mm(fd, ONODE_DROP) == NULL && errno == EBUSY);
    CHECK(onode_pread(heap, fd, found, 3, 0) == 3 && !strcmp(found, "abc"));
    CHECK(onode_close(heap, other) == 0);
    /* With a hole it is brought together on the way. */
    CHECK(onode_pwrite(heap, fd, "x", 1, 100000) == 1);
    char *memory = file_to_mm(fd, ONODE_DROP);
    CHECK(memory && !memcmp(memory, "abc", 4) && memory[100000] == 'x');
    CHECK(onode_pread(heap, fd, found, 3, 0) == -1 && errno == EBADF);
    CHECK(onode_open(heap, "/z", O_RDONLY, 0) == -1 && errno == ENOENT);
    CHECK((fd = mm_to_file(memory, "/again", O_RDWR)) >= 0 && onode_close(heap, fd) == 0);
    CHECK(stat_of(heap, "/again").size == 100001);
}

/* Permissions are those that were asked for, as far as the umask leaves them. */
static void modes(onode_heap *heap) {
    umask(077);
    int fd = onode_open(heap, "/u", O_CREAT | O_RDWR, 0666);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0 && (stat_of(heap, "/u").mode & 07777) == 0600);
    fd = mm_to_file(onode_alloc(heap, 64), "/v", O_RDWR);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0 && (stat_of(heap, "/v").mode & 07777) == 0600);
    umask(027);
    fd = mm_to_file(onode_alloc(heap, 64), "/v2", O_RDWR);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0 && (stat_of(heap, "/v2").mode & 07777) == 0640);
    CHECK(onode_mkdir(heap, "/d", 0777) == 0 && (stat_of(heap, "/d").mode & 07777) == 0750);
}

/* A file has the bytes that were asked for, and none of a block that was freed behind them. */
static void sizes(onode_heap *heap) {
    static char all[400000];
    size_t asked[] = {1, 100, 3000, 33000, 200000};
    for (int i = 0; i < 5; i++) {
        char path[32], *block = onode_alloc(heap, asked[i]);
        CHECK(block);
        memset(block, 'S', onode_block_size(heap, block));
        CHECK(onode_free(heap, block) == 0 && (block = onode_alloc(heap, asked[i])));
        memset(block, 'a', asked[i]);
        snprintf(path, sizeof path, "/size%d", i);
        CHECK(onode_mm_to_file(heap, block, 0, "/none/x", O_RDWR) == -1);
        int fd = mm_to_file(block, path, O_RDWR);
        CHECK(fd >= 0 && onode_pread(heap, fd, all, sizeof all, 0) == (ptrdiff_t)asked[i]);
        CHECK(!memchr(all, 'S', asked[i]));
        CHECK(onode_truncate(heap, fd, 2 * asked[i]) == 0);
        CHECK(onode_pread(heap, fd, all, sizeof all, 0) == (ptrdiff_t)(2 * asked[i]));
        CHECK(!memchr(all, 'S', 2 * asked[i]) && onode_close(heap, fd) == 0);
    }
    /* Another size for a block counts, and an explicit one. */
    char *block = onode_realloc(heap, onode_alloc(heap, 100), 120);
    int fd = mm_to_file(block, "/grown", O_RDWR);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0 && stat_of(heap, "/grown").size == 120);
    fd = onode_mm_to_file(heap, onode_alloc(heap, 100), 7, "/seven", O_RDWR);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0 && stat_of(heap, "/seven").size == 7);
    block = onode_calloc(heap, 1000, 7);
    CHECK(block && block[0] == 0 && !memcmp(block, block + 1, 6999));
    CHECK(onode_calloc(heap, SIZE_MAX, 2) == NULL && errno == ENOSPC);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const char *step = arguments[2];
    if (!strcmp(step, "owner") && geteuid() == 0) CHECK(setegid(1001) == 0 && seteuid(1000) == 0);
    onode_heap *heap = onode_open_heap(arguments[1]);
    CHECK(heap && onode_use(heap) == 0);
    if (!strcmp(step, "look")) look(heap);
    if (!strcmp(step, "keep")) keep(heap);
    if (!strcmp(step, "drop")) drop(heap);
    if (!strcmp(step, "modes")) modes(heap);
    if (!strcmp(step, "sizes")) sizes(heap);
    if (!strcmp(step, "owner")) {
        int fd = onode_open(heap, "/mine", O_CREAT | O_RDWR, 0644);
        CHECK(fd >= 0 && onode_close(heap, fd) == 0);
        printf("%u:%u\n", (unsigned)geteuid(), (unsigned)getegid());
    }
    CHECK(onode_close_heap(heap) == 0);
    return 0;
}
