//! Limits of directory trees, users and groups: what counts, what is refused, and that what is
//! counted is what there is, after every commit and whatever happens while it is counted.

use crate::common::recorder::Recorder;
use crate::common::*;
use check::{Finding, FindingKind, check, repair};
use onode_base::clock::ManualClock;
use onode_base::{Prng, Timestamp};
use onode_fs::*;
use onode_object::{AttributeKey, AttributeKind, Durability, Mutation, ObjectDevice, ObjectId, Transaction};
use std::sync::Arc;

const VOLUME: ObjectId = ObjectId(2);

fn limits(bytes: u64, files: u64) -> QuotaLimits {
    QuotaLimits { bytes: Some(bytes), files: Some(files) }
}

fn used(fs: &FileSystem, subject: QuotaSubject) -> (u64, u64) {
    let all = fs.quotas().unwrap();
    let quota = all.iter().find(|quota| quota.subject == subject).expect("a limit");
    (quota.used.bytes, quota.used.files)
}

/// A volume with a directory that has a limit, and that directory.
fn limited(bytes: u64, files: u64) -> (Volume, FileSystem, InodeNumber, QuotaSubject) {
    let (volume, fs) = mounted();
    let directory = mkdir(&fs, ROOT, "mail");
    let subject = QuotaSubject::Directory(directory);
    fs.set_quota(subject, limits(bytes, files)).unwrap();
    (volume, fs, directory, subject)
}

/// What the device has is what a check counts, and what is told.
fn settle(volume: &Volume, fs: &FileSystem) {
    let told = fs.quotas().unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.quotas().unwrap(), told, "writing back changes nothing of what is told");
    assert_eq!(check(volume.device.as_ref()).unwrap().findings, []);
}

fn size(fs: &FileSystem, file: InodeNumber, size: u64) -> Result<Attributes> {
    fs.set_attributes(&user(5, 6), file, &SetAttributes { size: Some(size), ..SetAttributes::default() })
}

fn chown(fs: &FileSystem, caller: &Caller, file: InodeNumber, uid: u32, gid: u32) -> Result<Attributes> {
    let change = SetAttributes { uid: Some(uid), gid: Some(gid), ..SetAttributes::default() };
    fs.set_attributes(caller, file, &change)
}

#[test]
fn what_goes_beyond_the_limit_of_a_tree_is_refused_and_changes_nothing() {
    let (volume, fs, mail, subject) = limited(10_000, 4);
    let file = fs.create(&root(), mail, b"file", 0o644).unwrap().inode;
    let below = mkdir(&fs, mail, "below");
    write(&fs, file, 0, &[1; 9_000]);
    let before = (fs.attributes(file).unwrap(), fs.attributes(mail).unwrap());
    let refused = [
        kind(fs.write(&root(), file, 9_000, &[2; 1_001])),
        kind(fs.write(&root(), file, 50_000, b"far")),
        kind(fs.append(&root(), file, &[2; 1_001])),
        kind(size(&fs, file, 10_001)),
        kind(fs.allocate(&root(), file, 0, 10_001, Allocate::Extend)),
        kind(fs.allocate(&root(), file, 0, 10_001, Allocate::ZeroRange)),
        kind(fs.make_symbolic_link(&root(), below, b"link", &[b'x'; 1_001])),
    ];
    assert_eq!(refused, [ErrorKind::QuotaExceeded; 7]);
    assert_eq!((fs.attributes(file).unwrap(), fs.attributes(mail).unwrap()), before);
    assert_eq!(used(&fs, subject), (9_000, 3));
    write(&fs, file, 9_000, &[2; 1_000]);
    write(&fs, file, 0, &[3; 10_000]);
    fs.allocate(&root(), file, 0, 20_000, Allocate::KeepSize).unwrap();
    create(&fs, below, "last");
    let refused = [
        kind(fs.create(&root(), below, b"more", 0o644)),
        kind(fs.make_directory(&root(), mail, b"more", 0o755)),
        kind(fs.make_symbolic_link(&root(), mail, b"more", b"x")),
        kind(fs.make_unnamed(&root(), mail, 0o600)),
        kind(fs.rename_leaving_whiteout(
            &root(),
            RenameEnd { directory: mail, name: b"file" },
            RenameEnd { directory: mail, name: b"other" },
            RenameFlags::Replace,
        )),
    ];
    assert_eq!(refused, [ErrorKind::QuotaExceeded; 5]);
    assert_eq!((names(&fs, mail), names(&fs, below)), (vec!["below".into(), "file".into()], vec!["last".to_string()]));
    assert_eq!(used(&fs, subject), (10_000, 4));
    create(&fs, ROOT, "outside");
    settle(&volume, &fs);
    // What takes something away always goes.
    fs.unlink(mail, b"file").unwrap();
    assert_eq!(used(&fs, subject), (0, 3));
    settle(&volume, &fs);
}

