//! The volumes that faults are injected into, what they hold, and how reads of it are judged.

use super::kinds::Fault;
use super::medium::FaultyNand;
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, check};
use onode_flash::layout::{Layout, Row, SegmentPage};
use onode_flash::policy::Stream;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::sim::RecordedNand;
use onode_media::{Geometry, PageAddress, SimNand, SimOptions};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::collections::{BTreeMap, BTreeSet};

const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind(40), 7);
const OBJECTS: u64 = 40;
const BLOCKS_PER_SEGMENT: u16 = 6;

/// Pages of parity that objects wish, in turn: where they do not choose, that changes nothing.
const WISHES: [u8; 5] = [0, Hints::NO_PARITY, 1, 2, 3];

/// Content and an attribute.
type Object = (Vec<u8>, Vec<u8>);

/// A volume that was in use and closed.
pub struct HitVolume {
    /// In words.
    pub what: String,
    /// Its division.
    pub layout: Layout,
    /// Pages of parity in the rows of each segment.
    parities: Vec<u8>,
    /// The chip.
    pub now: SimNand,
    /// The chip some time before.
    pub earlier: SimNand,
    objects: BTreeMap<ObjectId, Object>,
}

/// What reads of an object meet.
pub struct Readers {
    /// By page: the objects that are read from it.
    of_page: BTreeMap<u64, Vec<ObjectId>>,
    pages: Vec<u64>,
}

impl Readers {
    /// A page that somebody reads.
    pub fn draw(&self, prng: &mut Prng) -> PageAddress {
        PageAddress(self.pages[prng.below(self.pages.len() as u64) as usize])
    }
}

/// What reads made of a fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultVerdict {
    /// Reads that gave the right bytes.
    pub repaired: u64,
    /// One was an error.
    pub told: bool,
    /// The volume was moved to good pages and checked.
    pub moved: bool,
}

/// Pages of parity in the rows of each segment, as the table of the closed volume on `medium` says.
fn parities_of(medium: &RecordedNand, layout: &Layout) -> onode_object::Result<Vec<u8>> {
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let device = FlashDevice::mount(medium.clone(), &options)?;
    let streams = device.inspect().map_or_else(Vec::new, |inspect| inspect.segments());
    let named = |name: &str| Stream::ALL.into_iter().find(|stream| stream.name() == name);
    let parity = |name: &str| layout.parity_of(named(name).unwrap_or(Stream::Journal));
    Ok(streams.iter().map(|one| parity(&one.stream)).collect())
}

