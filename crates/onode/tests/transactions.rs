//! Transactions of users from a program: what others see, what conflicts, and when they end.

use crate::common::Folder;
use onode::{Class, MountOptions, Spec, TRANSACTIONS_MAX, TransactionOptions, Volume};
use onode_base::Timestamp;
use onode_fs::{AccessTimes, Caller, ErrorKind, Follow, InodeNumber, OpenFlags, SetAttributes, SetTime};

fn ram() -> Volume {
    Volume::open_or_create("ram:size=64M").unwrap()
}

fn begin(volume: &Volume) -> onode::UserTransaction {
    volume.begin(TransactionOptions::default()).unwrap()
}

#[test]
fn nobody_sees_what_is_not_committed_and_all_see_it_then() {
    let volume = ram();
    volume.write("/old", "before").unwrap();
    volume.write("/gone", "x").unwrap();
    // What the main file system remembers is what it was.
    assert_eq!(volume.read("/old").unwrap(), b"before");
    let transaction = begin(&volume);
    let inside = transaction.volume();
    inside.create_dir_all("/new/deep").unwrap();
    inside.write("/new/deep/file", "inside").unwrap();
    inside.write("/old", "after").unwrap();
    inside.remove_all("/gone").unwrap();
    assert_eq!(inside.read("/old").unwrap(), b"after");
    assert_eq!(volume.read("/old").unwrap(), b"before");
    assert!(volume.read("/new/deep/file").is_err() && volume.read("/gone").is_ok());
    let changed = transaction.commit().unwrap();
    assert!(changed.iter().any(|one| one.names == [b"gone".to_vec(), b"new".to_vec()]), "{changed:?}");
    assert_eq!(volume.read("/new/deep/file").unwrap(), b"inside");
    assert_eq!(volume.read("/old").unwrap(), b"after");
    assert!(volume.read("/gone").is_err());
    volume.write("/new/deep/more", "m").unwrap();
    volume.close().unwrap();
}

#[test]
fn an_aborted_or_dropped_transaction_never_was() {
    let volume = ram();
    volume.write("/a", "1").unwrap();
    for is_dropped in [false, true] {
        let transaction = begin(&volume);
        transaction.volume().write("/a", "2").unwrap();
        transaction.volume().write("/big", vec![7; 20 << 20]).unwrap();
        if is_dropped {
            drop(transaction)
        } else {
            transaction.abort()
        }
        assert_eq!(volume.read("/a").unwrap(), b"1");
        assert!(volume.read("/big").is_err());
    }
    let left = volume.device().space().available;
    assert!(left > 60 << 20, "{left}");
    assert!(onode_fs::check::check(volume.device()).unwrap().is_clean());
}

#[test]
fn the_first_to_commit_wins_and_the_other_is_told_where() {
    let volume = ram();
    volume.create_dir_all("/d").unwrap();
    volume.write("/d/a", "0").unwrap();
    let (one, two) = (begin(&volume), begin(&volume));
    one.volume().write("/d/a", "1").unwrap();
    two.volume().write("/d/a", "2").unwrap();
    one.commit().unwrap();
    let error = two.commit().unwrap_err();
    assert_eq!(error.class, Class::Conflict, "{error}");
    assert_eq!(volume.read("/d/a").unwrap(), b"1");
    // A plain program is somebody, too.
    let three = begin(&volume);
    three.volume().write("/d/a", "3").unwrap();
    volume.write("/d/a", "plain").unwrap();
    assert_eq!(three.commit().unwrap_err().class, Class::Conflict);
    // So is one that made a name that the transaction made.
    let four = begin(&volume);
    four.volume().write("/d/same", "4").unwrap();
    volume.write("/d/same", "plain").unwrap();
    let error = four.commit().unwrap_err();
    assert_eq!(error.class, Class::Conflict);
    assert!(error.why.starts_with("/d: "), "{error}");
    // What it read must be as it was, too.
    let five = begin(&volume);
    let read = five.volume().read("/d/a").unwrap();
    five.volume().write("/copy", read).unwrap();
    volume.write("/d/a", "again").unwrap();
    assert_eq!(five.commit().unwrap_err().class, Class::Conflict);
    assert!(volume.read("/copy").is_err());
}

