//! The superblock area: every page is read, the order of the generations is checked, the newest
//! readable superblock is the base of everything else.

use super::Context;
use super::finding::{Finding, FindingKind, Place, Severity};
use super::medium::Medium;
use crate::index::tree::Tree;
use crate::medium::format::{
    FEATURES_KNOWN, FORMAT_MAJOR, FORMAT_MINOR, PageKind, References, SUPERBLOCK_MAGIC, Superblock,
};
use crate::medium::layout::Layout;
use crate::medium::page::{self, PageFault};
use crate::medium::ring;
use crate::medium::saved;
use crate::space::segments::SegmentTable;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_media::{BlockAddress, Geometry, IoTag, MediaErrorKind, Nand, PageAddress};
use zerocopy::{FromBytes, IntoBytes};

/// A superblock as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) block: u32,
    pub(crate) page: u32,
    pub(crate) superblock: Superblock,
    pub(crate) references: References,
}

impl Located {
    const fn place(&self) -> Place {
        Place::Superblock { block: self.block, page: self.page }
    }
}

/// What a page of the superblock area is.
pub(crate) enum Slot {
    Erased,
    Unreadable,
    Sound(Located),
    Failed(onode_media::Error),
}

/// Bytes of the superblock area that are read together at most, if they are more than a page.
const TOGETHER_BYTES: u32 = 256 << 10;

/// The page of a block whose number in it is `page`.
const fn address(shape: &Geometry, block: u32, page: u32) -> PageAddress {
    PageAddress(shape.first_page(BlockAddress(block)).0 + page as u64)
}

/// Reads one page of the superblock area.
pub(crate) fn read_slot(nand: &mut dyn Nand, block: u32, page: u32) -> Slot {
    let shape = nand.geometry();
    let mut data = vec![0; shape.page_bytes as usize];
    let mut spare = vec![0; Layout::spare_bytes_read(&shape)];
    match nand.read(address(&shape, block, page), &mut data, &mut spare, IoTag::Check) {
        Ok(()) => Slot::of(&shape, PageBytes { block, page, data: &data, spare: &spare }),
        Err(error) if error.kind == MediaErrorKind::Uncorrectable => Slot::Unreadable,
        Err(error) => Slot::Failed(error),
    }
}

/// Reads all pages of a block of the superblock area, many together.
fn read_slots(nand: &mut dyn Nand, block: u32) -> Vec<Slot> {
    let shape = nand.geometry();
    let together = (TOGETHER_BYTES / shape.page_bytes).max(1);
    let (page_bytes, spare_bytes) = (shape.page_bytes as usize, Layout::spare_bytes_read(&shape));
    let mut slots = Vec::with_capacity(shape.pages_per_block as usize);
    for first in (0..shape.pages_per_block).step_by(together as usize) {
        let pages = first..(first + together).min(shape.pages_per_block);
        let mut data = vec![0; pages.len() * page_bytes];
        let mut spare = vec![0; pages.len() * spare_bytes];
        if nand.read_run(address(&shape, block, first), &mut data, &mut spare, IoTag::Check).is_err() {
            // Each by itself: one that is damaged costs none of the others.
            slots.extend(pages.map(|page| read_slot(nand, block, page)));
            continue;
        }
        let mut spare = spare.as_slice();
        slots.extend(pages.zip(data.chunks_exact(page_bytes)).map(|(page, data)| {
            let (of_page, rest) = spare.split_at(spare_bytes);
            spare = rest;
            Slot::of(&shape, PageBytes { block, page, data, spare: of_page })
        }));
    }
    slots
}

/// A page of the superblock area as it was read.
struct PageBytes<'a> {
    block: u32,
    page: u32,
    data: &'a [u8],
    spare: &'a [u8],
}