#[test]
fn sizes_count_once_and_until_the_file_is_gone() {
    let (volume, fs, mail, subject) = limited(1 << 40, 100);
    let file = create(&fs, mail, "file");
    write(&fs, file, 1 << 20, b"behind a hole");
    let bytes = (1 << 20) + 13;
    assert_eq!(used(&fs, subject), (bytes, 2));
    settle(&volume, &fs);
    fs.allocate(&root(), file, 0, 4096, Allocate::PunchHole).unwrap();
    fs.link(file, mail, b"second").unwrap();
    assert_eq!(used(&fs, subject), (bytes, 2));
    truncate(&fs, file, 100);
    assert_eq!(used(&fs, subject), (100, 2));
    settle(&volume, &fs);
    let handle = fs.open(&root(), file, OpenFlags { write: true, truncate: false }).unwrap();
    fs.forget(file, 2);
    fs.unlink(mail, b"file").unwrap();
    fs.unlink(mail, b"second").unwrap();
    write(&fs, file, 0, &[1; 200]);
    assert_eq!(used(&fs, subject), (200, 2), "it is open");
    fs.sync().unwrap();
    assert_eq!(used(&fs, subject), (200, 2));
    fs.release(handle).unwrap();
    assert_eq!(used(&fs, subject), (0, 1));
    settle(&volume, &fs);
    // After a crash an open file without a name goes with the next mount.
    let file = create(&fs, mail, "file");
    write(&fs, file, 0, &[1; 300]);
    fs.open(&root(), file, OpenFlags::default()).unwrap();
    fs.unlink(mail, b"file").unwrap();
    fs.sync().unwrap();
    assert_eq!(used(&fs, subject), (300, 2));
    let fs = volume.crash(fs);
    assert_eq!(used(&fs, subject), (0, 1));
    settle(&volume, &fs);
}

