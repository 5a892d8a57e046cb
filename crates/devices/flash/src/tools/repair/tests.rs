//! Volumes spoilt in one way each, repaired, and checked again.

use super::{Action, RepairOptions, repair};
use crate::core::Core;
use crate::index::apply::Onode;
use crate::medium::layout::SegmentPage;
use crate::medium::ring;
use crate::options::{FormatOptions, MountOptions};
use crate::tools::check::superblocks::{Slot, read_slot};
use crate::tools::check::{CheckOptions, Report, check};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress, Result, SimNand, SimOptions};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectId, Transaction};
use std::sync::Mutex;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 256, chips: 1 };

/// A chip that outlives the volume on it; reads of some pages fail.
#[derive(Clone)]
struct Chip {
    nand: Arc<Mutex<SimNand>>,
    unreadable: Vec<PageAddress>,
}

impl Nand for Chip {
    fn geometry(&self) -> Geometry {
        SHAPE
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        if self.unreadable.contains(&page) {
            return Err(onode_media::Error::new(onode_media::MediaErrorKind::Uncorrectable, "spoilt"));
        }
        self.nand.lock().unwrap().read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.nand.lock().unwrap().program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.nand.lock().unwrap().erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.nand.lock().unwrap().is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.nand.lock().unwrap().mark_bad(block)
    }
}

impl Chip {
    fn check(&mut self) -> Report {
        check(self, &CheckOptions::default(), &mut |_, _| ())
    }

    fn mount(&self, read_only: bool) -> Core {
        let options = MountOptions { read_only, ..MountOptions::default() };
        Core::mount(Box::new(self.clone()), &options).unwrap()
    }
}

fn volume() -> (Chip, Core) {
    let nand = Arc::new(Mutex::new(SimNand::new(SHAPE, SimOptions::default()).unwrap()));
    let chip = Chip { nand, unreadable: Vec::new() };
    let mut core =
        Core::format(Box::new(chip.clone()), None, &FormatOptions::default(), &MountOptions::default()).unwrap();
    for object in 64..124 {
        core.volume().index.counts_mut().next_object = object + 1;
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(object), Hints::default()).write(ObjectId(object), 0, vec![object as u8; 1700]);
        for index in 0..3 {
            let key = onode_object::AttributeKey::new(onode_object::AttributeKind(40), index);
            transaction.set_attribute(ObjectId(object), key, vec![1; 100]);
        }
        core.commit(transaction, Durability::Durable).unwrap();
    }
    core.checkpoint(false).unwrap();
    (chip, core)
}

fn contents_of(core: &mut Core) -> Vec<ObjectId> {
    let objects = core.with_index(|index, log| index.list(log, ObjectId(0), 1000)).unwrap();
    for &object in &objects {
        let mut bytes = vec![0; 1700];
        let plan = core.with_index(|index, log| index.plan_read(log, object, 0, &mut bytes)).unwrap();
        assert_eq!(plan.carry_out(&mut core.volume().log.reader(IoTag::Check), &mut bytes).unwrap(), 1700);
        assert!(bytes.iter().all(|&byte| byte == object.0 as u8));
    }
    objects
}

/// Lets only the newest checkpoint of a chip be found.
fn forget_older_checkpoints(chip: &mut Chip) {
    let blocks = ring::blocks_of(chip).unwrap().into_iter().flatten();
    let places: Vec<(u32, u32)> =
        blocks.flat_map(|block| (0..SHAPE.pages_per_block).map(move |page| (block, page))).collect();
    let mut found = Vec::new();
    for (block, page) in places {
        if let Slot::Sound(one) = read_slot(chip, block, page) {
            let at = PageAddress(SHAPE.first_page(BlockAddress(block)).0 + u64::from(page));
            found.push((one.superblock.checkpoint_generation.get(), at));
        }
    }
    let newest = found.iter().map(|(checkpoint, _)| *checkpoint).max().unwrap();
    chip.unreadable.extend(found.iter().filter(|(checkpoint, _)| *checkpoint != newest).map(|(_, at)| *at));
}

const CAREFUL: RepairOptions = RepairOptions { drop_damaged: false, without_memory: false };
const DROP: RepairOptions = RepairOptions { drop_damaged: true, without_memory: false };

#[test]
fn a_sound_volume_is_left_as_it_is() {
    let (mut chip, mut core) = volume();
    core.close().unwrap();
    let before = chip.check();
    assert_eq!(repair(chip.clone(), &DROP).unwrap().actions, []);
    assert_eq!(chip.check(), before);
}

#[test]
fn a_crash_without_damage_is_recovered() {
    let (mut chip, mut core) = volume();
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(70));
    core.commit(transaction, Durability::Durable).unwrap();
    assert_eq!(repair(chip.clone(), &CAREFUL).unwrap().actions, []);
    assert_eq!(chip.check().findings, []);
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 59);
}

