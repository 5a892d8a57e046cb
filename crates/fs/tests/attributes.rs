//! Modes, owners, times, extended attributes and ACLs.

use crate::common::*;
use onode_base::Timestamp;
use onode_fs::*;

const fn at(seconds: i64, nanoseconds: u32) -> Timestamp {
    Timestamp { seconds, nanoseconds }
}

fn chmod(fs: &FileSystem, caller: &Caller, inode: InodeNumber, permissions: u16) -> u16 {
    let change = SetAttributes { permissions: Some(permissions), ..SetAttributes::default() };
    fs.set_attributes(caller, inode, &change).unwrap().permissions
}

#[test]
fn times_before_1970_and_after_2106_survive() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    let (old, new) = (at(-(1 << 40), 1), at((1 << 34) - 1, 999_999_999));
    let change = SetAttributes {
        accessed: Some(SetTime::At(old)),
        modified: Some(SetTime::At(new)),
        ..SetAttributes::default()
    };
    fs.set_attributes(&root(), file, &change).unwrap();
    fs.unmount().unwrap();
    let found = lookup(&volume.mount(), ROOT, "f").unwrap();
    assert_eq!((found.accessed, found.modified), (old, new));
}

#[test]
fn every_change_renews_the_times_posix_names() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    let times = |inode| {
        let found = fs.attributes(inode).unwrap();
        (found.modified, found.changed)
    };
    let expect = |what: &str, inode: InodeNumber, modified: bool, changed: bool, call: &dyn Fn()| {
        let before = times(inode);
        volume.clock.advance(SECOND);
        call();
        let after = times(inode);
        assert_eq!((after.0 != before.0, after.1 != before.1), (modified, changed), "{what}");
    };
    expect("write", file, true, true, &|| write(&fs, file, 0, b"x"));
    expect("read", file, false, false, &|| drop(content(&fs, file)));
    expect("truncate", file, true, true, &|| truncate(&fs, file, 9));
    expect("chmod", file, false, true, &|| assert_eq!(chmod(&fs, &root(), file, 0o600), 0o600));
    expect("link", file, false, true, &|| assert!(fs.link(file, ROOT, b"g").unwrap().links > 1));
    expect("link, directory", ROOT, true, true, &|| assert!(fs.link(file, ROOT, b"h").unwrap().links > 1));
    expect("unlink", file, false, true, &|| fs.unlink(ROOT, b"g").unwrap());
    expect("rename", file, false, true, &|| fs.rename(ROOT, b"h", ROOT, b"i", RenameFlags::Replace).unwrap());
    expect("xattr", file, false, true, &|| {
        fs.set_xattr(&root(), file, b"user.a", b"", XattrFlags::Any).unwrap();
    });
    expect("mkdir, directory", ROOT, true, true, &|| assert_ne!(mkdir(&fs, ROOT, "d"), ROOT));
    expect("rmdir, directory", ROOT, true, true, &|| fs.remove_directory(ROOT, b"d").unwrap());
    expect("empty setattr", file, false, true, &|| {
        fs.set_attributes(&root(), file, &SetAttributes::default()).unwrap();
    });
    expect("punch", file, true, true, &|| fs.allocate(&root(), file, 0, 4, Allocate::PunchHole).unwrap());
}

#[test]
fn access_times_as_the_mount_wants() {
    for (mode, expected) in
        [(AccessTimes::Never, [0, 0, 0]), (AccessTimes::Relative, [1, 1, 3]), (AccessTimes::Strict, [1, 2, 3])]
    {
        let volume = Volume::of_size(16 << 20);
        let fs = volume.mount_with(Options { access_times: mode, ..Options::default() });
        let file = create(&fs, ROOT, "f");
        write(&fs, file, 0, b"x");
        let start = fs.attributes(file).unwrap().accessed.seconds;
        for (read, step) in expected.into_iter().enumerate() {
            volume.clock.advance(if read == 2 { 86_400 * SECOND } else { SECOND });
            content(&fs, file);
            let moved = fs.attributes(file).unwrap().accessed.seconds - start;
            assert_eq!(moved, [0, 1, 2, 86_402][step], "{mode:?} read {read}");
        }
    }
}

