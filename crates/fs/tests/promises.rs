//! What a crash, a full device and a failing one leave: the promises of `docs/semantics.md`.

use crate::common::recorder::Recorder;
use crate::common::*;
use check::{FindingKind, check, repair};
use onode_base::clock::ManualClock;
use onode_base::{Prng, Timestamp};
use onode_fs::*;
use onode_object::ram::RamDevice;
use onode_object::{Maintenance, ObjectDevice, ObjectId, Transaction, forward_device};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

fn fsync(fs: &FileSystem, inode: InodeNumber) {
    fs.fsync(inode, None, false).unwrap();
}

/// A volume whose every commit is recorded.
fn recorded(bytes: u64) -> (Arc<Recorder>, Arc<ManualClock>, FileSystem) {
    let device = Arc::new(Recorder::new(bytes));
    let clock = Arc::new(ManualClock::at(START));
    format(device.as_ref(), &FormatOptions { inodes: INODES, ..FormatOptions::default() }, Timestamp::default())
        .unwrap();
    let fs = FileSystem::mount(device.clone(), clock.clone(), Options::default()).unwrap();
    (device, clock, fs)
}

/// Mounts what is left if only the first commits survived, and checks it.
fn after(device: &Recorder, commits: usize) -> FileSystem {
    let survivor: Arc<dyn ObjectDevice> = Arc::new(device.prefix(commits, 64 << 20));
    let report = check(survivor.as_ref()).unwrap();
    assert!(report.is_clean(), "after {commits} commits: {:?}", report.findings);
    FileSystem::mount(survivor, Arc::new(ManualClock::at(START)), Options::default()).unwrap()
}

#[test]
fn n1_fsync_keeps_content_and_every_name() {
    let (volume, fs) = mounted();
    let directory = fs.make_directories(&root(), b"/a/b", 0o755).unwrap();
    let file = create(&fs, directory, "file");
    write(&fs, file, 0, b"kept");
    fs.link(file, ROOT, b"other").unwrap();
    fs.rename(directory, b"file", directory, b"renamed", RenameFlags::Replace).unwrap();
    fsync(&fs, file);
    write(&fs, file, 4, b" and lost");
    let fs = volume.crash(fs);
    assert_eq!(fs.read_file(b"/a/b/renamed").unwrap(), b"kept");
    assert_eq!(fs.read_file(b"/other").unwrap(), b"kept");
    assert_eq!(kind(fs.read_file(b"/a/b/file")), ErrorKind::NotFound);
}

#[test]
fn ace_rename_over_an_fsynced_file_loses_neither() {
    let (volume, fs) = mounted();
    let (a, b) = (create(&fs, ROOT, "a"), create(&fs, ROOT, "b"));
    write(&fs, a, 0, b"a");
    write(&fs, b, 0, b"b");
    fsync(&fs, b);
    fs.rename(ROOT, b"a", ROOT, b"b", RenameFlags::Replace).unwrap();
    fsync(&fs, ROOT);
    let fs = volume.crash(fs);
    assert_eq!(names(&fs, ROOT), ["b"]);
    assert_eq!(fs.read_file(b"/b").unwrap(), b"a");
}

#[test]
fn ace_fsync_of_a_child_after_its_parent_was_renamed() {
    let (volume, fs) = mounted();
    let directory = mkdir(&fs, ROOT, "old");
    let file = create(&fs, directory, "child");
    fsync(&fs, file);
    fs.rename(ROOT, b"old", ROOT, b"new", RenameFlags::Replace).unwrap();
    fsync(&fs, file);
    let fs = volume.crash(fs);
    assert_eq!(names(&fs, ROOT), ["new"]);
    assert!(fs.resolve(b"/new/child", Follow::No).is_ok());
}

