//! Clones of volumes: beside the volume and alone, full, encrypted, compressed.

use crate::common::Folder;
use onode::{Class, FileSystem, MountOptions, Spec, Volume};
use onode_fs::{Caller, Follow};
use onode_object::Compression;
use std::collections::BTreeMap;
use std::sync::Arc;

const FILE_BYTES: usize = 200_000;

fn content(file: u64, round: u8) -> Vec<u8> {
    crate::content::content(file * 256 + u64::from(round), FILE_BYTES)
}

fn write(files: &FileSystem, path: &str, bytes: &[u8]) -> Result<(), onode_fs::Error> {
    files.write_file(&Caller::root(), path.as_bytes(), bytes, 0o644).map(drop)
}

fn clone_of(volume: &Volume, name: &str, snapshot: Option<&str>) -> Arc<FileSystem> {
    let clones = volume.clones().unwrap();
    clones.files(clones.make(name, snapshot).unwrap().generation).unwrap()
}

/// A flash of 8 MiB.
fn small_flash(folder: &Folder) -> Volume {
    let image = folder.path().join("disk.img").display().to_string();
    Volume::open_or_create(&format!("flash:{image},size=8M,page=2K,pages-per-block=16")).unwrap()
}

/// Writes files of which nothing waits, until so many bytes are left; how many they are.
fn filled_up_to(volume: &Volume, left: u64) -> u64 {
    let mut stored = 0;
    while volume.files().device().promisable() > left {
        volume.write(format!("/{stored}"), content(stored, 1)).unwrap();
        volume.sync().unwrap();
        stored += 1;
    }
    stored
}

fn kinds(folder: &Folder) -> Vec<String> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    vec![
        format!("flash:{},size=24M", at("disk.img")),
        format!("tier:{},{},fast-size=12M,size=32M", at("fast.img"), at("big.img")),
        format!("pool:flash:{},size=24M+scm:{},size=32M", at("one.img"), at("memory")),
    ]
}

#[test]
fn a_clone_and_its_volume_go_their_own_ways() {
    let folder = Folder::new("clones-ways");
    for text in kinds(&folder) {
        let spec = Spec::parse(&text).unwrap();
        let volume = Volume::open_or_create(&text).unwrap();
        volume.create_dir_all("/d").unwrap();
        volume.write("/d/a", content(1, 1)).unwrap();
        volume.write("/d/b", content(2, 1)).unwrap();
        volume.snapshots().unwrap().take("monday").unwrap();
        let clone = clone_of(&volume, "work", Some("monday"));
        let other = clone_of(&volume, "other", Some("monday"));
        write(&clone, "/d/a", &content(1, 2)).unwrap();
        write(&clone, "/d/new", b"in the clone").unwrap();
        clone.remove_all(b"/d/b").unwrap();
        volume.write("/d/a", content(1, 3)).unwrap();
        volume.remove_all("/d/b").unwrap();
        volume.write("/d/late", "in the volume").unwrap();
        let shown = |files: &FileSystem| {
            let read = |path: &str| files.read_file(path.as_bytes()).ok();
            ["/d/a", "/d/b", "/d/new", "/d/late"].map(read)
        };
        let expected = [
            [Some(content(1, 3)), None, None, Some(b"in the volume".to_vec())],
            [Some(content(1, 2)), None, Some(b"in the clone".to_vec()), None],
            [Some(content(1, 1)), Some(content(2, 1)), None, None],
        ];
        assert!([shown(volume.files()), shown(&clone), shown(&other)] == expected, "{text}");
        drop((clone, other));
        volume.close().unwrap();
        drop(volume);

        // A clone is a volume like others, by its name.
        let work = Volume::open_state(&spec, "work", MountOptions::default()).unwrap();
        assert!(shown(work.files()) == expected[1], "{text}");
        work.write("/d/b", content(2, 4)).unwrap();
        work.close().unwrap();
        drop(work);
        let volume = Volume::open(&spec, MountOptions::default()).unwrap();
        let clones = volume.clones().unwrap();
        let files = |name: &str| clones.files(clones.named(name).unwrap().generation).unwrap();
        assert!(shown(volume.files()) == expected[0] && shown(&files("other")) == expected[2], "{text}");
        assert!(files("work").read_file(b"/d/b").unwrap() == content(2, 4));
        let own = clones.own_bytes(clones.named("work").unwrap().generation).unwrap();
        assert!((400_000..600_000).contains(&own), "{text}: two files and what leads to them: {own} bytes");

        let kept = volume.snapshots().unwrap().delete("monday");
        assert_eq!(kept.unwrap_err().class, Class::InUse, "clones stand on it");
        let stale = files("work");
        clones.delete("work").unwrap();
        clones.delete("other").unwrap();
        assert!(stale.read_file(b"/d/a").is_err());
        volume.snapshots().unwrap().delete("monday").unwrap();
        while volume.snapshots().unwrap().clean(64).unwrap() {}
        assert!(shown(volume.files()) == expected[0], "{text}");
        volume.close().unwrap();
    }
}

