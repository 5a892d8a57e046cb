/* Onode for C: storage-class memory whose blocks become files and whose files become blocks
 * (paper 2, Table 1), and volumes on any device with snapshots and clones.
 *
 * Made from crates/access/capi/src; do not edit. Link with -lonode_c.
 *
 * A function that fails returns NULL or -1, sets errno, and onode_error() says why in words;
 * onode_errno() is the number once more, and onode_strerror() tells what a number means in general.
 * All functions may be called from any thread; a descriptor is used by one thread at a time.
 *
 * What is open belongs to the process that opened it. In a child that inherited it by fork(), after
 * daemon() or in a pool of workers, every call fails with EPERM, and closing it returns 0, frees
 * memory and touches neither the medium nor the lock of the parent. So open in the process that
 * goes on, after daemon(): what was open before keeps a volume in use as long as a child that
 * inherited it lives, for that child, too, unless the parent closes it or the child calls exec().
 */

#ifndef ONODE_H
#define ONODE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <fcntl.h>
/* Pointers that may be stored in a heap or an arena.
 *
 * An ONODE_REF counts from the start of the heap (onode_heap_start) or of the arena
 * (onode_arena_start) and may be stored anywhere in it; Ref<T> of Rust is the same 8 bytes. An
 * ONODE_NEAR counts from where it is stored itself, so reading it takes no start, but it is not to
 * be copied as bytes to another place. NULL is NULL in both.
 *
 *     struct node { uint64_t value; ONODE_REF(struct node) next; };
 *     ONODE_REF_SET(start, a->next, b);
 *     for (struct node *at = first; at; at = ONODE_REF_GET(start, at->next)) ...
 */
#define ONODE_REF(type) union { uint64_t offset; type *only_its_type; }
#define ONODE_REF_SET(start, reference, pointer) \
    ((void)sizeof(1 ? (reference).only_its_type : (pointer)), \
     (void)((reference).offset = onode_offset_from((start), (pointer))))
#define ONODE_REF_GET(start, reference) \
    ((__typeof__((reference).only_its_type))onode_pointer_from((start), (reference).offset))
#define ONODE_NEAR(type) union { int64_t distance; type *only_its_type; }
#define ONODE_NEAR_SET(near, pointer) \
    ((void)sizeof(1 ? (near).only_its_type : (pointer)), \
     (void)((near).distance = (int64_t)onode_offset_from(&(near), (pointer))))
#define ONODE_NEAR_GET(near) \
    ((__typeof__((near).only_its_type))onode_pointer_from(&(near), (uint64_t)(near).distance))

static inline uint64_t onode_offset_from(const void *start, const void *pointer) {
    return pointer ? (uint64_t)((uintptr_t)pointer - (uintptr_t)start) : 0;
}

static inline void *onode_pointer_from(const void *start, uint64_t offset) {
    return offset ? (void *)((uintptr_t)start + (uintptr_t)offset) : NULL;
}


// The file stays, the memory is a look at it.
#define ONODE_KEEP 0

// The file is removed, the memory is the caller's.
#define ONODE_DROP 1

// The key is a passphrase: words that a person remembers.
#define ONODE_PASSPHRASE 1

// The key is what a key file holds: random bytes, 32 or more.
#define ONODE_KEY_BYTES 2

// The key is in a file of such random bytes, and `bytes` is the path of that file.
#define ONODE_KEY_FILE 3

// A limit of a directory and all that is in it, for everybody.
#define ONODE_QUOTA_DIRECTORY 1

// A limit of the files of a user in the whole volume; it does not hold the super-user.
#define ONODE_QUOTA_USER 2

// A limit of the files of a group in the whole volume; it does not hold the super-user.
#define ONODE_QUOTA_GROUP 3

// What is only counted, and not limited.
#define ONODE_NO_LIMIT UINT64_MAX

// Working memory of this process with an allocator of its own, which checkpoints save and bring
// back.
typedef struct onode_arena onode_arena;

// Files that are open in this process: those of a heap of storage-class memory
// (`onode_open_heap`), of a transaction (`onode_tx_begin`), of a volume on any device
// (`onode_open_volume`), of a snapshot or of a clone (`onode_open_state`). A heap has memory
// besides. It belongs to the process that opened it: in a child that inherited it by fork(2),
// after daemon(3), too, every call fails with EPERM, and closing it only forgets it.
typedef struct onode_heap onode_heap;

// A table of slots: 2^30 of them, each empty or with a block of at most 4 GiB.
typedef struct onode_slots onode_slots;

// What a checkpoint cost.
typedef struct onode_cost {
  // Pages of 4 KiB that differ from the checkpoint before.
  uint64_t pages;
  // Bytes written for it.
  uint64_t bytes_written;
  // Pages that were copied while the program was not to store, in `onode_arena_freeze`.
  uint64_t pages_in_pause;
} onode_cost;

// A checkpoint of an arena.
typedef struct onode_saved {
  // Later ones have higher numbers.
  uint64_t sequence;
  // When it was made, in seconds since 1970.
  int64_t seconds;
  // Its name, ended by a zero byte.
  char name[256];
} onode_saved;

// What `onode_stat_path` tells of a file.
typedef struct onode_stat {
  // Number of the file.
  uint64_t inode;
  // Bytes.
  uint64_t size;
  // Type and permission bits, as in `st_mode`.
  uint32_t mode;
  // Names.
  uint32_t links;
  // Last change of the content: seconds since 1970.
  int64_t modified_seconds;
  // And nanoseconds.
  uint32_t modified_nanoseconds;
} onode_stat;

// A name in a directory.
typedef struct onode_name {
  // Number of the file.
  uint64_t inode;
  // Type bits, as in `st_mode`.
  uint32_t mode;
  // The name, ended by a zero byte.
  char name[256];
} onode_name;

// A snapshot of a volume.
typedef struct onode_snapshot {
  // Later ones have higher numbers, and no other snapshot or clone ever has this one.
  uint32_t number;
  // When it was taken: nanoseconds behind the seconds.
  uint32_t nanoseconds;
  // Seconds since 1970.
  int64_t seconds;
  // Its name, ended by a zero byte.
  char name[256];
} onode_snapshot;

