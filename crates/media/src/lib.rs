//! Media: one trait per physics of storage, their simulators, files and wrappers.
//!
//! Each method's contract states what a power cut may leave behind; devices rely on that and on
//! nothing else. Today there is [`nand::Nand`], simulated in [`sim`], kept in a file by `image`,
//! found on devices of Linux by `real` and decorated by [`wrap`], and [`pmem::Pmem`],
//! byte-addressable memory, and [`blockdev::BlockDev`], disks.
//!
//! Only `real` holds `unsafe` code, for the calls of the kernel that have no safe face.
#![no_std]
#![cfg_attr(not(feature = "std"), forbid(unsafe_code))]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod between;
pub mod blockdev;
pub mod counters;
pub mod error;
pub mod fault;
#[cfg(feature = "std")]
pub mod image;
pub mod nand;
pub mod pmem;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod real;
pub mod sim;
pub mod tag;
pub mod wear;
pub mod wrap;

pub use between::{Between, Gap, Seam};
pub use blockdev::joined::JoinedDisk;
pub use blockdev::{BlockCounters, BlockDev, DiskRead, RequestCounts, SharedDisk};
pub use counters::{Counters, OperationCounts};
pub use error::{Error, MediaErrorKind, Result};
pub use fault::{Fault, FaultPlan, OperationKind, Repeat};
#[cfg(feature = "std")]
pub use image::ImageNand;
pub use nand::{BlockAddress, Geometry, Nand, PageAddress, PageRun, SharedNand, Watermark};
pub use pmem::{Domain, Pmem};
pub use sim::{Damage, MediaOperation, PmemOptions, SimNand, SimOptions, SimPmem, Survival};
pub use tag::IoTag;
pub use wear::Wear;
