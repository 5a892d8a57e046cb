//! The smallest volumes on flash, of the shape that they have if only their size is said: filled,
//! closed full, read again, emptied, several times.

use crate::common::Folder;
use onode::{Class, Volume};

/// Content of 1,000 bytes that no other file has.
fn content(round: u32, number: u32) -> Vec<u8> {
    let mark = u64::from(round << 16 | number);
    onode_base::Prng::new(mark).next_u64().to_le_bytes().repeat(125)
}

/// Writes files until there is no room; how many there are.
fn fill(volume: &Volume, round: u32) -> u32 {
    for number in 0.. {
        match volume.write(format!("/{number}"), content(round, number)) {
            Ok(()) => {}
            Err(error) if error.class == Class::VolumeFull => {
                // The file that found no room may be there, and empty.
                let _ = volume.remove_all(format!("/{number}"));
                return number;
            }
            Err(error) => panic!("file {number}: {error}"),
        }
    }
    0
}

#[test]
fn volumes_of_a_mebibyte_and_more_are_filled_and_emptied() {
    let folder = Folder::new("small");
    for kib in [1024, 1537, 2048, 4096, 6144, 8192] {
        let image = folder.path().join(format!("{kib}.img"));
        let spec = format!("flash:{},size={kib}K", image.display());
        let mut first = 0;
        for round in 0..3 {
            let volume = Volume::open_or_create(&spec).unwrap_or_else(|error| panic!("{kib} KiB: {error}"));
            let files = fill(&volume, round);
            // Two fifths are for files at least, and never much less than in the first round.
            assert!(u64::from(files) * 1000 > kib * 1024 / 5 * 2, "{kib} KiB: {files} files");
            first = first.max(files);
            assert!(files >= first / 20 * 19, "{kib} KiB: {files} files in round {round}, {first} before");
            volume.close().unwrap_or_else(|error| panic!("{kib} KiB: {error}"));
            drop(volume);
            let volume = Volume::open_or_create(&spec).unwrap_or_else(|error| panic!("{kib} KiB, full: {error}"));
            for number in 0..files {
                let name = format!("/{number}");
                assert_eq!(volume.read(&name).expect("it is there"), content(round, number), "{kib} KiB: {name}");
                volume.remove_all(&name).unwrap_or_else(|error| panic!("{kib} KiB: {name}: {error}"));
            }
            volume.close().unwrap_or_else(|error| panic!("{kib} KiB, emptied: {error}"));
        }
    }
}
