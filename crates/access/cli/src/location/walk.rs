//! Everything at and below a path of a volume, one file after the other.
//!
//! Damage in one file is told at once and the walk goes on with the others: who looks for what is
//! left of a volume must not stop at its first wound. Any other error ends the walk.

use super::{Node, failed, gather, resolve};
use onode::{Class, Result};
use onode_console::Output;
use onode_fs::{Attributes, FileSystem, FileType};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tells of damage, and remembers that there was some.
#[derive(Clone, Copy, Debug)]
pub struct Damages {
    output: Output,
    any: bool,
}

impl Damages {
    /// None so far.
    pub const fn new(output: &Output) -> Self {
        Self { output: *output, any: false }
    }

    /// What came of a call; nothing if it met damage, which is then told.
    pub fn pass<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(error) if error.class == Class::Damaged => {
                self.output.error(&error);
                self.any = true;
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// The exit code of a command that did all else.
    pub const fn exit_code(&self) -> u8 {
        if self.any { Class::Damaged.exit_code() } else { 0 }
    }
}

/// A file that a walk comes by.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its path.
    pub path: &'a Path,
    /// What is known of it.
    pub attributes: &'a Attributes,
    /// How far below the top it is.
    pub depth: usize,
}

impl Seen<'_> {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.attributes.file_type == FileType::Directory
    }

    /// Its name; that of the root is a slash.
    pub fn name(&self) -> &[u8] {
        self.path.file_name().map_or(b"/", OsStrExt::as_bytes)
    }
}

/// How a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Into a directory; past anything else.
    Into,
    /// Past a directory.
    Past,
    /// Not at all.
    Stop,
}

/// Who comes along on a walk.
pub trait Visitor {
    /// Sees a file before what it holds.
    fn enter(&mut self, seen: &Seen<'_>) -> Result<Next>;

    /// Sees a file after what it holds.
    fn leave(&mut self, _: &Seen<'_>) -> Result<()> {
        Ok(())
    }
}

/// A way through a volume.
pub struct Tour<'a> {
    /// The volume.
    pub files: &'a FileSystem,
    /// What was found damaged on the way.
    pub damages: &'a mut Damages,
}

impl Tour<'_> {
    /// Shows the visitor everything at and below `top`, the names of a directory in their order.
    /// Symbolic links are not followed. Returns whether the walk went to its end.
    pub fn go(&mut self, top: &Path, visitor: &mut dyn Visitor) -> Result<bool> {
        let Some(node) = self.damages.pass(resolve(self.files, top))? else { return Ok(true) };
        self.visit(&Seen { path: top, attributes: node.attributes(), depth: 0 }, visitor)
    }

    /// Goes on below a file that somebody holds.
    fn visit(&mut self, seen: &Seen<'_>, visitor: &mut dyn Visitor) -> Result<bool> {
        let Some(next) = self.damages.pass(visitor.enter(seen))? else { return Ok(true) };
        if next == Next::Stop {
            return Ok(false);
        }
        if next == Next::Into && seen.is_directory() {
            let mut entries = Vec::new();
            self.damages.pass(gather(self.files, seen.attributes.inode, seen.path, &mut entries))?;
            for entry in entries {
                let path = seen.path.join(OsStr::from_bytes(&entry.name));
                let looked_up = self.files.lookup(seen.attributes.inode, &entry.name);
                let node = looked_up.map(|attributes| Node::counted(self.files, attributes));
                let node = self.damages.pass(node.map_err(|error| failed("reach", &path, &error)))?;
                let Some(node) = node else { continue };
                let inner = Seen { path: &path, attributes: node.attributes(), depth: seen.depth + 1 };
                if !self.visit(&inner, visitor)? {
                    return Ok(false);
                }
            }
        }
        visitor.leave(seen)?;
        Ok(true)
    }
}
