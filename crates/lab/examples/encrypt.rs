//! How fast content is encrypted and decrypted: a GiB written to a device in memory and read from
//! it, with and without encryption, beside what the cipher of the library takes for as many blocks.
//!
//! `cargo run --release -p onode-lab --example encrypt [MIB]`

#![allow(clippy::disallowed_methods, reason = "it measures")]

use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::{AeadInOut, Aes256GcmSiv, KeyInit};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::{Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotSettings};
use std::sync::Arc;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 1 << 20;
const BLOCK: usize = 4096;

fn encrypted(ram: &Arc<RamDevice>) -> onode_object::Result<Encrypted<RamDevice>> {
    let (master, secret) = (MasterKey::new([1; 32]), Secret::key_file(vec![2; 32])?);
    let settings = SlotSettings { id: 0, label: "", cost: Cost::LEAST, salt: [3; 16] };
    let header = KeyHeader::new(&[ObjectId(2)], &master, KeySlot::new(&master, &secret, settings)?);
    Encrypted::create(Arc::clone(ram), header, &master, Session::new([4; 32]))
}

/// Time to write and to read so many MiB.
fn measure(device: &dyn ObjectDevice, mib: u64) -> onode_object::Result<[Duration; 2]> {
    let object = device.reserve_ids(1)?;
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Buffered)?;
    let data: Vec<u8> = (0..AT_ONCE).map(|at| (at * 7) as u8).collect();
    let mut written = Duration::ZERO;
    for number in 0..mib {
        let mut transaction = Transaction::new();
        transaction.write(object, number * AT_ONCE as u64, data.clone());
        let start = Instant::now();
        device.commit(transaction, Durability::Buffered)?;
        written += start.elapsed();
    }
    let mut buffer = vec![0; AT_ONCE];
    let start = Instant::now();
    for number in 0..mib {
        device.read(object, number * AT_ONCE as u64, &mut buffer)?;
    }
    let read = start.elapsed();
    assert!(buffer == data, "what was read is not what was written");
    Ok([written, read])
}

/// Time for the library to seal and to open as many blocks in memory.
fn library(mib: u64) -> [Duration; 2] {
    let cipher = Aes256GcmSiv::new(&[1; 32].into());
    let mut data = vec![7; AT_ONCE];
    let mut tags = Vec::with_capacity(AT_ONCE / BLOCK);
    let mut times = [Duration::ZERO; 2];
    for _ in 0..mib {
        tags.clear();
        let start = Instant::now();
        for block in data.chunks_exact_mut(BLOCK) {
            let tag = cipher.encrypt_inout_detached(&[2; 12].into(), &[0; 18], InOutBuf::from(block));
            tags.push(tag.expect("a block is short"));
        }
        times[0] += start.elapsed();
        let start = Instant::now();
        for (block, tag) in data.chunks_exact_mut(BLOCK).zip(&tags) {
            let opened = cipher.decrypt_inout_detached(&[2; 12].into(), &[0; 18], InOutBuf::from(block), tag);
            opened.expect("it was sealed so");
        }
        times[1] += start.elapsed();
    }
    times
}

fn main() -> onode_object::Result<()> {
    let mib = std::env::args().nth(1).and_then(|mib| mib.parse().ok()).unwrap_or(1024);
    let plain = measure(&RamDevice::new(1 << 40), mib)?;
    let sealed = measure(&encrypted(&Arc::new(RamDevice::new(1 << 40)))?, mib)?;
    let library = library(mib);
    println!("{mib} MiB, MiB a second        write     read");
    for (name, times) in [("plain", plain), ("encrypted", sealed), ("the library alone", library)] {
        let [write, read] = times.map(|time| mib as f64 / time.as_secs_f64());
        println!("{name:<22} {write:9.0} {read:8.0}");
    }
    let ratio = |of: usize| library[of].as_secs_f64() / sealed[of].as_secs_f64();
    println!("encrypted, of the library  {:5.2} {:8.2}", ratio(0), ratio(1));
    let without = |of: usize| library[of].as_secs_f64() / (sealed[of].saturating_sub(plain[of])).as_secs_f64();
    println!("without the device below   {:5.2} {:8.2}", without(0), without(1));
    Ok(())
}