// A clone of a volume.
typedef struct onode_clone {
  // Later ones have higher numbers, and no other snapshot or clone ever has this one.
  uint32_t number;
  // When it was made: nanoseconds behind the seconds.
  uint32_t nanoseconds;
  // Seconds since 1970.
  int64_t seconds;
  // Its name, ended by a zero byte.
  char name[256];
  // The name of the snapshot that it was made of.
  char base[256];
} onode_clone;

// A key of an encrypted volume. Fields that are 0 mean what their lines say, so a program names
// only `kind`, `bytes` and `length`. The library copies the key when it is called, wipes the copy
// before it returns, and never shows it in an error; the program wipes what it has itself.
typedef struct onode_key {
  // ONODE_PASSPHRASE, ONODE_KEY_BYTES or ONODE_KEY_FILE.
  int kind;
  // Of a passphrase that a volume gets: KiB of memory that it takes to try one (Argon2id); 0 is
  // 65,536.
  uint32_t memory_kib;
  // Of the same: passes over that memory; 0 is 3.
  uint32_t passes;
  // The passphrase, the random bytes, or the path; no zero byte has to end them.
  const void *bytes;
  // How many bytes that are, at most 65,536.
  size_t length;
  // Of a key that a volume gets: what people call it, at most 64 bytes; NULL is no name.
  const char *label;
} onode_key;

// A key slot of an encrypted volume.
typedef struct onode_key_slot {
  // Its number, which it keeps.
  uint32_t number;
  // What opens it: ONODE_PASSPHRASE, or ONODE_KEY_BYTES, which may come from a file; 0 for a
  // slot that needs no key (`onode mkfs --encrypt-directories`), is damaged, or of a newer
  // version.
  int kind;
  // Of a passphrase: KiB of memory that it takes to try one (Argon2id).
  uint32_t memory_kib;
  // Passes over that memory.
  uint32_t passes;
  // What people call it, ended by a zero byte.
  char label[256];
} onode_key_slot;

// What a volume has of its device, in bytes of the device, those for the volume's own records
// included.
typedef struct onode_extent {
  // What it has.
  uint64_t bytes;
  // What there is room for now: a disk may have become larger. An image file can become longer
  // than that.
  uint64_t most;
  // The fewest with which it would be larger than now.
  uint64_t least;
  // About the fewest that have room for what is in it; `bytes` if it cannot become smaller now.
  uint64_t fewest;
  // Sizes are multiples of this.
  uint64_t unit;
} onode_extent;

// What a long call calls now and then; it may be NULL where one is taken.
typedef struct onode_progress {
  // Told how much is `done` of `total`, which is an estimate, and 0 where nobody knows it. What
  // that counts is said where it is taken. If it returns other than 0 the call stops and fails
  // with ECANCELED. It is called by the thread that made the call; it may use other handles, and
  // files of this one, and must return: no longjmp and no exception out of it. NULL: nobody is
  // told.
  int (*tell)(uint64_t done, uint64_t total, void *context);
  // Handed to it.
  void *context;
} onode_progress;

// A limit, with what is used of it. Bytes are those that sizes of files tell, holes included, once
// for all names of a file; files are all that has an inode: directories and links, too.
typedef struct onode_quota {
  // ONODE_QUOTA_DIRECTORY, ONODE_QUOTA_USER or ONODE_QUOTA_GROUP.
  int kind;
  // The number of the directory, as `onode_stat_path` tells it, or that of the user or group.
  uint64_t number;
  // The most bytes, or ONODE_NO_LIMIT.
  uint64_t limit_bytes;
  // The most files, or ONODE_NO_LIMIT.
  uint64_t limit_files;
  // Bytes used. To set a limit it does not count.
  uint64_t used_bytes;
  // Files used. To set a limit it does not count.
  uint64_t used_files;
} onode_quota;

// How to receive a stream. All of it 0 or NULL is what is usual.
typedef struct onode_receive_options {
  // The name of the snapshot that is taken at the end; NULL: that of the one that was sent.
  const char *name;
  // What is compressed of what comes: "none", "fast", "small" or "auto"; NULL is "none".
  const char *compress;
  // The key of a volume that is encrypted; NULL for one that is not.
  const struct onode_key *key;
  // Other than 0: what has changed on the volume since the snapshot on which the stream builds
  // is given up.
  int roll_back;
} onode_receive_options;

// What a scrub found.
typedef struct onode_scrubbed {
  // Files and other objects verified.
  uint64_t objects;
  // Bytes of content verified.
  uint64_t bytes;
  // Bytes that were damaged and written again from a good copy.
  uint64_t repaired_bytes;
  // Pages of flash that cannot be read and were found again from parity.
  uint64_t rebuilt_pages;
  // Ranges that cannot be read any more; `onode_list_damage` names the first 64.
  uint64_t damaged_ranges;
  // Other than 0: the index is damaged, and from some file on none could be found.
  int is_cut;
} onode_scrubbed;

// Bytes of a file that cannot be read any more.
typedef struct onode_damage {
  // The number of the file, as `onode_stat_path` tells it.
  uint64_t inode;
  // The first byte.
  uint64_t start;
  // The byte behind the last; `start` if not content is damaged but what belongs to it.
  uint64_t end;
} onode_damage;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens the heap `spec` names, such as "scm:/dev/shm/heap,size=1G", and makes it if there is none;
// if several processes do that at once, one of them makes it for all. They share it, but not with
// those who only read it (`onode_open_volume` with O_RDONLY, commands), who are waited for up to
// two seconds: EBUSY if they stay.
// What is made in it belongs to the effective user and group of the process. No permissions are
// asked for: whoever may write to the memory may read and change every file in it.
//
// # Safety
// `spec` is a string.
struct onode_heap *onode_open_heap(const char *spec);