#[test]
fn names_neither_leave_nor_enter_a_tree() {
    let (volume, fs, mail, subject) = limited(1 << 20, 100);
    let (inside, outside, other) = (create(&fs, mail, "in"), create(&fs, ROOT, "out"), mkdir(&fs, ROOT, "other"));
    let below = mkdir(&fs, mail, "below");
    let refused = [
        kind(fs.link(inside, ROOT, b"link")),
        kind(fs.link(outside, mail, b"link")),
        kind(fs.rename(mail, b"in", ROOT, b"in", RenameFlags::Replace)),
        kind(fs.rename(ROOT, b"out", mail, b"out", RenameFlags::Replace)),
        kind(fs.rename(mail, b"in", ROOT, b"out", RenameFlags::Exchange)),
        kind(fs.rename(mail, b"below", ROOT, b"below", RenameFlags::Replace)),
        kind(fs.rename(ROOT, b"other", below, b"other", RenameFlags::NoReplace)),
    ];
    assert_eq!(refused, [ErrorKind::CrossDevice; 7]);
    fs.rename(mail, b"in", below, b"in", RenameFlags::Replace).unwrap();
    fs.link(inside, mail, b"link").unwrap();
    // The directory itself may have another name outside, but not in another tree.
    fs.rename(ROOT, b"mail", other, b"post", RenameFlags::Replace).unwrap();
    fs.rename(other, b"post", ROOT, b"mail", RenameFlags::Replace).unwrap();
    fs.set_quota(QuotaSubject::Directory(other), limits(1000, 10)).unwrap();
    assert_eq!(kind(fs.rename(ROOT, b"mail", other, b"post", RenameFlags::Replace)), ErrorKind::CrossDevice);
    assert_eq!(kind(fs.set_quota(QuotaSubject::Directory(below), limits(1, 1))), ErrorKind::Exists);
    assert_eq!(kind(fs.set_quota(QuotaSubject::Directory(ROOT), limits(1, 1))), ErrorKind::Exists);
    assert_eq!(used(&fs, subject), (0, 3));
    settle(&volume, &fs);
    fs.remove_quota(subject).unwrap();
    fs.rename(mail, b"link", ROOT, b"free", RenameFlags::Replace).unwrap();
    // Of a tree that was none any more nothing is left when it becomes one again.
    fs.set_quota(subject, limits(1, 10)).unwrap();
    assert_eq!(used(&fs, subject), (0, 2 + 1), "a file with a name outside has one inside, too");
    fs.unlink(below, b"in").unwrap();
    settle(&volume, &fs);
    fs.remove_quota(QuotaSubject::Directory(other)).unwrap();
    fs.remove_directory(ROOT, b"other").unwrap();
    assert_eq!(kind(fs.remove_quota(QuotaSubject::Directory(other))), ErrorKind::NotFound);
}

#[test]
fn the_limit_of_a_tree_goes_with_its_directory() {
    let (volume, fs, _, _) = limited(1 << 20, 100);
    fs.remove_directory(ROOT, b"mail").unwrap();
    assert_eq!(fs.quotas().unwrap(), []);
    settle(&volume, &fs);
    assert_eq!(volume.crash(fs).quotas().unwrap(), []);
}

#[test]
fn users_and_groups_have_limits_and_root_has_none() {
    let (volume, fs) = mounted();
    fs.set_attributes(&root(), ROOT, &SetAttributes { permissions: Some(0o777), ..SetAttributes::default() }).unwrap();
    let before = fs.create(&user(5, 6), ROOT, b"before", 0o644).unwrap().inode;
    fs.write(&user(5, 6), before, 0, &[1; 600]).unwrap();
    let (five, six) = (QuotaSubject::User(5), QuotaSubject::Group(6));
    fs.set_quota(five, limits(1000, 2)).unwrap();
    fs.set_quota(six, limits(2000, 10)).unwrap();
    assert_eq!((used(&fs, five), used(&fs, six)), ((600, 1), (600, 1)));
    assert_eq!(kind(fs.write(&user(5, 6), before, 600, &[1; 401])), ErrorKind::QuotaExceeded);
    // Whose the file is counts, not who writes.
    assert_eq!(kind(fs.write(&user(9, 9), before, 600, &[1; 401])), ErrorKind::QuotaExceeded);
    let unknown = Caller { is_held: true, ..root() };
    assert_eq!(kind(fs.write(&unknown, before, 600, &[1; 401])), ErrorKind::QuotaExceeded);
    fs.write(&user(5, 6), before, 600, &[1; 400]).unwrap();
    let second = fs.create(&user(5, 6), ROOT, b"second", 0o644).unwrap().inode;
    assert_eq!(kind(fs.create(&user(5, 6), ROOT, b"third", 0o644)), ErrorKind::QuotaExceeded);
    fs.write(&root(), second, 0, &[1; 100]).unwrap();
    assert_eq!((used(&fs, five), used(&fs, six)), ((1100, 2), (1100, 2)), "root may");
    let theirs = fs.create(&user(8, 8), ROOT, b"theirs", 0o644).unwrap().inode;
    fs.write(&user(8, 8), theirs, 0, &[1; 901]).unwrap();
    assert_eq!(kind(chown(&fs, &user(8, 8), theirs, 8, 6)), ErrorKind::QuotaExceeded);
    assert_eq!(kind(chown(&fs, &user(8, 8), theirs, 5, 8)), ErrorKind::QuotaExceeded);
    let both = SetAttributes { size: Some(900), gid: Some(6), ..SetAttributes::default() };
    fs.set_attributes(&user(8, 8), theirs, &both).unwrap();
    assert_eq!((used(&fs, five), used(&fs, six)), ((1100, 2), (2000, 3)));
    chown(&fs, &root(), theirs, 5, 8).unwrap();
    assert_eq!((used(&fs, five), used(&fs, six)), ((2000, 3), (1100, 2)));
    settle(&volume, &fs);
    assert_eq!(kind(fs.set_quota(QuotaSubject::User(0), limits(1, 1))), ErrorKind::Invalid);
    let fs = volume.crash(fs);
    assert_eq!((used(&fs, five), used(&fs, six)), ((2000, 3), (1100, 2)));
    // Another limit is there at once, and what is beyond it may only become less.
    fs.set_quota(five, QuotaLimits { bytes: Some(10), files: None }).unwrap();
    fs.create(&user(5, 6), ROOT, b"third", 0o644).unwrap();
    size(&fs, before, 500).unwrap();
    assert_eq!(kind(size(&fs, before, 501)), ErrorKind::QuotaExceeded);
    settle(&volume, &fs);
}

