/* Arenas, checkpoints, roots and pointers that may be stored. Each step is a process of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { NODE = 1, TREE = 2 }; /* the tags of this program */

struct node {
    uint64_t value;
    ONODE_REF(struct node) next;
};

struct tree {
    uint64_t key;
    ONODE_NEAR(struct tree) left, right;
};

static struct tree *insert(onode_arena *arena, struct tree *tree, uint64_t key) {
    if (!tree) {
        tree = onode_arena_alloc(arena, sizeof *tree);
        CHECK(tree);
        *tree = (struct tree){.key = key};
    } else if (key < tree->key) {
        ONODE_NEAR_SET(tree->left, insert(arena, ONODE_NEAR_GET(tree->left), key));
    } else {
        ONODE_NEAR_SET(tree->right, insert(arena, ONODE_NEAR_GET(tree->right), key));
    }
    return tree;
}

/* The keys in order; returns how many there are. */
static uint64_t walk(struct tree *tree, uint64_t *last) {
    if (!tree) return 0;
    uint64_t count = walk(ONODE_NEAR_GET(tree->left), last);
    CHECK(*last <= tree->key);
    *last = tree->key;
    return count + 1 + walk(ONODE_NEAR_GET(tree->right), last);
}

static void make(onode_heap *heap) {
    struct node *nodes = onode_alloc(heap, 50 * sizeof *nodes);
    void *start = onode_heap_start(heap);
    CHECK(nodes && start);
    for (int i = 0; i < 50; i++) {
        nodes[i].value = i;
        ONODE_REF_SET(start, nodes[i].next, i < 49 ? &nodes[i + 1] : NULL);
    }
    /* It is no file's yet. */
    CHECK(onode_set_root(heap, "list", nodes, sizeof *nodes, NODE) == -1 && errno == EINVAL);
    int fd = onode_mm_to_file(heap, nodes, 50 * sizeof *nodes, "/nodes", O_RDONLY);
    CHECK(fd >= 0 && onode_close(heap, fd) == 0);
    CHECK(onode_set_root(heap, "list", nodes, sizeof *nodes, NODE) == 0);

    onode_arena *arena = onode_create_arena(heap, "trees", 1 << 20);
    CHECK(arena && onode_arena_start(arena));
    CHECK(onode_arena_root(arena, sizeof(struct tree), TREE) == NULL && errno == ENOENT);
    struct tree *tree = NULL;
    for (uint64_t i = 0; i < 1000; i++) tree = insert(arena, tree, i * 7919 % 1009);
    CHECK(onode_arena_set_root(arena, tree, sizeof *tree, TREE) == 0);
    struct onode_cost cost;
    CHECK(onode_checkpoint(arena, "thousand", &cost) == 0 && cost.pages > 5 && cost.bytes_written > cost.pages * 4096);
    insert(arena, tree, 2000);
    CHECK(onode_arena_copy_ahead(arena) == 0 && onode_arena_freeze(arena) == 0);
    CHECK(onode_arena_freeze(arena) == -1 && errno == EBUSY);
    insert(arena, tree, 3000); /* after the moment of the image */
    CHECK(onode_arena_commit(arena, "one more", &cost) == 0);
    CHECK(onode_arena_commit(arena, "no more", NULL) == -1 && errno == EINVAL);
    CHECK(onode_arena_freeze(arena) == 0); /* and never committed */
    CHECK(onode_close_arena(arena) == 0);
}

static void look(onode_heap *heap) {
    void *start = onode_heap_start(heap);
    struct node *first = onode_root(heap, "list", sizeof *first, NODE);
    CHECK(first);
    uint64_t count = 0;
    for (struct node *at = first; at; at = ONODE_REF_GET(start, at->next)) CHECK(at->value == count++);
    CHECK(count == 50);
    CHECK(onode_root(heap, "list", sizeof *first, TREE) == NULL && errno == EINVAL);
    CHECK(onode_root(heap, "list", 8, NODE) == NULL && errno == EINVAL);
    CHECK(onode_root(heap, "tree", sizeof *first, NODE) == NULL && errno == ENOENT);
    CHECK(onode_unlink(heap, "/nodes") == 0);
    /* Its memory is free by now. */
    CHECK(onode_mkdir(heap, "/one", 0755) == 0 && onode_mkdir(heap, "/two", 0755) == 0);
    CHECK(onode_root(heap, "list", sizeof *first, NODE) == NULL && errno == ESTALE);
    CHECK(onode_remove_root(heap, "list") == 0 && onode_remove_root(heap, "list") == -1 && errno == ENOENT);

    struct onode_saved saved;
    CHECK(onode_list_checkpoints(heap, "trees", 0, &saved) == 1 && !strcmp(saved.name, "thousand"));
    CHECK(onode_list_checkpoints(heap, "trees", 1, &saved) == 1 && !strcmp(saved.name, "one more"));
    CHECK(onode_list_checkpoints(heap, "trees", 2, &saved) == 0);
    CHECK(onode_list_checkpoints(heap, "rocks", 0, &saved) == -1 && errno == ENOENT);

    const char *names[] = {"thousand", "one more"};
    for (int i = 0; i < 2; i++) {
        onode_arena *arena = onode_restore_arena(heap, "trees", names[i]);
        CHECK(arena);
        struct tree *tree = onode_arena_root(arena, sizeof *tree, TREE);
        uint64_t last = 0;
        CHECK(tree && walk(tree, &last) == 1000u + i && last == (i ? 2000 : 1008));
        CHECK(onode_restore_arena(heap, "trees", "thousand") == NULL && errno == EBUSY);
        if (i) CHECK(onode_remove_checkpoint(arena, "thousand") == 0);
        CHECK(onode_close_arena(arena) == 0);
    }
    CHECK(onode_restore_arena(heap, "trees", "thousand") == NULL && errno == ENOENT);
    CHECK(onode_remove_arena(heap, "trees") == 0);
    CHECK(onode_restore_arena(heap, "trees", "one more") == NULL && errno == ENOENT);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    onode_heap *heap = onode_open_heap(arguments[1]);
    CHECK(heap);
    if (!strcmp(arguments[2], "make")) make(heap);
    if (!strcmp(arguments[2], "look")) look(heap);
    CHECK(onode_close_heap(heap) == 0);
    return 0;
}
