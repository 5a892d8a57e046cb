//! Volumes that nobody changes: however full they are, background work comes to an end, and from
//! then on nothing is written.

use crate::common::Folder;
use crate::content::content;
use onode::{Class, Volume};
use std::path::PathBuf;

/// Rounds of background work after which a volume has to be at rest.
const ROUNDS: u32 = 60;
/// Steps of one round, as a mount has them.
const STEPS: u32 = 32;

/// Where processes that share a memory count how often its lock was taken.
const LOCK: std::ops::Range<usize> = 0x6000..0x7000;

/// What a mount does once a second while nobody asks for anything.
fn idle(volume: &Volume, rounds: u32) {
    for _ in 0..rounds {
        volume.files().tick();
        (0..STEPS).take_while(|_| volume.files().maintain(4).unwrap().more).for_each(drop);
    }
}

fn images(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Fills `share` of a hundred of a volume with files, overwrites and removes some, and waits.
fn rests(folder: &Folder, spec: &str, share: u64) {
    let volume = Volume::open_or_create(spec).unwrap();
    let write = |file: u64, round: u64, bytes: usize| volume.write(format!("/{file}"), content(file + round, bytes));
    let least = volume.device().space().available * (100 - share) / 100;
    let mut files = 0;
    while volume.device().space().available > least {
        match write(files, 0, 1000 + (files as usize * 7919) % 60_000) {
            Ok(()) => files += 1,
            Err(error) => {
                assert_eq!(error.class, Class::VolumeFull, "{spec}: {error}");
                break;
            }
        }
    }
    for file in (0..files).step_by(5) {
        let full = write(file, 1, 900 + (file as usize * 7919) % 60_000).err();
        assert!(full.is_none_or(|error| error.class == Class::VolumeFull));
    }
    volume.files().sync().unwrap();
    idle(&volume, ROUNDS);
    let before = images(folder);
    idle(&volume, ROUNDS);
    for ((path, then), (_, now)) in before.iter().zip(images(folder)) {
        let is_memory = path.ends_with("memory");
        let differ = (0..then.len()).filter(|at| then[*at] != now[*at] && !(is_memory && LOCK.contains(at)));
        let differ = differ.count();
        assert_eq!(differ, 0, "{spec}, {share} of 100 full: bytes of {} changed", path.display());
    }
    volume.close().unwrap();
}

#[test]
fn a_volume_that_nobody_changes_is_not_written() {
    for share in [50, 92, 100] {
        for kind in 0..6 {
            let folder = Folder::new("idle");
            let at = |name: &str| folder.path().join(name).display().to_string();
            let spec = match kind {
                0 => format!("flash:{},size=24M", at("disk")),
                1 => format!("flash:{},size=24M,parity=1", at("disk")),
                2 => format!("flash+scm:{},{},size=24M", at("disk"), at("memory")),
                3 => format!("scm:{},size=24M", at("memory")),
                4 => format!("tier:{},{},fast-size=12M,size=24M", at("fast"), at("big")),
                _ => format!("pool:flash:{},size=24M+scm:{},size=24M", at("one"), at("memory")),
            };
            rests(&folder, &spec, share);
        }
    }
}
