/* Transactions of files: seen by nobody before they are committed, and then all at once. */

#include "onode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, onode_error());        \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

static void put(struct onode_heap *heap, const char *path, const char *text) {
    int file = onode_creat(heap, path, 0644);
    CHECK(file >= 0);
    CHECK(onode_write(heap, file, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(onode_close(heap, file) == 0);
}

static int has(struct onode_heap *heap, const char *path, const char *text) {
    char found[64] = {0};
    int file = onode_open(heap, path, O_RDONLY, 0);
    if (file < 0) {
        return 0;
    }
    CHECK(onode_read(heap, file, found, sizeof found - 1) >= 0);
    CHECK(onode_close(heap, file) == 0);
    return strcmp(found, text) == 0;
}

static void commit(struct onode_heap *heap) {
    put(heap, "/a", "before");
    struct onode_heap *tx = onode_tx_begin(heap);
    CHECK(tx);
    CHECK(onode_mkdir(tx, "/d", 0755) == 0);
    put(tx, "/d/b", "inside");
    put(tx, "/a", "after");
    CHECK(has(tx, "/a", "after") && has(heap, "/a", "before") && !has(heap, "/d/b", "inside"));
    CHECK(!onode_alloc(tx, 100) && errno == EINVAL);
    CHECK(onode_close_heap(tx) == -1 && errno == EINVAL);
    CHECK(onode_tx_commit(heap) == -1 && errno == EINVAL);
    CHECK(onode_tx_commit(tx) == 0);
    CHECK(has(heap, "/a", "after") && has(heap, "/d/b", "inside"));
    void *block = onode_alloc(heap, 100);
    CHECK(block && onode_free(heap, block) == 0);
}

static void give_up(struct onode_heap *heap) {
    struct onode_heap *tx = onode_tx_begin(heap);
    CHECK(tx);
    CHECK(onode_unlink(tx, "/a") == 0 && !has(tx, "/a", "after"));
    put(tx, "/lost", "lost");
    CHECK(onode_tx_abort(tx) == 0);
    CHECK(has(heap, "/a", "after") && !has(heap, "/lost", "lost"));
}

static void conflict(struct onode_heap *heap) {
    struct onode_heap *one = onode_tx_begin(heap);
    struct onode_heap *two = onode_tx_begin(heap);
    CHECK(one && two);
    put(one, "/a", "one");
    put(two, "/a", "two");
    CHECK(onode_tx_commit(one) == 0);
    CHECK(onode_tx_commit(two) == -1 && errno == EBUSY && strstr(onode_error(), "conflict"));
    CHECK(has(heap, "/a", "one"));
}

int main(int count, char **words) {
    CHECK(count == 3);
    struct onode_heap *heap = onode_open_heap(words[1]);
    CHECK(heap);
    if (strcmp(words[2], "commit") == 0) {
        commit(heap);
    } else if (strcmp(words[2], "abort") == 0) {
        give_up(heap);
    } else if (strcmp(words[2], "conflict") == 0) {
        conflict(heap);
    } else {
        CHECK(has(heap, "/a", "one") && has(heap, "/d/b", "inside") && !has(heap, "/lost", "lost"));
    }
    CHECK(onode_close_heap(heap) == 0);
    return 0;
}
