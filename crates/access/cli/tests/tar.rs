//! Tar archives: what GNU tar writes comes into an image, GNU tar reads what comes out, and hostile
//! archives touch nothing outside of their directory.

use crate::common::{Expect, Place, bytes, has_fuse, is_clear, is_root, unmount};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tar::{EntryType, Header};

/// Runs a program that is there; whether it did what it was told.
fn does(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn gnu_tar() -> Command {
    Command::new("tar")
}

/// Runs `onode` with these bytes as standard input; the exit code and what it told.
pub fn fed(command: &mut Command, input: &[u8]) -> (i32, String) {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // Who refuses the beginning does not read the rest.
    let _ = pipe.write_all(input);
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains("panicked") && !told.contains("internal error"), "{told}");
    (output.status.code().expect("an exit code"), told)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// One line for each file below: all that an archive keeps of it.
fn listed(tree: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut next = vec![tree.to_owned()];
    while let Some(path) = next.pop() {
        let found = fs::symlink_metadata(&path).expect("metadata");
        let links = if found.is_dir() { 0 } else { found.nlink() };
        let below = path.strip_prefix(tree).expect("below").display();
        let (mode, size) = (found.mode(), if found.is_dir() { 0 } else { found.len() });
        let time = (found.mtime(), found.mtime_nsec());
        let content = if found.is_file() { fs::read(&path).expect("content") } else { Vec::new() };
        let sum = content.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let link = fs::read_link(&path).unwrap_or_default();
        let (uid, gid, device) = (found.uid(), found.gid(), found.rdev());
        lines.push(format!("{below} {mode:o} {uid} {gid} {links} {size} {device} {time:?} {sum:x} {}", link.display()));
        if found.is_dir() {
            next.extend(fs::read_dir(&path).expect("a list").map(|entry| entry.expect("an entry").path()));
        }
    }
    lines.sort();
    lines
}

/// A tree with everything that an archive may hold.
fn everything(place: &Place) -> PathBuf {
    let tree = place.directory("tree");
    let long = "long".repeat(50);
    place.directory(&format!("tree/{long}/{long}"));
    fs::write(tree.join(format!("{long}/{long}/f")), b"deep").expect("write");
    symlink(format!("{long}/{long}/f"), tree.join("to-long")).expect("symlink");
    fs::write(tree.join("a"), b"content").expect("write");
    fs::hard_link(tree.join("a"), tree.join("b")).expect("link");
    symlink("/nowhere", tree.join("absolute")).expect("symlink");
    fs::write(tree.join("empty"), b"").expect("write");
    let sparse = fs::File::create(tree.join("sparse")).expect("create");
    sparse.set_len(40 << 20).expect("set_len");
    for at in [5, 9 << 20, 20 << 20, 30 << 20] {
        sparse.write_all_at(b"data", at).expect("write");
    }
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\nname");
    fs::write(tree.join(odd), vec![7; 100_000]).expect("write");
    let sub = place.directory("tree/sub");
    fs::write(sub.join("x"), b"x").expect("write");
    if is_root() {
        assert!(does(Command::new("mknod").arg(tree.join("null")).args(["c", "1", "3"])));
        assert!(does(Command::new("mknod").arg(tree.join("block")).args(["b", "300", "70000"])));
        assert!(does(Command::new("mkfifo").arg(tree.join("pipe"))));
        assert!(does(Command::new("chown").arg("3000000:70000").arg(tree.join("empty"))));
        assert!(does(Command::new("chmod").arg("4755").arg(tree.join("a"))));
    }
    for (name, time) in
        [("empty", "1960-01-01 00:00:00.25"), ("a", "2300-01-01 00:00:00.123456789"), ("sub", "2001-02-03")]
    {
        assert!(does(Command::new("touch").args(["-d", time]).arg(tree.join(name))));
    }
    tree
}

#[test]
fn what_gnu_tar_writes_and_reads_is_the_same() {
    if !does(gnu_tar().arg("--version")) || !is_root() {
        eprintln!("skipped: no tar, or not root");
        return;
    }
    let place = Place::new("tar");
    let (image, tree) = (place.image("disk.img"), everything(&place));
    let set = |name: &str, value: &str, file: &str| {
        does(Command::new("setfattr").args(["-n", name, "-v", value]).arg(tree.join(file)))
    };
    // A value that looks like a record, and a name with what separates them.
    let has_attributes = set("user.colour", "9 path=x\n", "a") && set("user.a=b%c", "red", "sub");
    let has_acl = does(Command::new("setfacl").args(["-m", "u:1000:rw,g:10:r"]).arg(tree.join("a")))
        && does(Command::new("setfacl").args(["-d", "-m", "u:10:rwx"]).arg(tree.join("sub")));
    assert!(does(Command::new("touch").args(["-d", "2001-02-03"]).arg(tree.join("sub"))));
    let wanted = listed(&tree);
    let attributes = |tree: &Path| {
        let said = Command::new("getfattr").args(["-hRd", "-m", "-", "."]).current_dir(tree).output();
        said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
    };
    for format in [
        &["--format=posix", "--sparse"][..],
        &["--format=posix", "--sparse", "--sparse-version=0.1"],
        &["--format=posix", "--sparse", "--sparse-version=0.0"],
        &["--format=posix"],
    ] {
        let (archive, ours) = (place.path("x.tar"), place.path("y.tar"));
        let all = ["--xattrs", "--xattrs-include=*"];
        assert!(does(gnu_tar().arg("-C").arg(&tree).arg("-cf").arg(&archive).args(format).args(all).arg(".")));
        onode!("put", "--tar", "-q", &image, &archive, "/in").succeeds();
        // Once by way of an archive of ours, once by way of the files.
        onode!("get", "--tar", "-q", &image, "/in", &ours).succeeds();
        assert!(fs::metadata(&ours).expect("an archive").len() < 12 << 20, "the holes were written");
        let back = place.directory("back");
        assert!(does(gnu_tar().arg("-C").arg(&back).arg("-xpf").arg(&ours).args(all)));
        onode!("get", "-a", "-q", &image, "/in", place.path("files")).succeeds();
        for found in [&back, &place.path("files")] {
            assert_eq!(listed(found), wanted, "{format:?}");
            if has_attributes && has_acl {
                assert_eq!(attributes(found), attributes(&tree), "{format:?}");
            }
            fs::remove_dir_all(found).expect("removed");
        }
        onode!("rm", "-r", &image, "/in").succeeds();
    }
    // Its own format has no attributes and no parts of seconds.
    let archive = place.path("x.tar");
    assert!(does(gnu_tar().arg("-C").arg(&tree).arg("-cf").arg(&archive).args(["--format=gnu", "--sparse", "."])));
    onode!("put", "--tar", &image, &archive, "/in").succeeds();
    onode!("get", "-a", "-q", &image, "/in", place.path("files")).succeeds();
    let without_time = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().map(|line| line.split_once(" (").map_or(line.clone(), |(before, _)| before.into())).collect()
    };
    assert_eq!(without_time(listed(&place.path("files"))), without_time(wanted));
    onode!("check", &image).succeeds();
}