#[test]
fn access_times_come_back_and_can_be_set_to_any_other() {
    let volume = Volume::of_size(16 << 20);
    let strict = || volume.mount_with(Options { access_times: AccessTimes::Strict, ..Options::default() });
    let accessed = |fs: &FileSystem, name: &str| lookup(fs, ROOT, name).unwrap().accessed;
    let fs = strict();
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"x");
    mkdir(&fs, ROOT, "d");
    fs.sync().unwrap();
    volume.clock.advance(SECOND);
    content(&fs, file);
    let read = accessed(&fs, "f");
    fs.fsync(file, None, false).unwrap();
    // The device has it apart from the inode.
    let device_time = |fs: &FileSystem| fs.device().stat(file.object()).unwrap().accessed;
    assert_eq!(device_time(&fs), read.seconds as u64 * SECOND + u64::from(read.nanoseconds));
    fs.unmount().unwrap();
    let fs = strict();
    assert_eq!(accessed(&fs, "f"), read);
    // Whoever sets an earlier time is believed, whatever waits.
    for waits in [false, true] {
        volume.clock.advance(SECOND);
        content(&fs, file);
        if !waits {
            fs.sync().unwrap();
        }
        let change = SetAttributes { accessed: Some(SetTime::At(at(7, 8))), ..SetAttributes::default() };
        fs.set_attributes(&root(), file, &change).unwrap();
        assert_eq!(accessed(&fs, "f"), at(7, 8));
        fs.sync().unwrap();
        assert_eq!(device_time(&fs), 0);
    }
    fs.unmount().unwrap();
    let fs = strict();
    assert_eq!(accessed(&fs, "f"), at(7, 8));
    volume.clock.advance(SECOND);
    content(&fs, file);
    let read = accessed(&fs, "f");
    write(&fs, file, 1, b"y");
    fs.unmount().unwrap();
    assert_eq!(accessed(&strict(), "f"), read);
}

#[test]
fn set_bits_follow_directory_caller_and_owner() {
    let (_volume, fs) = mounted();
    let directory = mkdir(&fs, ROOT, "d");
    let change = SetAttributes { gid: Some(50), permissions: Some(0o2777), ..SetAttributes::default() };
    fs.set_attributes(&root(), directory, &change).unwrap();
    let someone = user(1000, 1000);
    let file = fs.create(&someone, directory, b"f", 0o2755).unwrap();
    assert_eq!((file.gid, file.permissions), (50, 0o2755));
    let stranger = Caller { groups: Some(vec![7]), ..someone.clone() };
    assert_eq!(fs.create(&stranger, directory, b"g", 0o2755).unwrap().permissions, 0o755);
    let below = fs.make_directory(&someone, directory, b"below", 0o755).unwrap();
    assert_eq!((below.gid, below.permissions), (50, 0o2755));
    assert_eq!(chmod(&fs, &stranger, file.inode, 0o2755), 0o755);
    assert_eq!(chmod(&fs, &Caller { groups: Some(vec![50]), ..someone.clone() }, file.inode, 0o6755), 0o6755);
    write(&fs, file.inode, 0, b"by root");
    assert_eq!(fs.attributes(file.inode).unwrap().permissions, 0o6755);
    fs.write(&someone, file.inode, 0, b"by another").unwrap();
    assert_eq!(fs.attributes(file.inode).unwrap().permissions, 0o755);
    chmod(&fs, &root(), file.inode, 0o6745);
    let shorter = SetAttributes { size: Some(1), ..SetAttributes::default() };
    assert_eq!(fs.set_attributes(&someone, file.inode, &shorter).unwrap().permissions, 0o2745);
    chmod(&fs, &root(), file.inode, 0o6755);
    let owner = SetAttributes { uid: Some(2000), ..SetAttributes::default() };
    assert_eq!(fs.set_attributes(&root(), file.inode, &owner).unwrap().permissions, 0o755);
    // What ext4 does on chown(-1, -1), for root and for others.
    for (before, after) in [(0o6555, 0o555), (0o6545, 0o2545), (0o2755, 0o755), (0o4644, 0o644), (0o6444, 0o2444)] {
        chmod(&fs, &root(), file.inode, before);
        let nothing = SetAttributes::default();
        assert_eq!(fs.set_attributes(&root(), file.inode, &nothing).unwrap().permissions, after);
        assert_eq!(fs.set_attributes(&root(), below.inode, &nothing).unwrap().permissions, 0o2755);
    }
}

