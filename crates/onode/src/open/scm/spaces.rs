//! A region of storage-class memory and its spaces, for people: opened by its path, with errors
//! that say what to do.
//!
//! It looks before it changes: a file that holds something else is not made a region unless that is
//! asked for. What the spaces hold is not its business.

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::Access;
use crate::open::missing::refuse_missing;
use crate::open::replace::is_used;
use crate::open::scm::memory::{self, MappedSpace, holds_volume};
use crate::spec::Spec;
use crate::spec::memory::Memory;
use onode_base::size::human_size;
use onode_media::real::{MappedOptions, MappedPmem, Opening};
use onode_media::{MediaErrorKind, Pmem};
use onode_object::{ObjectDevice, Space};
use onode_spaces::{self as spaces, Kind, Region, SpaceInfo};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open region.
pub struct Spaces {
    region: Region<Arc<MappedPmem>>,
    path: PathBuf,
}

impl Spaces {
    /// Opens the region in the file or device at `path`.
    ///
    /// # Errors
    /// Not there, in use, not a region, damaged, newer.
    pub fn open(path: &Path, read_only: bool) -> Result<Self> {
        let opening = if read_only { Opening::ReadOnly } else { Opening::Existing };
        let memory = map(path, opening)?;
        let opened = Region::open(memory);
        let region = opened.map_err(|error| {
            let kind = error.kind;
            let error = failed(format!("cannot open the region {}", path.display()), &error);
            match kind {
                MediaErrorKind::NotAnImage => error.hint("`onode spaces create REGION --size 1G` makes one"),
                MediaErrorKind::Damaged => {
                    error.hint("both copies of its table are lost, or its end; restore it from a copy")
                }
                _ => error,
            }
        })?;
        Ok(Self { region, path: path.into() })
    }

    /// Makes a region: in a new or empty file of `bytes`, in a file or device that is there, if it
    /// reads as zeros at its start, or in any with `force`.
    ///
    /// # Errors
    /// Something is there, no size is known, the host is full.
    pub fn make(path: &Path, bytes: Option<u64>, force: bool) -> Result<Self> {
        let what = format!("cannot make a region of {}", path.display());
        refuse_missing(&what, path)?;
        let was_there = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0 || !metadata.is_file());
        let opening = match bytes {
            None if !was_there => {
                let why = "there is no file yet, and no size is given";
                return Err(Error::new(Class::Usage, what, why).hint("add --size, for example --size 1G"));
            }
            None => Opening::Existing,
            Some(bytes) if bytes < spaces::LENGTH_MIN || !bytes.is_multiple_of(4096) => {
                let why = format!("{bytes} bytes are less than 64 KiB or no multiple of 4 KiB");
                return Err(Error::new(Class::BadSize, what, why).hint("write for example 64M or 1G"));
            }
            Some(bytes) => Opening::ExistingOrNew(bytes),
        };
        let memory = map(path, opening)?;
        if was_there && !force {
            if spaces::is_region(&*memory) {
                let hint = "`onode spaces list` shows its spaces; --force makes a new region and drops them all";
                return Err(Error::new(Class::Exists, what, "it is one already").hint(hint));
            }
            if is_used(&*memory) {
                let hint = "give another path, or drop what it holds with --force";
                return Err(Error::new(Class::Exists, what, "it holds something else").hint(hint));
            }
        }
        let formatted = Region::format(memory, random_bytes()?, !was_there).map_err(|error| failed(what, &error))?;
        if let Some(bytes) = bytes {
            let longer = formatted.grow(bytes);
            longer.map_err(|error| failed(format!("cannot make the region {} longer", path.display()), &error))?;
        }
        Ok(Self { region: formatted, path: path.into() })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The region itself.
    #[must_use]
    pub const fn region(&self) -> &Region<Arc<MappedPmem>> {
        &self.region
    }

    /// One line: what the medium is and what makes stores durable on it.
    #[must_use]
    pub fn medium(&self) -> String {
        self.region.pmem().describe()
    }

