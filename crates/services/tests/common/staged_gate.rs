//! Readers beside commits that are put in place in parts: each read shows all of them or nothing.

use onode_object::{Durability, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::Staged;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const OBJECT: ObjectId = ObjectId(1);
const BYTES: usize = 48 << 10;

/// Commits so many transactions of many steps while others read; tells what one saw that was mixed.
pub fn run(commits: u8) -> Result<(), String> {
    let ram = Arc::new(RamDevice::new(1 << 30));
    let (staged, _) = Staged::open_limited(ram, Arc::new(()), 2 << 10).map_err(|error| error.to_string())?;
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default()).write(OBJECT, 0, vec![0; BYTES]);
    staged.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())?;
    let (is_over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let read = || {
            let mut buffer = vec![0; BYTES];
            while !is_over.load(Ordering::Relaxed) {
                staged.read(OBJECT, 0, &mut buffer).map_err(|error| error.to_string())?;
                reads.fetch_add(1, Ordering::Relaxed);
                if let Some(at) = buffer.iter().position(|byte| *byte != buffer[0]) {
                    return Err(format!("a read has {} at first and {} at {at}", buffer[0], buffer[at]));
                }
            }
            Ok(())
        };
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
        let mut done = Ok(());
        // A busy machine may let the readers wait: it goes on until they had their share.
        let goes_on = |count: u64| {
            let is_short = count < u64::from(commits) || reads.load(Ordering::Relaxed) < u64::from(commits);
            is_short && readers.iter().all(|reader| !reader.is_finished())
        };
        for (number, _) in (1..=commits).cycle().zip(0..).take_while(|(_, count)| goes_on(*count)) {
            let commit = || {
                let view = staged.begin()?;
                let mut transaction = Transaction::new();
                transaction.write(OBJECT, 0, vec![number; BYTES]);
                view.commit(transaction, Durability::Buffered)?;
                view.make_true(Durability::Buffered)
            };
            done = done.and(commit().map(drop).map_err(|error: onode_object::Error| error.to_string()));
        }
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().try_for_each(|reader| reader.join().map_err(|_| "a reader panicked".to_string())?)?;
        done
    })?;
    if reads.load(Ordering::Relaxed) > 0 { Ok(()) } else { Err("nobody read".to_string()) }
}
