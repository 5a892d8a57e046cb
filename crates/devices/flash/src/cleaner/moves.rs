//! Room for content that changes its object. It fills nothing, but its extents are taken from some
//! nodes and entered in others, and the next checkpoint has to write all of them.
//!
//! It keeps true: a transaction changes no more nodes for it than a checkpoint has room for. What
//! would is refused before anything is done, and goes in parts.

use crate::volume::Volume;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use onode_base::ErrorKind;
use onode_object::{Error, Mutation, ObjectId, Result, Transaction};

/// Makes sure that a checkpoint has room for the nodes that moves of `transaction` change.
///
/// # Errors
/// `NoSpace` if it moves content in too many pieces; nothing has changed that anyone can see.
pub fn make_room_for_moves(volume: &mut Volume<'_>, transaction: &Transaction) -> Result<()> {
    let has_moves = transaction.mutations.iter().any(|one| matches!(one, Mutation::Move { .. }));
    if !has_moves {
        return Ok(());
    }
    let mut extents = 0;
    let most = volume.room().moved_extents_max();
    let limit = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
    // What one object was given or wrote before in the same transaction it may give on.
    let mut changed: BTreeMap<ObjectId, FamilyChanges> = BTreeMap::new();
    for mutation in &transaction.mutations {
        let origin = mutation.object().origin();
        match mutation {
            Mutation::Move { object, offset, length, .. } => {
                let family = changed.entry(origin).or_default();
                family.givers.insert(*object);
                extents += family.written;
                for giver in &family.givers {
                    let range = *offset..offset.saturating_add(*length);
                    extents += volume.index.extents(volume.log, *giver, range, limit)?.len() as u64;
                }
                if extents > most {
                    let detail = format!("content in more than {most} pieces moves at once; move it in parts");
                    return Err(Error::of(ErrorKind::NoSpace, *object, detail));
                }
            }
            // One a page at the worst.
            Mutation::Write { data, .. } => {
                let pages = data.len() as u64 / u64::from(volume.log.layout().payload_bytes);
                changed.entry(origin).or_default().written += 2 + pages;
            }
            _ => {}
        }
    }
    if !volume.room().can_move(extents) {
        volume.set_free()?;
    }
    Ok(())
}

/// What a transaction does to an object and its versions.
#[derive(Default)]
struct FamilyChanges {
    /// Those that give content.
    givers: BTreeSet<ObjectId>,
    /// The most extents that it writes.
    written: u64,
}