#[test]
fn ace_fsync_of_a_directory_keeps_its_siblings_and_new_links() {
    let (volume, fs) = mounted();
    let (x, y) = (mkdir(&fs, ROOT, "x"), mkdir(&fs, ROOT, "y"));
    let file = create(&fs, x, "f");
    fs.link(file, y, b"l").unwrap();
    create(&fs, x, "sibling");
    fs.rename(x, b"f", y, b"g", RenameFlags::Replace).unwrap();
    fsync(&fs, y);
    let fs = volume.crash(fs);
    let (x, y) = (lookup(&fs, ROOT, "x").unwrap().inode, lookup(&fs, ROOT, "y").unwrap().inode);
    assert_eq!(names(&fs, x), ["sibling"]);
    assert_eq!(names(&fs, y), ["g", "l"]);
    assert_eq!(lookup(&fs, y, "g").unwrap().links, 2);
}

#[test]
fn ace_allocations_beyond_the_end_keep_the_size() {
    for what in [Allocate::KeepSize, Allocate::ZeroRangeKeepSize, Allocate::PunchHole] {
        let (volume, fs) = mounted();
        let file = create(&fs, ROOT, "f");
        write(&fs, file, 0, &[1; 5000]);
        fs.allocate(&root(), file, 4096, 1 << 20, what).unwrap();
        fsync(&fs, file);
        let fs = volume.crash(fs);
        let kept = if what == Allocate::KeepSize { 5000 } else { 4096 };
        let expected: Vec<u8> = (0..5000).map(|i| u8::from(i < kept)).collect();
        assert_eq!(fs.read_file(b"/f").unwrap(), expected, "{what:?}");
    }
}

#[test]
fn write_back_loses_no_more_than_its_age() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"old enough");
    volume.clock.advance(5 * SECOND);
    fs.tick();
    write(&fs, file, 0, b"OLD");
    volume.clock.advance(4 * SECOND);
    fs.tick();
    let fs = volume.crash(fs);
    assert_eq!(fs.read_file(b"/f").unwrap(), b"old enough");
    create(&fs, ROOT, "only a name");
    volume.clock.advance(5 * SECOND);
    fs.tick();
    let fs = volume.crash(fs);
    assert!(fs.resolve(b"/only a name", Follow::No).is_ok());
}

#[test]
fn write_through_loses_nothing() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { write_mode: WriteMode::WriteThrough, ..Options::default() });
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"12345");
    truncate(&fs, file, 3);
    fs.set_xattr(&root(), file, b"user.x", b"y", XattrFlags::Any).unwrap();
    let fs = volume.crash(fs);
    assert_eq!(fs.read_file(b"/f").unwrap(), b"123");
    assert_eq!(fs.get_xattr(file, b"user.x").unwrap(), b"y");
}

/// The explorer found it: the access time that waited for its write held back the new mode as well.
#[test]
fn a_mode_changed_after_a_read_is_written_through() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options {
        write_mode: WriteMode::WriteThrough,
        access_times: AccessTimes::Strict,
        ..Options::default()
    });
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"12345");
    volume.clock.advance(5 * SECOND);
    fs.read(file, 0, &mut [0; 5]).unwrap();
    let change = SetAttributes { permissions: Some(0o600), ..SetAttributes::default() };
    fs.set_attributes(&root(), file, &change).unwrap();
    let fs = volume.crash(fs);
    assert_eq!(fs.attributes(file).unwrap().permissions, 0o600);
}

#[test]
fn replace_via_rename_is_old_or_new_after_every_commit() {
    let (device, _, fs) = recorded(64 << 20);
    fs.write_file(&root(), b"/config", b"old", 0o644).unwrap();
    fs.sync().unwrap();
    let from = device.commits();
    for round in 0..20u8 {
        let size = [10, 3000, 2_000_000, 20_000_000][usize::from(round % 4)];
        fs.write_file(&root(), b"/config.new", &vec![round; size], 0o644).unwrap();
        fs.rename(ROOT, b"config.new", ROOT, b"config", RenameFlags::Replace).unwrap();
    }
    for commits in from..=device.commits() {
        let content = after(&device, commits).read_file(b"/config").unwrap();
        let round = content.first().copied().unwrap_or(255);
        let whole = [10, 3000, 2_000_000, 20_000_000][usize::from(round % 4)];
        assert!(content == b"old" || content == vec![round; whole], "after {commits} commits: {} bytes", content.len());
    }
}