// Closes a heap: descriptors are closed, and blocks that no file has are gone. It stays open as it
// is and this fails with EBUSY as long as tables of slots, arenas or transactions of it are open.
// After any other failure the pointer is none any more.
//
// # Safety
// `heap` came from `onode_open_heap`, and nobody uses it or its blocks any more.
int onode_close_heap(struct onode_heap *heap);

// Makes a heap the one that `mm_to_file` and `file_to_mm` work on.
//
// # Safety
// `heap` came from `onode_open_heap` and stays open as long as those are called.
int onode_use(struct onode_heap *heap);

// A block of at least `bytes`. It holds anything, as that of `malloc` does: a file that is made of
// it shows what the memory held before wherever nothing was stored since. `onode_calloc` clears
// it.
//
// # Safety
// `heap` is an open heap.
void *onode_alloc(struct onode_heap *heap, size_t bytes);

// A block for `count` things of `bytes` each, all zeros.
//
// # Safety
// `heap` is an open heap.
void *onode_calloc(struct onode_heap *heap, size_t count, size_t bytes);

// Another size for a block, which may move; NULL with the block as it was if there is no room.
//
// # Safety
// `heap` is an open heap, `block` NULL or a block of it that nobody else uses.
void *onode_realloc(struct onode_heap *heap, void *block, size_t bytes);

// Frees a block; NULL is nothing.
//
// # Safety
// `heap` is an open heap, and nobody uses the block any more.
int onode_free(struct onode_heap *heap, void *block);

// Bytes of the block that begins at a pointer, which may be more than were asked for; 0 if none
// does.
//
// # Safety
// `heap` is an open heap.
size_t onode_block_size(struct onode_heap *heap, const void *block);

// Where a heap begins in this process: what `ONODE_REF` counts from.
//
// # Safety
// `heap` is an open heap.
void *onode_heap_start(struct onode_heap *heap);

// Where a pointer into the heap points, counted from the heap's start: what to store in place of
// the pointer. 0 for NULL and for pointers elsewhere.
//
// # Safety
// `heap` is an open heap.
uint64_t onode_offset(struct onode_heap *heap, const void *pointer);

// The pointer that an offset stands for; NULL for 0, and for an offset that lies in no block.
//
// # Safety
// `heap` is an open heap.
void *onode_pointer(struct onode_heap *heap, uint64_t offset);

// Makes the first `bytes` of a block a file, as many as were asked for if 0, and returns a
// descriptor of the file. No byte is copied, and the file is durable, name and content, on return.
// It belongs to the process's effective user and group, with the permissions 0666 as far as the
// umask leaves them. `flags` as for `open`; the file must not be there.
//
// # Safety
// `heap` is an open heap, `path` a string, and nobody uses the block through its pointer any more
// unless this fails.
int onode_mm_to_file(struct onode_heap *heap,
                     void *block,
                     size_t bytes,
                     const char *path,
                     int flags);

// The content of a file as memory. With ONODE_DROP the file is removed, its descriptor closed, and
// the block is the caller's; with ONODE_KEEP the file stays and the memory is given back with
// `onode_unmap`. A file that is not in one piece, as those are that were blocks, is brought
// together first, where it is: it stays the same file, and a hole becomes zeros. With ONODE_DROP
// the name of a file that was renamed since it was opened, or opened by a symbolic link, is looked
// for among all files of the heap; ENOENT if it has none, EBUSY if it has several. If the call
// fails the file and the descriptor are as they were.
//
// # Safety
// `heap` is an open heap.
void *onode_file_to_mm(struct onode_heap *heap, int descriptor, int flags);

// The content of the file at `path` as memory, which stays the same file; `bytes` gets its size.
// One that is not in one piece is brought together first, as with `onode_file_to_mm`. Given back
// with `onode_unmap`. The memory is that of the file as long as its size stays and no hole is made
// in it.
//
// # Safety
// `heap` is an open heap, `path` a string, `bytes` NULL or a place for a number.
void *onode_map(struct onode_heap *heap, const char *path, size_t *bytes);

// Gives back memory that `onode_map` or `onode_file_to_mm` with ONODE_KEEP returned.
//
// # Safety
// `heap` is an open heap, and nobody uses the memory any more.
int onode_unmap(struct onode_heap *heap, void *memory);

// Paper 2, Table 1: makes a block of the heap in use a file and returns its descriptor.
//
// # Safety
// As [`onode_mm_to_file`]; `onode_use` was called.
int mm_to_file(void *block, const char *path, int flags);

// Paper 2, Table 1: makes the content of a file of the heap in use memory.
//
// # Safety
// As [`onode_file_to_mm`]; `onode_use` was called.
void *file_to_mm(int descriptor, int flags);

// Has `name` lead to the `bytes` at `root` in the heap, in place of what it led to; durable on
// return. They lie in a file's memory (`onode_mm_to_file`): other memory is gone with the process.
// `tag` tells what they are, and is asked for again by `onode_root`.
//
// # Safety
// `heap` is an open heap, `name` a string.
int onode_set_root(struct onode_heap *heap,
                   const char *name,
                   const void *root,
                   size_t bytes,
                   uint64_t tag);

// What `name` leads to. NULL with ENOENT if there is no such root, EINVAL if it has another size
// or another tag, ESTALE if the file that it lay in is gone.
//
// # Safety
// As [`onode_set_root`].
void *onode_root(struct onode_heap *heap, const char *name, size_t bytes, uint64_t tag);

// Forgets a root; what it led to stays.
//
// # Safety
// As [`onode_set_root`].
int onode_remove_root(struct onode_heap *heap, const char *name);

// Opens the table of slots with that name; makes an empty one if there is none.
//
// # Safety
// `heap` is an open heap, `name` a string.
struct onode_slots *onode_open_slots(struct onode_heap *heap, const char *name);

// Closes a table, before its heap. The slots keep what they hold.
//
// # Safety
// `slots` is an open table, and nobody uses it any more.
int onode_close_slots(struct onode_slots *slots);

