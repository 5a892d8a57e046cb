//! Specs of volumes on two disks: `tier:FAST,BIG` and their settings.
//!
//! ```text
//! tier:ssd.img,hdd.img                     a fast disk in front of a big one: files, partitions or disks
//! tier:ssd.img,hdd.img,hdd2.img            the big disk goes on on others
//! tier:/dev/nvme0n1p4,/dev/sdb,sections=small:64K:1+large:1M:3
//! tier:ssd.img,hdd.img,fast=none           the big disk alone: the fast one is dead or away
//! tier:ssd.img,hdd.img,fast=new            the fast disk is new, or given up: it is made anew
//! tier:sim,size=256M,fast-size=32M         two disks in memory of this process, gone at the end
//! ```

use super::{DEFAULT_SIZE, Said, Spec, figure_of, size_of, unknown_part, whole};
use crate::error::{Class, Error, Result};
use onode_base::size::exact_size;
use onode_object::Acknowledge;
use std::fmt;
use std::path::{Path, PathBuf};

/// The smallest disks: less leaves no room beside the logs.
const LEAST_FAST_BYTES: u64 = 8 << 20;
const LEAST_BIG_BYTES: u64 = 16 << 20;
/// On so many others a big disk can go on.
const FURTHER_MAX: usize = 31;
const KEYS: &str = "size, fast-size, log, sections (NAME:EXTENT[:SHARE], joined by +), acknowledge (safe, either or big), \
                    map (DIRECTORY:SECTION or DIRECTORY:bypass, joined by +), allocate (exact or paper), erase-block, discard (on or off), fast (on, none or new)";

/// How a fast disk is divided that nobody divides otherwise, each with its extent and its share: a
/// section for what is smaller than a large extent, and one for the rest. What one of them has to
/// spare the other uses.
pub(crate) const USUAL_SECTIONS: [(&str, u64, u32); 2] = [("small", 64 << 10, 1), ("large", 1 << 20, 3)];

/// Two disks, as far as they were said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// The files or devices of the fast and the big disk; memory of this process if `None`.
    pub disks: Option<(PathBuf, PathBuf)>,
    /// The files or devices on which the big disk goes on, in any order.
    pub further: Vec<PathBuf>,
    /// Bytes of a new file for the big disk, and for each on which it goes on.
    pub size: Option<u64>,
    /// Bytes of a new file for the fast disk.
    pub fast_size: Option<u64>,
    /// Bytes of the log on each disk of a new volume.
    pub log: Option<u64>,
    /// How a new fast disk is divided; none were said if it is empty.
    pub sections: Vec<Section>,
    /// Directories whose content goes to a section, or past the fast disk, from now on.
    pub mappings: Vec<Mapping>,
    /// When a durable change counts as done where nobody said otherwise: from now on.
    pub acknowledge: Option<Acknowledge>,
    /// Space of a new fast disk is given out in segments and sub-segments as in paper 4, not in
    /// exact runs.
    pub as_in_paper: bool,
    /// Bytes of an erase block or stripe of a new fast disk: what the device tells of itself if
    /// `None`, else 256 KiB.
    pub erase_block: Option<u32>,
    /// The disks are not told of blocks that hold nothing of value any more.
    pub keeps_unneeded: bool,
    /// What is done about the fast disk.
    pub fast: Fast,
}

/// What is done about the fast disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fast {
    /// It is used, and must be there.
    #[default]
    Used,
    /// It is away: the big disk is used alone.
    Away,
    /// It is made anew; what is on it is given up.
    New,
}

/// A section of a fast disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is called.
    pub name: String,
    /// Bytes of an extent.
    pub extent: u32,
    /// Its share of the disk, relative to those of the others.
    pub share: u32,
}

/// A directory and where its content goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its path in the volume.
    pub directory: PathBuf,
    /// The section; `None` for content that bypasses the fast disk.
    pub section: Option<String>,
}