#[test]
fn what_was_accepted_is_written_back_up_to_the_last_byte() {
    let (volume, fs, mail, subject) = limited(1 << 20, 1000);
    let mut files = Vec::new();
    for i in 0..16 {
        let file = create(&fs, mail, &format!("f{i}"));
        write(&fs, file, 0, &[i; 1 << 16]);
        files.push(file);
    }
    assert_eq!(kind(fs.write(&root(), files[0], 1 << 16, b"x")), ErrorKind::QuotaExceeded);
    // What is cut in memory makes room at once.
    truncate(&fs, files[1], 0);
    write(&fs, files[0], 1 << 16, &[7; 1 << 16]);
    assert_eq!(kind(fs.write(&root(), files[1], 0, b"x")), ErrorKind::QuotaExceeded);
    assert_eq!(used(&fs, subject), (1 << 20, 17));
    settle(&volume, &fs);
    let fs = volume.crash(fs);
    assert_eq!(used(&fs, subject), (1 << 20, 17));
}

#[test]
fn space_within_a_tree_is_that_of_its_limit() {
    let (_volume, fs, mail, _) = limited(1 << 20, 50);
    let file = create(&fs, mail, "file");
    write(&fs, file, 0, &[1; 10_000]);
    for number in [mail, file] {
        let shown = fs.statfs_at(number);
        assert_eq!((shown.blocks, shown.blocks_free, shown.files, shown.files_free), (256, 253, 50, 48));
    }
    assert_eq!(fs.statfs_at(ROOT), fs.statfs());
    fs.set_quota(QuotaSubject::Directory(mail), limits(1 << 50, 1 << 50)).unwrap();
    assert_eq!(fs.statfs_at(mail).blocks_free, fs.statfs().blocks_free, "the volume has no more");
}

