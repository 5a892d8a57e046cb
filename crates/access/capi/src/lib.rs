//! Onode for C: the names of paper 2, Table 1, the calls around them, and volumes on any device.
//!
//! Nothing is decided here: every function turns its arguments into those of [`onode_heap`] or
//! [`onode`] and the answer into what C expects, a pointer or a number, `errno` and words.
//! `include/onode.h` is made from this crate; a test compares.
//!
//! Functions trust their pointers as C does; what can be checked (blocks, descriptors, paths) is.

mod arena;
mod arguments;
mod descriptors;
mod error;
mod files;
mod handle;
mod memory;
mod roots;
mod slots;
mod transactions;
mod volumes;

pub use arena::{
    Cost, OnodeArena, Saved, onode_arena_alloc, onode_arena_commit, onode_arena_copy_ahead, onode_arena_free,
    onode_arena_freeze, onode_arena_root, onode_arena_set_root, onode_arena_start, onode_checkpoint, onode_close_arena,
    onode_create_arena, onode_list_checkpoints, onode_remove_arena, onode_remove_checkpoint, onode_restore_arena,
};
pub use error::{onode_errno, onode_error, onode_strerror};
pub use files::hints::{onode_hint, onode_set_hint};
pub use files::{
    Name, Stat, onode_close, onode_creat, onode_fsync, onode_lseek, onode_mkdir, onode_open, onode_pread, onode_pwrite,
    onode_read, onode_readdir, onode_rename, onode_rmdir, onode_stat_path, onode_truncate, onode_unlink, onode_write,
};
pub use handle::OnodeHeap;
pub use memory::{
    ONODE_DROP, ONODE_KEEP, file_to_mm, mm_to_file, onode_alloc, onode_block_size, onode_calloc, onode_close_heap,
    onode_file_to_mm, onode_free, onode_heap_start, onode_map, onode_mm_to_file, onode_offset, onode_open_heap,
    onode_pointer, onode_realloc, onode_unmap, onode_use,
};
pub use roots::{onode_remove_root, onode_root, onode_set_root};
pub use slots::{OnodeSlots, onode_close_slots, onode_fill_slot, onode_open_slots, onode_slot, onode_take_slot};
pub use transactions::{onode_tx_abort, onode_tx_begin, onode_tx_commit};
pub use volumes::authenticated::{onode_note_anchor, onode_open_authenticated};
pub use volumes::clones::{MadeClone, onode_clone_bytes, onode_delete_clone, onode_list_clones, onode_make_clone};
pub use volumes::compressed::onode_open_compressed;
pub use volumes::directory_keys::{onode_lock_directories, onode_new_directory_key, onode_unlock_directories};
pub use volumes::encrypted::onode_open_encrypted;
pub use volumes::key_slots::{
    ListedSlot, onode_add_key, onode_change_key, onode_list_keys, onode_remove_key, onode_test_key,
};
pub use volumes::keys::{GivenKey, ONODE_KEY_BYTES, ONODE_KEY_FILE, ONODE_PASSPHRASE};
pub use volumes::progress::CallProgress;
pub use volumes::quotas::{
    LimitTold, ONODE_NO_LIMIT, ONODE_QUOTA_DIRECTORY, ONODE_QUOTA_GROUP, ONODE_QUOTA_USER, onode_directory_path,
    onode_list_quotas, onode_remove_quota, onode_set_quota,
};
pub use volumes::resize::{VolumeExtent, onode_resize, onode_volume_extent};
pub use volumes::scrub::{DamagedBytes, Scrubbed, onode_list_damage, onode_scrub};
pub use volumes::snapshots::{
    TakenSnapshot, onode_clean_snapshots, onode_delete_snapshot, onode_list_snapshots, onode_snapshot_bytes,
    onode_take_snapshot,
};
pub use volumes::streams::{ReceivingOptions, onode_receive, onode_roll_back, onode_send};
pub use volumes::{onode_close_volume, onode_open_state, onode_open_volume, onode_sync, onode_tick};