impl Section {
    /// The sections that `text` says: `NAME:EXTENT[:SHARE]`, joined by `+`.
    ///
    /// # Errors
    /// `Usage`, with what is wrong.
    pub fn parse_all(what: &str, text: &str) -> Result<Vec<Self>> {
        sections_of(what, text)
    }
}

impl Tiers {
    /// Bytes of a new file for the big disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.size.unwrap_or(DEFAULT_SIZE)
    }

    /// Bytes of a new file for the fast disk: an eighth of the big one.
    #[must_use]
    pub fn fast_bytes(&self) -> u64 {
        let eighth = (self.bytes() / 8).max(LEAST_FAST_BYTES).next_multiple_of(4096);
        self.fast_size.unwrap_or(eighth)
    }

    fn read(what: &str, rest: &str) -> Result<Self> {
        let mut parts = rest.split(',');
        let first = parts.next().unwrap_or_default();
        let mut tiers = Self::default();
        if first != "sim" {
            let big = parts.next().filter(|big| !first.is_empty() && !big.is_empty() && !big.contains('='));
            let Some(big) = big else {
                return Err(Error::new(Class::Usage, what, "the fast disk or the big one is missing")
                    .hint("write for example `tier:ssd.img,hdd.img,size=100G,fast-size=10G`, or `tier:sim`"));
            };
            if first == big {
                return Err(Error::new(Class::Usage, what, format!("`{big}` cannot be both disks")));
            }
            tiers.disks = Some((first.into(), big.into()));
        }
        let mut names = vec![first];
        names.extend(tiers.disks.as_ref().and_then(|(_, big)| big.to_str()));
        let mut parts = parts.filter(|part| !part.is_empty()).peekable();
        while let Some(further) = parts.next_if(|part| tiers.disks.is_some() && !part.contains('=')) {
            if names.contains(&further) {
                return Err(Error::new(Class::Usage, what, format!("`{further}` is there twice")));
            }
            names.push(further);
            tiers.further.push(further.into());
        }
        if tiers.further.len() > FURTHER_MAX {
            let why = format!("the big disk can go on on {FURTHER_MAX} others");
            return Err(Error::new(Class::Usage, what, why));
        }
        for part in parts {
            tiers.set(what, part)?;
        }
        tiers.check_sizes(what)?;
        Ok(tiers)
    }

    fn set(&mut self, what: &str, part: &str) -> Result<()> {
        match part.split_once('=').unwrap_or((part, "")) {
            ("size", value) => self.size = Some(size_of(what, value)?),
            ("fast-size", value) => self.fast_size = Some(size_of(what, value)?),
            ("log", value) => self.log = Some(size_of(what, value)?),
            ("sections", value) => self.sections = sections_of(what, value)?,
            ("map", value) => self.mappings = mappings_of(what, value)?,
            ("acknowledge", "safe") => self.acknowledge = Some(Acknowledge::Safe),
            ("acknowledge", "either") => self.acknowledge = Some(Acknowledge::Either),
            ("acknowledge", "big") => self.acknowledge = Some(Acknowledge::Big),
            ("allocate", "exact") => self.as_in_paper = false,
            ("allocate", "paper") => self.as_in_paper = true,
            ("erase-block", value) => self.erase_block = Some(figure_of(what, value)?),
            ("discard", "on") => self.keeps_unneeded = false,
            ("discard", "off") => self.keeps_unneeded = true,
            ("fast", "on") => self.fast = Fast::Used,
            ("fast", "none") => self.fast = Fast::Away,
            ("fast", "new") => self.fast = Fast::New,
            _ => return Err(unknown_part(what, part, KEYS)),
        }
        Ok(())
    }

    fn check_sizes(&self, what: &str) -> Result<()> {
        for (disk, bytes, least) in
            [("big", self.bytes(), LEAST_BIG_BYTES), ("fast", self.fast_bytes(), LEAST_FAST_BYTES)]
        {
            if bytes < least || !bytes.is_multiple_of(4096) {
                let why = format!("{} is no size for the {disk} disk", exact_size(bytes));
                let hint = format!("the least is {}, in steps of 4K", exact_size(least));
                return Err(Error::new(Class::BadSize, what, why).hint(hint));
            }
        }
        Ok(())
    }
}

