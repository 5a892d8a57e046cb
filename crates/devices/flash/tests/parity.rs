//! Parity of rows (paper 1, III.C and V.E): whatever happens to as many pages of a row as it has
//! pages of parity, nothing is lost and what was hit moves to good pages; beyond that no read gives
//! a wrong byte, and the rest stays readable.

use crate::common::Shared;
use crate::common::patched::{Page, Patched};
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, FindingKind, check};
use onode_flash::format::{PageKind, PageTrailer};
use onode_flash::layout::Layout;
use onode_flash::policy::Stream;
use onode_flash::{FlashDevice, FormatOptions, MountOptions, RepairOptions, repair};
use onode_media::{Geometry, PageAddress, SimNand};
use onode_object::powers::Resize;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::collections::BTreeMap;

/// With the trailer in the spare area, and records beside it.
const SPARE: Geometry = Geometry { page_bytes: 512, spare_bytes: 64, pages_per_block: 8, blocks: 208, chips: 1 };
/// With the trailer in the page.
const BARE: Geometry = Geometry { spare_bytes: 0, ..SPARE };
const CHIPS: Geometry = Geometry { chips: 4, ..SPARE };
const BLOCKS: u16 = 8;

/// Content and one attribute of every object.
type State = BTreeMap<ObjectId, (Vec<u8>, Vec<u8>)>;

const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind(40), 7);

/// A volume that was in use for a while, with what must be on it.
struct Volume {
    layout: Layout,
    now: SimNand,
    /// The chip some time before.
    earlier: SimNand,
    state: State,
}

fn format(parity_pages: u8) -> FormatOptions {
    FormatOptions { blocks_per_segment: Some(BLOCKS), parity_pages, ..FormatOptions::default() }
}

fn layout(shape: Geometry, parity_pages: u8) -> Layout {
    Layout::new(shape, BLOCKS).unwrap().with_records_in_spare().with_parity(parity_pages).unwrap()
}

/// Something that is done to a volume in use.
type Midway<'a> = &'a dyn Fn(&FlashDevice);

/// Fills a new volume; it is closed at the end unless it `crashes`.
fn volume(shape: Geometry, parity_pages: u8, crashes: bool, seed: u64) -> Volume {
    let mut prng = Prng::new(seed);
    let nand = Shared::new(shape);
    let device = FlashDevice::format(nand.clone(), &format(parity_pages), &MountOptions::default()).unwrap();
    let mut state = State::new();
    let mut earlier = nand.with(|nand| nand.clone());
    for round in 0..300 {
        let mut transaction = Transaction::new();
        let object = if state.len() < 30 {
            let object = device.reserve_ids(1).unwrap();
            transaction.create(object, Hints::default());
            object
        } else {
            *state.keys().nth(prng.below(30) as usize).unwrap()
        };
        let (content, value) = state.entry(object).or_default();
        let mut data = vec![0; 1 + prng.below(if round % 5 == 0 { 6000 } else { 300 }) as usize];
        prng.fill(&mut data);
        let offset = prng.below(4000) as usize;
        content.resize(content.len().max(offset + data.len()), 0);
        content[offset..offset + data.len()].copy_from_slice(&data);
        value.clone_from(&data[..data.len().min(50)].to_vec());
        transaction.set_attribute(object, ATTRIBUTE, value.clone()).write(object, offset as u64, data);
        let durable = if prng.chance(1, 3) { Durability::Durable } else { Durability::Buffered };
        device.commit(transaction, durable).unwrap();
        if round == 200 {
            earlier = nand.with(|nand| nand.clone());
        }
        if round % 40 == 0 {
            device.maintain(2).unwrap();
        }
    }
    device.sync(SyncScope::All).unwrap();
    if !crashes {
        device.close().unwrap();
    }
    drop(device);
    Volume { layout: layout(shape, parity_pages), now: nand.with(|nand| nand.clone()), earlier, state }
}

/// How reads compare to what must be there.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    Same,
    /// Some could not be done; none was wrong.
    Damaged,
}

