//! A fast and a big disk as one object device (paper 4).
//!
//! The big disk has everything that is needed to mount; the fast disk is a verified copy of some of it and carries a
//! second log. Whatever is read from the fast disk is checked against checksums that lie on the big one.
//!
//! What it keeps true:
//! * A fast disk that is lost, stale, swapped, wiped or lying never gives wrong bytes, and never takes an acknowledged
//!   byte with it in the class `safe`.
//! * Nothing that the last durable checkpoint refers to is ever overwritten, so that a mount is that checkpoint plus a
//!   replay of the log behind it, and can itself be cut at any point.
//!
//! What it does not do: redundancy. A big disk that is lost is lost.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ahead;
mod anchors;
mod apply;
mod attach;
mod bitmap;
mod bytes;
mod change;
mod checkpoint;
mod commit;
mod consent;
mod core;
mod device;
mod discard;
mod disks;
mod errors;
mod extent;
pub mod fast;
mod flight;
mod health;
mod home;
mod inspect;
mod join;
mod layout;
mod log;
mod miss;
mod mount;
mod node;
mod onode;
mod options;
mod pending;
mod pins;
mod place;
mod plan;
pub mod policy;
mod probe;
mod promote;
mod ranges;
mod read;
mod record;
mod ring;
mod room;
mod salvage;
mod scrub;
mod slot;
mod space;
mod spilled;
mod superblock;
mod tails;
mod tree;
mod unneeded;
mod verify;
mod waiting;
mod wanted;

pub use attach::FindFast;
pub use device::TierDevice;
pub use options::{FormatOptions, MountOptions, NewFast};
pub use salvage::Salvaged;
