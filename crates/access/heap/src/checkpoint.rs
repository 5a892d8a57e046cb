//! Memory that is saved as it is at one moment, again and again, at a cost that goes with what
//! changed in between.
//!
//! An [`Arena`] is a piece of working memory of this process, up to all that the host has, with an
//! allocator of its own whose tables lie in it. [`Arena::checkpoint`] saves all of it under a name
//! in the files of the heap; another process, or this one, goes on from there with
//! [`Heap::restore`](crate::Heap::restore). References ([`Ref`](crate::Ref)) within an arena count
//! from its start and hold in every process.
//!
//! Changed pages are found by the kernel ([`Tracking`]) and copied ahead while the program goes on
//! ([`Arena::copy_ahead`]); what it stores to meanwhile is copied again. Only the last few are
//! copied while nobody stores ([`Arena::freeze`]), and that is the pause: its length goes with what
//! was stored during the copying, not with what changed since the last checkpoint. Each page goes
//! to a slot that no checkpoint refers to, so nothing that was saved is touched; then a record of
//! the changed pages is added to the one before, and one transaction has the name stand for it
//! ([`Frozen::commit`]).
//!
//! It keeps true: a name stands for one whole image, the old one or the new one, whatever happens
//! when; what a checkpoint returned from has saved survives what the medium survives; a damaged
//! page is an error and never part of an image. It does not make two processes share an arena, and
//! the moment of an image is the program's to choose: nobody may be in the middle of a change while
//! it is frozen.

mod arena;
mod capture;
mod claim;
mod memory;
mod record;
mod slots;
mod store;
mod tracking;

pub(crate) use claim::{Claim, Claims};

pub use arena::{Arena, Checkpoint};
pub use capture::{Frozen, Report};
pub use tracking::Tracking;
