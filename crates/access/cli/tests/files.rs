//! The commands that work on an image without mounting it.

use crate::common::{Expect, Place, has_fuse, onode};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

/// Bytes that no compressor and no accident makes equal.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&(state >> 11).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn a_file_comes_back_as_it_went_in() {
    let place = Place::new("roundtrip");
    let image = place.image("disk.img");
    let content = noise(3_333_333);
    let file = place.file("in", &content);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("chmod");
    onode!("put", &image, &file, "/in").succeeds();
    onode!("get", &image, "in", place.path("out")).succeeds();
    assert!(fs::read(place.path("out")).expect("out") == content);
    let (before, after) = (fs::metadata(&file).expect("in"), fs::metadata(place.path("out")).expect("out"));
    assert_eq!(after.mode(), before.mode());
    assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
    onode!("check", &image).succeeds();
}

#[test]
fn a_tree_comes_back_with_links_and_holes() {
    let place = Place::new("tree");
    let image = place.image("disk.img");
    let tree = place.directory("tree/deep/er");
    fs::write(tree.join("small"), b"small").expect("write");
    fs::write(place.path("tree/empty"), b"").expect("write");
    symlink("deep/er/small", place.path("tree/link")).expect("symlink");
    let sparse = fs::File::create(place.path("tree/sparse")).expect("create");
    sparse.set_len(300 << 20).expect("set_len");
    sparse.write_all_at(b"end", (200 << 20) + 7).expect("write");
    onode!("put", "-r", &image, place.path("tree"), "/").succeeds();
    onode!("get", "-r", &image, "/tree", place.path("back")).succeeds();
    assert_eq!(fs::read(place.path("back/deep/er/small")).expect("small"), b"small");
    assert_eq!(fs::read(place.path("back/empty")).expect("empty"), b"");
    assert_eq!(fs::read_link(place.path("back/link")).expect("link").to_str(), Some("deep/er/small"));
    let back = fs::File::open(place.path("back/sparse")).expect("sparse");
    let metadata = back.metadata().expect("metadata");
    assert_eq!(metadata.len(), 300 << 20);
    assert!(metadata.blocks() * 512 < 8 << 20, "the holes were filled");
    let mut end = [0; 4];
    back.read_exact_at(&mut end, (200 << 20) + 6).expect("read");
    assert_eq!(&end, b"\0end");
}

#[test]
fn directories_are_made_listed_and_removed() {
    let place = Place::new("names");
    let image = place.image("disk.img");
    let file = place.file("f", b"content");
    onode!("mkdir", &image, "/a").succeeds();
    onode!("mkdir", "-p", &image, "/a/b/c").succeeds();
    onode!("put", &image, &file, "/a/b").succeeds();
    assert_eq!(onode!("ls", &image).succeeds(), "a\n");
    assert_eq!(onode!("ls", &image, "/a/b").succeeds(), "c\nf\n");
    let long = onode!("ls", "-l", &image, "a/b").succeeds();
    assert!(long.contains("drwxr-xr-x") && long.contains(" 7 "), "{long}");
    let json = onode!("--json", "ls", &image, "/a/b").succeeds();
    assert!(json.contains("\"name\": \"f\"") && json.contains("\"size\": 7"), "{json}");
    onode!("rm", &image, "/a/b/f").succeeds();
    onode!("rm", "-r", &image, "/a").succeeds();
    assert_eq!(onode!("ls", &image).succeeds(), "");
    assert_eq!(onode!("ls", "--json", &image).succeeds(), "[]\n");
}

#[test]
fn files_are_copied_within_and_between_images() {
    let place = Place::new("cp");
    let (one, two) = (place.image("one.img"), place.image("two.img"));
    let content = noise(100_000);
    onode!("put", &one, place.file("f", &content), "/f").succeeds();
    let at = |image: &std::path::Path, path: &str| format!("{}:{path}", image.display());
    onode!("cp", at(&one, "/f"), at(&one, "/g")).succeeds();
    onode!("mkdir", &two, "/d").succeeds();
    onode!("cp", at(&one, "/g"), at(&two, "/d/h")).succeeds();
    onode!("cp", "-r", at(&two, "/d"), at(&one, "/copy")).succeeds();
    onode!("get", &one, "/copy/h", place.path("back")).succeeds();
    assert!(fs::read(place.path("back")).expect("back") == content);
    onode!("cp", "-r", at(&one, "/copy"), at(&one, "/copy/inner")).fails(2);
}

