// coherence STEPS BUSY DIRECTORY [DIRECTORY [SPEC]]: what one writes, the other reads at once.
//
// Every writer and every reader of a file in one directory, or in two that show the same volume, or
// (built with -DLIBRARY) beside a library that has the memory SPEC open. A pair takes turns: the
// writer fills a page with the number of the step, the reader must find nothing else in it. With
// BUSY, so many threads read the whole file through the kernel's cache meanwhile.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef LIBRARY
#include "onode.h"
static onode_heap *heap;
#endif

#define PAGE 4096
#define PAGES 64
#define BYTES (PAGE * PAGES)

static const char *directories[2];
static char name[64];
static char *page, *seen;
static int pipes[2];
static aio_context_t aio;

static void die(const char *what) {
    fprintf(stderr, "coherence: %s: %s\n", what, strerror(errno));
    exit(2);
}

// One side of a pair. `side` says in which directory.
struct end {
    const char *name;
    int (*transfer)(struct end *, off_t);
    int flags, side;
    int fd, other;
    char *map;
};

static void path_of(char *path, int side, const char *suffix) {
    snprintf(path, 512, "%s/%s%s", directories[side], name, suffix);
}

static int open_file(int side, int flags, const char *suffix) {
    char path[512];
    path_of(path, side, suffix);
    int fd = open(path, flags | O_CLOEXEC, 0644);
    if (fd < 0) die(path);
    return fd;
}

// Writers.

static int by_write(struct end *e, off_t at) { return pwrite(e->fd, page, PAGE, at) == PAGE; }

static int submit(struct end *e, off_t at, int code, void *buffer) {
    struct iocb one = {.aio_fildes = e->fd, .aio_lio_opcode = code, .aio_buf = (uintptr_t)buffer, .aio_nbytes = PAGE, .aio_offset = at};
    struct iocb *list[] = {&one};
    struct io_event event;
    if (syscall(SYS_io_submit, aio, 1, list) != 1) return 0;
    return syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) == 1 && event.res == PAGE;
}
static int by_aio(struct end *e, off_t at) { return submit(e, at, IOCB_CMD_PWRITE, page); }

static struct {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *results;
} ring = {.fd = -1};

