//! A program beside the file system: it has blocks of the same memory, makes them files, takes
//! files as memory, and dies.

use crate::files::state::{FileState, split};
use crate::violation::{Violation, unexpected};
use onode_fs::{Block, Caller, ErrorKind, FileSystem, Follow};
use onode_object::ObjectId;
use onode_object::powers::{Content, MapObjects};
use std::collections::BTreeMap;

/// Blocks of memory under the lease of a process.
pub trait Program: Send + Sync {
    /// A block, if there is room.
    fn allocate(&self, bytes: u64) -> Option<u64>;

    /// What was a file's block becomes one of this process.
    fn adopt(&self, address: u64);

    /// Gives a block back.
    ///
    /// # Errors
    /// Why it cannot be.
    fn release(&self, address: u64) -> Result<(), String>;

    /// Stores bytes, with no flush and no fence.
    fn store(&self, address: u64, bytes: &[u8]);

    /// Stores bytes, durable on return.
    fn save(&self, address: u64, bytes: &[u8]);

    /// Loads so many bytes.
    fn load(&self, address: u64, bytes: u64) -> Vec<u8>;

    /// Ends without a word, with blocks in use; another process finds out and goes on.
    ///
    /// # Errors
    /// If nobody found out.
    fn die(&self) -> Result<(), String>;
}

/// Sizes of blocks that a program uses besides: below, at and above what shares a chunk.
const SIZES: [u64; 5] = [32, 33, 1500, 4096, 9000];

fn junk(address: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    onode_base::Prng::new(address ^ length << 32).fill(&mut bytes);
    bytes
}

/// Makes a block of these bytes a file; false if there is no room.
///
/// # Errors
/// What went wrong.
pub fn publish(fs: &FileSystem, program: &dyn Program, path: &str, bytes: &[u8]) -> Result<bool, Violation> {
    let Some(address) = program.allocate(bytes.len() as u64) else { return Ok(false) };
    program.store(address, bytes);
    let (parent, name) = split(path);
    let parent = fs.resolve(parent.as_bytes(), Follow::No).map_err(unexpected("publish"))?;
    let block = Block { address, bytes: bytes.len() as u64, is_durable: false };
    let full = match fs.publish(&Caller::root(), parent, name.as_bytes(), 0o644, block) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind == ErrorKind::NoSpace => Ok(false),
        Err(error) => Err(unexpected("publish")(error)),
    };
    give_back(program, address)?;
    full
}

fn give_back(program: &dyn Program, address: u64) -> Result<(), Violation> {
    let refused = |why| Violation::new("N6", format!("the block at {address} cannot be released: {why}"));
    program.release(address).map_err(refused)
}

/// Takes a file that has `expected` as memory, stores something else there and gives the block
/// back; false if it is not one block.
///
/// # Errors
/// What went wrong.
pub fn withdraw(fs: &FileSystem, program: &dyn Program, path: &str, expected: &[u8]) -> Result<bool, Violation> {
    let (parent, name) = split(path);
    let parent = fs.resolve(parent.as_bytes(), Follow::No).map_err(unexpected("withdraw"))?;
    let block = match fs.withdraw(parent, name.as_bytes()) {
        Ok(block) => block,
        Err(error) if matches!(error.kind, ErrorKind::Invalid | ErrorKind::Busy | ErrorKind::NoSpace) => {
            return Ok(false);
        }
        Err(error) => return Err(unexpected("withdraw")(error)),
    };
    if program.load(block.address, block.bytes) != expected {
        return Err(Violation::new("N4", format!("'{path}' has other bytes as memory than it had as a file")));
    }
    program.adopt(block.address);
    program.store(block.address, &junk(block.address, block.bytes));
    give_back(program, block.address)?;
    Ok(true)
}

/// The object of a file with a table of slots, and what serves it; `None` if there is no room for
/// one.
fn slots_of<'a>(fs: &'a FileSystem, path: &str) -> Result<Option<(ObjectId, &'a dyn MapObjects)>, Violation> {
    let number = fs.resolve(path.as_bytes(), Follow::No).map_err(unexpected("slots"))?;
    match fs.table_of_slots(number) {
        Ok(object) => Ok(fs.device().map_objects().map(|memory| (object, memory))),
        Err(error) if error.kind == ErrorKind::NoSpace => Ok(None),
        Err(error) => Err(unexpected("slots")(error)),
    }
}

/// Has a slot of a file hold a block of these bytes; false if there is no room.
///
/// # Errors
/// What went wrong.
pub fn fill(fs: &FileSystem, program: &dyn Program, path: &str, slot: u64, bytes: &[u8]) -> Result<bool, Violation> {
    let Some((object, memory)) = slots_of(fs, path)? else { return Ok(false) };
    let Some(address) = program.allocate(bytes.len() as u64) else { return Ok(false) };
    program.save(address, bytes);
    let content = Content { object, address, bytes: bytes.len() as u64, is_durable: true };
    match memory.fill_slot(&content, slot) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind == ErrorKind::NoSpace => {}
        Err(error) => return Err(unexpected("fill")(error.into())),
    }
    give_back(program, address)?;
    Ok(false)
}

/// Takes the block with `expected` out of a slot, stores something else there and gives it back;
/// false if there is no room for a copy that it takes.
///
/// # Errors
/// What went wrong.
pub fn take(fs: &FileSystem, program: &dyn Program, path: &str, slot: u64, expected: &[u8]) -> Result<bool, Violation> {
    let Some((object, memory)) = slots_of(fs, path)? else { return Ok(false) };
    let block = match memory.take_slot(object, slot) {
        Ok(block) => block,
        Err(error) if error.kind == ErrorKind::NoSpace => return Ok(false),
        Err(error) => return Err(unexpected("take")(error.into())),
    };
    if !program.load(block.address, block.bytes).starts_with(expected) {
        return Err(Violation::new("N4", format!("the block in slot {slot} of '{path}' has other bytes")));
    }
    program.adopt(block.address);
    program.store(block.address, &junk(block.address, block.bytes));
    give_back(program, block.address)?;
    Ok(true)
}

/// What the slots of a file hold.
#[must_use]
pub fn look_into_slots(fs: &FileSystem, object: ObjectId, slots: &[u64]) -> BTreeMap<u64, Vec<u8>> {
    let Some(memory) = fs.device().map_objects() else { return BTreeMap::new() };
    let look = |slot: &u64| {
        let (address, length) = memory.slot(object, *slot)?;
        let mut bytes = vec![0; length as usize];
        memory.look(address, &mut bytes).ok()?;
        Some((*slot, bytes))
    };
    slots.iter().filter_map(look).collect()
}

/// The program dies with blocks in use, and the next one uses what is free then.
///
/// # Errors
/// What went wrong.
pub fn die(program: &dyn Program) -> Result<(), Violation> {
    let use_some = |program: &dyn Program| {
        let blocks: Vec<u64> = SIZES.iter().filter_map(|bytes| program.allocate(*bytes)).collect();
        blocks.iter().zip(SIZES).for_each(|(at, bytes)| program.store(*at, &junk(*at, bytes.min(32))));
        blocks
    };
    use_some(program);
    program.die().map_err(|text| Violation::new("N6", text))?;
    let blocks = use_some(program);
    blocks.into_iter().try_for_each(|address| give_back(program, address))
}

/// The bytes of a regular file with one name, if that is what the path leads to.
#[must_use]
pub fn content_to_withdraw(state: &FileState, path: &str) -> Option<Vec<u8>> {
    let number = state.find(path)?;
    let content = state.content(number)?.newest();
    (state.links(number) == 1 && !content.is_empty()).then(|| content.to_vec())
}
