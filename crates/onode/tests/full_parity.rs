//! A nearly full volume whose files choose their parity, and choose it anew all the time: what a
//! write accepted is synced, whatever moves for another parity meanwhile (N7).

use crate::common::Folder;
use onode::{Hint, InodeNumber, Volume};
use onode_base::{ErrorKind, Prng};
use onode_fs::{Caller, FileSystem};

const CALLER: Caller = Caller::root();
const FILES: u64 = 150;

/// Has every file, and what is made later, wish so much.
fn wish(files: &FileSystem, directory: InodeNumber, parity: &str) {
    files.set_hint(directory, Hint::Parity, parity).unwrap();
    for number in 0..FILES {
        if let Ok(file) = files.lookup(directory, format!("f{number}").as_bytes()) {
            files.set_hint(file.inode, Hint::Parity, parity).unwrap();
        }
    }
}

/// Makes or overwrites a file; how many bytes were accepted, which are synced then.
fn write(files: &FileSystem, directory: InodeNumber, name: &str, data: &[u8]) -> usize {
    let number = match files.lookup(directory, name.as_bytes()) {
        Ok(found) => found.inode,
        Err(_) => match files.create(&CALLER, directory, name.as_bytes(), 0o644) {
            Ok(made) => made.inode,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                return 0;
            }
        },
    };
    let accepted = match files.write(&CALLER, number, 0, data) {
        Ok(accepted) => accepted,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
            0
        }
    };
    files.fsync(number, None, false).unwrap_or_else(|error| panic!("fsync of {accepted} bytes of {name}: {error}"));
    accepted
}

#[test]
fn a_changed_wish_takes_no_room_that_files_were_promised() {
    for seed in 1..=6 {
        let folder = Folder::new(&format!("full-parity-{seed}"));
        let spec = format!("flash:{},size=5M,parity=0-2", folder.path().join("disk.img").display());
        let volume = Volume::open_or_create(&spec).unwrap();
        volume.create_dir_all("/d").unwrap();
        let files = volume.files();
        let directory = files.lookup(InodeNumber::ROOT, b"d").unwrap().inode;
        let (mut draw, mut refused) = (Prng::new(seed), 0);
        for round in 0..24 {
            wish(files, directory, ["none", "1", "2", "default"][round % 4]);
            for _ in 0..60 {
                let mut data = vec![0; 1 + draw.below(20_000) as usize];
                draw.fill(&mut data);
                let name = format!("f{}", draw.below(FILES));
                if write(files, directory, &name, &data) < data.len() {
                    refused += 1;
                    let _ = files.unlink(directory, format!("f{}", draw.below(FILES)).as_bytes());
                }
                if draw.chance(1, 4) {
                    files.maintain(4).unwrap();
                }
            }
        }
        assert!(refused > 50, "seed {seed}: only {refused} writes found no room");
        volume.close().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        drop(volume);
        Volume::open_or_create(&spec).unwrap().close().unwrap();
    }
}