#[test]
fn replace_via_truncate_is_old_or_new_after_every_commit() {
    let (device, clock, fs) = recorded(64 << 20);
    let size = |round: u8| [7000, 10, 3_000_000, 100][usize::from(round % 4)];
    fs.write_file(&root(), b"/config", &vec![200; size(200)], 0o644).unwrap();
    fs.sync().unwrap();
    let from = device.commits();
    for round in 0..20u8 {
        let file = fs.resolve(b"/config", Follow::No).unwrap();
        let handle = fs.open(&root(), file, OpenFlags { write: true, truncate: true }).unwrap();
        for (i, part) in vec![round; size(round)].chunks(4000).enumerate() {
            write(&fs, file, i as u64 * 4000, part);
        }
        fs.flush(handle).unwrap();
        fs.release(handle).unwrap();
        let now = after(&device, device.commits()).read_file(b"/config").unwrap();
        assert!(now == vec![round; size(round)], "close writes it out");
        clock.advance(SECOND);
        fs.tick();
    }
    for commits in from..=device.commits() {
        let content = after(&device, commits).read_file(b"/config").unwrap();
        assert!(content == vec![content[0]; size(content[0])], "after {commits} commits");
    }
}

#[test]
fn every_prefix_of_a_random_history_is_a_sound_volume() {
    for seed in 0..6 {
        let (device, clock, fs) = recorded(64 << 20);
        let mut prng = Prng::new(seed);
        let directories = [ROOT, mkdir(&fs, ROOT, "x"), mkdir(&fs, ROOT, "y")];
        let mut open = Vec::new();
        for _ in 0..300 {
            let directory = directories[prng.below(3) as usize];
            let other = directories[prng.below(3) as usize];
            let name = format!("n{}", prng.below(6));
            let second = format!("n{}", prng.below(6));
            let _ = match prng.below(10) {
                0 | 1 => fs.create(&root(), directory, name.as_bytes(), 0o644).map(drop),
                2 => fs.make_directory(&root(), directory, name.as_bytes(), 0o755).map(drop),
                3 => fs.unlink(directory, name.as_bytes()),
                4 => fs.remove_directory(directory, name.as_bytes()),
                5 => fs.rename(directory, name.as_bytes(), other, second.as_bytes(), RenameFlags::Replace),
                6 => fs.rename(directory, name.as_bytes(), other, second.as_bytes(), RenameFlags::Exchange),
                7 => fs
                    .resolve_parent(name.as_bytes())
                    .and_then(|_| lookup(&fs, directory, &name))
                    .and_then(|found| fs.link(found.inode, other, second.as_bytes()).map(drop)),
                8 => lookup(&fs, directory, &name).and_then(|found| {
                    open.push(fs.open(&root(), found.inode, OpenFlags::default())?);
                    fs.set_xattr(&root(), found.inode, b"user.big", &[1; 900], XattrFlags::Any)?;
                    fs.write(&root(), found.inode, prng.below(9000), &[2; 5000]).map(drop)
                }),
                _ => {
                    clock.advance(2 * SECOND);
                    fs.tick();
                    open.pop().map_or(Ok(()), |handle| fs.release(handle))
                }
            };
        }
        let all = device.commits();
        assert!(all > 100, "seed {seed}: only {all} commits");
        for commits in 1..=all {
            let mounted = after(&device, commits);
            let report = check(mounted.device().as_ref()).unwrap();
            assert_eq!(report.findings, [], "seed {seed}, {commits} commits: the mount removes orphans");
        }
    }
}

