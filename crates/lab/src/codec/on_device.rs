//! Populations on the device `flash+scm`, as a file system gives them to it: content in
//! transactions that wait for no medium, sizes to the byte.

use super::chip::{PAGE_BYTES, PAGES_PER_BLOCK};
use super::population::{Files, Population};
use crate::chip::Chip;
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions};
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, SimPmem};
use onode_object::{
    AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Result, SyncScope, Transaction,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The attribute in which a file system keeps what it knows of a file.
const INODE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);
/// About the bytes of a small inode.
const INODE_BYTES: usize = 24;
/// Spare bytes of a page of that size.
const SPARE_BYTES: u32 = 64;
/// Ids up to here are of the system: the root is there.
const RESERVED_IDS: u64 = 1;

/// A device and the files on it.
pub struct DeviceFiles {
    device: FlashDevice,
    media: (Chip, Arc<SimPmem>),
    pages: u64,
    used: u64,
    /// Bytes of each file by its object, which is its number too.
    sizes: BTreeMap<u32, u64>,
    failed: Option<onode_object::Error>,
}

impl DeviceFiles {
    /// An empty device on `blocks` blocks beside a memory of so many bytes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(blocks: u32, memory_bytes: u64) -> Result<Self> {
        let geometry = Geometry {
            page_bytes: PAGE_BYTES as u32,
            spare_bytes: SPARE_BYTES,
            pages_per_block: PAGES_PER_BLOCK,
            blocks,
            chips: 1,
        };
        let refused = |error: onode_media::Error| onode_object::Error::new(ErrorKind::Invalid, error.to_string());
        let nand = Chip::new(geometry).map_err(refused)?;
        let memory = Arc::new(SimPmem::new(memory_bytes, PmemOptions::default()));
        let (format, mount, beside) = (FormatOptions::default(), MountOptions::default(), MemoryOptions::default());
        let media = (nand.clone(), memory.clone());
        let device = FlashDevice::format_beside(nand, memory, &format, &mount, &beside)?;
        device.reserve_ids(RESERVED_IDS)?;
        let pages = u64::from(blocks) * u64::from(PAGES_PER_BLOCK);
        Ok(Self { device, media, pages, used: 0, sizes: BTreeMap::new(), failed: None })
    }

    /// One of `blocks` blocks that holds `population`, all of it synced.
    ///
    /// # Errors
    /// Those of the device.
    pub fn filled(population: Population, blocks: u32, seed: u64) -> Result<Self> {
        let mut files = Self::new(blocks, u64::from(blocks) << 10)?;
        population.make(&mut files, seed);
        files.device.sync(SyncScope::All)?;
        files.failed.take().map_or(Ok(files), Err)
    }

    /// The device.
    pub const fn device(&self) -> &FlashDevice {
        &self.device
    }

    /// NAND and memory, which no device holds any more.
    pub fn into_media(self) -> (Chip, Arc<SimPmem>) {
        self.media
    }

    fn commit(&mut self, transaction: Transaction) {
        if self.failed.is_none() {
            self.failed = self.device.commit(transaction, Durability::Buffered).err();
        }
    }

    fn write(&self, transaction: &mut Transaction, object: u32, offset: u64, bytes: u64) {
        transaction.write(ObjectId(object.into()), offset, vec![object as u8; bytes as usize]);
    }

    /// Bytes of `object` become `bytes`; what this changes of the pages in use.
    fn resize(&mut self, object: u32, bytes: u64) {
        let old = self.sizes.insert(object, bytes).unwrap_or(0);
        self.used = self.used + bytes.div_ceil(PAGE_BYTES) - old.div_ceil(PAGE_BYTES);
    }

    fn make(&mut self, transaction: &mut Transaction) -> u32 {
        let id = self.device.reserve_ids(1).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            ObjectId(u64::from(u32::MAX))
        });
        transaction.create(id, Hints::default());
        transaction.set_attribute(id, INODE, vec![1; INODE_BYTES]);
        self.used += 1;
        id.0 as u32
    }
}

impl Files for DeviceFiles {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn create(&mut self, _parent: u32, _kind: u8) -> u32 {
        let mut transaction = Transaction::new();
        let object = self.make(&mut transaction);
        self.commit(transaction);
        self.resize(object, 0);
        object
    }

    fn look(&self, object: u32) -> (u32, u64, u64) {
        let bytes = self.sizes.get(&object).copied().unwrap_or(0);
        (object, bytes.div_ceil(PAGE_BYTES), bytes)
    }

    fn write_pages(&mut self, object: u32, page: u32, count: u32) {
        let (offset, bytes) = (u64::from(page) * PAGE_BYTES, u64::from(count) * PAGE_BYTES);
        let mut transaction = Transaction::new();
        self.write(&mut transaction, object, offset, bytes);
        self.commit(transaction);
        let old = self.look(object).2;
        self.resize(object, old.max(offset + bytes));
    }

    fn close(&mut self, object: u32, bytes: u64) {
        let id = ObjectId(object.into());
        let mut transaction = Transaction::new();
        if self.look(object).2 != bytes {
            transaction.truncate(id, bytes);
        }
        transaction.set_attribute(id, INODE, vec![2; INODE_BYTES]);
        self.commit(transaction);
        self.resize(object, bytes);
    }

    fn remove(&mut self, object: u32) {
        let mut transaction = Transaction::new();
        transaction.remove(ObjectId(object.into()));
        self.commit(transaction);
        self.resize(object, 0);
        self.sizes.remove(&object);
        self.used -= 1;
    }

    /// Its segments for cleaning, its journal and its tree need more room than a chip's five
    /// blocks.
    fn large_files(&self) -> u32 {
        14
    }

    fn create_file(&mut self, _parent: u32, bytes: u64) -> u32 {
        let mut transaction = Transaction::new();
        let object = self.make(&mut transaction);
        self.write(&mut transaction, object, 0, bytes);
        self.commit(transaction);
        self.resize(object, bytes);
        object
    }
}
