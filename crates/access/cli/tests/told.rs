//! What is wrong is told: by the end of a mount, its log, its metrics, its hook, and by `onode
//! health`.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, is_mounted, is_root, unmount, wait_until};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of the host that is soon full; gone at the end with the place it is in.
struct Small {
    place: Place,
    directory: PathBuf,
    image: PathBuf,
    mnt: PathBuf,
}

impl Small {
    /// `None`, with a word why, where it cannot be had.
    fn new(name: &str) -> Option<Self> {
        if !has_fuse() || !is_root() {
            return None;
        }
        let place = Place::new(name);
        let (directory, mnt) = (place.directory("host"), place.directory("mnt"));
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8M", "tmpfs"]).arg(&directory).status();
        assert!(made.expect("mount").success());
        let image = directory.join("disk.img");
        onode!("mkfs", "--size", "64M", &image).succeeds();
        Some(Self { place, directory, image, mnt })
    }

    /// Fills the host, and then writes what cannot be saved.
    fn lose_something(&self) {
        let mut other = fs::File::create(self.directory.join("other")).expect("create");
        while other.write_all(&[1; 64 << 10]).is_ok() {}
        // It is taken by the cache, or refused if the device has seen by then that the host is
        // full.
        let _ = fs::write(self.mnt.join("lost"), noise(1 << 20));
    }

    fn make_room(&self) {
        fs::remove_file(self.directory.join("other")).expect("remove");
    }
}

fn noise(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn umount_tells_that_not_everything_was_saved() {
    let Some(small) = Small::new("notsaved") else { return };
    onode!("mount", &small.image, &small.mnt).succeeds();
    fs::write(small.mnt.join("important"), b"content").expect("write");
    small.lose_something();
    let error = onode!("umount", &small.mnt).fails(16);
    assert!(error.starts_with("onode: cannot ") && error.contains("no space left on the host"), "{error}");
    assert!(error.contains("\nhint: "), "{error}");
    assert!(!is_mounted(&small.mnt));
    // Whoever comes next hears of it, too, until the volume is in use again.
    let told = |text: &str| assert!(text.contains("could not save everything"), "{text}");
    small.make_room();
    told(&onode!("check", &small.image).succeeds());
    let health = onode!("health", &small.image).output().expect("it runs");
    assert_eq!(health.status.code(), Some(5));
    told(&String::from_utf8_lossy(&health.stdout));
    let mount = onode!("mount", &small.image, &small.mnt).output().expect("it runs");
    assert_eq!(mount.status.code(), Some(0));
    told(&String::from_utf8_lossy(&mount.stderr));
    let health = onode!("health", &small.mnt).output().expect("it runs");
    assert_eq!(health.status.code(), Some(3), "it happened and is over");
    onode!("umount", &small.mnt).succeeds();
    assert_eq!(onode!("health", &small.image).succeeds().lines().count(), 1);
}

/// The kernel passes on a number, which says neither that the host is full nor what to do.
#[test]
fn commands_say_why_a_volume_accepts_no_more_changes() {
    let Some(small) = Small::new("changeless") else { return };
    onode!("mount", &small.image, &small.mnt).succeeds();
    onode!("snapshot", "create", &small.mnt, "before").succeeds();
    small.lose_something();
    wait_until("the volume is read-only", || {
        let health = onode!("health", &small.mnt).output().expect("it runs");
        String::from_utf8_lossy(&health.stdout).contains("read-only:")
    });
    let refused: [&[&str]; 6] = [
        &["snapshot", "create", "MNT", "monday"],
        &["snapshot", "delete", "MNT", "before"],
        &["clone", "create", "MNT", "try"],
        &["clone", "create", "MNT", "try", "--from", "before"],
        &["quota", "set", "MNT", "--user", "1000", "--bytes", "1M"],
        &["label", "MNT", "name"],
    ];
    for words in refused {
        let words = words.iter().map(|word| if *word == "MNT" { small.mnt.as_os_str() } else { word.as_ref() });
        let error = crate::common::onode().args(words).fails(16);
        assert!(error.contains("no space left on the host") && error.contains("onode health "), "{error}");
        assert!(!error.contains("mounted read-only") && !error.contains("Input/output"), "{error}");
    }
    let _ = onode!("umount", &small.mnt).output();
    small.make_room();
}

/// The attributes of the root are among what is gone, and the kernel asks for those first.
#[test]
fn health_tells_of_a_memory_that_is_gone_by_the_mount_too() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("memory-lost");
    let (memory, mnt) = (place.path("a.mem"), place.directory("mnt"));
    let spec = format!("scm:{}", memory.display());
    onode!("mkfs", format!("{spec},size=32M")).succeeds();
    onode!("mount", &spec, &mnt).succeeds();
    fs::write(mnt.join("x"), noise(1 << 20)).expect("a file");
    fs::OpenOptions::new().write(true).open(&memory).expect("the memory").set_len(3 << 20).expect("cut short");
    wait_until("the file is gone", || fs::read(mnt.join("x")).is_err());
    for target in [mnt.as_os_str(), memory.as_os_str()] {
        let health = onode!("health", target).output().expect("it runs");
        let said = String::from_utf8_lossy(&health.stdout);
        assert!(health.status.code() == Some(5) && said.contains("memory-lost"), "{said}");
    }
    for verb in ["stat", "df", "info"] {
        let said = onode!(verb, &mnt).output().expect("it runs");
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success() || error.contains("memory"), "{verb}: {error}");
    }
    let listed = fs::read_dir(&mnt).map_or(0, |entries| entries.filter(Result::is_ok).count());
    assert!(listed == 0 && fs::write(mnt.join("y"), b"y").is_err(), "it is served as if it were there");
    let _ = onode!("umount", &mnt).output();
}

