//! What is posted is there for readers, is covered by flushes, and is waited for at the end.

use super::*;
use crate::blockdev::{BlockDev, DiskRead};
use crate::image::OpenMode;
use crate::tag::IoTag;
use alloc::format;
use alloc::vec;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::fs::File;
use std::path::PathBuf;

const BLOCK: usize = 4096;
const BLOCKS: usize = 512;

/// A file that goes away, and a device on it with or without requests in flight.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onode-posted-{name}-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len((BLOCK * BLOCKS) as u64).unwrap();
        Self(path)
    }

    fn open(&self) -> DeviceFile {
        DeviceFile::open(&self.0, OpenMode::ReadWrite).unwrap().with_requests_in_flight()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn block(value: u8, blocks: usize) -> Vec<u8> {
    vec![value; BLOCK * blocks]
}

#[test]
fn what_is_posted_is_read_flushed_and_kept() {
    let place = Place::new("kept");
    let mut device = place.open();
    for round in 0..3_u8 {
        for at in 0..64_u8 {
            device.post_write(u64::from(at) * 8 * BLOCK as u64, &block(at ^ round, 8), IoTag::Data).unwrap();
        }
        let mut out = block(0, 4);
        device.read_at(63 * 8 * BLOCK as u64 + 2 * BLOCK as u64, &mut out, IoTag::Data).unwrap();
        assert_eq!(out, block(63 ^ round, 4));
        device.begin_flush().unwrap();
        device.write_at(0, &block(200, 1), IoTag::Journal).unwrap();
        device.begin_flush().unwrap();
        while !device.flush_is_done().unwrap() {}
        assert!(!device.is_busy());
    }
    device.post_write(BLOCK as u64, &block(201, 1), IoTag::Data).unwrap();
    drop(device);
    let bytes = std::fs::read(&place.0).unwrap();
    assert_eq!((bytes[0], bytes[BLOCK], bytes[2 * BLOCK], bytes[63 * 8 * BLOCK]), (200, 201, 2, 63 ^ 2));
}

#[test]
fn reads_that_are_asked_for_together_see_what_was_posted() {
    let place = Place::new("together");
    for is_first in [true, false] {
        let mut device = place.open();
        if is_first {
            for at in 0..BLOCKS {
                device.post_write((at * BLOCK) as u64, &block(at as u8, 1), IoTag::Data).unwrap();
            }
        } else {
            device.posted = None;
        }
        let mut outs: Vec<Vec<u8>> = (1..40).map(|blocks| block(0, blocks % 5 + 1)).collect();
        let mut reads: Vec<(u64, &mut [u8])> =
            outs.iter_mut().enumerate().map(|(which, out)| ((which * 11 * BLOCK) as u64, &mut out[..])).collect();
        device.read_batch(&mut reads, IoTag::Data).unwrap();
        for (which, out) in outs.iter().enumerate() {
            for (number, bytes) in out.chunks(BLOCK).enumerate() {
                assert_eq!(bytes, block((which * 11 + number) as u8, 1), "read {which}, block {number}");
            }
        }
    }
}

#[test]
fn a_write_that_the_device_did_not_take_is_said_by_the_flush_and_stays_readable() {
    let place = Place::new("lost");
    let mut device = place.open();
    device.post_write(0, &block(1, 4), IoTag::Data).unwrap();
    device.flush().unwrap();
    // The kernel refuses what follows: the descriptor behind the device is one for reading.
    device.file = File::open(&place.0).unwrap().into();
    device.direct = false;
    let posted = device.post_write(BLOCK as u64, &block(2, 2), IoTag::Data);
    if device.way() != Some("io_uring") {
        posted.unwrap_err();
        return;
    }
    posted.unwrap();
    device.begin_flush().and_then(|()| device.flush()).unwrap_err();
    let mut out = block(0, 4);
    device.read_at(0, &mut out, IoTag::Data).unwrap();
    assert_eq!([out[0], out[BLOCK], out[3 * BLOCK - 1], out[3 * BLOCK]], [1, 2, 2, 1]);
    // Another one that is lost, over a part of it and more; then the device takes writes again, and
    // what they say counts.
    device.post_write(2 * BLOCK as u64, &block(3, 2), IoTag::Data).unwrap();
    device.flush().unwrap_err();
    device.file = File::options().read(true).write(true).open(&place.0).unwrap().into();
    device.read_at(0, &mut out, IoTag::Data).unwrap();
    assert_eq!(out.chunks(BLOCK).map(|one| one[0]).collect::<Vec<_>>(), [1, 2, 3, 3]);
    device.write_at(BLOCK as u64, &block(4, 1), IoTag::Data).unwrap();
    device.post_write(3 * BLOCK as u64, &block(5, 1), IoTag::Data).unwrap();
    device.zero(2 * BLOCK as u64, BLOCK as u64).unwrap();
    device.flush().unwrap();
    device.read_at(0, &mut out, IoTag::Data).unwrap();
    assert_eq!(out.chunks(BLOCK).map(|one| one[BLOCK - 1]).collect::<Vec<_>>(), [1, 4, 0, 5]);
}

#[test]
fn a_batch_reaches_behind_the_end_of_nothing() {
    let place = Place::new("end");
    let mut device = place.open();
    let (mut first, mut second) = (block(0, 1), block(0, 2));
    let end = (BLOCK * (BLOCKS - 1)) as u64;
    let error = device.read_batch(&mut [(0, &mut first[..]), (end, &mut second[..])], IoTag::Data).unwrap_err();
    assert_eq!(error.kind, MediaErrorKind::OutOfRange);
}

/// A block holds its own number, and never anything else once it was posted.
#[test]
fn others_read_beside_the_owner_what_is_not_in_the_way() {
    let place = Place::new("beside");
    let mut device = place.open();
    let shared = device.shared().unwrap();
    // How far the first round has come.
    let posted = AtomicUsize::new(0);
    let reads = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let read = |mut seed: usize| {
        while !is_over.load(Acquire) {
            let there = posted.load(Acquire);
            let mut outs = vec![block(0, 1); 20];
            let mut wanted: Vec<DiskRead<'_>> = Vec::new();
            for out in outs.iter_mut().take(there) {
                seed = seed * 31 % 65_537 + 7;
                wanted.push(DiskRead { offset: (seed % there * BLOCK) as u64, out, result: Ok(()) });
            }
            shared.read_batch(&mut wanted, IoTag::Data);
            for DiskRead { offset, out, result } in wanted {
                let number = (offset / BLOCK as u64) as u8;
                match result {
                    Ok(()) if out[0] == number => _ = reads.fetch_add(1, Release),
                    Ok(()) => panic!("block {number} reads as {}", out[0]),
                    Err(error) => assert_eq!(error.kind, MediaErrorKind::Host),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|seed| {
            drop(scope.spawn({
                let read = &read;
                move || read(seed)
            }))
        });
        while reads.load(Acquire) < 500 {
            for at in 0..BLOCKS {
                device.post_write((at * BLOCK) as u64, &block(at as u8, 1), IoTag::Data).unwrap();
                posted.fetch_max(at + 1, Release);
                if at % 16 == 0 {
                    device.begin_flush().unwrap();
                }
            }
        }
        is_over.store(true, Release);
    });
    device.flush().unwrap();
    assert!(!shared.is_in_the_way(0, (BLOCK * BLOCKS) as u64));
}

#[test]
fn who_shares_a_file_reads_what_came_to_it() {
    let place = Place::new("longer");
    let mut device = place.open();
    let shared = BlockDev::shared(&device).unwrap();
    let end = (BLOCK * BLOCKS) as u64;
    let mut out = block(0, 2);
    assert!(shared.read_at(end, &mut out, IoTag::Data).is_err());
    device.grow(end + 2 * BLOCK as u64).unwrap();
    device.write_at(end, &block(7, 2), IoTag::Data).unwrap();
    shared.read_at(end, &mut out, IoTag::Data).unwrap();
    assert_eq!(out, block(7, 2));
}