#[test]
fn names_in_one_directory_do_not_conflict() {
    let volume = ram();
    volume.create_dir_all("/d/sub").unwrap();
    let (one, two) = (begin(&volume), begin(&volume));
    one.volume().write("/d/one", "1").unwrap();
    one.volume().create_dir_all("/d/dir-one").unwrap();
    two.volume().write("/d/two", "2").unwrap();
    two.volume().remove_all("/d/sub").unwrap();
    volume.write("/d/plain", "p").unwrap();
    volume.create_dir_all("/d/dir-plain").unwrap();
    one.commit().unwrap();
    two.commit().unwrap();
    let mut names: Vec<_> = volume.read_dir("/d").unwrap().map(|entry| entry.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["dir-one", "dir-plain", "one", "plain", "two"]);
    let report = onode_fs::check::check(volume.device()).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn directories_that_go_into_each_other_conflict() {
    let volume = ram();
    volume.create_dir_all("/a/x/y").unwrap();
    volume.create_dir_all("/b/p/q").unwrap();
    let transaction = begin(&volume);
    transaction.volume().rename("/a", "/b/p/q/a").unwrap();
    volume.rename("/b", "/a/x/y/b").unwrap();
    assert_eq!(transaction.commit().unwrap_err().class, Class::Conflict);
}

#[test]
fn what_others_only_read_is_removed_all_the_same() {
    let options = MountOptions { access_times: AccessTimes::Strict, ..MountOptions::default() };
    let volume = Volume::open(&Spec::parse("ram:size=64M").unwrap(), options).unwrap();
    volume.create_dir_all("/d").unwrap();
    volume.create_dir_all("/full").unwrap();
    volume.write("/file", "x").unwrap();
    volume.write("/touched", "x").unwrap();
    let remove = |path: &str| {
        let transaction = begin(&volume);
        transaction.volume().remove_all(path).unwrap();
        transaction
    };
    let transaction = remove("/d");
    transaction.volume().remove_all("/file").unwrap();
    assert_eq!(volume.read_dir("/d").unwrap().count(), 0);
    assert_eq!(volume.read("/file").unwrap(), b"x");
    transaction.commit().unwrap();
    assert!(volume.read("/file").is_err() && volume.read_dir("/d").is_err());
    let transaction = remove("/full");
    volume.write("/full/new", "x").unwrap();
    assert_eq!(transaction.commit().unwrap_err().class, Class::Conflict);
    let transaction = remove("/touched");
    volume.write("/touched", "y").unwrap();
    assert_eq!(transaction.commit().unwrap_err().class, Class::Conflict);
    let transaction = remove("/touched");
    let file = volume.files().resolve(b"/touched", Follow::No).unwrap();
    let mode = SetAttributes { permissions: Some(0o600), ..SetAttributes::default() };
    volume.files().set_attributes(&Caller::root(), file, &mode).unwrap();
    assert_eq!(transaction.commit().unwrap_err().class, Class::Conflict);
    assert_eq!(volume.read("/touched").unwrap(), b"y");
}

#[test]
fn they_are_limited_expire_and_belong_to_somebody() {
    let volume = ram();
    let all = volume.transactions().unwrap();
    let ids: Vec<_> = (0..TRANSACTIONS_MAX)
        .map(|uid| all.begin(TransactionOptions { uid: uid as u32, expiry_seconds: 0 }).unwrap())
        .collect();
    assert_eq!(all.begin(TransactionOptions::default()).unwrap_err().class, Class::InUse);
    assert_eq!(all.enter(ids[3], 4).unwrap_err().class, Class::Permission);
    assert_eq!(all.commit(ids[3], 4).unwrap_err().class, Class::Permission);
    assert!(all.enter(ids[3], 3).is_ok() && all.enter(ids[3], 0).is_ok());
    ids.iter().for_each(|id| all.abort(*id, 0).unwrap());
    let error = all.enter(ids[3], 3).unwrap_err();
    assert_eq!((error.class, error.why.as_str()), (Class::NotFound, "it was aborted"));
    let id = all.begin(TransactionOptions { uid: 0, expiry_seconds: 1 }).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert!(all.list().is_empty());
    assert!(all.commit(id, 0).unwrap_err().why.contains("nobody used it for 1 s"));
}

#[test]
fn one_larger_than_a_transaction_of_the_device_survives_the_next_mount() {
    let folder = Folder::new("transactions-large");
    let image = folder.path().join("image");
    let spec = Spec::parse(&format!("flash:{},size=128M", image.display())).unwrap();
    Volume::create(&spec, &onode::CreateOptions::default()).unwrap();
    let spec = spec.again();
    let volume = Volume::open(&spec, MountOptions::default()).unwrap();
    volume.write("/replaced", vec![1; 5 << 20]).unwrap();
    let transaction = begin(&volume);
    transaction.volume().write("/new", vec![2; 12 << 20]).unwrap();
    transaction.volume().write("/replaced", vec![3; 12 << 20]).unwrap();
    for number in 0..300 {
        transaction.volume().write(format!("/small-{number}"), vec![4; 5000]).unwrap();
    }
    transaction.commit().unwrap();
    // As a killed process leaves it: nothing is closed.
    drop(volume);
    let volume = Volume::open(&spec, MountOptions::default()).unwrap();
    assert!(volume.read("/new").unwrap() == vec![2; 12 << 20]);
    assert!(volume.read("/replaced").unwrap() == vec![3; 12 << 20]);
    assert!(volume.read("/small-299").unwrap() == vec![4; 5000]);
    let report = onode_fs::check::check(volume.device()).unwrap();
    assert!(report.is_clean(), "{report:?}");
    volume.close().unwrap();
}

#[test]
fn a_read_only_volume_has_none() {
    let folder = Folder::new("transactions-read-only");
    let image = folder.path().join("image");
    let volume = Volume::open_or_create(&image.display().to_string()).unwrap();
    volume.close().unwrap();
    drop(volume);
    let spec = Spec::from_argument(image.as_os_str()).unwrap();
    let volume = Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() }).unwrap();
    assert_eq!(volume.begin(TransactionOptions::default()).map(drop).unwrap_err().class, Class::ReadOnly);
}

