//! Advice to the device as a node remembers it.

use onode_object::{Compression, Hints};

/// What files take over from the directory that they are made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Where content is placed; 0 leaves it to the device.
    pub(crate) placement_class: u16,
    /// How it is compressed; `Auto` leaves it to the mount.
    pub(crate) compression: Compression,
}

impl Advice {
    pub(crate) const fn of(hints: &Hints) -> Self {
        Self { placement_class: hints.placement_class, compression: hints.compression }
    }

    /// Hints with this advice among them.
    pub(crate) const fn add_to(self, hints: Hints) -> Hints {
        Hints { placement_class: self.placement_class, compression: self.compression, ..hints }
    }
}
