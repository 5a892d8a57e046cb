//! Making and mounting volumes: superblock, bitmap, log.

use crate::commit::Volume;
use crate::core::Core;
use crate::device::options::{FormatOptions, MountOptions};
use crate::disks::Disks;
use crate::disks::fast_disk::FastDisk;
use crate::fast::Fast;
use crate::index::Index;
use crate::index::ahead::NodeReader;
use crate::index::tree::{Tree, Visited};
use crate::log::Log;
use crate::log::change::take_transaction;
use crate::log::probe::Probe;
use crate::log::record::{HEADER_BYTES, Seal};
use crate::log::ring::{self, Area, Claims, Found, Ring};
use crate::medium::anchors::Anchors;
use crate::medium::errors::{damaged, from_media, invalid};
use crate::medium::layout::{BLOCK, BLOCK_BYTES, Layout};
use crate::medium::superblock::{FastState, Mark, Superblock, VERSION};
use crate::recover::join::{self, Joined};
use crate::space::Space;
use crate::space::bitmap::Bitmap;
use crate::space::extent::Extent;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::{Copies, Fault};
use onode_media::{BlockDev, IoTag};
use onode_object::{Condition, Error, ErrorKind, ObjectId, Result, Severity};

/// Writes an empty volume onto the big disk.
///
/// # Errors
/// `Invalid` for options that cannot be, `Media`.
pub fn format_big(big: &mut dyn BlockDev, options: &FormatOptions) -> Result<()> {
    let bytes = options.bytes.map_or(big.bytes(), |bytes| bytes.min(big.bytes()));
    let layout = Layout::new(bytes, options.log_bytes, options.log_gap_bytes)?;
    let mut bitmap = Bitmap::new(&layout);
    let superblock = Superblock {
        version: Superblock::version_for(&layout),
        uuid: options.uuid,
        layout,
        sequence: 1,
        session: 1,
        checkpoint: 1 << 32,
        root: 0,
        root_crc: 0,
        nodes: 0,
        objects: 0,
        next_id: ObjectId::FIRST_FREE.0,
        tail: Mark { chain: onode_base::checksum::crc32c(&options.uuid), ..Mark::default() },
        bitmap_digest: 0,
        fast: FastState::default(),
        acknowledge: options.acknowledge,
        sections: Vec::new(),
        division: None,
        is_closed: true,
    };
    let pages = bitmap.checkpoint_pages(superblock.checkpoint)?;
    let superblock = Superblock { bitmap_digest: bitmap.digest(), ..superblock };
    let failed =
        |error: onode_media::Error| crate::medium::errors::from_media("making a volume on the big disk", &error);
    // Nothing of what was there before may be taken for a part of this volume.
    big.zero(0, layout.first_free() * BLOCK).map_err(failed)?;
    for (page, slot, bytes) in pages {
        big.write_at(layout.bitmap_block(page, slot)? * BLOCK, &bytes, IoTag::Summary).map_err(failed)?;
    }
    big.flush().map_err(failed)?;
    let bytes = superblock.encode();
    big.write_at(0, &bytes, IoTag::Anchor).map_err(failed)?;
    big.write_at(BLOCK, &bytes, IoTag::Anchor).map_err(failed)?;
    if let Some(far) = layout.far_copy(big.bytes()) {
        big.write_at(far * BLOCK, &bytes, IoTag::Anchor).map_err(failed)?;
    }
    big.flush().map_err(failed)
}

/// The newest sound superblock of a big disk, and the block it lies in. The one at the end counts
/// only if those at the start are damaged.
///
/// # Errors
/// `Invalid` if this is no volume of this kind or one of another version, `Corrupt` if all copies
/// are damaged.
pub fn read_superblock(big: &mut dyn BlockDev) -> Result<(Superblock, u64)> {
    let found = newest_superblock(big)?;
    let (want, have) = (found.0.layout.blocks * BLOCK, big.bytes());
    if want > have { Err(damaged(format!("the big disk was cut short: {have} bytes of {want}"))) } else { Ok(found) }
}

