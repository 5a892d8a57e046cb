//! Media that are devices of Linux: raw NAND chips, block devices and partitions, zoned ones, and
//! plain files used like one; and memory that is reached byte by byte ([`pmem`], [`mtd_ram`]).
//!
//! Everything here opens a device for one user alone, speaks to it past the page cache (memory has
//! none), and turns each refusal of the kernel into a kind that says what the caller can do. What a
//! device is, is seen by looking at it ([`identify`]); nothing is written before a caller asks for
//! it. `docs/format/block.md` describes what is put on a device beside the pages.

pub mod block;
mod host;
mod ioctl;
pub mod kind;
mod label;
mod lock;
pub mod mtd;
pub mod mtd_ram;
mod order;
pub mod pmem;
pub mod zoned;

pub use block::BlockNand;
pub use host::DeviceFile;
pub use kind::{Kind, identify};
pub use mtd::MtdNand;
pub use mtd_ram::MtdRam;
pub use pmem::{Executable, Flushing, MappedOptions, MappedPmem, Opening, Stitched};
pub use zoned::ZonedNand;