impl Spec {
    /// The same with the big disk alone.
    ///
    /// # Errors
    /// `Usage` for a volume that does not lie on two disks.
    pub fn without_fast(mut self) -> Result<Self> {
        if let Self::Tier(tiers) = &mut self {
            tiers.fast = Fast::Away;
            return Ok(self);
        }
        let why = "it has no fast disk that could be away";
        Err(Error::new(Class::Usage, format!("cannot use {self} without its fast disk"), why)
            .hint("only tier:FAST,BIG has one"))
    }
}

impl Spec {
    /// The same whose big disk goes on on another one.
    ///
    /// # Errors
    /// `Usage` for a volume that does not lie on two disks.
    pub fn going_on_on(mut self, disk: &Path) -> Result<Self> {
        let what = format!("cannot have {self} go on on {}", disk.display());
        let why = "only volumes on two disks go on on others";
        let Self::Tier(tiers) = &mut self else { return Err(Error::new(Class::Usage, what, why)) };
        check_disk_name(what, disk)?;
        tiers.further.push(disk.to_owned());
        Ok(self)
    }

    /// The same on these disks, in the order of a spec: the fast one, unless it is away, the big
    /// one, and those on which that goes on.
    ///
    /// # Errors
    /// `Usage` for a volume that does not lie on two disks, or a name that a spec cannot have.
    pub fn on_disks(mut self, disks: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        let what = format!("cannot use {self} on other disks");
        let why = "only volumes on two disks have some";
        let Self::Tier(tiers) = &mut self else { return Err(Error::new(Class::Usage, what, why)) };
        let mut disks = disks.into_iter();
        let mut next = || disks.next().map(|disk| check_disk_name(what.clone(), &disk).map(|()| disk)).transpose();
        if let Some((fast, big)) = &mut tiers.disks {
            if tiers.fast != Fast::Away {
                *fast = next()?.unwrap_or_else(|| fast.clone());
            }
            *big = next()?.unwrap_or_else(|| big.clone());
        }
        tiers.further.clear();
        while let Some(disk) = next()? {
            tiers.further.push(disk);
        }
        Ok(self)
    }
}

fn check_disk_name(what: String, disk: &Path) -> Result<()> {
    if disk.to_str().is_some_and(|text| !text.contains([',', '=', '\n'])) {
        return Ok(());
    }
    let why = "a spec cannot have a path with , or =";
    Err(Error::new(Class::Usage, what, why).hint("a symbolic link gives it another name"))
}

/// What stands behind `tier:`.
pub(super) fn parse(what: &str, rest: &str) -> Result<Spec> {
    Tiers::read(what, rest).map(Spec::Tier)
}

/// `DIRECTORY:SECTION+...`
fn mappings_of(what: &str, value: &str) -> Result<Vec<Mapping>> {
    let mapping = |part: &str| match part.rsplit_once(':') {
        Some((directory, section)) if !directory.is_empty() && !section.is_empty() => Ok(Mapping {
            directory: Path::new("/").join(directory),
            section: Some(section.to_owned()).filter(|section| section != "bypass"),
        }),
        _ => Err(Error::new(Class::Usage, what, format!("`{part}` maps no directory"))
            .hint("write DIRECTORY:SECTION or DIRECTORY:bypass and join them by +: map=/mail:small+/video:bypass")),
    };
    value.split('+').map(mapping).collect()
}