#[test]
fn several_files_are_copied_into_a_directory() {
    let place = Place::new("cp-several");
    let (one, two) = (place.image("one.img"), place.image("two.img"));
    for name in ["a.log", "b.log", "c.txt"] {
        onode!("put", &one, place.file(name, name.as_bytes()), format!("/{name}")).succeeds();
    }
    onode!("put", &two, place.file("d", b"d"), "/d").succeeds();
    let at = |image: &std::path::Path, path: &str| format!("{}:{path}", image.display());
    onode!("mkdir", &two, "/all", "/other").succeeds();
    onode!("cp", at(&one, "/*.log"), at(&one, "/c.txt"), at(&two, "/d"), at(&two, "/all")).succeeds();
    assert_eq!(onode!("ls", &two, "/all").succeeds().lines().count(), 4);
    assert_eq!(onode!("cat", &two, "/all/b.log").succeeds(), "b.log");
    let error = onode!("cp", at(&one, "/*.log"), at(&two, "/new")).fails(2);
    assert!(error.contains("no directory") && error.contains("onode mkdir"), "{error}");
    assert!(onode!("cp", at(&one, "/*.none"), at(&two, "/all")).fails(20).contains("nothing matches"));
    // Nothing is copied if two would be one.
    let error = onode!("cp", at(&one, "/a.log"), at(&two, "/all/a.log"), at(&two, "/other")).fails(2);
    assert!(error.contains("same name"), "{error}");
    assert_eq!(onode!("ls", &two, "/other").succeeds(), "");
    // What matches one name goes where it is told to.
    onode!("cp", at(&one, "/a.*"), at(&two, "/renamed")).succeeds();
    assert_eq!(onode!("cat", &two, "/renamed").succeeds(), "a.log");
}

#[test]
fn a_file_that_is_replaced_keeps_nothing_of_the_old_one() {
    let place = Place::new("replace");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("long", &noise(50_000)), "/f").succeeds();
    onode!("put", &image, place.file("short", b"short"), "/f").succeeds();
    onode!("get", &image, "/f", place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"short");
}

#[test]
fn the_wear_policy_is_chosen_and_shown() {
    let place = Place::new("wear");
    let image = place.path("disk.img");
    onode!("mkfs", "--size", "32M", "--wear", "static", &image).succeeds();
    let stat = onode!("stat", "--json", &image).succeeds();
    assert!(stat.contains("\"wear\": \"static\"") && stat.contains("\"spread\":"), "{stat}");
    let refused = onode!("mkfs", "--force", "--wear", "evenly", &image).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("`evenly`") && said.contains("dynamic, static"), "{said}");
    if !has_fuse() {
        return;
    }
    let directory = place.directory("mnt");
    onode!("mount", "--wear", "off", &image, &directory).succeeds();
    assert!(onode!("stat", "--json", &directory).succeeds().contains("\"wear\": \"off\""));
    fs::write(directory.join("f"), b"content").expect("write");
    onode!("umount", &directory).succeeds();
    assert!(onode!("stat", "--json", &image).succeeds().contains("\"wear\": \"off\""));
}

#[test]
fn reports_tell_what_there_is() {
    let place = Place::new("reports");
    let image = place.path("disk.img");
    let made = onode!("mkfs", "--size", "32M", "--page", "2K", "--label", "my label", &image).succeeds();
    assert!(made.contains("my label") && made.contains("2048"), "{made}");
    let info = onode!("info", "--json", &image).succeeds();
    assert!(info.contains("\"label\": \"my label\"") && info.contains("\"format_version\": 1"), "{info}");
    onode!("put", &image, place.file("f", &noise(10_000)), "/f").succeeds();
    let stat = onode!("stat", "--json", &image).succeeds();
    assert!(stat.contains("\"total_bytes\"") && stat.contains("nand.reads"), "{stat}");
    let file = onode!("stat", &image, "/f").succeeds();
    assert!(file.contains("10000 bytes") && file.contains("extents"), "{file}");
    let check = onode!("check", "--json", &image).succeeds();
    assert!(check.contains("\"clean\": true") && check.contains("\"findings\": []"), "{check}");
    let repair = onode!("repair", &image).succeeds();
    assert!(repair.contains("clean"), "{repair}");
}

