/* Streams in C: `make` makes a volume with two snapshots, `pipe` carries them to another one
 * through a pipe, `damage` hands in streams that are damaged or cut short, `stops` ends calls in
 * the middle, `descriptors` uses some that are good for nothing, `locked` receives on an encrypted
 * volume, `back` goes back to a snapshot, and `memory` sends a volume that has none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "volumes.h"

#define LARGE (300 << 10)

static const char ONE[] = "0123456789abcdef0123456789abcdef", TWO[] = "ffffffffffffffff0123456789abcdef";

static onode_key bytes(const char *all) {
    return (onode_key){.kind = ONODE_KEY_BYTES, .bytes = all, .length = 32};
}

static void put_large(onode_heap *volume, const char *path, int seed) {
    static unsigned char content[LARGE];
    unsigned value = seed;
    for (size_t i = 0; i < sizeof content; i++) content[i] = (value = value * 1103515245 + 12345) >> 16;
    int file = onode_creat(volume, path, 0644);
    CHECK(file >= 0 && onode_write(volume, file, content, sizeof content) == sizeof content);
    CHECK(onode_close(volume, file) == 0);
}

static void make(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume && onode_mkdir(volume, "/d", 0755) == 0);
    put(volume, "/d/a", "one");
    put(volume, "/gone", "soon");
    put_large(volume, "/large", 1);
    CHECK(onode_take_snapshot(volume, "monday") == 0 && onode_make_clone(volume, "work", "monday") == 0);
    put(volume, "/d/a", "two");
    put(volume, "/d/b", "new");
    put_large(volume, "/large", 2);
    CHECK(onode_unlink(volume, "/gone") == 0 && onode_take_snapshot(volume, "tuesday") == 0);
    put(volume, "/d/a", "three");
    CHECK(onode_close_volume(volume) == 0);
}

static void is_monday(onode_heap *volume) {
    onode_stat stat;
    CHECK(has(volume, "/d/a", "one") && has(volume, "/gone", "soon") && has(volume, "/d/b", NULL));
    CHECK(onode_stat_path(volume, "/large", &stat) == 0 && stat.size == LARGE);
}

static void is_tuesday(onode_heap *volume) {
    CHECK(has(volume, "/d/a", "two") && has(volume, "/gone", NULL) && has(volume, "/d/b", "new"));
}

/* One that sends at the other end of a pipe. */
struct sender {
    onode_heap *volume;
    const char *snapshot, *from;
    int descriptor;
    int64_t sent;
};

static void *sends(void *sender) {
    struct sender *own = sender;
    own->sent = onode_send(own->volume, own->snapshot, own->from, own->descriptor, NULL);
    CHECK(own->sent > 0 && write(own->descriptor, "rest", 4) == 4 && close(own->descriptor) == 0);
    return NULL;
}

struct heard {
    int times, most;
    uint64_t done;
};

static int hear(uint64_t done, uint64_t total, void *context) {
    struct heard *heard = context;
    CHECK(total == 0 && done >= heard->done);
    heard->done = done;
    return heard->times++ >= heard->most;
}

static void carry(struct sender sender, const char *to, const onode_receive_options *options) {
    int ends[2];
    pthread_t thread;
    struct heard heard = {.most = 1 << 30};
    onode_progress progress = {hear, &heard};
    CHECK(pipe(ends) == 0);
    sender.descriptor = ends[1];
    CHECK(pthread_create(&thread, NULL, sends, &sender) == 0);
    int64_t received = onode_receive(to, ends[0], options, &progress);
    CHECK(received > 0);
    /* What follows is left for who reads on. */
    char rest[8] = {0};
    CHECK(read(ends[0], rest, sizeof rest) == 4 && !strcmp(rest, "rest"));
    CHECK(pthread_join(thread, NULL) == 0 && close(ends[0]) == 0);
    CHECK(sender.sent == received && heard.times > 0 && heard.done <= (uint64_t)received);
}