impl HitVolume {
    /// Volume `number`, with as many pages of parity as it is its turn for.
    ///
    /// # Errors
    /// What failed without any fault.
    pub fn new(seed: u64, number: u64) -> Result<Self, String> {
        let mut prng = Prng::new(seed);
        // Most with one, which is what people use.
        let (parity_pages, chosen_parity) =
            [(1, None), (2, Some(0)), (1, None), (3, None), (3, Some(1)), (2, None), (1, Some(1)), (0, None)]
                [number as usize % 8];
        let spare_bytes = if (number / 8).is_multiple_of(2) { 64 } else { 0 };
        let shape = Geometry { page_bytes: 512, spare_bytes, pages_per_block: 4, blocks: 480, chips: 1 };
        let format = FormatOptions {
            blocks_per_segment: Some(BLOCKS_PER_SEGMENT),
            parity_pages,
            chosen_parity,
            ..Default::default()
        };
        let what = format!("volume {number} with {parity_pages} pages of parity, {spare_bytes} spare bytes");
        let failed = |error: &dyn std::fmt::Display| format!("{what}: {error}");
        let nand = SimNand::new(shape, SimOptions::default()).map_err(|error| failed(&error))?;
        let medium = RecordedNand::new(nand, false);
        let device = FlashDevice::format(medium.clone(), &format, &MountOptions::default());
        let device = device.map_err(|error| failed(&error))?;
        // What a row gets after a close in the same session has no parity.
        device.close().map_err(|error| failed(&error))?;
        drop(device);
        let device = FlashDevice::mount(medium.clone(), &MountOptions::default()).map_err(|error| failed(&error))?;
        let mut objects: BTreeMap<ObjectId, Object> = BTreeMap::new();
        let mut earlier = medium.image();
        for round in 0..240 {
            let mut transaction = Transaction::new();
            let object = if (objects.len() as u64) < OBJECTS {
                let object = device.reserve_ids(1).map_err(|error| failed(&error))?;
                let parity_pages = WISHES[objects.len() % WISHES.len()];
                transaction.create(object, Hints { parity_pages, ..Hints::default() });
                object
            } else {
                objects.keys().nth(prng.below(OBJECTS) as usize).copied().unwrap_or_default()
            };
            let (content, value) = objects.entry(object).or_default();
            let mut data = vec![0; 1 + prng.below(if round % 4 == 0 { 3000 } else { 200 }) as usize];
            prng.fill(&mut data);
            let offset = prng.below(1500) as usize;
            content.resize(content.len().max(offset + data.len()), 0);
            content[offset..offset + data.len()].copy_from_slice(&data);
            *value = data[..data.len().min(40)].to_vec();
            transaction.set_attribute(object, ATTRIBUTE, value.clone()).write(object, offset as u64, data);
            let durability = if prng.chance(1, 3) { Durability::Durable } else { Durability::Buffered };
            device.commit(transaction, durability).map_err(|error| failed(&error))?;
            if round == 120 {
                earlier = medium.image();
            }
        }
        device.close().map_err(|error| failed(&error))?;
        drop(device);
        let layout = Layout::new(shape, BLOCKS_PER_SEGMENT).map_err(|error| failed(&error))?;
        let layout = layout.with_records_in_spare().with_parity(parity_pages).map_err(|error| failed(&error))?;
        let layout =
            chosen_parity.map_or(Ok(layout), |usual| layout.with_choice(usual)).map_err(|error| failed(&error))?;
        let parities = parities_of(&medium, &layout).map_err(|error| failed(&error))?;
        Ok(Self { layout, parities, now: medium.image(), earlier, objects, what: what.clone() })
    }

    /// The row of a page; nothing for one of no segment.
    pub fn row_of(&self, page: PageAddress) -> Option<Row> {
        let layout = &self.layout;
        let block = layout.geometry.block_of(page);
        let segment = (0..layout.segments).find(|segment| layout.blocks(*segment).any(|one| one == block))?;
        if !layout.has_parity() {
            return Some(Row { segment, row: 0, parity: 0 });
        }
        let parity = *self.parities.get(segment as usize)?;
        let all = (0..layout.all_pages()).map(|page| SegmentPage { segment, page, parity });
        let at = all.into_iter().find(|at| layout.address(*at) == page)?;
        Some(layout.row_of(at).0)
    }

    /// The pages of a row, with those of parity.
    pub fn pages_of(&self, row: Row) -> Vec<PageAddress> {
        let layout = &self.layout;
        let parity = (0..u32::from(row.parity)).map(|number| layout.parity_page(row, number));
        layout.content_pages(row).chain(parity).map(|at| layout.address(at)).collect()
    }

    /// The volume on `medium`, for reading past every cache.
    ///
    /// # Errors
    /// What failed.
    pub fn mount(&self, medium: &FaultyNand) -> Result<FlashDevice, String> {
        let options =
            MountOptions { read_only: true, node_cache_bytes: 0, page_cache_bytes: 0, ..MountOptions::default() };
        FlashDevice::mount(medium.clone(), &options).map_err(|error| format!("{}: {error}", self.what))
    }

    /// Who reads which page.
    ///
    /// # Errors
    /// What is wrong without any fault.
    pub fn readers(&self, medium: &FaultyNand, device: &FlashDevice) -> Result<Readers, String> {
        let mut of_page: BTreeMap<u64, Vec<ObjectId>> = BTreeMap::new();
        for &object in self.objects.keys() {
            medium.take_read();
            if !self.read(device, object)? {
                return Err(format!("{}: {object} cannot be read", self.what));
            }
            for page in medium.take_read() {
                of_page.entry(page).or_default().push(object);
            }
        }
        let pages = of_page.keys().copied().collect();
        Ok(Readers { of_page, pages })
    }

