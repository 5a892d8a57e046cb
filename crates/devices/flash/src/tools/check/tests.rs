//! One volume for each kind of finding: it is made by spoiling a sound one in one way, with all its
//! checksums right where the damage is not in the bytes themselves; the check says exactly that.

use super::{CheckOptions, FindingKind, Place, Report, Severity, check};
use crate::core::Core;
use crate::index::apply::{Extent, Onode};
use crate::index::tree::{Child, Node, Tree};
use crate::log::record::{Piece, Record};
use crate::medium::format::{NO_SUMMARY, PageTrailer, SUPERBLOCK_MAGIC, Superblock};
use crate::medium::layout::{Layout, SegmentPage};
use crate::medium::page::{self, PageInfo};
use crate::options::{FormatOptions, MountOptions};
use crate::policy::Stream;
use crate::space::items::Owner;
use crate::space::segments::SegmentState;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_media::{Geometry, IoTag, MediaErrorKind, Nand, PageAddress, SimNand, SimOptions};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectId, Transaction};
use zerocopy::{FromBytes, IntoBytes};

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 256, chips: 1 };
const FIRST: ObjectId = ObjectId(64);

/// A volume with a few objects that fill some segments, at a checkpoint.
fn volume() -> Core {
    let nand = Box::new(SimNand::new(SHAPE, SimOptions::default()).unwrap());
    let mut core = Core::format(nand, None, &FormatOptions::default(), &MountOptions::default()).unwrap();
    for object in 64..84 {
        core.volume().index.counts_mut().next_object = object + 1;
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(object), Hints::default()).write(ObjectId(object), 0, vec![object as u8; 5200]);
        for index in 0..6 {
            let key = AttributeKey::new(AttributeKind(40), index);
            transaction.set_attribute(ObjectId(object), key, vec![1; 200]);
        }
        core.commit(transaction, Durability::Durable).unwrap();
    }
    core.checkpoint(false).unwrap();
    core
}

fn report(nand: &mut dyn Nand) -> Report {
    check(nand, &CheckOptions::default(), &mut |_, _| ())
}

/// The findings after `spoil` and a checkpoint.
fn after(spoil: impl FnOnce(&mut Core)) -> Vec<(Severity, FindingKind)> {
    let mut core = volume();
    assert_eq!(report(core.volume().log.medium().nand()).findings, []);
    spoil(&mut core);
    core.volume().checkpoints.set_clean(false);
    core.checkpoint(false).unwrap();
    kinds(&report(core.volume().log.medium().nand()))
}

fn kinds(report: &Report) -> Vec<(Severity, FindingKind)> {
    report.findings.iter().map(|finding| (finding.severity, finding.kind)).collect()
}

fn error(kind: FindingKind) -> Vec<(Severity, FindingKind)> {
    vec![(Severity::Error, kind)]
}

fn fatal(kind: FindingKind) -> Vec<(Severity, FindingKind)> {
    vec![(Severity::Fatal, kind)]
}

