/* What a call that fails leaves: everything is as it was, and may be tried again. And what has no
 * reason to fail. */
#include "check.h"

#include <errno.h>
#include <string.h>

static onode_heap *opened(const char *spec) {
    return strncmp(spec, "scm", 3) == 0 ? onode_open_heap(spec) : onode_open_volume(spec, O_RDWR | O_CREAT);
}

static int closed(const char *spec, onode_heap *handle) {
    return strncmp(spec, "scm", 3) == 0 ? onode_close_heap(handle) : onode_close_volume(handle);
}

static void truncates(const char *spec) {
    struct onode_stat stat;
    onode_heap *heap = opened(spec);
    CHECK(heap);
    int file = onode_creat(heap, "/a", 0644);
    CHECK(file >= 0 && onode_write(heap, file, "precious", 8) == 8 && onode_truncate(heap, file, 7) == 0);
    CHECK(onode_close(heap, file) == 0);
    file = onode_open(heap, "/a", O_RDONLY, 0);
    CHECK(onode_truncate(heap, file, 0) == -1 && errno == EBADF);
    CHECK(onode_stat_path(heap, "/a", &stat) == 0 && stat.size == 7);
    CHECK(closed(spec, heap) == 0);
}

static void directories(const char *spec) {
    struct onode_stat stat;
    onode_heap *heap = opened(spec);
    CHECK(heap);
    CHECK(onode_mkdir(heap, "/d", 0755) == 0 && onode_mkdir(heap, "/d/e", 0755) == 0);
    CHECK(onode_rmdir(heap, "/d") == -1 && errno == ENOTEMPTY);
    CHECK(onode_unlink(heap, "/d/e") == -1 && errno == EISDIR);
    CHECK(onode_rmdir(heap, "/d/e") == 0 && onode_rmdir(heap, "/d") == 0);
    CHECK(onode_stat_path(heap, "/d", &stat) == -1 && errno == ENOENT);
    CHECK(onode_rmdir(heap, "/d") == -1 && errno == ENOENT);
    CHECK(onode_close(heap, onode_creat(heap, "/file", 0644)) == 0);
    CHECK(onode_rmdir(heap, "/file") == -1 && errno == ENOTDIR);
    CHECK(closed(spec, heap) == 0);
}

static void closes(const char *spec) {
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    onode_slots *slots = onode_open_slots(heap, "table");
    int file = onode_creat(heap, "/open", 0644);
    CHECK(slots && file >= 0 && onode_use(heap) == 0);
    CHECK(onode_close_heap(heap) == -1 && errno == EBUSY);
    /* It is open as before, descriptors and all. */
    CHECK(onode_write(heap, file, "kept", 4) == 4);
    CHECK(onode_map(heap, "/open", NULL));
    void *block = onode_alloc(heap, 100);
    CHECK(block && mm_to_file(block, "/block", O_RDWR) >= 0);
    CHECK(onode_close_slots(slots) == 0);
    onode_heap *transaction = onode_tx_begin(heap);
    CHECK(transaction && onode_close_heap(heap) == -1 && errno == EBUSY);
    CHECK(onode_tx_abort(transaction) == 0);
    CHECK(onode_close_heap(heap) == 0);
}

static void commits(const char *spec) {
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    onode_arena *arena = onode_create_arena(heap, "work", 1 << 20);
    CHECK(arena);
    char *letter = onode_arena_alloc(arena, 100);
    CHECK(letter && onode_arena_set_root(arena, letter, 100, 1) == 0);
    *letter = 'A';
    CHECK(onode_arena_freeze(arena) == 0);
    *letter = 'B';
    CHECK(onode_arena_commit(arena, "a/b", NULL) == -1 && errno == EINVAL);
    CHECK(onode_arena_commit(arena, "good", NULL) == 0);
    CHECK(onode_arena_commit(arena, "good", NULL) == -1 && errno == EINVAL);
    CHECK(onode_close_arena(arena) == 0);
    arena = onode_restore_arena(heap, "work", "good");
    CHECK(arena && *(char *)onode_arena_root(arena, 100, 1) == 'A');
    CHECK(onode_close_arena(arena) == 0 && onode_close_heap(heap) == 0);
}

static void becomes_memory(onode_heap *heap, int file, const char *content) {
    CHECK(file >= 0);
    void *memory = onode_file_to_mm(heap, file, ONODE_KEEP);
    CHECK(memory && memcmp(memory, content, strlen(content)) == 0 && onode_unmap(heap, memory) == 0);
    memory = onode_file_to_mm(heap, file, ONODE_DROP);
    CHECK(memory && memcmp(memory, content, strlen(content)) == 0 && onode_free(heap, memory) == 0);
}

static int written(onode_heap *heap, const char *path, const char *content) {
    int file = onode_open(heap, path, O_RDWR | O_CREAT, 0644);
    CHECK(file >= 0 && onode_write(heap, file, content, strlen(content)) == (ssize_t)strlen(content));
    return file;
}

static void renamed(const char *spec) {
    struct onode_stat stat;
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    CHECK(onode_close(heap, written(heap, "/target", "abc")) == 0);
    int file = written(heap, "/new", "abcd");
    CHECK(onode_mkdir(heap, "/folder", 0755) == 0 && onode_rename(heap, "/new", "/folder/config") == 0);
    /* What has the name now is another file, and stays. */
    CHECK(onode_close(heap, written(heap, "/new", "other")) == 0);
    becomes_memory(heap, file, "abcd");
    CHECK(onode_stat_path(heap, "/folder/config", &stat) == -1 && errno == ENOENT);
    CHECK(onode_stat_path(heap, "/new", &stat) == 0 && stat.size == 5);
    file = written(heap, "/gone", "bytes");
    CHECK(onode_unlink(heap, "/gone") == 0);
    CHECK(!onode_file_to_mm(heap, file, ONODE_DROP) && errno == ENOENT);
    CHECK(onode_close(heap, file) == 0);
    CHECK(onode_close_heap(heap) == 0);
}

static void linked(const char *spec) {
    struct onode_stat stat;
    onode_heap *heap = onode_open_heap(spec);
    CHECK(heap);
    becomes_memory(heap, onode_open(heap, "/link", O_RDWR, 0), "abc");
    CHECK(onode_stat_path(heap, "/target", &stat) == -1 && errno == ENOENT);
    CHECK(onode_close_heap(heap) == 0);
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    static const struct {
        const char *name;
        void (*run)(const char *);
    } steps[] = {{"truncate", truncates}, {"directories", directories}, {"close", closes},
                 {"commit", commits},     {"rename", renamed},          {"link", linked}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strcmp(steps[i].name, arguments[2]) == 0) {
            steps[i].run(arguments[1]);
            return 0;
        }
    }
    return 2;
}
