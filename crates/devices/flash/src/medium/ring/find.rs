//! Finding superblocks on a medium of which nothing is known.

use super::Turn;
use crate::medium::format::{
    FEATURE_BUFFERED, FEATURE_FAR_SUPERBLOCKS, PageKind, References, SUPERBLOCK_MAGIC, Superblock,
};
use crate::medium::layout::{End, Layout, SuperblockBlocks};
use crate::medium::page::{self, Examined, PageFault};
use alloc::vec;
use alloc::vec::Vec;
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress};
use onode_object::Result;
use zerocopy::FromBytes;

/// No medium has fewer erase blocks.
const FEWEST_BLOCKS: u32 = 8;

/// A superblock found on the medium.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its fixed part.
    pub superblock: Superblock,
    /// What follows it.
    pub references: References,
    /// Block in which it lies.
    pub block: u32,
    /// The newest ones at both ends, as far as they were looked for.
    pub turns: [Turn; 2],
}

impl Found {
    /// Whether the memory beside the flash may have commits that were promised and that the flash
    /// lacks.
    pub const fn is_buffered(&self) -> bool {
        self.superblock.compatible.get() & FEATURE_BUFFERED != 0
    }

    /// Whether each superblock of the volume stands at both ends of the medium.
    const fn is_at_both_ends(&self) -> bool {
        self.superblock.incompatible.get() & FEATURE_FAR_SUPERBLOCKS != 0
    }

    /// Where the superblocks of the volume are, on a medium of shape `medium`: the volume may have
    /// fewer blocks. One that tells more is of a time before it shrank: the far end is elsewhere.
    fn superblocks(&self, medium: &Geometry) -> SuperblockBlocks {
        let told = self.superblock.blocks.get();
        let is_possible = (FEWEST_BLOCKS..=Geometry::MOST_BLOCKS).contains(&told);
        let blocks = if is_possible { told } else { medium.blocks };
        let told = SuperblockBlocks::of_features(&Geometry { blocks, ..*medium }, self.superblock.incompatible.get());
        told.on(blocks.min(medium.blocks))
    }

    const fn turn(&self) -> Turn {
        Turn::found(self.block, self.superblock.generation.get())
    }
}