/// A chip with the pages of `nand`, those changed that `change` changes: data, spare.
fn altered(nand: &mut dyn Nand, mut change: impl FnMut(PageAddress, &mut Vec<u8>, &mut Vec<u8>)) -> SimNand {
    let shape = nand.geometry();
    let mut copy = SimNand::new(shape, SimOptions::default()).unwrap();
    for page in (0..shape.pages()).map(PageAddress) {
        let (mut data, mut spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
        nand.read(page, &mut data, &mut spare, IoTag::Check).unwrap();
        change(page, &mut data, &mut spare);
        if data.iter().chain(&spare).any(|&byte| byte != 0xff) {
            copy.program(page, &data, &spare, IoTag::Check).unwrap();
        }
    }
    copy
}

/// The findings after the page at `at` was changed without its checksum.
fn after_damage(core: &mut Core, at: SegmentPage) -> Report {
    let address = core.log().layout().address(at);
    let mut copy = altered(core.volume().log.medium().nand(), |page, data, _| {
        if page == address {
            data[100] ^= 1;
        }
    });
    report(&mut copy)
}

/// The findings after every superblock was changed and sealed again.
fn after_superblocks(change: impl Fn(&mut Superblock)) -> Vec<(Severity, FindingKind)> {
    let mut core = volume();
    let layout = *core.log().layout();
    let mut copy = altered(core.volume().log.medium().nand(), |page, data, spare| {
        let block = SHAPE.block_of(page).0;
        let is_superblock = layout.superblocks.all().any(|one| one == block) && data.starts_with(&SUPERBLOCK_MAGIC);
        if !is_superblock {
            return;
        }
        let (superblock, _) = Superblock::mut_from_prefix(data).unwrap();
        change(superblock);
        let info = PageInfo {
            kind: crate::medium::format::PageKind::Superblock,
            record_bytes: 0,
            echo_bytes: 0,
            sequence: superblock.generation.get(),
            spare_bytes: 0,
            flushed: false,
        };
        let seed = page::volume_seed(&superblock.uuid);
        let trailer: PageTrailer = page::seal(seed, page, info, data, &[]);
        spare.copy_from_slice(trailer.as_bytes());
    });
    kinds(&report(&mut copy))
}

fn insert(core: &mut Core, key: Key, value: &[u8]) {
    core.with_index(|index, log| index.entries_mut().set(log, key, value)).unwrap();
}

/// A sealed data segment and an object all of whose content lies there.
fn sealed(core: &mut Core) -> (u32, ObjectId, Extent) {
    for object in (64..84).map(ObjectId) {
        for extent in core.with_index(|index, log| index.extents(log, object, 0..u64::MAX, 100)).unwrap() {
            let segment = core.log().layout().segment_of(extent.piece.location);
            let one = core.log().table().get(segment);
            if one.state == SegmentState::Full && one.summary_page != NO_SUMMARY && one.stream == Stream::Data {
                return (segment, object, extent);
            }
        }
    }
    panic!("the volume has a sealed data segment");
}

#[test]
fn medium_failed() {
    let mut core = volume();
    let mut copy = altered(core.volume().log.medium().nand(), |_, _, _| ());
    copy.faults_mut().add(onode_media::Fault {
        operation: onode_media::OperationKind::Read,
        nth: 0,
        repeat: onode_media::Repeat::Forever,
        error: MediaErrorKind::Host,
    });
    assert_eq!(kinds(&report(&mut copy)), fatal(FindingKind::MediumFailed));
}

#[test]
fn no_superblock() {
    let mut blank = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    assert_eq!(kinds(&report(&mut blank)), fatal(FindingKind::NoSuperblock));
}

#[test]
fn superblock_unreadable() {
    let mut core = volume();
    let mut copy = altered(core.volume().log.medium().nand(), |page, data, _| data[9] ^= u8::from(page.0 == 0));
    assert_eq!(kinds(&report(&mut copy)), [(Severity::Warning, FindingKind::SuperblockUnreadable)]);
}

#[test]
fn superblock_malformed() {
    assert_eq!(after_superblocks(|one| one.journal_page = 5000.into()), fatal(FindingKind::SuperblockMalformed));
}

#[test]
fn superblock_order() {
    assert_eq!(
        after(|core| {
            let log = core.volume().log;
            log.set_transaction(log.transaction() - 1);
        }),
        error(FindingKind::SuperblockOrder)
    );
}

#[test]
fn format_unknown() {
    assert_eq!(after_superblocks(|one| one.major = 9.into()), fatal(FindingKind::FormatUnknown));
    assert_eq!(
        after_superblocks(|one| one.read_only_compatible = 1.into()),
        [(Severity::Warning, FindingKind::FormatUnknown)]
    );
}

#[test]
fn geometry_mismatch() {
    assert_eq!(after_superblocks(|one| one.blocks = 257.into()), fatal(FindingKind::GeometryMismatch));
}

#[test]
fn table_unreadable() {
    let mut core = volume();
    let (at, _) = core.log().layout().page_of(core.log().table().pieces()[0].location.get());
    assert_eq!(kinds(&after_damage(&mut core, at)), fatal(FindingKind::TableUnreadable));
}

#[test]
fn table_malformed() {
    let found = after(|core| {
        let sequence = core.log().table().next_sequence() + 50;
        core.volume().log.table_mut().update(40, |one| one.sequence = sequence);
    });
    assert_eq!(found, error(FindingKind::TableMalformed));
}

#[test]
fn journal_reservation() {
    let found = after(|core| {
        let (segment, _) = core.volume().log.next_journal();
        core.volume().log.table_mut().update(segment, |one| one.stream = Stream::Cold);
    });
    assert_eq!(found, error(FindingKind::JournalReservation));
}

#[test]
fn segment_not_in_use() {
    let found = after(|core| {
        let (segment, ..) = sealed(core);
        core.volume().log.table_mut().update(segment, |one| one.state = SegmentState::Free);
    });
    assert_eq!(found, error(FindingKind::SegmentNotInUse));
}

#[test]
fn stream_wrong() {
    let found = after(|core| {
        let (segment, ..) = sealed(core);
        core.volume().log.table_mut().update(segment, |one| one.stream = Stream::Index);
    });
    assert_eq!(found, error(FindingKind::StreamWrong));
}

#[test]
fn live_bytes_wrong() {
    let found = after(|core| {
        let (segment, ..) = sealed(core);
        core.volume().log.table_mut().update(segment, |one| one.live_bytes -= 1);
    });
    assert_eq!(found, error(FindingKind::LiveBytesWrong));
}

/// Puts a tree of the given leaves under a root and makes it the volume's.
fn graft(core: &mut Core, leaves: &[(Key, Vec<u8>)]) {
    let mut root = Node::new(1);
    for (key, bytes) in leaves {
        let owner = Owner::Node { key: *key, level: 0 };
        let reference = core.volume().log.write_blob(bytes, owner).unwrap();
        root.insert(*key, Child::Clean(reference).encode().as_bytes());
    }
    let key = root.first_key().unwrap();
    let reference = core.volume().log.write_blob(&root.encode(), Owner::Node { key, level: 1 }).unwrap();
    let old = Tree::open(core.index().entries().limits().node_bytes, reference, 1);
    core.volume().index.entries_mut().nodes_mut().replace_tree(old);
}

fn leaf(objects: core::ops::Range<u64>) -> Vec<u8> {
    let mut node = Node::new(0);
    for object in objects {
        node.insert(Key::onode(ObjectId(object)), &Onode::default().encode());
    }
    node.encode()
}

/// The findings for a volume whose tree was replaced, beside those about what the old tree held.
fn after_graft(leaves: &[(Key, Vec<u8>)]) -> Vec<(Severity, FindingKind)> {
    let mut core = volume();
    graft(&mut core, leaves);
    core.checkpoint(false).unwrap();
    let mut found = kinds(&report(core.volume().log.medium().nand()));
    let stale = [FindingKind::LiveBytesWrong, FindingKind::ObjectCountWrong, FindingKind::ExtentCountWrong];
    found.retain(|(_, kind)| !stale.contains(kind));
    found
}

#[test]
fn node_unreadable() {
    let mut core = volume();
    let (root, level) = core.index().entries().nodes().written_root().unwrap();
    assert!(level > 0);
    let (at, _) = core.log().layout().page_of(root.location.get());
    let report = after_damage(&mut core, at);
    // The page of the root holds other nodes and table pieces too.
    assert!(
        kinds(&report)
            .iter()
            .all(|(_, kind)| matches!(kind, FindingKind::NodeUnreadable | FindingKind::TableUnreadable))
    );
    let mut leaf_place = None;
    let walked = core.with_index(|index, log| {
        index.entries_mut().nodes_mut().walk(log, &mut |place, node| {
            if node.level() == 0 && leaf_place.is_none() {
                leaf_place = place;
            }
            Ok(())
        })
    });
    walked.unwrap();
    let (at, _) = core.log().layout().page_of(leaf_place.unwrap().location.get());
    let report = after_damage(&mut core, at);
    assert!(!report.findings.is_empty());
    assert!(kinds(&report).iter().all(|&found| found == (Severity::Error, FindingKind::NodeUnreadable)), "{report:?}");
}

#[test]
fn node_malformed() {
    let sound = (Key::onode(FIRST), leaf(64..70));
    let broken = (Key::onode(ObjectId(70)), vec![0, 9, 0, 1, 2]);
    assert_eq!(after_graft(&[sound.clone(), (Key::onode(ObjectId(70)), leaf(70..80))]), []);
    assert_eq!(after_graft(&[sound, broken]), error(FindingKind::NodeMalformed));
}

#[test]
fn node_range() {
    let (first, second) = (Key::onode(FIRST), Key::onode(ObjectId(70)));
    assert_eq!(after_graft(&[(first, leaf(64..75)), (second, leaf(70..80))]), error(FindingKind::NodeRange));
    assert_eq!(after_graft(&[(first, leaf(64..70)), (second, leaf(69..80))]), error(FindingKind::NodeRange));
}

#[test]
fn node_oversized() {
    let mut node = Node::new(0);
    node.insert(Key::onode(FIRST), &Onode::default().encode());
    for index in 0..5 {
        node.insert(Key::attribute(FIRST, AttributeKey::new(AttributeKind(40), index)), &[1; 500]);
    }
    assert_eq!(after_graft(&[(Key::onode(FIRST), node.encode())]), error(FindingKind::NodeOversized));
}

#[test]
fn key_unknown() {
    let key = Key { object: 64, kind: 0x300, index: 0 };
    assert_eq!(after(|core| insert(core, key, b"x")), error(FindingKind::KeyUnknown));
    let found = after(|core| {
        insert(core, Key { object: 0, kind: 0, index: 0 }, &Onode::default().encode());
        core.volume().index.counts_mut().objects += 1;
    });
    assert_eq!(found, error(FindingKind::KeyUnknown));
}

#[test]
fn onode_missing() {
    let found = after(|core| {
        let key = AttributeKey::new(AttributeKind(40), 0);
        insert(core, Key::attribute(ObjectId(60), key), b"x");
    });
    assert_eq!(found, error(FindingKind::OnodeMissing));
}

#[test]
fn onode_malformed() {
    assert_eq!(after(|core| insert(core, Key::onode(FIRST), b"\xff")), error(FindingKind::OnodeMalformed));
}

#[test]
fn id_too_high() {
    let found = after(|core| {
        insert(core, Key::onode(ObjectId(core.index().counts().next_object)), &Onode::default().encode());
        core.volume().index.counts_mut().objects += 1;
    });
    assert_eq!(found, error(FindingKind::IdTooHigh));
}

#[test]
fn attribute_oversized() {
    let key = Key::attribute(FIRST, AttributeKey::new(AttributeKind(40), 1));
    assert_eq!(after(|core| insert(core, key, &[1; 601])), error(FindingKind::AttributeOversized));
}

#[test]
fn extent_malformed() {
    let found = after(|core| {
        insert(core, Key::extent(FIRST, 1 << 40), b"\x00\x00");
        core.volume().index.counts_mut().extents += 1;
    });
    assert_eq!(found, error(FindingKind::ExtentMalformed));
}

/// Changes the first extent of an object and gives it a size and allocated bytes that fit.
fn move_extent(core: &mut Core, offset: u64, length: u32, size: u64) {
    let (_, object, extent) = sealed(core);
    core.with_index(|index, log| index.entries_mut().remove(log, &Key::extent(object, extent.offset))).unwrap();
    let piece = Piece { length, ..extent.piece };
    insert(core, Key::extent(object, offset), &Extent::encode(piece));
    let onode = core.with_index(|index, log| index.onode(log, object)).unwrap().unwrap();
    let gone = extent.piece.length - length;
    let moved = Onode { size, allocated: onode.allocated - u64::from(gone), ..onode };
    core.with_index(|index, log| index.set_onode(log, object, &moved)).unwrap();
    core.volume().log.release(extent.piece.location, u64::from(gone));
}

#[test]
fn extent_overlap() {
    let found = after(|core| {
        let (_, object, extent) = sealed(core);
        // The second half of the extent is said to begin one byte early.
        let half = extent.piece.length / 2;
        let piece = Piece { location: extent.piece.location + u64::from(half), length: extent.piece.length - half };
        insert(core, Key::extent(object, extent.offset), &Extent::encode(Piece { length: half, ..extent.piece }));
        let early = extent.offset + u64::from(half) - 1;
        insert(core, Key::extent(object, early), &Extent::encode(piece));
        core.volume().index.counts_mut().extents += 1;
    });
    // Such an extent is not where the summary has it, either.
    assert_eq!(found, [error(FindingKind::ExtentOverlap), error(FindingKind::SummaryIncomplete)].concat());
}

#[test]
fn extent_beyond_size() {
    let found = after(|core| {
        let onode = core.with_index(|index, log| index.onode(log, FIRST)).unwrap().unwrap();
        core.with_index(|index, log| index.set_onode(log, FIRST, &Onode { size: 5199, ..onode })).unwrap();
    });
    assert_eq!(found, error(FindingKind::ExtentBeyondSize));
}

#[test]
fn allocated_wrong() {
    let found = after(|core| {
        let onode = core.with_index(|index, log| index.onode(log, FIRST)).unwrap().unwrap();
        core.with_index(|index, log| index.set_onode(log, FIRST, &Onode { allocated: 5, ..onode })).unwrap();
    });
    assert_eq!(found, error(FindingKind::AllocatedWrong));
}

#[test]
fn place_shared() {
    let found = after(|core| {
        let (_, object, extent) = sealed(core);
        let other = ObjectId(if object == FIRST { 65 } else { 64 });
        let onode = core.with_index(|index, log| index.onode(log, other)).unwrap().unwrap();
        core.with_index(|index, log| index.replace(log, other, 1 << 20, &[extent.piece])).unwrap();
        let allocated = onode.allocated + u64::from(extent.piece.length);
        core.with_index(|index, log| index.set_onode(log, other, &Onode { size: 1 << 21, allocated, ..onode }))
            .unwrap();
        // Twice as many bytes may be more than the segment has.
        let segment = core.log().layout().segment_of(extent.piece.location);
        let most = core.log().layout().segment_bytes() as u32;
        core.volume().log.table_mut().update(segment, |one| one.live_bytes = one.live_bytes.min(most));
    });
    assert_eq!(found[0], (Severity::Error, FindingKind::PlaceShared));
    assert!(
        found[1..].iter().all(|(_, kind)| matches!(kind, FindingKind::SummaryIncomplete | FindingKind::LiveBytesWrong))
    );
}

#[test]
fn summary_unreadable() {
    let mut core = volume();
    let (segment, ..) = sealed(&mut core);
    let page = u32::from(core.log().table().get(segment).summary_page);
    let report = after_damage(&mut core, SegmentPage { segment, page, ..SegmentPage::default() });
    assert_eq!(kinds(&report), [(Severity::Warning, FindingKind::SummaryUnreadable)]);
    assert_eq!(report.findings[0].place, Place::Page { segment, page });
}

#[test]
fn summary_incomplete() {
    let found = after(|core| {
        let (_, _, extent) = sealed(core);
        move_extent(core, 1 << 30, extent.piece.length, 1 << 31);
    });
    assert_eq!(found, error(FindingKind::SummaryIncomplete));
}

#[test]
fn counts_wrong() {
    assert_eq!(after(|core| core.volume().index.counts_mut().objects += 1), error(FindingKind::ObjectCountWrong));
    assert_eq!(after(|core| core.volume().index.counts_mut().extents -= 1), error(FindingKind::ExtentCountWrong));
}

#[test]
fn journal_damaged() {
    let mut core = volume();
    let (first, _) = core.volume().log.journal_position();
    for _ in 0..3 {
        let mut transaction = Transaction::new();
        transaction.write(FIRST, 0, vec![9; 30]);
        core.commit(transaction, Durability::Durable).unwrap();
    }
    let report = after_damage(&mut core, SegmentPage { page: first.page + 1, ..first });
    assert_eq!(kinds(&report), error(FindingKind::JournalDamaged));
    assert_eq!(report.journal_end, super::JournalEnd::Damaged);
    // The last page is another matter: a cut leaves exactly that.
    let (end, _) = core.volume().log.journal_position();
    let report = after_damage(&mut core, SegmentPage { page: end.page - 1, ..end });
    assert_eq!((kinds(&report), report.journal_end), (Vec::new(), super::JournalEnd::Torn));
}

#[test]
fn journal_record_wrong() {
    let mut core = volume();
    core.volume().log.append_record(&Record::Commit { transaction: 7, changes: Vec::new() }).unwrap();
    core.volume().log.program_page(Stream::Journal).unwrap();
    assert_eq!(kinds(&report(core.volume().log.medium().nand())), error(FindingKind::JournalRecordWrong));
}

#[test]
fn content_unreadable() {
    let mut core = volume();
    let (_, object, extent) = sealed(&mut core);
    let layout: Layout = *core.log().layout();
    let (at, within) = layout.page_of(extent.piece.location);
    let report = after_damage(&mut core, at);
    let first = &report.findings[0];
    assert!(kinds(&report).iter().all(|&found| found == (Severity::Error, FindingKind::ContentUnreadable)));
    let end = extent.offset + u64::from((layout.payload_bytes - within).min(extent.piece.length));
    assert!(report.findings.iter().any(|one| one.object == Some(object) && one.range == Some(extent.offset..end)));
    assert_eq!(first.place, Place::Page { segment: at.segment, page: at.page });
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let mut names: Vec<_> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