#[test]
fn an_unmount_by_others_is_told_by_the_next_command() {
    let Some(small) = Small::new("umount8") else { return };
    let log = small.place.path("log");
    onode!("mount", "--log", &log, &small.image, &small.mnt).succeeds();
    small.lose_something();
    assert!(Command::new("umount").arg(&small.mnt).status().expect("umount").success());
    wait_until("the log has it", || fs::read_to_string(&log).is_ok_and(|log| log.contains("not everything is saved")));
    small.make_room();
    wait_until("the server has ended", || {
        let check = onode!("check", &small.image).output().expect("it runs");
        String::from_utf8_lossy(&check.stdout).contains("could not save everything")
    });
}

#[test]
fn a_killed_server_is_told() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("told-killed");
    let (image, mnt) = (place.image("disk.img"), place.directory("mnt"));
    let mut up = Running::up(&mnt, &image);
    // Its record is begun a moment after the mount is there.
    up.wait_for("is mounted at");
    up.signal("KILL");
    up.end();
    let health = onode!("health", &mnt).output().expect("it runs");
    assert_eq!(health.status.code(), Some(5), "the server is gone");
    let error = onode!("umount", &mnt).fails(1);
    is_clear(&error, &mnt);
    assert!(error.contains("killed") && !is_mounted(&mnt), "{error}");
    let check = onode!("check", &image).succeeds();
    assert!(check.contains("ended without unmounting"), "{check}");
    let mount = onode!("mount", &image, &mnt).output().expect("it runs");
    assert!(String::from_utf8_lossy(&mount.stderr).contains("ended without unmounting"));
    onode!("umount", &mnt).succeeds();
    let check = onode!("check", &image).succeeds();
    assert!(!check.contains("ended without"), "{check}");
}

/// The record of a server that was killed was told of a volume that was made at that path later.
#[test]
fn a_new_volume_is_not_taken_for_the_one_that_was_there() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("told-anew");
    let (image, mnt) = (place.image("disk.img"), place.directory("mnt"));
    let mut up = Running::up(&mnt, &image);
    up.wait_for("is mounted at");
    up.signal("KILL");
    up.end();
    onode!("umount", &mnt).fails(1);
    assert!(onode!("check", &image).succeeds().contains("ended without unmounting"));
    fs::remove_file(&image).expect("removed");
    onode!("mkfs", "--size", "64M", &image).succeeds();
    let check = onode!("check", &image).succeeds();
    assert!(!check.contains("ended without"), "{check}");
    onode!("health", &image).succeeds();
}