/// That a file is in use without a name is not in its inode on the device.
#[test]
fn what_changes_a_file_that_lost_its_last_name_and_is_still_open_conflicts() {
    type Change = fn(&Volume, InodeNumber);
    let link: Change = |inside, file| _ = inside.files().link(file, InodeNumber::ROOT, b"b").unwrap();
    let chmod: Change = |inside, file| {
        let changes = SetAttributes { permissions: Some(0o600), ..SetAttributes::default() };
        inside.files().set_attributes(&Caller::root(), file, &changes).unwrap();
    };
    let write: Change = |inside, _| inside.write("/a", "other").unwrap();
    for (change, is_open_before) in [(link, false), (chmod, false), (write, false), (link, true)] {
        let volume = ram();
        volume.write("/a", "precious").unwrap();
        let files = volume.files();
        let file = files.lookup(InodeNumber::ROOT, b"a").unwrap().inode;
        let open = || files.open(&Caller::root(), file, OpenFlags::default()).unwrap();
        let early = is_open_before.then(open);
        let transaction = begin(&volume);
        change(transaction.volume(), file);
        let handle = early.unwrap_or_else(open);
        volume.remove_all("/a").unwrap();
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.class, Class::Conflict, "{error}");
        assert_eq!(files.attributes(file).unwrap().links, 0);
        let mut buffer = [0; 8];
        assert_eq!(files.read(file, 0, &mut buffer).map(|_| buffer).unwrap(), *b"precious");
        let objects = volume.device().space().objects;
        files.release(handle).unwrap();
        files.forget(file, 1);
        assert_eq!(volume.device().space().objects, objects - 1, "its space is free at once");
        assert!(volume.read("/b").is_err());
        let report = onode_fs::check::check(volume.device()).unwrap();
        assert_eq!(report.findings, []);
    }
}