impl Slot {
    /// What a page is.
    fn of(shape: &Geometry, read: PageBytes<'_>) -> Self {
        let PageBytes { block, page, data, spare } = read;
        let (payload, rest) = data.split_at(Layout::payload_bytes(shape) as usize);
        let trailer = if spare.is_empty() { rest } else { spare };
        let Ok((superblock, after)) = Superblock::read_from_prefix(payload) else { return Self::Unreadable };
        let seed = page::volume_seed(&superblock.uuid);
        let info = match page::verify(seed, address(shape, block, page), None, trailer, payload) {
            Ok(info) => info,
            Err(PageFault::Erased) => return Self::Erased,
            Err(_) => return Self::Unreadable,
        };
        let sound = superblock.magic == SUPERBLOCK_MAGIC
            && info.kind == PageKind::Superblock
            && info.sequence == superblock.generation.get();
        match superblock.references(after) {
            Some(references) if sound => Self::Sound(Located { block, page, superblock, references }),
            _ => Self::Unreadable,
        }
    }
}

/// All superblocks in order of generation; findings about the area go to `context`.
pub(crate) fn scan(nand: &mut dyn Nand, context: &mut Context<'_>) -> Vec<Located> {
    let mut all: Vec<Located> = Vec::new();
    let blocks = match ring::blocks_of(nand) {
        Ok(blocks) => blocks,
        Err(error) => {
            let finding =
                Finding::new(Severity::Fatal, FindingKind::MediumFailed, Place::Superblock { block: 0, page: 0 });
            context.add(finding.found(format!("{error}")));
            return Vec::new();
        }
    };
    let mut unreadable = Vec::new();
    for &block in blocks.iter().flatten() {
        let mut last: Option<u32> = None;
        for (page, slot) in (0..).zip(read_slots(nand, block)) {
            let place = Place::Superblock { block, page };
            match slot {
                Slot::Erased => {}
                Slot::Unreadable => unreadable.push((block, page)),
                Slot::Failed(error) => {
                    let finding = Finding::new(Severity::Fatal, FindingKind::MediumFailed, place);
                    context.add(finding.found(format!("{error}")));
                    return Vec::new();
                }
                Slot::Sound(one) => {
                    let generation = one.superblock.generation.get();
                    if last.is_some_and(|last| last >= generation) {
                        let finding = Finding::new(Severity::Error, FindingKind::SuperblockOrder, place);
                        let expected = format!("a generation above {}", last.unwrap_or_default());
                        context.add(finding.expected(expected).found(format!("generation {generation}")));
                    }
                    last = Some(generation);
                    all.push(one);
                }
            }
        }
    }
    let uuid = all.iter().max_by_key(|one| one.superblock.generation.get()).map(|one| one.superblock.uuid);
    for (block, page) in unreadable {
        if uuid.is_some_and(|uuid| saved::is_copy(nand, &uuid, block, page)) {
            continue;
        }
        context.report.unreadable_superblocks += 1;
        let place = Place::Superblock { block, page };
        let found = "a page that is neither erased nor a sound superblock nor a copy of a page";
        context.add(Finding::new(Severity::Warning, FindingKind::SuperblockUnreadable, place).found(found));
    }
    for of_end in blocks.iter().filter(|_| !all.is_empty()) {
        if let Some(&block) = of_end.first()
            && !all.iter().any(|one| of_end.contains(&one.block))
        {
            let finding = Finding::new(
                Severity::Warning,
                FindingKind::SuperblockUnreadable,
                Place::Superblock { block, page: 0 },
            );
            context.add(finding.found("no superblock at this end of the medium; the next change writes it again"));
        }
    }
    all.sort_by_key(|one| one.superblock.generation.get());
    // Each stands at both ends.
    all.dedup_by(|later, earlier| {
        let at_one_end = blocks.iter().any(|of_end| of_end.contains(&later.block) && of_end.contains(&earlier.block));
        !at_one_end
            && later.superblock.as_bytes() == earlier.superblock.as_bytes()
            && later.references == earlier.references
    });
    for pair in all.windows(2) {
        compare(&pair[0], &pair[1], context);
    }
    all
}

