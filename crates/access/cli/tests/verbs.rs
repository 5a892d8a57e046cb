//! The commands that look at files of an image, and change them, as those of a shell do; and
//! wildcards in the paths that they take.

use crate::common::{self, Expect, Place, has_fuse, is_clear, onode};
use serde_json::Value;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A volume with a few logs and a program.
fn filled(place: &Place) -> PathBuf {
    let image = place.image("disk.img");
    onode!("mkdir", "-p", &image, "/logs/deep").succeeds();
    for (name, content) in
        [("/logs/a.old", "one\n"), ("/logs/b.old", "two\n"), ("/logs/new", "three\n"), ("/logs/deep/c.old", "four\n")]
    {
        onode!("put", &image, place.file("f", content.as_bytes()), name).succeeds();
    }
    onode!("put", &image, place.file("large", &[7; 200_000]), "/program").succeeds();
    image
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The permissions of a file, as `onode ls -l` shows them.
fn mode(image: &Path, path: &str) -> String {
    let said = onode!("stat", image, path).succeeds();
    said.lines().find_map(|line| line.strip_prefix("mode ")?.split_whitespace().next()).expect("a mode").to_owned()
}

#[test]
fn wildcards_are_meant_in_the_image() {
    let place = Place::new("wildcards");
    let image = filled(&place);
    assert_eq!(onode!("ls", &image, "/logs/*.old").succeeds(), "/logs/a.old\n/logs/b.old\n");
    assert_eq!(onode!("cat", &image, "/l?gs/[!a].old", "/*/new").succeeds(), "two\nthree\n");
    // A directory that matches is listed itself.
    assert_eq!(onode!("ls", &image, "/l*").succeeds(), "/logs\n");
    let error = onode!("get", &image, "/logs/*.old", place.path("none")).fails(2);
    is_clear(&error, "none");
    onode!("get", &image, "/logs/*.old", place.directory("out")).succeeds();
    assert_eq!(fs::read(place.path("out/b.old")).expect("b.old"), b"two\n");
    onode!("mkdir", &image, "/more").succeeds();
    onode!("put", &image, place.file("f", b"other"), "/more/new").succeeds();
    is_clear(&onode!("get", &image, "/*/new", place.path("out")).fails(2), "same name");
    onode!("rm", "-r", &image, "/mor?").succeeds();
    // A pattern that nothing matches leaves everything as it is.
    for verb in ["ls", "cat", "du", "get", "find"] {
        let error = onode!(verb, &image, "/logs/*.gone").fails(20);
        is_clear(&error, "no such file: nothing matches /logs/*.gone");
    }
    onode!("rm", &image, "/logs/new", "/logs/*.gone").fails(20);
    onode!("chmod", &image, "600", "/logs/*.gone").fails(20);
    onode!("rm", &image, "/logs/*.old").succeeds();
    assert_eq!(onode!("ls", &image, "/logs").succeeds(), "deep\nnew\n");
}

#[test]
fn a_name_with_a_star_in_it_wins() {
    let place = Place::new("star");
    let image = filled(&place);
    onode!("put", &image, place.file("f", b"itself\n"), "/logs/*.old").succeeds();
    onode!("put", &image, place.file("f", b"hidden\n"), "/logs/.x.old").succeeds();
    assert_eq!(onode!("cat", &image, "/logs/*.old").succeeds(), "itself\n");
    onode!("rm", &image, "/logs/*.old").succeeds();
    // What begins with a dot is matched only by what does.
    assert_eq!(onode!("cat", &image, "/logs/*.old").succeeds(), "one\ntwo\n");
    assert_eq!(onode!("cat", &image, "/logs/.*").succeeds(), "hidden\n");
}

#[test]
fn content_goes_out_as_it_is() {
    let place = Place::new("cat");
    let image = filled(&place);
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i ^ (i >> 7)) as u8).collect();
    onode!("put", &image, place.file("f", &content), "/bytes").succeeds();
    let said = onode!("--json", "cat", &image, "/bytes", "/logs/new").output().expect("it runs");
    assert!(said.stdout.strip_prefix(content.as_slice()) == Some(b"three\n"));
    onode!("ln", "-s", &image, "bytes", "/link").succeeds();
    is_clear(&onode!("cat", &image, "/logs/new", "/logs").fails(2), "it is a directory");
    is_clear(&onode!("cat", &image, "/link").fails(2), "symbolic link");
    onode!("cat", &image, "/nothing").fails(20);
    let mut child = onode!("cat", &image, "/bytes").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("go");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn damage_in_one_file_leaves_the_others() {
    let place = Place::new("damage");
    let image = filled(&place);
    let content: Vec<u8> = (0..100_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    onode!("put", &image, place.file("big", &content), "/logs/big").succeeds();
    let bytes = fs::read(&image).expect("image");
    let part = content.get(200_000..200_064).expect("part");
    let at = bytes.windows(part.len()).position(|window| window == part).expect("it is stored as it is");
    let file = fs::OpenOptions::new().write(true).open(&image).expect("open");
    file.write_all_at(&[0xaa; 8], at as u64).expect("damage");
    let said = onode!("cat", &image, "/logs/big", "/logs/new").output().expect("it runs");
    assert_eq!(said.status.code(), Some(11));
    assert!(said.stdout.starts_with(&content[..190_000]), "what comes before the damage is missing");
    assert!(said.stdout.ends_with(b"three\n"), "the other file is missing");
    is_clear(&String::from_utf8_lossy(&said.stderr), "/logs/big");
    // These read no content.
    onode!("du", &image).succeeds();
    assert!(onode!("find", &image, "--name", "big").succeeds() == "/logs/big\n");
}

#[test]
fn damage_in_a_directory_leaves_what_else_there_is() {
    let place = Place::new("directory");
    let image = place.image("disk.img");
    for name in ["a", "b"] {
        let directory = place.directory(&format!("tree/{name}"));
        (0..2000).for_each(|number| fs::write(directory.join(format!("{name}{number}")), b"content").expect("write"));
    }
    onode!("put", "-r", &image, place.path("tree"), "/").succeeds();
    let bytes = fs::read(&image).expect("image");
    let file = fs::OpenOptions::new().write(true).open(&image).expect("open");
    // Most names stand in a leaf of the index, with some others of their directory; a few in its
    // root, without which there is no volume.
    let damages = |name: u32| {
        let pattern = format!("a{name}\0");
        let places = bytes.windows(6).enumerate().filter(|(_, window)| *window == pattern.as_bytes());
        let places: Vec<u64> = places.map(|(at, _)| at as u64).collect();
        let put = |byte: &[u8]| places.iter().for_each(|at| file.write_all_at(byte, *at).expect("damage"));
        put(b"?");
        let is_open = onode!("ls", &image, "/tree").output().expect("it runs").status.success();
        if !is_open {
            put(b"a");
        }
        is_open && !places.is_empty()
    };
    assert!((1700..1800).any(damages));
    for verb in ["find", "tree", "du"] {
        let said = onode!(verb, &image).output().expect("it runs");
        let (text, error) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert_eq!(said.status.code(), Some(11), "{error}");
        is_clear(&error, "/tree/");
        assert!(text.lines().count() > if verb == "du" { 2 } else { 1900 }, "{text}");
    }
    let said = onode!("--json", "find", &image, "--type", "f").output().expect("it runs");
    let found: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert!(found.as_array().is_some_and(|found| found.len() > 1900));
    let error = String::from_utf8(said.stderr).expect("UTF-8");
    assert_eq!(json(error.lines().next().expect("an error"))["error"]["exit_code"], 11);
}

#[test]
fn files_are_found_by_what_they_are() {
    let place = Place::new("find");
    let image = filled(&place);
    let find = |arguments: &[&str]| onode().arg("find").arg(&image).args(arguments).succeeds();
    assert_eq!(find(&["--name", "*.old", "--type", "f"]), "/logs/a.old\n/logs/b.old\n/logs/deep/c.old\n");
    assert_eq!(find(&["--type", "d"]), "/\n/logs\n/logs/deep\n");
    assert_eq!(find(&["--size", "+100K"]), "/program\n");
    assert_eq!(find(&["/logs", "--size", "-5"]), "/logs/a.old\n/logs/b.old\n");
    assert_eq!(find(&["/logs/*.old", "--size", "4", "-0"]), "/logs/a.old\0/logs/b.old\0");
    assert_eq!(find(&["--newer", "2100-01-01"]), "");
    assert!(find(&["--newer", "2020-01-01 12:00:00", "--type", "f"]).lines().count() == 5);
    assert_eq!(find(&["--newer", "/program", "--name", "program"]), "");
    let found = json(&find(&["--json", "--name", "program"]));
    assert_eq!((&found[0]["path"], &found[0]["size"]), (&Value::from("/program"), &Value::from(200_000)));
    onode!("find", &image, "--size", "lots").fails(2);
    onode!("find", &image, "--newer", "/nothing").fails(20);
    onode!("put", &image, place.file("f", b""), "/e\x1b[31mred").succeeds();
    assert_eq!(find(&["--name", "e*"]), "'/e'$'\\033''[31mred'\n");
    assert_eq!(find(&["--name", "e*", "-0"]), "/e\x1b[31mred\0");
    for verb in ["du", "tree"] {
        assert!(!onode!(verb, &image).succeeds().contains('\x1b'), "{verb}");
    }
    assert!(!onode!("du", "-a", &image).succeeds().contains('\x1b'));
    let odd = std::ffi::OsStr::from_bytes(b"/odd\xff");
    onode!("put", &image, place.file("f", b""), odd).succeeds();
    assert_eq!(json(&find(&["--json", "--name", "odd?"]))[0]["path_bytes"].as_array().expect("bytes").len(), 5);
}

#[test]
fn trees_are_shown_to_a_depth() {
    let place = Place::new("tree");
    let image = filled(&place);
    onode!("ln", "-s", &image, "logs/new", "/link").succeeds();
    let whole = "/\n  link -> logs/new\n  logs/\n    a.old\n    b.old\n    deep/\n      c.old\n    new\n  program\n\
                 2 directories, 6 files\n";
    assert_eq!(onode!("tree", &image).succeeds(), whole);
    let some = onode!("tree", "--depth", "1", &image, "/logs").succeeds();
    assert_eq!(some, "/logs/\n  a.old\n  b.old\n  deep/\n  new\n1 directory, 3 files\n");
    let tree = json(&onode!("tree", "--json", &image).succeeds());
    assert_eq!(tree["top"]["children"][1]["children"][2]["children"][0]["name"], "c.old");
    onode!("tree", &image, "/nothing").fails(20);
}

#[test]
fn what_files_take_and_hold_is_summed() {
    let place = Place::new("du");
    let image = filled(&place);
    onode!("ln", &image, "/program", "/logs/same").succeeds();
    let all = json(&onode!("du", "--json", &image).succeeds());
    let rows = all.as_array().expect("rows");
    let paths: Vec<&str> = rows.iter().filter_map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["/logs/deep", "/logs", "/"]);
    // The file with two names counts once.
    assert_eq!((&rows[2]["logical_bytes"], &rows[2]["files"]), (&Value::from(200_019), &Value::from(5)));
    assert!(rows[2]["stored_bytes"].as_u64().is_some_and(|bytes| bytes >= 200_000), "{all}");
    let sums = onode!("du", "-s", "--bytes", &image, "/logs/*.old", "/program").succeeds();
    assert_eq!(sums.lines().count(), 4);
    assert!(sums.lines().last().is_some_and(|line| line.contains(" 200000 ") && line.ends_with("/program")), "{sums}");
    assert!(onode!("du", "-a", &image).succeeds().contains("195.3 KiB"));
}

