//! Every structure of a memory beside the flash damaged, of a volume that was closed and of one
//! that was cut: what was acknowledged is there, or the mount refuses and says what is lost. Never
//! less in silence.

use crate::common;
use crate::common::SMALL;
use crate::common::pair::{Look, Pair, look, put, used};
use onode_base::{ErrorKind, Prng};
use onode_flash::{MemoryOptions, MountOptions};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, SimPmem};
use onode_object::ObjectDevice;
use std::sync::Arc;

const PLAIN: MemoryOptions = MemoryOptions { rebuild: false, spill: true, buffer: false, log_bytes: None };
const BUFFERED: MemoryOptions = MemoryOptions { buffer: true, ..PLAIN };

/// Mounts the pair with `image` as its memory: everything is there, or it is refused as a loss.
/// True if it was refused.
fn judge(pair: &Pair, image: Vec<u8>, seen: &[Look], what: &str) -> bool {
    let mut damaged = Pair {
        nand: common::Shared::holding(pair.nand.with(|nand| nand.clone())),
        memory: Arc::new(SimPmem::from_image(image, PmemOptions::default())),
        device: None,
        beside: pair.beside,
        crashes: 0,
    };
    let confirmed = |pair: &mut Pair| pair.try_mount(&MountOptions::default()).and_then(|_| pair.device().confirm());
    let mounted = match confirmed(&mut damaged) {
        // As the facade does.
        Err(error) if matches!(error.kind, ErrorKind::Stale | ErrorKind::Invalid) => {
            damaged.beside.rebuild = true;
            confirmed(&mut damaged)
        }
        mounted => mounted,
    };
    match mounted {
        Ok(()) => {
            let found = look(damaged.device());
            let first = found.iter().zip(seen).find(|(one, other)| one != other);
            let path = damaged.beside.rebuild;
            assert!(found == seen, "{what}: {} of {} objects, {first:?}, rebuilt {path}", found.len(), seen.len());
            damaged.agrees();
            assert!(damaged.device().health().worst() <= Some(onode_object::Severity::Degraded), "{what}");
            false
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Loss, "{what}: {error}");
            true
        }
    }
}

/// Damages the memory in many ways; how often the mount refused.
fn damage(beside: MemoryOptions, closed: bool, steps: u64) -> (u32, u32) {
    let mut pair = used(96, 96 << 10, steps, beside);
    // The last page of the journal is not full.
    for bytes in [40, 60, 20] {
        put(pair.device(), None, 0, bytes);
    }
    let seen = look(pair.device());
    if closed {
        pair.device().close().unwrap();
    }
    pair.device = None;
    let image = pair.memory.crash_image(Survival::Nothing);
    let in_use: Vec<usize> = (0..image.len()).step_by(8).filter(|at| image[*at..at + 8] != [0; 8]).collect();
    let (mut tried, mut refused) = (0, 0);
    let mut prng = Prng::new(steps);
    let mut tries: Vec<(String, Vec<u8>)> = Vec::new();
    let mut with = |what: String, change: &mut dyn FnMut(&mut [u8])| {
        let mut spoilt = image.clone();
        change(&mut spoilt);
        tries.push((what, spoilt));
    };
    with("all zeros".into(), &mut |bytes| bytes.fill(0));
    with("all ones".into(), &mut |bytes| bytes.fill(0xff));
    for slot in [0, 64] {
        with(format!("anchor {slot}"), &mut |bytes| bytes[slot + 30] ^= 4);
        with(format!("anchor {slot} zeroed"), &mut |bytes| bytes[slot..slot + 64].fill(0));
    }
    with("both anchors".into(), &mut |bytes| bytes[..128].fill(0));
    for _ in 0..60 {
        let at = in_use[prng.below(in_use.len() as u64) as usize] + prng.below(8) as usize;
        let bit = 1 << prng.below(8);
        with(format!("bit {bit} of byte {at}"), &mut |bytes| bytes[at] ^= bit);
        with(format!("64 bytes from {at}"), &mut |bytes| {
            let end = bytes.len().min(at + 64);
            bytes[at..end].fill(0);
        });
    }
    for (what, spoilt) in tries {
        tried += 1;
        refused += u32::from(judge(&pair, spoilt, &seen, &format!("{what}, closed {closed}, {steps} steps")));
    }
    (tried, refused)
}

#[test]
fn a_damaged_memory_loses_nothing_in_silence() {
    for (steps, closed) in [(40, true), (40, false), (300, true), (300, false)] {
        let (tried, refused) = damage(PLAIN, closed, steps);
        assert!(tried > 100 && refused == 0, "{refused} of {tried} refused, though the flash has everything");
    }
}

#[test]
fn a_damaged_write_buffer_loses_nothing_in_silence() {
    for steps in [40, 300] {
        let (tried, refused) = damage(BUFFERED, true, steps);
        assert!(tried > 100 && refused == 0, "{refused} of {tried} refused, though the volume was closed");
    }
}

/// Of a cut volume each entry of the buffer but the last: what a cut may have torn nobody can tell
/// from what was damaged.
#[test]
fn an_entry_damaged_in_the_middle_of_the_write_buffer_is_a_loss() {
    let pair = Pair::on(Geometry { blocks: 96, ..SMALL }, 96 << 10, BUFFERED);
    for _ in 0..5 {
        put(pair.device(), None, 0, 40);
    }
    let seen = look(pair.device());
    let image = pair.memory.crash_image(Survival::Nothing);
    let begin = u64::from_le_bytes(image[64 + 36..][..8].try_into().unwrap()) as usize;
    let begin = if begin == 0 { u64::from_le_bytes(image[36..][..8].try_into().unwrap()) as usize } else { begin };
    let mut entries = Vec::new();
    for at in (begin..image.len() - 32).step_by(8) {
        let number = u64::from_le_bytes(image[at..][..8].try_into().unwrap());
        let bytes = u32::from_le_bytes(image[at + 24..][..4].try_into().unwrap());
        if (1..=5).contains(&number) && (1..200).contains(&bytes) {
            entries.push((number, at));
        }
    }
    assert_eq!(entries.iter().map(|(number, _)| *number).max(), Some(5), "{entries:?}");
    assert!(!judge(&pair, image.clone(), &seen, "sound"));
    for (number, at) in entries.iter().filter(|(number, _)| *number < 5) {
        let mut spoilt = image.clone();
        spoilt[at + 33] ^= 1;
        assert!(judge(&pair, spoilt, &seen, &format!("entry {number}")), "entry {number} at {at} is not missed");
    }
}
