//! The whole file system with a hash so weak that nearly every name collides.

use crate::names::slots::NameHash;
use crate::volume::check;
use crate::{Caller, FileSystem, FormatOptions, InodeNumber, Inodes, Options, RenameFlags, XattrFlags, format};
use onode_base::clock::ManualClock;
use onode_base::{Prng, Timestamp};
use onode_object::ObjectDevice;
use onode_object::ram::RamDevice;
use std::collections::BTreeMap;
use std::sync::Arc;

type Names = BTreeMap<Vec<u8>, u64>;

fn listed(fs: &FileSystem, directory: InodeNumber, step: usize) -> Names {
    let mut names = Names::new();
    let mut cursor = 2;
    loop {
        let mut taken = 0;
        fs.read_directory(directory, cursor, &mut |entry| {
            if taken == step {
                return false;
            }
            taken += 1;
            cursor = entry.cursor;
            assert!(names.insert(entry.name.clone(), entry.inode.0).is_none(), "a name came twice");
            true
        })
        .unwrap();
        if taken == 0 {
            return names;
        }
    }
}

#[test]
fn names_that_collide_stay_apart() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let device: Arc<dyn ObjectDevice> = Arc::new(RamDevice::new(64 << 20));
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).unwrap();
        let hash = NameHash::weak(1 + prng.below(4));
        // A name cache of one name, so that every lookup probes.
        let options = Options { name_cache_bytes: 1, ..Options::default() };
        let clock = Arc::new(ManualClock::at(0));
        let fs = FileSystem::mount_with_hash(device.clone(), clock, options, hash).unwrap();
        let root = Caller::root();
        let other = fs.make_directory(&root, InodeNumber::ROOT, b"other", 0o755).unwrap().inode;
        let directories = [InodeNumber::ROOT, other];
        let mut model = [Names::from([(b"other".to_vec(), other.0)]), Names::new()];
        for _ in 0..400 {
            let (a, b) = (prng.below(2) as usize, prng.below(2) as usize);
            let name = format!("{}", prng.below(12)).into_bytes();
            let second = format!("{}", prng.below(12)).into_bytes();
            let known = model[a].get(&name).copied();
            match prng.below(4) {
                0 => {
                    let made = fs.create(&root, directories[a], &name, 0o644);
                    assert_eq!(made.is_err(), known.is_some());
                    if let Ok(made) = made {
                        model[a].insert(name.clone(), made.inode.0);
                    }
                }
                1 => {
                    assert_eq!(fs.unlink(directories[a], &name).is_ok(), known.is_some());
                    model[a].remove(&name);
                }
                2 => {
                    let moved = fs.rename(directories[a], &name, directories[b], &second, RenameFlags::Replace);
                    assert_eq!(moved.is_ok(), known.is_some());
                    if let Some(inode) = model[a].remove(&name) {
                        model[b].insert(second, inode);
                    }
                }
                _ => {
                    let attribute = [b"user.", &second[..]].concat();
                    if let Some(inode) = known.map(InodeNumber) {
                        let value = vec![seed as u8; 1 + prng.below(900) as usize];
                        fs.set_xattr(&root, inode, &attribute, &value, XattrFlags::Any).unwrap();
                        assert_eq!(fs.get_xattr(inode, &attribute).unwrap(), value);
                    }
                }
            }
        }
        for (directory, names) in directories.into_iter().zip(&model) {
            for step in [1, 3, 100] {
                assert_eq!(&listed(&fs, directory, step), names, "seed {seed}, {step} at a time");
            }
        }
        fs.unmount().unwrap();
        assert_eq!(check::check_with(device.as_ref(), hash, Inodes::Embedded).unwrap().findings, [], "seed {seed}");
    }
}