// Has a slot hold a block of the heap, in place of the one that it held, which is free then: one
// line of the memory and one fence. After a crash the slot holds the one or the other. The first
// `bytes` of the block are made durable before; 0 if they are already, or need not be. If it fails
// the block is still the caller's.
//
// # Safety
// `slots` is an open table; the caller owns `block`.
int onode_fill_slot(struct onode_slots *slots, uint64_t slot, void *block, size_t bytes);

// The block in a slot, which stays there; NULL with ENOENT if the slot is empty.
//
// # Safety
// `slots` is an open table.
void *onode_slot(struct onode_slots *slots, uint64_t slot);

// Takes the block out of a slot: it is the caller's, and is gone with the process unless it is put
// somewhere. NULL with ENOENT if the slot is empty.
//
// # Safety
// `slots` is an open table.
void *onode_take_slot(struct onode_slots *slots, uint64_t slot);

// Makes an arena of at least `bytes`, all zeros. Until its first checkpoint nothing of it outlives
// the process.
//
// # Safety
// `heap` is an open heap, `name` a string.
struct onode_arena *onode_create_arena(struct onode_heap *heap, const char *name, size_t bytes);

// Opens an arena as `checkpoint` has saved it. It may begin elsewhere than before: what is stored
// in it are offsets from its start (`ONODE_REF`) or distances (`ONODE_NEAR`), and no pointers.
//
// # Safety
// `heap` is an open heap, `name` and `checkpoint` are strings.
struct onode_arena *onode_restore_arena(struct onode_heap *heap,
                                        const char *name,
                                        const char *checkpoint);

// Closes an arena; what no checkpoint has is gone. Its heap is closed after it.
//
// # Safety
// `arena` is an open arena, and nobody uses it any more.
int onode_close_arena(struct onode_arena *arena);

// Removes an arena with all its checkpoints. It is not open.
//
// # Safety
// `heap` is an open heap, `name` a string.
int onode_remove_arena(struct onode_heap *heap, const char *name);

// Where an arena begins in this process.
//
// # Safety
// `arena` is an open arena.
void *onode_arena_start(struct onode_arena *arena);

// A block of at least `bytes` of an arena. It holds anything.
//
// # Safety
// `arena` is an open arena.
void *onode_arena_alloc(struct onode_arena *arena, size_t bytes);

// Frees a block of an arena; NULL is nothing.
//
// # Safety
// `arena` is an open arena, and nobody uses the block any more.
int onode_arena_free(struct onode_arena *arena, void *block);

// Has the arena's data structure begin with the `bytes` at `root`, for whoever restores it; part
// of every checkpoint.
//
// # Safety
// `arena` is an open arena.
int onode_arena_set_root(struct onode_arena *arena, const void *root, size_t bytes, uint64_t tag);

// Where the arena's data structure begins. NULL with ENOENT if that was never said, EINVAL if it
// has another size or tag.
//
// # Safety
// `arena` is an open arena.
void *onode_arena_root(struct onode_arena *arena, size_t bytes, uint64_t tag);

// Saves an arena as it is under a name, in place of what had the name; durable on return. Nobody
// stores to it during the call.
//
// # Safety
// `arena` is an open arena, `name` a string, `cost` NULL or a place for the answer.
int onode_checkpoint(struct onode_arena *arena, const char *name, struct onode_cost *cost);

// The first of three steps that do what `onode_checkpoint` does with a short pause: copies what
// has changed since the last checkpoint while the program goes on storing.
//
// # Safety
// `arena` is an open arena.
int onode_arena_copy_ahead(struct onode_arena *arena);

// The second step, the pause: takes the image of this moment. Nobody stores to the arena during
// the call.
//
// # Safety
// `arena` is an open arena, and is not closed before `onode_arena_commit`, or not used by others
// when it is.
int onode_arena_freeze(struct onode_arena *arena);

// The third step: makes the frozen image the checkpoint `name`, while the program goes on; durable
// on return. If `name` can be none (EINVAL, ENAMETOOLONG) the image stays frozen; after any other
// failure it is given up, and the next one has what it had.
//
// # Safety
// As [`onode_checkpoint`].
int onode_arena_commit(struct onode_arena *arena, const char *name, struct onode_cost *cost);

// A checkpoint of an arena of the heap, the oldest first: `number` counts from 0. Returns 1, 0 if
// there are not so many, -1 on failure.
//
// # Safety
// `heap` is an open heap, `arena` a string, `saved` a place for the answer.
int onode_list_checkpoints(struct onode_heap *heap,
                           const char *arena,
                           long number,
                           struct onode_saved *saved);

// Removes a checkpoint of an open arena; what only it had becomes free.
//
// # Safety
// `arena` is an open arena, `name` a string.
int onode_remove_checkpoint(struct onode_arena *arena, const char *name);

// Opens a file; `flags` and `mode` as for `open(2)`: a file that is made belongs to the process's
// effective user and group and has the permissions of `mode` as far as the umask leaves them.
// O_CREAT, O_EXCL, O_TRUNC, O_APPEND and the access mode count.
//
// # Safety
// `heap` is an open heap, `path` a string.
int onode_open(struct onode_heap *heap, const char *path, int flags, uint32_t mode);

// Makes a file, or cuts it to nothing, and opens it for writing; `mode` as for `onode_open`.
//
// # Safety
// As [`onode_open`].
int onode_creat(struct onode_heap *heap, const char *path, uint32_t mode);

// Closes a descriptor.
//
// # Safety
// `heap` is an open heap.
int onode_close(struct onode_heap *heap, int descriptor);

// Reads from where the descriptor stands.
//
// # Safety
// `heap` is an open heap, and `to` has room for `bytes`.
ptrdiff_t onode_read(struct onode_heap *heap, int descriptor, void *to, size_t bytes);

// Reads from `offset`.
//
// # Safety
// As [`onode_read`].
ptrdiff_t onode_pread(struct onode_heap *heap,
                      int descriptor,
                      void *to,
                      size_t bytes,
                      uint64_t offset);

// Writes where the descriptor stands. With O_APPEND that is the end of the file, found and written
// to in one step: what several threads and processes append comes to lie behind one another.
//
// # Safety
// `heap` is an open heap, and `from` has `bytes` bytes.
ptrdiff_t onode_write(struct onode_heap *heap, int descriptor, const void *from, size_t bytes);