#[test]
fn volumes_tell_how_full_they_are() {
    let place = Place::new("df");
    let (image, other) = (filled(&place), place.image("other.img"));
    let both = json(&onode!("df", "--json", &image, &other).succeeds());
    assert_eq!((&both[0]["files"], &both[1]["files"]), (&Value::from(8), &Value::from(1)));
    let number = |key: &str| both[0][key].as_u64().expect(key);
    assert_eq!(number("size_bytes"), number("used_bytes") + number("available_bytes"));
    assert!(onode!("df", &image).succeeds().contains("% "));
    let said = onode!("df", place.path("missing.img"), &image).output().expect("it runs");
    assert_eq!(said.status.code(), Some(20));
    assert!(String::from_utf8_lossy(&said.stdout).contains("disk.img"));
    onode!("df", place.directory("plain")).fails(17);
    if !has_fuse() {
        return;
    }
    let mnt = place.directory("mnt");
    onode!("mount", &image, &mnt).succeeds();
    for target in [&image, &mnt] {
        let mounted = json(&onode!("df", "--json", target).succeeds());
        assert_eq!(mounted[0]["directory"].as_str(), mnt.to_str());
        assert_eq!((&mounted[0]["files"], &mounted[0]["size_bytes"]), (&both[0]["files"], &both[0]["size_bytes"]));
    }
    // All others leave a mounted volume to its mount.
    for verb in ["cat", "du", "find", "tree"] {
        is_clear(&onode!(verb, &image, "/logs").fails(13), "mounted at");
    }
    is_clear(&onode!("mv", &image, "/program", "/p").fails(13), "mounted at");
    is_clear(&onode!("ln", &image, "/program", "/p").fails(13), "mounted at");
    is_clear(&onode!("chmod", &image, "600", "/program").fails(13), "mounted at");
    common::unmount(&mnt);
}

