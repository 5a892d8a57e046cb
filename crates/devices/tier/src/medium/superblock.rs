//! The superblock: where the last checkpoint and the log behind it are. Two copies, the newest
//! sound one counts.

use crate::fast::extent::Scheme;
use crate::fast::format::{Division, SectionPlace};
use crate::medium::bitmap_areas::{BitmapArea, BitmapAreas};
use crate::medium::bytes::{put_u32, put_u64, sealed_body, take, take_array, take_u8, take_u32, take_u64};
use crate::medium::layout::{BITS_PER_PAGE, BLOCK_BYTES, Layout};
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_engine::{Fault, Numbered};
use onode_object::Acknowledge;

/// What a superblock of a big disk begins with.
pub const MAGIC: [u8; 8] = *b"ONODTIER";
/// The newest format that this version writes.
pub const VERSION: u32 = SHRUNK;
/// The oldest format that it reads. A writable mount makes the newest one of it.
pub const OLDEST_VERSION: u32 = 1;
/// From this format on the headers of all records behind the checkpoint have checksums of their
/// own.
pub const SEALED_HEADERS: u32 = 2;
/// The format of volumes that have grown, whose bitmap lies in several places.
pub const GROWN: u32 = 3;
/// The format of volumes that have more pages of the bitmap behind the log than they need now.
pub const SHRUNK: u32 = 4;
/// What is kept of the name of a section.
const NAME_BYTES: usize = 32;

/// A place in a log and what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The block within the ring.
    pub position: u64,
    /// The number of a record.
    pub sequence: u64,
    /// The checksum of a record.
    pub chain: u32,
}

/// What the big disk knows of the fast one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastState {
    /// It takes part.
    pub is_attached: bool,
    /// There was one at some time.
    pub is_known: bool,
    /// It may hold changes that were acknowledged and that the big disk has not.
    pub leans: bool,
    /// Its own number.
    pub uuid: [u8; 16],
    /// The session in which it joined last.
    pub session: u64,
    /// Where its log behind the checkpoint begins, and the record that goes before.
    pub tail: Mark,
    /// The last record that was durable on it at the checkpoint; its position is where it lies.
    pub last: Mark,
    /// If it is detached: the last record before that.
    pub detached_at: u64,
}

/// The content of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The format.
    pub version: u32,
    /// The volume's number.
    pub uuid: [u8; 16],
    /// The division of the disk.
    pub layout: Layout,
    /// Superblocks written so far.
    pub sequence: u64,
    /// Writable mounts so far.
    pub session: u64,
    /// The checkpoint: session << 32 and its number within the session.
    pub checkpoint: u64,
    /// The root of the tree; 0 for an empty one.
    pub root: u64,
    /// The checksum of the root.
    pub root_crc: u32,
    /// Nodes of the tree.
    pub nodes: u64,
    /// Objects.
    pub objects: u64,
    /// The first id that was never handed out.
    pub next_id: u64,
    /// Where the log behind the checkpoint begins; the sequence is that of the record before, as is
    /// the chain.
    pub tail: Mark,
    /// Checksum of the state of the bitmap.
    pub bitmap_digest: u32,
    /// The fast disk.
    pub fast: FastState,
    /// When durable commits return unless an object's placement says it.
    pub acknowledge: Acknowledge,
    /// Names of the fast disk's sections, so that they are known while it is away.
    pub sections: Vec<String>,
    /// How the fast disk is divided, so that it is known while it is away or says nothing itself.
    pub division: Option<Division>,
    /// The volume was closed in order, and nothing was changed since.
    pub is_closed: bool,
}

impl Superblock {
    /// The oldest format that has all that is said of a volume divided like this.
    #[must_use]
    pub const fn version_for(layout: &Layout) -> u32 {
        match (layout.has_shrunk(), layout.has_grown()) {
            (true, _) => SHRUNK,
            (false, true) => GROWN,
            (false, false) => SEALED_HEADERS,
        }
    }