    /// Reads an object with its attribute; false if that is an error for a part of it, and the rest
    /// is right.
    ///
    /// # Errors
    /// What is wrong.
    fn read(&self, device: &FlashDevice, object: ObjectId) -> Result<bool, String> {
        let Some((content, value)) = self.objects.get(&object) else { return Err("no such object".into()) };
        let mut whole = true;
        let mut bytes = vec![0xcc; content.len() + 8];
        match device.read(object, 0, &mut bytes) {
            Ok(length) if bytes[..length] == content[..] => {}
            Err(error) if error.kind == ErrorKind::Corrupt => {
                whole = false;
                if let Some(range) = error.range {
                    self.rest_is_right(device, object, range)?;
                }
            }
            Ok(_) => return Err(format!("silent: {object} reads other bytes")),
            Err(error) => return Err(format!("read of {object}: {error}")),
        }
        match device.attribute(object, ATTRIBUTE) {
            Ok(Some(found)) if found == *value => {}
            Err(error) if error.kind == ErrorKind::Corrupt => whole = false,
            other => return Err(format!("attribute of {object}: {other:?}")),
        }
        Ok(whole)
    }

    /// What lies before and behind a damaged range reads as it should, or is another damage.
    fn rest_is_right(&self, device: &FlashDevice, object: ObjectId, range: std::ops::Range<u64>) -> Result<(), String> {
        let Some((content, _)) = self.objects.get(&object) else { return Ok(()) };
        for (from, until) in [(0, range.start), (range.end, content.len() as u64)] {
            let mut bytes = vec![0; until.saturating_sub(from) as usize];
            match device.read(object, from, &mut bytes) {
                Ok(_) if bytes[..] == content[from as usize..][..bytes.len()] => {}
                Err(error) if error.kind == ErrorKind::Corrupt && error.range != Some(range.clone()) => {}
                other => return Err(format!("{object} from {from} beside {range:?}: {other:?}")),
            }
        }
        Ok(())
    }

    /// Reads what stood on the pages that `fault` hit.
    ///
    /// # Errors
    /// A wrong byte, or an error where parity should have found everything again.
    pub fn judge(&self, device: &FlashDevice, readers: &Readers, fault: &Fault) -> Result<FaultVerdict, String> {
        let mut verdict = FaultVerdict::default();
        let objects: BTreeSet<ObjectId> = fault
            .pages
            .iter()
            .filter_map(|page| readers.of_page.get(&page.0))
            .flat_map(|all| all.iter().take(2))
            .copied()
            .collect();
        for object in objects {
            if self.read(device, object)? {
                verdict.repaired += u64::from(fault.is_within_parity);
            } else if fault.is_within_parity {
                return Err(format!("{object} is within parity and cannot be read"));
            } else {
                verdict.told = true;
            }
        }
        Ok(verdict)
    }

    /// Mounts the volume with its faults for writing, moves what was hit, closes and checks it:
    /// nothing of it is wrong any more.
    ///
    /// # Errors
    /// What is.
    pub fn move_and_check(&self, medium: &FaultyNand, verdict: FaultVerdict) -> Result<FaultVerdict, String> {
        let mut medium = medium.apart();
        let options = MountOptions { node_cache_bytes: 0, page_cache_bytes: 0, ..MountOptions::default() };
        let device = FlashDevice::mount(medium.clone(), &options).map_err(|error| format!("mount: {error}"))?;
        for &object in self.objects.keys() {
            if !self.read(&device, object)? {
                return Err(format!("{object} is within parity and cannot be read"));
            }
        }
        device.close().map_err(|error| format!("close: {error}"))?;
        drop(device);
        let report = check(&mut medium, &CheckOptions::default(), &mut |_, _| ());
        if !report.is_sound() {
            return Err(format!("the check finds {:?}", report.findings));
        }
        let device = self.mount(&medium)?;
        for &object in self.objects.keys() {
            if !self.read(&device, object)? {
                return Err(format!("{object} cannot be read once it was moved"));
            }
        }
        let counters = device.inspect().map(|inspect| inspect.counters()).unwrap_or_default();
        let rebuilt = counters.iter().find(|(name, _)| name == "pages_rebuilt").map_or(0, |(_, count)| *count);
        if rebuilt > 0 {
            return Err(format!("{rebuilt} damaged pages are still in use"));
        }
        Ok(FaultVerdict { moved: true, ..verdict })
    }
}
