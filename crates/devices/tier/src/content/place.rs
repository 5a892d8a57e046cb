//! Where objects are: copies are made and given up on request, and the reasons told.

use crate::commit::Volume;
use crate::core::Core;
use crate::device::TierDevice;
use crate::fast::mover::Move;
use crate::fast::{Piece, Refusal};
use crate::medium::errors::invalid;
use crate::medium::layout::BLOCK;
use crate::space::extent::MOST_BLOCKS;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_object::powers::{Moved, Place, SectionSize, Whereabouts};
use onode_object::{Error, ErrorKind, ObjectId, Placement, Result, Target};

/// The section of what the device may put anywhere.
const ANY_SECTION: &str = "any";
/// Reasons that are told of one object.
const MOST_REASONS: usize = 8;

impl Place for TierDevice {
    fn sections(&self) -> Vec<String> {
        self.volume.core.lock().superblock().sections.clone()
    }

    fn division(&self) -> Vec<SectionSize> {
        let core = self.volume.core.lock();
        core.disks().fast.lock().get().map_or_else(Vec::new, |fast| fast.division())
    }

    fn divide(&self, sections: &[SectionSize]) -> Result<()> {
        let home = self.volume.home();
        {
            let core = &mut *self.volume.core.lock();
            core.check_writable()?;
            let disks = Arc::clone(core.disks());
            let mut slot = disks.fast.lock();
            let fast = slot.get().ok_or_else(|| invalid("there is no fast disk"))?;
            let divided = fast.divide(sections).map(|()| (fast.section_names(), fast.layout().clone()));
            if let Err(error) = &divided
                && error.kind != ErrorKind::Invalid
            {
                slot.lose(format!("{error}"));
            }
            let (names, division) = divided?;
            core.anchors_mut().set_division(names, division);
        }
        home.write_superblock().map_err(|error| home.fail(error))
    }

    fn promote(&self, object: ObjectId, waits: bool) -> Result<Moved> {
        {
            let mut core = self.volume.core.lock();
            let onode = core.index_mut().known(object)?;
            let class = onode.hints.placement_class;
            let bypasses = Placement::from_class(class).target == Target::Bypass;
            if bypasses || !core.disks().fast.lock().is_there() {
                let why = if bypasses { Refusal::Bypass } else { Refusal::Away };
                return Err(Error::of(ErrorKind::Invalid, object, why.describe()));
            }
            let room = core.disks().fast.lock().get().and_then(|fast| fast.capacity(class));
            if room.is_some_and(|room| onode.blocks > room) {
                let what = format!("it has {} blocks, and its section holds {}", onode.blocks, room.unwrap_or(0));
                return Err(Error::of(ErrorKind::NoSpace, object, what));
            }
            if !waits {
                let bytes = onode.blocks.saturating_mul(BLOCK);
                let pushed =
                    core.disks().fast.lock().get().map_or(Err(Refusal::Away), |fast| fast.mover().push(object.0));
                pushed.map_err(|refusal| Error::of(ErrorKind::NoSpace, object, refusal.describe()))?;
                return Ok(Moved { bytes: 0, waiting: bytes });
            }
        }
        // What has no place of its own yet cannot have a copy of it.
        if self.volume.core.lock().buffers().pending().range(object.0, 0, u64::MAX).next().is_some() {
            self.volume.checkpoint()?;
        }
        let mut moved = Moved::default();
        let mut at = 0;
        loop {
            let step = self.volume.promote_some(object, at, true)?;
            moved.bytes += step.blocks * BLOCK;
            if let Some(refusal) = step.refused {
                return Err(Error::of(ErrorKind::NoSpace, object, refusal.describe()));
            }
            match step.next {
                Some(next) => at = next,
                None => return Ok(moved),
            }
        }
    }

    fn demote(&self, object: ObjectId) -> Result<Moved> {
        let mut core = self.volume.core.lock();
        core.index_mut().known(object)?;
        let blocks = core.disks().fast.lock().get().map_or(0, |fast| fast.demote(object.0));
        Ok(Moved { bytes: blocks * BLOCK, waiting: 0 })
    }

    fn why(&self, object: ObjectId) -> Result<Whereabouts> {
        whereabouts(&mut self.volume.core.lock(), object)
    }
}