static void open_ring(void) {
    struct io_uring_params p = {0};
    ring.fd = syscall(SYS_io_uring_setup, 4, &p);
    if (ring.fd < 0) return;
    size_t bytes = p.sq_off.array + p.sq_entries * 4, results = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *sq = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    char *cq = mmap(0, results, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(0, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || ring.entries == MAP_FAILED) die("io_uring");
    ring.sq_tail = (unsigned *)(sq + p.sq_off.tail);
    ring.sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(sq + p.sq_off.array);
    ring.cq_head = (unsigned *)(cq + p.cq_off.head);
    ring.cq_tail = (unsigned *)(cq + p.cq_off.tail);
    ring.cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
    ring.results = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static int by_ring(struct end *e, off_t at) {
    unsigned tail = *ring.sq_tail, place = tail & *ring.sq_mask;
    ring.entries[place] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = e->fd, .addr = (uintptr_t)page, .len = PAGE, .off = at};
    ring.sq_array[place] = place;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return 0;
    unsigned head = *ring.cq_head;
    while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head)
        if (syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return 0;
    int done = ring.results[head & *ring.cq_mask].res;
    __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
    return done == PAGE;
}

// A store is seen in its own directory at once, elsewhere when it is written out.
static int by_store(struct end *e, off_t at) {
    if (!e->map) e->map = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
    if (e->map == MAP_FAILED) die("mmap");
    memcpy(e->map + at, page, PAGE);
    return e->other < 0 || !msync(e->map + at, PAGE, MS_SYNC);
}

static int by_splice(struct end *e, off_t at) {
    if (write(pipes[1], page, PAGE) != PAGE) return 0;
    for (size_t left = PAGE; left;) {
        ssize_t done = splice(pipes[0], NULL, e->fd, &at, left, 0);
        if (done <= 0) return 0;
        left -= done;
    }
    return 1;
}

static int by_copy(struct end *e, off_t at) {
    if (e->other < 0) e->other = open_file(e->side, O_RDWR | O_CREAT, ".source");
    if (pwrite(e->other, page, PAGE, 0) != PAGE) return 0;
    off_t from = 0;
    return copy_file_range(e->other, &from, e->fd, &at, PAGE, 0) == PAGE;
}

// Readers.

static int to_read(struct end *e, off_t at) { return pread(e->fd, seen, PAGE, at) == PAGE; }
static int to_aio(struct end *e, off_t at) { return submit(e, at, IOCB_CMD_PREAD, seen); }

static int to_open(struct end *e, off_t at) {
    int fd = open_file(e->side, e->flags, "");
    int done = pread(fd, seen, PAGE, at) == PAGE;
    close(fd);
    return done;
}

static int to_load(struct end *e, off_t at) {
    if (!e->map) e->map = mmap(0, BYTES, PROT_READ, MAP_SHARED, e->fd, 0);
    if (e->map == MAP_FAILED) die("mmap");
    memcpy(seen, e->map + at, PAGE);
    return 1;
}

static int to_map(struct end *e, off_t at) {
    int done = to_load(e, at);
    munmap(e->map, BYTES);
    e->map = NULL;
    return done;
}

static int drain(void) {
    for (size_t got = 0; got < PAGE;) {
        ssize_t done = read(pipes[0], seen + got, PAGE - got);
        if (done <= 0) return 0;
        got += done;
    }
    return 1;
}

static int to_sendfile(struct end *e, off_t at) { return sendfile(pipes[1], e->fd, &at, PAGE) == PAGE && drain(); }

static int to_splice(struct end *e, off_t at) {
    int fd = open_file(e->side, e->flags, "");
    int done = splice(fd, &at, pipes[1], NULL, PAGE, 0) == PAGE && drain();
    close(fd);
    return done;
}

#ifdef LIBRARY
static int by_library(struct end *e, off_t at) { return onode_pwrite(heap, e->fd, page, PAGE, at) == PAGE; }
static int to_library(struct end *e, off_t at) { return onode_pread(heap, e->fd, seen, PAGE, at) == PAGE; }
static int by_pointer(struct end *e, off_t at) {
    memcpy(e->map + at, page, PAGE);
    return 1;
}
#endif

#define IN_LIBRARY -1
static struct end writers[] = {
    {"write", by_write, O_RDWR, 0, 0, 0, 0},
    {"O_DIRECT write", by_write, O_RDWR | O_DIRECT, 0, 0, 0, 0},
    {"AIO write", by_aio, O_RDWR | O_DIRECT, 0, 0, 0, 0},
    {"io_uring write", by_ring, O_RDWR | O_DIRECT, 0, 0, 0, 0},
    {"store", by_store, O_RDWR, 0, 0, 0, 0},
    {"splice", by_splice, O_RDWR, 0, 0, 0, 0},
    {"copy_file_range", by_copy, O_RDWR, 0, 0, 0, 0},
#ifdef LIBRARY
    {"library write", by_library, 0, IN_LIBRARY, 0, 0, 0},
    {"library store", by_pointer, 0, IN_LIBRARY, 0, 0, 0},
#endif
};
static struct end readers[] = {
    {"read", to_read, O_RDONLY, 0, 0, 0, 0},
    {"O_DIRECT read", to_read, O_RDONLY | O_DIRECT, 0, 0, 0, 0},
    {"AIO read", to_aio, O_RDONLY | O_DIRECT, 0, 0, 0, 0},
    {"open, read", to_open, O_RDONLY, 0, 0, 0, 0},
    {"load", to_load, O_RDONLY, 0, 0, 0, 0},
    {"mmap, load", to_map, O_RDONLY, 0, 0, 0, 0},
    {"sendfile", to_sendfile, O_RDONLY, 0, 0, 0, 0},
    {"open, splice", to_splice, O_RDONLY, 0, 0, 0, 0},
#ifdef LIBRARY
    {"library read", to_library, 0, IN_LIBRARY, 0, 0, 0},
#endif
};

static void begin(struct end *e, int is_alone) {
    e->map = NULL;
    e->fd = -1;
    // Whoever writes through a mapping must write it out for others.
    e->other = is_alone || e->transfer != by_store ? -1 : 0;
#ifdef LIBRARY
    if (e->side == IN_LIBRARY) {
        char path[512];
        snprintf(path, sizeof path, "/%s", name);
        if (e->transfer == by_pointer) {
            e->map = onode_map(heap, path, NULL);
            if (!e->map) die(onode_error());
        } else {
            e->fd = onode_open(heap, path, O_RDWR, 0);
            if (e->fd < 0) die(onode_error());
        }
        return;
    }
#endif
    e->fd = open_file(e->side, e->flags, "");
}

static void end(struct end *e) {
#ifdef LIBRARY
    if (e->side == IN_LIBRARY) {
        if (e->map) onode_unmap(heap, e->map);
        else onode_close(heap, e->fd);
        return;
    }
#endif
    if (e->map) munmap(e->map, BYTES);
    if (e->other > 0) close(e->other);
    close(e->fd);
}

static volatile int stop;
static void *busy(void *directory) {
    char *buffer = malloc(BYTES);
    int fd = open_file((intptr_t)directory, O_RDONLY, "");
    while (!stop) {
        for (off_t at = 0; at < BYTES; at += 16 * PAGE)
            if (pread(fd, buffer, 16 * PAGE, at) < 0) break;
    }
    close(fd);
    free(buffer);
    return NULL;
}

// What the page table says of a place in memory; 0 if no page is there.
static uint64_t entry_of(const char *place) {
    uint64_t entry = 0;
    int table = open("/proc/self/pagemap", O_RDONLY);
    if (pread(table, &entry, 8, (uintptr_t)place / PAGE * 8) != 8) die("pagemap");
    close(table);
    return entry;
}

// Whether a load shows a page although the kernel mapped none before and maps none after it: what
// the kernel took away, the processor still has. A flush of its TLB was lost below the kernel,
// which virtual machines do now and then; another processor faults and sees the new page. The
// mapping then goes to addresses that no processor knows.
static long lost_flushes;
static int was_flush_lost(struct end *r, off_t at) {
    if (r->transfer != to_load) return 0;
    uint64_t before = entry_of(r->map + at);
    memcpy(seen, r->map + at, PAGE);
    if (before || entry_of(r->map + at) || !memcmp(page, seen, PAGE)) return 0;
    r->map = mmap(0, BYTES, PROT_READ, MAP_SHARED, r->fd, 0);
    if (r->map == MAP_FAILED) die("mmap");
    if (!r->transfer(r, at)) die(r->name);
    lost_flushes++;
    return !memcmp(page, seen, PAGE);
}

static long pair(struct end *w, struct end *r, long steps, int threads) {
    snprintf(name, sizeof name, "file%d", (int)(random() & 0xffffff));
    int made = open_file(w->side < 0 ? 0 : w->side, O_RDWR | O_CREAT, "");
    char *zeros = calloc(1, BYTES);
    if (pwrite(made, zeros, BYTES, 0) != BYTES) die("first content");
    free(zeros);
    close(made);
    int is_alone = w->side == r->side;
    begin(w, is_alone);
    begin(r, is_alone);
    pthread_t thread[8];
    stop = 0;
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, busy, (void *)(intptr_t)(r->side < 0 ? 0 : r->side));
    long stale = 0;
    for (uint64_t step = 1; step <= (uint64_t)steps; step++) {
        off_t at = random() % PAGES * PAGE;
        for (int i = 0; i < PAGE / 8; i++) ((uint64_t *)page)[i] = step;
        memset(seen, 0xff, PAGE);
        if (!w->transfer(w, at)) die(w->name);
        if (!r->transfer(r, at)) die(r->name);
        int old = memcmp(page, seen, PAGE) && !was_flush_lost(r, at);
        if (old && !stale)
            printf("%s in %d, %s in %d: step %lu reads %lu\n", w->name, w->side, r->name, r->side, step, *(uint64_t *)seen);
        stale += !!old;
    }
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    end(w);
    end(r);
    char path[512];
    path_of(path, 0, "");
    unlink(path);
    path_of(path, w->side < 0 ? 0 : w->side, ".source");
    unlink(path);
    return stale;
}

