/* What paper 2 has in Table 1, and the calls around it. Each step is a process of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

struct node {
    uint64_t value;
    uint64_t next; /* an offset in the heap */
};

static void save(onode_heap *heap) {
    char *text = onode_alloc(heap, 2048);
    CHECK(text);
    strcpy(text, "a memory object of 2 KB");
    int fd = mm_to_file(text, "/text", O_RDWR);
    CHECK(fd >= 0);
    char back[24] = {0};
    CHECK(onode_read(heap, fd, back, 23) == 23 && !strcmp(back, "a memory object of 2 KB"));
    CHECK(onode_pwrite(heap, fd, "A", 1, 0) == 1);
    CHECK(onode_close(heap, fd) == 0);

    struct node *nodes = onode_alloc(heap, 100 * sizeof *nodes);
    CHECK(nodes);
    for (uint64_t i = 0; i < 100; i++) {
        nodes[i].value = i * i;
        nodes[i].next = i + 1 < 100 ? onode_offset(heap, &nodes[i + 1]) : 0;
    }
    fd = onode_mm_to_file(heap, nodes, 100 * sizeof *nodes, "/list", O_RDONLY);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0);
    CHECK(onode_alloc(heap, 5000)); /* nobody names it: it is gone with the process */
}

static void load(onode_heap *heap) {
    int fd = onode_open(heap, "/text", O_RDONLY, 0);
    CHECK(fd >= 0);
    char *text = file_to_mm(fd, ONODE_DROP);
    CHECK(text && !strcmp(text, "A memory object of 2 KB"));
    CHECK(onode_open(heap, "/text", O_RDONLY, 0) == -1 && errno == ENOENT);
    CHECK(onode_free(heap, text) == 0);

    size_t bytes = 0;
    struct node *first = onode_map(heap, "/list", &bytes);
    CHECK(first && bytes == 100 * sizeof *first);
    uint64_t count = 0;
    for (struct node *at = first; at; at = onode_pointer(heap, at->next)) {
        CHECK(at->value == count * count);
        count++;
    }
    CHECK(count == 100);
    CHECK(onode_unmap(heap, first) == 0);
}

static void files(onode_heap *heap) {
    CHECK(onode_mkdir(heap, "/d", 0755) == 0);
    int fd = onode_creat(heap, "/d/f", 0644);
    CHECK(fd >= 0);
    for (int i = 0; i < 1000; i++) CHECK(onode_write(heap, fd, "0123456789", 10) == 10);
    CHECK(onode_lseek(heap, fd, 0, SEEK_END) == 10000);
    CHECK(onode_truncate(heap, fd, 9995) == 0 && onode_fsync(heap, fd) == 0);
    CHECK(onode_close(heap, fd) == 0);
    CHECK(onode_rename(heap, "/d/f", "/d/g") == 0);
    struct onode_stat stat;
    CHECK(onode_stat_path(heap, "/d/g", &stat) == 0 && stat.size == 9995 && (stat.mode & 07777) == 0644);
    fd = onode_open(heap, "/d/g", O_RDWR | O_APPEND, 0);
    CHECK(fd >= 0 && onode_write(heap, fd, "end", 3) == 3);
    char back[9] = {0};
    CHECK(onode_pread(heap, fd, back, 8, 9990) == 8 && strcmp(back, "01234end") == 0);
    CHECK(onode_close(heap, fd) == 0);
    struct onode_name name;
    int names = 0;
    for (long at = 0; (at = onode_readdir(heap, "/d", at, &name)) > 0;) names += !strcmp(name.name, "g") ? 1 : 0;
    CHECK(names == 1);
    CHECK(onode_unlink(heap, "/d/g") == 0);
    CHECK(onode_stat_path(heap, "/d/g", &stat) == -1 && errno == ENOENT);
}

static void misuse(onode_heap *heap) {
    int local;
    char *block = onode_alloc(heap, 100);
    CHECK(onode_free(heap, block + 1) == -1 && errno == EINVAL);
    CHECK(onode_free(heap, &local) == -1 && errno == EINVAL);
    CHECK(onode_block_size(heap, block) >= 100);
    CHECK(onode_mm_to_file(heap, block, 1 << 20, "/x", O_RDWR) == -1 && errno == EINVAL);
    CHECK(mm_to_file(block, "/d", O_RDWR) == -1 && errno == EEXIST);
    CHECK(mm_to_file(block, "/nowhere/x", O_RDWR) == -1 && errno == ENOENT);
    CHECK(onode_free(heap, block) == 0);
    CHECK(onode_free(heap, block) == -1 && strstr(onode_error(), "freed before"));
    CHECK(onode_alloc(heap, (size_t)1 << 40) == NULL && errno == ENOSPC);
    CHECK(onode_read(heap, 77, block, 1) == -1 && errno == EBADF);
    CHECK(onode_open_heap("flash:x.img") == NULL && errno == EINVAL);
    CHECK(onode_alloc(NULL, 1) == NULL && errno == EINVAL);
    block = onode_realloc(heap, NULL, 10);
    CHECK(block);
    strcpy(block, "kept");
    block = onode_realloc(heap, block, 200000);
    CHECK(block && !strcmp(block, "kept"));
    block = onode_realloc(heap, block, 16);
    CHECK(block && !strcmp(block, "kept"));
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    onode_heap *heap = onode_open_heap(arguments[1]);
    CHECK(heap && onode_use(heap) == 0);
    if (!strcmp(arguments[2], "save")) save(heap);
    if (!strcmp(arguments[2], "load")) load(heap);
    if (!strcmp(arguments[2], "files")) files(heap);
    if (!strcmp(arguments[2], "misuse")) misuse(heap);
    CHECK(onode_close_heap(heap) == 0);
    return 0;
}
