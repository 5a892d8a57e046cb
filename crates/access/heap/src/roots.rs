//! Roots: names for the entries of data structures, so that another process, or another run, finds
//! them again.
//!
//! A root is a small file in `/.roots` that says where a value lies and what it is. It is made and
//! replaced by one transaction. It does not keep what it leads to: that lies in a file, and whoever
//! removes the file takes the root's meaning away.

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::reference::{BlockMemory, Plain, Ref};
use crate::whole::{check_name, is_left_over};
use onode_base::ErrorKind;
use onode_base::checksum::crc32c;
use onode_fs::Follow;

const ROOM: &[u8] = b"/.roots";
const MAGIC: [u8; 8] = *b"ONODERT1";
const NAME_BYTES: usize = 72;
const NAME_AT: usize = 48;
const CHECKSUM_AT: usize = Kind::BYTES - 8;

/// What lies somewhere: the type of a value as far as it can be told in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    size: u64,
    align: u64,
    layout: u64,
    name: String,
}

impl Kind {
    /// Bytes of a root on the medium.
    ///
    /// ```text
    /// 0 magic 8 | 8 address 8 | 16 size 8 | 24 alignment 8 | 32 layout 8 | 40 length of the name 8 | 48 name 72 | 120 crc32c 4 | 0
    /// ```
    pub(crate) const BYTES: usize = 128;

    /// The kind of a type.
    #[must_use]
    pub fn of<T: Plain>() -> Self {
        let name = std::any::type_name::<T>();
        let name = name.rsplit("::").next().unwrap_or(name);
        Self::new(size_of::<T>() as u64, align_of::<T>() as u64, T::LAYOUT, name)
    }

    /// A kind by numbers, for programs in other languages: `layout` is any number that the programs
    /// agree on.
    #[must_use]
    pub fn new(size: u64, align: u64, layout: u64, name: &str) -> Self {
        let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        Self { size, align, layout, name: name[..end].to_owned() }
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let Self { size, align, layout, name } = self;
        format!("{name} ({size} bytes aligned to {align}, layout {layout:016x})")
    }

    /// Where the block begins in which a value of the kind lies at `address`, if one can.
    pub(crate) fn start_in(&self, memory: &impl BlockMemory, address: u64) -> Option<u64> {
        let (start, bytes) = memory.block_at(address).filter(|_| address != 0)?;
        let fits = self.size <= bytes && address - start <= bytes - self.size;
        (fits && self.align.is_power_of_two() && address.is_multiple_of(self.align)).then_some(start)
    }

    pub(crate) fn encode(&self, address: u64) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let numbers = [address, self.size, self.align, self.layout, self.name.len() as u64];
        for (place, number) in bytes[8..NAME_AT].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[NAME_AT..NAME_AT + self.name.len()].copy_from_slice(self.name.as_bytes());
        let crc = crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The kind and the address in `bytes`.
    fn read(bytes: &[u8]) -> Option<(Self, u64)> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let crc = u32::from_le_bytes(bytes.get(CHECKSUM_AT..CHECKSUM_AT + 4)?.try_into().ok()?);
        if bytes[..8] != MAGIC || crc != crc32c(&bytes[..CHECKSUM_AT]) {
            return None;
        }
        let length = usize::try_from(number(40)?).ok().filter(|length| *length <= NAME_BYTES)?;
        let name = std::str::from_utf8(bytes.get(NAME_AT..NAME_AT + length)?).ok()?;
        Some((Self::new(number(16)?, number(24)?, number(32)?, name), number(8)?))
    }

    /// The address in `bytes`, if a value of this kind lies there.
    pub(crate) fn decode(&self, bytes: &[u8], what: &str) -> Result<u64> {
        let damaged = || Error::new(ErrorKind::Corrupt, format!("{what} is damaged: its checksum is wrong"));
        let (found, address) = Self::read(bytes).ok_or_else(damaged)?;
        if (found.size, found.align, found.layout) != (self.size, self.align, self.layout) {
            let why = format!("{what} is a {}, not a {}", found.describe(), self.describe());
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        Ok(address)
    }
}