#[test]
fn data_of_deleted_and_truncated_files_never_reaches_the_device() {
    let (device, _, fs) = recorded(64 << 20);
    let written = |device: &Recorder| -> usize {
        let bytes = |transaction: &Transaction| -> usize {
            let data = transaction.mutations.iter().map(|mutation| match mutation {
                onode_object::Mutation::Write { object, data, .. } if INODES.file_of(*object).is_none() => data.len(),
                _ => 0,
            });
            data.sum()
        };
        device.history.lock().unwrap().iter().map(bytes).sum()
    };
    for i in 0..50 {
        let file = create(&fs, ROOT, &format!("{i}"));
        write(&fs, file, 0, &[1; 10_000]);
        if i % 2 == 0 {
            fs.unlink(ROOT, format!("{i}").as_bytes()).unwrap();
        } else {
            truncate(&fs, file, 100);
        }
    }
    fs.sync().unwrap();
    assert_eq!(written(&device), 25 * 100);
    assert_eq!(fs.statistics().dropped_bytes, 25 * 10_000 + 25 * 9_900);
    let before = device.commits();
    let file = create(&fs, ROOT, "sequential");
    for i in 0..1000 {
        write(&fs, file, i * 1000, &[3; 1000]);
    }
    fs.sync().unwrap();
    assert!(device.commits() - before <= 3, "small sequential writes become few large ones");
}

#[test]
fn small_files_due_together_share_a_transaction() {
    let (device, clock, fs) = recorded(64 << 20);
    for i in 0..100 {
        let file = create(&fs, ROOT, &format!("{i}"));
        write(&fs, file, 0, b"small");
    }
    let before = device.commits();
    clock.advance(6 * SECOND);
    fs.tick();
    assert_eq!(device.commits() - before, 1);
}

#[test]
fn a_failed_write_back_is_told_once_to_every_handle_and_loses_nothing() {
    let (device, clock, fs) = recorded(64 << 20);
    let file = create(&fs, ROOT, "f");
    let (first, second) =
        (fs.open(&root(), file, OpenFlags::default()).unwrap(), fs.open(&root(), file, OpenFlags::default()).unwrap());
    write(&fs, file, 0, b"data");
    device.fail_commits.store(true, Ordering::Relaxed);
    clock.advance(6 * SECOND);
    fs.tick();
    device.fail_commits.store(false, Ordering::Relaxed);
    assert_eq!(kind(fs.fsync(file, Some(first), false)), ErrorKind::Media);
    fs.fsync(file, Some(first), false).unwrap();
    assert_eq!(kind(fs.flush(second)), ErrorKind::Media);
    fs.flush(second).unwrap();
    assert_eq!(kind(fs.flush_file(file)), ErrorKind::Media);
    fs.flush_file(file).unwrap();
    let late = fs.open(&root(), file, OpenFlags::default()).unwrap();
    fs.flush(late).unwrap();
    assert_eq!(content(&after(&device, device.commits()), file), b"data");
    device.fail_syncs.store(true, Ordering::Relaxed);
    assert_eq!(kind(fs.fsync(file, Some(first), false)), ErrorKind::Media);
    assert_eq!(kind(fs.flush(second)), ErrorKind::Media);
    assert_eq!(fs.statistics().write_back_errors, 2);
}

#[test]
fn a_refused_change_changes_nothing() {
    let (device, _, fs) = recorded(64 << 20);
    let file = create(&fs, ROOT, "f");
    let before = (fs.attributes(ROOT).unwrap(), fs.attributes(file).unwrap());
    device.fail_commits.store(true, Ordering::Relaxed);
    assert!(fs.create(&root(), ROOT, b"g", 0o644).is_err());
    assert!(fs.link(file, ROOT, b"h").is_err());
    assert!(fs.rename(ROOT, b"f", ROOT, b"i", RenameFlags::Replace).is_err());
    assert!(fs.unlink(ROOT, b"f").is_err());
    device.fail_commits.store(false, Ordering::Relaxed);
    assert_eq!((fs.attributes(ROOT).unwrap(), fs.attributes(file).unwrap()), before);
    assert_eq!(names(&fs, ROOT), ["f"]);
    assert_eq!(lookup(&fs, ROOT, "f").unwrap().inode, file);
    assert_eq!(kind(fs.lookup(ROOT, b"g")), ErrorKind::NotFound);
}