#[test]
fn wrong_figures_are_counted_anew() {
    let (mut chip, mut core) = volume();
    let used: Vec<u32> =
        core.volume().log.table().iter().filter(|(_, one)| one.live_bytes > 1000).map(|(n, _)| n).collect();
    let live = u64::from(core.log().table().get(used[0]).live_bytes);
    core.volume().log.table_mut().update(used[0], |one| one.live_bytes -= 7);
    core.volume().index.counts_mut().objects += 2;
    core.volume().index.counts_mut().extents += 3;
    let onode = core.with_index(|index, log| index.onode(log, ObjectId(80))).unwrap().unwrap();
    core.with_index(|index, log| index.set_onode(log, ObjectId(80), &Onode { allocated: 3, ..onode })).unwrap();
    core.volume().checkpoints.set_clean(false);
    core.close().unwrap();
    let found = chip.check().findings.len();
    let actions = repair(chip.clone(), &CAREFUL).unwrap().actions;
    assert_eq!(actions.len(), found, "{actions:?}");
    assert_eq!(actions[0], Action::LiveBytes { segment: used[0], from: live - 7, to: live });
    assert_eq!(actions[1], Action::Allocated { object: ObjectId(80), from: 3, to: 1700 });
    assert_eq!(actions[2], Action::ObjectCount { from: 62, to: 60 });
    assert!(actions.iter().all(|action| !action.is_loss()));
    assert_eq!(chip.check().findings, []);
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 60);
}

#[test]
fn a_segment_in_use_is_not_handed_out() {
    let (mut chip, mut core) = volume();
    let full = crate::space::segments::SegmentState::Full;
    let (used, _) = core.volume().log.table().iter().find(|(_, one)| one.state == full && one.live_bytes > 0).unwrap();
    core.volume().log.table_mut().update(used, |one| one.state = crate::space::segments::SegmentState::Free);
    core.volume().checkpoints.set_clean(false);
    core.close().unwrap();
    assert!(!chip.check().is_sound());
    let actions = repair(chip.clone(), &CAREFUL).unwrap().actions;
    assert_eq!(actions, [Action::SegmentState { segment: used, from: "free" }]);
    assert_eq!(chip.check().findings, []);
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 60);
}

/// Removes six objects, one commit and one journal page each; `filler` attribute bytes go with
/// each. Returns the third of those pages.
fn six_removals(chip: &Chip, core: &mut Core, filler: usize) -> onode_media::PageAddress {
    let (at, _) = core.volume().log.journal_position();
    for object in 64..70 {
        let mut transaction = Transaction::new();
        transaction.remove(ObjectId(object));
        if filler > 0 {
            let key = AttributeKey::new(AttributeKind::INODE, 0);
            transaction.set_attribute(ObjectId(80), key, vec![object as u8; filler]);
        }
        core.commit(transaction, Durability::Durable).unwrap();
    }
    assert!(chip.unreadable.is_empty());
    core.log().layout().address(SegmentPage { page: at.page + 2, ..at })
}

#[test]
fn the_sound_part_of_a_damaged_journal_is_kept() {
    let (mut chip, mut core) = volume();
    // Full pages have no room to repeat each other.
    let lost = six_removals(&chip, &mut core, 380);
    chip.unreadable.push(lost);
    assert!(!chip.check().is_sound());
    for read_only in [false, true] {
        let refused = Core::mount(Box::new(chip.clone()), &MountOptions { read_only, ..MountOptions::default() });
        assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Loss));
    }
    let consent = MountOptions { accept_loss: true, ..MountOptions::default() };
    let consented = Core::mount(Box::new(chip.clone()), &consent).unwrap();
    assert!(consented.log().store().latch().why().is_some());
    drop(consented);
    let actions = repair(chip.clone(), &CAREFUL).unwrap().actions;
    assert!(matches!(actions[..], [Action::JournalCut { .. }]), "{actions:?}");
    assert_eq!(chip.check().findings, []);
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 58);
}

#[test]
fn a_lost_journal_page_that_a_later_one_repeats_costs_nothing() {
    let (mut chip, mut core) = volume();
    let lost = six_removals(&chip, &mut core, 0);
    chip.unreadable.push(lost);
    assert!(!chip.check().is_sound());
    let mut core = chip.mount(false);
    assert!(core.volume().log.store().latch().why().is_none());
    assert_eq!(contents_of(&mut core).len(), 54);
    core.close().unwrap();
    assert_eq!(chip.check().findings, []);
}

