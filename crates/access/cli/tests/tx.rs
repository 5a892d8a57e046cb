//! Transactions on a mount: what a shell does with them, and what a kill in the middle leaves.

use crate::common::{Expect, Place, Running, has_fuse, is_root, unmount};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// A number and a directory.
fn begin(mount: &Path) -> (String, PathBuf) {
    let told = onode!("tx", "begin", mount).succeeds();
    let (id, directory) = told.trim().split_once(' ').expect("number and directory");
    (id.to_owned(), PathBuf::from(directory))
}

#[test]
fn a_command_happens_wholly_or_not_at_all() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tx-run");
    let (image, mount) = (place.image("disk.img"), place.directory("mnt"));
    let _up = Running::up(&mount, &image);
    fs::create_dir(mount.join("d")).expect("mkdir");
    fs::write(mount.join("d/a"), "one").expect("write");
    let run = |script: &str| onode!("tx", "run", mount.join("d"), "--", "sh", "-c", script);
    let script = "test $PWD = $ONODE_TX_DIR/d && echo two > a && echo new > b && cat ../d/a && rm a && mv b c";
    assert_eq!(run(script).succeeds(), "two\n");
    assert!(!mount.join("d/a").exists() && !mount.join("d/b").exists());
    assert_eq!(fs::read(mount.join("d/c")).expect("read"), b"new\n");
    // Whatever it ends with is passed on, and nothing happened.
    run("echo lost > c; exit 7").fails(7);
    run("echo lost > c; kill -9 $$").fails(137);
    assert_eq!(fs::read(mount.join("d/c")).expect("read"), b"new\n");
    is_named(&onode!("tx", "run", &mount, "--", "/no/such/command").fails(20), "/no/such/command");
    assert_eq!(onode!("tx", "list", &mount).succeeds(), "no transaction is open\n");
    // One larger than any transaction of the device.
    run("for i in 1 2 3 4; do head -c 5000000 /dev/zero | tr '\\0' x > big$i; done; mkdir e; ln c e/link").succeeds();
    assert_eq!(fs::metadata(mount.join("d/big4")).expect("big").len(), 5_000_000);
    assert_eq!(fs::read(mount.join("d/e/link")).expect("read"), b"new\n");
    unmount(&mount);
    onode!("check", &image).succeeds();
}

fn is_named(error: &str, what: &str) {
    assert!(error.contains(what), "{what} is not named: {error}");
}

#[test]
fn a_conflict_has_a_code_of_its_own_and_can_be_tried_again() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tx-conflict");
    let (image, mount) = (place.image("disk.img"), place.directory("mnt"));
    let _up = Running::up(&mount, &image);
    let count = mount.join("count");
    fs::write(&count, "0").expect("write");
    let (id, inside) = begin(&mount);
    fs::write(inside.join("count"), "inside").expect("write");
    fs::write(&count, "1").expect("write");
    let error = onode!("tx", "commit", &mount, &id).fails(25);
    is_named(&error, "/count");
    let told = onode!("--json", "tx", "list", &mount).succeeds();
    is_named(&told, &format!("\"id\": {id}"));
    onode!("tx", "abort", &mount, &id).succeeds();
    is_named(&onode!("tx", "commit", &mount, &id).fails(20), "it was aborted");
    assert!(fs::read(inside.join("count")).is_err());
    // The first two runs meet somebody else, the third does not.
    let script = format!(
        "n=$(cat count); echo -n $((n + 10)) > count; \
         if [ $n -lt 3 ]; then echo -n $((n + 1)) > {}; fi",
        count.display()
    );
    onode!("tx", "run", "--retry", "0", &mount, "--", "sh", "-c", &script).fails(25);
    assert_eq!(fs::read(&count).expect("read"), b"2");
    onode!("tx", "run", "--retry", "5", &mount, "--", "sh", "-c", &script).succeeds();
    assert_eq!(fs::read(&count).expect("read"), b"13");
    unmount(&mount);
}