/// Checks that `later` can have been written after `earlier`.
fn compare(earlier: &Located, later: &Located, context: &mut Context<'_>) {
    let (old, new) = (&earlier.superblock, &later.superblock);
    let numbers = |one: &Superblock| {
        (one.checkpoint_generation.get(), one.next_sequence.get(), one.next_object.get(), one.transaction.get())
    };
    let (was, is) = (numbers(old), numbers(new));
    let ascends = was.0 <= is.0 && was.1 <= is.1 && was.2 <= is.2 && was.3 <= is.3;
    let same_checkpoint = was.0 == is.0;
    // A session begins by repeating the superblock with sequence numbers of its own.
    let same_numbers = (was.2, was.3) == (is.2, is.3);
    let agrees = !same_checkpoint
        || (old.root == new.root
            && earlier.references.pieces == later.references.pieces
            && earlier.references.deferred == later.references.deferred
            && same_numbers);
    if old.generation == new.generation || old.uuid != new.uuid || !ascends || !agrees {
        let describe = |numbers: (u32, u32, u64, u64)| {
            format!("checkpoint {}, sequence {}, object {}, commit {}", numbers.0, numbers.1, numbers.2, numbers.3)
        };
        let finding = Finding::new(Severity::Error, FindingKind::SuperblockOrder, later.place());
        context.add(finding.expected(format!("not before {}", describe(was))).found(describe(is)));
    }
}

/// Whether the newest superblock is one that this code can follow; the layout if so.
pub(crate) fn judge(newest: &Located, nand: &dyn Nand, context: &mut Context<'_>) -> Option<Layout> {
    let superblock = &newest.superblock;
    let fatal = |kind| Finding::new(Severity::Fatal, kind, newest.place());
    let (major, minor) = (superblock.major.get(), superblock.minor.get());
    if major != FORMAT_MAJOR || superblock.incompatible.get() & !FEATURES_KNOWN != 0 {
        let found = format!("format {major}.{minor} with features {:#x}", superblock.incompatible.get());
        context.add(fatal(FindingKind::FormatUnknown).expected(format!("format {FORMAT_MAJOR}")).found(found));
        return None;
    }
    if minor > FORMAT_MINOR || superblock.read_only_compatible.get() != 0 {
        let finding = Finding::new(Severity::Warning, FindingKind::FormatUnknown, newest.place());
        let features = superblock.read_only_compatible.get();
        let found = format!("format {major}.{minor} with read-only features {features:#x}");
        context.add(finding.expected(format!("format {FORMAT_MAJOR}.{FORMAT_MINOR}")).found(found));
    }
    let shape = nand.geometry();
    let stored = (
        superblock.page_bytes.get(),
        superblock.pages_per_block.get(),
        superblock.blocks.get(),
        u32::from(superblock.chips.get()),
    );
    let real = (shape.page_bytes, shape.pages_per_block, shape.blocks, shape.chips);
    if !ring::is_shape_of(superblock, &shape) {
        let finding = fatal(FindingKind::GeometryMismatch).expected(format!("{stored:?} as the volume was made"));
        context.add(finding.found(format!("{real:?} (page bytes, pages per block, blocks, chips)")));
        return None;
    }
    let layout = match Layout::of_volume(shape, superblock) {
        Ok(layout) => layout,
        Err(error) => {
            context.add(fatal(FindingKind::SuperblockMalformed).found(error.detail));
            return None;
        }
    };
    let wrong = [
        ("table_pieces", newest.references.pieces.len() != SegmentTable::piece_count(&layout)),
        ("root_level", superblock.root_level > Tree::MAX_LEVEL),
        ("clean", superblock.clean > 1),
        ("a counter", !ring::numbers_are_possible(superblock, &layout)),
        ("journal_segment", superblock.journal_segment.get() >= layout.segments),
        ("journal_page", superblock.journal_page.get() > layout.segment_pages),
        ("journal_sequence", superblock.journal_sequence.get() >= superblock.next_sequence.get()),
        ("journal_next_segment", superblock.journal_next_segment.get() >= layout.segments),
        ("journal_next_sequence", superblock.journal_next_sequence.get() >= superblock.next_sequence.get()),
    ];
    let mut sound = true;
    for (field, _) in wrong.iter().filter(|(_, wrong)| *wrong) {
        sound = false;
        context.add(fatal(FindingKind::SuperblockMalformed).found(format!("{field} makes no sense")));
    }
    sound.then_some(layout)
}

/// Bad blocks among `segment`'s blocks.
pub(crate) fn bad_blocks(medium: &mut Medium<'_>, segment: u32) -> Result<u32, onode_media::Error> {
    let mut bad = 0;
    for block in medium.layout().blocks(segment) {
        bad += u32::from(medium.nand().is_bad(block)?);
    }
    Ok(bad)
}
