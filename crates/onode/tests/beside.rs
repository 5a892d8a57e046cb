//! Volumes with a memory beside the flash, by their specs: a memory that is missing, empty, cut
//! short or damaged is filled again or is a loss, and the check of the medium looks into it.

use crate::common::Folder;
use onode::medium::check_medium;
use onode::{Class, CreateOptions, MountOptions, Spec, Volume};
use onode_fs::{Caller, InodeNumber};
use std::path::{Path, PathBuf};

const CALLER: Caller = Caller::root();

/// The folder of a volume and its memory.
struct Room(Folder);

impl Room {
    fn new(name: &str) -> Self {
        Self(Folder::new(&format!("beside-{name}")))
    }

    fn index(&self) -> PathBuf {
        self.0.path().join("index")
    }

    fn spec(&self, more: &str) -> Spec {
        let image = self.0.path().join("image");
        Spec::parse(&format!("flash+scm:{},{}{more}", image.display(), self.index().display())).unwrap()
    }
}

fn open(spec: &Spec, options: MountOptions) -> onode::Result<Volume> {
    Volume::open(spec, options)
}

fn put(volume: &Volume, name: &str) {
    let files = volume.files();
    let made = files.create(&CALLER, InodeNumber::ROOT, name.as_bytes(), 0o644).unwrap();
    assert_eq!(files.write(&CALLER, made.inode, 0, name.as_bytes()).unwrap(), name.len());
    files.fsync(made.inode, None, false).unwrap();
}

fn names(volume: &Volume) -> usize {
    (0..100).filter(|n| volume.files().lookup(InodeNumber::ROOT, format!("f{n}").as_bytes()).is_ok()).count()
}

