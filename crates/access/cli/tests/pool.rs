//! Pools as people use them: made, mounted, a member killed in every way and brought back,
//! replaced, and refused where two histories would become one.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, wait_until};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const USAGE: i32 = 2;
const DEGRADED: i32 = 4;

/// A pool on two images, and their specs.
fn made(place: &Place) -> (String, [String; 2]) {
    let members = ["a.img", "b.img"].map(|name| format!("flash:{}", place.path(name).display()));
    let pool = format!("pool:{}+{}", members[0], members[1]);
    onode!("mkfs", format!("pool:{},size=32M+{},size=32M", members[0], members[1])).succeeds();
    (pool, members)
}

fn image(spec: &str) -> &Path {
    Path::new(spec.strip_prefix("flash:").expect("an image"))
}

/// Bytes that follow from the seed, and do not compress.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..length).map(next).collect()
}

fn put(place: &Place, pool: &str, name: &str, bytes: &[u8]) {
    onode!("put", pool, place.file("put", bytes), name).succeeds();
}

fn get(place: &Place, spec: &str, name: &str) -> Vec<u8> {
    let to = place.path("got");
    let _ = fs::remove_file(&to);
    onode!("get", spec, name, &to).succeeds();
    fs::read(&to).expect("what was copied")
}

/// What a command says that ends with this code.
fn ended(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("it starts");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8")).concat();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    said
}

/// How the members stand, and with which code that is told.
fn states(pool: &str, code: i32) -> Vec<String> {
    let output = onode!("--json", "pool", "status", pool).output().expect("it starts");
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let members = report["members"].as_array().expect("members");
    members.iter().map(|member| member["state"].as_str().expect("a state").to_owned()).collect()
}

/// A member that is expected and never comes takes one of eight places, and the pool is degraded.
#[test]
fn an_interrupted_addition_leaves_no_member() {
    let place = Place::new("pool-interrupted");
    let (pool, _) = made(&place);
    put(&place, &pool, "/f", &content(9, 20_000_000));
    let member = place.path("n.img");
    let mut interrupted = 0;
    for _ in 0..20 {
        let running = Running::start(&mut onode!("pool", "add", &pool, format!("flash:{},size=32M", member.display())));
        // The name comes with the member's label: then what the others have is copied.
        wait_until("the member is made", || member.exists());
        running.signal("INT");
        let output = running.end();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(1) {
            assert!(said.contains("interrupted; the pool is as it was") && said.contains("hint: "), "{said}");
            assert_eq!(states(&pool, 0), ["whole", "whole"]);
            assert!(!member.exists(), "the file of the member is left");
            interrupted += 1;
            if interrupted == 3 {
                break;
            }
        } else {
            // It was done before it heard of the signal.
            assert_eq!(output.status.code(), Some(0), "{said}");
            onode!("pool", "remove", &pool, "3").output().expect("it starts");
            fs::remove_file(&member).expect("removed");
            break;
        }
    }
    assert!(interrupted > 0, "no addition was ever interrupted");
    onode!("check", &pool).succeeds();
}

#[test]
fn a_ninth_member_is_over_the_limit_and_no_damage() {
    let place = Place::new("pool-nine");
    let members: Vec<String> =
        (1..=8).map(|number| format!("flash:{},size=8M", place.path(&format!("{number}.img")).display())).collect();
    onode!("mkfs", format!("pool:{}", members.join("+"))).succeeds();
    // Seven are away, as after as many failures.
    let (pool, ninth) = (format!("pool:flash:{}", place.path("1.img").display()), place.path("9.img"));
    let error = onode!("pool", "add", &pool, format!("flash:{},size=8M", ninth.display())).fails(26);
    is_clear(&error, "at most 8 members");
    assert!(error.contains("onode pool remove") && !ninth.exists(), "{error}");
}

/// The other members have what is damaged here, and would have to believe zeros.
#[test]
fn a_repair_of_one_member_alone_drops_nothing() {
    let place = Place::new("pool-repair-member");
    let (pool, members) = made(&place);
    let good = content(5, 300_000);
    put(&place, &pool, "/f", &good);
    let victim = image(&members[0]);
    let mut bytes = fs::read(victim).expect("an image");
    let at = bytes.windows(64).position(|window| window == &good[150_000..150_064]).expect("the content");
    bytes[at..at + 4].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(victim, &bytes).expect("damage");
    onode!("check", &members[0]).output().expect("it starts");
    for flags in [&["--drop-damaged"][..], &["--drop-damaged", "--accept-loss"], &[]] {
        let said = ended(onode!("repair", &members[0]).args(flags), 16);
        assert!(said.contains("it is member 1 of a pool"), "{said}");
        assert!(fs::read(victim).expect("an image") == bytes, "a repair that was refused changed the member");
    }
    assert_eq!(get(&place, &pool, "/f"), good);
    let said = ended(&mut onode!("repair", &pool), 1);
    assert!(said.contains("written to members again"), "{said}");
    onode!("check", &pool).succeeds();
    assert_eq!(get(&place, &members[0], "/f"), good);
}