/// What the transaction still keeps back is written when it is committed, to a file that is gone.
#[test]
fn a_write_to_a_file_that_others_removed_conflicts() {
    for is_looked_at in [false, true] {
        let volume = ram();
        volume.write("/f", "f").unwrap();
        let transaction = begin(&volume);
        let inside = transaction.files();
        let file = inside.lookup(InodeNumber::ROOT, b"f").unwrap().inode;
        inside.write(&Caller::root(), file, 1, b"more").unwrap();
        volume.remove_all("/f").unwrap();
        if is_looked_at {
            inside.attributes(file).unwrap();
        }
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.class, Class::Conflict, "{error}");
    }
}

/// What others change of such a directory is no change of where it is.
#[test]
fn a_directory_that_is_renamed_may_be_read_and_filled_meanwhile() {
    let volume = ram();
    volume.create_dir_all("/p/d").unwrap();
    volume.create_dir_all("/q").unwrap();
    let transaction = begin(&volume);
    transaction.volume().rename("/p/d", "/q/d").unwrap();
    let files = volume.files();
    let directory = files.resolve(b"/p/d", Follow::Yes).unwrap();
    let accessed = Some(SetTime::At(Timestamp { seconds: 2_000_000_000, nanoseconds: 0 }));
    let times = SetAttributes { accessed, ..SetAttributes::default() };
    files.set_attributes(&Caller::root(), directory, &times).unwrap();
    volume.write("/p/d/new", "n").unwrap();
    volume.create_dir_all("/p/d/sub").unwrap();
    transaction.commit().unwrap();
    assert_eq!(volume.read("/q/d/new").unwrap(), b"n");
    assert!(volume.read_dir("/q/d/sub").is_ok() && volume.read_dir("/p/d").is_err());
    let report = onode_fs::check::check(volume.device()).unwrap();
    assert_eq!(report.findings, []);
}

/// The list that it made before does not hide that. Content that was read after a change is still
/// content of which it saw something before.
#[test]
fn a_transaction_sees_what_others_commit_of_files_that_it_has_not_changed() {
    for reads_changed in [false, true] {
        let volume = ram();
        for name in ["/f", "/g", "/i", "/own", "/read"] {
            volume.write(name, "old").unwrap();
        }
        volume.write("/new", "newer").unwrap();
        let transaction = begin(&volume);
        let inside = transaction.files();
        let read = |file| {
            let mut buffer = vec![0; 20];
            let length = inside.read(file, 0, &mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        };
        let find = |name: &[u8]| inside.lookup(InodeNumber::ROOT, name);
        let [f, g, _, own] = [b"f".as_slice(), b"g", b"i", b"own"].map(|name| find(name).unwrap().inode);
        inside.write(&Caller::root(), own, 3, b" and mine").unwrap();
        let seen = find(b"read").unwrap().inode;
        volume.rename("/new", "/f").unwrap();
        let there = volume.files();
        if reads_changed {
            assert_eq!(read(seen), "old");
            there.write(&Caller::root(), seen, 3, b" and longer").unwrap();
        }
        there.write(&Caller::root(), g, 3, b" and longer").unwrap();
        there.sync().unwrap();
        volume.remove_all("/i").unwrap();
        let found = find(b"f").unwrap();
        assert!(found.inode != f && found.size == 5, "{found:?}");
        assert_eq!(inside.attributes(g).unwrap().size, 14);
        assert_eq!(find(b"i").unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!((read(found.inode).as_str(), read(own).as_str()), ("newer", "old and mine"));
        if reads_changed {
            assert_eq!((inside.attributes(seen).unwrap().size, read(seen).as_str()), (3, "old"));
            assert_eq!(read(g), "old and longer");
            assert_eq!(transaction.commit().unwrap_err().class, Class::Conflict);
            continue;
        }
        transaction.commit().unwrap();
        assert_eq!(volume.read("/own").unwrap(), b"old and mine");
        assert_eq!(volume.read("/g").unwrap(), b"old and longer");
        let report = onode_fs::check::check(volume.device()).unwrap();
        assert_eq!(report.findings, []);
    }
}