// Writes at `offset`.
//
// # Safety
// As [`onode_write`].
ptrdiff_t onode_pwrite(struct onode_heap *heap,
                       int descriptor,
                       const void *from,
                       size_t bytes,
                       uint64_t offset);

// Moves where a descriptor stands; `whence` as for `lseek(2)`: SEEK_SET, SEEK_CUR, SEEK_END.
//
// # Safety
// `heap` is an open heap.
int64_t onode_lseek(struct onode_heap *heap, int descriptor, int64_t offset, int whence);

// Sets the size of an open file. EBADF if the descriptor is for reading only.
//
// # Safety
// `heap` is an open heap.
int onode_truncate(struct onode_heap *heap, int descriptor, uint64_t size);

// Makes a file durable; in a heap, and in a volume that was opened with O_SYNC, it is already,
// unless the host is behind.
//
// # Safety
// `heap` is an open heap.
int onode_fsync(struct onode_heap *heap, int descriptor);

// Removes the name of a file; EISDIR for a directory.
//
// # Safety
// As [`onode_open`].
int onode_unlink(struct onode_heap *heap, const char *path);

// Makes a directory; `mode` as for `onode_open`.
//
// # Safety
// As [`onode_open`].
int onode_mkdir(struct onode_heap *heap, const char *path, uint32_t mode);

// Removes a directory. ENOTEMPTY if anything is in it, ENOTDIR for a file.
//
// # Safety
// As [`onode_open`].
int onode_rmdir(struct onode_heap *heap, const char *path);

// Gives a file another name, in place of what has it.
//
// # Safety
// As [`onode_open`], for both paths.
int onode_rename(struct onode_heap *heap, const char *from, const char *to);

// Tells about a file.
//
// # Safety
// As [`onode_open`]; `stat` is a place for the answer.
int onode_stat_path(struct onode_heap *heap, const char *path, struct onode_stat *stat);

// One name of a directory and the cursor of the next; `cursor` is 0 for the first. Returns the
// next cursor, 0 at the end, -1 on failure.
//
// # Safety
// As [`onode_open`]; `name` is a place for the answer.
long onode_readdir(struct onode_heap *heap, const char *path, long cursor, struct onode_name *name);

// Sets a hint of a file for what is written to it from now on; of a directory, for what is made in
// it from now on. Hints are advice: they change what storing costs, never what is read.
//
// - "lifetime", how long content stays as it is: "short", "medium", "long", "unknown"
// - "temperature", how often it is used: "cold", "warm", "hot", "unknown"
// - "size", how many bytes a file will have: "4096", "64K", "10M", "1G", "unknown"
// - "compress": "none", "fast", "small", or "auto", which is as whoever opens the volume says
// - "parity", how many lost pages of a group it outlives, on flash made for that: "1", "2", "3",
//   "none", "default"
// - "placement", of two disks: "default", "bypass" or a section; "safe", "either", "big" or
//   "volume"; "pin" or "unpin"; several with commas between
//
// EINVAL for another name or value, EOPNOTSUPP for "compress", "parity" and "placement" on a
// volume that has no such choice, ENOENT, EROFS.
//
// # Safety
// `heap` is an open heap or volume, `path`, `name` and `value` are strings.
int onode_set_hint(struct onode_heap *heap, const char *path, const char *name, const char *value);

// The value of a hint as `onode_set_hint` takes it, ended by a zero byte; of a directory, that of
// what is made in it. Returns how many bytes it has without that one, -1 on failure: ERANGE if
// `size` bytes are too few for it; otherwise as `onode_set_hint`.
//
// # Safety
// `heap` is an open heap or volume, `path` and `name` are strings, `value` has room for `size`
// bytes.
ptrdiff_t onode_hint(struct onode_heap *heap,
                     const char *path,
                     const char *name,
                     char *value,
                     size_t size);

// Begins a transaction. The functions for files take it as a heap, and see and change files as
// they are in it; nobody else sees that before it is committed. It has no memory: as long as it is
// open, blocks of its heap cannot become files, nor files blocks. Not while other processes have
// the heap open (EBUSY). It can begin on a volume, too, or on a clone that is open alone.
//
// # Safety
// `heap` is an open heap or volume, and stays open until the transaction has ended.
struct onode_heap *onode_tx_begin(struct onode_heap *heap);

// Ends a transaction and has all that was done in it happen, durably. Fails with EBUSY if somebody
// else has changed what it changed or read meanwhile: then nothing of it happens. Its descriptors
// are closed, and the pointer is none any more, whatever comes of it.
//
// # Safety
// `transaction` came from `onode_tx_begin`, and nobody uses it any more.
int onode_tx_commit(struct onode_heap *transaction);

// Ends a transaction; nothing of what was done in it happens.
//
// # Safety
// As [`onode_tx_commit`].
int onode_tx_abort(struct onode_heap *transaction);

// Opens the volume that `spec` names, such as "flash:disk.img,size=64M" or
// "tier:fast.img,big.img". All functions for files take it as a heap; it has no memory.
// "disk.img@NAME" is a snapshot of it, to be read (O_RDONLY), or a clone. Of `flags`, as for
// `open(2)`, the access mode counts; O_CREAT makes a volume that is not there, which only one of
// several processes does; with O_SYNC every call is durable when it returns, without it when
// `onode_fsync`, `onode_sync` or `onode_close_volume` has returned. What is made in it belongs to
// the effective user and group of the process, and no permissions are asked for.
//
// A volume that is open already gives EBUSY, but any number may read one. One on memory is shared
// by all who open it to change it, heaps among them; with O_RDONLY it is not, and who changes it
// and who reads it keep each other out. Whoever changes it waits up to two seconds for those who
// read it, commands among them.
//
// # Safety
// `spec` is a string.
struct onode_heap *onode_open_volume(const char *spec, int flags);