#[test]
fn a_device_that_takes_no_changes_is_told_at_every_change() {
    let (device, _, fs) = recorded(64 << 20);
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"content");
    fsync(&fs, file);
    device.is_read_only.store(true, Ordering::Relaxed);
    assert_eq!(kind(fs.create(&root(), ROOT, b"g", 0o644)), ErrorKind::ReadOnly);
    let before = fs.attributes(file).unwrap();
    let time = Some(SetTime::At(Timestamp::default()));
    for change in [
        SetAttributes { size: Some(0), ..SetAttributes::default() },
        SetAttributes { size: Some(100), ..SetAttributes::default() },
        SetAttributes { modified: time, accessed: time, ..SetAttributes::default() },
        SetAttributes { permissions: Some(0o600), ..SetAttributes::default() },
    ] {
        assert_eq!(kind(fs.set_attributes(&root(), file, &change)), ErrorKind::ReadOnly, "{change:?}");
    }
    let truncate = OpenFlags { write: true, truncate: true };
    assert_eq!(kind(fs.open(&root(), file, truncate)), ErrorKind::ReadOnly);
    assert_eq!(kind(fs.write(&root(), file, 0, b"x")), ErrorKind::ReadOnly);
    assert_eq!(kind(fs.allocate(&root(), file, 0, 10, Allocate::KeepSize)), ErrorKind::ReadOnly);
    assert_eq!((fs.attributes(file).unwrap(), content(&fs, file)), (before, b"content".to_vec()));
    // Who mends it lets it be changed again.
    device.is_read_only.store(false, Ordering::Relaxed);
    fs.tick();
    write(&fs, file, 0, b"C");
    assert_eq!(content(&fs, file), b"Content");
    // Nothing else need happen for it to be heard.
    device.is_read_only.store(true, Ordering::Relaxed);
    fs.tick();
    truncated_refused(&fs, file);
}

fn truncated_refused(fs: &FileSystem, file: InodeNumber) {
    let change = SetAttributes { size: Some(0), ..SetAttributes::default() };
    assert_eq!(kind(fs.set_attributes(&root(), file, &change)), ErrorKind::ReadOnly);
}

#[test]
fn what_the_kernel_knows_takes_no_memory_and_is_not_forgotten() {
    let volume = Volume::of_size(64 << 20);
    let fs = volume.mount_with(Options { opens_are_counted: false, cached_inodes: 100, ..Options::default() });
    let number = |name: u32| format!("f{name}");
    let files: Vec<InodeNumber> = (0..5000).map(|name| create(&fs, ROOT, &number(name))).collect();
    let known = fs.statistics().cached_inodes;
    assert!(known < 200, "{known} files in memory of which nobody needs to know anything");
    // The kernel knows all of them, so one that loses its name lives on until it is forgotten.
    write(&fs, files[7], 0, b"open");
    fs.sync().unwrap();
    for name in 100..5000 {
        fs.lookup(ROOT, number(name).as_bytes()).unwrap();
    }
    fs.unlink(ROOT, b"f7").unwrap();
    (8..100).for_each(|name| fs.unlink(ROOT, number(name).as_bytes()).unwrap());
    assert_eq!(content(&fs, files[7]), b"open");
    fs.forget(files[7], 1);
    assert_eq!(kind(fs.attributes(files[7])), ErrorKind::Stale);
    // Looked up twice, given back once.
    fs.unlink(ROOT, b"f200").unwrap();
    fs.forget(files[200], 1);
    fs.attributes(files[200]).unwrap();
    fs.forget(files[200], 1);
    assert_eq!(kind(fs.attributes(files[200])), ErrorKind::Stale);
}

#[test]
fn a_file_written_anew_is_done_with_its_write_back_if_nobody_tells_of_closes() {
    let volume = Volume::of_size(64 << 20);
    let options =
        Options { closes_are_heard: false, opens_are_counted: false, cached_inodes: 100, ..Options::default() };
    let fs = volume.mount_with(options);
    for name in 0..1000 {
        let file = create(&fs, ROOT, &format!("f{name}"));
        write(&fs, file, 0, b"before");
        fs.sync().unwrap();
        let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
        fs.set_attributes(&root(), file, &cut).unwrap();
        write(&fs, file, 0, b"anew");
        fs.forget(file, 1);
    }
    let known = fs.statistics().cached_inodes;
    assert!(known < 200, "{known} files in memory that wait for a close");
    let file = fs.lookup(ROOT, b"f7").unwrap().inode;
    assert_eq!(content(&fs, file), b"anew");
}

