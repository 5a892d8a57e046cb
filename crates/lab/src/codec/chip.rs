//! A flash file system as paper 3 builds on, reduced to where its pages end up: pages are given out
//! block by block, a header page is written when a file is made and again when it is closed, and
//! the block with the fewest pages in use is cleaned when free blocks run out.

use super::population::Files;
use crate::codec::compared::cmfs::{Block, BlockState, Object};
use std::collections::{BTreeSet, VecDeque};
use std::mem;

/// Pages of an erase block.
pub const PAGES_PER_BLOCK: u32 = 64;
/// Bytes of a page.
pub const PAGE_BYTES: u64 = 2048;
/// Free blocks that only the cleaner may take.
const RESERVED_BLOCKS: usize = 5;
/// The first sequence number of a block.
const FIRST_SEQUENCE: u32 = 0x1000;
/// Ids up to here are of the system.
const FIRST_ID: u32 = 257;
/// The root directory.
pub const ROOT: u32 = 1;

/// Who owns a page: a file by its place in `objects`, and its page (0: the header).
#[derive(Clone, Copy)]
struct Owner {
    object: u32,
    chunk: u32,
}

/// An object and the size that the paper's record of it does not have.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The record.
    pub object: Object,
    /// Bytes.
    pub size: u64,
}

/// What a page says of itself in its spare area, until its block is erased.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Id of the object.
    pub id: u32,
    /// Its page; 0 for the header.
    pub chunk: u32,
    /// What the header page holds: everything of the object but its pages.
    pub header: Option<Object>,
    /// The header says that the object was removed.
    pub is_gone: bool,
}

/// What was done on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Pages read by the cleaner.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// Flag of an object that has no header page.
const FAKE: u8 = 8;

/// The file system.
pub struct Chip {
    owners: Vec<Option<Owner>>,
    /// What each page says of itself.
    pub tags: Vec<Option<Tag>>,
    /// What was done so far.
    pub operations: Operations,
    /// All blocks, as the paper stores them.
    pub blocks: Vec<Block>,
    free: VecDeque<u32>,
    open: u32,
    next_page: u32,
    sequence: u32,
    /// All objects ever made; removed ones are `None`.
    pub objects: Vec<Option<File>>,
    /// Pages in use.
    pub used: u64,
    /// Objects with a page that was written or moved since this was last taken.
    pub touched: BTreeSet<u32>,
}

impl Chip {
    /// An empty one of `blocks` blocks.
    pub fn new(blocks: u32) -> Self {
        let mut chip = Self {
            owners: vec![None; (blocks * PAGES_PER_BLOCK) as usize],
            tags: vec![None; (blocks * PAGES_PER_BLOCK) as usize],
            operations: Operations::default(),
            blocks: vec![Block::default(); blocks as usize],
            free: (0..blocks).collect(),
            open: 0,
            next_page: PAGES_PER_BLOCK,
            sequence: FIRST_SEQUENCE,
            objects: Vec::new(),
            used: 0,
            touched: BTreeSet::new(),
        };
        chip.open_block();
        for (id, parent) in [(ROOT, ROOT), (2, ROOT)] {
            let object = Object { id, parent, kind: 3, flags: FAKE, ..Object::default() };
            chip.objects.push(Some(File { object, size: 0 }));
        }
        chip
    }

    fn open_block(&mut self) {
        let old = &mut self.blocks[self.open as usize];
        if old.sequence > 0 {
            old.state = BlockState::Full;
        }
        self.open = self.free.pop_front().expect("the populations leave room");
        // Page 0 stands for none.
        self.next_page = u32::from(self.open == 0);
        self.blocks[self.open as usize] =
            Block { state: BlockState::Allocating, sequence: self.sequence, ..Block::default() };
        self.sequence += 1;
    }