/// Files whose content ends anywhere, as a mount makes them, and files behind them: GNU tar starts
/// each range of content with a block.
#[test]
fn gnu_tar_unpacks_files_with_holes_of_odd_lengths() {
    if !does(gnu_tar().arg("--version")) || !has_fuse() {
        eprintln!("skipped: no tar, or no mounts");
        return;
    }
    let place = Place::new("tar-odd");
    let (image, mount, archive) = (place.image("disk.img"), place.directory("mnt"), place.path("x.tar"));
    onode!("mount", &image, &mount).succeeds();
    let ends: [&[(u64, usize)]; 4] =
        [&[(0, 1000), (10_000, 4)], &[(1, 1), (50_001, 777), (99_998, 2)], &[(511, 2), (70_000, 5000)], &[(3, 70_001)]];
    for (number, ranges) in (1..).zip(ends) {
        let file = fs::File::create(mount.join(format!("holes{number}"))).expect("a file");
        file.set_len(100_000).expect("a size");
        for (at, length) in ranges {
            file.write_all_at(&bytes(number, *length), *at).expect("content");
        }
        fs::write(mount.join(format!("holes{number}.after")), bytes(number + 9, 10)).expect("a file");
    }
    let content = |root: &Path| {
        let files = fs::read_dir(root).expect("a list").map(|entry| entry.expect("an entry").path());
        let mut all: Vec<_> =
            files.map(|file| (file.file_name().map(ToOwned::to_owned), fs::read(&file).ok())).collect();
        all.sort();
        all
    };
    let wanted = content(&mount);
    assert_eq!(wanted.len(), 8);
    // What GNU tar makes of the same holes.
    let theirs = place.path("theirs.tar");
    assert!(does(gnu_tar().arg("-C").arg(&mount).arg("-cf").arg(&theirs).args(["--format=posix", "--sparse", "."])));
    unmount(&mount);
    onode!("get", "--tar", &image, "/", &archive).succeeds();
    assert!(fs::metadata(&archive).expect("an archive").len() < 200_000, "the holes were written");
    let (out, back) = (place.directory("out"), place.path("back"));
    assert!(does(gnu_tar().arg("-C").arg(&out).arg("-xf").arg(&archive)), "GNU tar refuses the archive");
    assert!(content(&out) == wanted, "GNU tar unpacks something else");
    assert!(does(gnu_tar().arg("-tf").arg(&archive)));
    for made in [&archive, &theirs] {
        let other = place.path("other.img");
        onode!("mkfs", "--force", "--size", "16M", &other).succeeds();
        onode!("put", "--tar", &other, made, "/in").succeeds();
        onode!("get", "-r", &other, "/in", &back).succeeds();
        assert!(content(&back) == wanted, "{} is unpacked as something else", made.display());
        fs::remove_dir_all(&back).expect("removed");
    }
}