#[test]
fn space_is_expected_as_long_as_a_file_without_a_name_may_go() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { opens_are_counted: false, ..Options::default() });
    let (one, two) = (create(&fs, ROOT, "one"), create(&fs, ROOT, "two"));
    assert!(!fs.is_space_expected());
    fs.unlink(ROOT, b"one").unwrap();
    assert!(fs.is_space_expected());
    fs.forget(one, 1);
    assert!(!fs.is_space_expected());
    fs.unlink(ROOT, b"two").unwrap();
    volume.clock.advance(3 * SECOND);
    assert!(!fs.is_space_expected(), "it stays in use");
    fs.forget(two, 1);
}

#[test]
fn a_full_volume_says_so_at_write_and_can_be_emptied() {
    let volume = Volume::of_size(4 << 20);
    let fs = volume.mount();
    let free = fs.statfs().blocks_free;
    for cycle in 0..5 {
        let mut files = 0;
        'fill: loop {
            let name = format!("{files}");
            let Ok(file) = fs.create(&root(), ROOT, name.as_bytes(), 0o644) else { break };
            fs.forget(file.inode, 1);
            files += 1;
            for block in 0..100 {
                if let Err(error) = fs.write(&root(), file.inode, block * 4096, &[7; 4096]) {
                    assert_eq!(error.kind, ErrorKind::NoSpace);
                    break 'fill;
                }
            }
        }
        assert!(files >= 8, "cycle {cycle}: {files} files");
        fs.sync().expect("what write took, fsync can keep");
        assert!(fs.statfs().blocks_free < free / 20);
        for file in 0..files {
            if file % 2 == 0 {
                let number = lookup(&fs, ROOT, &format!("{file}")).unwrap().inode;
                truncate(&fs, number, 1);
            }
            fs.unlink(ROOT, format!("{file}").as_bytes()).unwrap();
        }
        fs.sync().unwrap();
        assert_eq!(fs.statfs().blocks_free, free, "cycle {cycle}");
    }
}

#[test]
fn a_name_can_be_removed_and_a_file_cut_when_nothing_fits() {
    let volume = Volume::of_size(1 << 20);
    let fs = volume.mount();
    let mut count = 0;
    while fs.create(&root(), ROOT, format!("a name that takes space {count}").as_bytes(), 0o644).is_ok() {
        count += 1;
    }
    assert!(count > 100);
    for i in 0..count {
        let name = format!("a name that takes space {i}");
        truncate(&fs, lookup(&fs, ROOT, &name).unwrap().inode, 0);
        fs.unlink(ROOT, name.as_bytes()).unwrap();
    }
    assert_eq!(names(&fs, ROOT), [""; 0]);
}

#[test]
fn an_open_file_can_be_unlinked_when_there_is_no_space_to_list_it() {
    let (device, _, fs) = recorded(64 << 20);
    let file = fs.write_file(&root(), b"/f", b"bytes", 0o644).unwrap();
    let handle = fs.open(&root(), file, OpenFlags::default()).unwrap();
    device.no_space_for_orphans.store(true, Ordering::Relaxed);
    fs.unlink(ROOT, b"f").unwrap();
    assert_eq!(content(&fs, file), b"bytes");
    fs.release(handle).unwrap();
    fs.unmount().unwrap();
    assert_eq!(check(device.as_ref()).unwrap().findings, []);
    assert_eq!(device.space().objects, objects(1, 0));
}

