//! Advice to the device as a node remembers it.

use onode_object::{Compression, Hints, Lifetime, Temperature};

/// What files take over from the directory that they are made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Where content is placed; 0 leaves it to the device.
    pub(crate) placement_class: u16,
    /// How it is compressed; `Auto` leaves it to the mount.
    pub(crate) compression: Compression,
    /// How long it stays as it is.
    pub(crate) lifetime: Lifetime,
    /// How often it is used.
    pub(crate) temperature: Temperature,
    /// How many bytes it will have; 0 if nobody knows.
    pub(crate) expected_size: u64,
    /// Pages of parity; 0 leaves them to the device.
    pub(crate) parity_pages: u8,
    /// The key that it needs beside that of the volume; 0 for none.
    pub(crate) encryption_key: u32,
}

impl Advice {
    pub(crate) const fn of(hints: &Hints) -> Self {
        Self {
            placement_class: hints.placement_class,
            compression: hints.compression,
            lifetime: hints.lifetime,
            temperature: hints.temperature,
            expected_size: hints.expected_size,
            parity_pages: hints.parity_pages,
            encryption_key: hints.encryption_key,
        }
    }

    /// Hints with this advice among them.
    pub(crate) const fn add_to(self, hints: Hints) -> Hints {
        let Self { placement_class, compression, lifetime, temperature, expected_size, parity_pages, encryption_key } =
            self;
        Hints {
            placement_class,
            compression,
            lifetime,
            temperature,
            expected_size,
            parity_pages,
            encryption_key,
            ..hints
        }
    }
}
