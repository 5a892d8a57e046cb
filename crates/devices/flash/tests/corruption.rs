//! Honest about damage (N6): whatever bits of a volume change, no read gives a wrong byte, what is
//! not damaged stays readable, and the check reports what a read would meet.

use crate::common::Shared;
use crate::common::patched::{Page, Patched};
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, check};
use onode_flash::format::{PageKind, PageTrailer};
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, PageAddress, SimNand};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::collections::BTreeMap;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 256, chips: 1 };
const BARE: Geometry = Geometry { spare_bytes: 0, ..SHAPE };

/// Content and one attribute of every object.
type State = BTreeMap<ObjectId, (Vec<u8>, Vec<u8>)>;

const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind(40), 7);

/// A volume that was in use for a while, with what must be on it.
struct Volume {
    now: SimNand,
    /// The chip some time before.
    earlier: SimNand,
    /// The states after the newest checkpoint and after each commit since.
    states: Vec<State>,
}

fn volume(shape: Geometry, seed: u64) -> Volume {
    let mut prng = Prng::new(seed);
    let nand = Shared::new(shape);
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let mut states = vec![State::new()];
    let mut earlier = nand.with(|nand| nand.clone());
    for round in 0..260 {
        let mut state = states.last().unwrap().clone();
        let mut transaction = Transaction::new();
        let object = if state.len() < 30 {
            let object = device.reserve_ids(1).unwrap();
            transaction.create(object, Hints::default());
            object
        } else {
            *state.keys().nth(prng.below(30) as usize).unwrap()
        };
        let (content, value) = state.entry(object).or_default();
        let mut data = vec![0; 1 + prng.below(if round % 5 == 0 { 3000 } else { 200 }) as usize];
        prng.fill(&mut data);
        let offset = prng.below(2500) as usize;
        content.resize(content.len().max(offset + data.len()), 0);
        content[offset..offset + data.len()].copy_from_slice(&data);
        value.clone_from(&data[..data.len().min(50)].to_vec());
        transaction.set_attribute(object, ATTRIBUTE, value.clone()).write(object, offset as u64, data);
        device.commit(transaction, Durability::Durable).unwrap();
        states.push(state);
        if round == 200 {
            earlier = nand.with(|nand| nand.clone());
        }
        if round > 100 && round % 20 == 0 {
            // The cleaner fills cold pages, and a checkpoint ends what a replay could go back to.
            device.maintain(4).unwrap();
            device.sync(SyncScope::All).unwrap();
        }
    }
    drop(device);
    Volume { now: nand.with(|nand| nand.clone()), earlier, states }
}

/// Whether everything that can be read is as in `state`, and whether anything could not be read.
/// What differs silently is `Err`.
fn compare(device: &FlashDevice, state: &State) -> Result<bool, String> {
    let mut damaged = false;
    match device.list(ObjectId(0), 1000) {
        Ok(objects) if objects.iter().eq(state.keys()) => {}
        Ok(objects) => return Err(format!("{} objects instead of {}", objects.len(), state.len())),
        Err(error) if error.kind == ErrorKind::Corrupt => damaged = true,
        Err(error) => return Err(format!("list: {error}")),
    }
    for (&object, (content, value)) in state {
        let mut bytes = vec![0xcc; content.len() + 10];
        match device.read(object, 0, &mut bytes) {
            Ok(length) if bytes[..length] == content[..] => {}
            Ok(_) => return Err(format!("{object} has other content")),
            Err(error) if error.kind == ErrorKind::Corrupt => {
                damaged = true;
                if let Some(range) = error.range {
                    rest_is_readable(device, object, content, range)?;
                }
            }
            Err(error) => return Err(format!("read {object}: {error}")),
        }
        match device.attribute(object, ATTRIBUTE) {
            Ok(Some(found)) if found == *value => {}
            Err(error) if error.kind == ErrorKind::Corrupt => damaged = true,
            other => return Err(format!("attribute of {object}: {other:?}")),
        }
    }
    Ok(damaged)
}

/// What lies before and behind a damaged range reads as it should.
fn rest_is_readable(
    device: &FlashDevice,
    object: ObjectId,
    content: &[u8],
    range: core::ops::Range<u64>,
) -> Result<(), String> {
    for (from, until) in [(0, range.start), (range.end, content.len() as u64)] {
        let mut bytes = vec![0; until.saturating_sub(from) as usize];
        match device.read(object, from, &mut bytes) {
            Ok(_) if bytes[..] == content[from as usize..][..bytes.len()] => {}
            // There may be a second damage.
            Err(error) if error.kind == ErrorKind::Corrupt && error.range != Some(range.clone()) => {}
            other => return Err(format!("{object} from {from} beside {range:?}: {other:?}")),
        }
    }
    Ok(())
}

