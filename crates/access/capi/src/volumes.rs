//! Volumes on any kind of device, and their snapshots and clones as places for files.

pub(crate) mod authenticated;
pub(crate) mod clones;
pub(crate) mod compressed;
pub(crate) mod directory_keys;
pub(crate) mod encrypted;
pub(crate) mod key_slots;
pub(crate) mod keys;
pub(crate) mod pipe;
pub(crate) mod progress;
pub(crate) mod quotas;
pub(crate) mod resize;
pub(crate) mod scrub;
pub(crate) mod snapshots;
pub(crate) mod streams;

use crate::arguments::{text_of, words_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{Held, OnodeHeap, files_of, is_forgotten, volume_of};
use crate::volumes::clones::clones_of;
use crate::volumes::snapshots::snapshots_of;
use onode::{Class, CreateOptions, FileSystem, MountOptions, Spec, Volume};
use onode_base::ErrorKind;
use onode_fs::{Caller, WriteMode};
use onode_heap::caller;
use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Units of background work in one tick: a tick is short beside what a user waits for.
const STEPS: u32 = 4;

/// Opens the volume that `spec` names, such as "flash:disk.img,size=64M" or
/// "tier:fast.img,big.img". All functions for files take it as a heap; it has no memory.
/// "disk.img@NAME" is a snapshot of it, to be read (O_RDONLY), or a clone. Of `flags`, as for
/// `open(2)`, the access mode counts; O_CREAT makes a volume that is not there, which only one of
/// several processes does; with O_SYNC every call is durable when it returns, without it when
/// `onode_fsync`, `onode_sync` or `onode_close_volume` has returned. What is made in it belongs to
/// the effective user and group of the process, and no permissions are asked for.
///
/// A volume that is open already gives EBUSY, but any number may read one. One on memory is shared
/// by all who open it to change it, heaps among them; with O_RDONLY it is not, and who changes it
/// and who reads it keep each other out. Whoever changes it waits up to two seconds for those who
/// read it, commands among them.
///
/// # Safety
/// `spec` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_volume(spec: *const c_char, flags: c_int) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let text = OsStr::from_bytes(unsafe { text_of(spec) }?);
        let volume = opened(text, flags, mount_options(flags), &Volume::create)?;
        OnodeHeap::handed_out(Held::Volume(Arc::new(volume)))
    })
}

/// How the flags of `open(2)` have a volume opened.
pub(crate) fn mount_options(flags: c_int) -> MountOptions {
    MountOptions {
        read_only: flags & libc::O_ACCMODE == libc::O_RDONLY,
        write_mode: if flags & libc::O_SYNC == libc::O_SYNC { WriteMode::WriteThrough } else { WriteMode::WriteBack },
        ..MountOptions::default()
    }
}

/// The volume, snapshot or clone that a text names; with O_CREAT among `flags`, `make` makes a
/// volume that is not there.
pub(crate) fn opened(
    text: &OsStr,
    flags: c_int,
    options: MountOptions,
    make: &dyn Fn(&Spec, &CreateOptions) -> onode::Result<()>,
) -> onode::Result<Volume> {
    if let Some((image, name)) = Spec::state_of(text) {
        return Volume::open_state(&Spec::from_argument(OsStr::new(image))?, name, options);
    }
    let spec = Spec::from_argument(text)?;
    let is_there = || spec.image_path().is_none_or(Path::exists);
    let made = || {
        let Caller { uid, gid, .. } = caller();
        match make(&spec, &CreateOptions { uid, gid, ..CreateOptions::default() }) {
            // Another process has made it meanwhile.
            Err(error) if error.class == Class::Exists && is_there() => Ok(()),
            other => other,
        }
    };
    let makes = flags & libc::O_CREAT != 0;
    if makes && !is_there() {
        made()?;
    }
    match Volume::open(&spec, options.clone()) {
        // Another process has made one disk of it, and waits with the other one: this waits for it.
        Err(error) if makes && error.class == Class::NotFound && spec.image_path().is_some() => {
            made().and_then(|()| Volume::open(&spec, options))
        }
        other => other,
    }
}

/// Opens a snapshot, to be read, or a clone, to be changed, beside its volume. All functions for
/// files take it as a heap; it is a file system of its own, and `onode_close_volume` closes it.
/// ENOENT if there is none of that name. One that is deleted meanwhile gives ESTALE.
///
/// # Safety
/// `volume` came from `onode_open_volume`, `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_open_state(volume: *mut OnodeHeap, name: *const c_char) -> *mut OnodeHeap {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, name) = unsafe { (volume_of(volume)?, words_of(name)?) };
        let files = state_files(volume, name)?;
        OnodeHeap::handed_out(Held::State { files, _of: Arc::clone(volume) })
    })
}

fn state_files(volume: &Volume, name: &str) -> Outcome<Arc<FileSystem>> {
    let snapshots = snapshots_of(volume)?;
    if let Some(snapshot) = snapshots.named(name) {
        return Ok(snapshots.files(snapshot.generation)?);
    }
    let clones = clones_of(volume)?;
    let none = || Failure::new(ErrorKind::NotFound, format!("there is no snapshot and no clone `{name}`"));
    Ok(clones.files(clones.named(name).ok_or_else(none)?.generation)?)
}

/// Makes everything durable that was done so far through a handle.
///
/// # Safety
/// `volume` came from `onode_open_volume` or another function that opens files, and is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_sync(volume: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        unsafe { files_of(volume) }?.system().sync()?;
        Ok(0)
    })
}

/// Does what a mount does about once a second, for programs that keep a volume open: writes back
/// what has waited for 5 s, aborts transactions that nobody used for long, and does a little
/// background work: cleaning, moving what may soon not be read any more, removing what deleted
/// snapshots kept. 1 if there is more of that, 0 if not, -1 on failure. A program that never calls
/// it loses nothing that is durable; its commits do the cleaning that they need.
///
/// # Safety
/// `volume` came from `onode_open_volume`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_tick(volume: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let upkeep = unsafe { volume_of(volume) }?.upkeep();
        upkeep.tick();
        Ok(c_int::from(upkeep.work(STEPS)?))
    })
}

/// Closes a volume, or a snapshot or clone that `onode_open_state` opened; descriptors are closed,
/// and everything is durable. A volume stays open and this fails with EBUSY as long as snapshots,
/// clones or transactions of it are open. After any other failure the pointer is none any more.
///
/// # Safety
/// `volume` came from `onode_open_volume` or `onode_open_state`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_close_volume(volume: *mut OnodeHeap) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        if unsafe { is_forgotten(volume) } {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        match &unsafe { files_of(volume) }?.held {
            Held::Volume(opened) if Arc::strong_count(opened) > 1 => {
                let words = "snapshots, clones or transactions of the volume are open";
                return Err(Failure::new(ErrorKind::Busy, words));
            }
            Held::Volume(_) | Held::State { .. } => {}
            Held::Memory { .. } | Held::Transaction { .. } => {
                return Err(Failure::new(ErrorKind::Invalid, "it is a heap or a transaction, and no volume"));
            }
        }
        // SAFETY: the pointer came from a box, and this is the last use of it.
        let opened = unsafe { Box::from_raw(volume) };
        opened.files.close_all(opened.system());
        match &opened.held {
            Held::Volume(volume) => volume.close()?,
            _ => match opened.system().sync() {
                // It was deleted, and nobody misses what was not yet in it.
                Err(error) if error.kind == ErrorKind::Stale => {}
                other => other?,
            },
        }
        Ok(0)
    })
}