#[test]
fn only_members_leave_the_set_group_bit_where_the_group_may_not_execute() {
    let (_volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    let owner = SetAttributes { gid: Some(50), ..SetAttributes::default() };
    fs.set_attributes(&root(), file, &owner).unwrap();
    let stranger = Caller { groups: Some(vec![7]), ..user(1000, 1000) };
    let member = Caller { groups: Some(vec![7, 50]), ..user(1000, 1000) };
    let cut = SetAttributes { size: Some(1), ..SetAttributes::default() };
    type Change<'a> = &'a dyn Fn(&Caller) -> Result<()>;
    let changes: [Change<'_>; 5] = [
        &|caller| fs.write(caller, file, 0, b"content").map(drop),
        &|caller| fs.set_attributes(caller, file, &cut).map(drop),
        &|caller| fs.allocate(caller, file, 0, 10, Allocate::Extend),
        &|caller| fs.allocate(caller, file, 0, 1, Allocate::PunchHole),
        &|caller| fs.set_attributes(caller, file, &owner).map(drop),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for (caller, after) in [(&stranger, 0o666), (&member, 0o2666)] {
            chmod(&fs, &root(), file, 0o6666);
            change(caller).unwrap();
            assert_eq!(fs.attributes(file).unwrap().permissions, after, "change {number} by {caller:?}");
        }
        if number < 4 {
            chmod(&fs, &root(), file, 0o6777);
            change(&root()).unwrap();
            assert_eq!(fs.attributes(file).unwrap().permissions, 0o6777, "change {number} by root");
        }
    }
}

#[test]
fn the_dot_of_any_file_is_the_file_as_long_as_there_is_one() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { opens_are_counted: false, ..Options::default() });
    let file = create(&fs, ROOT, "f");
    let link = fs.make_symbolic_link(&root(), ROOT, b"l", b"f").unwrap().inode;
    fs.unmount().unwrap();
    let fs = volume.mount_with(Options { opens_are_counted: false, ..Options::default() });
    for number in [file, link, ROOT] {
        assert_eq!(lookup(&fs, number, ".").unwrap().inode, number);
    }
    assert_eq!(kind(fs.lookup(file, b"..")), ErrorKind::NotDirectory);
    assert_eq!(kind(fs.lookup(file, b"f")), ErrorKind::NotDirectory);
    fs.unlink(ROOT, b"f").unwrap();
    let gone = kind(fs.lookup(file, b"."));
    assert!(matches!(gone, ErrorKind::Stale | ErrorKind::NotFound), "{gone:?}");
}

#[test]
fn who_reads_without_a_time_leaves_it() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { access_times: AccessTimes::Strict, ..Options::default() });
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"x");
    let before = fs.attributes(file).unwrap().accessed;
    volume.clock.advance(SECOND);
    let mut buffer = [0];
    assert_eq!((fs.read_noatime(file, 0, &mut buffer).unwrap(), &buffer), (1, b"x"));
    assert_eq!(fs.attributes(file).unwrap().accessed, before);
    fs.read(file, 0, &mut buffer).unwrap();
    assert_ne!(fs.attributes(file).unwrap().accessed, before);
}

#[test]
fn umask_counts_unless_there_is_a_default_acl() {
    let (_volume, fs) = mounted();
    let caller = Caller { umask: 0o077, ..user(5, 5) };
    assert_eq!(fs.create(&caller, ROOT, b"f", 0o666).unwrap().permissions, 0o600);
    let directory = mkdir(&fs, ROOT, "d");
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let acl = [
        2u32.to_le_bytes().to_vec(),
        entry(1, 7, none),
        entry(2, 6, 9),
        entry(4, 5, none),
        entry(0x10, 7, none),
        entry(0x20, 0, none),
    ]
    .concat();
    let (access, default) = (&b"system.posix_acl_access"[..], &b"system.posix_acl_default"[..]);
    fs.set_xattr(&root(), directory, default, &acl, XattrFlags::Any).unwrap();
    let file = fs.create(&caller, directory, b"f", 0o666).unwrap();
    assert_eq!(file.permissions, 0o660);
    assert!(fs.get_xattr(file.inode, access).is_ok());
    assert_eq!(kind(fs.get_xattr(file.inode, default)), ErrorKind::NoAttribute);
    let below = fs.make_directory(&caller, directory, b"below", 0o777).unwrap();
    assert_eq!(fs.get_xattr(below.inode, default).unwrap(), acl);
    assert_eq!(chmod(&fs, &root(), file.inode, 0o604), 0o604);
    let changed = fs.get_xattr(file.inode, access).unwrap();
    assert_eq!(changed[4 + 3 * 8 + 2], 0, "chmod sets the mask");
    assert_eq!(changed[4 + 4 * 8 + 2], 4, "chmod sets the others");
    assert_eq!(kind(fs.set_xattr(&root(), file.inode, default, &acl, XattrFlags::Any)), ErrorKind::AccessDenied);
    assert_eq!(kind(fs.set_xattr(&root(), file.inode, access, b"junk", XattrFlags::Any)), ErrorKind::Invalid);
}