/// The server dies in the middle of the unmount: here because what it lies on does.
#[test]
fn a_medium_that_goes_away_is_told_by_umount() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("gone");
    let (below, mnt) = (place.directory("below"), place.directory("mnt"));
    let outer = Running::start(&mut onode!("up", &below, "ram:size=96M"));
    wait_until("the mount below is live", || is_mounted(&below));
    let spec = format!("tier:{},{}", place.path("ssd.img").display(), below.join("hdd.img").display());
    onode!("mkfs", format!("{spec},size=64M,fast-size=16M")).succeeds();
    onode!("mount", &spec, &mnt).succeeds();
    fs::write(mnt.join("x"), noise(3_000_000)).expect("write");
    outer.signal("KILL");
    outer.end();
    let output = onode!("umount", &mnt).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.starts_with("onode: cannot "), "{error}");
}

#[test]
fn health_says_what_is_wrong_in_a_word_and_a_code() {
    let Some(small) = Small::new("health") else { return };
    let [log, metrics, hook, heard] = ["log", "metrics.prom", "hook", "heard"].map(|name| small.place.path(name));
    let script =
        format!("#!/bin/sh\necho \"$ONODE_SEVERITY $ONODE_CODE $ONODE_MOUNT $ONODE_TEXT\" >>{}\n", heard.display());
    fs::write(&hook, script).expect("hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut mount = onode!("mount", "--log", &log, "--metrics", &metrics, "--hook", &hook, &small.image, &small.mnt);
    mount.succeeds();
    assert!(onode!("health", &small.mnt).succeeds().starts_with("healthy: "));
    assert!(onode!("health", &small.image).succeeds().contains(" at "), "the mount is asked");
    let json = onode!("health", "--json", &small.mnt).succeeds();
    assert!(json.contains("\"state\": \"healthy\"") && json.contains("\"conditions\": []"), "{json}");
    let has = |path: &Path, text: &str| fs::read_to_string(path).is_ok_and(|content| content.contains(text));
    assert!(has(&metrics, "\nonode_mounted{") && has(&metrics, "\nonode_device_"));
    small.lose_something();
    // The device notices when it writes; then it accepts no more changes.
    wait_until("it failed", || onode!("health", &small.mnt).status().expect("it runs").code() == Some(5));
    let said = onode!("health", "--all").output().expect("it runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("failed: ") && said.contains("FAILED read-only: "), "{said}");
    for report in [onode!("stat", &small.mnt), onode!("top", "--once", &small.mnt)] {
        let mut report = report;
        assert!(report.succeeds().contains("READ-ONLY"));
    }
    wait_until("the log has it", || has(&log, "ERROR") && has(&log, "FAILED read-only: "));
    wait_until("the metrics have it", || has(&metrics, "code=\"read-only\",severity=\"failed\"} 1"));
    wait_until("the hook was run", || has(&heard, &format!("failed read-only {}", small.mnt.display())));
    onode!("umount", &small.mnt).fails(16);
    wait_until("the metrics say that it ended", || has(&metrics, "\nonode_saved{"));
    wait_until("the hook heard of the end", || has(&heard, "failed not-saved"));
    assert!(has(&log, "not everything is saved"));
}

#[test]
fn a_hook_that_hangs_holds_up_nothing() {
    let Some(small) = Small::new("hook") else { return };
    let hook = small.place.file("hook", b"#!/bin/sh\nexec sleep 1000\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("executable");
    onode!("mount", "-o", format!("hook={}", hook.display()), &small.image, &small.mnt).succeeds();
    small.lose_something();
    wait_until("it failed", || onode!("health", &small.mnt).status().expect("it runs").code() == Some(5));
    assert!(fs::read_dir(&small.mnt).is_ok());
    onode!("umount", &small.mnt).fails(16);
}

#[test]
fn who_is_told_must_be_there() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("log");
    let (image, mnt) = (place.image("disk.img"), place.directory("mnt"));
    let nowhere = place.path("no/where");
    is_clear(&onode!("mount", "--log", &nowhere, &image, &mnt).fails(20), &nowhere);
    is_clear(&onode!("mount", "--metrics", &nowhere, &image, &mnt).fails(20), &nowhere);
    is_clear(&onode!("mount", "--log-level", "loud", &image, &mnt).fails(2), "loud");
    assert!(!is_mounted(&mnt));
    onode!("mount", &image, &mnt).succeeds();
    onode!("umount", &mnt).succeeds();
}

#[test]
fn errors_are_json_when_reports_are() {
    let place = Place::new("json");
    let missing = place.path("none.img");
    let error = onode!("--json", "ls", &missing).fails(20);
    let value: serde_json::Value = serde_json::from_str(&error).expect("JSON");
    let of = |key: &str| &value["error"][key];
    assert_eq!(of("exit_code"), 20);
    assert!(of("what").as_str().is_some_and(|what| what.contains("none.img")), "{error}");
    assert!(of("hint").is_string() && of("class").is_string() && of("why").is_string());
    let error = onode!("--json", "mkfs", "--colour", &missing).fails(2);
    let value: serde_json::Value = serde_json::from_str(&error).expect("JSON");
    assert_eq!(value["error"]["exit_code"], 2);
    assert!(value["error"]["why"].as_str().is_some_and(|why| why.contains("--colour")), "{error}");
}

#[test]
fn names_cannot_reach_the_terminal() {
    let place = Place::new("escape");
    let image = place.image("disk.img");
    let name = "e\u{1b}[31mred";
    onode!("put", &image, place.file("f", b"x"), format!("/{name}")).succeeds();
    onode!("put", &image, place.file("f", b"x"), "/two\nlines").succeeds();
    let listed = onode!("ls", &image).succeeds();
    assert_eq!(listed, "'e'$'\\033''[31mred'\n'two'$'\\n''lines'\n");
    assert_eq!(onode!("ls", "-b", &image).succeeds(), "e\\033[31mred\ntwo\\nlines\n");
    assert_eq!(onode!("ls", "-Q", &image).succeeds(), "\"e\\033[31mred\"\n\"two\\nlines\"\n");
    let json: serde_json::Value = serde_json::from_str(&onode!("ls", "--json", &image).succeeds()).expect("JSON");
    assert_eq!(json[0]["name"], name);
    assert!(!onode!("ls", "-l", &image).succeeds().contains('\u{1b}'));
    let error = onode!("ls", &image, format!("/{name}x")).fails(20);
    assert!(!error.contains('\u{1b}') && error.contains("[31mred"), "{error}");
    // What the content of a damaged file is called goes through the same.
    let file = fs::OpenOptions::new().write(true).open(&image).expect("open");
    file.write_all_at(b"?", 24).expect("damage");
    assert!(!onode!("check", &image).output().expect("it runs").stdout.contains(&0x1b));
}

/// A volume that accepts no more changes refuses them all, also those that would have waited in
/// memory.
#[test]
fn a_volume_gone_read_only_refuses_every_change() {
    let Some(small) = Small::new("readonly") else { return };
    onode!("mount", &small.image, &small.mnt).succeeds();
    let kept = small.mnt.join("kept");
    fs::write(&kept, noise(5000)).expect("write");
    let file = fs::File::options().write(true).open(&kept).expect("open");
    file.sync_all().expect("sync");
    small.lose_something();
    wait_until("it failed", || onode!("health", &small.mnt).status().expect("it runs").code() == Some(5));
    let refused = |what: &str, result: std::io::Result<()>| {
        let error = result.expect_err(what);
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{what}: {error}");
    };
    refused("truncate", file.set_len(10));
    refused("utime", file.set_modified(std::time::SystemTime::UNIX_EPOCH));
    refused("O_TRUNC", fs::File::create(&kept).map(drop));
    refused("write", file.write_all_at(b"x", 0));
    refused("unlink", fs::remove_file(&kept));
    assert!(fs::read(&kept).expect("read") == noise(5000));
    drop(file);
    onode!("umount", &small.mnt).fails(16);
    small.make_room();
    onode!("get", &small.image, "/kept", small.place.path("out")).succeeds();
    assert!(fs::read(small.place.path("out")).expect("out") == noise(5000));
}

/// A volume that holds less than it promised is opened only with consent, and nothing is changed
/// before.
#[test]
fn a_loss_needs_consent() {
    let place = Place::new("consent");
    let memory = place.path("memory");
    let spec = format!("scm:{}", memory.display());
    onode!("mkfs", format!("{spec},size=16M")).succeeds();
    for name in ["/first", "/unmistakable", "/last"] {
        onode!("put", &spec, place.file("f", b"content"), name).succeeds();
    }
    // One bit of a record of the log that was durable.
    let mut bytes = fs::read(&memory).expect("memory");
    let name = b"unmistakable";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("the name is in the log");
    bytes[at] ^= 1;
    fs::write(&memory, &bytes).expect("damage");
    let mnt = place.directory("mnt");
    let mut refusals = vec![onode!("ls", &spec), onode!("mkdir", &spec, "/d"), onode!("info", &spec)];
    if has_fuse() {
        refusals.push(onode!("mount", &spec, &mnt));
        refusals.push(onode!("up", &mnt, &spec));
    }
    for mut command in refusals {
        let error = command.fails(23);
        is_clear(&error, &memory);
        assert!(error.contains("acknowledged data is missing") && error.contains("--accept-loss"), "{error}");
    }
    assert_eq!(onode!("check", &spec).output().expect("it runs").status.code(), Some(4));
    assert_eq!(onode!("health", &spec).output().expect("it runs").status.code(), Some(5));
    assert!(fs::read(&memory).expect("memory") == bytes, "nothing was changed");
    let listed = onode!("ls", "--accept-loss", &spec).succeeds();
    assert_eq!(listed, "first\nlast\n");
    if has_fuse() {
        onode!("mount", "--accept-loss", &spec, &mnt).succeeds();
        assert_eq!(fs::read(mnt.join("last")).expect("read"), b"content");
        assert_ne!(onode!("health", &mnt).output().expect("it runs").status.code(), Some(0));
        onode!("umount", &mnt).succeeds();
        onode!("mount", "-o", "accept-loss", &spec, &mnt).succeeds();
        onode!("umount", &mnt).succeeds();
    }
}

/// Who asks a server that was stopped would wait until it goes on.
#[test]
fn health_tells_of_a_server_that_does_not_answer() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("silent");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let server = Running::up(&directory, &image);
    server.signal("STOP");
    for target in [Some(&directory), Some(&image), None] {
        let mut health = onode!("health");
        let health = health.args(target).output().expect("it runs");
        let said = String::from_utf8_lossy(&health.stdout).into_owned();
        server.signal("CONT");
        assert_eq!(health.status.code(), Some(5), "{said}");
        assert!(said.contains("server-silent") && said.contains("kill -CONT"), "{said}");
        wait_until("it answers", || onode!("health", &directory).status().expect("it runs").success());
        server.signal("STOP");
    }
    server.signal("CONT");
    unmount(&directory);
    server.ends_well();
}

#[test]
fn nobody_waits_for_a_stopped_server_to_list_mounts_or_tell_how_full_they_are() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("silent-rows");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let server = Running::up(&directory, &image);
    server.signal("STOP");
    let asked: Vec<_> = [("list", &image), ("df", &image), ("df", &directory)]
        .map(|(verb, target)| onode!(verb, target).output().expect("it runs"))
        .into_iter()
        .collect();
    server.signal("CONT");
    for output in asked {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("server-silent") && said.contains(&*directory.to_string_lossy()), "{said}");
    }
    wait_until("it answers", || onode!("df", &directory).status().expect("it runs").success());
    onode!("list", &image).succeeds();
    unmount(&directory);
    server.ends_well();
}
