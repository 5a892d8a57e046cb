//! Errors as C wants them: `errno`, and words on demand.

use onode::Class;
use onode_base::ErrorKind;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::sync::LazyLock;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
    static LAST_NUMBER: Cell<c_int> = const { Cell::new(0) };
}

/// What went wrong in the last call of this thread that failed, in words; valid until the next one
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn onode_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// The `errno` of the last call of this thread that failed, whatever has changed `errno` since; 0
/// if none has.
#[unsafe(no_mangle)]
pub extern "C" fn onode_errno() -> c_int {
    LAST_NUMBER.get()
}

/// What each number of `errno` that is used here means.
static MEANINGS: LazyLock<BTreeMap<c_int, CString>> = LazyLock::new(|| {
    let mut meanings: BTreeMap<c_int, String> = BTreeMap::from([(0, "no error".to_owned())]);
    for kind in ErrorKind::ALL {
        let meaning = meanings.entry(kind.errno()).or_default();
        let or = if meaning.is_empty() { "" } else { " or " };
        meaning.push_str(or);
        meaning.push_str(kind.describe());
    }
    meanings.insert(libc::ECANCELED, "the program stopped it".to_owned());
    meanings.into_iter().map(|(number, words)| (number, CString::new(words).unwrap_or_default())).collect()
});

/// What an `errno` of these functions means in general, in words; `onode_error` tells about the one
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn onode_strerror(number: c_int) -> *const c_char {
    MEANINGS.get(&number).map_or(c"no error of Onode".as_ptr(), |words| words.as_ptr())
}

fn set(failure: &Failure) {
    let words = CString::new(failure.words.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = words);
    LAST_NUMBER.set(failure.number);
    // SAFETY: the location of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = failure.number };
}

/// An error on its way to C.
pub(crate) struct Failure {
    number: c_int,
    words: String,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, words: impl Into<String>) -> Self {
        Self { number: kind.errno(), words: words.into() }
    }

    /// Whether it is of that kind, as far as its number tells.
    pub(crate) fn is(&self, kind: ErrorKind) -> bool {
        self.number == kind.errno()
    }

    /// The program itself ended it; how things stand now.
    pub(crate) fn stopped(words: impl Into<String>) -> Self {
        Self { number: libc::ECANCELED, words: words.into() }
    }

    /// What the operating system answered.
    pub(crate) fn host(what: &str, error: &io::Error) -> Self {
        Self { number: error.raw_os_error().unwrap_or(libc::EIO), words: format!("{what}: {error}") }
    }
}

impl From<onode_heap::Error> for Failure {
    fn from(error: onode_heap::Error) -> Self {
        Self::new(error.kind, error.detail)
    }
}

impl From<onode_fs::Error> for Failure {
    fn from(error: onode_fs::Error) -> Self {
        Self::new(error.kind, error.to_string())
    }
}

impl From<onode::Error> for Failure {
    fn from(error: onode::Error) -> Self {
        let kind = match error.class {
            Class::Usage | Class::NotAnImage | Class::NewerFormat | Class::BadSize => ErrorKind::Invalid,
            Class::Damaged => ErrorKind::Corrupt,
            Class::Loss => ErrorKind::Loss,
            Class::InUse | Class::Conflict => ErrorKind::Busy,
            Class::ReadOnly => ErrorKind::ReadOnly,
            Class::VolumeFull => ErrorKind::NoSpace,
            Class::HostFull => ErrorKind::HostFull,
            Class::OverLimit => ErrorKind::QuotaExceeded,
            Class::NotFound => ErrorKind::NotFound,
            Class::Exists => ErrorKind::Exists,
            Class::Permission => ErrorKind::AccessDenied,
            Class::Key => ErrorKind::KeyNeeded,
            _ => ErrorKind::Media,
        };
        Self::new(kind, error.to_string())
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

/// What a function returns that fails.
pub(crate) trait Failed {
    const FAILED: Self;
}

impl Failed for i32 {
    const FAILED: Self = -1;
}

impl Failed for i64 {
    const FAILED: Self = -1;
}

impl Failed for isize {
    const FAILED: Self = -1;
}

impl Failed for u64 {
    const FAILED: Self = 0;
}

impl Failed for usize {
    const FAILED: Self = 0;
}

impl<T> Failed for *mut T {
    const FAILED: Self = std::ptr::null_mut();
}

impl<T> Failed for *const T {
    const FAILED: Self = std::ptr::null();
}

/// Runs the body of a function; a failure sets `errno` and the words.
pub(crate) fn answer<T: Failed>(body: impl FnOnce() -> Outcome<T>) -> T {
    let bug = |_| Err(Failure::new(ErrorKind::Media, "a bug in Onode; please report it"));
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or_else(bug) {
        Ok(value) => value,
        Err(failure) => {
            set(&failure);
            T::FAILED
        }
    }
}
