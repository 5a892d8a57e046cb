//! The key that a call is given, for as long as the call needs it.
//!
//! The library keeps no key: it has a copy of its own while it opens a volume, which it wipes
//! afterwards, and no message says anything of it. What a program has itself it wipes itself.

use crate::arguments::words_of;
use crate::error::{Failure, Outcome};
use onode::Spec;
use onode::keys::{Anchor, KeyAgent, KeyCost, NewKey, Secret, set_key_agent};
use onode_base::ErrorKind;
use std::cell::RefCell;
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;
use zeroize::Zeroizing;

/// The key is a passphrase: words that a person remembers.
pub const ONODE_PASSPHRASE: c_int = 1;
/// The key is what a key file holds: random bytes, 32 or more.
pub const ONODE_KEY_BYTES: c_int = 2;
/// The key is in a file of such random bytes, and `bytes` is the path of that file.
pub const ONODE_KEY_FILE: c_int = 3;

/// The most bytes of a key.
const KEY_BYTES_MAX: usize = 64 << 10;

/// A key of an encrypted volume. Fields that are 0 mean what their lines say, so a program names
/// only `kind`, `bytes` and `length`. The library copies the key when it is called, wipes the copy
/// before it returns, and never shows it in an error; the program wipes what it has itself.
#[repr(C)]
pub struct GivenKey {
    /// ONODE_PASSPHRASE, ONODE_KEY_BYTES or ONODE_KEY_FILE.
    pub kind: c_int,
    /// Of a passphrase that a volume gets: KiB of memory that it takes to try one (Argon2id); 0 is
    /// 65,536.
    pub memory_kib: u32,
    /// Of the same: passes over that memory; 0 is 3.
    pub passes: u32,
    /// The passphrase, the random bytes, or the path; no zero byte has to end them.
    pub bytes: *const c_void,
    /// How many bytes that are, at most 65,536.
    pub length: usize,
    /// Of a key that a volume gets: what people call it, at most 64 bytes; NULL is no name.
    pub label: *const c_char,
}

/// A key that a volume gets.
pub(crate) struct FirstKey<'a> {
    secret: Secret,
    label: &'a str,
    cost: KeyCost,
}

impl FirstKey<'_> {
    pub(crate) const fn new_key(&self) -> NewKey<'_> {
        NewKey { secret: &self.secret, label: self.label, cost: self.cost }
    }

    pub(crate) fn secret(&self) -> Secret {
        self.secret.clone()
    }
}

/// What opens a volume, as C says it.
///
/// # Safety
/// `key` is null or a key whose `bytes` are `length` bytes.
pub(crate) unsafe fn secret_of(key: *const GivenKey) -> Outcome<Secret> {
    // SAFETY: the caller's promise.
    let key = unsafe { key.as_ref() }.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no key: the pointer is NULL"))?;
    if key.length > KEY_BYTES_MAX {
        return Err(Failure::new(ErrorKind::Invalid, format!("a key has at most {KEY_BYTES_MAX} bytes")));
    }
    if key.bytes.is_null() {
        return Err(Failure::new(ErrorKind::Invalid, "the bytes of the key are NULL"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(key.bytes.cast::<u8>(), key.length) };
    let secret = match key.kind {
        ONODE_PASSPHRASE => Secret::passphrase(bytes.to_vec()),
        ONODE_KEY_BYTES => Secret::key_file(bytes.to_vec()),
        ONODE_KEY_FILE => Secret::key_file(content_of(OsStr::from_bytes(bytes))?.to_vec()),
        kind => return Err(Failure::new(ErrorKind::Invalid, format!("{kind} is no kind of key"))),
    };
    secret.map_err(|error| Failure::new(ErrorKind::Invalid, error.detail))
}

/// A key that a volume is to get, as C says it.
///
/// # Safety
/// As [`secret_of`]; its `label` is null or a string.
pub(crate) unsafe fn first_key_of<'a>(key: *const GivenKey) -> Outcome<FirstKey<'a>> {
    // SAFETY: the caller's promise.
    let secret = unsafe { secret_of(key) }?;
    // SAFETY: the caller's promise.
    let Some(key) = (unsafe { key.as_ref() }) else { return Err(Failure::new(ErrorKind::Invalid, "no key")) };
    // SAFETY: the caller's promise.
    let label = if key.label.is_null() { "" } else { unsafe { words_of(key.label) }? };
    let or = |number: u32, usual: u32| if number == 0 { usual } else { number };
    let usual = KeyCost::DEFAULT;
    let cost =
        KeyCost { memory_kib: or(key.memory_kib, usual.memory_kib), passes: or(key.passes, usual.passes), ..usual };
    Ok(FirstKey { secret, label, cost })
}

/// What a key file holds. Its path stays untold: a program that mixes up the kinds of keys would
/// find a passphrase in the message.
fn content_of(path: &OsStr) -> Outcome<Zeroizing<Vec<u8>>> {
    let failed = |error: std::io::Error| Failure::host("cannot read the key file", &error);
    // With room for all of it no part of it is left behind where it was first.
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX + 1));
    let file = File::open(path).map_err(failed)?;
    file.take(KEY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > KEY_BYTES_MAX {
        return Err(Failure::new(ErrorKind::Invalid, format!("a key file has at most {KEY_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// What this thread's call was given.
struct Given {
    secret: Secret,
    was_asked_for: bool,
    /// The state of the volume that it expects.
    anchor: Option<Anchor>,
}

thread_local! {
    static GIVEN: RefCell<Option<Given>> = const { RefCell::new(None) };
}

/// Who is asked by whatever opens a volume: each call has its own key.
struct KeysOfCalls;

impl KeyAgent for KeysOfCalls {
    fn secret(&self, _: &Spec, attempt: u32) -> onode::Result<Option<Secret>> {
        let given = |given: &mut Given| {
            given.was_asked_for = true;
            (attempt == 0).then(|| given.secret.clone())
        };
        Ok(GIVEN.with_borrow_mut(|all| all.as_mut().and_then(given)))
    }

    fn anchor(&self, _: &Spec) -> Option<Anchor> {
        GIVEN.with_borrow(|given| given.as_ref().and_then(|given| given.anchor))
    }
}

/// Whether calls are asked; not in a program that has keys from elsewhere.
static IS_ASKED: LazyLock<bool> = LazyLock::new(|| set_key_agent(Box::new(KeysOfCalls)));

/// A key in use by this thread; it is wiped when this is dropped.
pub(crate) struct KeyInUse {
    /// The one of a call within which this call was made.
    before: Option<Given>,
}

impl KeyInUse {
    /// Has whatever this thread opens use a key.
    pub(crate) fn begin(secret: Secret) -> Outcome<Self> {
        if !*IS_ASKED {
            return Err(Failure::new(ErrorKind::Busy, "this program has the keys of volumes from elsewhere"));
        }
        let before = GIVEN.replace(Some(Given { secret, was_asked_for: false, anchor: None }));
        Ok(Self { before })
    }

    /// Has it refuse what is older than a state that was noted.
    pub(crate) fn expecting(self, anchor: Option<Anchor>) -> Self {
        GIVEN.with_borrow_mut(|given| given.iter_mut().for_each(|given| given.anchor = anchor));
        self
    }

    /// Whether something was encrypted that this thread opened since one is in use.
    pub(crate) fn was_asked_for() -> bool {
        GIVEN.with_borrow(|given| given.as_ref().is_some_and(|given| given.was_asked_for))
    }
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        drop(GIVEN.replace(self.before.take()));
    }
}