static void pipes(const char *spec, const char *to) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    carry((struct sender){.volume = volume, .snapshot = "monday"}, to, NULL);
    onode_heap *copy = onode_open_volume(to, O_RDONLY);
    CHECK(copy);
    is_monday(copy);
    onode_snapshot snapshot;
    CHECK(onode_list_snapshots(copy, 0, &snapshot) == 1 && !strcmp(snapshot.name, "monday"));
    CHECK(onode_close_volume(copy) == 0);
    /* The other one has changed: that is given up only if it is said. */
    copy = onode_open_volume(to, O_RDWR);
    CHECK(copy);
    put(copy, "/d/a", "changed here");
    CHECK(onode_close_volume(copy) == 0);
    int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0 && onode_send(volume, "tuesday", "monday", file, NULL) > 0 && lseek(file, 0, SEEK_SET) == 0);
    FAILS(onode_receive(to, file, NULL, NULL) == -1, EBUSY, "changed since");
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    onode_receive_options options = {.roll_back = 1, .name = "renamed", .compress = "small"};
    CHECK(onode_receive(to, file, &options, NULL) == lseek(file, 0, SEEK_END));
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    FAILS(onode_receive(to, file, NULL, NULL) == -1, EEXIST, "already");
    copy = onode_open_volume(to, O_RDWR);
    CHECK(copy && onode_list_snapshots(copy, snapshot.number, &snapshot) == 1 && !strcmp(snapshot.name, "renamed"));
    is_tuesday(copy);
    /* A stream of all files is for a volume that is empty; an open one takes none. */
    CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    CHECK(onode_send(volume, "tuesday", NULL, file, NULL) > 0 && lseek(file, 0, SEEK_SET) == 0);
    FAILS(onode_receive(to, file, NULL, NULL) == -1, EBUSY, "");
    CHECK(onode_close_volume(copy) == 0 && lseek(file, 0, SEEK_SET) == 0);
    CHECK(onode_receive(to, file, NULL, NULL) == -1 && errno == EEXIST);
    FAILS(onode_send(volume, "sunday", NULL, file, NULL) == -1, ENOENT, "sunday");
    FAILS(onode_send(volume, "monday", "sunday", file, NULL) == -1, ENOENT, "sunday");
    FAILS(onode_send(volume, "monday", "tuesday", file, NULL) == -1, EINVAL, "");
    FAILS(onode_send(volume, NULL, "monday", file, NULL) == -1, EINVAL, "no other");
    FAILS(onode_send(volume, NULL, NULL, file, NULL) == -1, EINVAL, "open for writing");
    FAILS(onode_send(volume, "\xff", NULL, file, NULL) == -1, EINVAL, "UTF-8");
    FAILS(onode_send(NULL, "monday", NULL, file, NULL) == -1, EINVAL, "NULL");
    CHECK(close(file) == 0 && onode_close_volume(volume) == 0);
}

/* A stream in memory, handed in through a file. */
static int64_t receive(const char *to, const char *stream, size_t length, const onode_receive_options *options) {
    int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0 && write(file, stream, length) == (ssize_t)length && lseek(file, 0, SEEK_SET) == 0);
    int64_t received = onode_receive(to, file, options, NULL);
    int number = errno;
    CHECK(close(file) == 0);
    errno = number;
    return received;
}

static char *stream_of(const char *spec, const char *snapshot, const char *from, int64_t *length) {
    onode_heap *volume = onode_open_volume(spec, O_RDONLY);
    int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    CHECK(volume && file >= 0 && (*length = onode_send(volume, snapshot, from, file, NULL)) > 0);
    char *stream = malloc(*length);
    CHECK(stream && pread(file, stream, *length, 0) == *length);
    CHECK(close(file) == 0 && onode_close_volume(volume) == 0);
    return stream;
}

