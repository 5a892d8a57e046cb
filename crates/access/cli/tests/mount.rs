//! Mounts from their start to every kind of end: signals, unmounts by others, kills.

use crate::common::{Expect, Place, Running, has_fuse, is_mounted, is_root, onode, wait_until};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What the kernel says about a mount.
fn mount_line(directory: &Path) -> String {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("table");
    let at = format!(" {} ", directory.display());
    table.lines().find(|line| line.contains(&at)).expect("mounted").to_owned()
}

#[test]
fn up_makes_mounts_and_keeps_everything() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("up");
    let directory = place.path("mnt");
    let up = Running::start(&mut onode!("up", &directory));
    wait_until("the mount is live", || is_mounted(&directory));
    let line = mount_line(&directory);
    assert!(line.contains("fuse.onode") && line.contains("nosuid") && line.contains("nodev"), "{line}");
    fs::create_dir(directory.join("d")).expect("mkdir");
    fs::write(directory.join("d/f"), b"kept").expect("write");
    symlink("d/f", directory.join("l")).expect("symlink");
    up.signal("INT");
    let said = up.ends_well();
    assert!(said.contains("made ") && said.contains("everything is saved"), "{said}");
    assert!(!is_mounted(&directory));
    assert!(place.path("mnt.onode").exists());
    let up = Running::up(&directory, &place.path("mnt.onode"));
    assert_eq!(fs::read(directory.join("l")).expect("read"), b"kept");
    up.signal("TERM");
    up.ends_well();
    onode!("check", place.path("mnt.onode")).succeeds();
}

#[test]
fn a_mount_can_be_ended_by_umount() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("umount");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let up = Running::up(&directory, &image);
    fs::write(directory.join("f"), b"one").expect("write");
    assert!(Command::new("umount").arg(&directory).status().expect("umount").success());
    up.ends_well();
    onode!("mount", &image, &directory).succeeds();
    assert_eq!(fs::read(directory.join("f")).expect("read"), b"one");
    fs::write(directory.join("f"), b"two").expect("write");
    onode!("umount", &directory).succeeds();
    // The command waits until the image is closed: it can be opened at once.
    onode!("get", &image, "/f", place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"two");
}

#[test]
fn a_killed_mount_is_recovered_by_the_next() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("killed");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let up = Running::up(&directory, &image);
    let mut file = File::create(directory.join("synced")).expect("create");
    file.write_all(&[7; 200_000]).expect("write");
    file.sync_all().expect("sync");
    drop(file);
    up.signal("KILL");
    assert_eq!(up.end().status.code(), None);
    let error = fs::read_dir(&directory).map(drop).expect_err("a dead mount");
    // Which of both it is depends on how requests came.
    assert!([Some(107), Some(103), Some(125)].contains(&error.raw_os_error()), "{error}");
    let up = Running::start(&mut onode!("up", &directory, &image));
    wait_until("the files are back", || directory.join("synced").exists());
    assert!(fs::read(directory.join("synced")).expect("read") == [7; 200_000]);
    up.signal("KILL");
    up.end();
    onode!("mount", &image, &directory).succeeds();
    assert_eq!(fs::metadata(directory.join("synced")).expect("metadata").len(), 200_000);
    onode!("umount", &directory).succeeds();
    onode!("check", &image).succeeds();
}

#[test]
fn settings_of_a_mount_are_heeded_and_told() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("settings");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let list = "write-cache=2M,write-back=7,name-cache=3M,inode-cache=500,node-cache=5M,page-cache=6M,checkpoint=64K,\
                clean-ahead=9,read-ahead=256K,threads=3,io-uring=off";
    onode!("mount", "-o", list, &image, &directory).succeeds();
    let stat = onode!("stat", "--json", &directory).succeeds();
    let figures: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
    for (name, value) in [
        ("write_cache_bytes", 2 << 20),
        ("write_back_seconds", 7),
        ("name_cache_bytes", 3 << 20),
        ("inode_cache", 500),
        ("node_cache_bytes", 5 << 20),
        ("page_cache_bytes", 6 << 20),
        ("clean_ahead_segments", 9),
        ("read_ahead_bytes", 256 << 10),
        ("threads", 3),
        ("io_uring", 0),
    ] {
        assert_eq!(figures["settings"][name], value, "{name} in {stat}");
    }
    // Whole pages.
    let between = figures["settings"]["checkpoint_bytes"].as_u64().expect("a number");
    assert!((56 << 10..=64 << 10).contains(&between), "{between}");
    if is_root() {
        let device = fs::metadata(&directory).expect("metadata").dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let kernel = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).expect("read");
        assert_eq!(kernel.trim(), "256");
    }
    onode!("umount", &directory).succeeds();
    let error = onode!("mount", "-o", "clean-ahead=none", &image, &directory).fails(2);
    assert!(error.contains("clean-ahead"), "{error}");
}

