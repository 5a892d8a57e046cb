/* Several threads or processes that do the same at once: nobody loses what was acknowledged, and
 * nobody is refused for what another one does. */
#define _GNU_SOURCE

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, RECORDS = 60, RECORD = 30000, NAMES = 300, RENAMES = 3000, REFUSED = 7 };

static const char *spec;
static onode_heap *heap;
static pthread_barrier_t *start;
static volatile int is_over;

static onode_heap *opened(void) {
    return strncmp(spec, "scm", 3) == 0 ? onode_open_heap(spec) : onode_open_volume(spec, O_RDWR | O_CREAT);
}

static int closed(onode_heap *handle) {
    return strncmp(spec, "scm", 3) == 0 ? onode_close_heap(handle) : onode_close_volume(handle);
}

static void prepare(void) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    start = mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    pthread_barrier_init(start, &shared, WORKERS);
}

static void *append(void *letter) {
    static __thread char record[RECORD];
    memset(record, (int)(long)letter, RECORD);
    int file = onode_open(heap, "/log", O_WRONLY | O_APPEND, 0);
    CHECK(file >= 0);
    pthread_barrier_wait(start);
    for (int i = 0; i < RECORDS; i++) {
        CHECK(onode_write(heap, file, record, RECORD) == RECORD);
    }
    /* Behind what it wrote itself, wherever that came to lie. */
    int64_t stands = onode_lseek(heap, file, 0, SEEK_CUR);
    CHECK(stands >= (int64_t)RECORDS * RECORD && stands % RECORD == 0);
    CHECK(onode_close(heap, file) == 0);
    return NULL;
}

static void verify_log(void) {
    static char record[RECORD];
    int seen[WORKERS] = {0};
    int file = onode_open(heap, "/log", O_RDONLY, 0);
    CHECK(file >= 0);
    while (onode_read(heap, file, record, RECORD) == RECORD) {
        for (int i = 1; i < RECORD; i++) {
            CHECK(record[i] == record[0]);
        }
        seen[record[0] - 'A']++;
    }
    CHECK(onode_close(heap, file) == 0);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(seen[i] == RECORDS);
    }
    CHECK(onode_unlink(heap, "/log") == 0);
}

static void make_log(void) {
    heap = opened();
    CHECK(heap);
    CHECK(onode_close(heap, onode_creat(heap, "/log", 0644)) == 0);
}

static void in_threads(void *(*work)(void *)) {
    pthread_t threads[WORKERS];
    for (long i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)('A' + i)) == 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* How many of as many processes as there are workers found all well. */
static int in_processes(int (*work)(long)) {
    for (long i = 0; i < WORKERS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            _exit(work(i));
        }
    }
    int well = 0, status;
    while (wait(&status) > 0) {
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == REFUSED));
        well += WEXITSTATUS(status) == 0;
    }
    return well;
}

static int append_alone(long number) {
    heap = opened();
    CHECK(heap);
    append((void *)('A' + number));
    CHECK(closed(heap) == 0);
    return 0;
}

static void *create(void *unused) {
    (void)unused;
    for (int i = 0; i < NAMES; i++) {
        char path[16];
        snprintf(path, sizeof path, "/f%d", i);
        pthread_barrier_wait(start);
        int file = onode_open(heap, path, O_RDWR | O_CREAT, 0644);
        CHECK(file >= 0);
        CHECK(onode_close(heap, file) == 0);
    }
    CHECK(onode_open(heap, "/f0", O_RDWR | O_CREAT | O_EXCL, 0644) == -1 && errno == EEXIST);
    return NULL;
}

static void put(const char *path, int letter) {
    char content[5000];
    memset(content, letter, sizeof content);
    int file = onode_creat(heap, path, 0644);
    CHECK(file >= 0 && onode_write(heap, file, content, sizeof content) == sizeof content);
    CHECK(onode_close(heap, file) == 0);
}

static void *replace(void *letter) {
    char content[5000];
    struct onode_stat stat;
    if ((long)letter == 'A') {
        for (int i = 0; i < RENAMES; i++) {
            put("/new", 'a' + i % 26);
            CHECK(onode_rename(heap, "/new", "/config") == 0);
        }
        is_over = 1;
    }
    while (!is_over) {
        int file = onode_open(heap, "/config", O_RDONLY, 0);
        CHECK(file >= 0);
        CHECK(onode_read(heap, file, content, sizeof content) == sizeof content);
        CHECK(onode_close(heap, file) == 0);
        CHECK(onode_stat_path(heap, "/config", &stat) == 0 && stat.size == sizeof content);
    }
    return NULL;
}

/* A heap is for all that start together; another volume for one of them, and the others hear so. */
static int begin(long number) {
    pthread_barrier_wait(start);
    heap = opened();
    if (!heap) {
        CHECK(strncmp(spec, "scm", 3) != 0 && errno == EBUSY);
        return REFUSED;
    }
    char path[16];
    snprintf(path, sizeof path, "/w%ld", number);
    CHECK(onode_close(heap, onode_creat(heap, path, 0644)) == 0);
    usleep(50000);
    CHECK(closed(heap) == 0);
    return 0;
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    spec = arguments[1];
    prepare();
    if (strcmp(arguments[2], "begin") == 0) {
        int well = in_processes(begin), there = 0;
        CHECK(well == WORKERS || (strncmp(spec, "scm", 3) != 0 && well >= 1));
        heap = opened();
        CHECK(heap);
        for (int i = 0; i < WORKERS; i++) {
            char path[16];
            struct onode_stat stat;
            snprintf(path, sizeof path, "/w%d", i);
            there += onode_stat_path(heap, path, &stat) == 0;
        }
        CHECK(there == well);
        return closed(heap);
    }
    make_log();
    if (strcmp(arguments[2], "append") == 0) {
        in_threads(append);
        verify_log();
        if (strncmp(spec, "scm", 3) == 0) {
            CHECK(closed(heap) == 0);
            make_log();
            CHECK(closed(heap) == 0);
            CHECK(in_processes(append_alone) == WORKERS);
            heap = opened();
            CHECK(heap);
            verify_log();
        }
    } else if (strcmp(arguments[2], "create") == 0) {
        in_threads(create);
    } else {
        put("/config", 'a');
        in_threads(replace);
    }
    return closed(heap);
}