/// Mounts the damaged medium in both ways and checks it; says what was not honest.
fn judge(volume: &Volume, medium: &Patched) -> Result<(), String> {
    let newest = volume.states.last().unwrap();
    let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
    for read_only in [true, false] {
        let options = MountOptions { read_only, ..MountOptions::default() };
        let asked = FlashDevice::mount(medium.clone(), &options).err().map(|error| error.kind);
        let consent = MountOptions { accept_loss: true, ..options };
        let device = match FlashDevice::mount(medium.clone(), &consent) {
            Ok(device) => device,
            Err(_) if !report.is_sound() => continue,
            Err(error) => return Err(format!("the check finds nothing, but: {error}")),
        };
        let accepted = device.health().conditions.iter().any(|one| one.code == "loss-accepted");
        if accepted != (asked == Some(ErrorKind::Loss)) {
            return Err(format!("consent was asked for as {asked:?}, health says {accepted}"));
        }
        let why = if accepted { "damaged" } else { "" };
        match compare(&device, newest) {
            Ok(false) => {}
            Ok(true) if report.is_sound() => return Err("reads fail, the check finds nothing".into()),
            Ok(true) => {}
            // A damaged journal is no secret: the state is one that was, and the device says so.
            Err(_) if why.contains("damaged") && !report.is_sound() => {
                let known = volume.states.iter().rev().any(|state| compare(&device, state).is_ok());
                if !known {
                    return Err("behind a damaged journal is no state that ever was".into());
                }
            }
            // The very last page of the journal, which holds one commit: a power cut leaves the
            // same.
            Err(_) if compare(&device, &volume.states[volume.states.len() - 2]).is_ok() => {}
            Err(why) => return Err(format!("silently wrong (read_only {read_only}): {why}")),
        }
    }
    Ok(())
}

fn trailer_of(shape: Geometry, page: &Page) -> &[u8] {
    if shape.spare_bytes > 0 { &page.1[..] } else { &page.0[page.0.len() - size_of::<PageTrailer>()..] }
}

fn kind_of(shape: Geometry, page: &Page) -> Option<PageKind> {
    PageKind::from_byte(trailer_of(shape, page)[10])
}