#[test]
fn a_snapshot_that_was_taken_before_stays_whatever_its_name() {
    let folder = Folder::new("clones-of-base");
    let text = format!("flash:{},size=16M", folder.path().join("disk.img").display());
    let volume = Volume::open_or_create(&text).unwrap();
    let (clones, snapshots) = (volume.clones().unwrap(), volume.snapshots().unwrap());
    snapshots.take("try.base").unwrap();
    clones.make("try", Some("try.base")).unwrap();
    clones.delete("try").unwrap();
    assert!(snapshots.named("try.base").is_some());
    clones.make("own", None).unwrap();
    clones.delete("own").unwrap();
    assert!(snapshots.named("own.base").is_none());
}

#[test]
fn a_clone_of_now_takes_its_snapshot_with_it() {
    let folder = Folder::new("clones-now");
    let text = format!("flash:{},size=16M", folder.path().join("disk.img").display());
    let volume = Volume::open_or_create(&text).unwrap();
    volume.write("/a", "not yet synced").unwrap();
    let clone = clone_of(&volume, "try", None);
    assert_eq!(clone.read_file(b"/a").unwrap(), b"not yet synced");
    let (clones, snapshots) = (volume.clones().unwrap(), volume.snapshots().unwrap());
    assert_eq!(clones.list()[0].base, "try.base");
    for (name, snapshot, class) in [
        ("try", None, Class::Exists),
        ("try.base", None, Class::Exists),
        ("a/b", None, Class::Usage),
        ("", Some("try.base"), Class::Usage),
        ("again", Some("tuesday"), Class::NotFound),
    ] {
        let refused = clones.make(name, snapshot).unwrap_err();
        assert_eq!(refused.class, class, "{name}: {refused}");
    }
    assert_eq!(snapshots.take("try").unwrap_err().class, Class::Exists, "a clone has that name");
    assert_eq!(snapshots.list().len(), 1, "what was refused leaves nothing");
    clones.delete("try").unwrap();
    assert_eq!(clones.delete("try").unwrap_err().class, Class::NotFound);
    assert!(snapshots.list().is_empty() && clones.list().is_empty());
    volume.close().unwrap();
}