#[test]
fn a_member_is_killed_in_every_way_and_comes_back() {
    let place = Place::new("pool-killed");
    let (pool, members) = made(&place);
    let (old, new) = (content(1, 2_000_000), content(2, 50_000));
    put(&place, &pool, "/old", &old);
    assert_eq!(states(&pool, 0), ["whole", "whole"]);
    for (killed, other) in [(0, 1), (1, 0)] {
        let victim = image(&members[killed]);
        let whole = fs::read(victim).expect("an image");
        for way in ["gone", "short", "garbage"] {
            match way {
                "gone" => fs::remove_file(victim).expect("removed"),
                "short" => fs::write(victim, &whole[..1000]).expect("cut"),
                _ => fs::write(victim, content(3, whole.len())).expect("overwritten"),
            }
            assert_eq!(get(&place, &pool, "/old"), old, "{way}");
            assert_eq!(states(&pool, DEGRADED)[killed], "away", "{way}");
            assert!(ended(&mut onode!("health", &pool), DEGRADED).contains("pool-member-away"));
            let name = format!("/{way}-{killed}");
            put(&place, &pool, &name, &new);
            // It comes back as it was, and gets what changed.
            fs::write(victim, &whole).expect("brought back");
            assert_eq!(states(&pool, DEGRADED)[killed], "behind", "{way}");
            assert_eq!(get(&place, &pool, &name), new, "nothing old is read");
            onode!("pool", "rebuild", &pool).succeeds();
            assert_eq!(states(&pool, 0), ["whole", "whole"], "{way}");
            for member in [killed, other] {
                assert_eq!(get(&place, &members[member], &name), new, "{way}: each has it");
                assert_eq!(get(&place, &members[member], "/old"), old);
                onode!("check", &members[member]).succeeds();
            }
            onode!("check", &pool).succeeds();
            onode!("rm", &pool, &name).succeeds();
        }
    }
}

#[test]
fn damage_on_one_member_is_read_around_and_repaired() {
    let place = Place::new("pool-damage");
    let (pool, members) = made(&place);
    let bytes = content(5, 3_000_000);
    put(&place, &pool, "/file", &bytes);
    // The start of every block of its content is damaged on one member, wherever it lies there.
    let victim = image(&members[1]);
    let mut medium = fs::read(victim).expect("an image");
    let starts: HashSet<&[u8]> = bytes.chunks_exact(4096).map(|block| &block[..8]).collect();
    let hits: Vec<usize> = (0..medium.len() - 8).filter(|at| starts.contains(&medium[*at..at + 8])).collect();
    assert!(hits.len() >= starts.len(), "only {} of {} places were found", hits.len(), starts.len());
    hits.iter().for_each(|at| medium[*at] ^= 0x55);
    fs::write(victim, &medium).expect("damaged");
    ended(&mut onode!("check", &members[1]), 4);
    assert_eq!(get(&place, &pool, "/file"), bytes, "it is read from the other one");
    let said = ended(&mut onode!("repair", &pool), 1);
    assert!(said.contains("written to members again"), "{said}");
    onode!("check", &members[1]).succeeds();
    assert_eq!(get(&place, &members[1], "/file"), bytes);
    // A scrub looks at every member, and mends as well.
    fs::write(victim, &medium).expect("damaged");
    let said = ended(&mut onode!("scrub", &pool), 0);
    assert!(said.contains("written again"), "{said}");
    onode!("check", &members[1]).succeeds();
}

#[test]
fn a_member_by_itself_is_for_reading() {
    let place = Place::new("pool-alone");
    let (pool, members) = made(&place);
    put(&place, &pool, "/file", b"text");
    let before = fs::read(image(&members[0])).expect("an image");
    let file = place.file("other", b"other");
    is_clear(&onode!("put", &members[0], &file, "/other").fails(USAGE), "member 1 of a pool");
    assert!(ended(&mut onode!("repair", &members[0]), 16).contains("member 1 of a pool"));
    assert!(fs::read(image(&members[0])).expect("an image") == before, "a refusal changed it");
    assert_eq!(get(&place, &members[0], "/file"), b"text");
    is_clear(&onode!("pool", "status", &members[0]).fails(USAGE), "no pool");
}