#[test]
fn programs_set_limits_by_an_attribute() {
    let (_volume, fs) = mounted();
    let mail = mkdir(&fs, ROOT, "mail");
    create(&fs, mail, "file");
    let set = |caller: &Caller, number, text: &str| {
        let set = fs.set_xattr(caller, number, QUOTA.as_bytes(), text.as_bytes(), XattrFlags::Any);
        set.map_err(|error| error.kind)
    };
    let get = |number, name: &str| fs.get_xattr(number, name.as_bytes()).map(|it| String::from_utf8(it).unwrap());
    assert_eq!(set(&user(5, 5), mail, "begin 7 directory 1000 -"), Err(ErrorKind::NotPermitted));
    assert_eq!(set(&root(), mail, "begin"), Err(ErrorKind::Invalid));
    set(&root(), mail, "begin 7 directory 1000 -").unwrap();
    assert_eq!(get(ROOT, QUOTA_COUNT).unwrap(), "7 0 1");
    assert_eq!(set(&root(), ROOT, "begin 8 user 5 - 1"), Err(ErrorKind::Busy));
    assert_eq!(set(&root(), ROOT, "step 8 100"), Err(ErrorKind::Busy));
    set(&root(), ROOT, "step 7 100000").unwrap();
    assert_eq!(kind(get(ROOT, QUOTA_COUNT)), ErrorKind::NoAttribute);
    set(&root(), ROOT, "begin 8 user 5 - 1").unwrap();
    set(&root(), ROOT, "stop 8").unwrap();
    set(&root(), ROOT, "begin 9 group 6 - 1").unwrap();
    set(&root(), ROOT, "step 9 100000").unwrap();
    let line = format!("directory {} 1000 - 0 2 /mail\n", mail.0);
    assert_eq!(get(ROOT, QUOTA).unwrap(), format!("{line}group 6 - 1 0 0 \n"));
    assert_eq!((get(mail, QUOTA).unwrap(), get(ROOT, &format!("{QUOTA_FROM}2")).unwrap()), (line, String::new()));
    set(&root(), mail, "remove directory").unwrap();
    assert_eq!(set(&root(), mail, "remove directory"), Err(ErrorKind::NotFound));
    assert_eq!(fs.quotas().unwrap().len(), 1);
}

#[test]
fn a_volume_without_limits_stores_nothing_of_them() {
    let (device, fs) = recorded(WriteMode::WriteBack);
    let mail = mkdir(&fs, ROOT, "mail");
    let file = create(&fs, mail, "file");
    write(&fs, file, 0, b"content");
    fs.sync().unwrap();
    let is_ours =
        |one: &Mutation| matches!(one, Mutation::SetAttribute { key, .. } if key.kind == AttributeKind::QUOTA);
    let count = || device.history.lock().unwrap().iter().flat_map(|it| &it.mutations).filter(|it| is_ours(it)).count();
    assert_eq!(count(), 0);
    fs.set_quota(QuotaSubject::Directory(mail), limits(1000, 10)).unwrap();
    assert_eq!(count(), 1, "a new limit is one record");
    write(&fs, file, 0, b"CONTENT");
    fs.sync().unwrap();
    assert_eq!(count(), 1, "what is not counted changes none");
    write(&fs, file, 7, b"more");
    fs.sync().unwrap();
    assert_eq!(count(), 2);
}

fn recorded(write_mode: WriteMode) -> (Arc<Recorder>, FileSystem) {
    let device = Arc::new(Recorder::new(64 << 20));
    let clock = Arc::new(ManualClock::at(START));
    format(device.as_ref(), &FormatOptions { inodes: INODES, ..FormatOptions::default() }, Timestamp::default())
        .unwrap();
    let fs = FileSystem::mount(device.clone(), clock, Options { write_mode, ..Options::default() }).unwrap();
    (device, fs)
}

