//! A nearly full volume on which users write to several streams by the age of what is replaced:
//! what a write accepted is synced, and what replaces content is not refused (N7).

use crate::common::Folder;
use onode::{InodeNumber, Volume};
use onode_base::{ErrorKind, Prng};
use onode_fs::{Caller, FileSystem, SetAttributes};
use std::collections::BTreeMap;

const CALLER: Caller = Caller::root();
const ROOT: InodeNumber = InodeNumber::ROOT;
const FILES: u64 = 385;

struct Full {
    draw: Prng,
    /// The files, and the bytes of each.
    made: BTreeMap<u64, (InodeNumber, u64)>,
    refused: u32,
    what: String,
}

impl Full {
    fn data(&mut self, most: u64) -> Vec<u8> {
        let mut data = vec![0; 1 + self.draw.below(most) as usize];
        self.draw.fill(&mut data);
        data
    }

    /// What is refused is refused for space, at the call.
    fn accepted(&mut self, written: onode_fs::Result<usize>, wanted: usize) -> u64 {
        let accepted = written.unwrap_or_else(|error| {
            assert_eq!(error.kind, ErrorKind::NoSpace, "{}: {error}", self.what);
            0
        });
        self.refused += u32::from(accepted < wanted);
        accepted as u64
    }

    fn sync(&mut self, files: &FileSystem, number: InodeNumber) {
        if self.draw.chance(3, 5) {
            files.fsync(number, None, false).unwrap_or_else(|error| panic!("{}: fsync: {error}", self.what));
        }
    }

    fn step(&mut self, files: &FileSystem) {
        let name = self.draw.below(FILES);
        let path = format!("f{name}");
        let kind = self.draw.below(100);
        match self.made.get(&name).copied() {
            known if kind < 50 || known.is_none() => {
                let number = match known {
                    Some((number, _)) => {
                        let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
                        files.set_attributes(&CALLER, number, &cut).unwrap();
                        number
                    }
                    None => match files.create(&CALLER, ROOT, path.as_bytes(), 0o644) {
                        Ok(made) => made.inode,
                        Err(error) => {
                            assert_eq!(error.kind, ErrorKind::NoSpace, "{}: {error}", self.what);
                            self.refused += 1;
                            return;
                        }
                    },
                };
                let data = self.data(60_000);
                let written = files.write(&CALLER, number, 0, &data);
                let size = self.accepted(written, data.len());
                self.made.insert(name, (number, size));
                self.sync(files, number);
            }
            Some((number, size)) if kind < 65 => {
                let data = self.data(3000);
                let written = files.write(&CALLER, number, size, &data);
                let more = self.accepted(written, data.len());
                self.made.insert(name, (number, size + more));
                self.sync(files, number);
            }
            Some((number, size)) if kind < 85 && size > 0 => {
                let at = self.draw.below(size);
                let data = self.data((size - at).min(9000));
                let data = &data[..data.len().min((size - at) as usize)];
                let mut done = 0;
                while done < data.len() {
                    let written = files.write(&CALLER, number, at + done as u64, &data[done..]);
                    done += written.unwrap_or_else(|error| panic!("{}: over {done}: {error}", self.what));
                }
                self.sync(files, number);
            }
            _ => {
                files.unlink(ROOT, path.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", self.what));
                self.made.remove(&name);
            }
        }
    }
}

#[test]
fn streams_by_age_take_no_room_that_files_were_promised() {
    let placements = ["sepbit", "lifespan", "hints", "age-chain", "user-cleaner", "split"];
    for (placement, parity) in placements.into_iter().flat_map(|placement| [(placement, 0), (placement, 2)]) {
        for seed in 1..=2 {
            let folder = Folder::new(&format!("full-{placement}-{parity}-{seed}"));
            let image = folder.path().join("disk.img");
            let spec = format!("flash:{},size=8M,page=4K,parity={parity},placement={placement}", image.display());
            let volume = Volume::open_or_create(&spec).unwrap();
            let files = volume.files();
            let what = String::new();
            let mut full = Full { draw: Prng::new(seed), made: BTreeMap::new(), refused: 0, what };
            for step in 0..700 {
                full.what = format!("{placement}, parity {parity}, seed {seed}, step {step}");
                let before = full.refused;
                full.step(files);
                if full.refused > before && full.draw.chance(1, 3) {
                    let removed: Vec<u64> = full.made.keys().copied().filter(|_| full.draw.chance(1, 3)).collect();
                    for name in removed {
                        files.unlink(ROOT, format!("f{name}").as_bytes()).unwrap();
                        full.made.remove(&name);
                    }
                }
                if full.draw.chance(1, 4) {
                    files.maintain(4).unwrap();
                }
            }
            assert!(full.refused > 0, "{}: none was refused", full.what);
            volume.close().unwrap_or_else(|error| panic!("{}: {error}", full.what));
        }
    }
}