/// It is listed as soon as there is room, and gone with the volume's orderly end.
#[test]
fn an_open_file_that_could_not_be_listed_is_not_left_behind() {
    for is_closed in [false, true] {
        let (device, clock, fs) = recorded(64 << 20);
        let file = fs.write_file(&root(), b"/f", b"bytes", 0o644).unwrap();
        fs.open(&root(), file, OpenFlags::default()).unwrap();
        device.no_space_for_orphans.store(true, Ordering::Relaxed);
        fs.unlink(ROOT, b"f").unwrap();
        if is_closed {
            fs.unmount().unwrap();
        } else {
            device.no_space_for_orphans.store(false, Ordering::Relaxed);
            fs.tick();
            fs.sync().unwrap();
        }
        drop(fs);
        device.no_space_for_orphans.store(false, Ordering::Relaxed);
        let fs = FileSystem::mount(device.clone(), clock.clone(), Options::default()).unwrap();
        assert_eq!(device.space().objects, objects(1, 0), "closed: {is_closed}");
        fs.unmount().unwrap();
        assert_eq!(check(device.as_ref()).unwrap().findings, []);
    }
}

/// A snapshot may keep what is removed, which needs room.
#[test]
fn a_file_that_cannot_be_removed_at_its_last_use_is_removed_later() {
    for is_closed_meanwhile in [false, true] {
        let (device, clock, fs) = recorded(64 << 20);
        let used = ["a", "b", "c"].map(|name| {
            let file = create(&fs, ROOT, name);
            write(&fs, file, 0, b"bytes");
            fs.open(&root(), file, OpenFlags::default()).unwrap()
        });
        device.no_space_for_orphans.store(true, Ordering::Relaxed);
        device.no_space_for_removals.store(true, Ordering::Relaxed);
        for (name, handle) in [b"a", b"b", b"c"].into_iter().zip(used) {
            fs.unlink(ROOT, name).unwrap();
            fs.release(handle).unwrap();
        }
        fs.tick();
        assert_eq!(device.space().objects, objects(4, 0));
        device.no_space_for_orphans.store(false, Ordering::Relaxed);
        let fs = if is_closed_meanwhile {
            fs.unmount().unwrap();
            drop(fs);
            // A mount has no room either, and can be used.
            FileSystem::mount(device.clone(), clock.clone(), Options::default()).unwrap()
        } else {
            fs
        };
        assert_eq!(device.space().objects, objects(4, 0));
        device.no_space_for_removals.store(false, Ordering::Relaxed);
        fs.tick();
        assert_eq!(device.space().objects, objects(1, 0));
        fs.unmount().unwrap();
        assert_eq!(check(device.as_ref()).unwrap().findings, []);
    }
}

#[test]
fn without_open_calls_a_file_lives_until_it_is_forgotten() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { opens_are_counted: false, ..Options::default() });
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"x");
    fs.unlink(ROOT, b"f").unwrap();
    assert_eq!(content(&fs, file), b"x");
    write(&fs, file, 1, b"y");
    fs.fsync(file, None, false).unwrap();
    assert_eq!(content(&fs, file), b"xy");
    fs.forget(file, 1);
    assert_eq!(kind(fs.attributes(file)), ErrorKind::Stale);
    assert_eq!(volume.device.space().objects, objects(1, 0));
}

#[test]
fn an_open_file_without_a_name_is_gone_after_a_crash_and_takes_no_space() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    let _handle = fs.open(&root(), file, OpenFlags::default()).unwrap();
    fs.set_xattr(&root(), file, b"user.big", &[1; 5000], XattrFlags::Any).unwrap();
    write(&fs, file, 0, &[1; 100_000]);
    fs.unlink(ROOT, b"f").unwrap();
    write(&fs, file, 0, b"still");
    assert_eq!(content(&fs, file)[..5], *b"still");
    fs.sync().unwrap();
    assert_eq!(volume.device.space().objects, objects(2, 1));
    let fs = volume.crash(fs);
    assert_eq!(volume.device.space().objects, objects(1, 0));
    assert_eq!(kind(fs.attributes(file)), ErrorKind::Stale);
}