// A mapping is a copy that the kernel has: of what is done elsewhere it shows what was there when
// it was made.
static int is_promised(struct end *w, struct end *r) {
    if (w->side == r->side) return 1;
    return r->transfer != to_load && r->transfer != to_sendfile;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    long steps = atol(words[1]), pairs = 0, stale = 0, skipped = 0;
    int threads = atoi(words[2]), sides = count > 4 ? 2 : 1;
    const char *which = getenv("PAIRS");
    int only_library = which && !strcmp(which, "library");
    directories[0] = words[3];
    directories[1] = words[count > 4 ? 4 : 3];
    if (posix_memalign((void **)&page, PAGE, PAGE) || posix_memalign((void **)&seen, PAGE, PAGE) || pipe2(pipes, O_CLOEXEC)) die("memory");
    if (syscall(SYS_io_setup, 4, &aio)) die("io_setup");
    open_ring();
#ifdef LIBRARY
    heap = onode_open_heap(words[5]);
    if (!heap) die(onode_error());
#endif
    for (size_t w = 0; w < sizeof writers / sizeof *writers; w++) {
        for (size_t r = 0; r < sizeof readers / sizeof *readers; r++) {
            for (int way = 0; way < sides; way++) {
                // Alone in the first directory; from the second to the first.
                struct end writer = writers[w], reader = readers[r];
                int is_library = writer.side == IN_LIBRARY || reader.side == IN_LIBRARY;
                if (is_library ? way : only_library) continue;
                if (writer.side != IN_LIBRARY) writer.side = way;
                if (!is_promised(&writer, &reader) || (writer.transfer == by_ring && ring.fd < 0)) {
                    skipped++;
                    continue;
                }
                stale += pair(&writer, &reader, steps, threads);
                pairs++;
            }
        }
    }
#ifdef LIBRARY
    onode_close_heap(heap);
#endif
    printf("%ld pairs, %ld steps each, %ld stale; %ld pairs left out%s", pairs, steps, stale, skipped,
           ring.fd < 0 ? " (no io_uring)" : "");
    if (lost_flushes) printf("; %ld loads were of pages that no table maps: this machine lost flushes of a TLB\n", lost_flushes);
    else printf("\n");
    return stale != 0;
}