/// Does something to files below some directories, by chance.
fn something(fs: &FileSystem, prng: &mut Prng, directories: &mut Vec<InodeNumber>) {
    let some =
        |prng: &mut Prng, directories: &[InodeNumber]| directories[prng.below(directories.len() as u64) as usize];
    let name = |prng: &mut Prng| format!("n{}", prng.below(6)).into_bytes();
    let (directory, other) = (some(prng, directories), some(prng, directories));
    let caller = user(5 + prng.below(2) as u32, 6);
    let (one, two) = (name(prng), name(prng));
    let found = fs.lookup(directory, &one).ok();
    if let Some(found) = &found {
        fs.forget(found.inode, 1);
    }
    let file = found.filter(|found| found.file_type == FileType::Regular).map(|found| found.inode);
    let length = prng.below(9000);
    // Most of it may fail: what is counted must be right all the same.
    match (prng.below(12), file) {
        (0 | 1, _) => drop(fs.create(&caller, directory, &one, 0o644).map(|made| fs.forget(made.inode, 1))),
        (2, _) => {
            if let Ok(made) = fs.make_directory(&caller, directory, &one, 0o755) {
                directories.push(made.inode);
            }
        }
        (3, _) => drop(fs.unlink(directory, &one)),
        (4, _) => drop(fs.remove_directory(directory, &one)),
        (5, _) => drop(fs.rename(directory, &one, other, &two, RenameFlags::Replace)),
        (6, _) => drop(fs.rename(directory, &one, directory, &two, RenameFlags::Exchange)),
        (7, Some(file)) => drop(fs.link(file, other, &two).map(|made| fs.forget(made.inode, 1))),
        (8, Some(file)) => drop(size(fs, file, length)),
        (9, Some(file)) => drop(chown(fs, &root(), file, 5 + length as u32 % 2, 6 + length as u32 % 2)),
        (10, _) => drop(fs.make_symbolic_link(&caller, directory, &one, b"target").map(|it| fs.forget(it.inode, 1))),
        (_, Some(file)) => drop(fs.write(&caller, file, length, &vec![1; length as usize])),
        _ => fs.tick(),
    }
}

/// Counts while files change, then goes on, and looks at the volume after each commit.
#[test]
fn after_every_commit_what_is_counted_is_what_there_is() {
    for seed in 0..12 {
        let mut prng = Prng::new(seed);
        let modes = [WriteMode::WriteBack, WriteMode::WriteThrough];
        let (device, fs) = recorded(modes[seed as usize % 2]);
        let mail = mkdir(&fs, ROOT, "mail");
        let mut directories = vec![ROOT, mail, mkdir(&fs, mail, "below"), mkdir(&fs, ROOT, "other")];
        (0..150).for_each(|_| something(&fs, &mut prng, &mut directories));
        let subjects = [QuotaSubject::Directory(mail), QuotaSubject::User(5), QuotaSubject::Group(6)];
        for subject in subjects {
            let mut count = fs.begin_quota(1, subject, limits(200_000, 60)).unwrap();
            while count != QuotaCount::Done {
                (0..prng.below(4)).for_each(|_| something(&fs, &mut prng, &mut directories));
                count = fs.step_quota(1, 1).unwrap();
            }
            let told = fs.quotas().unwrap();
            fs.sync().unwrap();
            assert_eq!(fs.quotas().unwrap(), told, "seed {seed}");
            let findings = check(&device.inner).unwrap().findings;
            assert!(findings.iter().all(|it| it.kind == FindingKind::Orphan), "seed {seed} {subject:?}: {findings:?}");
        }
        (0..200).for_each(|_| something(&fs, &mut prng, &mut directories));
        let told = fs.quotas().unwrap();
        fs.sync().unwrap();
        assert_eq!(fs.quotas().unwrap(), told, "seed {seed}");
        drop(fs);
        for commits in (1..=device.commits()).step_by(if seed == 0 { 1 } else { 17 }) {
            let survivor: Arc<dyn ObjectDevice> = Arc::new(device.prefix(commits, 64 << 20));
            let findings = check(survivor.as_ref()).unwrap().findings;
            let is_right = findings.iter().all(|it| it.kind == FindingKind::Orphan);
            assert!(is_right, "seed {seed} after {commits} commits: {findings:?}");
            let fs = FileSystem::mount(survivor.clone(), Arc::new(ManualClock::at(START)), Options::default()).unwrap();
            // Either there is no limit, or it is exact: also after the mount took orphans away.
            assert_eq!(check(survivor.as_ref()).unwrap().findings, [], "seed {seed} after {commits} commits");
            drop(fs);
        }
    }
}

