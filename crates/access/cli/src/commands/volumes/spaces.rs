//! `onode spaces`: the partition table of a region of storage-class memory.

use clap::builder::{OsStringValueParser, TypedValueParser};
use onode::{Class, Error, Result, SpaceInfo, SpaceKind, Spaces, exact_size, human_size, parse_size};
use onode_console::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A region is a file in memory (/dev/shm/x), a file or device of persistent memory (/dev/dax0.0)
or a plain file. Its spaces are memories of their own:
  boot     an image that may only be read: a kernel, firmware, a root file system
  mm       plain memory, which a program uses as it likes
  fs       a block device for a traditional file system (mkfs.ext2, mkfs.vfat)
  manager  memory and files as one object (the SCM manager): `onode mkfs scm:REGION` makes a volume in it

Examples:
  onode spaces create /dev/shm/scm --size 1G                           (the region itself)
  onode spaces create /dev/shm/scm boot --kind boot --image firmware   (read-only)
  onode spaces create /dev/shm/scm disk --kind fs --size 256M          (reads as zeros)
  onode spaces list /dev/shm/scm
  onode spaces resize /dev/shm/scm disk --size 512M
  onode spaces resize /dev/shm/scm --size 2G                           (the region itself)
  onode spaces remove /dev/shm/scm disk")]
pub struct Arguments {
    #[command(subcommand)]
    verb: SpacesVerb,
}