// Opens a snapshot, to be read, or a clone, to be changed, beside its volume. All functions for
// files take it as a heap; it is a file system of its own, and `onode_close_volume` closes it.
// ENOENT if there is none of that name. One that is deleted meanwhile gives ESTALE.
//
// # Safety
// `volume` came from `onode_open_volume`, `name` is a string.
struct onode_heap *onode_open_state(struct onode_heap *volume, const char *name);

// Makes everything durable that was done so far through a handle.
//
// # Safety
// `volume` came from `onode_open_volume` or another function that opens files, and is open.
int onode_sync(struct onode_heap *volume);

// Does what a mount does about once a second, for programs that keep a volume open: writes back
// what has waited for 5 s, aborts transactions that nobody used for long, and does a little
// background work: cleaning, moving what may soon not be read any more, removing what deleted
// snapshots kept. 1 if there is more of that, 0 if not, -1 on failure. A program that never calls
// it loses nothing that is durable; its commits do the cleaning that they need.
//
// # Safety
// `volume` came from `onode_open_volume`.
int onode_tick(struct onode_heap *volume);

// Closes a volume, or a snapshot or clone that `onode_open_state` opened; descriptors are closed,
// and everything is durable. A volume stays open and this fails with EBUSY as long as snapshots,
// clones or transactions of it are open. After any other failure the pointer is none any more.
//
// # Safety
// `volume` came from `onode_open_volume` or `onode_open_state`, and nobody uses it any more.
int onode_close_volume(struct onode_heap *volume);

// The snapshot that was taken next after the one with the number `after`, which need not be there
// any more; the first one after 0. Returns 1, 0 if there is none, -1 on failure.
//
// # Safety
// `volume` came from `onode_open_volume`, `snapshot` is a place for the answer.
int onode_list_snapshots(struct onode_heap *volume,
                         uint32_t after,
                         struct onode_snapshot *snapshot);

// Keeps all files as they are now, under a name; durable on return. What was written is in it,
// synced or not. It takes no longer for a large volume than for an empty one. EINVAL for a name
// that cannot be one of a directory, EEXIST, ENOSPC, EROFS; EOPNOTSUPP on storage-class memory
// that processes share.
//
// # Safety
// `volume` came from `onode_open_volume`, `name` is a string.
int onode_take_snapshot(struct onode_heap *volume, const char *name);

// Deletes a snapshot, open or not; durable on return. What only it kept is removed by
// `onode_clean_snapshots`, in a later run too, or by a mount. EBUSY if there are clones of it.
//
// # Safety
// As [`onode_take_snapshot`].
int onode_delete_snapshot(struct onode_heap *volume, const char *name);

// Removes some of what deleted snapshots and clones kept, in at most `budget` steps, each about as
// long as the change of a file: 1 if there is more, 0 if there is nothing left, -1 on failure.
//
// # Safety
// `volume` came from `onode_open_volume`.
int onode_clean_snapshots(struct onode_heap *volume, uint32_t budget);

// What a snapshot keeps of content that has changed since, up to the next one, in bytes of the
// medium.
//
// # Safety
// As [`onode_take_snapshot`].
int64_t onode_snapshot_bytes(struct onode_heap *volume, const char *name);

// The clone that was made next after the one with the number `after`, which need not be there any
// more; the first one after 0. Returns 1, 0 if there is none, -1 on failure.
//
// # Safety
// `volume` came from `onode_open_volume`, `clone` is a place for the answer.
int onode_list_clones(struct onode_heap *volume, uint32_t after, struct onode_clone *clone);

// Makes a clone of a snapshot, or of all files as they are now if `snapshot` is NULL: then a
// snapshot is taken for it, which has the name of the clone with ".base" behind. Durable on
// return. It takes no longer for a large volume than for an empty one. Errors are those of
// `onode_take_snapshot`, and ENOENT if there is no such snapshot.
//
// # Safety
// `volume` came from `onode_open_volume`, `name` is a string, `snapshot` one or NULL.
int onode_make_clone(struct onode_heap *volume, const char *name, const char *snapshot);

// Deletes a clone, open or not, and the snapshot that was taken for it if no other clone was made
// of that. What only they kept is removed as with `onode_delete_snapshot`.
//
// # Safety
// `volume` came from `onode_open_volume`, `name` is a string.
int onode_delete_clone(struct onode_heap *volume, const char *name);

// What a clone has of its own, in bytes of the medium.
//
// # Safety
// As [`onode_delete_clone`].
int64_t onode_clone_bytes(struct onode_heap *volume, const char *name);

// Opens an encrypted volume, or a snapshot or clone of one, as `onode_open_volume` opens others;
// with O_CREAT it makes an encrypted one if none is there, whose first key is this. Content, names
// and sizes are encrypted. ENOKEY if the key does not open it, and if `onode_open_volume` finds an
// encrypted one; EINVAL for what can be no key, as an empty passphrase or fewer than 32 bytes, and
// for a volume that is there and not encrypted. To try a passphrase takes as much memory and time
// as the volume says.
//
// # Safety
// `spec` is a string, `key` a key whose `bytes` are `length` bytes.
struct onode_heap *onode_open_encrypted(const char *spec, int flags, const struct onode_key *key);

// Opens an authenticated volume, as `onode_open_encrypted` opens others; with O_CREAT it makes one
// if none is there. Whatever is not what was stored last is refused with EIO. With an `anchor`,
// which `onode_note_anchor` told earlier, that is so for the volume as a whole: an older copy of
// it is refused. NULL expects none. EINVAL for a volume that is not authenticated, and for what is
// no anchor; memory that processes share cannot have it.
//
// # Safety
// `spec` is a string, `key` a key whose `bytes` are `length` bytes, `anchor` a string or NULL.
struct onode_heap *onode_open_authenticated(const char *spec,
                                            int flags,
                                            const struct onode_key *key,
                                            const char *anchor);

// Puts into `buffer` what a program may note of the state of an authenticated volume, a string
// that is shorter than 100 bytes, and returns its length; -1 on failure. What was changed before
// is durable then. EINVAL for another volume, ERANGE if it does not fit.
//
// # Safety
// `volume` is one, `buffer` has room for `size` bytes.
ptrdiff_t onode_note_anchor(struct onode_heap *volume, char *buffer, size_t size);