/// Fills a volume and a clone of it by turns. What was accepted is there, in both.
fn filled(text: &str) {
    let volume = Volume::open_or_create(text).unwrap();
    for file in 0..20 {
        volume.write(format!("/{file}"), content(file, 1)).unwrap();
    }
    let clone = clone_of(&volume, "work", None);
    let (mut in_volume, mut in_clone) = (BTreeMap::new(), BTreeMap::new());
    (0..20).for_each(|file| _ = (in_volume.insert(file, 1), in_clone.insert(file, 1)));
    let mut refused = [0; 2];
    for step in 0..400_u64 {
        // Files of the volume before, and new ones.
        let file = if step % 3 == 0 { step % 20 } else { 100 + step };
        let (files, now, refused) = match step % 2 {
            0 => (volume.files().as_ref(), &mut in_volume, &mut refused[0]),
            _ => (clone.as_ref(), &mut in_clone, &mut refused[1]),
        };
        match write(files, &format!("/{file}"), &content(file, 2)) {
            Ok(()) => _ = now.insert(file, 2),
            Err(error) => {
                assert_eq!(error.kind, onode_base::ErrorKind::NoSpace, "{error}");
                now.remove(&file);
                *refused += 1;
            }
        }
    }
    assert!(refused.iter().all(|count| *count > 50), "{refused:?} were refused");
    let check = |files: &FileSystem, now: &BTreeMap<u64, u8>, when: &str| {
        for (file, round) in now {
            let found = files.read_file(format!("/{file}").as_bytes()).unwrap();
            assert!(found == content(*file, *round), "{when}: {file}");
        }
    };
    volume.files().sync().unwrap();
    clone.sync().unwrap();
    check(volume.files(), &in_volume, "the volume, full");
    check(&clone, &in_clone, "the clone, full");
    // What the clone made itself goes whatever the snapshot keeps, and gives room to both.
    let own: Vec<_> = in_clone.keys().copied().filter(|file| *file >= 100).collect();
    for file in own {
        clone.remove_all(format!("/{file}").as_bytes()).unwrap();
        in_clone.remove(&file);
    }
    volume.write("/999", content(999, 1)).unwrap();
    in_volume.insert(999, 1);
    drop(clone);
    volume.close().unwrap();
    drop(volume);
    let spec = Spec::parse(text).unwrap();
    let clone = Volume::open_state(&spec, "work", MountOptions { read_only: true, ..MountOptions::default() }).unwrap();
    check(clone.files(), &in_clone, "the clone, again");
    clone.close().unwrap();
    drop(clone);
    let volume = Volume::open(&spec, MountOptions::default()).unwrap();
    check(volume.files(), &in_volume, "the volume, again");
    volume.clones().unwrap().delete("work").unwrap();
    while volume.snapshots().unwrap().clean(64).unwrap() {}
    check(volume.files(), &in_volume, "the clone is gone");
    volume.close().unwrap();
}

#[test]
fn a_full_flash_keeps_what_it_and_its_clone_accepted() {
    let folder = Folder::new("clones-flash");
    filled(&format!("flash:{},size=24M", folder.path().join("disk.img").display()));
}

#[test]
fn a_full_pair_of_disks_keeps_what_it_and_its_clone_accepted() {
    let folder = Folder::new("clones-tier");
    let (fast, big) = (folder.path().join("fast.img"), folder.path().join("big.img"));
    filled(&format!("tier:{},{},fast-size=8M,size=32M", fast.display(), big.display()));
}

#[test]
fn a_clone_is_compressed_as_its_volume_is() {
    let folder = Folder::new("clones-compressed");
    let text = format!("flash:{},size=24M", folder.path().join("disk.img").display());
    Volume::open_or_create(&text).unwrap().close().unwrap();
    let spec = Spec::parse(&text).unwrap();
    let options = || MountOptions { compression: Compression::Fast, ..MountOptions::default() };
    let volume = Volume::open(&spec, options()).unwrap();
    let line = b"the same line again and again\n".repeat(20_000);
    volume.write("/a", &line).unwrap();
    let clone = clone_of(&volume, "work", None);
    let mut changed = line.clone();
    changed[300_000..300_010].copy_from_slice(b"HERE IT IS");
    let number = clone.resolve(b"/a", onode_fs::Follow::No).unwrap();
    clone.write(&Caller::root(), number, 300_000, b"HERE IT IS").unwrap();
    write(&clone, "/b", &line).unwrap();
    clone.sync().unwrap();
    let clones = volume.clones().unwrap();
    let own = clones.own_bytes(clones.list()[0].generation).unwrap();
    assert!(own < 200_000, "a chunk and a file that shrinks: {own} bytes");
    drop(clone);
    volume.close().unwrap();
    drop(volume);
    let clone = Volume::open_state(&spec, "work", MountOptions::default()).unwrap();
    assert!(clone.read("/a").unwrap() == changed && clone.read("/b").unwrap() == line);
    clone.close().unwrap();
    drop(clone);
    let volume = Volume::open(&spec, options()).unwrap();
    assert!(volume.read("/a").unwrap() == line);
    volume.close().unwrap();
}

