//! Which checkpoint a repair goes on from: the newest one, or an older one that has more.
//!
//! On a closed volume the checkpoint before the newest is still whole, with the journal behind it:
//! its segments are free only after the next one. So a node of the index that cannot be read any
//! more may be there in an older place, and the journal has what was changed since. Nodes are given
//! up only if no checkpoint has them.
//!
//! It keeps true: a checkpoint is taken with what the journal has behind it up to where a segment
//! that it needs was opened anew, and never further, so no content is shown that never was. Nothing
//! is written.

use super::{Action, recount};
use crate::core::Core;
use crate::index::Index;
use crate::medium::errors::damaged;
use crate::medium::format::Superblock;
use crate::medium::layout::Layout;
use crate::medium::ring::{self, Found};
use crate::options::MountOptions;
use crate::recover::replay::Recovery;
use crate::space::segments::SegmentState;
use crate::tools::check::medium::Medium;
use crate::tools::check::superblocks::Located;
use crate::tools::check::{Context, table};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;
use onode_base::ErrorKind;
use onode_media::Nand;
use onode_object::{Error, ObjectId, Result};

/// So many checkpoints are looked at: one that is older was in use too long ago to be whole.
const CHECKPOINTS_MAX: usize = 8;

/// A lost node counts as so many lost entries, as it is not known how many it had.
const ENTRIES_OF_NODE: u64 = 32;

/// Objects whose content is looked at between two looks into the index.
const OBJECTS_A_STEP: usize = 64;

/// The checkpoint that a repair goes on from, in memory.
pub(super) struct Standing {
    pub(super) core: Core,
    /// Parts of the journal that are lost.
    pub(super) cuts: Vec<Action>,
    /// The superblock that names it.
    generation: u32,
    /// The last commit that it has, with what the journal has.
    commit: u64,
}

/// What became of a checkpoint that was taken up.
enum Taken {
    /// Segment table and journal could be read.
    Whole(Box<Standing>),
    /// They could not; the medium, for another one.
    Damaged(Box<dyn Nand>),
}

/// What a checkpoint lacks, with the journal behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    nodes: u64,
    entries: u64,
    /// Objects that were counted and are not there.
    objects: u64,
    /// Commits that others have.
    commits: u64,
    /// Objects with content that cannot be read.
    content: u64,
}

impl Loss {
    const fn total(&self) -> u64 {
        self.nodes * ENTRIES_OF_NODE + self.entries + self.objects + self.commits + self.content
    }
}

impl Standing {
    /// The best one of the checkpoints that `all` superblocks name. With `may_lose` it may be one
    /// without something that the newest one had, else it is the newest one, or has all of it.
    /// What is done for that goes to `actions`.
    pub(super) fn best(
        nand: Box<dyn Nand>,
        all: &[Found],
        newest: &Found,
        may_lose: bool,
        actions: &mut Vec<Action>,
    ) -> Result<Self> {
        let mut nand = nand;
        let layout = ring::check_superblock(newest, &*nand)?;
        let checkpoints = usable(&mut *nand, &layout, all, newest);
        let in_use = used_by(&mut *nand, &layout, newest);
        let mut last_commit = newest.superblock.transaction.get();
        let mut best: Option<(&Found, Loss)> = None;
        for found in &checkpoints {
            let mut standing = match Self::of(nand, found, newest)? {
                Taken::Whole(standing) => *standing,
                Taken::Damaged(back) => {
                    nand = back;
                    continue;
                }
            };
            let is_newest = is_same(found, newest);
            last_commit = last_commit.max(standing.commit);
            let mut loss = standing.loss_of_index(last_commit)?;
            if is_newest && loss.nodes == 0 && loss.entries == 0 {
                return Ok(standing);
            }
            let best_total = best.map_or(u64::MAX, |(_, loss)| loss.total());
            if loss.nodes == 0 && loss.total() < best_total {
                loss.content = standing.damaged_objects()?;
            }
            if loss.total() < best_total {
                best = Some((found, loss));
            }
            nand = standing.core.into_nand();
            if loss.total() == 0 {
                break;
            }
        }
        let Some((found, loss)) = best else {
            return Err(damaged("no checkpoint can be used: segment table or root of the index are lost"));
        };
        let Taken::Whole(mut standing) = Self::of(nand, found, newest)? else {
            return Err(damaged("a checkpoint that could be read cannot be read any more"));
        };
        if !is_same(found, newest) {
            if !may_lose && loss.total() > 0 {
                return Err(damaged(
                    "the newest checkpoint cannot be used without losing something, and an older one can with what \
                     came since lost",
                ));
            }
            let newest = newest.superblock.generation.get();
            let commits = last_commit - standing.commit;
            actions.push(Action::OlderCheckpoint { generation: standing.generation, newest, commits });
            standing.begin_session(&in_use);
        }
        Ok(*standing)
    }