#[derive(Debug, clap::Subcommand)]
enum SpacesVerb {
    /// Show the spaces of a region, what is free, and what its medium needs to be durable.
    List(List),
    /// Make a space, or without NAME the region.
    Create(Create),
    /// Make a space longer or shorter, or without NAME the region longer.
    Resize(Resize),
    /// Remove a space and what it holds.
    Remove(Remove),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode spaces list /dev/shm/scm\n  onode --json spaces list /dev/shm/scm")]
struct List {
    /// The file or device; `scm:` before it is understood.
    #[arg(value_parser = OsStringValueParser::new().try_map(region))]
    region: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode spaces create /dev/shm/scm --size 1G\n  \
    onode spaces create /dev/shm/scm disk --kind fs --size 256M\n  \
    onode spaces create /dev/shm/scm boot --kind boot --image firmware")]
struct Create {
    /// The file or device; `scm:` before it is understood.
    #[arg(value_parser = OsStringValueParser::new().try_map(region))]
    region: PathBuf,
    /// The name of the space, at most 31 letters, digits and any of - _ . +
    name: Option<String>,
    /// What the space is for.
    #[arg(long, value_parser = kind, value_name = "boot|mm|fs|manager", requires = "name")]
    kind: Option<SpaceKind>,
    /// How long it is to be, for example 256M.
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// A file that the space is to hold; it can then only be read.
    #[arg(long, value_name = "FILE", requires = "name", conflicts_with = "size")]
    image: Option<PathBuf>,
    /// Make a region of something that holds other things, which are lost.
    #[arg(long, conflicts_with = "name")]
    force: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode spaces resize /dev/shm/scm disk --size 512M\n  \
    onode spaces resize /dev/shm/scm --size 2G")]
struct Resize {
    /// The file or device; `scm:` before it is understood.
    #[arg(value_parser = OsStringValueParser::new().try_map(region))]
    region: PathBuf,
    /// The name of the space; without it, the region.
    name: Option<String>,
    /// How long it is to be. What a shorter space held behind that is lost; a space of objects only
    /// grows, and the next mount makes use of it.
    #[arg(long, value_parser = parse_size)]
    size: u64,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode spaces remove /dev/shm/scm disk\n  \
    onode spaces remove --force /dev/shm/scm objects   (with the volume and all its files)")]
struct Remove {
    /// The file or device; `scm:` before it is understood.
    #[arg(value_parser = OsStringValueParser::new().try_map(region))]
    region: PathBuf,
    /// The name of the space.
    name: String,
    /// Remove also a space for objects that holds a volume, with all its files.
    #[arg(short, long)]
    force: bool,
}

/// The file of a region, also as volumes on it name it.
fn region(argument: OsString) -> std::result::Result<PathBuf, String> {
    let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix("scm:")) else { return Ok(argument.into()) };
    match rest.split_once(',').map_or((rest, None), |(path, options)| (path, Some(options))) {
        ("" | "sim", _) => Err("spaces are in a file or device; name it, for example /dev/shm/scm".into()),
        (path, None) => Ok(path.into()),
        (path, Some(options)) => {
            Err(format!("`{options}` is of a volume; a region is named by its file alone: {path}"))
        }
    }
}

fn kind(text: &str) -> std::result::Result<SpaceKind, String> {
    SpaceKind::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = SpaceKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("`{text}` is no kind of space; there are {}", names.join(", "))
    })
}

/// A region and its spaces.
#[derive(Debug, Serialize)]
struct Report {
    region: String,
    bytes: u64,
    free_bytes: u64,
    largest_free_bytes: u64,
    alignment: u64,
    /// What makes stores durable: `flush`, `none` or `sync`.
    needs: &'static str,
    medium: String,
    warning: Option<String>,
    spaces: Vec<SpaceRow>,
}

#[derive(Debug, Serialize)]
struct SpaceRow {
    name: String,
    kind: &'static str,
    start: u64,
    bytes: u64,
    read_only: bool,
}

impl SpaceRow {
    fn of(space: &SpaceInfo) -> Self {
        Self {
            name: space.name.clone(),
            kind: space.kind.name(),
            start: space.start,
            bytes: space.length,
            read_only: space.read_only,
        }
    }
}

impl Report {
    fn of(spaces: &Spaces) -> Self {
        let region = spaces.region();
        Self {
            region: spaces.path().display().to_string(),
            bytes: region.length(),
            free_bytes: region.free_bytes(),
            largest_free_bytes: region.largest_free(),
            alignment: region.alignment(),
            needs: spaces.needs(),
            medium: spaces.medium(),
            warning: region.warning(),
            spaces: spaces.list().iter().map(SpaceRow::of).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, free) = (human_size(self.bytes), human_size(self.free_bytes));
        writeln!(f, "region   {}, {bytes}, {free} free", self.region)?;
        writeln!(f, "medium   {}", self.medium)?;
        writeln!(f, "needs    {}", self.needs)?;
        if self.spaces.is_empty() {
            return writeln!(f, "spaces   none; make one with `onode spaces create {} NAME ...`", self.region);
        }
        let width = self.spaces.iter().map(|space| space.name.len()).max().unwrap_or(0).max(4);
        writeln!(f, "\n{:width$}  {:8}{:>12}{:>12}", "name", "kind", "start", "size")?;
        for space in &self.spaces {
            let (start, size) = (exact_size(space.start), exact_size(space.bytes));
            let note = if space.read_only { "  read-only" } else { "" };
            writeln!(f, "{:width$}  {:8}{start:>12}{size:>12}{note}", space.name, space.kind)?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let spaces = match &arguments.verb {
        SpacesVerb::List(list) => Spaces::open(&list.region, true)?,
        SpacesVerb::Create(create) => make(create)?,
        SpacesVerb::Resize(resize) => {
            let spaces = Spaces::open(&resize.region, false)?;
            match &resize.name {
                Some(name) => spaces.resize(name, resize.size)?,
                None => spaces.grow(resize.size)?,
            }
            spaces
        }
        SpacesVerb::Remove(remove) => Spaces::remove_from(&remove.region, &remove.name, remove.force)?,
    };
    if let Some(warning) = spaces.region().warning() {
        output.warning(&warning);
    }
    // Changes are quiet for people, as those of files are.
    if matches!(arguments.verb, SpacesVerb::List(_)) || output.json() {
        output.report(&Report::of(&spaces))?;
    }
    Ok(0)
}

fn make(create: &Create) -> Result<Spaces> {
    let Some(name) = &create.name else { return Spaces::make(&create.region, create.size, create.force) };
    let missing = |why: &str, hint: &str| {
        let what = format!("cannot make space {name} of {}", create.region.display());
        Err(Error::new(Class::Usage, what, why).hint(hint))
    };
    let Some(kind) = create.kind else {
        return missing("its kind is not given", "add --kind boot, mm, fs or manager; --help tells what they are for");
    };
    match (&create.image, create.size) {
        (Some(image), _) => {
            let bytes = read(image)?;
            let spaces = Spaces::open(&create.region, false)?;
            spaces.create_image(name, kind, &bytes)?;
            Ok(spaces)
        }
        (None, Some(size)) => {
            let spaces = Spaces::open(&create.region, false)?;
            spaces.create(name, kind, size)?;
            Ok(spaces)
        }
        (None, None) => missing("neither its size nor an image is given", "add --size 256M or --image FILE"),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::host_file("read the image", path, &error))
}
