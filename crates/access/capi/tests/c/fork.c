/* A handle belongs to the process that opened it. In a child that inherited it every call is
 * refused, and closing it touches neither the medium nor the lock of the parent. */
#define _GNU_SOURCE

#include "check.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 200000, BLOCKS = 20 };

static char content[BYTES];

static void put(onode_heap *handle, int number) {
    char path[16];
    snprintf(path, sizeof path, "/p%d", number);
    int file = onode_creat(handle, path, 0644);
    CHECK(file >= 0 && onode_write(handle, file, content, BYTES) == BYTES);
    CHECK(onode_fsync(handle, file) == 0 && onode_close(handle, file) == 0);
}

static void has(onode_heap *handle, int count) {
    static char found[BYTES];
    for (int i = 0; i < count; i++) {
        char path[16];
        snprintf(path, sizeof path, "/p%d", i);
        int file = onode_open(handle, path, O_RDONLY, 0);
        CHECK(file >= 0 && onode_read(handle, file, found, BYTES) == BYTES);
        CHECK(memcmp(found, content, BYTES) == 0 && onode_close(handle, file) == 0);
    }
}

/* Ends in a child, which tells whether it went well. */
static void well(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void volume(const char *spec) {
    struct onode_stat stat;
    onode_heap *handle = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(handle);
    put(handle, 0);
    int file = onode_open(handle, "/p0", O_RDONLY, 0);
    CHECK(file >= 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(onode_open(handle, "/p0", O_RDONLY, 0) == -1 && errno == EPERM);
        CHECK(strstr(onode_error(), "process"));
        CHECK(onode_read(handle, file, content, 1) == -1 && errno == EPERM);
        CHECK(onode_close(handle, file) == -1 && errno == EPERM);
        CHECK(onode_stat_path(handle, "/p0", &stat) == -1 && errno == EPERM);
        CHECK(onode_sync(handle) == -1 && errno == EPERM);
        CHECK(onode_tick(handle) == -1 && errno == EPERM);
        CHECK(!onode_tx_begin(handle) && errno == EPERM);
        CHECK(!onode_open_volume(spec, O_RDWR) && errno == EBUSY);
        CHECK(onode_close_volume(handle) == 0);
        CHECK(!onode_open_volume(spec, O_RDWR) && errno == EBUSY);
        exit(0);
    }
    well(child);
    for (int i = 1; i < 12; i++) {
        put(handle, i);
    }
    CHECK(onode_close(handle, file) == 0 && onode_close_volume(handle) == 0);
    child = fork();
    if (child == 0) {
        /* One that it opens itself is its own. */
        handle = onode_open_volume(spec, O_RDWR);
        CHECK(handle);
        has(handle, 12);
        CHECK(onode_close_volume(handle) == 0);
        exit(0);
    }
    well(child);
    handle = onode_open_volume(spec, O_RDWR);
    CHECK(handle);
    has(handle, 12);
    CHECK(onode_close_volume(handle) == 0);
}

/* Blocks that this thread has ready, so that a child inherits some, too. */
static void get_ready(onode_heap *heap) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        CHECK((blocks[i] = onode_alloc(heap, 4000)));
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(onode_free(heap, blocks[i]) == 0);
    }
}

static void heap_of_parent(const char *spec) {
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap && onode_use(heap) == 0);
    get_ready(heap);
    char *block = onode_alloc(heap, 4000);
    onode_slots *slots = onode_open_slots(heap, "table");
    onode_arena *arena = onode_create_arena(heap, "work", 1 << 20);
    onode_heap *transaction = onode_tx_begin(heap);
    CHECK(block && slots && arena && transaction);
    pid_t child = fork();
    if (child == 0) {
        CHECK(!onode_alloc(heap, 100) && errno == EPERM);
        CHECK(onode_free(heap, block) == -1 && errno == EPERM);
        CHECK(mm_to_file(block, "/stolen", O_RDWR) == -1 && errno == EPERM);
        CHECK(onode_creat(heap, "/child", 0644) == -1 && errno == EPERM);
        CHECK(onode_fill_slot(slots, 1, block, 0) == -1 && errno == EPERM);
        CHECK(!onode_arena_alloc(arena, 100) && errno == EPERM);
        CHECK(onode_checkpoint(arena, "saved", NULL) == -1 && errno == EPERM);
        CHECK(onode_creat(transaction, "/child", 0644) == -1 && errno == EPERM);
        CHECK(onode_tx_commit(transaction) == -1 && errno == EPERM);
        CHECK(onode_close_slots(slots) == 0 && onode_close_arena(arena) == 0);
        CHECK(onode_close_heap(heap) == 0);
        exit(0);
    }
    well(child);
    CHECK(onode_tx_abort(transaction) == 0);
    child = fork();
    if (child == 0) {
        /* Its own one shares the memory with the parent. */
        heap = onode_open_heap(spec);
        CHECK(heap);
        char *own = onode_alloc(heap, 4000);
        CHECK(own && onode_mm_to_file(heap, memset(own, 'C', 4000), 4000, "/child", O_RDWR) >= 0);
        CHECK(onode_close_heap(heap) == 0);
        exit(0);
    }
    well(child);
    child = fork();
    if (child == 0) {
        /* The end of a child gives nothing back that is the parent's. */
        exit(0);
    }
    well(child);
    for (int i = 0; i < BLOCKS; i++) {
        char path[16];
        snprintf(path, sizeof path, "/b%d", i);
        char *made = onode_alloc(heap, 4000);
        CHECK(made && onode_mm_to_file(heap, memset(made, 'P', 4000), 4000, path, O_RDWR) >= 0);
    }
    onode_heap *other = onode_open_heap(spec);
    CHECK(other);
    get_ready(other);
    for (int i = 0; i < 4 * BLOCKS; i++) {
        char *made = onode_alloc(other, 4000);
        CHECK(made && memset(made, 'X', 4000));
    }
    for (int i = 0; i <= BLOCKS; i++) {
        char path[16], found[4000];
        snprintf(path, sizeof path, i == BLOCKS ? "/child" : "/b%d", i);
        int file = onode_open(heap, path, O_RDONLY, 0);
        CHECK(file >= 0 && onode_read(heap, file, found, 4000) == 4000);
        for (int k = 0; k < 4000; k++) {
            CHECK(found[k] == (i == BLOCKS ? 'C' : 'P'));
        }
    }
    CHECK(onode_close_heap(other) == 0);
    CHECK(onode_free(heap, block) == 0);
    CHECK(onode_close_slots(slots) == 0 && onode_close_arena(arena) == 0 && onode_close_heap(heap) == 0);
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    memset(content, 'p', BYTES);
    if (strcmp(arguments[2], "heap") == 0) {
        heap_of_parent(arguments[1]);
    } else {
        volume(arguments[1]);
    }
    return 0;
}