    fn place(&mut self, owner: Owner) -> u32 {
        if self.next_page == PAGES_PER_BLOCK {
            self.open_block();
        }
        let page = self.open * PAGES_PER_BLOCK + self.next_page;
        self.next_page += 1;
        self.owners[page as usize] = Some(owner);
        let object = &self.file(owner.object).object;
        let header = (owner.chunk == 0).then(|| Object { pages: Vec::new(), ..object.clone() });
        self.tags[page as usize] = Some(Tag { id: object.id, chunk: owner.chunk, header, is_gone: false });
        self.operations.programs += 1;
        self.blocks[self.open as usize].pages_in_use += 1;
        self.used += 1;
        page
    }

    fn drop_page(&mut self, page: u32) {
        if page != 0 && self.owners[page as usize].take().is_some() {
            self.blocks[(page / PAGES_PER_BLOCK) as usize].pages_in_use -= 1;
            self.used -= 1;
        }
    }

    fn clean(&mut self) {
        while self.free.len() <= RESERVED_BLOCKS {
            let full = |block: &&(usize, &Block)| block.1.state == BlockState::Full;
            let all: Vec<(usize, &Block)> = self.blocks.iter().enumerate().collect();
            let victim = all.iter().filter(full).min_by_key(|(_, block)| block.pages_in_use).map(|(index, _)| *index);
            let victim = victim.expect("the populations leave room") as u32;
            for page in victim * PAGES_PER_BLOCK..(victim + 1) * PAGES_PER_BLOCK {
                if let Some(owner) = self.owners[page as usize] {
                    self.operations.reads += 1;
                    self.drop_page(page);
                    let new = self.place(owner);
                    self.point(owner, new);
                }
                self.tags[page as usize] = None;
            }
            self.operations.erases += 1;
            self.blocks[victim as usize] = Block::default();
            self.free.push_back(victim);
        }
    }

    fn point(&mut self, owner: Owner, page: u32) -> u32 {
        self.touched.insert(owner.object);
        let object = &mut self.file(owner.object).object;
        let place = match owner.chunk.checked_sub(1) {
            None => &mut object.header,
            Some(chunk) => {
                let chunk = chunk as usize;
                if object.pages.len() <= chunk {
                    object.pages.resize(chunk + 1, 0);
                }
                &mut object.pages[chunk]
            }
        };
        mem::replace(place, page)
    }

    fn write(&mut self, object: u32, chunk: u32) {
        self.clean();
        let owner = Owner { object, chunk };
        let page = self.place(owner);
        let old = self.point(owner, page);
        self.drop_page(old);
    }

    /// Writes a version of the header.
    pub fn write_header(&mut self, object: u32) {
        let serial = &mut self.file(object).object.serial;
        *serial = serial.wrapping_add(1);
        self.write(object, 0);
    }

    /// Writes a header that says that the object is going to be removed.
    pub fn note_removal(&mut self, object: u32) {
        self.write_header(object);
        let page = self.file(object).object.header;
        if let Some(tag) = &mut self.tags[page as usize] {
            tag.is_gone = true;
        }
    }

    fn file(&mut self, object: u32) -> &mut File {
        self.objects[object as usize].as_mut().expect("it exists")
    }
}

impl Files for Chip {
    fn pages(&self) -> u64 {
        self.owners.len() as u64
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn create(&mut self, parent: u32, kind: u8) -> u32 {
        let object = self.objects.len() as u32;
        let id = FIRST_ID + object - 2;
        self.objects.push(Some(File { object: Object { id, parent, kind, ..Object::default() }, size: 0 }));
        self.write_header(object);
        object
    }

    fn look(&self, object: u32) -> (u32, u64, u64) {
        let file = self.objects[object as usize].as_ref().expect("it exists");
        (file.object.id, file.object.pages.len() as u64, file.size)
    }

    fn write_pages(&mut self, object: u32, page: u32, count: u32) {
        for page in page..page + count {
            self.write(object, page + 1);
        }
    }

    fn close(&mut self, object: u32, bytes: u64) {
        self.write_header(object);
        self.file(object).size = bytes;
    }

    fn remove(&mut self, object: u32) {
        let gone = self.objects[object as usize].take().expect("it exists");
        for page in gone.object.pages.into_iter().chain([gone.object.header]) {
            self.drop_page(page);
        }
    }
}
