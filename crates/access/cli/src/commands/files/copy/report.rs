//! What a copy tells at its end.

use super::manner::Voice;
use onode::{Result, human_size};
use onode_console::Output;
use serde::Serialize;
use std::fmt;

/// What was copied.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Copied {
    /// Nothing was: it is what would have been.
    pub dry_run: bool,
    /// Files with content.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Further names of files that were copied under another one.
    pub hard_links: u64,
    /// Devices, FIFOs and sockets.
    pub special: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Files that were there already.
    pub skipped: u64,
    /// Files and directories that a pattern left out.
    pub excluded: u64,
    /// Devices, FIFOs and sockets that were not asked for.
    pub left_out: u64,
}

impl Copied {
    /// Tells it, unless nobody wants to hear it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn report(&self, voice: Voice, output: &Output) -> Result<()> {
        if voice == Voice::Quiet { Ok(()) } else { output.report(self) }
    }
}

/// `1 file`, `2 files`.
pub fn counted(count: u64, thing: &str) -> String {
    match (count, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {thing}s"),
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.dry_run { "would copy" } else { "copied" };
        write!(f, "{verb} {}, {}", counted(self.files, "file"), human_size(self.bytes))?;
        for (count, thing) in [
            (self.directories, "directory"),
            (self.links, "link"),
            (self.hard_links, "hard link"),
            (self.special, "special file"),
        ] {
            if count > 0 {
                write!(f, ", {}", counted(count, thing))?;
            }
        }
        for (count, what) in [
            (self.skipped, "skipped, there already"),
            (self.excluded, "excluded"),
            (self.left_out, "left out: devices, FIFOs or sockets"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let copied = Copied { files: 1, directories: 2, bytes: 1536, excluded: 1, ..Copied::default() };
        assert_eq!(copied.to_string(), "copied 1 file, 1.5 KiB, 2 directories; 1 excluded");
        let dry = Copied { dry_run: true, links: 1, skipped: 3, ..Copied::default() };
        assert_eq!(dry.to_string(), "would copy 0 files, 0 B, 1 link; 3 skipped, there already");
    }
}
