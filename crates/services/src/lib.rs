//! Services over any object device: an object device that wraps an object device.
//!
//! [`Compressed`] keeps content in fewer bytes, [`Encrypted`] keeps all that a host gives it secret.
//! They know objects, and neither a medium nor a file; the wrapped device sees ordinary objects, so
//! no format below changes. Nothing here reads a clock, draws a random number or starts a thread.
#![forbid(unsafe_code)]

mod compressed;
mod encrypted;
mod life;
mod plan;
mod ranges;
mod shards;
mod turn;

pub use compressed::Compressed;
pub use encrypted::{Cost, Encrypted, Header, KeySlot, MasterKey, Secret, Session, SlotKind};
pub use encrypted::{KEY_FILE_BYTES_MIN, LABEL_BYTES_MAX, SLOTS_MAX};