static void damage(const char *spec, const char *to) {
    int64_t all, changed;
    char *whole = stream_of(spec, "monday", NULL, &all), *part = stream_of(spec, "tuesday", "monday", &changed);
    /* Nothing is made of what is none. */
    FAILS(receive(to, "", 0, NULL) == -1, EIO, "empty");
    FAILS(receive(to, "a letter to somebody", 20, NULL) == -1, EIO, "no stream");
    FAILS(receive(to, whole, 20, NULL) == -1, EIO, "");
    whole[15] ^= 1;
    FAILS(receive(to, whole, all, NULL) == -1, EIO, "");
    whole[15] ^= 1;
    char path[4096];
    snprintf(path, sizeof path, "%s", strchr(to, ':') + 1);
    *strchr(path, ',') = 0;
    CHECK(access(path, F_OK) == -1 && receive(to, part, changed, NULL) == -1 && access(path, F_OK) == -1);
    /* A part of a volume is shown to nobody, and the same stream again makes it whole. */
    FAILS(receive(to, whole, all - 1, NULL) == -1, EIO, "ends before its end");
    FAILS(onode_open_volume(to, O_RDONLY) == NULL, EIO, "did not come to its end");
    FAILS(onode_open_volume(to, O_RDWR) == NULL, EIO, "did not come to its end");
    CHECK(receive(to, whole, all, NULL) == all);
    /* Damaged anywhere, or cut short, nothing of it is seen. */
    for (int round = 0; round < 24; round++) {
        int64_t at = changed * round / 24 + round % 7;
        part[at] ^= 0x10;
        CHECK(receive(to, part, changed, NULL) == -1 && errno == EIO);
        part[at] ^= 0x10;
        CHECK(receive(to, part, at, NULL) == -1 && errno == EIO);
        onode_heap *copy = onode_open_volume(to, O_RDWR);
        CHECK(copy);
        is_monday(copy);
        CHECK(onode_close_volume(copy) == 0);
    }
    CHECK(receive(to, part, changed, NULL) == changed);
    onode_heap *copy = onode_open_volume(to, O_RDWR);
    CHECK(copy);
    is_tuesday(copy);
    CHECK(onode_close_volume(copy) == 0);
    onode_receive_options wrong = {.compress = "much"};
    FAILS(receive(to, part, changed, &wrong) == -1, EINVAL, "much");
    wrong = (onode_receive_options){.name = "\xff"};
    FAILS(receive(to, part, changed, &wrong) == -1, EINVAL, "UTF-8");
    FAILS(receive(NULL, part, changed, NULL) == -1, EINVAL, "NULL");
    free(whole), free(part);
}

static int got_signal;

static void on_signal(int number) {
    (void)number;
    got_signal = 1;
}

static int stop_on_signal(uint64_t done, uint64_t total, void *context) {
    (void)done, (void)total, (void)context;
    return got_signal;
}

