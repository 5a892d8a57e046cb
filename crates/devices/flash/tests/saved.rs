//! Copies of the pages with the root of the tree and the segment table: no single damaged page
//! costs a closed volume.

use crate::common::Shared;
use crate::common::patched::{Page, Patched};
use onode_base::Prng;
use onode_flash::check::{CheckOptions, FindingKind, Report, Severity, check};
use onode_flash::format::{SUPERBLOCK_MAGIC, Superblock};
use onode_flash::repair::Action;
use onode_flash::{FlashDevice, FormatOptions, MountOptions, RepairOptions, repair};
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress, Result};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;

const SHAPES: [Geometry; 4] = [
    Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 256, chips: 1 },
    Geometry { page_bytes: 2048, spare_bytes: 0, pages_per_block: 16, blocks: 64, chips: 1 },
    Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 1024, chips: 4 },
    // Superblocks at the start alone.
    Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block: 64, blocks: 40, chips: 1 },
];

type Contents = BTreeMap<ObjectId, Vec<u8>>;

/// A damaged NAND in the hands of both the test and the device.
#[derive(Clone)]
struct Damaged(Arc<Mutex<Patched>>);

impl Nand for Damaged {
    fn geometry(&self) -> Geometry {
        self.0.lock().unwrap().geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().unwrap().read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.0.lock().unwrap().program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.0.lock().unwrap().erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().unwrap().is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.0.lock().unwrap().mark_bad(block)
    }
    fn flush(&mut self) -> Result<()> {
        self.0.lock().unwrap().flush()
    }
}

fn fill(device: &FlashDevice, contents: &mut Contents, objects: usize, prng: &mut Prng) {
    for _ in 0..objects {
        let object = device.reserve_ids(1).unwrap();
        let mut content = vec![0; 1 + prng.below(3000) as usize];
        prng.fill(&mut content);
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, content.clone());
        device.commit(transaction, Durability::Durable).unwrap();
        contents.insert(object, content);
    }
}

/// A closed volume of two sessions, and what it holds.
fn closed(shape: Geometry) -> (Shared, Contents) {
    let nand = Shared::new(shape);
    let (mut contents, mut prng) = (Contents::new(), Prng::new(7));
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    fill(&device, &mut contents, 40, &mut prng);
    device.close().unwrap();
    let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
    fill(&device, &mut contents, 20, &mut prng);
    device.close().unwrap();
    (nand, contents)
}

/// The pages of which the newest superblock names a copy, each with its copy.
fn copied(nand: &Shared) -> Vec<(PageAddress, PageAddress)> {
    let mut medium = Patched::new(&nand.with(|nand| nand.clone()));
    let pages: Vec<Page> = medium.programmed().into_iter().map(|at| medium.page(at)).collect();
    let superblocks = pages.iter().filter_map(|(data, _)| Superblock::read_from_prefix(data).ok());
    let superblocks = superblocks.filter(|(superblock, _)| superblock.magic == SUPERBLOCK_MAGIC);
    let (newest, after) = superblocks.max_by_key(|(superblock, _)| superblock.generation.get()).unwrap();
    let saved = newest.references(after).unwrap().saved;
    saved.iter().map(|one| (PageAddress(one.page.get()), PageAddress(one.copy.get()))).collect()
}

fn damaged(shape: Geometry, nand: &Shared, pages: &[PageAddress]) -> Damaged {
    let mut medium = Patched::new(&nand.with(|nand| nand.clone()));
    for page in pages {
        medium.patch(*page, (vec![0x55; shape.page_bytes as usize], vec![0x55; shape.spare_bytes as usize]));
    }
    Damaged(Arc::new(Mutex::new(medium)))
}

fn checked(medium: &Damaged) -> Report {
    check(&mut medium.clone(), &CheckOptions { data: true, ..CheckOptions::default() }, &mut |_, _| ())
}

fn kinds(report: &Report) -> Vec<(Severity, FindingKind)> {
    report.findings.iter().map(|finding| (finding.severity, finding.kind)).collect()
}

fn compare(device: &FlashDevice, contents: &Contents) {
    assert!(device.list(ObjectId(0), 1000).unwrap().iter().eq(contents.keys()));
    for (object, content) in contents {
        let mut bytes = vec![0; content.len()];
        device.read(*object, 0, &mut bytes).unwrap();
        assert_eq!(bytes, *content, "{object}");
    }
}

#[test]
fn one_damaged_page_of_the_index_does_not_cost_a_closed_volume() {
    for shape in SHAPES {
        let (nand, contents) = closed(shape);
        let copied = copied(&nand);
        assert!(!copied.is_empty(), "{shape:?} has no copies");
        for (page, _) in copied {
            let medium = damaged(shape, &nand, &[page]);
            let report = checked(&medium);
            assert_eq!(kinds(&report), [(Severity::Warning, FindingKind::PageRestored)], "{:?}", report.findings);

            let options = MountOptions { read_only: true, ..MountOptions::default() };
            let device = FlashDevice::mount(medium.clone(), &options).unwrap();
            compare(&device, &contents);
            assert!(device.health().conditions.iter().any(|one| one.code == "page-restored"));
            drop(device);

            // A session moves what was there, whether it is closed in order or not.
            for is_closed in [true, false] {
                let medium = damaged(shape, &nand, &[page]);
                let mut contents = contents.clone();
                let device = FlashDevice::mount(medium.clone(), &MountOptions::default()).unwrap();
                compare(&device, &contents);
                fill(&device, &mut contents, 150, &mut Prng::new(9));
                if is_closed {
                    device.close().unwrap();
                }
                drop(device);
                let report = checked(&medium);
                if is_closed {
                    assert!(report.findings.is_empty(), "{:?}", report.findings);
                }
                let device = FlashDevice::mount(medium.clone(), &MountOptions::default()).unwrap();
                compare(&device, &contents);
            }
        }
    }
}

#[test]
fn a_repair_writes_anew_what_was_on_a_damaged_page() {
    for shape in SHAPES {
        let (nand, contents) = closed(shape);
        for (page, _) in copied(&nand) {
            let medium = damaged(shape, &nand, &[page]);
            let repaired = repair(medium.clone(), &RepairOptions::default()).unwrap();
            let is_restored = |action: &Action| matches!(action, Action::PageRestored { .. });
            assert!(!repaired.actions.is_empty() && repaired.actions.iter().all(is_restored), "{repaired:?}");
            assert!(checked(&medium).findings.is_empty());
            compare(&FlashDevice::mount(medium.clone(), &MountOptions::default()).unwrap(), &contents);
        }
    }
}

#[test]
fn a_volume_needs_no_copy_whose_page_is_sound() {
    for shape in SHAPES {
        let (nand, contents) = closed(shape);
        let copies: Vec<_> = copied(&nand).into_iter().map(|(_, copy)| copy).collect();
        let medium = damaged(shape, &nand, &copies);
        let report = checked(&medium);
        assert!(kinds(&report).iter().all(|one| *one == (Severity::Warning, FindingKind::SuperblockUnreadable)));
        assert_eq!(report.unreadable_superblocks as usize, copies.len());
        compare(&FlashDevice::mount(medium, &MountOptions::default()).unwrap(), &contents);
    }
}