impl TierDevice {
    /// Keeps the copies of an object on the fast disk, those it has and those it gets, or lets them
    /// go as others. Copies stay pinned over a mount; what the object gets after it is only pinned
    /// if its placement says so.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` without a fast disk.
    pub fn pin(&self, object: ObjectId, pinned: bool) -> Result<()> {
        let mut core = self.volume.core.lock();
        core.index_mut().known(object)?;
        let mut slot = core.disks().fast.lock();
        let fast = slot.get().ok_or_else(|| Error::of(ErrorKind::Invalid, object, Refusal::Away.describe()))?;
        fast.pin(object.0, pinned);
        Ok(())
    }
}

impl Volume {
    /// Copies objects that wait for it, about `budget` pieces; whether more wait.
    ///
    /// # Errors
    /// `Media`.
    pub fn move_waiting(&self, budget: u32) -> Result<(u32, bool)> {
        let mut done = 0;
        while done < budget {
            let disks = Arc::clone(self.core.lock().disks());
            let next = disks.fast.lock().get().and_then(|fast| {
                let day = fast.day();
                fast.mover().pop(day).map(|next| (next, day))
            });
            let Some((next, day)) = next else { return Ok((done, false)) };
            done += 1;
            // An object that is gone or damaged is not moved; whoever reads it is told.
            let Ok(step) = self.promote_some(ObjectId(next.object), next.index, false) else { continue };
            disks.fast.lock().with(|fast| {
                match (step.refused, step.next) {
                    (Some(refusal), _) => fast.mover().refused(next, refusal, day),
                    (None, Some(index)) => fast.mover().goes_on(Move { index, ..next }),
                    (None, None) => {}
                }
                Ok(())
            });
        }
        Ok((done, self.core.lock().disks().fast.lock().get().is_some_and(|fast| !fast.mover().is_empty())))
    }
}

/// Where an object is, and why not elsewhere.
fn whereabouts(core: &mut Core, object: ObjectId) -> Result<Whereabouts> {
    let onode = core.index_mut().known(object)?;
    let placement = Placement::from_class(onode.hints.placement_class);
    let mut found = Whereabouts {
        log_bytes: core.buffers().pending().range(object.0, 0, u64::MAX).count() as u64 * BLOCK,
        ..Whereabouts::default()
    };
    let named = |number: u8| core.superblock().sections.get(usize::from(number)).cloned();
    found.section = match placement.target {
        Target::Bypass => None,
        Target::Device => Some(ANY_SECTION.to_string()),
        Target::Section(number) => named(number).or_else(|| Some(ANY_SECTION.to_string())),
    };
    if !onode.has_blocks {
        found.reasons.push(format!("{} bytes lie in the tree of the big disk, with its metadata", onode.size));
    }
    if let Some(why) = &core.disks().fast.lock().lost {
        found.reasons.push(format!("the fast disk is away: {why}"));
    }
    let last = onode.size.div_ceil(BLOCK);
    let mut from = 0;
    while let Some((index, extent)) = core.index_mut().next_extent(object, from, last)? {
        from = index + extent.blocks().min(MOST_BLOCKS);
        found.big_bytes += extent.blocks() * BLOCK;
        let (block, born, blocks) = (extent.block, extent.born, extent.blocks() as u32);
        let piece = Piece { block, born, blocks, object: object.0, index, class: onode.hints.placement_class };
        let mut slot = core.disks().fast.lock();
        let Some(fast) = slot.get() else {
            continue;
        };
        let copied = fast.copied(&piece);
        found.fast_bytes += copied * BLOCK;
        // Of what is never asked for nothing is known but that.
        let why = match found.section {
            None if copied == 0 => format!("not copied: {}", Refusal::Bypass.describe()),
            _ => fast.why(block),
        };
        let reason = format!("bytes {} on: {why}", index * BLOCK);
        if found.reasons.len() < MOST_REASONS {
            found.reasons.push(reason);
        }
    }
    if !core.disks().fast.lock().is_there() && found.reasons.is_empty() {
        found.reasons.push(Refusal::Away.describe().to_string());
    }
    Ok(found)
}