/// What a transaction of the volume writes is not the space that a clone has promised to programs.
#[test]
fn a_transaction_leaves_alone_what_a_clone_has_promised() {
    let folder = Folder::new("clones-promise");
    let volume = small_flash(&folder);
    let clone = clone_of(&volume, "work", None);
    let mut accepted = 0;
    while write(&clone, &format!("/{accepted}"), &content(accepted, 1)).is_ok() {
        accepted += 1;
        if volume.files().device().promisable() < accepted * FILE_BYTES as u64 * 3 / 2 {
            break;
        }
    }
    for round in 0..200 {
        let transaction = volume.begin(Default::default()).unwrap();
        if transaction.volume().write(format!("/in-{round}"), vec![round; 30_000]).is_err() {
            break;
        }
        match transaction.commit() {
            Ok(_) => {}
            Err(error) if error.class == Class::VolumeFull => break,
            Err(error) => panic!("{error}"),
        }
    }
    clone.sync().unwrap();
    for file in 0..accepted {
        assert_eq!(clone.read_file(format!("/{file}").as_bytes()).unwrap(), content(file, 1));
    }
}

/// What the volume writes over, removes and makes is not the space that a clone has promised: all
/// of it takes some where snapshots keep what was there.
#[test]
fn a_full_volume_leaves_alone_what_a_clone_has_promised() {
    let folder = Folder::new("clones-promise-full");
    let volume = small_flash(&folder);
    let files = volume.files();
    let stored = filled_up_to(&volume, 3_500_000);
    let clone = clone_of(&volume, "work", None);
    let mut accepted = 0;
    while accepted < 5 && write(&clone, &format!("/new-{accepted}"), &content(accepted, 2)).is_ok() {
        accepted += 1;
    }
    let small = |name: String| write(files, &name, &[7; 100]);
    let (mut refused, mut number) = (0, 0);
    while refused < 40 && number < 4_000 {
        number += 1;
        let file = u64::from(number % stored as u32);
        let done = match number % 4 {
            0 => small(format!("/small-{number}")),
            1 => files.remove_all(format!("/small-{}", number - 1).as_bytes()).map(drop),
            _ => {
                let inode = files.resolve(format!("/{file}").as_bytes(), Follow::No).unwrap();
                let piece = &content(file, 3)[..20_000];
                files.write(&Caller::root(), inode, u64::from(number % 9) * 20_000, piece).map(drop)
            }
        };
        match done {
            Ok(()) => {}
            Err(error) if error.kind == onode_base::ErrorKind::NoSpace => refused += 1,
            Err(error) if error.kind == onode_base::ErrorKind::NotFound => {}
            Err(error) => panic!("{error}"),
        }
        files.write_back().unwrap();
    }
    assert!(refused >= 40 && accepted > 2, "it was full: {refused} refused, {accepted} accepted");
    clone.sync().unwrap();
    for file in 0..accepted {
        assert_eq!(clone.read_file(format!("/new-{file}").as_bytes()).unwrap(), content(file, 2));
    }
    volume.close().unwrap();
}

/// Removing is not refused on a full volume because a clone has not written yet what it accepted.
#[test]
fn a_full_volume_removes_beside_what_a_clone_has_not_written() {
    let folder = Folder::new("clones-removal");
    let volume = small_flash(&folder);
    filled_up_to(&volume, 1_200_000);
    let clone = clone_of(&volume, "work", None);
    let accepted = 100;
    for file in 0..accepted {
        write(&clone, &format!("/new-{file}"), &[file as u8; 3_000]).unwrap();
    }
    let set_aside = || clone.set_aside().load(std::sync::atomic::Ordering::Relaxed);
    let is_left = |bytes: u64| volume.files().device().promisable() >= set_aside() + bytes;
    for file in 0.. {
        // Near the end they are empty: what is refused has the clone write.
        let bytes = if is_left(20_000) { 2_000 } else { 0 };
        if !is_left(12_000) {
            break;
        }
        volume.write(format!("/small-{file}"), vec![7; bytes]).unwrap();
        volume.sync().unwrap();
    }
    assert!(set_aside() > 200_000, "{} bytes wait", set_aside());
    for file in 0..5 {
        volume.remove_all(format!("/{file}")).unwrap();
    }
    clone.sync().unwrap();
    for file in 0..accepted {
        assert_eq!(clone.read_file(format!("/new-{file}").as_bytes()).unwrap(), [file as u8; 3_000]);
    }
    volume.close().unwrap();
}
