//! Whether the kernel offers FUSE over io_uring, and the processors it has queues for.

use io_uring::{IoUring, cqueue, squeue};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io;

const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// What the kernel says to FUSE over io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// New mounts can have it.
    Offered,
    /// The kernel has it, and nobody has switched it on.
    SwitchedOff,
    /// The kernel has no io_uring, or forbids it to this process.
    Forbidden,
    /// The kernel does not know it.
    Unknown,
}

/// Asks the kernel. Nothing is changed.
#[must_use]
pub fn offer() -> Offer {
    match fs::read_to_string(SWITCH) {
        Err(_) => Offer::Unknown,
        Ok(_) if small_ring().is_err() => Offer::Forbidden,
        Ok(state) if state.trim() == "Y" => Offer::Offered,
        Ok(_) => Offer::SwitchedOff,
    }
}

/// Switches it on for mounts to come, of everybody. Only root may.
///
/// # Errors
/// That of the kernel.
pub fn switch_on() -> io::Result<()> {
    fs::write(SWITCH, "Y")
}

fn small_ring() -> io::Result<IoUring<squeue::Entry128, cqueue::Entry>> {
    IoUring::<squeue::Entry128, cqueue::Entry>::builder().setup_single_issuer().setup_defer_taskrun().build(1)
}

/// How many processors the kernel may ever have; each of them has a queue, and no request is served
/// before each queue has a slot.
///
/// # Errors
/// If the kernel does not tell.
pub fn processors() -> io::Result<u16> {
    count(fs::read_to_string(POSSIBLE)?.trim()).ok_or_else(|| io::Error::other(format!("{POSSIBLE} makes no sense")))
}

/// The number of processors in a list such as `0-3,6`.
fn count(list: &str) -> Option<u16> {
    let one = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').try_fold(0_u16, |sum, range| sum.checked_add(one(range)?))
}

/// The processors, of so many, on which this thread may run.
#[must_use]
pub fn may_run_on(processors: u16) -> Vec<u16> {
    let allowed = sched_getaffinity(None);
    let is_allowed = |one: u16| {
        let one = usize::from(one);
        one < CpuSet::MAX_CPU && allowed.as_ref().is_ok_and(|allowed| allowed.is_set(one))
    };
    (0..processors).filter(|one| is_allowed(*one)).collect()
}

/// Keeps this thread on one processor. If that is not allowed, it runs where it did.
pub fn pin_to(processor: u16) {
    let one = usize::from(processor);
    if one < CpuSet::MAX_CPU {
        let mut set = CpuSet::new();
        set.set(one);
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, found) in [("0", Some(1)), ("0-1", Some(2)), ("0-3,6,8-9", Some(7)), ("0-65535", None)] {
            assert_eq!(count(list), found, "{list}");
        }
        for list in ["", "a", "3-1", "1-", "0,"] {
            assert_eq!(count(list), None, "{list}");
        }
    }

    #[test]
    fn this_machine_has_processors() {
        let all = processors().unwrap();
        let mine = may_run_on(all);
        assert!(all > 0 && !mine.is_empty() && mine.iter().all(|one| *one < all));
    }
}