#[test]
fn open_files_keep_an_unmount_from_happening() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("busy");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let file = File::create(directory.join("f")).expect("create");
    let error = onode!("umount", &directory).fails(13);
    assert!(error.contains("hint: ") && error.contains("fuser"), "{error}");
    drop(file);
    onode!("umount", &directory).succeeds();
}

#[test]
fn a_signal_ends_a_busy_mount_with_its_data_saved() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("busysignal");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let up = Running::up(&directory, &image);
    let mut file = File::create(directory.join("f")).expect("create");
    file.write_all(b"saved").expect("write");
    up.signal("INT");
    let said = up.ends_well();
    assert!(said.contains("still open"), "{said}");
    drop(file);
    onode!("get", &image, "/f", place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"saved");
}

#[test]
fn a_read_only_mount_changes_nothing() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("ro");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("put", &image, place.file("f", b"f"), "/f").succeeds();
    let before = fs::read(&image).expect("image");
    onode!("mount", "-o", "ro,strictatime", &image, &directory).succeeds();
    assert_eq!(fs::read(directory.join("f")).expect("read"), b"f");
    let error = fs::write(directory.join("g"), b"g").expect_err("read-only");
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    onode!("umount", &directory).succeeds();
    assert!(fs::read(&image).expect("image") == before);
}

#[test]
fn the_server_of_a_root_is_spared_and_goes_on_when_it_is_stopped() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("spared");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).arg0("@onode").succeeds();
    let wanted = format!("\0{}\0", directory.display());
    let servers: Vec<_> = fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|process| {
            let line = String::from_utf8_lossy(&fs::read(process.path().join("cmdline")).ok()?).into_owned();
            (line.contains("\0--serve\0") && line.contains(&wanted)).then(|| (process.file_name(), line))
        })
        .collect();
    let [(server, line)] = &servers[..] else { panic!("{servers:?}") };
    assert!(line.starts_with("@onode\0"), "{line}");
    // systemd does so with all processes, and then asks for files of the root.
    for _ in 0..2 {
        assert!(Command::new("kill").arg("-STOP").arg(server).status().expect("kill").success());
        fs::write(directory.join("file"), b"written").expect("write");
    }
    onode!("umount", &directory).succeeds();
}

#[test]
fn files_behave_as_files_do() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("posix");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", "-o", "suid,dev", &image, &directory).succeeds();
    let at = |name: &str| directory.join(name);
    // Holes, truncation, appending.
    let mut file = File::options().read(true).append(true).create(true).open(at("f")).expect("create");
    file.write_all(b"0123456789").expect("write");
    file.set_len(4).expect("cut");
    file.write_all(b"ab").expect("append");
    file.set_len(100_000).expect("grow");
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0)).expect("seek");
    file.read_to_end(&mut content).expect("read");
    assert_eq!((&content[..7], content.len()), (&b"0123ab\0"[..], 100_000));
    // A file without a name lives until it is closed.
    fs::remove_file(at("f")).expect("unlink");
    assert_eq!(file.metadata().expect("metadata").nlink(), 0);
    file.write_all_at(b"still", 0).expect("write");
    drop(file);
    // Replacing by renaming, hard links, modes.
    fs::write(at("old"), b"old").expect("write");
    fs::write(at("new"), b"new").expect("write");
    fs::hard_link(at("new"), at("link")).expect("link");
    fs::rename(at("new"), at("old")).expect("rename");
    assert_eq!(fs::read(at("old")).expect("read"), b"new");
    assert_eq!(fs::metadata(at("link")).expect("metadata").nlink(), 2);
    fs::set_permissions(at("old"), fs::Permissions::from_mode(0o4711)).expect("chmod");
    assert_eq!(fs::metadata(at("link")).expect("metadata").mode() & 0o7777, 0o4711);
    // Synchronous writing.
    let mut file =
        File::options().write(true).create_new(true).custom_flags(0o4_010_000).open(at("sync")).expect("open");
    file.write_all(b"sync").expect("write");
    // A large directory, listed while it shrinks.
    fs::create_dir(at("many")).expect("mkdir");
    for number in 0..2000 {
        fs::write(at(&format!("many/{number}")), b"").expect("write");
    }
    assert_eq!(fs::read_dir(at("many")).expect("list").count(), 2000);
    for entry in fs::read_dir(at("many")).expect("list") {
        fs::remove_file(entry.expect("entry").path()).expect("unlink");
    }
    fs::remove_dir(at("many")).expect("rmdir");
    drop(file);
    onode!("umount", &directory).succeeds();
    onode!("check", &image).succeeds();
}

