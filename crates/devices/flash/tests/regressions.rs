//! Mistakes that were found once, each by the name of what went wrong.

use crate::common::{Flash, Shared, TINY};
use onode_flash::policy::Placement;
use onode_flash::repair::{RepairOptions, repair};
use onode_flash::{FlashDevice, FormatOptions, MountOptions, Policies};
use onode_media::Geometry;
use onode_object::conformance::Harness;
use onode_object::powers::{Inspect, SegmentState};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, Transaction};

/// The cleaner looked again and again for an extent that goes on behind the bytes it was moving.
#[test]
fn cleaning_ends_when_an_extent_reaches_past_the_bytes_moved() {
    let flash = Flash::holding(TINY, 100_000);
    let device = flash.device.as_ref().unwrap();
    let (first, second) = (device.reserve_ids(1).unwrap(), device.reserve_ids(1).unwrap());
    let mut transaction = Transaction::new();
    transaction.create(first, Hints::default()).create(second, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    // Pages of both objects side by side, so that a segment stays in use when one is overwritten.
    for page in 0..60 {
        let mut transaction = Transaction::new();
        transaction.write(first, page * 496, vec![1; 496]).write(second, page * 496, vec![2; 496]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    // Each of these extents covers the places that several items of the old segments were written
    // for.
    let mut transaction = Transaction::new();
    transaction.write(first, 0, vec![3; 496 * 60]);
    device.commit(transaction, Durability::Durable).unwrap();
    while device.maintain(50).unwrap().done > 0 {}
    let mut bytes = vec![0; 496 * 60];
    for (object, byte) in [(first, 3), (second, 2)] {
        assert_eq!(device.read(object, 0, &mut bytes).unwrap(), bytes.len());
        assert!(bytes.iter().all(|&found| found == byte));
    }
}

/// A session that was cut before anything of it was durable left pages of the sequence number that
/// the next session gave to its next journal segment; the mount after that one took them for a
/// damaged journal.
#[test]
fn pages_of_a_lost_session_are_not_taken_for_those_of_the_next() {
    let mut flash = Flash::holding(TINY, 100_000);
    flash.reopen();
    let device = flash.device.as_ref().unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![1; 496 * 40]);
    device.commit(transaction, Durability::Buffered).unwrap();
    flash.crash();
    let device = flash.device.as_ref().unwrap();
    let mut transaction = Transaction::new();
    transaction.create(device.reserve_ids(1).unwrap(), Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    flash.reopen();
    assert_eq!(flash.device().info().read_only, None);
}

/// What a close set free was reusable only after a second checkpoint of the same session. So
/// sessions that wrote a little and closed used up one fresh segment after the other, and two cuts
/// of the next ones left a recovery none.
#[test]
fn sessions_that_write_one_checkpoint_each_use_up_nothing() {
    let mut flash = Flash::holding(TINY, 20_000);
    let object = flash.device().reserve_ids(1).unwrap();
    let mut free = Vec::new();
    for session in 0..60u8 {
        let mut transaction = Transaction::new();
        if session == 0 {
            transaction.create(object, Hints::default());
        }
        transaction.write(object, 0, vec![session; 600]);
        flash.device().commit(transaction, Durability::Durable).unwrap();
        let device = flash.device.as_ref().unwrap();
        let in_state = |state| device.segments().iter().filter(|one| one.state == state).count();
        assert_eq!(in_state(SegmentState::Held), 0, "session {session}");
        let checkpoints = device.counters().into_iter().find(|(name, _)| name == "checkpoints");
        assert!(session == 0 || checkpoints == Some(("checkpoints".into(), 0)), "session {session}: {checkpoints:?}");
        free.push(in_state(SegmentState::Free));
        flash.reopen();
    }
    assert_eq!(free[10], free[59], "{free:?}");
}

/// A commit record that crossed the end of a journal segment had the record that names the segment
/// after the new one between its frames, and the replay refused it.
#[test]
fn a_commit_record_crosses_the_end_of_a_journal_segment() {
    // Attributes are index, which counts twice where it is most of a volume.
    let mut flash = Flash::holding(TINY, 200_000);
    // Rare checkpoints: the replay reads several segments.
    flash.options.checkpoint_pages = Some(48);
    flash.mount();
    let mut committed = 0;
    for round in 0..60 {
        let device = flash.device.as_ref().unwrap();
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        for index in 0..3 {
            transaction.set_attribute(
                object,
                AttributeKey::new(AttributeKind(40), index),
                vec![7; 300 + index as usize],
            );
        }
        device.commit(transaction, Durability::Durable).unwrap();
        committed += 1;
        if round % 24 == 23 {
            flash.mount();
        }
        let device = flash.device.as_ref().unwrap();
        assert_eq!(device.info().read_only, None, "round {round}");
        assert_eq!(device.space().objects, committed);
    }
}

/// An object that was removed and made again under the same id had the access time of the old one
/// after a cut: the log of access times still named it.
#[test]
fn an_object_made_again_was_never_read() {
    let nand = Shared::new(Geometry { blocks: 64, ..TINY });
    let policies = Policies { placement: Some(Placement::SplitAtime), ..Policies::default() };
    let options = FormatOptions { policies, ..FormatOptions::default() };
    for together in [false, true] {
        let device = FlashDevice::format(nand.clone(), &options, &MountOptions::default()).unwrap();
        let mut flash = Flash { nand: nand.clone(), device: Some(device), options: MountOptions::default() };
        let object = flash.device().reserve_ids(1).unwrap();
        let commit = |flash: &Flash, change: &dyn Fn(&mut Transaction)| {
            let mut transaction = Transaction::new();
            change(&mut transaction);
            flash.device().commit(transaction, Durability::Durable).unwrap();
        };
        commit(&flash, &|all| _ = all.create(object, Hints::default()));
        commit(&flash, &|all| _ = all.set_access_time(object, 77));
        if together {
            commit(&flash, &|all| _ = all.remove(object).create(object, Hints::default()));
        } else {
            commit(&flash, &|all| _ = all.remove(object));
            commit(&flash, &|all| _ = all.create(object, Hints::default()));
        }
        assert_eq!(flash.device().stat(object).unwrap().accessed, 0);
        flash.crash();
        assert_eq!(flash.device().stat(object).unwrap().accessed, 0, "together: {together}");
    }
}

/// What the checkpoint before the newest had was not set free for a repair, as it is for a mount:
/// after a crash next to a checkpoint that had nearly all segments to set free, a repair found
/// none.
#[test]
fn a_repair_after_a_crash_has_the_segments_that_a_mount_has() {
    // Rare checkpoints: each sets nearly everything free.
    let options = MountOptions { checkpoint_pages: Some(4096), ..MountOptions::default() };
    let flash = Flash::with(TINY, 150_000, options);
    let objects: Vec<_> = (0..3).map(|_| flash.device().reserve_ids(1).unwrap()).collect();
    let mut held = 0;
    for step in 0..300u32 {
        let object = objects[step as usize % 3];
        let mut transaction = Transaction::new();
        if step < 3 {
            transaction.create(object, Hints::default());
        }
        transaction.write(object, 0, vec![step as u8; 9000]);
        flash.device().commit(transaction, Durability::Durable).unwrap();
        let device = FlashDevice::mount(
            Shared::holding(flash.nand.with(|nand| nand.clone())),
            &MountOptions { read_only: true, ..MountOptions::default() },
        );
        let in_state = |state| device.as_ref().unwrap().segments().iter().filter(|one| one.state == state).count();
        held = held.max(in_state(SegmentState::Held).saturating_sub(in_state(SegmentState::Free)));
        let repaired = repair(flash.nand.with(|nand| nand.clone()), &RepairOptions::default());
        assert_eq!(repaired.map(|repaired| repaired.actions), Ok(Vec::new()), "step {step}");
    }
    assert!(held > 0, "no crash found more segments held than free");
}