    /// What the medium needs, in a word: `flush`, `none` or `sync`.
    #[must_use]
    pub fn needs(&self) -> &'static str {
        self.region.pmem().domain().name()
    }

    /// All spaces.
    #[must_use]
    pub fn list(&self) -> Vec<SpaceInfo> {
        self.region.list()
    }

    /// A space as a memory.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn space(&self, name: &str) -> Result<MappedSpace> {
        self.region.space(name).map_err(|error| self.of_space("open", name, &error))
    }

    /// Makes a space that reads as zeros.
    ///
    /// # Errors
    /// The name is taken or none, or there is no room.
    pub fn create(&self, name: &str, kind: Kind, bytes: u64) -> Result<SpaceInfo> {
        let made = self.region.create(name, kind, bytes);
        self.made(name, made.map_err(|error| self.of_space("make", name, &error))?)
    }

    /// Makes a space that holds an image and may only be read.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_image(&self, name: &str, kind: Kind, image: &[u8]) -> Result<SpaceInfo> {
        let made = self.region.create_image(name, kind, image);
        self.made(name, made.map_err(|error| self.of_space("make", name, &error))?)
    }

    fn made(&self, name: &str, space: MappedSpace) -> Result<SpaceInfo> {
        drop(space);
        let missing = || Error::new(Class::Bug, format!("space {name} is not there right after it was made"), "");
        self.list().into_iter().find(|space| space.name == name).ok_or_else(missing)
    }

    /// Makes a space longer or shorter; a longer one may move.
    ///
    /// # Errors
    /// There is none of that name, or no room; fewer bytes for a space of objects, which a mount
    /// makes use of when it grew.
    pub fn resize(&self, name: &str, bytes: u64) -> Result<()> {
        let of_objects = self.list().into_iter().find(|space| space.name == name && space.kind == Kind::Manager);
        if let Some(space) = of_objects.filter(|space| bytes < space.length) {
            let what = format!("cannot resize space {name} of {}", self.path.display());
            let why = format!("it holds objects in {}, and such a space only grows", human_size(space.length));
            return Err(Error::new(Class::BadSize, what, why).hint("make a new volume and copy what you need"));
        }
        self.region.resize(name, bytes).map_err(|error| match error.kind {
            MediaErrorKind::NoSpace => {
                let what = format!("cannot resize space {name} of {}", self.path.display());
                let longest = human_size(self.region.largest_free());
                let why = format!("there is no room for {}: the longest free part has {longest}", human_size(bytes));
                Error::new(Class::VolumeFull, what, why)
                    .hint("`onode spaces resize REGION --size SIZE` makes the region longer")
            }
            _ => self.of_space("resize", name, &error),
        })
    }

    /// Removes a space and what it holds.
    ///
    /// # Errors
    /// There is none of that name, or somebody uses it.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.region.remove(name).map_err(|error| self.of_space("remove", name, &error))
    }

    /// Opens a region and removes one of its spaces; one that holds a volume only with `force`.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`remove`](Self::remove); `Exists` with what the volume is.
    pub fn remove_from(path: &Path, name: &str, force: bool) -> Result<Self> {
        let spaces = Self::open(path, false)?;
        let is_for_objects = |space: &SpaceInfo| space.name == name && space.kind == Kind::Manager;
        if !force && spaces.list().iter().any(is_for_objects) && holds_volume(&spaces.space(name)?) {
            // Whoever looks at the volume needs the region to himself.
            drop(spaces);
            let what = format!("cannot remove space {name} of {}", path.display());
            return Err(Error::new(Class::Exists, what, holdings(path))
                .hint("--force removes it with the volume and all its files; the other spaces stay"));
        }
        spaces.remove(name)?;
        Ok(spaces)
    }

    /// Makes the region longer.
    ///
    /// # Errors
    /// `bytes` are fewer than it has, or the host is full.
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let what = format!("cannot resize the region {}", self.path.display());
        if bytes < self.region.length() {
            let why = format!("it has {}, and a region only grows", human_size(self.region.length()));
            return Err(Error::new(Class::BadSize, what, why).hint("make a new one and copy what you need"));
        }
        self.region.grow(bytes).map_err(|error| failed(what, &error))
    }

    fn of_space(&self, verb: &str, name: &str, error: &onode_media::Error) -> Error {
        let made = failed(format!("cannot {verb} space {name} of {}", self.path.display()), error);
        match error.kind {
            MediaErrorKind::NoSpace => made.hint("`onode spaces resize REGION --size SIZE` makes the region longer"),
            MediaErrorKind::NoSuchSpace | MediaErrorKind::Exists => {
                made.hint("`onode spaces list REGION` shows what there is")
            }
            _ => made,
        }
    }
}

/// What the volume in a region is, in words.
fn holdings(path: &Path) -> String {
    let said = Memory { path: Some(path.into()), ..Memory::default() };
    let spec = Spec::Scm(said.clone());
    match memory::mount(&spec, &said, path, Access::LOOK).map(|device| device.space()) {
        Ok(Space { total, available, objects }) => {
            // One is the volume itself, and one its root directory.
            let files = objects.saturating_sub(2);
            let (whole, used) = (human_size(total), human_size(total.saturating_sub(available)));
            format!("it holds a volume of {whole} with {files} files and directories, {used} of it used")
        }
        Err(error) => format!("it holds a volume, which cannot be opened now: {}", error.why),
    }
}

fn map(path: &Path, opening: Opening) -> Result<Arc<MappedPmem>> {
    let options = MappedOptions { opening, ..MappedOptions::default() };
    let opened = MappedPmem::open(path, &options).map_err(|error| {
        let made = failed(format!("cannot open {} as memory", path.display()), &error);
        match error.kind {
            MediaErrorKind::NotAnImage if path.is_dir() => {
                made.hint("name the file or device that a volume lies on, not where it is mounted")
            }
            MediaErrorKind::NotFound | MediaErrorKind::NotAnImage => {
                made.hint("`onode spaces create REGION --size 1G` makes a region in a new file")
            }
            _ => made,
        }
    });
    Ok(Arc::new(opened?))
}

fn failed(what: String, error: &onode_media::Error) -> Error {
    Error::medium(what, error)
}
