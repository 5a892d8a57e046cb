//! How often the kernel asked for what, one counter for each kind of request, and which way the
//! requests come.
//!
//! What a call of a program costs is decided by how many requests it makes; with the counters
//! `onode stat`, a test or a benchmark can tell. Kinds that were never asked for are not listed.
//! Nothing is decided by them. Beside them it is known which requests are being served.

pub mod in_service;

use crate::request::counts::in_service::{InService, ServedRequest};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What the kernel asks for, in the field's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Lookup,
    Forget,
    Getattr,
    Setattr,
    Readlink,
    Symlink,
    Mknod,
    Mkdir,
    Unlink,
    Rmdir,
    Rename,
    Link,
    Open,
    Create,
    Read,
    Write,
    Flush,
    Release,
    Fsync,
    Opendir,
    Readdir,
    Readdirplus,
    Releasedir,
    Fsyncdir,
    Statfs,
    Setxattr,
    Getxattr,
    Listxattr,
    Removexattr,
    Access,
    Fallocate,
    Lseek,
    CopyFileRange,
}

/// The names of all kinds, in their order.
const NAMES: [&str; Kind::CopyFileRange as usize + 1] = [
    "lookup",
    "forget",
    "getattr",
    "setattr",
    "readlink",
    "symlink",
    "mknod",
    "mkdir",
    "unlink",
    "rmdir",
    "rename",
    "link",
    "open",
    "create",
    "read",
    "write",
    "flush",
    "release",
    "fsync",
    "opendir",
    "readdir",
    "readdirplus",
    "releasedir",
    "fsyncdir",
    "statfs",
    "setxattr",
    "getxattr",
    "listxattr",
    "removexattr",
    "access",
    "fallocate",
    "lseek",
    "copy_file_range",
];

/// The counters of one mount.
#[derive(Debug)]
pub struct Requests {
    counts: [AtomicU64; NAMES.len()],
    by_ring: AtomicBool,
    threads: AtomicUsize,
    in_service: InService,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; NAMES.len()],
            by_ring: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            in_service: InService::new(),
        }
    }

    /// This thread begins to serve a request.
    pub(crate) fn begin(&self, kind: Kind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.in_service.begin(kind as usize);
    }

    /// It is served.
    pub(crate) fn end(&self) {
        self.in_service.end();
    }

    /// What is being served now.
    pub fn served(&self) -> impl Iterator<Item = ServedRequest> + '_ {
        self.in_service.now(&NAMES)
    }

    /// Whether they come by io_uring.
    pub fn come_by_io_uring(&self) -> bool {
        self.by_ring.load(Ordering::SeqCst)
    }

    /// How many threads serve them.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    /// Says how many threads serve them.
    pub(crate) fn are_served_by(&self, threads: usize) {
        self.threads.store(threads, Ordering::SeqCst);
    }

    /// Says whether they shall come by io_uring, or do.
    pub(crate) fn by_io_uring(&self, is_so: bool) {
        self.by_ring.store(is_so, Ordering::SeqCst);
    }

    /// The kinds that were asked for since the mount began, each with how often.
    pub fn asked(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        NAMES.into_iter().zip(counts).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_name_and_count() {
        let requests = Requests::new();
        assert_eq!(requests.asked().count(), 0);
        for kind in [Kind::Lookup, Kind::CopyFileRange, Kind::CopyFileRange, Kind::Releasedir] {
            requests.begin(kind);
            assert_eq!(requests.served().count(), 1);
            requests.end();
        }
        assert_eq!(requests.served().count(), 0);
        let asked: Vec<_> = requests.asked().collect();
        assert_eq!(asked, [("lookup", 1), ("releasedir", 1), ("copy_file_range", 2)]);
    }
}
