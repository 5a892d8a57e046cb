//! The object interface: the wall between the host file system and every device.
//!
//! Host and device share no memory and no pointer (paper 1, section IV): everything that crosses is
//! a value. An *object* is a sparse array of bytes with a size, a set of small typed attributes
//! ordered by key, and hints. Every change is a [`Transaction`]; [`ObjectDevice`] is what a device
//! offers; what only some devices can do is an optional power of its own.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod device;
pub mod durability;
pub mod error;
pub mod health;
pub mod hints;
pub mod id;
pub mod placement;
pub mod powers;
pub mod ram;
pub mod transaction;
pub mod validate;
pub mod wire;

pub use device::{Demand, DeviceInfo, Maintenance, ObjectDevice, ObjectStat, Space};
pub use durability::{Durability, SyncScope};
pub use error::{Error, ErrorKind, Result};
pub use health::{Condition, Health, Severity};
pub use hints::{Compression, Hints, Lifetime, ObjectKind, ParityChoice, Temperature};
pub use id::{AttributeKey, AttributeKind, ObjectId};
pub use placement::{Acknowledge, Placement, Target};
pub use powers::{Setting, Settings};
pub use ram::RamDevice;
pub use transaction::{Mutation, Transaction};