/// `NAME:EXTENT[:SHARE]+...`
fn sections_of(what: &str, value: &str) -> Result<Vec<Section>> {
    let bad = |part: &str, why: &str| {
        Error::new(Class::Usage, what, format!("`{part}` is no section: {why}"))
            .hint("write NAME:EXTENT[:SHARE] and join them by +: sections=small:64K:1+large:1M:3")
    };
    let mut sections: Vec<Section> = Vec::new();
    for part in value.split('+') {
        let mut fields = part.split(':');
        let (name, extent) = (fields.next().unwrap_or_default(), fields.next());
        let sound = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if name.is_empty() || name.len() > 16 || !sound(name) {
            return Err(bad(part, "its name has no 1 to 16 letters, figures, -, _ or ."));
        }
        if sections.iter().any(|other| other.name == name) {
            return Err(bad(part, "the name is there twice"));
        }
        let Some(extent) = extent else { return Err(bad(part, "its extent size is missing")) };
        let extent = figure_of(what, extent)?;
        if !extent.is_power_of_two() || !(16 << 10..=1 << 20).contains(&extent) {
            return Err(bad(part, "its extent size is no power of two from 16K to 1M"));
        }
        let share =
            fields.next().map_or(Ok(1), |share| share.parse().map_err(|_| bad(part, "its share is no number")))?;
        if share == 0 || fields.next().is_some() {
            return Err(bad(part, "its share is no number above zero"));
        }
        sections.push(Section { name: name.to_owned(), extent, share });
    }
    Ok(sections)
}

impl Said for Tiers {
    fn image_path(&self) -> Option<&Path> {
        self.disks.as_ref().map(|(_, big)| big.as_path())
    }

    fn second_path(&self) -> Option<&Path> {
        self.disks.as_ref().map(|(fast, _)| fast.as_path())
    }

    fn all_paths(&self) -> Vec<&Path> {
        let disks = self.disks.iter().flat_map(|(fast, big)| [fast, big]);
        disks.chain(&self.further).map(PathBuf::as_path).collect()
    }

    fn paths_beside(&mut self) -> Vec<&mut PathBuf> {
        self.disks.iter_mut().flat_map(|(fast, big)| [fast, big]).chain(&mut self.further).collect()
    }

    #[cfg(feature = "pool")]
    fn own_paths(&mut self) -> Vec<&mut PathBuf> {
        self.paths_beside()
    }

    fn again(&self) -> Spec {
        Spec::Tier(Self {
            disks: self.disks.as_ref().map(|(fast, big)| (whole(fast), whole(big))),
            further: self.further.iter().map(|path| whole(path)).collect(),
            size: None,
            fast_size: None,
            log: None,
            sections: Vec::new(),
            erase_block: None,
            fast: if self.fast == Fast::Away { Fast::Away } else { Fast::Used },
            ..self.clone()
        })
    }
}

impl fmt::Display for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.disks {
            Some((fast, big)) => write!(f, "tier:{},{}", fast.display(), big.display())?,
            None => f.write_str("tier:sim")?,
        }
        self.further.iter().try_for_each(|further| write!(f, ",{}", further.display()))?;
        for (key, value) in [("size", self.size), ("fast-size", self.fast_size), ("log", self.log)] {
            if let Some(value) = value {
                write!(f, ",{key}={}", exact_size(value))?;
            }
        }
        for (index, section) in self.sections.iter().enumerate() {
            f.write_str(if index == 0 { ",sections=" } else { "+" })?;
            write!(f, "{}:{}:{}", section.name, exact_size(section.extent.into()), section.share)?;
        }
        for (index, mapping) in self.mappings.iter().enumerate() {
            let section = mapping.section.as_deref().unwrap_or("bypass");
            write!(f, "{}{}:{section}", if index == 0 { ",map=" } else { "+" }, mapping.directory.display())?;
        }
        match self.acknowledge {
            None | Some(Acknowledge::Volume) => {}
            Some(Acknowledge::Safe) => f.write_str(",acknowledge=safe")?,
            Some(Acknowledge::Either) => f.write_str(",acknowledge=either")?,
            Some(Acknowledge::Big) => f.write_str(",acknowledge=big")?,
        }
        if self.as_in_paper {
            f.write_str(",allocate=paper")?;
        }
        if let Some(bytes) = self.erase_block {
            write!(f, ",erase-block={}", exact_size(bytes.into()))?;
        }
        if self.keeps_unneeded {
            f.write_str(",discard=off")?;
        }
        f.write_str(match self.fast {
            Fast::Used => "",
            Fast::Away => ",fast=none",
            Fast::New => ",fast=new",
        })
    }
}
