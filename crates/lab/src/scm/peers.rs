//! Allocators of others: each in a process of its own that was loaded with it.
//!
//! A library that replaces `malloc` is loaded into this same program by `LD_PRELOAD`, as its users
//! do it. libpmemobj has an interface of its own; a small C program that looks for the library at
//! run time calls it.

use super::own::Own;
use super::pairs::{self, SIZES, Times};
use super::process::OfProcess;
use onode::{Class, Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const PMEMOBJ_SOURCE: &str = include_str!("pmemobj.c");
/// Where distributions put shared libraries.
const LIBRARY_FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// What a process of its own measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The allocator of the SCM device.
    Own,
    /// The allocator that the process was loaded with.
    Process,
}

/// Times by size; what a peer does not offer is not a number.
pub(super) type Table = BTreeMap<u64, Times>;

/// Measures a subject in this process, a line a size: size, pair, allocate, release, pair with two
/// threads.
///
/// # Errors
/// If there is no memory for it.
pub fn measure_subject(subject: Subject, batches: usize) -> Result<String> {
    let mut text = String::new();
    let own = match subject {
        Subject::Own => Some(Own::new().map_err(|error| failed("the own allocator", error))?),
        Subject::Process => None,
    };
    for bytes in SIZES {
        let times = match &own {
            Some(own) => pairs::measure(&|| own.thread(), bytes, batches),
            None => pairs::measure(&|| OfProcess, bytes, batches),
        };
        let Times { pair, allocate, release, pair_of_two } = times;
        text += &format!("{bytes} {pair:.2} {allocate:.2} {release:.2} {pair_of_two:.2}\n");
    }
    Ok(text)
}

fn failed(whom: &str, why: impl ToString) -> Error {
    Error::new(Class::General, format!("cannot measure {whom}"), why.to_string())
}

/// The figures that [`measure_subject`] wrote in this process.
pub(super) fn parse_own(text: &str) -> Result<Table> {
    parse(super::allocators::OWN, text)
}

fn parse(whom: &str, text: &str) -> Result<Table> {
    let number = |word: &str| if word == "-" { Some(f64::NAN) } else { word.parse().ok() };
    let line = |line: &str| {
        let mut words = line.split(' ');
        let bytes = words.next()?.parse().ok()?;
        let mut next = || number(words.next()?);
        Some((bytes, Times { pair: next()?, allocate: next()?, release: next()?, pair_of_two: next()? }))
    };
    let table: Option<Table> = text.lines().map(line).collect();
    table.filter(|table| SIZES.iter().all(|bytes| table.contains_key(bytes))).ok_or_else(|| failed(whom, "no figures"))
}

/// A peer that can be measured.
pub(super) struct Peer {
    pub(super) name: &'static str,
    command: Command,
    /// A pool that is made anew for each run, and the folder that goes with the peer.
    pool: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Peer {
    /// The own allocator, or that of this process with a library loaded before all others.
    pub(super) fn of_program(name: &'static str, program: &Path, preload: Option<&Path>, batches: usize) -> Self {
        let mut command = Command::new(program);
        let subject = if name == super::allocators::OWN { "own" } else { "process" };
        command.args(["lab", "scm", "--subject", subject, "--batches", &batches.to_string()]);
        command.env_remove("LD_PRELOAD");
        if let Some(library) = preload {
            command.env("LD_PRELOAD", library);
        }
        Self { name, command, pool: None, folder: None }
    }

    /// libpmemobj on a file in memory, with lines flushed as on persistent memory.
    pub(super) fn pmemobj(name: &'static str, batches: usize) -> Result<Self> {
        let mut peer = Self::pmemobj_in(name, Path::new("/dev/shm"), batches)?;
        peer.command.env("PMEM_IS_PMEM_FORCE", "1");
        Ok(peer)
    }

    /// libpmemobj on a plain file in a folder, which it syncs.
    pub(super) fn pmemobj_on(folder: &Path, batches: usize) -> Result<Self> {
        let mut peer = Self::pmemobj_in("libpmemobj", folder, batches)?;
        // Batches are shorter: each operation waits for the disk.
        peer.command.env("PMEM_IS_PMEM_FORCE", "0").env("BATCH", "16");
        Ok(peer)
    }

    fn pmemobj_in(name: &'static str, folder: &Path, batches: usize) -> Result<Self> {
        if library("libpmemobj.so.1").is_none() {
            return Err(failed(name, "libpmemobj.so.1 is not installed"));
        }
        let folder = folder.join(format!("onode-lab-pmemobj-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| failed(name, error))?;
        let (source, program, pool) = (folder.join("pmemobj.c"), folder.join("pmemobj"), folder.join("pool"));
        let mut command = Command::new(&program);
        command.arg(&pool).arg(batches.to_string()).args(SIZES.map(|bytes| bytes.to_string()));
        let peer = Self { name, command, pool: Some(pool), folder: Some(folder) };
        std::fs::write(&source, PMEMOBJ_SOURCE).map_err(|error| failed(name, error))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).arg(&program).arg(&source).arg("-ldl");
        run(name, &mut compiler)?;
        Ok(peer)
    }

    /// One round.
    pub(super) fn measure(&mut self) -> Result<Table> {
        if let Some(pool) = &self.pool {
            // There is none before the first round.
            let _ = std::fs::remove_file(pool);
        }
        parse(self.name, &run(self.name, &mut self.command)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What cannot be removed is left to whoever looks after the folder of temporary memory.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn run(whom: &str, command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| failed(whom, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(whom, format!("{}: {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where a shared library is.
pub(super) fn library(name: &str) -> Option<PathBuf> {
    LIBRARY_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

/// A library, or an error that says what is not installed.
pub(super) fn needed_library(whom: &str, name: &str) -> Result<PathBuf> {
    library(name).ok_or_else(|| failed(whom, format!("{name} is not installed")))
}