#[test]
fn two_histories_are_refused_and_one_is_chosen() {
    let place = Place::new("pool-split");
    let (pool, members) = made(&place);
    put(&place, &pool, "/file", b"both");
    let alone = members.clone().map(|member| format!("pool:{member}"));
    put(&place, &alone[0], "/first", b"1");
    put(&place, &alone[1], "/second", b"2");
    let refusal = onode!("ls", &pool).fails(USAGE);
    is_clear(&refusal, &members[0]);
    is_clear(&refusal, &members[1]);
    is_clear(&refusal, "onode pool add");
    onode!("pool", "remove", &alone[0], "2").succeeds();
    is_clear(&onode!("ls", &pool).fails(USAGE), "taken out");
    is_clear(&onode!("pool", "add", &alone[0], format!("{},size=32M", members[1])).fails(21), "--force");
    onode!("pool", "add", "--force", &alone[0], format!("{},size=32M", members[1])).succeeds();
    assert_eq!(states(&pool, 0), ["whole", "whole"]);
    assert_eq!(onode!("ls", &members[1]).succeeds(), "file\nfirst\n");
}

#[test]
fn members_of_other_kinds_are_added_and_taken_out() {
    let place = Place::new("pool-kinds");
    let (pool, members) = made(&place);
    let bytes = content(7, 700_000);
    put(&place, &pool, "/file", &bytes);
    let memory = format!("scm:{}", place.path("c.mem").display());
    onode!("pool", "add", &pool, format!("{memory},size=48M")).succeeds();
    let three = format!("{pool}+{memory}");
    assert_eq!(states(&three, 0), ["whole"; 3]);
    onode!("pool", "remove", &three, "1").succeeds();
    fs::remove_file(image(&members[0])).expect("removed");
    let two = format!("pool:{}+{memory}", members[1]);
    assert_eq!(states(&two, 0), ["whole"; 2]);
    let disks = format!("tier:{},{}", place.path("ssd").display(), place.path("hdd").display());
    onode!("pool", "add", &two, format!("{disks},size=64M,fast-size=16M")).succeeds();
    assert_eq!(get(&place, &format!("pool:{disks}"), "/file"), bytes, "one member is enough");
    is_clear(&onode!("pool", "remove", &two, "9").fails(20), "member 9");
    is_clear(&onode!("pool", "remove", format!("pool:{memory}"), "3").fails(USAGE), "only one");
    is_clear(&onode!("mkfs", "--size", "1G", format!("pool:{memory}")).fails(USAGE), "own size");
}

#[test]
fn an_encrypted_pool_is_mounted_without_a_member_and_made_whole() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("pool-mount");
    let members = ["a.img", "b.img"].map(|name| format!("flash:{}", place.path(name).display()));
    let pool = format!("pool:{}+{}", members[0], members[1]);
    let key = place.file("key", &[7; 32]);
    let sized = format!("pool:{},size=32M+{},size=32M", members[0], members[1]);
    onode!("mkfs", "--encrypt", "--key-file", &key, sized).succeeds();
    let directory = place.directory("mnt");
    onode!("--key-file", &key, "mount", &pool, &directory).succeeds();
    let bytes = content(9, 1_000_000);
    fs::write(directory.join("file"), &bytes).expect("written");
    onode!("health", &directory).succeeds();
    onode!("umount", &directory).succeeds();
    let away = fs::read(image(&members[0])).expect("an image");
    fs::remove_file(image(&members[0])).expect("removed");
    onode!("--key-file", &key, "mount", &pool, &directory).succeeds();
    assert!(ended(&mut onode!("health", &directory), DEGRADED).contains("pool-member-away"));
    assert_eq!(fs::read(directory.join("file")).expect("read"), bytes);
    fs::write(directory.join("more"), &bytes[..9999]).expect("written");
    onode!("umount", &directory).succeeds();
    fs::write(image(&members[0]), away).expect("brought back");
    onode!("--key-file", &key, "mount", &pool, &directory).succeeds();
    assert_eq!(fs::read(directory.join("more")).expect("read"), &bytes[..9999]);
    onode!("umount", &directory).succeeds();
    assert_eq!(states(&pool, 0), ["whole", "whole"]);
    let to = place.path("got");
    onode!("--key-file", &key, "get", &members[0], "/more", &to).succeeds();
    assert_eq!(fs::read(to).expect("copied"), &bytes[..9999]);
}