#[test]
fn inodes_can_be_objects_of_their_own() {
    let place = Place::new("inodes");
    let (image, content) = (place.path("disk.img"), noise(10_000));
    onode!("mkfs", "--size", "32M", "--embed-inodes", "maybe", &image).fails(2);
    let made = onode!("mkfs", "--size", "32M", "--embed-inodes", "off", &image).succeeds();
    assert!(made.contains("separate inodes"), "{made}");
    onode!("put", &image, place.file("f", &content), "/f").succeeds();
    onode!("mkdir", &image, "/d").succeeds();
    let info = onode!("info", "--json", &image).succeeds();
    // The root, two files, an inode for each, and the volume's own.
    assert!(info.contains("\"inodes\": \"separate\"") && info.contains("\"objects\": 7"), "{info}");
    onode!("check", &image).succeeds();
    onode!("repair", &image).succeeds();
    onode!("get", &image, "/f", place.path("out")).succeeds();
    assert!(fs::read(place.path("out")).expect("out") == content);
    let usual = onode!("mkfs", "--size", "32M", "--force", &image).succeeds();
    assert!(usual.contains("embedded inodes"), "{usual}");
}

#[test]
fn views_show_the_segments_of_an_image() {
    let place = Place::new("views");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("f", &noise(3_000_000)), "/f").succeeds();
    let map = onode!("map", &image).succeeds();
    assert!(map.contains("D data") && map.lines().any(|line| line.starts_with("     0  ")), "{map}");
    assert!(!map.contains('\x1b'), "colours in a pipe: {map}");
    let json = onode!("--json", "map", &image).succeeds();
    let count = json.matches("\"live_bytes\"").count();
    assert!(count >= 16 && json.contains("\"state\": \"full\""), "{json}");
    let picture = place.path("map.svg");
    let said = onode!("map", "--svg", &picture, &image).succeeds();
    assert!(said.contains(&format!("{count} segments")), "{said}");
    let svg = fs::read_to_string(&picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert_eq!(svg.matches("<g><title>segment ").count(), count);
    assert_eq!(onode!("map", "--svg", "-", &image).succeeds(), svg);
    let top = onode!("top", "--once", &image).succeeds();
    assert!(top.contains("segments of") && top.contains("memory of the device"), "{top}");
    let top = onode!("top", "--once", "--json", &image).succeeds();
    assert!(top.contains("\"rates\": null") && top.contains("\"tags\""), "{top}");
    let error = onode!("map", "--svg", place.path("no/such/place.svg"), &image).fails(20);
    assert!(error.contains("place.svg"), "{error}");
    onode!("top", "--interval", "0", &image).fails(2);
}

#[test]
fn the_lab_is_a_command_of_its_own() {
    // One that was built beside this command would be run.
    let place = Place::new("lab");
    let alone = place.command();
    let lab = |arguments: &[&str]| {
        let output = Command::new(&alone).env("PATH", place.path("")).args(arguments).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
    };
    let (code, _, said) = lab(&["lab", "replay", "--figures"]);
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(code == Some(20) && said.contains("onode-lab") && said.contains("hint: `cargo install"), "{said}");
    symlink("/bin/echo", place.path("onode-lab")).expect("a command in its place");
    assert_eq!(lab(&["--json", "lab", "replay", "--figures"]).1, "--json replay --figures\n");
}

#[test]
fn an_existing_image_is_replaced_only_by_force() {
    let place = Place::new("force");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("f", b"f"), "/f").succeeds();
    onode!("mkfs", "--force", "--size", "32M", &image).succeeds();
    assert_eq!(onode!("ls", &image).succeeds(), "");
}