/// Erase blocks at `end` in which superblocks may stand. What a bad one holds does not matter at
/// the far end: others stand in for it there.
///
/// # Errors
/// If the medium cannot say which blocks are bad.
pub fn in_use(nand: &mut dyn Nand, superblocks: SuperblockBlocks, end: End) -> onode_media::Result<Vec<u32>> {
    let mut blocks = Vec::new();
    for block in superblocks.at(end) {
        if blocks.len() < superblocks.in_use() && (end == End::Start || !nand.is_bad(BlockAddress(block))?) {
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// The blocks in which the volume on a medium has its superblocks, at the start and at the end; as
/// new volumes have them if no superblock can be read.
///
/// # Errors
/// Only if the medium itself cannot be read.
pub fn blocks_of(nand: &mut dyn Nand) -> Result<[Vec<u32>; 2]> {
    let shape = nand.geometry();
    let superblocks = match find(nand, None)? {
        Some(found) => found.superblocks(&shape),
        None => SuperblockBlocks::of_new(&shape),
    };
    Ok([blocks_at(nand, superblocks, End::Start)?, blocks_at(nand, superblocks, End::Far)?])
}

/// All readable superblocks of a medium, oldest first, each as often as it stands there. Unreadable
/// pages are passed over: a cut leaves them.
///
/// # Errors
/// Only if the medium itself cannot be read; an empty result means that this is no volume.
pub fn find_all(nand: &mut dyn Nand) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    let mut turns = [Turn::NONE; 2];
    for (blocks, turn) in blocks_of(nand)?.into_iter().zip(&mut turns) {
        let before = all.len();
        for block in blocks {
            for page in 0..nand.geometry().pages_per_block {
                all.extend(read_superblock(nand, block, page, None)?.sound());
            }
        }
        let newest = all[before..].iter().map(Found::turn).max_by_key(|turn| turn.generation);
        *turn = newest.unwrap_or(Turn::NONE);
    }
    all.iter_mut().for_each(|found| found.turns = turns);
    all.sort_by_key(|found| found.superblock.generation.get());
    Ok(all)
}

fn blocks_at(nand: &mut dyn Nand, superblocks: SuperblockBlocks, end: End) -> Result<Vec<u32>> {
    in_use(nand, superblocks, end).map_err(|error| crate::medium::errors::from_media("look for bad blocks", &error))
}

/// The newest readable superblock of a medium, found with few reads. `expected` is its number, if
/// that is known from elsewhere: a guess that only says where to look first.
///
/// # Errors
/// Only if the medium itself cannot be read; without a result this is no volume.
pub fn find(nand: &mut dyn Nand, expected: Option<u32>) -> Result<Option<Found>> {
    let shape = nand.geometry();
    let usual = SuperblockBlocks::of_new(&shape);
    let heads_found = heads(nand, usual, End::Start)?;
    // Volumes of before may have had others behind them, and what is at the end of the medium is
    // not theirs.
    let of_before = |found: &&Found| !found.is_at_both_ends();
    let mut readable = heads_found.iter().filter_map(|head| head.found.as_ref());
    let told = readable.clone().find(of_before).or_else(|| readable.next_back()).map(|found| found.superblocks(&shape));
    match told {
        Some(superblocks) if superblocks.at_both_ends() => {
            let at_start = if superblocks.first_other() > usual.first_other() {
                heads(nand, superblocks, End::Start)?
            } else {
                heads_found.into_iter().filter(|head| head.block < superblocks.first_other()).collect()
            };
            if let Some(found) = find_at_both_ends(nand, superblocks, at_start, expected)? {
                return Ok(Some(found));
            }
        }
        Some(_) => {}
        None => {
            let mut at_start = heads_found;
            let others = [SuperblockBlocks::few(&shape, true), SuperblockBlocks::many(&shape)];
            for superblocks in core::iter::once(usual).chain(others.into_iter().filter(|other| *other != usual)) {
                if superblocks.first_other() > usual.first_other() {
                    at_start = heads(nand, superblocks, End::Start)?;
                }
                if superblocks.at_both_ends()
                    && let Some(found) = find_at_both_ends(nand, superblocks, core::mem::take(&mut at_start), expected)?
                {
                    return Ok(Some(found));
                }
            }
        }
    }
    let superblocks = told.filter(|told| !told.at_both_ends()).unwrap_or(SuperblockBlocks::at_start(&shape));
    let heads = heads(nand, superblocks, End::Start)?;
    let found = newest(nand, heads, expected)?;
    Ok(found.filter(|found| !found.is_at_both_ends()).map(|found| Found { turns: [found.turn(), Turn::NONE], ..found }))
}

/// The newest one of either end. Where one was looked for the other is found with two reads, unless
/// a cut came between them. The far end is where the volume says that the medium ends, or, if it
/// was about to grow, where that does.
fn find_at_both_ends(
    nand: &mut dyn Nand,
    superblocks: SuperblockBlocks,
    at_start: Vec<Head>,
    expected: Option<u32>,
) -> Result<Option<Found>> {
    let shape = nand.geometry();
    let start = newest(nand, at_start, expected)?.filter(Found::is_at_both_ends);
    let superblocks = start.as_ref().map_or(superblocks, |start| start.superblocks(&shape));
    let likely = start.as_ref().map(|found| found.superblock.generation.get()).or(expected);
    let is_ours = |found: &Found| {
        found.is_at_both_ends() && start.as_ref().is_none_or(|start| start.superblock.uuid == found.superblock.uuid)
    };
    let at_end = heads(nand, superblocks, End::Far)?;
    let mut far: Vec<Found> = newest(nand, at_end, likely)?.into_iter().collect();
    let of_medium = superblocks.on(shape.blocks);
    if of_medium != superblocks {
        // Anything may be there before a volume grows, and its first superblock begins a block.
        let mut at_end = heads(nand, of_medium, End::Far)?;
        at_end.retain(|head| head.found.is_some());
        far.extend(newest(nand, at_end, likely)?);
    }
    far.retain(is_ours);
    let generation = |found: &Found| found.superblock.generation.get();
    let of_start = start.as_ref().map_or(Turn::NONE, Found::turn);
    let found = far.iter().cloned().chain(start).max_by_key(generation);
    Ok(found.map(|found| {
        // That at the end of what the volume was before it grew is none of its superblocks any
        // more.
        let at_end = found.superblocks(&shape).at(End::Far);
        let of_far = far.iter().find(|one| at_end.contains(&one.block)).map_or(Turn::NONE, Found::turn);
        Found { turns: [of_start, of_far], ..found }
    }))
}

/// What the first page of a superblock block holds; it is not erased.
struct Head {
    block: u32,
    /// Nothing if it cannot be read.
    found: Option<Found>,
}

/// Those at `end`, oldest first.
fn heads(nand: &mut dyn Nand, superblocks: SuperblockBlocks, end: End) -> Result<Vec<Head>> {
    let mut heads = Vec::new();
    for block in blocks_at(nand, superblocks, end)? {
        match read_superblock(nand, block, 0, None)? {
            Examined::Sound(found) => heads.push(Head { block, found: Some(found) }),
            // The first page may be unreadable while later ones are not.
            Examined::Unsound(PageFault::Erased) => {}
            Examined::Unsound(_) => heads.push(Head { block, found: None }),
        }
    }
    let generation = |head: &Head| head.found.as_ref().map_or(u32::MAX, |found| found.superblock.generation.get());
    heads.sort_by_key(|head| (generation(head), head.block));
    Ok(heads)
}

/// The newest superblock in the blocks that begin with `heads`. Blocks are filled in turn, so the
/// youngest readable one holds it, or one whose head cannot be read: a cut may have hit that, or
/// damage one of long ago.
fn newest(nand: &mut dyn Nand, heads: Vec<Head>, expected: Option<u32>) -> Result<Option<Found>> {
    let mut newest: Option<Found> = None;
    let generation = |found: &Found| found.superblock.generation.get();
    for Head { block, found: head } in heads.into_iter().rev() {
        let had_head = head.is_some();
        let found = newest_of_block(nand, block, head, expected)?;
        // A head that cannot be read a second time may have been all that there was.
        let holds_it = had_head && found.is_some();
        newest = newest.into_iter().chain(found).max_by_key(generation);
        if holds_it {
            break;
        }
    }
    Ok(newest)
}

fn newest_of_block(
    nand: &mut dyn Nand,
    block: u32,
    head: Option<Found>,
    expected: Option<u32>,
) -> Result<Option<Found>> {
    let (mut last, found) = last_programmed(nand, block, head, expected)?;
    if found.is_some() {
        return Ok(found);
    }
    while let Some(page) = last {
        if let Examined::Sound(found) = read_superblock(nand, block, page, None)? {
            return Ok(Some(found));
        }
        last = page.checked_sub(1);
    }
    Ok(None)
}

/// The last page of `block` that is not erased, and the superblock on it if it was read on the way:
/// pages are programmed in order. `head` is what its first page holds, which is not erased.
fn last_programmed(
    nand: &mut dyn Nand,
    block: u32,
    head: Option<Found>,
    expected: Option<u32>,
) -> Result<(Option<u32>, Option<Found>)> {
    let (mut low, mut high) = (1, nand.geometry().pages_per_block);
    let uuid = head.as_ref().map(|head| head.superblock.uuid);
    let first = match (&head, expected) {
        // Numbers ascend by one from page to page. The page behind the last one is erased.
        (Some(head), Some(expected)) => {
            let page = expected.wrapping_sub(head.superblock.generation.get());
            [page.wrapping_add(1), page, page.wrapping_sub(1)]
        }
        // A clean volume has its newest superblock in the first two pages.
        (Some(head), None) if head.superblock.clean == 0 => [0; 3],
        _ => [2, 0, 0],
    };
    let mut first = first.into_iter();
    // A first page is to be read once more: a cut may have left it readable just once, and where
    // there are two blocks the next superblock takes the place of those before it.
    let mut newest = None;
    while low < high {
        let page = first.find(|page| (low..high).contains(page)).unwrap_or(low + (high - low) / 2);
        match read_superblock(nand, block, page, uuid)? {
            Examined::Unsound(PageFault::Erased) => high = page,
            found => (low, newest) = (page + 1, found.sound()),
        }
    }
    Ok((Some(low - 1), newest))
}

/// The superblock at `page` of `block`. A copy of a page of the volume `uuid`, if that is known,
/// counts as erased: no superblock stands behind it.
fn read_superblock(nand: &mut dyn Nand, block: u32, page: u32, uuid: Option<[u8; 16]>) -> Result<Examined<Found>> {
    let shape = nand.geometry();
    let address = PageAddress(shape.first_page(BlockAddress(block)).0 + u64::from(page));
    let in_spare = Layout::trailer_in_spare(&shape);
    let mut data = vec![0; shape.page_bytes as usize];
    let mut spare = vec![0; if in_spare { shape.spare_bytes as usize } else { 0 }];
    match nand.read(address, &mut data, &mut spare, IoTag::Anchor) {
        Ok(()) => {}
        Err(error) if error.kind == onode_media::MediaErrorKind::Uncorrectable => {
            return Ok(Examined::Unsound(PageFault::Checksum));
        }
        Err(error) => return Err(crate::medium::errors::from_media("read superblock", &error)),
    }
    if data.iter().chain(&spare).all(|&byte| byte == 0xff) {
        return Ok(Examined::Unsound(PageFault::Erased));
    }
    let (payload, rest) = data.split_at(Layout::payload_bytes(&shape) as usize);
    let trailer = if in_spare { &spare[..] } else { rest };
    // The checksum is seeded with the uuid, which only the superblock itself tells.
    let Some((superblock, references)) = parse_superblock(payload) else {
        let info = uuid.and_then(|uuid| page::verify(page::volume_seed(&uuid), address, None, trailer, payload).ok());
        let is_copy = info.is_some_and(|info| info.kind == PageKind::Saved);
        return Ok(Examined::Unsound(if is_copy { PageFault::Erased } else { PageFault::Checksum }));
    };
    let seed = page::volume_seed(&superblock.uuid);
    let info = match page::verify(seed, address, None, trailer, payload) {
        Ok(info) => info,
        Err(fault) => return Ok(Examined::Unsound(fault)),
    };
    let sound = info.kind == PageKind::Superblock && info.sequence == superblock.generation.get();
    Ok(if sound {
        Examined::Sound(Found { superblock, references, block, turns: [Turn::NONE; 2] })
    } else {
        Examined::Unsound(PageFault::Checksum)
    })
}

/// A superblock and what follows it, from the bytes of one.
pub fn parse_superblock(bytes: &[u8]) -> Option<(Superblock, References)> {
    let (superblock, after) = Superblock::read_from_prefix(bytes).ok()?;
    let references = superblock.references(after)?;
    (superblock.magic == SUPERBLOCK_MAGIC).then_some((superblock, references))
}