#[test]
fn a_stream_goes_in_and_comes_out() {
    let place = Place::new("tar-stream");
    let (one, two) = (place.image("one.img"), place.image("two.img"));
    for (name, content) in [("a.txt", "a"), ("b.tmp", "b"), ("c.txt", "c")] {
        onode!("put", &one, place.file("f", content.as_bytes()), format!("/{name}")).succeeds();
    }
    onode!("mkdir", &one, "/d").succeeds();
    onode!("cp", format!("{}:/a.txt", one.display()), format!("{}:/d/e.tmp", one.display())).succeeds();
    let archive = onode!("get", "--tar", "--exclude", "b.*", &one, "/", "-").output().expect("it runs").stdout;
    assert_eq!(archive.len() % 10240, 0);
    let (code, told) = fed(&mut onode!("--json", "put", "--tar", "--exclude", "/d/*.tmp", &two, "-", "/x/y"), &archive);
    let report = json(&told);
    assert_eq!(
        (code, &report["files"], &report["excluded"], &report["directories"]),
        (0, &2.into(), &1.into(), &2.into())
    );
    assert_eq!(onode!("find", &two, "/x/y").succeeds(), "/x/y\n/x/y/a.txt\n/x/y/c.txt\n/x/y/d\n");
    // What is there stays if that is wished, and is replaced else, also if it is a link.
    onode!("put", &two, place.file("f", b"mine"), "/x/y/a.txt").succeeds();
    let (_, told) = fed(&mut onode!("put", "-n", "--tar", &two, "-", "/x/y"), &archive);
    assert!(told.contains("2 skipped"), "{told}");
    assert_eq!(onode!("cat", &two, "/x/y/a.txt").succeeds(), "mine");
    onode!("rm", &two, "/x/y/c.txt").succeeds();
    onode!("put", &two, place.file("f", b"outside"), "/outside").succeeds();
    onode!("ln", &two, "/outside", "/x/y/c.txt").succeeds();
    onode!("ln", "-s", &two, "/outside", "/x/y/e").succeeds();
    let before = fs::read(&two).expect("image");
    let (code, told) = fed(&mut onode!("put", "--dry-run", "--tar", &two, "-", "/x/y"), &archive);
    assert!(code == 0 && told.contains("would copy 3 files") && told.contains("would unpack"), "{told}");
    assert!(fs::read(&two).expect("image") == before, "a dry run changed the image");
    assert_eq!(fed(&mut onode!("put", "--tar", &two, "-", "/x/y"), &archive).0, 0);
    assert_eq!(onode!("cat", &two, "/x/y/a.txt", "/x/y/c.txt", "/outside").succeeds(), "acoutside");
    // Several that match have their names, and a file has its own.
    let named = onode!("get", "--tar", &one, "/[ad]*", "-").output().expect("it runs").stdout;
    assert_eq!(fed(&mut onode!("put", "--tar", &two, "-", "/n"), &named).0, 0);
    assert_eq!(onode!("find", &two, "/n", "--type", "f").succeeds(), "/n/a.txt\n/n/d/e.tmp\n");
    is_clear(&onode!("get", "--tar", &one, "/").fails(2), "where to");
    is_clear(&onode!("get", "--tar", "--resume", &one, "/", "-").fails(2), "an archive");
    is_clear(&onode!("put", "--tar", "--resume", &one, "-").fails(2), "an archive");
    onode!("get", "--tar", &one, "/nothing", place.path("none.tar")).fails(20);
    assert!(!place.path("none.tar").exists() && !place.path(".none.tar.unfinished").exists());
    onode!("put", "--tar", &one, place.path("none.tar")).fails(20);
}