fn compare(device: &FlashDevice, state: &State) -> Result<Compared, String> {
    let mut compared = Compared::Same;
    match device.list(ObjectId(0), 1000) {
        Ok(objects) if objects.iter().eq(state.keys()) => {}
        Err(error) if error.kind == ErrorKind::Corrupt => compared = Compared::Damaged,
        other => return Err(format!("list: {other:?}")),
    }
    for (&object, (content, value)) in state {
        let mut bytes = vec![0xcc; content.len() + 10];
        match device.read(object, 0, &mut bytes) {
            Ok(length) if bytes[..length] == content[..] => {}
            Err(error) if error.kind == ErrorKind::Corrupt => compared = Compared::Damaged,
            other => return Err(format!("{object}: {other:?}")),
        }
        match device.attribute(object, ATTRIBUTE) {
            Ok(Some(found)) if found == *value => {}
            Err(error) if error.kind == ErrorKind::Corrupt => compared = Compared::Damaged,
            other => return Err(format!("attribute of {object}: {other:?}")),
        }
    }
    Ok(compared)
}

fn trailer(shape: Geometry, page: &Page) -> Vec<u8> {
    let bytes = if shape.spare_bytes > 0 { &page.1[..] } else { &page.0[page.0.len() - 32..] };
    bytes[..size_of::<PageTrailer>()].to_vec()
}

fn kind_of(shape: Geometry, page: &Page) -> Option<PageKind> {
    PageKind::from_byte(trailer(shape, page)[10])
}

/// The rows that have parity, with their programmed pages, those of parity last.
fn rows(volume: &Volume) -> Vec<Vec<PageAddress>> {
    let (layout, mut medium) = (volume.layout, Patched::new(&volume.now));
    let mut rows = Vec::new();
    for segment in 0..layout.segments {
        for row in layout.rows_of(Stream::Data, segment) {
            let first = layout.address(layout.parity_page(row, 0));
            if kind_of(layout.geometry, &medium.page(first)) != Some(PageKind::Parity) {
                continue;
            }
            let content = layout.content_pages(row);
            let parity = (0..layout.parity_pages).map(|number| layout.parity_page(row, number));
            let mut pages: Vec<PageAddress> = content.chain(parity).map(|at| layout.address(at)).collect();
            pages.retain(|&page| kind_of(layout.geometry, &medium.page(page)).is_some());
            rows.push(pages);
        }
    }
    rows
}

/// Every way of spoiling one page, and its name.
fn spoil(volume: &Volume, at: PageAddress, other: PageAddress, way: u64, prng: &mut Prng) -> (&'static str, Page) {
    let mut medium = Patched::new(&volume.now);
    let mut page = medium.page(at);
    let bytes = page.0.len() + page.1.len();
    let flip = |page: &mut Page, bit: usize| {
        let byte = bit / 8;
        let length = page.0.len();
        let part = if byte < length { &mut page.0[byte] } else { &mut page.1[byte - length] };
        *part ^= 1 << (bit % 8);
    };
    let filled = |byte| (vec![byte; page.0.len()], vec![byte; page.1.len()]);
    match way % 8 {
        0 => {
            // Bits that count: those of content, or of the trailer.
            let bit = prng.below(page.0.len() as u64 * 8 - 32 * 8) as usize;
            flip(&mut page, bit);
            ("a bit", page)
        }
        1 => {
            for _ in 0..100 {
                let bit = prng.below(bytes as u64 * 8) as usize;
                flip(&mut page, bit);
            }
            flip(&mut page, 0);
            ("many bits", page)
        }
        2 => ("zeros", filled(0)),
        3 => ("a lost program", filled(0xff)),
        4 => ("another page", medium.page(other)),
        5 => ("an older page", Patched::new(&volume.earlier).page(at)),
        6 => ("the neighbour", medium.page(PageAddress(if at.0 % 8 == 7 { at.0 - 1 } else { at.0 + 1 }))),
        _ => {
            let half = page.0.len() / 2;
            page.0[half..].fill(0);
            ("half a page", page)
        }
    }
}