#[test]
fn help_completions_and_manual_pages_exist_for_everything() {
    let help = onode!("--help").succeeds();
    assert!(help.contains("Exit codes:") && help.contains("not an Onode image"), "{help}");
    let page = onode!("man").succeeds();
    assert!(page.contains(".TH onode 1"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(onode!("completions", shell).succeeds().contains("onode"));
    }
    let place = Place::new("man");
    onode!("man", "--output", place.path("pages")).succeeds();
    for verb in ["up", "mount", "check", "put"] {
        let page = fs::read_to_string(place.path(&format!("pages/onode-{verb}.1"))).expect(verb);
        assert!(page.contains(&format!(".TH onode-{verb} 1")), "{verb}");
        let help = onode!(verb, "--help").succeeds();
        assert!(help.contains("Example"), "{help}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new("pipe");
    let image = place.image("disk.img");
    let mut child = onode!("--json", "stat", &image).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("go");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("bytes");
    let image = place.image("disk.img");
    let name = std::ffi::OsStr::from_bytes(b"odd \xff name\n");
    let file = place.path("in");
    fs::write(&file, b"odd").expect("write");
    onode!("put", &image, &file, name).succeeds();
    onode!("get", &image, name, place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"odd");
}

#[test]
fn a_dash_is_standard_input_or_output() {
    let place = Place::new("dash");
    let image = place.image("disk.img");
    // With a hole in the middle and one at the end, each longer than what is copied at once.
    let mut content = noise(1_234_567);
    content.resize(4 << 20, 0);
    content.extend_from_slice(b"behind");
    content.resize(6 << 20, 0);
    let from = fs::File::open(place.file("in", &content)).expect("in");
    onode!("put", &image, "-", "/in").stdin(from).succeeds();
    let output = onode!("get", &image, "/in", "-").output().expect("get");
    assert!(output.status.success() && output.stdout == content, "{} bytes", output.stdout.len());
    onode!("put", &image, "-").fails(2);
    onode!("put", &image, "-", "/").fails(1);
    onode!("mkdir", &image, "/d").succeeds();
    onode!("get", "-r", &image, "/d", "-").fails(2);
    onode!("check", &image).succeeds();
    // A file of that name is one all the same.
    onode!("put", &image, place.file("-", b"dash"), "/dash").succeeds();
    assert_eq!(onode!("get", &image, "/dash", "-").succeeds(), "dash");
}

#[test]
fn the_working_directory_does_not_matter() {
    let place = Place::new("cwd");
    place.image("disk.img");
    place.file("f", b"here");
    let run = |arguments: &[&str]| {
        let mut command: Command = onode();
        command.args(arguments).current_dir(place.path(".")).succeeds()
    };
    run(&["put", "disk.img", "f"]);
    run(&["get", "disk.img", "f", "g"]);
    assert_eq!(fs::read(place.path("g")).expect("g"), b"here");
}

#[test]
fn structures_of_the_medium_can_be_looked_at() {
    let place = Place::new("dump");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("f", &noise(500_000)), "/f").succeeds();
    let inode = onode!("stat", &image, "/f").succeeds();
    let inode = inode.split("inode ").nth(1).and_then(|rest| rest.split(')').next()).expect("its number").to_owned();
    assert!(onode!("dump", &image, "superblock").succeeds().contains("newest"));
    assert!(onode!("dump", &image, "onode", &inode).succeeds().contains("500000"));
    assert!(onode!("dump", &image, "tree").succeeds().contains("level 0"));
    assert!(onode!("dump", "--json", &image, "tree", "--object", &inode).succeeds().contains("\"entries\""));
    assert!(onode!("dump", "--json", &image, "segment", "0").succeeds().contains("\"state\""));
    onode!("dump", &image, "segment", "9999999").fails(20);
    onode!("dump", &image, "onode", "9999999").fails(20);
}

#[test]
fn pages_are_written_for_a_flash_programmer() {
    let place = Place::new("pages");
    let (image, pages) = (place.path("disk.img"), place.path("disk.bin"));
    let spec = format!("flash:{},size=4M,page=2K,spare=40,pages-per-block=16", image.display());
    onode!("mkfs", &spec).succeeds();
    let json = onode!("--json", "dump", &image, "pages", &pages, "--spare", "64", "--at", "2").succeeds();
    assert!(json.contains("\"blocks\": 128") && json.contains("\"bytes\": 4325376"), "{json}");
    let bytes = fs::read(&pages).expect("pages");
    assert_eq!(bytes.len(), 128 * 16 * (2048 + 64));
    let error = onode!("dump", &image, "pages", &pages).fails(21);
    assert!(error.contains("--force"), "{error}");
    let all = onode!("dump", &image, "pages", "-").output().expect("it runs").stdout;
    assert_eq!(all.len(), 128 * 16 * (2048 + 40));
    assert!(onode!("dump", &image, "pages", &pages, "--force").succeeds().contains("2048 + 40 bytes"));
    assert!(fs::read(&pages).expect("pages") == all);
    // What was wrong leaves no file, and those that were there as they were.
    onode!("dump", &image, "pages", &pages, "--force", "--spare", "40", "--at", "2").fails(19);
    assert!(fs::read(&pages).expect("pages") == all);
    let before = fs::read(&image).expect("the image");
    assert!(onode!("dump", &image, "pages", &image, "--force").fails(2).contains("the image itself"));
    assert!(fs::read(&image).expect("the image") == before);
    let none = place.path("none.bin");
    onode!("dump", &image, "pages", &none, "--spare", "40", "--at", "2").fails(19);
    onode!("dump", &image, "pages", &none, "--spare", "64").fails(2);
    onode!("dump", place.path("missing"), "pages", &none).fails(20);
    assert!(!none.exists());
}