#[test]
fn damaged_content_becomes_a_hole_when_asked_for() {
    let (mut chip, mut core) = volume();
    let objects = contents_of(&mut core);
    core.close().unwrap();
    let layout = *core.log().layout();
    for object in objects.iter().take(3) {
        let extent = core.with_index(|index, log| index.extents(log, *object, 0..u64::MAX, 1)).unwrap()[0];
        chip.unreadable.push(layout.address(layout.page_of(extent.piece.location).0));
    }
    assert!(!chip.check().is_sound());
    assert_eq!(repair(chip.clone(), &CAREFUL).unwrap().actions, []);
    assert!(!chip.check().is_sound(), "nobody asked for it");
    let actions = repair(chip.clone(), &DROP).unwrap().actions;
    assert!(!actions.is_empty() && actions.iter().all(|one| one.is_loss() && one.object().is_some()), "{actions:?}");
    assert_eq!(chip.check().findings, []);
    assert_eq!(repair(chip.clone(), &DROP).unwrap().actions, [], "a second one finds nothing to do");
    let mut core = chip.mount(false);
    assert_eq!(core.with_index(|index, log| index.list(log, ObjectId(0), 1000)).unwrap(), objects, "no object is gone");
}

#[test]
fn lost_nodes_are_dropped_only_when_asked_for() {
    let (mut chip, mut core) = volume();
    let (root, level) = core.index().entries().nodes().written_root().unwrap();
    assert!(level > 0);
    let layout = *core.log().layout();
    let page_of = |location: u64| layout.page_of(location).0;
    let (mut leaves, mut others) = (Vec::new(), vec![page_of(root.location.get())]);
    others.extend(core.log().table().pieces().iter().map(|piece| page_of(piece.location.get())));
    let walked = core.with_index(|index, log| {
        index.entries_mut().nodes_mut().walk(log, &mut |place, node| {
            let at = page_of(place.unwrap().location.get());
            if node.level() == 0 {
                leaves.push(at)
            } else {
                others.push(at)
            }
            Ok(())
        })
    });
    walked.unwrap();
    leaves.retain(|leaf| !others.contains(leaf));
    core.close().unwrap();
    let at = leaves[1];
    chip.unreadable.push(layout.address(at));
    forget_older_checkpoints(&mut chip);
    let before = chip.check();
    assert!(!before.is_sound());
    assert_eq!(repair(chip.clone(), &CAREFUL).unwrap_err().kind, ErrorKind::Corrupt);
    assert_eq!(chip.check(), before, "nothing was changed");
    let actions = repair(chip.clone(), &DROP).unwrap().actions;
    assert!(actions.iter().any(|action| matches!(action, Action::NodeDropped { .. })), "{actions:?}");
    assert!(chip.check().is_sound());
    let mut core = chip.mount(false);
    let left = core.with_index(|index, log| index.list(log, ObjectId(0), 1000)).unwrap();
    assert!(left.len() > 30 && left.len() < 60, "{} objects are left", left.len());
    assert!(core.with_index(|index, log| index.onode(log, ObjectId(123))).unwrap().is_some());
    let mut transaction = Transaction::new();
    transaction.write(ObjectId(123), 0, vec![5; 4000]);
    core.commit(transaction, Durability::Durable).unwrap();
    assert!(chip.check().is_sound());
}

#[test]
fn an_older_checkpoint_that_has_everything_is_taken_unasked() {
    let (mut chip, mut core) = volume();
    let earlier = core.log().table().pieces().to_vec();
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(70));
    core.commit(transaction, Durability::Durable).unwrap();
    core.checkpoint(false).unwrap();
    let layout = *core.log().layout();
    for piece in core.log().table().pieces().iter().filter(|piece| !earlier.contains(piece)) {
        chip.unreadable.push(layout.address(layout.page_of(piece.location.get()).0));
    }
    drop(core);
    assert_eq!(chip.check().worst(), Some(crate::tools::check::Severity::Fatal));
    let actions = repair(chip.clone(), &CAREFUL).unwrap().actions;
    assert!(matches!(actions[0], Action::OlderCheckpoint { commits: 0, .. }), "{actions:?}");
    assert!(!actions[0].is_loss(), "{actions:?}");
    assert_eq!(chip.check().findings, []);
    // The journal behind the older checkpoint still says what the newer one did.
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 59);
}

#[test]
fn an_older_checkpoint_without_something_is_taken_only_when_asked_for() {
    let (mut chip, mut core) = volume();
    // Full pages have no room to repeat each other.
    let lost = six_removals(&chip, &mut core, 380);
    let layout = *core.log().layout();
    core.checkpoint(false).unwrap();
    let root = core.index().entries().nodes().written_root().unwrap().0;
    chip.unreadable.extend([lost, layout.address(layout.page_of(root.location.get()).0)]);
    drop(core);
    assert_eq!(repair(chip.clone(), &CAREFUL).unwrap_err().kind, ErrorKind::Corrupt);
    let actions = repair(chip.clone(), &DROP).unwrap().actions;
    assert!(matches!(actions[0], Action::OlderCheckpoint { commits: 4, .. }), "{actions:?}");
    assert!(actions[0].is_loss(), "{actions:?}");
    assert_eq!(chip.check().findings, []);
    assert_eq!(contents_of(&mut chip.mount(false)).len(), 58);
}

#[test]
fn a_volume_that_is_none_is_refused() {
    let blank = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    assert_eq!(repair(blank, &DROP).unwrap_err().kind, ErrorKind::Invalid);
}