    /// What the superblock `found` names.
    fn of(nand: Box<dyn Nand>, found: &Found, newest: &Found) -> Result<Taken> {
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let mut core = Core::of_superblock(nand, found, &options)?;
        let recovery = if is_same(found, newest) { Recovery::default() } else { Recovery::of_older() };
        match core.load(found, recovery) {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                return Ok(Taken::Damaged(core.into_nand()));
            }
            taken => taken?,
        }
        let commit = core.log().transaction();
        recount::supersede(&mut core.volume(), newest);
        let mut cuts = Vec::new();
        let lost = core.recovery_parts().0.take_loss();
        cuts.extend(lost.map(|why| Action::JournalCut { why }));
        while let Err(error) = core.with_index(Index::apply_all_deferred) {
            if error.kind != ErrorKind::Corrupt {
                return Err(error);
            }
            cuts.push(Action::JournalCut { why: error.detail });
            core.with_index(|index, _| index.drop_next_deferred());
        }
        let generation = found.superblock.generation.get();
        Ok(Taken::Whole(Box::new(Self { core, cuts, generation, commit })))
    }

    /// Refuses to go on without parts of the journal: somebody relied on what is in them.
    ///
    /// # Errors
    /// `Loss`, which says what would be given up.
    pub(super) fn refuse_cuts(&self) -> Result<()> {
        let whys = self.cuts.iter().filter_map(|cut| match cut {
            Action::JournalCut { why } => Some(why.as_str()),
            _ => None,
        });
        let whys: Vec<&str> = whys.collect();
        if whys.is_empty() {
            return Ok(());
        }
        let lost = format!("what was done after commit {} would be given up", self.commit);
        Err(Error::new(ErrorKind::Loss, format!("{}; {lost}", whys.join("; "))))
    }

    /// What it lacks beside content, if there were `commits` commits.
    fn loss_of_index(&mut self, commits: u64) -> Result<Loss> {
        let (nodes, entries, objects) = recount::missing(&mut self.core.volume())?;
        Ok(Loss { nodes, entries, objects, commits: commits - self.commit, content: 0 })
    }

    /// Objects with content that cannot be read.
    fn damaged_objects(&mut self) -> Result<u64> {
        let (mut from, mut count) = (ObjectId(0), 0);
        loop {
            let objects = self.core.with_index(|index, log| index.list(log, from, OBJECTS_A_STEP))?;
            let Some(last) = objects.last() else { return Ok(count) };
            from = ObjectId(last.0 + 1);
            let mut damage = Vec::new();
            self.core.with_index(|index, log| index.verify(log, &objects, &mut damage))?;
            let mut objects: Vec<_> = damage.into_iter().map(|error| error.object).collect();
            objects.dedup();
            count += objects.len() as u64;
        }
    }

    /// Begins to write behind another checkpoint than this one, whose superblock is not repeated: a
    /// cut is to leave the volume as it was. What this one held for those before it nobody needs
    /// any more; `segments`, which the newest one needs, are left alone as far as there is room.
    fn begin_session(&mut self, segments: &[u32]) {
        let volume = self.core.volume();
        volume.checkpoints.note_session_begun();
        volume.log.table_mut().release_held();
        for &segment in segments {
            let reserve = self.core.room().reserve_segments();
            let table = self.core.volume().log.table_mut();
            if table.allocatable() > 2 * reserve && table.get(segment).state == SegmentState::Free {
                table.update(segment, |one| one.state = SegmentState::Held);
            }
        }
    }
}

/// Whether two superblocks name the same checkpoint.
fn is_same(one: &Found, other: &Found) -> bool {
    one.superblock.checkpoint_generation == other.superblock.checkpoint_generation
}

fn located(found: &Found) -> Located {
    let Found { superblock, references, block, .. } = found;
    Located { block: *block, page: 0, superblock: *superblock, references: references.clone() }
}

/// The checkpoints whose segment table and root can be read, the newest first, each by the newest
/// superblock that names it.
fn usable(nand: &mut dyn Nand, layout: &Layout, all: &[Found], newest: &Found) -> Vec<Found> {
    let mut descending: Vec<&Found> = all.iter().collect();
    descending.sort_by_key(|found| Reverse(found.superblock.generation.get()));
    let mut usable: Vec<Found> = Vec::new();
    for found in descending {
        let superblock: &Superblock = &found.superblock;
        if usable.len() >= CHECKPOINTS_MAX
            || usable.iter().any(|known| is_same(known, found))
            || superblock.uuid != newest.superblock.uuid
            // The volume grew or shrank since.
            || superblock.blocks != newest.superblock.blocks
            || ring::check_superblock(found, nand).is_err()
        {
            continue;
        }
        let located = located(found);
        let mut medium = Medium::new(nand, *layout, &located);
        let Some(table) = table::load(&mut medium, &located, &mut Context::silent()) else { continue };
        let sequence = table.sequence(layout, superblock.root.location.get());
        if medium.blob(&superblock.root, sequence).is_ok() {
            usable.push(found.clone());
        }
    }
    usable
}

/// The segments that the newest checkpoint needs, as far as its segment table tells.
fn used_by(nand: &mut dyn Nand, layout: &Layout, newest: &Found) -> Vec<u32> {
    let located = located(newest);
    let mut medium = Medium::new(nand, *layout, &located);
    let table = table::load(&mut medium, &located, &mut Context::silent());
    let is_needed = |state| matches!(state, SegmentState::Open | SegmentState::Full | SegmentState::Failing);
    let segments = (0..).zip(table.into_iter().flat_map(|table| table.segments));
    segments.filter(|(_, one)| is_needed(one.state)).map(|(segment, _)| segment).collect()
}