fn sequence_of(shape: Geometry, page: &Page) -> u32 {
    trailer_of(shape, page)[4..8].iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// Every way of spoiling one page.
fn spoilt(volume: &Volume, at: PageAddress, other: &Page, prng: &mut Prng) -> Vec<(String, Page)> {
    let page = Patched::new(&volume.now).page(at);
    let shape = onode_media::Nand::geometry(&volume.now);
    let mut all = Vec::new();
    let bytes = page.0.len() + page.1.len();
    let flip = |bit: usize| {
        let mut copy = page.clone();
        let byte = bit / 8;
        let part = if byte < copy.0.len() { &mut copy.0[byte] } else { &mut copy.1[byte - page.0.len()] };
        *part ^= 1 << (bit % 8);
        (format!("bit {bit}"), copy)
    };
    // The trailer is the last 16 bytes, with a spare area and without.
    all.extend(((bytes - 16) * 8..bytes * 8).step_by(3).map(flip));
    all.extend((0..40).map(|_| flip(prng.below(bytes as u64 * 8) as usize)));
    let filled = |byte| (vec![byte; page.0.len()], vec![byte; page.1.len()]);
    all.push(("zero".into(), filled(0)));
    all.push(("erased".into(), filled(0xff)));
    all.push(("another page".into(), other.clone()));
    let older = Patched::new(&volume.earlier).page(at);
    if kind_of(shape, &older).is_some() && older != page {
        all.push(("an older page".into(), older));
    }
    for rest in [0, 0xff] {
        let mut cut = page.clone();
        let half = cut.0.len() / 2;
        cut.0[half..].fill(rest);
        all.push((format!("cut short with {rest:#x}"), cut));
    }
    all
}

fn every_damage_is_honest(shape: Geometry, kind: PageKind, pages: usize, seed: u64) {
    let volume = volume(shape, seed);
    let mut prng = Prng::new(seed);
    let mut medium = Patched::new(&volume.now);
    let mut of_kind: Vec<PageAddress> = medium.programmed();
    of_kind.retain(|&page| kind_of(shape, &medium.page(page)) == Some(kind));
    assert!(of_kind.len() > 1, "there are pages of kind {kind:?}");
    // The newest pages are the ones in use; take those and some others.
    of_kind.sort_by_key(|&page| (sequence_of(shape, &medium.page(page)), page));
    let mut chosen: Vec<PageAddress> = of_kind.iter().rev().take(pages / 2).copied().collect();
    while chosen.len() < pages {
        chosen.push(of_kind[prng.below(of_kind.len() as u64) as usize]);
    }
    for at in chosen {
        let other = of_kind[prng.below(of_kind.len() as u64) as usize];
        let other = medium.page(if other == at { of_kind[0] } else { other });
        for (how, page) in spoilt(&volume, at, &other, &mut prng) {
            let mut medium = medium.clone();
            medium.patch(at, page);
            if let Err(why) = judge(&volume, &medium) {
                panic!("{kind:?} page {}, {how}, seed {seed}: {why}", at.0);
            }
        }
    }
}

#[test]
fn superblocks() {
    every_damage_is_honest(SHAPE, PageKind::Superblock, 4, 1);
    every_damage_is_honest(BARE, PageKind::Superblock, 2, 2);
}

#[test]
fn journal_pages() {
    every_damage_is_honest(SHAPE, PageKind::Journal, 8, 3);
    every_damage_is_honest(BARE, PageKind::Journal, 4, 4);
}

#[test]
fn tree_nodes_and_table_pieces() {
    every_damage_is_honest(SHAPE, PageKind::Index, 10, 5);
    every_damage_is_honest(BARE, PageKind::Index, 4, 6);
}

#[test]
fn data_pages() {
    every_damage_is_honest(SHAPE, PageKind::Data, 6, 7);
    every_damage_is_honest(BARE, PageKind::Data, 2, 8);
}

#[test]
fn cold_pages() {
    // Small enough that the cleaner has work to do.
    every_damage_is_honest(Geometry { blocks: 48, pages_per_block: 16, ..SHAPE }, PageKind::Cold, 4, 9);
}

#[test]
fn summaries() {
    every_damage_is_honest(SHAPE, PageKind::Summary, 4, 10);
}

/// Several pages of the journal in a row: a lookout of two pages took them for its end.
#[test]
fn pages_of_the_journal_in_a_row() {
    let volume = volume(SHAPE, 11);
    let sound = Patched::new(&volume.now);
    let mut journal = sound.clone().programmed();
    journal.retain(|&page| kind_of(SHAPE, &sound.clone().page(page)) == Some(PageKind::Journal));
    let newest = journal.iter().map(|&page| sequence_of(SHAPE, &sound.clone().page(page))).max().unwrap();
    // The two newest segments: the journal goes on in the next one, too.
    let life = |page: PageAddress| sequence_of(SHAPE, &sound.clone().page(page));
    let before = journal.iter().map(|&page| life(page)).filter(|&life| life < newest).max().unwrap();
    journal.retain(|&page| life(page) >= before);
    journal.sort_by_key(|&page| (life(page), page));
    assert!(journal.len() > 10, "{} pages", journal.len());
    for sound in [sound.clone(), sound.in_a_file()] {
        // The medium of a chip does not lose single pages without a trace.
        let fills = if onode_media::Nand::keeps_order(&sound) { &[0][..] } else { &[0, 0xff] };
        for (&byte, count) in fills.iter().flat_map(|byte| (1..=8).map(move |count| (byte, count))) {
            for first in 0..journal.len() - count - 1 {
                let mut medium = sound.clone();
                for &page in &journal[first..first + count] {
                    medium.patch(page, (vec![byte; SHAPE.page_bytes as usize], vec![byte; SHAPE.spare_bytes as usize]));
                }
                if let Err(why) = judge(&volume, &medium) {
                    panic!("{count} pages from {first} of {} are {byte:#x}: {why}", journal.len());
                }
            }
        }
    }
}

/// The whole-volume property: random bits anywhere, one or many.
#[test]
fn random_bits_anywhere() {
    for seed in 0..6 {
        let shape = if seed % 2 == 0 { SHAPE } else { BARE };
        let volume = volume(shape, 100 + seed);
        let mut prng = Prng::new(seed);
        let mut sound = Patched::new(&volume.now);
        judge(&volume, &sound).unwrap();
        let programmed = sound.programmed();
        for case in 0..60 {
            let mut medium = sound.clone();
            let most = 1 << prng.below(4);
            for _ in 0..1 + prng.below(most) {
                let at = programmed[prng.below(programmed.len() as u64) as usize];
                let mut page = medium.page(at);
                let bits = (page.0.len() + page.1.len()) as u64 * 8;
                let bit = prng.below(bits) as usize;
                let (data, spare) = (&mut page.0, &mut page.1);
                let length = data.len();
                *(if bit / 8 < length { &mut data[bit / 8] } else { &mut spare[bit / 8 - length] }) ^= 1 << (bit % 8);
                medium.patch(at, page);
            }
            if let Err(why) = judge(&volume, &medium) {
                panic!("seed {seed} case {case}: {why}");
            }
        }
    }
}
