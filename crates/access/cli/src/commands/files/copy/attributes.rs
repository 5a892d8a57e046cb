//! Extended attributes of copies, as far as the other side may and can have them.

use super::{Side, Xattr};
use onode::Result;
use onode_console::Output;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Sets extended attributes, and tells once of each that cannot be kept.
#[derive(Debug, Default)]
pub struct Attributes {
    told: RefCell<HashSet<Vec<u8>>>,
}

impl Attributes {
    /// Gives a file these attributes.
    ///
    /// # Errors
    /// Those of the side; that it cannot have one is none.
    pub fn set(&self, side: &dyn Side, path: &Path, xattrs: &[Xattr], output: &Output) -> Result<()> {
        for xattr in xattrs {
            if !side.set_xattr(path, xattr)? && self.told.borrow_mut().insert(xattr.name.clone()) {
                let (name, file) = (OsStr::from_bytes(&xattr.name).display(), side.name(path));
                let text = "there it cannot be set, or only by others; so of all that have it";
                output.warning(&format!("left out the extended attribute {name} of {file}: {text}"));
            }
        }
        Ok(())
    }
}