#[test]
fn a_read_only_mount_writes_nothing_and_needs_nothing() {
    let (device, _, fs) = recorded(64 << 20);
    fs.write_file(&root(), b"/f", b"x", 0o644).unwrap();
    let open = fs.make_unnamed(&root(), ROOT, 0o600).unwrap();
    fs.sync().unwrap();
    drop(fs);
    let before = device.commits();
    device.fail_commits.store(true, Ordering::Relaxed);
    device.fail_syncs.store(true, Ordering::Relaxed);
    let options = Options { read_only: true, access_times: AccessTimes::Strict, ..Options::default() };
    let fs = FileSystem::mount(device.clone(), Arc::new(ManualClock::at(START)), options).unwrap();
    assert_eq!(fs.read_file(b"/f").unwrap(), b"x");
    assert_eq!(kind(fs.create(&root(), ROOT, b"g", 0o644)), ErrorKind::ReadOnly);
    assert_eq!(kind(fs.unlink(ROOT, b"f")), ErrorKind::ReadOnly);
    fs.tick();
    fs.sync().unwrap();
    fs.unmount().unwrap();
    assert_eq!(device.commits(), before);
    assert!(device.stat(open.inode.object()).is_ok());
}

#[test]
fn unreadable_objects_are_findings_and_the_rest_stays_usable() {
    let (device, _, fs) = recorded(64 << 20);
    let bad = fs.write_file(&root(), b"/bad", b"x", 0o644).unwrap();
    fs.write_file(&root(), b"/good", b"y", 0o644).unwrap();
    fs.unmount().unwrap();
    *device.corrupt.lock().unwrap() = Some(bad.object());
    let report = check(device.as_ref()).unwrap();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.kind, finding.object)).collect();
    assert_eq!(found, [(FindingKind::Unreadable, bad.object())]);
    assert_eq!(repair(device.as_ref(), Timestamp::default(), [0; 16]).unwrap().fixed, 0);
    let fs = FileSystem::mount(device.clone(), Arc::new(ManualClock::at(START)), Options::default()).unwrap();
    assert_eq!(kind(fs.read_file(b"/bad")), ErrorKind::Corrupt);
    assert_eq!(fs.read_file(b"/good").unwrap(), b"y");
    assert_eq!(names(&fs, ROOT), ["bad", "good"]);
}

/// A device whose background work fails while it is told to.
struct Tired {
    inner: Arc<RamDevice>,
    fails: Mutex<Option<ErrorKind>>,
}

impl ObjectDevice for Tired {
    fn maintain(&self, budget: u32) -> onode_object::Result<Maintenance> {
        match *self.fails.lock().unwrap() {
            Some(kind) => Err(onode_object::Error::of(kind, ObjectId(70), "a node is damaged")),
            None => self.inner.maintain(budget),
        }
    }

    forward_device! {
        self => self.inner;
        info, reserve_ids, commit, sync, read, attribute, attributes, stat, list, extents, space, close
    }
}

#[test]
fn n6_background_work_that_fails_is_told_until_it_succeeds() {
    let volume = Volume::of_size(8 << 20);
    let device = Arc::new(Tired { inner: volume.device.clone(), fails: Mutex::new(None) });
    let fs = FileSystem::mount(device.clone(), volume.clock.clone(), Options::default()).unwrap();
    assert!(fs.maintain(4).is_ok() && fs.upkeep_failure().is_none());
    *device.fails.lock().unwrap() = Some(ErrorKind::Corrupt);
    fs.maintain(4).unwrap_err();
    let why = fs.upkeep_failure().unwrap();
    assert!(why.contains("a node is damaged"), "{why}");
    // A full volume tells of that itself.
    *device.fails.lock().unwrap() = Some(ErrorKind::NoSpace);
    fs.maintain(4).unwrap_err();
    assert_eq!(fs.upkeep_failure(), None);
    *device.fails.lock().unwrap() = Some(ErrorKind::Media);
    fs.maintain(4).unwrap_err();
    assert!(fs.upkeep_failure().is_some());
    *device.fails.lock().unwrap() = None;
    assert!(fs.maintain(4).is_ok() && fs.upkeep_failure().is_none());
}