/// The same of a disk that may have been cut short.
///
/// # Errors
/// As [`read_superblock`].
pub fn newest_superblock(big: &mut dyn BlockDev) -> Result<(Superblock, u64)> {
    let mut copies = Copies::default();
    for block in [0, 1] {
        let bytes = read_block(big, block);
        copies.add(block, bytes.map_or(Err(Fault::Foreign), |bytes| Superblock::decode(&bytes)));
    }
    // What this version left at the end is not the state of a volume of a newer format.
    let end = (big.bytes() / BLOCK).saturating_sub(1);
    if copies.newest().is_none() && copies.newer_format().is_none() && end > 1 {
        let far = read_block(big, end).and_then(|bytes| Superblock::decode(&bytes).ok());
        let far = far.filter(|far| far.layout.far_copy(big.bytes()) == Some(end));
        copies.add(end, far.ok_or(Fault::Foreign));
    }
    let (newer, any_damaged) = (copies.newer_format(), copies.any_damaged());
    match (copies.into_newest(), newer) {
        (Some(found), _) => Ok(found),
        (None, Some(version)) => {
            let detail = format!("format {version} of tier is not known to this version ({VERSION})");
            Err(Error::new(ErrorKind::NotSupported, detail))
        }
        (None, None) if any_damaged => Err(damaged("all superblocks of the big disk are damaged")),
        (None, None) => Err(invalid(no_volume(big))),
    }
}

/// Where the copy of the superblock is that is far from the others.
const AT_END: &str = "at the end of the big disk";

/// Where copies of the superblock have to be and are not, or are damaged.
fn missing_superblocks(big: &mut dyn BlockDev, newest: &Superblock) -> Vec<String> {
    let at_start = [0, 1].map(|block| (block, format!("in block {block} of the big disk")));
    let far = newest.layout.far_copy(big.bytes()).map(|block| (block, String::from(AT_END)));
    let is_missing = |big: &mut dyn BlockDev, block| match read_block(big, block).map(|it| Superblock::decode(&it)) {
        Some(Ok(found)) => found.uuid != newest.uuid,
        Some(Err(Fault::Newer(_))) => false,
        _ => true,
    };
    at_start.into_iter().chain(far).filter(|(block, _)| is_missing(big, *block)).map(|(_, place)| place).collect()
}

/// A block of the big disk; nothing if it has none there, or it cannot be read.
fn read_block(big: &mut dyn BlockDev, block: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; BLOCK_BYTES];
    let is_there = (block + 1) * BLOCK <= big.bytes();
    (is_there && big.read_at(block * BLOCK, &mut bytes, IoTag::Recovery).is_ok()).then_some(bytes)
}

/// Why that is not the big disk of a volume.
fn no_volume(big: &mut dyn BlockDev) -> String {
    match Fast::identify(big) {
        Ok(Some(_)) => format!("{} is a fast disk: the disks are swapped", big.name()),
        _ => format!("{} holds no tier volume", big.name()),
    }
}

/// Mounts a volume, with its fast disk or without one.
///
/// # Errors
/// `Invalid`, `Corrupt`, `Media`.
pub fn mount(mut big: Box<dyn BlockDev>, fast: FastDisk, options: &MountOptions) -> Result<Volume> {
    let (superblock, copy) = read_superblock(&mut *big)?;
    let missing = missing_superblocks(&mut *big, &superblock);
    let was_open = !superblock.is_closed;
    let disks = Arc::new(Disks::new(big, fast, options.seam.clone()));
    let mut core = open(disks, Anchors::new(superblock, copy), options)?;
    if !options.read_only {
        core.index_mut().repair_nodes();
    }
    let lacks_far = missing.iter().any(|place| place == AT_END);
    core.recovery_mut().salvaged_mut().superblocks = missing;
    find_the_start_damaged(&mut core)?;
    let on_big = scan_big(&core)?;
    let layout = core.index().layout();
    let position = on_big.last().map_or(core.superblock().tail.position, |it| it.next);
    let ring = Ring::new(layout.ring_first(), layout.ring_blocks, position, layout.ring_gap);
    let claims = claims_on_big(&core, &on_big)?;
    let joined = join::compare(&mut core, &on_big, claims)?;
    core.recovery_mut().count_from_fast(joined.records.len().saturating_sub(on_big.len()) as u64);
    let newest = replay(&mut core, &on_big, &joined)?;
    core.index_mut().set_tag(IoTag::Index);
    let seal = Seal::of(&core.superblock().uuid, VERSION);
    if options.read_only {
        core.stay_read_only();
        let log = Log::new(ring, core.superblock().session, seal, newest, options.either_bytes);
        return Ok(Volume::new(log, core));
    }
    core.begin_session(joined.session);
    if !core.disks().fast.lock().is_there() && core.superblock().fast.is_attached {
        core.anchors_mut().detach_fast(newest.sequence);
    }
    if !core.commits().is_dirty() {
        core.anchors_mut().renew_format();
    }
    // What was read may still be in the disk's cache, if only the program ended and not the power.
    core.disks().flush()?;
    let log = Log::new(ring, core.superblock().session, seal, newest, options.either_bytes);
    let is_dirty = core.commits().is_dirty();
    let volume = Volume::new(log, core);
    let mut home = volume.home();
    home.reopen()?;
    if lacks_far && was_open {
        // Those at the start are written with every checkpoint, this one when the volume is closed.
        home.restore_superblocks()?;
    }
    if is_dirty {
        home.checkpoint()?;
    }
    join::attach(&mut home, &joined)?;
    drop(home);
    Ok(volume)
}

