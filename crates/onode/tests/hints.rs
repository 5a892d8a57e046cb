//! Hints by path: what a volume tells and takes, and what its device says it made of them.

use onode::{Class, CreateOptions, Explanation, Hint, MountOptions, Origin, Spec, Volume};
use std::path::PathBuf;

/// An image that is gone at the end.
struct Image(PathBuf);

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Image {
    fn new(name: &str) -> Self {
        let image = Self(std::env::temp_dir().join(format!("onode-hints-{}-{name}", std::process::id())));
        Volume::create(&image.spec(""), &CreateOptions::default()).unwrap();
        image
    }

    fn spec(&self, more: &str) -> Spec {
        Spec::parse(&format!("flash:{},size=16M{more}", self.0.display())).unwrap()
    }
}

/// What was decided in a matter, and why.
fn decided(explanation: &Explanation, matter: &str) -> (String, String) {
    let found = explanation.decisions.iter().find(|one| one.matter == matter);
    found.map(|one| (one.choice.clone(), one.why.clone())).unwrap_or_else(|| panic!("{matter}: {explanation:?}"))
}

#[test]
fn flash_heeds_lifetime_where_it_is_opened_so() {
    let image = Image::new("lifetime");
    let volume = Volume::open(&image.spec(""), MountOptions::default()).unwrap();
    volume.create_dir_all("/tmp").unwrap();
    volume.set_hint("/tmp", Hint::Lifetime, "short").unwrap();
    volume.write("/tmp/file", [7; 9000]).unwrap();
    let explained = volume.explain("/tmp/file").unwrap();
    assert_eq!(explained.hints.len(), 3, "nothing can be compressed or placed: {explained:?}");
    let lifetime = explained.hints.iter().find(|one| one.hint == Hint::Lifetime).unwrap();
    assert_eq!((lifetime.value.as_str(), lifetime.origin), ("short", Origin::Directory));
    assert!(decided(&explained, "log").1.contains("does not look at lifetime"));
    assert_eq!(decided(&explained, "compression").0, "none");
    volume.close().unwrap();
    drop(volume);

    let volume = Volume::open(&image.spec(",placement=hints"), MountOptions::default()).unwrap();
    volume.write("/plain", [7; 9000]).unwrap();
    let (short, why) = decided(&volume.explain("/tmp/file").unwrap(), "log");
    assert!(why.contains("1/16 of the volume"), "{why}");
    volume.set_hint("/tmp/file", Hint::Lifetime, "long").unwrap();
    let (long, why) = decided(&volume.explain("/tmp/file").unwrap(), "log");
    assert!(short == "class-1" && long == "class-5" && why.contains("it stays"), "{short}, {long}: {why}");
    assert!(decided(&volume.explain("/plain").unwrap(), "log").1.contains("none is given"));
    assert!(volume.explain("/tmp").unwrap().decisions.iter().all(|one| one.matter != "log"));
    volume.close().unwrap();
}

#[test]
fn files_choose_their_parity_where_the_volume_was_made_so() {
    let image = Image::new("parity");
    let plain = Volume::open(&image.spec(""), MountOptions::default()).unwrap();
    plain.write("/file", [7; 9000]).unwrap();
    let refused = plain.set_hint("/file", Hint::Parity, "2").unwrap_err();
    assert!(refused.class == Class::Usage && refused.to_string().contains("--parity 0-2"), "{refused}");
    assert!(plain.explain("/file").unwrap().decisions.iter().all(|one| one.matter != "parity"));
    plain.close().unwrap();
    drop(plain);

    let create = CreateOptions { replace: true, ..CreateOptions::default() };
    let spec = Spec::parse(&format!("flash:{},size=64M,parity=0-2", image.0.display())).unwrap();
    assert!(spec.to_string().ends_with("parity=0-2"), "{spec}");
    Volume::create(&spec, &create).unwrap();
    let volume = Volume::open(&image.spec(""), MountOptions::default()).unwrap();
    volume.create_dir_all("/keys").unwrap();
    volume.set_hint("/keys", Hint::Parity, "2").unwrap();
    volume.write("/keys/one", [7; 200_000]).unwrap();
    volume.write("/plain", [7; 200_000]).unwrap();
    let parity = |volume: &Volume, path: &str| decided(&volume.explain(path).unwrap(), "parity");
    assert_eq!(parity(&volume, "/keys/one"), ("2 of 16 pages".into(), "it is wished".into()));
    let (choice, why) = parity(&volume, "/plain");
    assert!(choice == "none" && why.contains("0 is usual here; names, and what is less than a page, have 2"), "{why}");
    for (value, told) in [("1", "1"), ("none", "none"), ("0", "none"), ("default", "default"), ("2", "2")] {
        volume.set_hint("/plain", Hint::Parity, value).unwrap();
        assert_eq!(volume.hint("/plain", Hint::Parity).unwrap(), told);
    }
    let (_, why) = parity(&volume, "/plain");
    assert!(why.contains("196608 of 200000 bytes have another and move in the background"), "{why}");
    for value in ["3", "-1", "many", ""] {
        let refused = volume.set_hint("/plain", Hint::Parity, value).unwrap_err();
        assert_eq!(refused.class, Class::Usage, "{value}: {refused}");
    }
    volume.close().unwrap();
    drop(volume);
    let volume = Volume::open(&image.spec(""), MountOptions::default()).unwrap();
    assert_eq!(parity(&volume, "/plain").1, "it is wished");
    assert_eq!(volume.read("/plain").unwrap(), [7; 200_000]);
    volume.close().unwrap();
}

#[test]
#[cfg(feature = "compression")]
fn compression_is_explained() {
    let image = Image::new("compression");
    let options = MountOptions { compression: onode::Compression::Auto, ..MountOptions::default() };
    let volume = Volume::open(&image.spec(""), options).unwrap();
    let text = b"all work and no play ".repeat(8000);
    for (path, content) in [("/text", &text[..]), ("/little", b"x"), ("/photo", b"\xff\xd8\xff")] {
        let mut content = content.to_vec();
        if path == "/photo" {
            content.resize(100_000, 1);
        }
        volume.write(path, content).unwrap();
    }
    let compression = |path: &str| decided(&volume.explain(path).unwrap(), "compression");
    for (path, choice, why) in [
        ("/text", "LZ4", "by compress=auto of the mount, as long as"),
        ("/little", "none", "bytes or less"),
        ("/photo", "none", "compressed already"),
    ] {
        let (chosen, said) = compression(path);
        assert!(chosen == choice && said.contains(why), "{path}: {chosen}: {said}");
    }
    volume.set_hint("/text", Hint::Temperature, "cold").unwrap();
    assert_eq!(compression("/text").0, "Zstandard");
    volume.set_hint("/text", Hint::Compress, "none").unwrap();
    assert_eq!(compression("/text"), ("none".into(), "by its hint compress=none".into()));
    volume.close().unwrap();
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let volume = Volume::open_or_create("flash:sim,size=16M").unwrap();
    volume.write("/file", "text").unwrap();
    let refused = volume.set_hint("/file", Hint::Lifetime, "forever").unwrap_err();
    assert!(refused.class == Class::Usage && refused.to_string().contains("short, medium or long"), "{refused}");
    assert_eq!(volume.set_hint("/nothing", Hint::Lifetime, "long").unwrap_err().class, Class::NotFound);
    assert_eq!(volume.hint("/file", Hint::Placement).unwrap_err().class, Class::Usage);
    assert_eq!(volume.hint("/file", Hint::Lifetime).unwrap(), "unknown");
}