// Lists the key slots of a volume that nobody has open: fills in as many as `count`, and returns
// how many there are, at most 32; -1 on failure. It takes no key. EINVAL for a volume that is not
// encrypted, EBUSY if it is open.
//
// # Safety
// `spec` is a string, `slots` has room for `count` slots, or `count` is 0.
int onode_list_keys(const char *spec, struct onode_key_slot *slots, size_t count);

// Which slot a key opens, of a volume that nobody has open: its number, -1 on failure. ENOKEY if
// it opens none.
//
// # Safety
// `spec` is a string, `key` a key whose `bytes` are `length` bytes.
int onode_test_key(const char *spec, const struct onode_key *key);

// Adds a key to a volume that nobody has open, next to `key`, which opens it: returns the number
// of the new slot, -1 on failure. Files are not written anew for it. ENOSPC if there are 32 slots;
// otherwise as `onode_open_encrypted`.
//
// # Safety
// `spec` is a string, both keys are keys whose `bytes` are `length` bytes.
int onode_add_key(const char *spec, const struct onode_key *key, const struct onode_key *new_key);

// Puts a key in the place of `key`, which opens the volume no more: returns the number of the new
// slot, -1 on failure, and then the old one opens it as before. Otherwise as `onode_add_key`: with
// 32 slots one has to be removed first.
//
// # Safety
// As [`onode_add_key`].
int onode_change_key(const char *spec,
                     const struct onode_key *key,
                     const struct onode_key *new_key);

// Removes a slot of a volume that nobody has open, with `key`, whose own slot stays: EINVAL if it
// is the one that is to go, so that somebody can open the volume afterwards. ENOENT if there is no
// such slot; otherwise as `onode_open_encrypted`.
//
// # Safety
// As [`onode_test_key`].
int onode_remove_key(const char *spec, const struct onode_key *key, uint32_t slot);

// Gives a directory without files a new key, which what is made in it needs from then on, and
// which is unlocked until the volume is closed: returns its number, which is never used again; -1
// on failure. The hint "key" of files tells it (`onode_hint`). EINVAL for a volume that is not
// encrypted, and for a directory that can have no key; EBUSY while a transaction is open.
//
// # Safety
// `heap` is a volume, `path` a string, `key` a key whose `bytes` are `length` bytes.
int onode_new_directory_key(struct onode_heap *heap, const char *path, const struct onode_key *key);

// Unlocks all keys of directories that this one opens: returns how many, -1 on failure. ENOKEY if
// it opens none.
//
// # Safety
// `heap` is a volume, `key` a key whose `bytes` are `length` bytes.
int onode_unlock_directories(struct onode_heap *heap, const struct onode_key *key);

// Locks the key of directories of this number: returns 1 if it was unlocked, 0 if not, -1 on
// failure. EBUSY while files are open that need it, or a transaction is. ENOENT if there is no
// such key.
//
// # Safety
// `heap` is a volume.
int onode_lock_directories(struct onode_heap *heap, unsigned int number);

// Opens a volume as `onode_open_volume` does, or with a key as `onode_open_encrypted`, and has
// content compressed that is written from now on: "fast" (LZ4), "small" (Zstandard), "auto", which
// is one of them as it pays, "none" or NULL. What is compressed is read whatever this says, by
// every way to open the volume. A file whose hint
// "compress" says otherwise is stored as that says (`onode_set_hint`). EINVAL for other words.
//
// # Safety
// `spec` is a string, `compress` one or NULL, `key` NULL or a key whose `bytes` are `length`
// bytes.
struct onode_heap *onode_open_compressed(const char *spec,
                                         int flags,
                                         const char *compress,
                                         const struct onode_key *key);

// Tells how large a volume is and could be. EOPNOTSUPP on storage-class memory, where a volume
// takes up what its file or space got when it is opened, and for snapshots, clones and
// transactions.
//
// # Safety
// `volume` came from a function that opens volumes, `extent` is a place for the answer.
int onode_volume_extent(struct onode_heap *volume, struct onode_extent *extent);

// Has a volume take up `bytes` of its device from now on, rounded down to a whole unit, on two
// disks perhaps to a few blocks less; durable on return, and an image file has become longer or
// shorter. Files stay, and may be used meanwhile.
// To become larger takes a moment; to become smaller everything behind the new end moves first,
// and `progress` is told how many bytes have moved. Stopped by it (ECANCELED), after any other
// failure and after a crash the volume is as large as before and has everything. EINVAL for a size
// that it cannot have, ENOSPC if what is in it has no room there or the host has none for the
// image, EBUSY if another thread gave it another size meanwhile, EROFS; EOPNOTSUPP where
// `onode_volume_extent` fails with that.
//
// # Safety
// `volume` came from a function that opens volumes; `progress` is NULL or one that can be called.
int onode_resize(struct onode_heap *volume, uint64_t bytes, const struct onode_progress *progress);

// Sets a limit, or changes the one that there is; durable on return. A new one counts what there
// is first, and holds when the call returns: `progress` is told how many files it has counted.
// Stopped by it (ECANCELED), and after any other failure, there is no new limit. What would go
// beyond a limit fails with EDQUOT from then on; what is there stays. EEXIST for a directory in
// one, or above one, that has a limit; ENOTDIR, ENOENT; EINVAL for user 0; EBUSY if another limit
// is being set; EROFS; EPERM in a transaction; EOPNOTSUPP on storage-class memory that processes
// share.
//
// # Safety
// `volume` came from a function that opens volumes, `limit` is a limit; `progress` is NULL or one
// that can be called.
int onode_set_quota(struct onode_heap *volume,
                    const struct onode_quota *limit,
                    const struct onode_progress *progress);

// Takes a limit away; the files stay. Durable on return. ENOENT if there is none; otherwise as
// `onode_set_quota`.
//
// # Safety
// `volume` came from a function that opens volumes.
int onode_remove_quota(struct onode_heap *volume, int kind, uint64_t number);