/// Only the superblock at the end of the disk is left: it is as old as the last mount, unless that
/// ended in order.
fn find_the_start_damaged(core: &mut Core) -> Result<()> {
    if !core.anchors_mut().leaves_the_end() {
        return Ok(());
    }
    let text = "both superblocks at the start of the big disk are damaged; the one at its end was used";
    core.recovery_mut().report(Condition::new("superblocks-damaged", Severity::Notice, text));
    if core.superblock().is_closed {
        return Ok(());
    }
    let checkpoint = core.superblock().checkpoint & u64::from(u32::MAX);
    let session = core.superblock().session;
    core.miss(format!(
        "{text}; the volume was not closed since session {session} began, and changes since then (checkpoint {checkpoint}) may be lost"
    ))
}

/// The state at the last checkpoint.
fn open(disks: Arc<Disks>, anchors: Anchors, options: &MountOptions) -> Result<Core> {
    let superblock = anchors.get();
    let layout = superblock.layout;
    let tree = Tree::at(superblock.root, superblock.root_crc, superblock.nodes);
    let reader = NodeReader::new(Arc::clone(&disks), layout, IoTag::Recovery);
    let mut index = Index::new(tree, reader, superblock.next_id, superblock.objects);
    if superblock.root != 0 && !layout.holds(superblock.root, 1) {
        return Err(damaged("the root of the tree lies outside of the disk"));
    }
    let bitmap = load_bitmap(&disks, superblock);
    let is_whole = bitmap.is_some();
    let bitmap = bitmap.unwrap_or_else(|| Bitmap::new(&layout));
    let mut space = Space::new(bitmap, layout);
    if !is_whole && !options.drop_damaged {
        rebuild_bitmap(&mut index, &mut space)?;
    }
    let mut core = Core::new(disks, options, anchors, index, space);
    if options.drop_damaged {
        core.drop_damaged()?;
    }
    Ok(core)
}

/// The bitmap as the superblock knows it; `None` if a page is damaged or not the one that was
/// written.
fn load_bitmap(disks: &Disks, superblock: &Superblock) -> Option<Bitmap> {
    let layout = superblock.layout;
    let mut bitmap = Bitmap::new(&layout);
    const PAGES: u64 = 128;
    let mut bytes = vec![0; 2 * PAGES as usize * BLOCK_BYTES];
    let mut first = 0;
    while first < layout.bitmap_pages() {
        let pages = PAGES.min(layout.bitmap_row(first)).max(1);
        let part = bytes.get_mut(..2 * pages as usize * BLOCK_BYTES)?;
        disks.read(layout.bitmap_block(first, 0).ok()?, part, IoTag::Recovery).ok()?;
        for (page, slots) in (first..).zip(part.chunks_exact(2 * BLOCK_BYTES)) {
            let (one, two) = slots.split_at(BLOCK_BYTES);
            if !bitmap.load(page, &[one, two], superblock.checkpoint) {
                return None;
            }
        }
        first += pages;
    }
    bitmap.recount();
    (bitmap.digest() == superblock.bitmap_digest).then_some(bitmap)
}