/// A new name in the directory may be where names were looked at already.
#[test]
fn what_gets_another_name_while_a_tree_is_counted_is_counted() {
    let (volume, fs) = mounted();
    let mail = mkdir(&fs, ROOT, "mail");
    for i in 0..150 {
        create(&fs, mkdir(&fs, mail, &format!("d{i}")), "file");
        create(&fs, mail, &format!("f{i}"));
    }
    let subject = QuotaSubject::Directory(mail);
    fs.begin_quota(1, subject, limits(1000, 1000)).unwrap();
    fs.step_quota(1, 1).unwrap();
    for i in 0..150 {
        let (old, new) = (format!("d{i}").into_bytes(), format!("e{i}").into_bytes());
        fs.rename(mail, &old, mail, &new, RenameFlags::Replace).unwrap();
        fs.rename(mail, format!("f{i}").as_bytes(), mail, &old, RenameFlags::NoReplace).unwrap();
        fs.rename(mail, &old, mail, &new, RenameFlags::Exchange).unwrap();
    }
    while fs.step_quota(1, 1).unwrap() != QuotaCount::Done {}
    assert_eq!(used(&fs, subject), (0, 1 + 3 * 150));
    for i in 0..150 {
        for name in [format!("d{i}"), format!("e{i}")] {
            let out = fs.rename(mail, name.as_bytes(), ROOT, name.as_bytes(), RenameFlags::Replace);
            assert_eq!(kind(out), ErrorKind::CrossDevice);
        }
        let directory = lookup(&fs, mail, &format!("d{i}")).unwrap().inode;
        assert_eq!(kind(fs.rename(directory, b"file", ROOT, b"file", RenameFlags::Replace)), ErrorKind::CrossDevice);
    }
    settle(&volume, &fs);
}

#[test]
fn a_new_limit_counts_what_the_device_has() {
    let (volume, fs) = mounted();
    let (mine, theirs) = (create(&fs, ROOT, "mine"), create(&fs, ROOT, "theirs"));
    write(&fs, mine, 0, &[1; 100]);
    write(&fs, theirs, 0, &[1; 1000]);
    // Neither sizes nor owners are at the device yet.
    chown(&fs, &root(), mine, 5, 5).unwrap();
    fs.set_quota(QuotaSubject::User(5), limits(1000, 10)).unwrap();
    assert_eq!(check(volume.device.as_ref()).unwrap().findings, []);
    write(&fs, mine, 100, &[1; 100]);
    fs.set_quota(QuotaSubject::Group(5), limits(1000, 10)).unwrap();
    write(&fs, mine, 200, &[1; 100]);
    let (user, group) = (QuotaSubject::User(5), QuotaSubject::Group(5));
    assert_eq!((used(&fs, user), used(&fs, group)), ((300, 1), (300, 1)));
    fs.unlink(ROOT, b"theirs").unwrap();
    settle(&volume, &fs);
}

#[test]
fn a_limit_that_was_not_counted_to_the_end_is_none() {
    let (volume, fs) = mounted();
    let mail = mkdir(&fs, ROOT, "mail");
    for i in 0..200 {
        create(&fs, mail, &format!("f{i}"));
    }
    let subject = QuotaSubject::Directory(mail);
    fs.begin_quota(1, subject, limits(10, 10)).unwrap();
    assert!(matches!(fs.step_quota(1, 64).unwrap(), QuotaCount::Counting(QuotaUse { files: 65, .. })));
    // It does not hold yet.
    write(&fs, lookup(&fs, mail, "f0").unwrap().inode, 0, &[1; 100]);
    fs.stop_quota(1);
    assert_eq!(kind(fs.step_quota(1, 64)), ErrorKind::Busy);
    fs.rename(mail, b"f1", ROOT, b"f1", RenameFlags::Replace).unwrap();
    fs.begin_quota(2, subject, limits(10, 10)).unwrap();
    assert_eq!(kind(fs.rename(mail, b"f2", ROOT, b"mail", RenameFlags::Exchange)), ErrorKind::CrossDevice);
    // Nobody waits for a program that is gone.
    volume.clock.advance(31 * SECOND);
    fs.tick();
    assert_eq!(kind(fs.step_quota(2, 64)), ErrorKind::Busy);
    fs.rename(mail, b"f2", ROOT, b"f2", RenameFlags::Replace).unwrap();
    fs.begin_quota(2, subject, limits(10, 10)).unwrap();
    fs.step_quota(2, 64).unwrap();
    fs.sync().unwrap();
    let fs = volume.crash(fs);
    assert_eq!(fs.quotas().unwrap(), []);
    fs.set_quota(subject, limits(1000, 1000)).unwrap();
    assert_eq!(used(&fs, subject).1, 199);
    settle(&volume, &fs);
}