#[test]
fn nothing_crosses_the_border_and_others_stay_out() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("tx-border");
    let (image, mount) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", "-o", "allow_other", &image, &mount).succeeds();
    fs::write(mount.join("a"), "a").expect("write");
    fs::set_permissions(&mount, fs::Permissions::from_mode(0o777)).expect("chmod");
    let (id, inside) = begin(&mount);
    let crosses = |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(18), "{error}");
    crosses(fs::rename(mount.join("a"), inside.join("b")).expect_err("across"));
    crosses(fs::hard_link(inside.join("a"), mount.join("b")).expect_err("across"));
    assert!(fs::create_dir(mount.join(".onode/tx/77")).is_err() && fs::read_dir(mount.join(".onode/tx/77")).is_err());
    let names: Vec<_> =
        fs::read_dir(mount.join(".onode/tx")).expect("list").map(|one| one.expect("one").file_name()).collect();
    assert_eq!(names, [id.as_str()]);
    // Somebody else may neither look into it nor end it, and has one of his own.
    let as_nobody = |command: &mut Command| command.uid(65534).gid(65534).output().expect("it starts");
    assert!(!as_nobody(Command::new("ls").arg(&inside)).status.success());
    let refused = as_nobody(&mut onode!("tx", "commit", &mount, &id));
    assert_eq!(refused.status.code(), Some(22), "{}", String::from_utf8_lossy(&refused.stderr));
    let script = "echo mine > mine && ! echo x 2>/dev/null > a";
    let own = as_nobody(&mut onode!("tx", "run", &mount, "--", "sh", "-c", script));
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
    assert_eq!(fs::read(mount.join("mine")).expect("read"), b"mine\n");
    onode!("tx", "abort", &mount, &id).succeeds();
    // One that nobody uses is over.
    let told = onode!("tx", "begin", "--expiry", "1", &mount).succeeds();
    sleep(Duration::from_millis(3500));
    is_named(&onode!("tx", "commit", &mount, told.split(' ').next().expect("id")).fails(20), "nobody used it for 1 s");
    unmount(&mount);
    is_named(&onode!("tx", "begin", &image).fails(17), "not mounted");
    for options in ["ro", "writeback"] {
        onode!("mount", "-o", options, &image, &mount).succeeds();
        onode!("tx", "begin", &mount).fails(14);
        unmount(&mount);
    }
}

/// Replaces two files of some size and makes another one: more than the device takes at once.
const SCRIPT: &str = "for f in one two three; do head -c 6000000 /dev/zero | tr '\\0' n > $f; done";

#[test]
fn a_kill_in_the_middle_of_a_commit_leaves_all_or_nothing() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tx-kill");
    let (image, mount) = (place.image("disk.img"), place.directory("mnt"));
    let (mut before, mut after) = (0, 0);
    for round in 0..12 {
        let up = Running::up(&mount, &image);
        let _ = fs::remove_file(mount.join("three"));
        for name in ["one", "two"] {
            fs::write(mount.join(name), vec![b'o'; 3_000_000]).expect("write");
            fs::File::open(mount.join(name)).expect("open").sync_all().expect("sync");
        }
        let (id, inside) = begin(&mount);
        assert!(Command::new("sh").args(["-c", SCRIPT]).current_dir(&inside).status().expect("sh").success());
        let mut commit =
            onode!("tx", "commit", &mount, &id).stderr(std::process::Stdio::null()).spawn().expect("it starts");
        sleep(Duration::from_millis(round * 12));
        up.signal("KILL");
        let returned = commit.wait().expect("it ends").success();
        drop(up);
        let _ = Command::new("umount").arg("-l").arg(&mount).status();
        onode!("check", &image).succeeds();
        let up = Running::up(&mount, &image);
        let is_new = |name: &str| match fs::read(mount.join(name)) {
            Ok(content) if content.len() == 6_000_000 => content.iter().all(|byte| *byte == b'n'),
            Ok(content) => {
                assert!(content.len() == 3_000_000 && content.iter().all(|byte| *byte == b'o'), "{name} is mixed");
                false
            }
            Err(_) => false,
        };
        let all = ["one", "two", "three"].map(is_new);
        assert!(all == [true; 3] || all == [false; 3], "round {round}: {all:?}");
        assert!(all == [true; 3] || !returned, "round {round}: a commit that returned is gone");
        if all[0] {
            after += 1
        } else {
            before += 1
        }
        assert_eq!(mount.join("three").exists(), all[2]);
        assert_eq!(onode!("tx", "list", &mount).succeeds(), "no transaction is open\n");
        unmount(&mount);
        up.ends_well();
    }
    eprintln!("{before} kills before the commit point, {after} after it");
}
