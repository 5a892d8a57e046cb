/* What is wrong is an error with a number and words, and nothing is lost by it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* A call that has to fail, with this number and these words. */
#define FAILS(what, number, words)                                                                     \
    do {                                                                                               \
        errno = 0;                                                                                     \
        int failed = (what);                                                                           \
        if (!failed || errno != (number) || onode_errno() != (number) || !strstr(onode_error(), words)) { \
            fprintf(stderr, "line %d: %s: errno %d, %s\n", __LINE__, #what, errno, onode_error());     \
            exit(1);                                                                                   \
        }                                                                                              \
        CHECK(strlen(onode_strerror(number)) > 2 && !strstr(onode_strerror(number), "no error"));      \
    } while (0)

static void pointers(onode_heap *heap, const char *other_spec) {
    int local = 0;
    char *block = onode_alloc(heap, 5000), *freed = onode_alloc(heap, 300), *published = onode_alloc(heap, 100000);
    CHECK(block && freed && published);
    strcpy(block, "kept");
    CHECK(onode_free(heap, freed) == 0);
    int fd = onode_mm_to_file(heap, published, 0, "/file", O_RDWR);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0);
    onode_heap *other = onode_open_heap(other_spec);
    CHECK(other);
    char *foreign = onode_alloc(other, 64);
    CHECK(foreign);

    FAILS(onode_free(heap, block + 1) == -1, EINVAL, "no block begins there");
    FAILS(onode_free(heap, block + 4096) == -1, EINVAL, "no block begins there");
    FAILS(onode_free(heap, &local) == -1, EINVAL, "not of this heap");
    FAILS(onode_free(heap, foreign) == -1, EINVAL, "not of this heap");
    FAILS(onode_free(heap, freed) == -1, EINVAL, "freed before");
    FAILS(onode_free(heap, published) == -1, EINVAL, "belongs to a file");
    FAILS(onode_realloc(heap, block + 1, 10) == NULL, EINVAL, "no block begins there");
    FAILS(onode_realloc(heap, &local, 10) == NULL, EINVAL, "no block of the heap begins at");
    FAILS(onode_realloc(heap, freed, 10) == NULL, EINVAL, "freed before");
    FAILS(onode_realloc(heap, published, 1 << 20) == NULL, EINVAL, "belongs to a file");
    FAILS(onode_realloc(heap, block, (size_t)1 << 40) == NULL, ENOSPC, "is left in the heap");
    CHECK(!strcmp(block, "kept"));
    FAILS(onode_alloc(heap, (size_t)1 << 40) == NULL, ENOSPC, "is left in the heap");
    FAILS(onode_alloc(heap, SIZE_MAX) == NULL, ENOSPC, "is left in the heap");
    FAILS(onode_alloc(NULL, 1) == NULL, EINVAL, "NULL");
    FAILS(onode_block_size(heap, &local) == 0, EINVAL, "");
    FAILS(onode_offset(heap, &local) == 0, EINVAL, "not of this heap");
    FAILS(onode_pointer(heap, 3) == NULL, EINVAL, "no block");

    FAILS(onode_mm_to_file(heap, block, 0, "/file", O_RDWR) == -1, EEXIST, "/file");
    FAILS(onode_mm_to_file(heap, block, 1 << 20, "/x", O_RDWR) == -1, EINVAL, "bytes, not");
    FAILS(onode_mm_to_file(heap, block, 0, "/none/x", O_RDWR) == -1, ENOENT, "/none/x");
    FAILS(onode_mm_to_file(heap, block, 0, "/file/x", O_RDWR) == -1, ENOTDIR, "/file/x");
    FAILS(onode_mm_to_file(heap, block, 0, NULL, O_RDWR) == -1, EINVAL, "NULL");
    FAILS(onode_mm_to_file(heap, block + 1, 0, "/x", O_RDWR) == -1, EINVAL, "no block");
    FAILS(onode_mm_to_file(heap, foreign, 0, "/x", O_RDWR) == -1, EINVAL, "no block");
    FAILS(onode_mm_to_file(heap, freed, 0, "/x", O_RDWR) == -1, EINVAL, "freed before");
    FAILS(onode_mm_to_file(heap, published, 0, "/x", O_RDWR) == -1, EINVAL, "belongs to a file");
    FAILS(onode_mm_to_file(heap, NULL, 0, "/x", O_RDWR) == -1, EINVAL, "NULL");
    CHECK(!strcmp(block, "kept"));

    FAILS(onode_file_to_mm(heap, 77, ONODE_DROP) == NULL, EBADF, "77");
    size_t bytes;
    void *look = onode_map(heap, "/file", &bytes);
    CHECK(look == published && bytes >= 100000);
    fd = onode_open(heap, "/file", O_RDWR, 0);
    FAILS(onode_file_to_mm(heap, fd, ONODE_DROP) == NULL, EBUSY, "in use");
    FAILS(onode_unmap(heap, block) == -1, EINVAL, "no file is mapped");
    CHECK(onode_unmap(heap, look) == 0);
    FAILS(onode_unmap(heap, look) == -1, EINVAL, "no file is mapped");

    CHECK(onode_free(other, foreign) == 0 && onode_close_heap(other) == 0);
    CHECK(onode_free(heap, block) == 0);
}

static void full(onode_heap *heap) {
    void *blocks[64];
    int count = 0;
    while (count < 64 && (blocks[count] = onode_alloc(heap, 1 << 20))) {
        memset(blocks[count], count + 1, 1 << 20);
        count++;
    }
    CHECK(count > 8 && count < 64);
    FAILS(onode_alloc(heap, 1 << 20) == NULL, ENOSPC, "is left in the heap");
    FAILS(onode_create_arena(heap, "a", 1) == NULL, EINVAL, "256 KiB");
    for (int i = 0; i < count; i++) {
        CHECK(((unsigned char *)blocks[i])[12345] == i + 1);
        CHECK(onode_free(heap, blocks[i]) == 0);
    }
    CHECK((blocks[0] = onode_alloc(heap, 1 << 20)) && onode_free(heap, blocks[0]) == 0);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    const char *spec = arguments[1], *step = arguments[2], *other = arguments[3];
    if (!strcmp(step, "open")) {
        /* `other` is EXPECTED-ERRNO:WORDS */
        FAILS(onode_open_heap(spec) == NULL, atoi(other), strchr(other, ':') + 1);
        return 0;
    }
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    CHECK(!strcmp(onode_strerror(0), "no error") && strlen(onode_strerror(12345)));
    if (!strcmp(step, "pointers")) pointers(heap, other);
    if (!strcmp(step, "full")) full(heap);
    if (!strcmp(step, "twice")) {
        /* Two users of one memory see the same files. */
        onode_heap *second = onode_open_heap(spec);
        CHECK(second);
        char *block = onode_alloc(heap, 5);
        CHECK(block);
        memcpy(block, "both", 5);
        int made = onode_mm_to_file(heap, block, 5, "/both", O_RDONLY);
        CHECK(made >= 0 && onode_close(heap, made) == 0);
        size_t bytes;
        char *seen = onode_map(second, "/both", &bytes);
        CHECK(seen && bytes == 5 && !strcmp(seen, "both"));
        CHECK(onode_unmap(second, seen) == 0 && onode_unlink(second, "/both") == 0);
        CHECK(onode_close_heap(second) == 0);
    }
    CHECK(onode_close_heap(heap) == 0);
    return 0;
}