static void stops(const char *spec, const char *to) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    struct heard heard = {.most = 1};
    onode_progress progress = {hear, &heard};
    CHECK(volume && file >= 0);
    FAILS(onode_send(volume, "monday", NULL, file, &progress) == -1, ECANCELED, "stopped the stream");
    CHECK(heard.times == 2 && lseek(file, 0, SEEK_CUR) == (off_t)heard.done);
    CHECK(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    CHECK(onode_send(volume, "tuesday", "monday", file, NULL) > 0 && lseek(file, 0, SEEK_SET) == 0);
    /* The other volume has what came before; what is stopped is taken back. */
    carry((struct sender){.volume = volume, .snapshot = "monday"}, to, NULL);
    heard = (struct heard){.most = 0};
    FAILS(onode_receive(to, file, NULL, &progress) == -1, ECANCELED, "before its end");
    CHECK(heard.times == 1);
    FAILS(onode_open_volume(to, O_RDONLY) == NULL, EIO, "did not come to its end");
    onode_heap *copy = onode_open_volume(to, O_RDWR);
    CHECK(copy);
    is_monday(copy);
    CHECK(onode_close_volume(copy) == 0);

    /* A signal ends a call that waits only if the program says so. */
    int ends[2];
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    onode_progress ask = {stop_on_signal, NULL};
    alarm(1);
    FAILS(onode_receive(to, ends[0], NULL, &ask) == -1, ECANCELED, "stopped");
    CHECK(got_signal);
    got_signal = 0;
    alarm(1);
    FAILS(onode_send(volume, "monday", NULL, ends[1], &ask) == -1, ECANCELED, "stopped");
    CHECK(got_signal && close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(lseek(file, 0, SEEK_SET) == 0 && onode_receive(to, file, NULL, NULL) > 0);
    copy = onode_open_volume(to, O_RDWR);
    CHECK(copy);
    is_tuesday(copy);
    CHECK(onode_close_volume(copy) == 0 && close(file) == 0 && onode_close_volume(volume) == 0);
}

static void descriptors(const char *spec, const char *to) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    int ends[2], closed = open("/dev/null", O_RDWR);
    CHECK(volume && closed >= 0 && close(closed) == 0);
    FAILS(onode_send(volume, "monday", NULL, closed, NULL) == -1, EBADF, "no open descriptor");
    FAILS(onode_send(volume, "monday", NULL, -1, NULL) == -1, EBADF, "no open descriptor");
    FAILS(onode_receive(to, closed, NULL, NULL) == -1, EBADF, "no open descriptor");
    FAILS(onode_receive(to, -1, NULL, NULL) == -1, EBADF, "no open descriptor");
    CHECK(pipe(ends) == 0);
    FAILS(onode_send(volume, "monday", NULL, ends[0], NULL) == -1, EBADF, "cannot write");
    FAILS(onode_receive(to, ends[1], NULL, NULL) == -1, EBADF, "cannot read");
    /* One that does not wait, and one that nobody reads. */
    CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    FAILS(onode_receive(to, ends[0], NULL, NULL) == -1, EAGAIN, "cannot read");
    FAILS(onode_send(volume, "monday", NULL, ends[1], NULL) == -1, EAGAIN, "cannot write");
    CHECK(close(ends[0]) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    FAILS(onode_send(volume, "monday", NULL, ends[1], NULL) == -1, EPIPE, "cannot write");
    int full = open("/dev/full", O_WRONLY), folder = open("/dev", O_RDONLY);
    FAILS(onode_send(volume, "monday", NULL, full, NULL) == -1, ENOSPC, "cannot write");
    FAILS(onode_receive(to, folder, NULL, NULL) == -1, EISDIR, "cannot read");
    CHECK(close(full) == 0 && close(folder) == 0 && close(ends[1]) == 0);
    onode_heap *then = onode_open_state(volume, "monday");
    CHECK(then);
    is_monday(then);
    CHECK(onode_close_volume(then) == 0 && onode_close_volume(volume) == 0);
}

static void locked(const char *spec, const char *to) {
    int64_t all, changed;
    char *whole = stream_of(spec, "monday", NULL, &all), *part = stream_of(spec, "tuesday", "monday", &changed);
    onode_key key = bytes(ONE), wrong = bytes(TWO);
    onode_receive_options with = {.key = &key}, with_wrong = {.key = &wrong}, without = {.key = NULL};
    /* Of a volume that is not there nobody knows that it is to be encrypted. */
    FAILS(receive(to, whole, all, &with) == -1, ENOENT, "");
    onode_heap *copy = onode_open_encrypted(to, O_RDWR | O_CREAT, &key);
    CHECK(copy && onode_close_volume(copy) == 0);
    FAILS(receive(to, whole, all, &without) == -1, ENOKEY, "");
    FAILS(receive(to, whole, all, &with_wrong) == -1, ENOKEY, "");
    CHECK(receive(to, whole, all, &with) == all);
    FAILS(onode_open_volume(to, O_RDONLY) == NULL, ENOKEY, "");
    FAILS(receive(to, part, changed, &with_wrong) == -1, ENOKEY, "");
    CHECK(receive(to, part, changed, &with) == changed);
    copy = onode_open_encrypted(to, O_RDONLY, &key);
    CHECK(copy);
    is_tuesday(copy);
    CHECK(onode_close_volume(copy) == 0);
    FAILS(onode_roll_back(to, "monday", NULL, NULL) == -1, ENOKEY, "");
    FAILS(onode_roll_back(to, "monday", &wrong, NULL) == -1, ENOKEY, "");
    CHECK(onode_roll_back(to, "monday", &key, NULL) > 0);
    copy = onode_open_encrypted(to, O_RDWR, &key);
    CHECK(copy);
    is_monday(copy);
    CHECK(onode_close_volume(copy) == 0);
    /* What lies open takes no key. */
    FAILS(receive(spec, part, changed, &with) == -1, EINVAL, "not encrypted");
    FAILS(onode_roll_back(spec, "monday", &key, NULL) == -1, EINVAL, "not encrypted");
    free(whole), free(part);
}

static void back(const char *spec) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && has(volume, "/d/a", "three"));
    FAILS(onode_roll_back(spec, "monday", NULL, NULL) == -1, EBUSY, "");
    CHECK(onode_close_volume(volume) == 0);
    FAILS(onode_roll_back(spec, "sunday", NULL, NULL) == -1, ENOENT, "no snapshot");
    FAILS(onode_roll_back(spec, NULL, NULL, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_roll_back(NULL, "monday", NULL, NULL) == -1, EINVAL, "NULL");
    FAILS(onode_roll_back("nothing.img", "monday", NULL, NULL) == -1, ENOENT, "");
    volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume && has(volume, "/d/a", "three") && onode_close_volume(volume) == 0);

    /* Stopped: the next who opens it has it at its end. */
    struct heard heard = {.most = 0};
    onode_progress progress = {hear, &heard};
    FAILS(onode_roll_back(spec, "tuesday", NULL, &progress) == -1, ECANCELED, "before its end");
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume && heard.times == 1);
    is_tuesday(volume);
    CHECK(onode_close_volume(volume) == 0 && onode_roll_back(spec, "tuesday", NULL, NULL) == 0);
    heard = (struct heard){.most = 1 << 30};
    CHECK(onode_roll_back(spec, "monday", NULL, &progress) == (int64_t)heard.done && heard.done > 0);
    volume = onode_open_volume(spec, O_RDWR);
    CHECK(volume);
    is_monday(volume);
    /* Snapshots and clones stay. */
    onode_heap *later = onode_open_state(volume, "tuesday"), *work = onode_open_state(volume, "work");
    CHECK(later && work && has(work, "/d/a", "one"));
    is_tuesday(later);
    CHECK(onode_close_volume(later) == 0 && onode_close_volume(work) == 0 && onode_close_volume(volume) == 0);
}