fn spoil(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    how(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn an_empty_or_short_index_is_filled_again() {
    let room = Room::new("short");
    Volume::create(&room.spec(",size=16M"), &CreateOptions::default()).unwrap();
    let spec = room.spec("");
    let volume = open(&spec, MountOptions::default()).unwrap();
    (0..20).for_each(|n| put(&volume, &format!("f{n}")));
    volume.close().unwrap();
    drop(volume);
    for length in [0, 100, 4096, 8191] {
        spoil(&room.index(), |bytes| bytes.truncate(length));
        for read_only in [true, false] {
            let volume = open(&spec, MountOptions { read_only, ..MountOptions::default() }).unwrap();
            assert_eq!(names(&volume), 20, "{length} bytes");
            assert!(volume.notes().iter().any(|note| note.contains("cut short")), "{:?}", volume.notes());
            volume.close().unwrap();
        }
        let volume = open(&spec, MountOptions::default()).unwrap();
        assert_eq!(volume.notes(), &[] as &[String], "the memory is in use again");
        volume.close().unwrap();
    }
    // What never was a memory is left alone.
    std::fs::write(room.index(), "somebody's letters").unwrap();
    assert!(open(&spec, MountOptions::default()).is_err());
    assert_eq!(std::fs::read(room.index()).unwrap(), b"somebody's letters");
}

#[test]
fn a_lost_write_buffer_is_a_loss_and_never_silent() {
    let room = Room::new("lost");
    Volume::create(&room.spec(",buffer=on,size=16M"), &CreateOptions::default()).unwrap();
    let spec = room.spec(",buffer=on");
    let volume = open(&spec, MountOptions::default()).unwrap();
    (0..30).for_each(|n| put(&volume, &format!("f{n}")));
    // A crash: nothing is closed.
    drop(volume);
    std::fs::remove_file(room.index()).unwrap();
    for read_only in [true, false] {
        let refused = open(&spec, MountOptions { read_only, ..MountOptions::default() });
        assert_eq!(refused.err().map(|error| error.class), Some(Class::Loss));
        assert!(!room.index().exists(), "nothing is changed without consent");
    }
    let report = check_medium(&spec, &mut |_, _| ()).unwrap();
    assert!(!report.is_sound && report.findings.iter().any(|one| one.severity == "fatal"), "{:?}", report.findings);
    let volume = open(&spec, MountOptions { accept_loss: true, ..MountOptions::default() }).unwrap();
    assert!(names(&volume) < 30);
    assert!(volume.device().health().conditions.iter().any(|one| one.code == "loss-accepted"));
    volume.close().unwrap();
    drop(volume);
    open(&spec, MountOptions::default()).unwrap().close().unwrap();
}

#[test]
fn the_check_of_the_medium_looks_into_the_memory() {
    let room = Room::new("check");
    Volume::create(&room.spec(",size=16M"), &CreateOptions::default()).unwrap();
    let spec = room.spec("");
    let volume = open(&spec, MountOptions::default()).unwrap();
    (0..60).for_each(|n| put(&volume, &format!("f{n}")));
    volume.close().unwrap();
    drop(volume);
    assert_eq!(check_medium(&spec, &mut |_, _| ()).unwrap().findings, []);
    spoil(&room.index(), |bytes| {
        let used = (128..bytes.len()).filter(|at| bytes[*at] != 0).collect::<Vec<_>>();
        used.iter().skip(16).step_by(40).for_each(|at| bytes[*at] ^= 1);
    });
    let report = check_medium(&spec, &mut |_, _| ()).unwrap();
    assert!(report.is_sound, "the flash has everything: {:?}", report.findings);
    assert!(report.findings.iter().any(|one| one.kind == "Memory"), "{:?}", report.findings);
    let volume = open(&spec, MountOptions::default()).unwrap();
    assert_eq!(names(&volume), 60);
}

/// Why it was refused.
fn class<T>(refused: onode::Result<T>) -> Option<Class> {
    refused.err().map(|error| error.class)
}

/// A memory in use was replaced by whoever made another volume there: only images of other kinds
/// were locked.
#[test]
fn a_memory_in_use_is_not_replaced() {
    let room = Room::new("in-use");
    let place = |name: &str| room.0.path().join(name).display().to_string();
    let (alone, index, exclusive) = (place("alone"), place("index"), place("exclusive"));
    let (image, other) = (place("image"), place("other"));
    let open = |spec: String| Volume::open_or_create(&spec).unwrap();
    let volumes = [
        open(format!("scm:{alone},size=8M")),
        open(format!("scm:{exclusive},size=8M,exclusive=on")),
        open(format!("flash+scm:{image},{index},size=16M,buffer=on")),
    ];
    volumes.iter().for_each(|volume| put(volume, "f0"));
    let before: Vec<_> = [&alone, &index, &exclusive].map(|path| std::fs::metadata(path).unwrap()).into();
    let replace = CreateOptions { replace: true, ..CreateOptions::default() };
    for used in [&alone, &exclusive, &index] {
        for how in [
            format!("scm:{used},size=8M"),
            format!("flash:{used},size=16M"),
            format!("flash:{used},direct,size=16M"),
            format!("tier:{used},{other},size=64M,fast-size=16M"),
            format!("tier:{other},{used},size=64M,fast-size=16M"),
            format!("flash+scm:{used},{other},size=16M"),
            format!("flash+scm:{other},{used},size=16M"),
        ] {
            let made = Volume::create(&Spec::parse(&how).unwrap(), &replace);
            assert_eq!(class(made), Some(Class::InUse), "{how}");
        }
        assert_eq!(class(onode::Spaces::make(Path::new(used), Some(8 << 20), true)), Some(Class::InUse));
    }
    // Nor is the flash taken for memory.
    assert_eq!(class(onode::Spaces::make(Path::new(&image), None, true)), Some(Class::InUse));
    let after: Vec<_> = [&alone, &index, &exclusive].map(|path| std::fs::metadata(path).unwrap()).into();
    for (before, after) in before.iter().zip(&after) {
        use std::os::unix::fs::MetadataExt;
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
    }
    volumes.iter().for_each(|volume| volume.close().unwrap());
    drop(volumes);
    Volume::create(&Spec::parse(&format!("scm:{alone},size=8M")).unwrap(), &replace).unwrap();
}

/// Cut so short that the write buffer has no room, a memory was refused by all that writes.
#[test]
fn a_memory_too_short_for_its_write_buffer_counts_as_lost() {
    let room = Room::new("too-short");
    Volume::create(&room.spec(",buffer=on,size=16M,memory=64K"), &CreateOptions::default()).unwrap();
    let spec = room.spec(",buffer=on");
    let volume = open(&spec, MountOptions::default()).unwrap();
    (0..20).for_each(|n| put(&volume, &format!("f{n}")));
    let image = room.0.path().join("image");
    let crashed = (std::fs::read(&image).unwrap(), std::fs::read(room.index()).unwrap());
    volume.close().unwrap();
    drop(volume);
    for length in [4096, 12 << 10, 16 << 10, 24 << 10, 60 << 10, 65000] {
        // In order, the flash has everything.
        spoil(&room.index(), |bytes| bytes.truncate(length));
        for read_only in [true, false] {
            let volume = open(&spec, MountOptions { read_only, ..MountOptions::default() }).unwrap();
            assert_eq!(names(&volume), 20, "{length} bytes");
            volume.close().unwrap();
        }
        // After a crash, what the buffer had is lost, and only with consent.
        std::fs::write(&image, &crashed.0).unwrap();
        std::fs::write(room.index(), &crashed.1[..length]).unwrap();
        for read_only in [true, false] {
            let refused = open(&spec, MountOptions { read_only, ..MountOptions::default() });
            assert_eq!(class(refused), Some(Class::Loss), "{length} bytes");
        }
        let report = check_medium(&spec, &mut |_, _| ()).unwrap();
        assert!(!report.is_sound, "{length} bytes: {:?}", report.findings);
        let volume = open(&spec, MountOptions { accept_loss: true, ..MountOptions::default() }).unwrap();
        assert!(names(&volume) < 20, "{length} bytes");
        volume.close().unwrap();
        drop(volume);
        std::fs::write(&image, &crashed.0).unwrap();
        std::fs::write(room.index(), &crashed.1).unwrap();
        open(&spec, MountOptions::default()).unwrap().close().unwrap();
    }
}

/// A memory that ends within a line of the processor was a memory only for a writable mount.
#[test]
fn a_memory_that_ends_within_a_line_is_the_same_for_everyone() {
    let room = Room::new("ragged");
    Volume::create(&room.spec(",buffer=on,size=16M,memory=64K"), &CreateOptions::default()).unwrap();
    let spec = room.spec(",buffer=on");
    let volume = open(&spec, MountOptions::default()).unwrap();
    (0..20).for_each(|n| put(&volume, &format!("f{n}")));
    let image = room.0.path().join("image");
    let crashed = (std::fs::read(&image).unwrap(), std::fs::read(room.index()).unwrap());
    volume.close().unwrap();
    drop(volume);
    for crash in [true, false] {
        if crash {
            std::fs::write(&image, &crashed.0).unwrap();
            std::fs::write(room.index(), &crashed.1).unwrap();
        }
        spoil(&room.index(), |bytes| bytes.truncate(65535));
        let report = check_medium(&spec, &mut |_, _| ()).unwrap();
        assert!(report.is_sound, "{:?}", report.findings);
        let volume = open(&spec, MountOptions { read_only: true, ..MountOptions::default() }).unwrap();
        assert_eq!(names(&volume), 20);
        drop(volume);
        assert_eq!(std::fs::metadata(room.index()).unwrap().len(), 65535, "nothing was written");
        onode::medium::repair_medium(&spec, false, false).unwrap();
        let volume = open(&spec, MountOptions::default()).unwrap();
        assert_eq!(names(&volume), 20);
        volume.close().unwrap();
    }
}

/// What a write buffer has is brought to the flash by a repair, and what is lost of it is given up
/// with consent.
#[test]
fn a_repair_takes_what_the_write_buffer_has() {
    for (lost, drop_damaged, accept_loss) in [(false, false, false), (false, true, false), (true, false, true)] {
        let room = Room::new("repaired");
        Volume::create(&room.spec(",buffer=on,size=16M"), &CreateOptions::default()).unwrap();
        let spec = room.spec(",buffer=on");
        let volume = open(&spec, MountOptions::default()).unwrap();
        (0..30).for_each(|n| put(&volume, &format!("f{n}")));
        // A crash.
        drop(volume);
        if lost {
            std::fs::remove_file(room.index()).unwrap();
            assert_eq!(class(onode::medium::repair_medium(&spec, false, false)), Some(Class::Loss));
            assert!(!room.index().exists(), "nothing is changed without consent");
        }
        let repaired = onode::medium::repair_medium(&spec, drop_damaged, accept_loss).unwrap();
        assert_eq!(repaired.lost, lost, "{:?}", repaired.actions);
        let volume = open(&spec, MountOptions::default()).unwrap();
        assert_eq!(names(&volume) == 30, !lost, "drop: {drop_damaged}");
        volume.close().unwrap();
    }
}
