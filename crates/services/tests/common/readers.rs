//! Readers beside a writer: an object is one of two contents, never a mixture.

use onode_object::{Durability, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const OBJECT: ObjectId = ObjectId(5);
const BYTES: usize = 150_000;

/// Content that compresses or not, by its number.
fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; BYTES];
    if number % 2 == 1 {
        onode_base::Prng::new(number).fill(&mut bytes);
    }
    bytes
}

/// Rewrites an object, whole or in part, while others read it; tells the first mixture that was
/// seen.
pub fn run(wrap: impl FnOnce(Arc<RamDevice>) -> Box<dyn ObjectDevice>, rounds: u64) -> Result<(), String> {
    let device = wrap(Arc::new(RamDevice::new(1 << 30)));
    let contents: Vec<Vec<u8>> = (0..4).map(content).collect();
    let put = |number: usize| {
        let mut transaction = Transaction::new();
        transaction.write(OBJECT, 0, contents[number].clone());
        device.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())
    };
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default());
    device.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())?;
    put(0)?;
    let is_done = AtomicBool::new(false);
    let read = || {
        let mut buffer = vec![0; BYTES];
        while !is_done.load(Ordering::Relaxed) {
            let count = device.read(OBJECT, 0, &mut buffer).map_err(|error| error.to_string())?;
            if count != BYTES || !contents.contains(&buffer) {
                return Err(format!("a reader saw a mixture in {count} bytes"));
            }
            let extents = device.extents(OBJECT, 0, 100).map_err(|error| error.to_string())?;
            if extents.iter().map(|(_, length)| length).sum::<u64>() < BYTES as u64 {
                return Err(format!("a reader saw holes: {extents:?}"));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        let written = (0..rounds).try_for_each(|round| put(round as usize * 7 % 4));
        is_done.store(true, Ordering::Relaxed);
        let seen = readers.into_iter().map(|reader| reader.join().unwrap_or_else(|_| Err("a reader panicked".into())));
        seen.chain([written]).collect()
    })
}
