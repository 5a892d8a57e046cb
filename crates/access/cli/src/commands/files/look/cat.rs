//! `onode cat`: writes what files of an image hold to standard output.

use crate::location::expand::expand;
use crate::location::walk::Skipped;
use crate::location::{self, Consent, Node, failed, resolve};
use onode::{Class, Error, Result};
use onode_console::Output;
use onode_fs::{ErrorKind, FileSystem, FileType};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes read at once where something is damaged.
const PIECE_OF_DAMAGED_BYTES: usize = 4 << 10;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The content goes out byte for byte, also with --json. A damaged file ends before the damage; the\n\
    others are written all the same, and the exit code is 11.\n\n\
    Examples:\n  onode cat disk.img /notes.txt\n  onode cat disk.img '/logs/*.log' | grep error"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The files. Wildcards are meant in the image.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let files = volume.files();
    let mut skipped = Skipped::new(output);
    // All of them first: what cannot be written is told before anything is.
    let mut found = Vec::new();
    for path in expand(files, &arguments.paths)? {
        if let Some(node) = skipped.pass(readable(files, &path))? {
            found.push((path, node));
        }
    }
    for (path, node) in &found {
        let is_read = skipped.pass(write(node, path, files, output))?;
        if is_read == Some(false) {
            break;
        }
    }
    Ok(skipped.exit_code())
}

/// A file that has content.
fn readable<'a>(files: &'a FileSystem, path: &Path) -> Result<Node<'a>> {
    let node = resolve(files, path)?;
    let error =
        |why: &str| Error::new(Class::Usage, format!("cannot write {} to standard output", path.display()), why);
    match node.attributes().file_type {
        FileType::Regular => Ok(node),
        FileType::Directory => Err(error("it is a directory").hint("`onode ls` lists what it holds")),
        FileType::SymbolicLink => Err(error("it is a symbolic link, which is followed only in a mounted volume")
            .hint("`onode ls -l` shows where it leads; name the file there")),
        FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice | FileType::Socket => {
            Err(error("it is a device, FIFO or socket and has no content").hint("name a file"))
        }
    }
}

/// Writes a file; whether there is still a reader.
fn write(node: &Node<'_>, path: &Path, files: &FileSystem, output: &Output) -> Result<bool> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        let length = match files.read(node.inode(), offset, &mut buffer) {
            // What comes before the damage is read all the same.
            Err(error) if error.kind == ErrorKind::Corrupt && buffer.len() > PIECE_OF_DAMAGED_BYTES => {
                buffer.truncate(PIECE_OF_DAMAGED_BYTES);
                continue;
            }
            read => read.map_err(|error| failed("read", path, &error))?,
        };
        let data = buffer.get(..length).unwrap_or_default();
        if data.is_empty() {
            return Ok(true);
        }
        if !output.offer(data)? {
            return Ok(false);
        }
        offset += length as u64;
    }
}