fn path_of(name: &[u8]) -> Vec<u8> {
    [ROOM, b"/", name].concat()
}

impl Heap {
    /// Has `name` lead to a value in the heap, in place of what it led to; durable on return. The
    /// value lies in the block of a file ([`mm_to_file`](Self::mm_to_file)): memory that no file
    /// has is gone with the process.
    ///
    /// # Errors
    /// `Invalid` if no value of the type lies there or its block is no file's, or for a name that
    /// cannot be one; `NoSpace`.
    pub fn set_root<T: Plain>(&self, name: &[u8], root: Ref<T>) -> Result<()> {
        self.set_root_of(name, root.address(), &Kind::of::<T>())
    }

    /// As [`set_root`](Self::set_root), with a type in numbers.
    ///
    /// # Errors
    /// As there.
    pub fn set_root_of(&self, name: &[u8], address: u64, kind: &Kind) -> Result<()> {
        check_name("a root", name)?;
        let words = String::from_utf8_lossy(name);
        if is_left_over(name) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("no root is called {words}: names with new- are taken"),
            ));
        }
        let start = kind.start_in(self, address);
        let start = start.ok_or_else(|| {
            let why = format!("the root {words} cannot be {address:#x}: no {} lies there", kind.describe());
            Error::new(ErrorKind::Invalid, why)
        })?;
        if self.shared().blocks().is_published(start) != Ok(true) {
            let why = format!("the root {words} would not last: make its memory a file first, with mm_to_file");
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        self.make_directories(ROOM)?;
        self.put_whole(&path_of(name), &kind.encode(address))
    }

    /// What a name leads to.
    ///
    /// # Errors
    /// `NotFound` if there is no such root, `Invalid` if it is a value of another type or layout,
    /// `Stale` if the file that it lay in is gone, `Corrupt`.
    pub fn root<T: Plain>(&self, name: &[u8]) -> Result<Ref<T>> {
        self.root_of(name, &Kind::of::<T>()).map(Ref::at)
    }

    /// As [`root`](Self::root), with a type in numbers.
    ///
    /// # Errors
    /// As there.
    pub fn root_of(&self, name: &[u8], kind: &Kind) -> Result<u64> {
        check_name("a root", name)?;
        let words = String::from_utf8_lossy(name);
        let bytes = self.files().read_file(&path_of(name)).map_err(|error| match error.kind {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("there is no root {words}")),
            _ => Error::of_files(&format!("cannot read the root {words}"), &error),
        })?;
        let address = kind.decode(&bytes, &format!("the root {words}"))?;
        let start = kind.start_in(self, address);
        if start.is_none_or(|start| self.shared().blocks().is_published(start) != Ok(true)) {
            return Err(Error::new(ErrorKind::Stale, format!("the file that the root {words} led into is gone")));
        }
        Ok(address)
    }

    /// Forgets a name; what it led to stays.
    ///
    /// # Errors
    /// `NotFound`; those of the device.
    pub fn remove_root(&self, name: &[u8]) -> Result<()> {
        check_name("a root", name)?;
        let files = self.files();
        let path = path_of(name);
        let gone = files.resolve_parent(&path).and_then(|(parent, name)| files.unlink(parent, name));
        gone.map_err(|error| match error.kind {
            ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, format!("there is no root {}", String::from_utf8_lossy(name)))
            }
            _ => Error::of_files("cannot remove a root", &error),
        })
    }

    /// The names of all roots.
    ///
    /// # Errors
    /// Those of the device.
    pub fn roots(&self) -> Result<Vec<Vec<u8>>> {
        let files = self.files();
        let room = match files.resolve(ROOM, Follow::Yes) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| Error::of_files("cannot list the roots", &error))?,
        };
        let names = files.list(room).map_err(|error| Error::of_files("cannot list the roots", &error))?;
        Ok(names.into_iter().map(|entry| entry.name).filter(|name| !is_left_over(name)).collect())
    }
}