#[test]
fn files_are_moved() {
    let place = Place::new("mv");
    let image = filled(&place);
    onode!("mv", &image, "/program", "/logs/deep").succeeds();
    onode!("mv", &image, "/logs/deep/program", "/renamed").succeeds();
    assert_eq!(onode!("ls", &image, "/").succeeds(), "logs\nrenamed\n");
    // What has the name is replaced.
    onode!("mv", &image, "/logs/a.old", "/logs/b.old").succeeds();
    assert_eq!(onode!("cat", &image, "/logs/b.old").succeeds(), "one\n");
    is_clear(&onode!("mv", &image, "/logs/*", "/renamed").fails(2), "no directory");
    for (from, to, why) in [
        ("/logs", "/logs/deep", "within itself"),
        ("/logs", "/logs", "there already"),
        ("/renamed", "/renamed", "there already"),
        ("/renamed", "/", "there already"),
        ("/renamed", "/renamed/x", "within itself"),
    ] {
        is_clear(&onode!("mv", &image, from, to).fails(2), why);
    }
    // None of two files of one name replaces the other.
    onode!("put", &image, place.file("f", b"other"), "/logs/deep/new").succeeds();
    is_clear(&onode!("mv", &image, "/logs/new", "/logs/*/new", "/").fails(2), "same name");
    onode!("rm", &image, "/logs/deep/new").succeeds();
    onode!("mv", &image, "/nothing", "/else").fails(20);
    onode!("mv", &image, "/renamed", "/no/such").fails(20);
    onode!("mv", &image, "/", "/else").fails(2);
    onode!("mv", &image, "/logs/b*", "/renamed", "/logs/deep").succeeds();
    assert_eq!(onode!("ls", &image, "/logs/deep").succeeds(), "b.old\nc.old\nrenamed\n");
    onode!("check", &image).succeeds();
}