    /// Its block.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        out.extend_from_slice(&MAGIC);
        put_u32(&mut out, self.version);
        put_u32(&mut out, 0);
        out.extend_from_slice(&self.uuid);
        let Layout { blocks, ring_blocks, ring_gap, .. } = self.layout;
        for number in [blocks, ring_blocks, ring_gap, self.sequence, self.session, self.checkpoint] {
            put_u64(&mut out, number);
        }
        put_u64(&mut out, self.root);
        put_u32(&mut out, self.root_crc);
        put_u32(&mut out, self.bitmap_digest);
        for number in [self.nodes, self.objects, self.next_id] {
            put_u64(&mut out, number);
        }
        put_mark(&mut out, self.tail);
        let FastState { is_attached, is_known, leans, .. } = self.fast;
        let flags = [is_attached, is_known, leans, self.is_closed];
        out.push((0..).zip(flags).fold(0, |all, (bit, flag)| all | u8::from(flag) << bit));
        out.extend_from_slice(&self.fast.uuid);
        put_u64(&mut out, self.fast.session);
        put_mark(&mut out, self.fast.tail);
        put_mark(&mut out, self.fast.last);
        put_u64(&mut out, self.fast.detached_at);
        out.push(self.acknowledge as u8);
        out.push(self.sections.len() as u8);
        for name in &self.sections {
            let name = name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes());
            out.push(name.len() as u8);
            out.extend_from_slice(name);
        }
        put_division(
            &mut out,
            self.division.as_ref().filter(|division| division.sections.len() == self.sections.len()),
        );
        if self.version >= GROWN {
            put_areas(&mut out, &self.layout);
        }
        out.resize(BLOCK_BYTES - 4, 0);
        let sum = crc32c(&out);
        put_u32(&mut out, sum);
        out
    }

    /// What `block` says.
    ///
    /// # Errors
    /// Why it is no superblock of this version.
    pub fn decode(block: &[u8]) -> core::result::Result<Self, Fault> {
        let (body, version) = sealed_body(block, MAGIC)?;
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(Fault::Newer(version));
        }
        Self::decode_body(version, body).ok_or(Fault::Damaged)
    }

    /// What follows the version.
    fn decode_body(version: u32, body: &[u8]) -> Option<Self> {
        let input = &mut { body };
        if take_u32(input)? != 0 {
            return None;
        }
        let uuid = take_array(input)?;
        let (blocks, ring_blocks, ring_gap) = (take_u64(input)?, take_u64(input)?, take_u64(input)?);
        let first_pages = blocks.div_ceil(BITS_PER_PAGE);
        let layout = Layout { blocks, ring_blocks, ring_gap, first_pages, areas: BitmapAreas::default() };
        let (sequence, session, checkpoint) = (take_u64(input)?, take_u64(input)?, take_u64(input)?);
        let (root, root_crc, bitmap_digest) = (take_u64(input)?, take_u32(input)?, take_u32(input)?);
        let (nodes, objects, next_id) = (take_u64(input)?, take_u64(input)?, take_u64(input)?);
        let tail = take_mark(input)?;
        let flags = take_u8(input)?;
        let fast = FastState {
            is_attached: flags & 1 != 0,
            is_known: flags & 2 != 0,
            leans: flags & 4 != 0,
            uuid: take_array(input)?,
            session: take_u64(input)?,
            tail: take_mark(input)?,
            last: take_mark(input)?,
            detached_at: take_u64(input)?,
        };
        let acknowledge = match take_u8(input)? {
            0 => Acknowledge::Volume,
            1 => Acknowledge::Safe,
            2 => Acknowledge::Either,
            3 => Acknowledge::Big,
            _ => return None,
        };
        let count = take_u8(input)?;
        let take_name = |input: &mut &[u8]| {
            let length = take_u8(input)?;
            take(input, usize::from(length)).map(|name| String::from_utf8_lossy(name).into_owned())
        };
        let sections = (0..count).map(|_| take_name(input)).collect::<Option<Vec<_>>>()?;
        let division = take_division(input, &sections);
        let layout = if version >= GROWN { take_areas(input, layout)? } else { layout };
        let sound = layout.is_sound()
            && tail.position <= layout.ring_blocks
            && nodes <= layout.blocks
            && session < u64::from(u32::MAX);
        let all = Self {
            version,
            uuid,
            layout,
            sequence,
            session,
            checkpoint,
            root,
            root_crc,
            nodes,
            objects,
            next_id,
            tail,
            bitmap_digest,
            fast,
            acknowledge,
            sections,
            division,
            is_closed: flags & 8 != 0,
        };
        sound.then_some(all)
    }
}

impl Numbered for Superblock {
    fn number(&self) -> u64 {
        self.sequence
    }
}

/// A byte that says whether there is one, the places, and those of the sections, whose names stand
/// before.
fn put_division(out: &mut Vec<u8>, division: Option<&Division>) {
    let Some(division) = division else { return out.push(0) };
    out.push(1);
    let Division { blocks, stripe, ring_first, ring_blocks, slot_first, slot_blocks, sections } = division;
    for number in [blocks, stripe, ring_first, ring_blocks, slot_first, slot_blocks] {
        put_u64(out, *number);
    }
    for section in sections {
        put_u64(out, section.first);
        put_u64(out, section.blocks);
        put_u32(out, section.extent_blocks);
        out.push(section.scheme as u8);
    }
}

/// The division of sections with these names; `None` if there is none, or none that can be.
fn take_division(input: &mut &[u8], names: &[String]) -> Option<Division> {
    if take_u8(input)? != 1 {
        return None;
    }
    let mut division = Division {
        blocks: take_u64(input)?,
        stripe: take_u64(input)?,
        ring_first: take_u64(input)?,
        ring_blocks: take_u64(input)?,
        slot_first: take_u64(input)?,
        slot_blocks: take_u64(input)?,
        sections: Vec::new(),
    };
    for name in names {
        let (first, blocks, extent_blocks) = (take_u64(input)?, take_u64(input)?, take_u32(input)?);
        let scheme = Scheme::from_byte(take_u8(input)?)?;
        division.sections.push(SectionPlace { name: name.clone(), first, blocks, extent_blocks, scheme });
    }
    division.is_sound(division.blocks).then_some(division)
}

/// Pages of the bitmap that the volume was made with, and the areas of the others.
fn put_areas(out: &mut Vec<u8>, layout: &Layout) {
    put_u64(out, layout.first_pages);
    let areas = layout.areas.all();
    out.push(areas.len() as u8);
    for area in areas {
        put_u64(out, area.first);
        put_u64(out, area.pages);
    }
}

/// The layout with these.
fn take_areas(input: &mut &[u8], layout: Layout) -> Option<Layout> {
    let first_pages = take_u64(input)?;
    let count = take_u8(input)?;
    let mut take_area = || Some(BitmapArea { first: take_u64(input)?, pages: take_u64(input)? });
    let areas = (0..count).map(|_| take_area()).collect::<Option<Vec<_>>>()?;
    Some(Layout { first_pages, areas: BitmapAreas::of(&areas)?, ..layout })
}

fn put_mark(out: &mut Vec<u8>, mark: Mark) {
    put_u64(out, mark.position);
    put_u64(out, mark.sequence);
    put_u32(out, mark.chain);
}

fn take_mark(input: &mut &[u8]) -> Option<Mark> {
    Some(Mark { position: take_u64(input)?, sequence: take_u64(input)?, chain: take_u32(input)? })
}