/// Finds out from the tree what is in use.
fn rebuild_bitmap(index: &mut Index, space: &mut Space) -> Result<()> {
    index.visit(&mut |visited| {
        let (first, count) = match visited {
            Visited::Node(block) => (block, 1),
            Visited::Entry(key, value) if key.is_extent() => {
                let extent = Extent::decode(value).ok_or_else(|| damaged("an extent is damaged"))?;
                (extent.block, extent.blocks())
            }
            Visited::Entry(..) => return Ok(()),
        };
        if !space.claim(first, count) {
            return Err(damaged(format!("block {first} of the big disk is used twice")));
        }
        Ok(())
    })
}

/// The log of the big disk.
fn area_of(superblock: &Superblock) -> Area {
    let layout = superblock.layout;
    let seal = Seal::of(&superblock.uuid, superblock.version);
    Area { first: layout.ring_first(), blocks: layout.ring_blocks, gap: layout.ring_gap, stripe: 1, seal }
}

/// The records of the big disk behind the checkpoint.
fn scan_big(core: &Core) -> Result<Vec<Found>> {
    let area = area_of(core.superblock());
    search_big(core, |read| ring::scan(&area, core.superblock().tail, read))
}

/// Reads blocks; false if they show nothing.
type ReadBlock<'a> = dyn FnMut(u64, &mut [u8]) -> bool + 'a;

/// Looks for something in the log of the big disk. If the disk fails meanwhile nothing was found
/// out.
fn search_big<T>(core: &Core, find: impl FnOnce(&mut ReadBlock<'_>) -> T) -> Result<T> {
    let mut big = core.disks().big.lock();
    let mut probe = Probe::new(&mut **big);
    let found = find(&mut |block, out| probe.read(block, out));
    probe.finish().map_err(|error| from_media("reading the log of the big disk", &error))?;
    Ok(found)
}

/// What the records of the big disk behind the last one that can be reached say.
fn claims_on_big(core: &Core, on_big: &[Found]) -> Result<Claims> {
    let newest = on_big.last().map_or(core.superblock().tail.sequence, |it| it.header.sequence);
    let area = area_of(core.superblock());
    let session = join::session_of(core, on_big);
    search_big(core, |read| {
        // It is looked through at every mount.
        let mut pieces = ring::Pieces::new(&area, read);
        ring::claims_behind(&area, newest, session, &mut |block, out| pieces.read(block, out))
    })
}

/// Applies the records, one at a time in memory, and lets go of content that the log of the fast
/// disk has, which stays as it is until all of it has a place; returns the last one.
fn replay(core: &mut Core, on_big: &[Found], joined: &Joined) -> Result<Mark> {
    let mut newest = core.superblock().tail;
    for number in 0..on_big.len().max(joined.records.len()) {
        let on_fast = joined.records.get(number).map(|record| (joined.first, *record));
        let (header, payload) = match (on_big.get(number), on_fast) {
            (Some(record), _) => (record.header, read_payload(core, None, record)?),
            (None, Some((first, record))) => (record.header, read_payload(core, Some(first), &record)?),
            (None, None) => break,
        };
        let at = on_fast.map(|(first, record)| (first + record.position) * BLOCK + HEADER_BYTES as u64);
        let input = &mut &payload[..];
        for _ in 0..header.transactions {
            let changes = take_transaction(input).ok_or_else(|| damaged("a record of the log is damaged"))?;
            core.replay(&changes)?;
            if let Some(at) = at {
                core.let_go_of_replayed(&changes, at, payload.len());
            }
        }
        core.has_replayed(header.transactions);
        newest = Mark { position: 0, sequence: header.sequence, chain: header.crc };
    }
    Ok(newest)
}

/// The content of a record of the big disk, or of the fast one whose log begins at `on_fast`.
fn read_payload(core: &Core, on_fast: Option<u64>, record: &Found) -> Result<Vec<u8>> {
    let mut failed = None;
    let payload = match on_fast {
        None => record.payload(core.index().layout().ring_first(), &mut |block, out| {
            failed = core.disks().read(block, out, IoTag::Recovery).err();
            failed.is_none()
        }),
        Some(first) => record.payload(first, &mut |block, out| {
            let mut slot = core.disks().fast.lock();
            let read = slot.get().map(|fast| fast.disk().read_at(block * BLOCK, out, IoTag::Recovery));
            let read = read.map(|read| read.map_err(|error| from_media("reading the log of the fast disk", &error)));
            failed = read.and_then(Result::err);
            failed.is_none()
        }),
    };
    payload.ok_or_else(|| failed.unwrap_or_else(|| damaged("a record of the log changed while it was read")))
}
