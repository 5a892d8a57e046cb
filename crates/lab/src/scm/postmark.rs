//! PostMark as in paper 2, Table 4: 500 files, 500 transactions, 500 bytes to 10 KB, in process,
//! beside ext2 and FAT on memory of the same kind; each write durable when it returns, and not.

use super::Measuring;
use super::host::{LoopMount, Scratch, failed, kernel_has, nanoseconds};
use crate::stream::Operation;
use crate::stream::generate::PostMark;
use onode::Result;
use onode_fs::{Caller, FileSystem, InodeNumber};
use onode_heap::Heap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// The stream of the paper.
pub(super) fn stream() -> Vec<Operation> {
    PostMark { seed: 42, files: 500, transactions: 500, reads_in_ten: 5 }.operations()
}

/// Does the operations on our files.
pub(super) fn in_process(fs: &FileSystem, stream: &[Operation]) -> Result<()> {
    let went = |error: onode_fs::Error| failed("a call of the file system failed", error);
    let (root, parent) = (Caller::root(), InodeNumber::ROOT);
    let content = vec![7; 16 << 10];
    let mut buffer = vec![0; 1 << 20];
    for operation in stream {
        match operation {
            Operation::Create(name, bytes) => {
                let made = fs.create(&root, parent, name.as_bytes(), 0o644).map_err(went)?;
                fs.write(&root, made.inode, 0, &content[..*bytes as usize]).map_err(went)?;
                fs.forget(made.inode, 1);
            }
            Operation::Append(name, bytes) => {
                let found = fs.lookup(parent, name.as_bytes()).map_err(went)?;
                fs.write(&root, found.inode, found.size, &content[..*bytes as usize]).map_err(went)?;
                fs.forget(found.inode, 1);
            }
            Operation::Read(name) => {
                let found = fs.lookup(parent, name.as_bytes()).map_err(went)?;
                fs.read(found.inode, 0, &mut buffer[..found.size as usize]).map_err(went)?;
                fs.forget(found.inode, 1);
            }
            Operation::Delete(name) => fs.unlink(parent, name.as_bytes()).map_err(went)?,
            Operation::Write(..) | Operation::ReadPart(..) | Operation::Measure => {}
        }
    }
    Ok(())
}

fn by_kernel(directory: &Path, stream: &[Operation]) -> std::io::Result<()> {
    let content = vec![7; 16 << 10];
    let mut buffer = Vec::with_capacity(1 << 20);
    for operation in stream {
        match operation {
            Operation::Create(name, bytes) => {
                File::create(directory.join(name))?.write_all(&content[..*bytes as usize])?;
            }
            Operation::Append(name, bytes) => {
                File::options().append(true).open(directory.join(name))?.write_all(&content[..*bytes as usize])?;
            }
            Operation::Read(name) => {
                buffer.clear();
                File::open(directory.join(name))?.read_to_end(&mut buffer)?;
            }
            Operation::Delete(name) => fs::remove_file(directory.join(name))?,
            Operation::Write(..) | Operation::ReadPart(..) | Operation::Measure => {}
        }
    }
    Ok(())
}

fn own(options: &str, stream: &[Operation]) -> Result<f64> {
    let place = Scratch::new("postmark");
    let heap = Heap::open(&format!("scm:{},size=256M{options}", place.0.display()));
    let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
    // Once for the memory to be there, as it is for the file systems of the kernel.
    in_process(heap.files(), stream)?;
    Ok(nanoseconds(|| in_process(heap.files(), stream))?.0)
}

/// Measures all that there is to compare with.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let stream = stream();
    let rounds = if measuring.options.quick { 1 } else { 7 };
    for (mode, ours, theirs) in [("sync", ",flush=on", "sync"), ("async", "", "")] {
        measuring.say(&format!("PostMark, {mode}"));
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            best = best.min(own(ours, &stream)?);
        }
        measuring.shown(format!("PostMark, {mode}, onode"), best / 1e6, "ms");
        if measuring.options.program.is_none() {
            continue;
        }
        for kind in ["ext2", "vfat"] {
            if !kernel_has(kind) {
                let note = format!("PostMark, {mode}: the kernel of this machine has no {kind}");
                measuring.notes.push(note);
                continue;
            }
            let peer = match LoopMount::new(kind, theirs, Path::new("/dev/shm")) {
                Ok(peer) => peer,
                Err(error) => {
                    measuring.failures.push(error.to_string());
                    continue;
                }
            };
            let mut other = f64::INFINITY;
            for _ in 0..rounds {
                let went = |error| failed("a system call failed", error);
                other = other.min(nanoseconds(|| by_kernel(&peer.mount, &stream).map_err(went))?.0);
            }
            measuring.shown(format!("PostMark, {mode}, {kind}"), other / 1e6, "ms");
            measuring.at_least(format!("PostMark, {mode}, faster than {kind}"), other / best, "times", 10.0);
        }
    }
    Ok(())
}
