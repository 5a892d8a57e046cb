//! Specs of objects in memory: `ram:size=256M`.

use super::{Said, Spec, size_of, unknown_part};
use crate::error::{Class, Error, Result};
use onode_base::size::exact_size;
use std::fmt;
use std::path::Path;

/// Bytes, if nothing was said.
const USUAL_BYTES: u64 = 256 << 20;

/// Objects in memory, without a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ram {
    /// Capacity in bytes.
    pub size: u64,
}

pub(super) fn parse(what: &str, rest: &str) -> Result<Spec> {
    let mut size = USUAL_BYTES;
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("size", value)) => size = size_of(what, value)?,
            _ => return Err(unknown_part(what, part, "size")),
        }
    }
    if size < 1 << 20 {
        return Err(
            Error::new(Class::BadSize, what, format!("size {} is too small", exact_size(size))).hint("the least is 1M")
        );
    }
    Ok(Spec::Ram(Ram { size }))
}

impl Said for Ram {
    fn image_path(&self) -> Option<&Path> {
        None
    }

    fn again(&self) -> Spec {
        Spec::Ram(*self)
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ram:size={}", exact_size(self.size))
    }
}
