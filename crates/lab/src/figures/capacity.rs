//! How many small files fit: files are made until there is no room, and are all there after a new
//! mount.

use super::fill::write_file;
use super::{Measuring, spec};
use crate::bench::{Bench, Durability};
use onode::{Class, Error, Result, Volume};
use onode_base::ErrorKind;
use onode_fs::InodeNumber;

/// Memory is looked at once in so many files.
const LOOK_EVERY: u64 = 64;
/// One of so many files is read again.
const READ_EVERY: usize = 97;
const RAM_BYTES: u64 = 384 << 10;

/// Files that are less than a page.
pub(super) fn tiny_files(run: &mut Measuring<'_>) -> Result<()> {
    run.say("capacity with files of 500 B");
    let (files, ram) = count(run, 500)?;
    let size = run.scale().medium;
    run.at_least(format!("capacity of {size}, files of 500 B"), files, "files", 200_000_u64);
    run.at_most(format!("RAM of the device at most, {files} files on {size}"), ram, "bytes", RAM_BYTES);
    Ok(())
}

/// Files of two pages.
pub(super) fn page_files(run: &mut Measuring<'_>) -> Result<()> {
    let size = run.scale().medium;
    run.say("capacity with files of 4 KB");
    let (files, _) = count(run, 4096)?;
    run.at_least(format!("capacity of {size}, files of 4 KB"), (files * 4096) as f64 / 1e6, "MB", 120.0);
    Ok(())
}

/// Files of `bytes` that fit, and the memory the device held at most.
fn count(run: &Measuring<'_>, bytes: usize) -> Result<(u64, u64)> {
    let failed = |error: &onode_fs::Error| Volume::error("cannot measure the capacity", error);
    let bench = Bench::new(&spec(run.scale().medium, "")?, Durability::Natural, run.caches())?;
    let content = |number: u64| vec![number as u8; bytes];
    let (mut files, mut ram) = (0, 0);
    loop {
        match write_file(&bench, &files.to_string(), &content(files)) {
            Ok(()) => files += 1,
            Err(error) if error.kind == ErrorKind::NoSpace => break,
            Err(error) => return Err(failed(&error)),
        }
        if files % LOOK_EVERY == 0 {
            ram = ram.max(bench.ram_bytes());
        }
    }
    // The file that did not fit may have a name already; and what was only promised room may need
    // some more.
    let remove = |number: u64| bench.files.unlink(InodeNumber::ROOT, number.to_string().as_bytes());
    match remove(files) {
        Err(error) if error.kind != ErrorKind::NotFound => return Err(failed(&error)),
        _ => {}
    }
    loop {
        match bench.files.unmount() {
            Err(error) if error.kind == ErrorKind::NoSpace && files > 0 => {
                files -= 1;
                remove(files).map_err(|error| failed(&error))?;
            }
            other => break other.map_err(|error| failed(&error))?,
        }
    }
    let Some(chip) = bench.chip().cloned() else { return Ok((files, ram)) };
    drop(bench);
    let bench = Bench::mount(chip, Durability::Natural, run.caches())?;
    for number in (0..files).step_by(READ_EVERY) {
        let found =
            bench.files.lookup(InodeNumber::ROOT, number.to_string().as_bytes()).map_err(|error| failed(&error))?;
        let mut buffer = vec![0; bytes + 1];
        let length = bench.files.read(found.inode, 0, &mut buffer).map_err(|error| failed(&error))?;
        bench.files.forget(found.inode, 1);
        if buffer.get(..length) != Some(&content(number)) {
            let why = format!("file {number} of {files} came back with other content");
            return Err(Error::new(Class::Bug, "cannot measure the capacity", why));
        }
    }
    Ok((files, ram))
}