/// A member, as it is said to be.
fn member(name: &[u8], kind: EntryType, link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name);
    old.linkname[..link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn ended(mut archive: Vec<u8>) -> Vec<u8> {
    archive.resize(archive.len() + 1024, 0);
    archive
}

#[test]
fn hostile_archives_stay_within_their_directory() {
    let place = Place::new("tar-hostile");
    let image = place.image("disk.img");
    onode!("mkdir", &image, "/in", "/secret").succeeds();
    onode!("put", &image, place.file("f", b"secret"), "/secret/f").succeeds();
    onode!("ln", "-s", &image, "/secret", "/out").succeeds();
    let outside = || onode!("find", &image, "/secret").succeeds() + &onode!("cat", &image, "/secret/f").succeeds();
    let before = outside();
    let good = member(b"good", EntryType::Regular, b"", b"good");
    let file = |name: &[u8]| member(name, EntryType::Regular, b"", b"evil");
    let record = |text: &str| member(b"x", EntryType::XHeader, b"", text.as_bytes());
    for (what, archive, code, why) in [
        ("dots", file(b"../secret/f"), 1, "`..`"),
        ("dots within", file(b"a/../../secret/f"), 1, "`..`"),
        ("an absolute name", file(b"/secret/f"), 1, "absolute"),
        ("dots in a record", [record("23 path=../../secret/f\n"), file(b"x")].concat(), 1, "`..`"),
        (
            "through a link",
            [member(b"l", EntryType::Symlink, b"../secret", b""), file(b"l/f")].concat(),
            21,
            "symbolic link",
        ),
        (
            "a directory through a link",
            [member(b"l", EntryType::Symlink, b"/secret", b""), member(b"l/d/", EntryType::Directory, b"", b"")]
                .concat(),
            21,
            "symbolic link",
        ),
        (
            "a directory in the place of a link",
            [member(b"l", EntryType::Symlink, b"/secret", b""), member(b"l/", EntryType::Directory, b"", b"")].concat(),
            21,
            "symbolic link",
        ),
        ("a hard link out", member(b"h", EntryType::Link, b"../secret/f", b""), 1, "`..`"),
        ("an absolute hard link", member(b"h", EntryType::Link, b"/secret/f", b""), 1, "absolute"),
        ("a hard link to nothing", member(b"h", EntryType::Link, b"nothing", b""), 1, "no file that is there"),
        (
            "a hard link through a link",
            [member(b"l", EntryType::Symlink, b"/secret", b""), member(b"h", EntryType::Link, b"l/f", b"")].concat(),
            1,
            "no file that is there",
        ),
        ("a file in the place of the target", file(b"."), 1, "place of the target"),
        ("a wrong record", [record("99 path=x\n"), file(b"x")].concat(), 11, "no record"),
        ("a wrong header", vec![b'x'; 512], 11, "no header"),
        (
            "a wrong map",
            [record("26 GNU.sparse.map=9,9,0,9\n22 GNU.sparse.size=20\n"), file(b"x")].concat(),
            11,
            "map of a file with holes",
        ),
        (
            "a huge record",
            {
                let mut header = Header::from_byte_slice(&record("")).clone();
                header.set_size(1 << 40);
                header.set_cksum();
                header.as_bytes().to_vec()
            },
            11,
            "too long",
        ),
    ] {
        onode!("rm", "-r", &image, "/in").succeeds();
        onode!("mkdir", &image, "/in").succeeds();
        let archive = ended([good.clone(), archive].concat());
        let (found, told) = fed(&mut onode!("put", "--tar", &image, "-", "/in"), &archive);
        assert_eq!(found, code, "{what}: {told}");
        assert!(told.contains(why) && told.contains("copied 1 file") && told.contains("\nhint: "), "{what}: {told}");
        assert_eq!(onode!("cat", &image, "/in/good").succeeds(), "good", "{what}");
        assert_eq!(outside(), before, "{what}");
    }
    // Nor does a link lead the target itself elsewhere.
    let (code, told) = fed(&mut onode!("put", "--tar", &image, "-", "/out/x"), &ended(good.clone()));
    assert!(code != 0 && told.contains("symbolic link"), "{told}");
    assert_eq!(outside(), before);
    onode!("check", &image).succeeds();
}

#[test]
fn an_interrupt_tells_what_was_unpacked() {
    let place = Place::new("tar-interrupt");
    let image = place.image("disk.img");
    let mut command = onode!("put", "--tar", &image, "-", "/in");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let content = vec![b'x'; 3 << 20];
    let members = [&b"a"[..], b"b"].map(|name| member(name, EntryType::Regular, b"", &content)).concat();
    // The second is not complete; more than a pipe holds of it was taken.
    pipe.write_all(&members[..5 << 20]).expect("the first of it");
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("it ends");
    drop(pipe);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    is_clear(&told, "interrupted; copied 1 file, 3.0 MiB before it, which stays");
    assert!(onode!("cat", &image, "/in/a").output().expect("it runs").stdout == content);
    onode!("check", &image).succeeds();
}

#[test]
fn what_is_no_archive_or_only_a_part_is_told() {
    let place = Place::new("tar-damaged");
    let image = place.image("disk.img");
    let content = vec![b'x'; 5000];
    let whole =
        ended([member(b"a", EntryType::Regular, b"", b"a"), member(b"b", EntryType::Regular, b"", &content)].concat());
    for (length, why) in [
        (whole.len() - 1024, "its end is missing"),
        (whole.len() - 2000, "cut off within a file"),
        (1024 + 100, "its end is missing"),
        (1024, "its end is missing"),
    ] {
        let (code, told) = fed(&mut onode!("put", "--tar", &image, "-", "/in"), &whole[..length]);
        assert!(code == 11 && told.contains(why) && told.contains("before it, which stays"), "{length}: {told}");
        assert_eq!(onode!("cat", &image, "/in/a").succeeds(), "a");
    }
    for (bytes, code, why) in [
        (&b""[..], 11, "it is empty"),
        (b"hello", 2, "no tar archive"),
        (&[b'x'; 4096], 2, "no tar archive"),
        (b"\x1f\x8b\x08 and so on", 2, "compressed with gzip"),
    ] {
        let (found, told) = fed(&mut onode!("put", "--tar", &image, "-", "/in"), bytes);
        assert!(found == code && told.contains(why) && told.contains("\nhint: "), "{told}");
    }
    let error = onode!("put", "--tar", &image, place.directory("d")).fails(1);
    is_clear(&error, "d");
    // Whatever its bytes are, it is told and no more: one wrong byte after the other.
    for at in (0..1536).step_by(7) {
        let mut broken = whole.clone();
        broken[at] ^= 0x55;
        let (code, told) = fed(&mut onode!("put", "--tar", &image, "-", "/broken"), &broken);
        assert!([0, 1, 2, 11, 21].contains(&code), "{at}: {code} {told}");
    }
    onode!("check", &image).succeeds();
}
