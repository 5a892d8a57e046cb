//! Mapped memory that is gone below its mapping: a file that was cut short, a page of a device that
//! went bad.
//!
//! The kernel tells by SIGBUS, in the middle of a load or a store, and ends the process unless
//! somebody takes the signal. It is taken here, for the ranges that are [guarded](Guard) and for no
//! other: a private page of zeros is put in the place of the one that is gone, so that the load or
//! store goes on, and the range is marked as lost. Nothing of that page reaches the file any more.
//! Whoever uses the range asks for the mark before it believes what it read or says that anything
//! is durable.
//!
//! Faults elsewhere go to whoever had the signal before. The handler is put in place with the first
//! guarded range of a process and stays; a program that takes the signal later and does not pass it
//! on is ended by such a fault as before.
#![allow(unsafe_code, reason = "sigaction(2) and mmap(2) have no safe face")]

use alloc::boxed::Box;
use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// A range that a signal handler may ask about. Entries are never freed, only used again.
struct Entry {
    /// 0 while nobody uses it.
    start: AtomicUsize,
    end: AtomicUsize,
    /// What the range can be mapped in.
    page_bytes: AtomicUsize,
    is_lost: AtomicBool,
    is_taken: AtomicBool,
    next: AtomicPtr<Entry>,
}

/// All entries there ever were.
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// What was done about the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: an entry is linked when it is complete and lives for ever.
    let at = |entry: &AtomicPtr<Entry>| unsafe { entry.load(Ordering::Acquire).as_ref() };
    core::iter::successors(at(&ENTRIES), move |entry| at(&entry.next))
}

/// A guarded range, as long as the value lives.
pub(super) struct Guard(&'static Entry);

impl Guard {
    /// Guards the `bytes` from `start` on, which are mapped as long as the value lives, in pages of
    /// `page_bytes`.
    pub(super) fn of(start: NonNull<u8>, bytes: usize, page_bytes: usize) -> Self {
        install();
        let free = entries()
            .find(|entry| entry.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok());
        let entry = free.unwrap_or_else(new_entry);
        entry.is_lost.store(false, Ordering::Relaxed);
        entry.page_bytes.store(page_bytes, Ordering::Relaxed);
        entry.end.store(start.addr().get() + bytes, Ordering::Relaxed);
        entry.start.store(start.addr().get(), Ordering::Release);
        Self(entry)
    }

    /// Whether any part of the range is gone.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.0.is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

/// An entry that its maker has, linked for ever.
fn new_entry() -> &'static Entry {
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        page_bytes: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
        is_taken: AtomicBool::new(true),
        next: AtomicPtr::new(null_mut()),
    }));
    let new = core::ptr::from_ref(entry).cast_mut();
    let mut first = ENTRIES.load(Ordering::Acquire);
    loop {
        entry.next.store(first, Ordering::Relaxed);
        match ENTRIES.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return entry,
            Err(other) => first = other,
        }
    }
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Takes the signal, once in a process.
fn install() {
    // Miri knows no signals.
    if cfg!(miri) {
        return;
    }
    BEFORE.get_or_init(|| {
        // SAFETY: all zeros is a value of the type: no handler, no flags, an empty set.
        let (mut own, mut before) = unsafe { (core::mem::zeroed::<libc::sigaction>(), core::mem::zeroed()) };
        own.sa_sigaction = handle as Handler as libc::sighandler_t;
        // On the stack for signals, if the thread has one; and a second fault while one is handled
        // ends the process.
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: both are valid, and the handler does only what a handler may. If it fails, all is
        // as it was.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const own, &raw mut before) };
        before
    });
}

/// The handler. It loads and stores atomic numbers and calls the kernel, and nothing else.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands in a valid description; of a fault it has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // A signal that somebody sent is no fault.
    if code > 0 && replace_page(address) {
        return;
    }
    pass_on(signal, info, context);
}

/// Puts zeros in the place of the page at an address, if it is guarded; whether it did.
fn replace_page(address: usize) -> bool {
    let is_inside = |entry: &&Entry| {
        let start = entry.start.load(Ordering::Acquire);
        start != 0 && (start..entry.end.load(Ordering::Relaxed)).contains(&address)
    };
    let Some(entry) = entries().find(is_inside) else { return false };
    // Before anything can be read there.
    entry.is_lost.store(true, Ordering::Release);
    let bytes = entry.page_bytes.load(Ordering::Relaxed);
    let page = (address - address % bytes) as *mut c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: errno is this thread's, and as it was when the handler returns.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: a page of a guarded range, whose owner touches it through pointers only and knows
    // that what others store there may change under it; what was mapped is gone.
    let mapped = unsafe { libc::mmap(page, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    mapped != libc::MAP_FAILED
}

/// Does what would have been done without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let wants_all = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: as in `handle`.
    let is_fault = unsafe { (*info).si_code } > 0;
    match handler {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sets what is done by default and sends a signal, which comes when the handler
            // has returned: the end of the process, as it would have been.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: what was registered with that flag is such a function.
        _ if wants_all => unsafe {
            core::mem::transmute::<libc::sighandler_t, Handler>(handler)(signal, info, context);
        },
        // SAFETY: what was registered without it is one of these.
        _ => unsafe {
            core::mem::transmute::<libc::sighandler_t, extern "C" fn(c_int)>(handler)(signal);
        },
    }
}
