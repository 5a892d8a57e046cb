//! Media in files of the host: what people use who have no bare chip at hand.
//!
//! An image outlives its process, is locked against a second user, and refuses what it cannot
//! understand with an error that says why. `docs/format/nand-image.md` describes the bytes.

mod format;
mod host;
pub(crate) mod mark;
pub mod nand;
mod shared;
mod watermark;

pub use nand::{CreateOptions, ImageNand, OpenMode};
