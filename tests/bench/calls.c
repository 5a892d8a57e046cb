/* Microseconds of single calls in one directory: calls DIRECTORY CALL ROUNDS prints the median over
 * ten parts of ROUNDS calls.
 *
 * What a call needs is made before, and what it made is removed after the time is taken. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PARTS = 10 };
static char page[4096];

static void need(int ok, const char *what) {
    if (!ok) { fprintf(stderr, "%s: %s\n", what, strerror(errno)); exit(1); }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static char *name(const char *prefix, int n) {
    static char names[2][64];
    static int turn;
    turn = !turn;
    snprintf(names[turn], sizeof names[turn], "%s%d", prefix, n);
    return names[turn];
}

static void make(const char *path, int with_page) {
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    need(fd >= 0, path);
    if (with_page) need(write(fd, page, sizeof page) == sizeof page, "write");
    need(close(fd) == 0, "close");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    if (count != 4) { fprintf(stderr, "calls DIRECTORY CALL ROUNDS\n"); return 2; }
    const char *call = words[2];
    int rounds = atoi(words[3]) / PARTS, fd = -1;
    struct stat found;
    need(rounds > 0, "rounds");
    need(chdir(words[1]) == 0, words[1]);
    int creates = !strcmp(call, "create") || !strcmp(call, "create4k");
    int renames = !strcmp(call, "rename"), unlinks = !strcmp(call, "unlink"), writes = !strcmp(call, "write4k");
    int opens = !strcmp(call, "open"), stats = !strcmp(call, "stat"), chmods = !strcmp(call, "chmod");
    if (!creates && !renames && !unlinks && !writes && !opens && !stats && !chmods) {
        fprintf(stderr, "there is no call %s\n", call);
        return 2;
    }
    double parts[PARTS];
    if (renames) make("r0", 0);
    if (opens || stats || writes || chmods) make("one", 1);
    if (writes) need((fd = open("one", O_RDWR)) >= 0, "open");
    for (int part = 0; part < PARTS; part++) {
        int first = part * rounds, end = first + rounds;
        if (unlinks) for (int n = first; n < end; n++) make(name("u", n), 0);
        double begin = now();
        for (int n = first; n < end; n++) {
            if (creates) make(name("c", n), call[6] != 0);
            else if (renames) need(rename(name("r", n), name("r", n + 1)) == 0, "rename");
            else if (unlinks) need(unlink(name("u", n)) == 0, "unlink");
            else if (writes) need(pwrite(fd, page, sizeof page, (off_t)(n % 256) * 4096) == 4096, "write");
            else if (chmods) need(chmod("one", n & 1 ? 0600 : 0644) == 0, "chmod");
            else if (stats) need(stat("one", &found) == 0, "stat");
            else { int one = open("one", O_RDONLY); need(one >= 0 && close(one) == 0, "open"); }
        }
        parts[part] = (now() - begin) / rounds;
        if (creates) for (int n = first; n < end; n++) need(unlink(name("c", n)) == 0, "unlink");
    }
    if (renames) need(unlink(name("r", rounds * PARTS)) == 0, "unlink");
    if (opens || stats || writes || chmods) need(unlink("one") == 0, "unlink");
    qsort(parts, PARTS, sizeof *parts, by_size);
    printf("%.1f\n", (parts[PARTS / 2 - 1] + parts[PARTS / 2]) / 2);
    return 0;
}