/// Mounts, compares, moves what was hit, and sees that nothing of the damage is needed any more.
fn everything_is_there(volume: &Volume, medium: &Patched, what: &str) {
    let options = MountOptions::default();
    let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
    let medium = Shared::holding(medium.clone());
    let device = FlashDevice::mount(medium.clone(), &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(compare(&device, &volume.state), Ok(Compared::Same), "{what}");
    while device.maintain(8).unwrap().more {}
    device.close().unwrap();
    drop(device);
    let device = FlashDevice::mount(medium.clone(), &MountOptions { read_only: true, ..options }).unwrap();
    assert_eq!(compare(&device, &volume.state), Ok(Compared::Same), "{what}, moved");
    assert_eq!(rebuilt(&device), 0, "{what}: something damaged is still in use");
}

fn rebuilt(device: &FlashDevice) -> u64 {
    let counters = device.inspect().unwrap().counters();
    counters.iter().find(|(name, _)| name == "pages_rebuilt").unwrap().1
}

/// Spoils `hit` pages of every so-manieth row, one row at a time, in every way.
fn hit_rows(shape: Geometry, parity_pages: u8, hit: usize, seed: u64, judge: &dyn Fn(&Volume, &Patched, &str)) {
    let volume = volume(shape, parity_pages, false, seed);
    let rows = rows(&volume);
    assert!(rows.len() > 30, "{} rows have parity", rows.len());
    let mut prng = Prng::new(seed);
    for round in 0..if hit == 1 { 200 } else { 64 } {
        let row = &rows[prng.below(rows.len() as u64) as usize];
        if row.len() <= hit {
            continue;
        }
        let mut medium = Patched::new(&volume.now);
        let mut chosen = row.clone();
        let mut names = Vec::new();
        for _ in 0..hit {
            let at = chosen.swap_remove(prng.below(chosen.len() as u64) as usize);
            let other = rows[prng.below(rows.len() as u64) as usize][0];
            let (name, page) = spoil(&volume, at, if other == at { rows[0][1] } else { other }, round, &mut prng);
            medium.patch(at, page);
            names.push(format!("{name} at page {}", at.0));
        }
        judge(&volume, &medium, &format!("{parity_pages} pages of parity, {}, seed {seed}", names.join(", ")));
    }
}

#[test]
fn as_many_lost_pages_as_there_is_parity_lose_nothing() {
    hit_rows(SPARE, 1, 1, 1, &everything_is_there);
    hit_rows(BARE, 1, 1, 2, &everything_is_there);
    hit_rows(CHIPS, 1, 1, 3, &everything_is_there);
    for (hit, seed) in [(1, 4), (2, 5)] {
        hit_rows(SPARE, 2, hit, seed, &everything_is_there);
    }
    for (hit, seed) in [(2, 6), (3, 7)] {
        hit_rows(BARE, 3, hit, seed, &everything_is_there);
    }
}

/// A checkpoint as of a close does not end its session where a volume is made, grows or shrinks:
/// what was written to the row behind it had no parity, and one page of the index cost the volume.
/// A repair tells of such rows. Few changes follow, so that what they bring stays where it is.
#[test]
fn no_page_behind_a_close_in_its_session_lacks_parity() {
    let noop = |_: &FlashDevice| {};
    let grow = |device: &FlashDevice| device.grow(device.extent().unwrap().most).unwrap();
    let shrink = |device: &FlashDevice| {
        let extent = device.extent().unwrap();
        device.begin_shrinking(extent.bytes - 16 * extent.unit).unwrap();
        while !device.shrink_some().unwrap() {}
    };
    let ways: [(u32, Midway<'_>); 3] = [(208, &noop), (192, &grow), (208, &shrink)];
    for (blocks, midway) in ways {
        for (shape, parity_pages) in [(SPARE, 1), (BARE, 2), (SPARE, 3)] {
            for more in [1, 8, 40] {
                let nand = Shared::new(shape);
                let format = FormatOptions { blocks: Some(blocks), ..format(parity_pages) };
                let device = FlashDevice::format(nand.clone(), &format, &MountOptions::default()).unwrap();
                let first = device.reserve_ids(80).unwrap();
                let put = |number: u64| {
                    let (object, mut transaction) = (ObjectId(first.0 + number), Transaction::new());
                    transaction.create(object, Hints::default()).write(object, 0, vec![number as u8; 700]);
                    device.commit(transaction, Durability::Buffered).unwrap();
                };
                (0..40).for_each(put);
                midway(&device);
                (40..40 + more).for_each(put);
                device.close().unwrap();
                let repaired = repair(nand, &RepairOptions::default()).unwrap();
                assert_eq!(repaired.actions, [], "{blocks} blocks, {parity_pages} pages of parity, {more} more");
            }
        }
    }
}

#[test]
fn more_lost_pages_than_parity_are_told_and_never_read_wrong() {
    let honest = |volume: &Volume, medium: &Patched, what: &str| {
        let options = MountOptions { read_only: true, accept_loss: true, ..MountOptions::default() };
        let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
        match FlashDevice::mount(medium.clone(), &options) {
            Ok(device) => {
                let compared = compare(&device, &volume.state).unwrap_or_else(|why| panic!("{what}: {why}"));
                assert!(compared == Compared::Same || !report.is_sound(), "{what}: the check finds nothing");
            }
            Err(error) => assert!(!report.is_sound(), "{what}: {error}, the check finds nothing"),
        }
    };
    hit_rows(SPARE, 1, 2, 11, &honest);
    hit_rows(BARE, 1, 3, 12, &honest);
    hit_rows(SPARE, 2, 3, 13, &honest);
    hit_rows(SPARE, 3, 4, 14, &honest);
}

#[test]
fn a_lost_erase_block_of_every_segment_loses_nothing() {
    for (shape, parity_pages, lost) in [(SPARE, 1, 1), (BARE, 1, 1), (SPARE, 3, 3)] {
        let volume = volume(shape, parity_pages, false, 21);
        let mut medium = Patched::new(&volume.now);
        let mut prng = Prng::new(21);
        for segment in 0..volume.layout.segments {
            let mut blocks: Vec<_> = volume.layout.blocks(segment).collect();
            for _ in 0..lost {
                let block = blocks.swap_remove(prng.below(blocks.len() as u64) as usize);
                let first = shape.first_page(block).0;
                for page in first..first + u64::from(shape.pages_per_block) {
                    medium.patch(PageAddress(page), (vec![0; 512], vec![0; shape.spare_bytes as usize]));
                }
            }
        }
        let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
        assert!(report.is_sound(), "{:?}", report.findings);
        assert!(report.findings.iter().any(|one| one.kind == FindingKind::PageRebuilt));
        let device = FlashDevice::mount(medium, &MountOptions::default()).unwrap();
        assert_eq!(compare(&device, &volume.state), Ok(Compared::Same));
        assert!(device.health().conditions.iter().any(|one| one.code == "page-rebuilt"));
    }
}

/// Rows that were not full at a cut have no parity. Damage elsewhere is found again at a mount that
/// recovers, in the journal as well.
#[test]
fn damage_of_a_volume_that_was_not_closed_is_found_again() {
    for shape in [SPARE, BARE] {
        let volume = volume(shape, 1, true, 31);
        let rows = rows(&volume);
        let mut now = Patched::new(&volume.now);
        let is_journal = |at: &PageAddress| kind_of(shape, &now.page(*at)) == Some(PageKind::Journal);
        let of_journal: Vec<_> = rows.iter().flatten().copied().filter(is_journal).collect();
        let mut prng = Prng::new(31);
        for round in 0..80 {
            let row = &rows[prng.below(rows.len() as u64) as usize];
            let at = match round {
                0..40 => row[prng.below(row.len() as u64) as usize],
                _ => of_journal[prng.below(of_journal.len() as u64) as usize],
            };
            let mut medium = Patched::new(&volume.now);
            let (name, page) = spoil(&volume, at, rows[0][0], round as u64, &mut prng);
            medium.patch(at, page);
            let device = FlashDevice::mount(medium, &MountOptions::default())
                .unwrap_or_else(|error| panic!("{name} at page {}: {error}", at.0));
            assert_eq!(compare(&device, &volume.state), Ok(Compared::Same), "{name} at page {}", at.0);
        }
    }
}

#[test]
fn a_scrub_tells_what_it_found_and_what_it_moves() {
    let volume = volume(SPARE, 1, false, 41);
    let rows = rows(&volume);
    let mut medium = Patched::new(&volume.now);
    // A page of content and one of parity, of rows in use.
    let device = FlashDevice::mount(medium.clone(), &MountOptions::default()).unwrap();
    let in_use: Vec<u32> =
        device.inspect().unwrap().segments().iter().filter(|one| one.live_bytes > 0).map(|one| one.segment).collect();
    drop(device);
    let mut hit = rows.iter().filter(|row| {
        let block = SPARE.block_of(row[0]).0;
        in_use.iter().any(|&segment| volume.layout.blocks(segment).any(|one| one.0 == block))
    });
    let (one, other) = (hit.next().unwrap(), hit.nth(3).unwrap());
    medium.patch(one[0], (vec![0; 512], vec![0; 64]));
    medium.patch(*other.last().unwrap(), (vec![0xff; 512], vec![0xff; 64]));
    let device = FlashDevice::mount(medium, &MountOptions::default()).unwrap();
    let scrub = device.scrub().unwrap();
    let (mut from, mut rebuilt, mut unprotected, mut steps) = (Some(0), 0, 0, 0);
    while let Some(next) = from {
        let step = scrub.scrub_groups(next, 16).unwrap();
        assert_eq!(step.all, u64::from(volume.layout.segments * SPARE.pages_per_block));
        (rebuilt, unprotected, from, steps) =
            (rebuilt + step.rebuilt, unprotected + step.unprotected, step.next, steps + 1);
        assert_eq!(step.lost, 0);
    }
    assert!(rebuilt == 1 && unprotected == 1 && steps > 3, "{rebuilt} rebuilt, {unprotected} unprotected");
    while device.maintain(8).unwrap().more {}
    assert_eq!(compare(&device, &volume.state), Ok(Compared::Same));
}

/// Parity is read only when something else is lost: who waits for that finds it lost as well.
#[test]
fn a_patrol_finds_parity_that_nobody_reads() {
    let volume = volume(SPARE, 1, false, 61);
    let device = FlashDevice::mount(volume.now.clone(), &MountOptions::default()).unwrap();
    let segments = device.inspect().unwrap().segments();
    let in_use: Vec<u32> = segments.iter().filter(|one| one.live_bytes > 3000).map(|one| one.segment).collect();
    drop(device);
    let of_segment =
        |page: PageAddress, segment: u32| volume.layout.blocks(segment).any(|one| one == SPARE.block_of(page));
    let mut parity = rows(&volume).into_iter().map(|row| *row.last().unwrap());
    let of = |page: PageAddress| in_use.iter().copied().find(|segment| of_segment(page, *segment));
    let (hit, segment) = parity.find_map(|page| Some((page, of(page)?))).unwrap();
    let mut medium = Patched::new(&volume.now).that_tells();
    medium.patch(hit, (vec![0; 512], vec![0; 64]));
    let device = FlashDevice::mount(medium, &MountOptions::default()).unwrap();
    let passes = |device: &FlashDevice| crate::common::counter(device, "patrols");
    while passes(&device) == 0 {
        device.maintain(1).unwrap();
    }
    while device.maintain(8).unwrap().more {}
    assert_eq!(compare(&device, &volume.state), Ok(Compared::Same));
    let held = |number: &u32| device.inspect().unwrap().segments()[*number as usize].live_bytes > 0;
    assert!(!held(&segment), "what lies beside the lost parity moved");
    assert!(in_use.iter().filter(|number| held(number)).count() > 3, "the rest stayed");
}

#[test]
fn a_repair_moves_what_was_found_again() {
    let volume = volume(SPARE, 1, false, 51);
    let rows = rows(&volume);
    for row in rows.iter().step_by(5) {
        let mut medium = Patched::new(&volume.now);
        medium.patch(row[0], (vec![0; 512], vec![0; 64]));
        let medium = Shared::holding(medium);
        let repaired = repair(medium.clone(), &RepairOptions::default()).unwrap();
        assert!(repaired.actions.iter().all(|action| !action.is_loss()), "{:?}", repaired.actions);
        let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
        assert_eq!((report.findings, report.unprotected_pages), (Vec::new(), 0));
        assert_eq!(repair(medium, &RepairOptions::default()).unwrap().actions, []);
    }
}

/// Paper 1, Table III: the pages that parity costs.
#[test]
fn parity_costs_its_share_of_programs_and_no_reads() {
    let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 1024, chips: 1 };
    let nand = SimNand::new(shape, onode_media::SimOptions::default()).unwrap();
    let options = FormatOptions { parity_pages: 1, ..FormatOptions::default() };
    let device = FlashDevice::format(nand, &options, &MountOptions::default()).unwrap();
    let mut prng = Prng::new(1);
    for _ in 0..2000 {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![1; 500 + prng.below(9500) as usize]);
        device.commit(transaction, Durability::Durable).unwrap();
    }
    device.close().unwrap();
    let counters = device.inspect().unwrap().counters();
    let of = |name: &str| counters.iter().find(|(one, _)| one == name).unwrap().1;
    let (parity, all) = (of("parity.programs"), of("nand.programs"));
    assert!(parity * 100 > all * 5 && parity * 10 < all, "{parity} of {all} programs are parity");
    assert_eq!(of("parity.reads"), 0);
}
