//! Volumes that are made with files in them: what they hold, that they are the same bytes each
//! time, and that nothing is left of one that fails.

use crate::common::{self, Expect, Place, Running, is_clear, is_root};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const UUID: &str = "6b8f1c4e-0a3d-4f6e-9f5a-2d1c7b9e8a10";

fn does(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A tree with all kinds of files, made in this order of names or in the other one.
fn tree(place: &Place, name: &str, backwards: bool) -> PathBuf {
    let tree = place.directory(name);
    let mut numbers: Vec<u32> = (0..60).collect();
    if backwards {
        numbers.reverse();
    }
    fs::create_dir(tree.join("many")).expect("directory");
    for number in numbers {
        let content = vec![number as u8 + 1; 10 + 997 * number as usize];
        fs::write(tree.join(format!("many/{number}")), content).expect("write");
    }
    fs::write(tree.join("first"), b"content").expect("write");
    fs::hard_link(tree.join("first"), tree.join("second")).expect("link");
    symlink("first", tree.join("link")).expect("symlink");
    // With its holes here, and with zeros there.
    let sparse = fs::File::create(tree.join("sparse")).expect("create");
    if backwards {
        sparse.write_all_at(&vec![0; 5 << 20], 0).expect("write");
    }
    sparse.set_len(5 << 20).expect("set_len");
    for at in [4096, (3 << 20) - 2] {
        sparse.write_all_at(b"data", at).expect("write");
    }
    if is_root() {
        assert!(does(Command::new("mkfifo").arg(tree.join("pipe"))));
        assert!(does(Command::new("mknod").arg(tree.join("null")).args(["c", "1", "3"])));
        assert!(does(Command::new("chown").arg("1000:100").arg(tree.join("many/1"))));
        let _ = does(Command::new("setfattr").args(["-n", "user.colour", "-v", "red"]).arg(tree.join("first")));
    }
    let all = Command::new("find")
        .arg(&tree)
        .args(["-exec", "touch", "-h", "-d", "2001-02-03 04:05:06.7", "{}", "+"])
        .status();
    assert!(all.expect("find").success());
    tree
}

fn same(one: &Path, other: &Path, what: &str) {
    let (one, other) = (fs::read(one).expect("image"), fs::read(other).expect("image"));
    let differing = one.iter().zip(&other).filter(|(one, other)| one != other).count();
    assert!(one.len() == other.len() && differing == 0, "{what}: {differing} bytes differ");
}

#[test]
fn a_volume_holds_what_a_directory_held() {
    let place = Place::new("mkfs-from");
    let (tree, image) = (tree(&place, "tree", false), place.path("disk.img"));
    let made = onode!("mkfs", "--from", &tree, "--exclude", "/many/5?", "--label", "root", &image).succeeds();
    assert!(made.contains("label       root"), "{made}");
    onode!("check", &image).succeeds();
    onode!("get", "-a", &image, "/", place.path("back")).succeeds();
    let find = |tree: &Path, format: &str| {
        let mut find = Command::new("find");
        find.current_dir(tree).args([".", "!", "-path", "./many/5?", "-printf", format]);
        let said = find.output().expect("find");
        let mut lines: Vec<_> = String::from_utf8(said.stdout).expect("text").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let kept = "%P %y %m %U %G %T@ %l\n";
    assert_eq!(find(&place.path("back"), kept), find(&tree, kept));
    assert!(!place.path("back/many/55").exists());
    let back = |name: &str| fs::symlink_metadata(place.path("back").join(name)).expect("metadata");
    assert_eq!((back("first").ino(), back("first").nlink()), (back("second").ino(), 2));
    assert_eq!(fs::read(place.path("back/sparse")).expect("sparse"), fs::read(tree.join("sparse")).expect("sparse"));
    assert!(onode!("du", &image, "/sparse").succeeds().contains("8.0 KiB") || back("sparse").blocks() < 64);
    // As large as it needs: a quarter more than the files, and a little.
    let size = fs::metadata(&image).expect("image").len();
    assert!((5 << 20..10 << 20).contains(&size), "{size}");
    if is_root() {
        assert_eq!(back("null").rdev(), fs::metadata("/dev/null").expect("null").rdev());
        onode!("mkfs", "--force", "--from", &tree, "--owner", "7:8", &image).succeeds();
        let owners = onode!("--json", "stat", &image, "/many/1").succeeds();
        assert!(owners.contains("\"uid\": 7") && owners.contains("\"gid\": 8"), "{owners}");
        onode!("mkfs", "--force", "--from", &tree, "--squash-uids", &image).succeeds();
        assert!(onode!("--json", "stat", &image, "/many/1").succeeds().contains("\"uid\": 0"));
    }
}

#[test]
fn the_same_files_make_the_same_bytes() {
    let place = Place::new("mkfs-same");
    let trees = [tree(&place, "one", false), tree(&place, "elsewhere", true)];
    let images = [place.directory("a"), place.directory("b")];
    let scm = |folder: &Path| vec![format!("scm:{}/m,size=32M", folder.display())];
    let tier = |folder: &Path| vec![format!("tier:{0}/fast,{0}/big,size=64M,fast-size=16M", folder.display())];
    let flash = |folder: &Path| vec![folder.join("f").display().to_string()];
    let parity = |folder: &Path| vec!["--parity=1".into(), folder.join("p").display().to_string()];
    let pool = |folder: &Path| {
        let (one, two) = (folder.join("x"), folder.join("y"));
        vec![format!("pool:flash:{},size=32M+scm:{},size=32M", one.display(), two.display())]
    };
    type Kind<'a> = (&'a str, &'a dyn Fn(&Path) -> Vec<String>, &'a [&'a str]);
    let kinds: [Kind<'_>; 5] = [
        ("flash", &flash, &["f"]),
        ("parity", &parity, &["p"]),
        ("scm", &scm, &["m"]),
        ("tier", &tier, &["fast", "big"]),
        ("pool", &pool, &["x", "y"]),
    ];
    for (what, spec, files) in kinds {
        for (tree, folder) in trees.iter().zip(&images) {
            let mut command = onode!("mkfs", "--from", tree, "--uuid", UUID);
            command.args(spec(folder)).env("SOURCE_DATE_EPOCH", "1700000000").succeeds();
            let spec = spec(folder);
            let last = spec.last().expect("a spec");
            onode!("check", last).succeeds();
            assert!(onode!("info", last).succeeds().contains(UUID) || what == "pool", "{what}");
        }
        for file in files {
            same(&images[0].join(file), &images[1].join(file), what);
        }
    }
    // Another number is another volume, and so is another time.
    onode!("mkfs", "--uuid", UUID, "--time", "1700000000", "--size", "8M", images[0].join("e")).succeeds();
    onode!("mkfs", "--uuid", UUID, "--time", "1700000000", "--size", "8M", images[1].join("e")).succeeds();
    same(&images[0].join("e"), &images[1].join("e"), "an empty volume");
    onode!("mkfs", "--force", "--uuid", UUID, "--time", "1700000001", "--size", "8M", images[1].join("e")).succeeds();
    assert!(fs::read(images[0].join("e")).expect("image") != fs::read(images[1].join("e")).expect("image"));
}

#[test]
fn nothing_is_left_of_a_volume_that_cannot_be_made() {
    let place = Place::new("mkfs-fails");
    let tree = place.directory("tree");
    for number in 0..50 {
        fs::write(tree.join(number.to_string()), vec![number; 1 << 20]).expect("write");
    }
    let images = place.directory("images");
    let image = images.join("disk.img");
    let is_empty = || fs::read_dir(&images).expect("a list").count() == 0;
    is_clear(&onode!("mkfs", "--from", &tree, "--size", "16M", &image).fails(15), "no space left");
    assert!(is_empty());
    onode!("mkfs", "--from", place.path("nothing"), &image).fails(20);
    is_clear(&onode!("mkfs", "--from", place.file("f", b""), &image).fails(2), "it is no directory");
    is_clear(&onode!("mkfs", "--from", &tree, tree.join("disk.img")).fails(2), "hold itself");
    is_clear(&onode!("mkfs", "--from", &tree, "--owner", "nobody", &image).fails(2), "--owner `nobody`");
    is_clear(&onode!("mkfs", "--from", &tree, "--exclude", "[", &image).fails(2), "--exclude `[`");
    is_clear(&onode!("mkfs", "--uuid", "6b8f", &image).fails(2), "--uuid `6b8f`");
    onode!("mkfs", "--owner", "root", &image).fails(2);
    let error = onode!("mkfs", &image).env("SOURCE_DATE_EPOCH", "yesterday").fails(2);
    is_clear(&error, "SOURCE_DATE_EPOCH");
    assert!(is_empty() && fs::read_dir(&tree).expect("a list").count() == 50);
    let running = Running::start(&mut onode!("mkfs", "--from", &tree, "--size", "256M", &image));
    let begun = || images.join(".disk.img.unfinished").exists();
    common::wait_until("it began", begun);
    running.signal("INT");
    let output = running.end();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        eprintln!("skipped: it was done before it could be interrupted");
    } else {
        assert_eq!(output.status.code(), Some(1), "{error}");
        is_clear(&error, "interrupted; no image is left");
        assert!(is_empty());
    }
}

#[test]
fn an_encrypted_volume_is_filled_too() {
    let place = Place::new("mkfs-encrypted");
    let (tree, image) = (tree(&place, "tree", false), place.path("disk.img"));
    let key = place.file("key", &[7; 64]);
    onode!("mkfs", "--encrypt", "--key-file", &key, "--from", &tree, &image).succeeds();
    assert_eq!(onode!("--key-file", &key, "cat", &image, "/second").succeeds(), "content");
    onode!("cat", &image, "/second").fails(24);
}