#[test]
fn extended_attributes_have_limits_and_flags() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    let set = |name: &[u8], value: &[u8], flags| fs.set_xattr(&root(), file, name, value, flags);
    assert_eq!(kind(set(b"user.a", b"1", XattrFlags::Replace)), ErrorKind::NoAttribute);
    set(b"user.a", b"1", XattrFlags::Create).unwrap();
    assert_eq!(kind(set(b"user.a", b"1", XattrFlags::Create)), ErrorKind::Exists);
    assert_eq!(kind(set(b"other.a", b"1", XattrFlags::Any)), ErrorKind::NotSupported);
    for namespace in [&b"user."[..], b"trusted.", b"security."] {
        assert_eq!(kind(set(namespace, b"1", XattrFlags::Any)), ErrorKind::Invalid);
        assert_eq!(kind(fs.get_xattr(file, namespace)), ErrorKind::Invalid);
        assert_eq!(kind(fs.remove_xattr(file, namespace)), ErrorKind::Invalid);
    }
    assert_eq!(kind(set(&[b"user.".to_vec(), vec![b'n'; 251]].concat(), b"", XattrFlags::Any)), ErrorKind::Range);
    assert_eq!(kind(set(b"user.big", &vec![1; 65_537], XattrFlags::Any)), ErrorKind::TooLarge);
    for size in [0, 1, 580, 600, 4096, 65_536, 3] {
        set(b"user.big", &vec![2; size], XattrFlags::Any).unwrap();
        assert_eq!(fs.get_xattr(file, b"user.big").unwrap(), vec![2; size]);
    }
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(2, 0));
    set(b"user.big", &[3; 9000], XattrFlags::Any).unwrap();
    fs.drop_capabilities(file).unwrap();
    set(b"security.capability", b"all", XattrFlags::Any).unwrap();
    fs.drop_capabilities(file).unwrap();
    let mut names: Vec<Vec<u8>> = fs.list_xattrs(file).unwrap().split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    names.sort();
    assert_eq!(names, [&b""[..], b"user.a", b"user.big"]);
    fs.remove_xattr(file, b"user.a").unwrap();
    assert_eq!(kind(fs.remove_xattr(file, b"user.a")), ErrorKind::NoAttribute);
    fs.unlink(ROOT, b"f").unwrap();
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(1, 0));
}

#[test]
fn hard_links_have_a_limit() {
    let (_volume, fs) = mounted();
    let file = create(&fs, ROOT, "f");
    for i in 1..LINKS_MAX {
        fs.link(file, ROOT, format!("{i}").as_bytes()).unwrap();
    }
    assert_eq!(kind(fs.link(file, ROOT, b"one more")), ErrorKind::TooManyLinks);
    assert_eq!(fs.attributes(file).unwrap().links, LINKS_MAX);
}

#[test]
fn an_unnamed_file_can_get_a_name() {
    let (volume, fs) = mounted();
    let file = fs.make_unnamed(&root(), ROOT, 0o600).unwrap();
    assert_eq!(file.links, 0);
    let handle = fs.open(&root(), file.inode, OpenFlags { write: true, truncate: false }).unwrap();
    write(&fs, file.inode, 0, b"x");
    assert_eq!(fs.link(file.inode, ROOT, b"named").unwrap().links, 1);
    fs.release(handle).unwrap();
    fs.forget(file.inode, 2);
    fs.unmount().unwrap();
    assert_eq!(check::check(volume.device.as_ref()).unwrap().findings, []);
    assert_eq!(volume.mount().read_file(b"/named").unwrap(), b"x");
}
