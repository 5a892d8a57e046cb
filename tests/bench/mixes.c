/* Mixes of work on files, after the personalities of filebench: mixes DIR NAME SECONDS [PROGRAMS].
 *
 * varmail     each of 16 threads takes a mail away, delivers one with fsync, reads one and appends
 *             to it with fsync, and reads another one; 1000 mails of 16 KiB in one directory
 * fileserver  makes a file of 128 KiB, appends 16 KiB to another one, reads a whole one, removes
 *             one and looks at one; 2000 files in directories of 20
 * webserver   reads ten whole files of 16 KiB and appends 16 KiB to a log; 1000 files
 *
 * Prints operations a second: each open with what is done to the file, removal and look is one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4000, KIB = 1024, WIDTH = 20 };

struct mix {
    const char *name;
    int files, bytes, is_wide;
    void (*turn)(uint64_t *seed);
};

static const struct mix *mix;
static atomic_int taken[MOST], exists[MOST];
static atomic_ulong operations;
static atomic_int is_over;
static char buffer[MOST * 64];
static int log_file;

static void fail(const char *what) {
    fprintf(stderr, "mixes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t draw(uint64_t *seed) {
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

static void path_of(int file, char *path) {
    if (mix->is_wide)
        sprintf(path, "d%d/f%d", file / WIDTH, file);
    else
        sprintf(path, "f%d", file);
}

/* A file that is there, or is not, for this thread alone; none if the time is over. */
static int take(uint64_t *seed, int is_there) {
    while (!is_over) {
        int file = draw(seed) % (2 * mix->files), no = 0;
        if (!atomic_compare_exchange_strong(&taken[file], &no, 1)) continue;
        if (exists[file] == is_there) return file;
        taken[file] = 0;
    }
    return -1;
}

static void done(int file) {
    taken[file] = 0;
    operations++;
}

static void put(int descriptor, int bytes) {
    if (write(descriptor, buffer, bytes) != bytes) fail("write");
}

static void make(uint64_t *seed, int bytes, int syncs) {
    char path[64];
    int file = take(seed, 0);
    if (file < 0) return;
    path_of(file, path);
    int descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (descriptor < 0) fail(path);
    put(descriptor, bytes);
    if (syncs && fsync(descriptor)) fail("fsync");
    if (close(descriptor)) fail("close");
    exists[file] = 1;
    done(file);
}

/* Reads a whole file and appends to it, as far as that is wanted. */
static void use(uint64_t *seed, int reads, int appends, int syncs) {
    static __thread char into[256 * KIB];
    char path[64];
    int file = take(seed, 1);
    if (file < 0) return;
    path_of(file, path);
    int descriptor = open(path, appends ? O_RDWR | O_APPEND : O_RDONLY);
    if (descriptor < 0) fail(path);
    while (reads) {
        ssize_t length = read(descriptor, into, sizeof into);
        if (length < 0) fail("read");
        if (length == 0) break;
    }
    if (appends) put(descriptor, appends);
    if (syncs && fsync(descriptor)) fail("fsync");
    if (close(descriptor)) fail("close");
    done(file);
}

static void drop(uint64_t *seed) {
    char path[64];
    int file = take(seed, 1);
    if (file < 0) return;
    path_of(file, path);
    if (unlink(path)) fail(path);
    exists[file] = 0;
    done(file);
}

static void look(uint64_t *seed) {
    char path[64];
    struct stat found;
    int file = take(seed, 1);
    if (file < 0) return;
    path_of(file, path);
    if (stat(path, &found)) fail(path);
    done(file);
}

static void varmail(uint64_t *seed) {
    drop(seed);
    make(seed, 16 * KIB, 1);
    use(seed, 1, 16 * KIB, 1);
    use(seed, 1, 0, 0);
}

static void fileserver(uint64_t *seed) {
    make(seed, 128 * KIB, 0);
    use(seed, 0, 16 * KIB, 0);
    use(seed, 1, 0, 0);
    drop(seed);
    look(seed);
}

static void webserver(uint64_t *seed) {
    for (int n = 0; n < 10; n++) use(seed, 1, 0, 0);
    put(log_file, 16 * KIB);
    operations++;
}

static const struct mix mixes[] = {
    {"varmail", 1000, 16 * KIB, 0, varmail},
    {"fileserver", 2000, 128 * KIB, 1, fileserver},
    {"webserver", 1000, 16 * KIB, 0, webserver},
};

static void *work(void *number) {
    uint64_t seed = 88172645463325252u + 7919 * (uint64_t)(intptr_t)number;
    while (!is_over) mix->turn(&seed);
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    if (count < 4 || chdir(arguments[1])) fail("usage: mixes DIR varmail|fileserver|webserver SECONDS [THREADS]");
    for (unsigned n = 0; n < sizeof mixes / sizeof *mixes; n++)
        if (!strcmp(mixes[n].name, arguments[2])) mix = &mixes[n];
    if (!mix) fail(arguments[2]);
    int threads = count > 4 ? atoi(arguments[4]) : 16;
    uint64_t seed = 1;
    for (unsigned n = 0; n < sizeof buffer; n++) buffer[n] = draw(&seed);
    char path[64];
    for (int n = 0; mix->is_wide && n < 2 * mix->files / WIDTH; n++) {
        sprintf(path, "d%d", n);
        if (mkdir(path, 0755)) fail(path);
    }
    for (int n = 0; n < mix->files; n++) make(&seed, mix->bytes, 0);
    log_file = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (log_file < 0) fail("log");
    sync();
    operations = 0;
    pthread_t all[256];
    double begin = now();
    for (intptr_t n = 0; n < threads; n++)
        if (pthread_create(&all[n], 0, work, (void *)n)) fail("thread");
    while (now() - begin < atof(arguments[3])) usleep(10000);
    is_over = 1;
    for (int n = 0; n < threads; n++) pthread_join(all[n], 0);
    printf("%.0f\n", operations / (now() - begin));
    return 0;
}