static void memory(const char *spec, const char *to) {
    onode_heap *volume = onode_open_volume(spec, O_RDWR | O_CREAT);
    CHECK(volume);
    put(volume, "/a", "in memory");
    FAILS(onode_send(volume, "x", NULL, 1, NULL) == -1, EOPNOTSUPP, "storage-class memory");
    CHECK(onode_close_volume(volume) == 0);
    CHECK(onode_roll_back(spec, "x", NULL, NULL) == -1 && errno == EINVAL);
    volume = onode_open_volume(spec, O_RDONLY);
    CHECK(volume);
    carry((struct sender){.volume = volume}, to, NULL);
    CHECK(onode_close_volume(volume) == 0);
    volume = onode_open_volume(to, O_RDWR);
    CHECK(volume && has(volume, "/a", "in memory") && onode_close_volume(volume) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    const char *spec = arguments[1], *step = arguments[2], *other = arguments[3];
    if (!strcmp(step, "make")) make(spec);
    if (!strcmp(step, "pipe")) pipes(spec, other);
    if (!strcmp(step, "damage")) damage(spec, other);
    if (!strcmp(step, "stops")) stops(spec, other);
    if (!strcmp(step, "descriptors")) descriptors(spec, other);
    if (!strcmp(step, "locked")) locked(spec, other);
    if (!strcmp(step, "back")) back(spec);
    if (!strcmp(step, "memory")) memory(spec, other);
    return 0;
}
