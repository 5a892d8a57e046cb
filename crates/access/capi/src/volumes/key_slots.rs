//! The key slots of an encrypted volume: each of its keys has one.

use crate::arguments::{name_field, places_of, spec_of};
use crate::error::{Outcome, answer};
use crate::volumes::keys::{GivenKey, KeyInUse, ONODE_KEY_BYTES, ONODE_PASSPHRASE, first_key_of, secret_of};
use onode::Spec;
use onode::keys::{KeySlot, SlotKind, VolumeKeys};
use std::ffi::{c_char, c_int};

/// A key slot of an encrypted volume.
#[repr(C)]
pub struct ListedSlot {
    /// Its number, which it keeps.
    pub number: u32,
    /// What opens it: ONODE_PASSPHRASE, or ONODE_KEY_BYTES, which may come from a file; 0 for a
    /// slot that needs no key (`onode mkfs --encrypt-directories`), is damaged, or of a newer
    /// version.
    pub kind: c_int,
    /// Of a passphrase: KiB of memory that it takes to try one (Argon2id).
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// What people call it, ended by a zero byte.
    pub label: [c_char; 256],
}

impl ListedSlot {
    fn of(slot: &KeySlot) -> Self {
        let (kind, cost) = match slot.kind() {
            SlotKind::Passphrase => (ONODE_PASSPHRASE, Some(slot.cost())),
            SlotKind::KeyFile => (ONODE_KEY_BYTES, None),
            // No key of any kind is needed.
            SlotKind::Open => (0, None),
        };
        Self {
            number: slot.id(),
            kind,
            memory_kib: cost.map_or(0, |cost| cost.memory_kib),
            passes: cost.map_or(0, |cost| cost.passes),
            label: name_field(slot.label().as_bytes()),
        }
    }

    fn unreadable(number: u32) -> Self {
        Self { number, kind: 0, memory_kib: 0, passes: 0, label: name_field(b"") }
    }
}

/// Does something with the key slots of a volume, and closes it whatever comes of that.
fn with_slots<T>(spec: &Spec, read_only: bool, act: impl FnOnce(&mut VolumeKeys) -> onode::Result<T>) -> Outcome<T> {
    let mut keys = VolumeKeys::open(spec, read_only)?;
    let done = act(&mut keys);
    let closed = keys.close();
    let done = done?;
    closed?;
    Ok(done)
}

/// Lists the key slots of a volume that nobody has open: fills in as many as `count`, and returns
/// how many there are, at most 32; -1 on failure. It takes no key. EINVAL for a volume that is not
/// encrypted, EBUSY if it is open.
///
/// # Safety
/// `spec` is a string, `slots` has room for `count` slots, or `count` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_list_keys(spec: *const c_char, slots: *mut ListedSlot, count: usize) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, places) = unsafe { (spec_of(spec)?, places_of(slots, count)?) };
        let found = with_slots(&spec, true, |keys| {
            let unreadable = keys.unknown().iter().map(|number| ListedSlot::unreadable(*number));
            Ok(keys.slots().iter().map(ListedSlot::of).chain(unreadable).collect::<Vec<_>>())
        })?;
        let there = found.len() as c_int;
        places.iter_mut().zip(found).for_each(|(place, slot)| *place = slot);
        Ok(there)
    })
}

/// Which slot a key opens, of a volume that nobody has open: its number, -1 on failure. ENOKEY if
/// it opens none.
///
/// # Safety
/// `spec` is a string, `key` a key whose `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_test_key(spec: *const c_char, key: *const GivenKey) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, secret) = unsafe { (spec_of(spec)?, secret_of(key)?) };
        let _in_use = KeyInUse::begin(secret)?;
        Ok(with_slots(&spec, true, VolumeKeys::test)? as c_int)
    })
}

/// Adds a key to a volume that nobody has open, next to `key`, which opens it: returns the number
/// of the new slot, -1 on failure. Files are not written anew for it. ENOSPC if there are 32 slots;
/// otherwise as `onode_open_encrypted`.
///
/// # Safety
/// `spec` is a string, both keys are keys whose `bytes` are `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_add_key(spec: *const c_char, key: *const GivenKey, new_key: *const GivenKey) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, secret, new) = unsafe { (spec_of(spec)?, secret_of(key)?, first_key_of(new_key)?) };
        let _in_use = KeyInUse::begin(secret)?;
        Ok(with_slots(&spec, false, |keys| keys.add(&new.new_key()))? as c_int)
    })
}

/// Puts a key in the place of `key`, which opens the volume no more: returns the number of the new
/// slot, -1 on failure, and then the old one opens it as before. Otherwise as `onode_add_key`: with
/// 32 slots one has to be removed first.
///
/// # Safety
/// As [`onode_add_key`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_change_key(
    spec: *const c_char,
    key: *const GivenKey,
    new_key: *const GivenKey,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, secret, new) = unsafe { (spec_of(spec)?, secret_of(key)?, first_key_of(new_key)?) };
        let _in_use = KeyInUse::begin(secret)?;
        let changed = with_slots(&spec, false, |keys| keys.change(&new.new_key()).map(|(number, _)| number))?;
        Ok(changed as c_int)
    })
}

/// Removes a slot of a volume that nobody has open, with `key`, whose own slot stays: EINVAL if it
/// is the one that is to go, so that somebody can open the volume afterwards. ENOENT if there is no
/// such slot; otherwise as `onode_open_encrypted`.
///
/// # Safety
/// As [`onode_test_key`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_remove_key(spec: *const c_char, key: *const GivenKey, slot: u32) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, secret) = unsafe { (spec_of(spec)?, secret_of(key)?) };
        let _in_use = KeyInUse::begin(secret)?;
        with_slots(&spec, false, |keys| keys.remove(&[slot]))?;
        Ok(0)
    })
}