/// On the host a link to a directory is one, as for `cp`.
#[test]
fn a_copy_goes_into_what_a_link_leads_to() {
    let place = Place::new("into-link");
    let image = place.image("disk.img");
    fs::write(place.path("file"), "text").expect("write");
    onode!("put", &image, place.path("file"), "/file").succeeds();
    onode!("mkdir", &image, "/folder").succeeds();
    onode!("put", &image, place.path("file"), "/folder/inner").succeeds();
    fs::create_dir(place.path("real")).expect("directory");
    std::os::unix::fs::symlink("real", place.path("link")).expect("link");
    onode!("get", &image, "/file", place.path("link")).succeeds();
    onode!("get", "-r", &image, "/folder", place.path("link")).succeeds();
    assert_eq!(fs::read(place.path("real/file")).expect("copy"), b"text");
    assert_eq!(fs::read(place.path("real/folder/inner")).expect("copy"), b"text");
}

#[test]
fn files_get_other_names() {
    let place = Place::new("ln");
    let image = filled(&place);
    onode!("ln", &image, "/program", "/logs").succeeds();
    assert!(onode!("stat", &image, "/logs/program").succeeds().contains("links 2"));
    onode!("ln", "--symbolic", &image, "../no/where", "/logs/link").succeeds();
    assert!(onode!("ls", "-l", &image, "/logs/link").succeeds().ends_with("/logs/link -> ../no/where\n"));
    is_clear(&onode!("ln", &image, "/logs", "/more").fails(2), "it is a directory");
    is_clear(&onode!("ln", &image, "/program", "/logs/new").fails(21), "/logs/new");
    is_clear(&onode!("ln", "-s", &image, "x", "/logs/new").fails(21), "/logs/new");
    // Moved to another of its names, a file has that one alone.
    onode!("mv", &image, "/program", "/logs/program").succeeds();
    assert_eq!(onode!("ls", &image).succeeds(), "logs\n");
    assert!(onode!("stat", &image, "/logs/program").succeeds().contains("links 1"));
    onode!("ln", &image, "/nothing", "/more").fails(20);
    onode!("check", &image).succeeds();
}

#[test]
fn permissions_are_changed() {
    let place = Place::new("chmod");
    let image = filled(&place);
    onode!("chmod", &image, "640", "/program").succeeds();
    assert_eq!(mode(&image, "/program"), "-rw-r-----");
    onode!("chmod", &image, "u+x,go-w", "/program", "/logs/*.old").succeeds();
    assert_eq!((mode(&image, "/program"), mode(&image, "/logs/a.old").get(..4)), ("-rwxr-----".into(), Some("-rwx")));
    // A mode may look like an option.
    onode!("chmod", &image, "-x", "/program").succeeds();
    assert_eq!(mode(&image, "/program"), "-rw-r-----");
    onode!("chmod", "-R", &image, "a=rX", "/logs").succeeds();
    assert_eq!((mode(&image, "/logs/deep"), mode(&image, "/logs/new")), ("dr-xr-xr-x".into(), "-r--r--r--".into()));
    onode!("ln", "-s", &image, "program", "/link").succeeds();
    is_clear(&onode!("chmod", &image, "600", "/link").fails(2), "symbolic link");
    onode!("chmod", "-R", &image, "700", "/").succeeds();
    is_clear(&onode!("chmod", &image, "u+q", "/program").fails(2), "u+q");
    onode!("chmod", &image, "600", "/nothing").fails(20);
    onode!("check", &image).succeeds();
}
