//! What a copy leaves out: patterns for names and for paths below what is copied.

use crate::location::pattern::Pattern;
use onode::{Class, Error, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Patterns of files that are left out.
#[derive(Clone, Debug, Default)]
pub struct Excludes(Vec<Exclude>);

#[derive(Clone, Debug)]
struct Exclude {
    /// One for each name of a path; of a pattern without a slash the only one, for any name.
    parts: Vec<Pattern>,
    is_path: bool,
    /// It ended with a slash.
    only_directories: bool,
}

impl Excludes {
    /// Reads the patterns of a command line.
    ///
    /// # Errors
    /// `Usage` for one that cannot be meant.
    pub fn new(globs: &[OsString]) -> Result<Self> {
        globs.iter().map(|glob| Exclude::new(glob)).collect::<Result<_>>().map(Self)
    }

    /// Whether a file is left out: one at this path below what is copied, which itself is at the
    /// empty path.
    pub fn admit(&self, name: Option<&OsStr>, below: &Path, is_directory: bool) -> bool {
        !self.0.iter().any(|one| (is_directory || !one.only_directories) && one.matches(name, below))
    }
}

impl Exclude {
    fn new(glob: &OsStr) -> Result<Self> {
        let wrong = |why: &str, hint: &str| {
            Err(Error::new(Class::Usage, format!("cannot use --exclude `{}`", glob.display()), why).hint(hint))
        };
        let bytes = glob.as_bytes();
        let only_directories = bytes.ends_with(b"/");
        let inner = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let is_path = inner.contains(&b'/');
        let inner = inner.strip_prefix(b"/").unwrap_or(inner);
        let parts: Vec<&[u8]> = inner.split(|byte| *byte == b'/').collect();
        if parts.iter().any(|part| part.is_empty() || *part == b"." || *part == b"..") {
            let hint = "give a name ('*.tmp', 'cache/') or a path below what is copied ('/var/cache')";
            return wrong("a part of it is empty, `.` or `..`", hint);
        }
        if parts.iter().any(|part| !Pattern::is_closed(part)) {
            return wrong("a `[` in it is never closed", "write [[] for the letter itself, or close it: '[a-z]*'");
        }
        let parts = parts.into_iter().map(Pattern::new).collect();
        Ok(Self { parts, is_path, only_directories })
    }

    fn matches(&self, name: Option<&OsStr>, below: &Path) -> bool {
        if !self.is_path {
            return name.is_some_and(|name| self.parts.iter().all(|part| part.matches(name.as_bytes())));
        }
        let names: Vec<&OsStr> = below.iter().collect();
        names.len() == self.parts.len()
            && self.parts.iter().zip(names).all(|(part, name)| part.matches(name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_left_out(glob: &str, below: &str, is_directory: bool) -> bool {
        let excludes = Excludes::new(&[glob.into()]).unwrap();
        let below = Path::new(below);
        !excludes.admit(below.file_name(), below, is_directory)
    }

    #[test]
    fn a_name_is_meant_anywhere_and_a_path_from_the_top_on() {
        assert!(is_left_out("*.tmp", "a/b.tmp", false) && is_left_out("*.tmp", "b.tmp", false));
        assert!(!is_left_out("*.tmp", "b.tmp.old", false));
        assert!(is_left_out("/b.tmp", "b.tmp", false) && !is_left_out("/b.tmp", "a/b.tmp", false));
        assert!(is_left_out("a/*.tmp", "a/b.tmp", false) && !is_left_out("a/*.tmp", "c/a/b.tmp", false));
        assert!(!is_left_out("a/*", "a/b/c", false), "a star reached over a slash");
        assert!(is_left_out("cache/", "x/cache", true) && !is_left_out("cache/", "x/cache", false));
        assert!(is_left_out("/a/cache/", "a/cache", true) && is_left_out("[[]", "[", false));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for glob in ["[", "a[b", "", "/", "a//b", "../a", "a/./b", "x/[a"] {
            let refused = Excludes::new(&[glob.into()]).unwrap_err();
            assert!(refused.class == Class::Usage && refused.hint.is_some(), "{glob}: {refused:?}");
        }
    }
}