// Lists all limits with what is used of them, those of directories first: fills in as many as
// `count`, and returns how many there are; -1 on failure.
//
// # Safety
// `volume` came from a function that opens volumes, `limits` has room for `count` limits, or
// `count` is 0.
int64_t onode_list_quotas(struct onode_heap *volume, struct onode_quota *limits, size_t count);

// The path of a directory by its number, as `onode_list_quotas` tells it; it is ended by a zero
// byte. Returns how many bytes it has without that one, -1 on failure: ERANGE if `size` bytes are
// too few for it, ENOTDIR, ENOENT.
//
// # Safety
// `heap` is an open heap or volume, `path` has room for `size` bytes.
ptrdiff_t onode_directory_path(struct onode_heap *heap, uint64_t number, char *path, size_t size);

// Writes a snapshot of an open volume to a descriptor, or what has changed since an earlier one if
// `from` names that: a stream of which `onode_receive` or the command makes the same state on
// another volume of any kind. Its content is neither compressed nor encrypted, whatever the volume
// is. With `snapshot` NULL it is all files as they are, of a volume that is open for reading only;
// so are volumes sent that have no snapshots. Returns the bytes written, -1 on failure.
//
// The descriptor is one of the process that blocks, and stays open. What write(2) takes in part is
// written on. A signal does not end the call: EINTR has `progress` asked, as every piece has,
// which is told the bytes written. A pipe that nobody reads any more is as with write(2): SIGPIPE,
// or EPIPE for a program that ignores that signal. Other failures of write(2) keep their numbers,
// as EAGAIN of a descriptor that does not block. ENOENT if there is no such snapshot or it was
// deleted meanwhile, EINVAL if `from` is the later one, EBADF. Whoever receives a part shows
// nothing of it.
//
// # Safety
// `volume` came from a function that opens volumes, `snapshot` and `from` are strings or NULL;
// nobody closes the descriptor meanwhile; `progress` is NULL or one that can be called.
int64_t onode_send(struct onode_heap *volume,
                   const char *snapshot,
                   const char *from,
                   int descriptor,
                   const struct onode_progress *progress);

// Gives a volume that nobody has open the state of which a stream tells, which a descriptor gives;
// what follows the stream there is not read. Returns the bytes of the stream, -1 on failure. At
// the end a snapshot of the volume is taken, on which the next stream can build.
//
// A stream of all files makes the volume if its image is missing and no key is given, else it has
// to be empty: make an encrypted one with `onode_open_encrypted` and O_CREAT first. One of what
// has changed needs a volume that has the earlier snapshot, and is as that (EBUSY if not, unless
// `roll_back` is set; ENOENT without the snapshot). EEXIST if the volume is not empty, or has that
// state or that name already. EIO for a stream that is damaged or ends before its end. ENOKEY,
// ENOSPC, EBUSY for a volume that is open.
//
// What is no stream, or does not fit the volume, changes nothing. Stopped in the middle, by
// `progress` (ECANCELED, it is told the bytes read), by damage or by a crash, nobody can use the
// volume until the same stream is received again, from its beginning; one that had an earlier
// snapshot goes back to that when it is opened for writing. The descriptor is as for `onode_send`.
//
// # Safety
// `spec` is a string, `options` NULL or options whose strings and key are as they say; nobody
// closes the descriptor meanwhile; `progress` is NULL or one that can be called.
int64_t onode_receive(const char *spec,
                      int descriptor,
                      const struct onode_receive_options *options,
                      const struct onode_progress *progress);

// Gives a volume that nobody has open the state of one of its snapshots again: what has changed
// since is given up. Snapshots stay, those that were taken later, too; one that is taken right
// before keeps what is given up. Clones stay. Returns how many changes of objects that took, 0 if
// nothing had changed, -1 on failure; `progress` is told how many there were so far. Stopped by it
// (ECANCELED) or by a crash it is brought to its end when the volume is opened for writing next.
// `key` is NULL for a volume that is not encrypted. ENOENT if there is no such snapshot, EBUSY for
// a volume that is open, ENOKEY; EINVAL on storage-class memory that processes share.
//
// # Safety
// `spec` and `name` are strings, `key` is NULL or a key whose `bytes` are `length` bytes;
// `progress` is NULL or one that can be called.
int64_t onode_roll_back(const char *spec,
                        const char *name,
                        const struct onode_key *key,
                        const struct onode_progress *progress);

// Reads and verifies all that an open volume holds, snapshots and clones, too, and writes again
// what is damaged and has a good copy; of a volume that is open for reading only it changes
// nothing. Files may be used meanwhile. Returns 0 if all can be read, 1 if something cannot, -1
// on failure; `found`, which may be NULL, tells what was found. `progress` is told bytes. Stopped
// by it (ECANCELED) the volume keeps how far it is, and with `resumes` other than 0 the next scrub
// goes on from there. EBUSY if another one is at work, EOPNOTSUPP on storage-class memory, which
// keeps no checksums of content.
//
// # Safety
// `volume` came from a function that opens volumes, `found` is NULL or a place for the answer;
// `progress` is NULL or one that can be called.
int onode_scrub(struct onode_heap *volume,
                int resumes,
                struct onode_scrubbed *found,
                const struct onode_progress *progress);

// Lists what the last scrub of a volume that came to its end found damaged, in this run or an
// earlier one, at most 64 ranges: fills in as many as `count`, and returns how many there are; -1
// on failure. Of a volume that was never scrubbed there are none.
//
// # Safety
// `volume` came from a function that opens volumes, `ranges` has room for `count` ranges, or
// `count` is 0.
int onode_list_damage(struct onode_heap *volume, struct onode_damage *ranges, size_t count);

// What went wrong in the last call of this thread that failed, in words; valid until the next one
// fails.
const char *onode_error(void);

// The `errno` of the last call of this thread that failed, whatever has changed `errno` since; 0
// if none has.
int onode_errno(void);

// What an `errno` of these functions means in general, in words; `onode_error` tells about the one
// call.
const char *onode_strerror(int number);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ONODE_H */
