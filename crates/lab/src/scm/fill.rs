//! The first fill of a fresh object of 1 MiB, beside that of memory from `malloc`.

use super::Measuring;
use super::host::{Scratch, failed, nanoseconds};
use onode::Result;
use onode_heap::Heap;
use std::hint::black_box;

const OBJECT_BYTES: usize = 1 << 20;

/// Measures both.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let (objects, rounds) = if measuring.options.quick { (4, 1) } else { (128, 7) };
    let (mut own, mut process) = (f64::INFINITY, f64::INFINITY);
    for round in 1..=rounds {
        measuring.say(&format!("first fill of objects, round {round} of {rounds}"));
        let place = Scratch::new("fill");
        let heap = Heap::open(&format!("scm:{},size=512M", place.0.display()));
        let heap = heap.map_err(|error| failed("cannot make a heap", error))?;
        let mut blocks = Vec::with_capacity(objects);
        let (time, ()) = nanoseconds(|| {
            for number in 0..objects {
                let mut block = heap.allocate(OBJECT_BYTES).map_err(|error| failed("no block", error))?;
                block.fill(black_box(number as u8));
                blocks.push(block);
            }
            Ok(())
        })?;
        own = own.min(time / objects as f64);
        drop(blocks);
        // Memory that the process has not touched before, as that of a fresh object is.
        let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(objects);
        let (time, ()) = nanoseconds(|| {
            for number in 0..objects {
                let mut block = Vec::with_capacity(OBJECT_BYTES);
                block.resize(OBJECT_BYTES, black_box(number as u8 | 1));
                blocks.push(block);
            }
            Ok(())
        })?;
        process = process.min(time / objects as f64);
        black_box(blocks);
    }
    measuring.at_most("first fill of a fresh 1 MiB object, time against malloc", own / process, "times", 1.3);
    measuring.shown("first fill of a fresh 1 MiB object, onode", own, "ns");
    measuring.shown("first fill of a fresh 1 MiB object, glibc", process, "ns");
    Ok(())
}
