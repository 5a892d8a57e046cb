//! Everything at and below a path of a volume, one file after the other.
//!
//! Damage in one file, or a directory whose key is locked, is told at once and the walk goes on
//! with the others: who looks for what is left of a volume must not stop at its first wound. Any
//! other error ends the walk.

use super::{Node, failed, gather, resolve};
use onode::{Class, Result};
use onode_console::Output;
use onode_fs::{Attributes, FileSystem, FileType};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tells of what a walk skips, and remembers why it did.
#[derive(Clone, Copy, Debug)]
pub struct Skipped {
    output: Output,
    /// Damage counts for more than what a key opens.
    why: Option<Class>,
}

impl Skipped {
    /// None so far.
    pub const fn new(output: &Output) -> Self {
        Self { output: *output, why: None }
    }

    /// What came of a call; nothing if it met damage or lacks a key, which is then told.
    pub fn pass<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(error) if matches!(error.class, Class::Damaged | Class::Key) => {
                self.output.error(&error);
                if self.why != Some(Class::Damaged) {
                    self.why = Some(error.class);
                }
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// The exit code of a command that did all else.
    pub fn exit_code(&self) -> u8 {
        self.why.map_or(0, Class::exit_code)
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
    /// What was skipped on the way.
    pub skipped: &'a mut Skipped,
}

impl Tour<'_> {
    /// Shows the visitor everything at and below `top`, the names of a directory in their order.
    /// Symbolic links are not followed. Returns whether the walk went to its end.
    pub fn go(&mut self, top: &Path, visitor: &mut dyn Visitor) -> Result<bool> {
        let Some(node) = self.skipped.pass(resolve(self.files, top))? else { return Ok(true) };
        self.visit(&Seen { path: top, attributes: node.attributes(), depth: 0 }, visitor)
    }

    /// Goes on below a file that somebody holds.
    fn visit(&mut self, seen: &Seen<'_>, visitor: &mut dyn Visitor) -> Result<bool> {
        let Some(next) = self.skipped.pass(visitor.enter(seen))? else { return Ok(true) };
        if next == Next::Stop {
            return Ok(false);
        }
        if next == Next::Into && seen.is_directory() {
            let mut entries = Vec::new();
            self.skipped.pass(gather(self.files, seen.attributes.inode, seen.path, &mut entries))?;
            for entry in entries {
                let path = seen.path.join(OsStr::from_bytes(&entry.name));
                let looked_up = self.files.lookup(seen.attributes.inode, &entry.name);
                let node = looked_up.map(|attributes| Node::counted(self.files, attributes));
                let node = self.skipped.pass(node.map_err(|error| failed("reach", &path, &error)))?;
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