#[test]
fn writing_takes_set_id_bits_away_and_everybody_sees_it() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("setid");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", "-o", "suid", &image, &directory).succeeds();
    let file = directory.join("f");
    let mode = || fs::metadata(&file).expect("metadata").mode() & 0o7777;
    for script in
        ["echo more >>$0", "echo other >$0", "truncate -s 1 $0", "fallocate -l 9999 $0", "dd of=$0 bs=1 seek=3"]
    {
        fs::write(&file, b"program").expect("write");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o6777)).expect("chmod");
        assert_eq!(mode(), 0o6777);
        let mut nobody = Command::new("sh");
        nobody.args(["-c", script]).arg(&file).stdin(File::open("/etc/passwd").expect("input"));
        assert!(nobody.uid(65534).gid(65534).output().expect("sh").status.success(), "{script}");
        assert_eq!(mode(), 0o777, "{script}");
    }
    onode!("umount", &directory).succeeds();
}

#[test]
fn a_live_mount_tells_its_figures() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("figures");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    fs::write(directory.join("f"), vec![1; 50_000]).expect("write");
    let stat = onode!("stat", "--json", &directory).succeeds();
    assert!(stat.contains("\"written_bytes\": 50000"), "{stat}");
    let stat = onode!("stat", &directory).succeeds();
    assert!(stat.contains("\nnand\n") && stat.contains("write amplification"), "{stat}");
    assert!(stat.contains("objects with the most programs") && stat.contains("spread"), "{stat}");
    // An image that is mounted is asked through its mount.
    for target in [&directory, &image] {
        let map = onode!("map", target).succeeds();
        assert!(map.contains("J journal") && map.contains("+ open"), "{map}");
        let top = onode!("top", "--once", target).succeeds();
        assert!(top.contains("48.8 KiB written") && top.contains("memory of the device"), "{top}");
    }
    let listed = Command::new("ls").arg("-a").arg(&directory).output().expect("ls").stdout;
    assert_eq!(String::from_utf8_lossy(&listed), ".\n..\nf\n");
    let mut top = Running::start(&mut onode!("top", "--interval", "1", "--json", &directory));
    // The first frame has no rates, the second has.
    top.wait_for("\"page_reads\"");
    top.signal("INT");
    let frames = top.ends_well();
    assert!(frames.contains("\"rates\": null") && frames.contains("\"page_reads\""), "{frames}");
    onode!("umount", &directory).succeeds();
}

#[test]
fn volumes_in_memory_work_without_an_image() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("memory");
    let directory = place.directory("mnt");
    for spec in ["ram:size=32M", "flash:sim,size=32M,page=2K"] {
        let up = Running::up(&directory, Path::new(spec));
        fs::write(directory.join("f"), vec![3; 1 << 20]).expect("write");
        assert_eq!(fs::read(directory.join("f")).expect("read").len(), 1 << 20);
        up.signal("INT");
        up.ends_well();
    }
}

#[test]
fn a_full_volume_says_so_and_recovers() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("full");
    let (image, directory) = (place.path("disk.img"), place.directory("mnt"));
    onode!("mkfs", "--size", "16M", &image).succeeds();
    onode!("mount", &image, &directory).succeeds();
    let filled = fs::write(directory.join("big"), vec![9; 20 << 20]).expect_err("full");
    assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull);
    fs::remove_file(directory.join("big")).expect("unlink");
    fs::write(directory.join("small"), vec![1; 1 << 20]).expect("there is space again");
    onode!("umount", &directory).succeeds();
    onode!("check", &image).succeeds();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "patience is time, and there is none to be had")]
fn a_full_volume_says_so_at_once() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("atonce");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let file = File::create(directory.join("f")).expect("create");
    let piece = vec![1; 1 << 20];
    let mut end = 0;
    while let Ok(written) = file.write_at(&piece, end) {
        end += written as u64;
    }
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        let error = file.write_at(&piece, end).expect_err("full");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
    let took = begin.elapsed();
    assert!(took < std::time::Duration::from_secs(2), "20 writes that find no space take {took:?}");
    drop(file);
    fs::remove_file(directory.join("f")).expect("remove");
    fs::write(directory.join("g"), &piece).expect("there is space again at once");
    onode!("umount", &directory).succeeds();
}