#[test]
fn a_wrong_count_is_told_and_mended() {
    let (volume, fs, mail, subject) = limited(1 << 20, 100);
    let file = create(&fs, mail, "file");
    write(&fs, file, 0, &[1; 500]);
    fs.unmount().unwrap();
    let from = AttributeKey::new(AttributeKind::QUOTA, 0);
    let (key, value) = volume.device.attributes(VOLUME, from, 1).unwrap().remove(0);
    let set = |key: AttributeKey, value: Vec<u8>| {
        let mut transaction = Transaction::new();
        transaction.set_attribute(VOLUME, key, value);
        volume.device.commit(transaction, Durability::Durable).unwrap();
    };
    let mut wrong = value.clone();
    let end = wrong.len();
    wrong[end - 16] ^= 1;
    wrong[end - 8] ^= 2;
    let finding = |kind, slot: u64, whom: &str| Finding {
        kind,
        object: VOLUME,
        slot: Some(slot),
        name: Some(whom.as_bytes().to_vec()),
        expected: None,
        found: None,
    };
    let counts = |kind, expected, found| Finding {
        expected: Some(expected),
        found: Some(found),
        ..finding(kind, key.index, &format!("limit of directory {}", mail.0))
    };
    let expect = |expected: &[Finding]| {
        assert_eq!(check(volume.device.as_ref()).unwrap().findings, expected);
        let repaired = repair(volume.device.as_ref(), Timestamp::default(), [0; 16]).unwrap();
        assert_eq!((repaired.after.findings, repaired.fixed), (vec![], expected.len() as u64));
    };
    set(key, wrong);
    expect(&[counts(FindingKind::WrongQuotaBytes, 500, 501), counts(FindingKind::WrongQuotaFiles, 2, 0)]);
    let fs = volume.mount();
    assert_eq!(used(&fs, subject), (500, 2));
    drop(fs);
    let damaged = AttributeKey::new(AttributeKind::QUOTA, 1 << 62 | 5);
    set(damaged, vec![9]);
    let device: Arc<dyn ObjectDevice> = volume.device.clone();
    let refused = FileSystem::mount(device, volume.clock.clone(), Options::default());
    assert_eq!(kind(refused), ErrorKind::Corrupt);
    expect(&[finding(FindingKind::QuotaDamaged, damaged.index, "limit of user 5")]);
    // A limit of a directory that is not there.
    let lost = AttributeKey::new(AttributeKind::QUOTA, 1 << 40);
    let mut of_nothing = vec![1, 0, 0, 0xff, 0x7f];
    of_nothing.extend_from_slice(&[0; 16]);
    set(lost, of_nothing);
    let told =
        Finding { found: Some(0x3fff), ..finding(FindingKind::QuotaOfNothing, lost.index, "limit of directory 16383") };
    expect(&[told]);
    assert_eq!(volume.mount().quotas().unwrap().len(), 1);
    // Lost settings of the volume take no limit with them.
    let mut transaction = Transaction::new();
    transaction.remove_attribute(VOLUME, AttributeKey::new(AttributeKind::VOLUME, 0));
    volume.device.commit(transaction, Durability::Durable).unwrap();
    assert_eq!(repair(volume.device.as_ref(), Timestamp::default(), [7; 16]).unwrap().after.findings, []);
    assert_eq!(used(&volume.mount(), subject), (500, 2));
}
