//! `onode ls`: lists a directory of an image.

use crate::location::expand::{Meaning, meaning};
use crate::location::{self, Consent, entries, failed, resolve};
use onode::{Result, Volume};
use onode_base::Timestamp;
use onode_console::Output;
use onode_console::quote::{self, Style};
use onode_fs::{Attributes, FileSystem, FileType};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A name with control characters, or with bytes that are no text, is shown in quotes that a shell\n\
    understands. In JSON such bytes are in `name_bytes` as they are. Of a path with wildcards\n\
    (*, ?, [a-z], [!x]) what matches is listed, not what it holds.\n\n\
    Examples:\n  onode ls disk.img\n  onode ls -l disk.img '/logs/*.old'\n  onode ls --json disk.img /"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The directory or file. Wildcards are meant in the image.
    #[arg(default_value = "/")]
    path: PathBuf,
    /// Show type, permissions, links, owner, size and time too.
    #[arg(short, long)]
    long: bool,
    /// Show names with escapes as in C, as `ls -b` does.
    #[arg(short = 'b', long)]
    escape: bool,
    /// Show names in double quotes, with escapes as in C, as `ls -Q` does.
    #[arg(short = 'Q', long, conflicts_with = "escape")]
    quote_name: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What every report of a file says of its inode.
#[derive(Debug, Serialize)]
pub struct InodeReport {
    #[serde(rename = "inode")]
    pub number: u64,
    #[serde(rename = "type")]
    pub file_type: &'static str,
    pub mode: String,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
}

impl InodeReport {
    /// That of the inode with these attributes.
    pub fn of(attributes: &Attributes) -> Self {
        Self {
            number: attributes.inode.0,
            file_type: type_name(attributes.file_type),
            mode: mode(attributes),
            links: attributes.links,
            uid: attributes.uid,
            gid: attributes.gid,
            size: attributes.size,
        }
    }
}

/// What is known of one name.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// Of a name that is no text, which JSON cannot hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<Vec<u8>>,
    #[serde(flatten)]
    inode: InodeReport,
    modified_seconds: i64,
    modified_nanoseconds: u32,
    target: Option<String>,
    #[serde(skip)]
    long: bool,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Listing(Vec<Line>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let listing = list(&volume, arguments)?;
    if !listing.0.is_empty() || output.json() {
        output.report(&listing)?;
    }
    Ok(0)
}

fn list(volume: &Volume, arguments: &Arguments) -> Result<Listing> {
    let style = match (arguments.escape, arguments.quote_name) {
        (true, _) => Style::Escape,
        (false, true) => Style::Quoted,
        (false, false) => Style::Shell,
    };
    let files = volume.files();
    let found = match meaning(files, &arguments.path)? {
        Meaning::This(path) => in_directory(files, &path)?,
        Meaning::Matches(paths) => paths.iter().map(|path| itself(files, path)).collect::<Result<_>>()?,
    };
    let mut lines = Vec::new();
    for (name, attributes) in found {
        let target = match attributes.file_type {
            FileType::SymbolicLink => {
                Some(files.read_link(attributes.inode).map_err(|error| failed("read", &arguments.path, &error))?)
            }
            _ => None,
        };
        lines.push(Line::new(&name, &attributes, target, style, arguments.long));
    }
    Ok(Listing(lines))
}

/// A name as it is listed, and what has it.
type Listed = (Vec<u8>, Attributes);

/// A file under the name that was given.
fn itself(files: &FileSystem, path: &Path) -> Result<Listed> {
    Ok((path.as_os_str().as_bytes().to_vec(), *resolve(files, path)?.attributes()))
}

/// What a directory holds, or what is no directory.
fn in_directory(files: &FileSystem, path: &Path) -> Result<Vec<Listed>> {
    let node = resolve(files, path)?;
    if node.attributes().file_type != FileType::Directory {
        return Ok(vec![itself(files, path)?]);
    }
    let entries = entries(files, node.inode(), path)?.into_iter();
    let found = entries.map(|entry| {
        let inner = path.join(OsStr::from_bytes(&entry.name));
        Ok((entry.name, *resolve(files, &inner)?.attributes()))
    });
    found.collect()
}

/// The bytes of a name that is no text, which JSON cannot hold otherwise.
pub fn bytes_of(name: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(name).is_err().then(|| name.to_vec())
}

impl Line {
    fn new(name: &[u8], attributes: &Attributes, target: Option<Vec<u8>>, style: Style, long: bool) -> Self {
        let mut shown = quote::name(name, style);
        if let Some(target) = target.as_ref().filter(|_| long) {
            shown = format!("{shown} -> {}", quote::name(target, style));
        }
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            name_bytes: bytes_of(name),
            inode: InodeReport::of(attributes),
            modified_seconds: attributes.modified.seconds,
            modified_nanoseconds: attributes.modified.nanoseconds,
            target: target.map(|target| String::from_utf8_lossy(&target).into_owned()),
            long,
            shown,
        }
    }
}

/// The name of a type in reports.
pub const fn type_name(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "fifo",
        FileType::CharacterDevice => "character device",
        FileType::Directory => "directory",
        FileType::BlockDevice => "block device",
        FileType::Regular => "file",
        FileType::SymbolicLink => "symbolic link",
        FileType::Socket => "socket",
    }
}

/// `drwxr-xr-x`.
pub fn mode(attributes: &Attributes) -> String {
    let letter = match attributes.file_type {
        FileType::Fifo => 'p',
        FileType::CharacterDevice => 'c',
        FileType::Directory => 'd',
        FileType::BlockDevice => 'b',
        FileType::Regular => '-',
        FileType::SymbolicLink => 'l',
        FileType::Socket => 's',
    };
    let bits = attributes.permissions;
    let mut text = String::from(letter);
    for (shift, special, set, unset) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')] {
        let triple = bits >> shift;
        text.push(if triple & 4 != 0 { 'r' } else { '-' });
        text.push(if triple & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & special != 0, triple & 1 != 0) {
            (true, true) => set,
            (true, false) => unset,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// `2026-11-21 03:27:37`, UTC.
pub fn date(time: Timestamp) -> String {
    let (days, second) = (time.seconds.div_euclid(86_400), time.seconds.rem_euclid(86_400));
    // Days since 0000-03-01, in eras of 400 years, so that leap days fall at the end of a year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.0 {
            if line.long {
                let modified = date(Timestamp { seconds: line.modified_seconds, nanoseconds: 0 });
                let InodeReport { mode, links, uid, gid, size, .. } = &line.inode;
                writeln!(f, "{mode} {links:>3} {uid:>5} {gid:>5} {size:>12} {modified} {}", line.shown)?;
            } else {
                writeln!(f, "{}", line.shown)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |seconds| date(Timestamp { seconds, nanoseconds: 0 });
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date(-1), "1969-12-31 23:59:59");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59:59");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00");
    }
}