#[test]
fn two_mounts_of_one_memory_read_no_old_bytes() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("twomounts");
    let spec = format!("scm:{},size=32M", place.path("heap").display());
    let (one, two) = (place.directory("one"), place.directory("two"));
    onode!("mkfs", &spec).succeeds();
    onode!("mount", &spec, &one).succeeds();
    onode!("mount", &spec, &two).succeeds();
    let writer = File::create(one.join("f")).expect("create");
    writer.write_at(&[0; 8], 0).expect("write");
    let reader = File::open(two.join("f")).expect("open");
    let mut times = std::collections::BTreeSet::new();
    for step in 1..=500_u64 {
        writer.write_at(&step.to_le_bytes(), 0).expect("write");
        let mut seen = [0; 8];
        reader.read_exact_at(&mut seen, 0).expect("read");
        assert_eq!(u64::from_le_bytes(seen), step);
        let found = fs::metadata(two.join("f")).expect("metadata");
        times.insert((found.mtime(), found.mtime_nsec()));
    }
    assert_eq!(times.len(), 500, "each change has a time of its own");
    drop((writer, reader));
    // Both append to one file, and nothing of either is lost.
    let mut appends =
        [&one, &two].map(|at| File::options().append(true).create(true).open(at.join("log")).expect("open"));
    for line in 0..100 {
        appends[line % 2].write_all(format!("{line:03}\n").as_bytes()).expect("append");
    }
    let expected: String = (0..100).map(|line| format!("{line:03}\n")).collect();
    assert_eq!(fs::read_to_string(one.join("log")).expect("read"), expected);
    drop(appends);
    onode!("umount", &one).succeeds();
    onode!("umount", &two).succeeds();
}

#[test]
fn mount_calls_the_helper() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("helper");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let helper = place.path("mount.onode");
    symlink(env!("CARGO_BIN_EXE_onode"), &helper).expect("symlink");
    let call = |arguments: &[&str]| {
        let mut command = Command::new(&helper);
        command.arg(&image).arg(&directory).args(arguments);
        command
    };
    let has = |option: &str| {
        let line = mount_line(&directory);
        line.split(' ').nth(5).expect("options").split(',').any(|one| one == option)
    };
    call(&["-o", "rw,noatime,nofail", "-n"]).succeeds();
    assert!(is_mounted(&directory));
    // mount(8) does not pass on what is usual, so what it does not say is so.
    assert!(has("noatime") && !has("nosuid") && !has("nodev"), "{}", mount_line(&directory));
    call(&["-o", "rw"]).fails(32);
    call(&["-o", "remount,ro"]).succeeds();
    assert!(fs::write(directory.join("g"), b"g").is_err());
    assert!(has("ro") && has("noatime") && !has("nosuid") && !has("nodev"), "{}", mount_line(&directory));
    call(&["-o", "remount,rw,nosuid"]).succeeds();
    assert!(has("nosuid") && !has("nodev"), "{}", mount_line(&directory));
    fs::write(directory.join("g"), b"g").expect("writable again");
    onode!("umount", &directory).succeeds();
    call(&["-f"]).succeeds();
    assert!(!is_mounted(&directory));
    call(&["-o", "colour"]).fails(1);
    Command::new(&helper).arg(&image).fails(1);
    // Through mount(8), which finds its helpers only in /sbin: in a view of the system of its own.
    let script = "mkdir -p $0/sbin $0/work && mount -t overlay overlay -o lowerdir=/sbin,upperdir=$0/sbin,workdir=$0/work \
                  /sbin && ln -s $1 /sbin/mount.onode && mount -t onode $2 $3 && echo hello >$3/f && umount $3";
    let view = place.directory("view");
    // The layers of an overlay cannot themselves lie on one: memory does.
    let tmpfs = Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&view).status();
    assert!(tmpfs.expect("mount").success());
    let mut through = Command::new("unshare");
    through.args(["-m", "sh", "-e", "-c", script]).arg(&view).arg(env!("CARGO_BIN_EXE_onode"));
    let output = through.arg(&image).arg(&directory).output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("overlay") {
        eprintln!("skipped the part with mount(8): no overlay file system here");
        return;
    }
    assert!(output.status.success(), "{said}");
    let mut got = onode();
    wait_until("the image is closed", || {
        let out = onode!("get", &image, "/f", place.path("out")).output().expect("get");
        out.status.success()
    });
    got.arg("check").arg(&image).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"hello\n");
}

#[test]
fn unmounting_waits_for_a_file_that_is_just_being_closed() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("mount-closing");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let file = fs::File::create(directory.join("open")).expect("a file");
    let closes = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(file);
    });
    onode!("umount", &directory).succeeds();
    closes.join().expect("no panic");
}
