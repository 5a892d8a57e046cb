//! A build of the facade has the devices of its features: those work, and the others are refused by
//! name. Runs with every set of features.

mod common;

use common::Folder;
use onode::{Class, Compression, CreateOptions, Error, MountOptions, Spec, Volume};

/// A device, the feature that brings it, and whether this build has it.
const DEVICES: [(&str, &str, bool); 5] = [
    ("flash:IMAGE,size=8M,page=2K", "flash", cfg!(feature = "flash")),
    ("flash+scm:IMAGE,MEMORY,size=8M,page=2K", "flash", cfg!(feature = "flash")),
    ("IMAGE,size=8M", "flash", cfg!(feature = "flash")),
    ("scm:IMAGE,size=8M", "scm", cfg!(feature = "scm")),
    ("tier:MEMORY,IMAGE,size=32M,fast-size=8M", "tier", cfg!(feature = "tier")),
];

fn assert_refused(error: &Error, feature: &str, case: &str) {
    assert_eq!((error.class, error.class.exit_code()), (Class::Usage, 2), "{case}: {error}");
    assert!(error.why.starts_with(&format!("this build of Onode has no {feature}: ")), "{case}: {error}");
    let advice = format!("enable the feature `{feature}` of the crate `onode`");
    assert_eq!(error.hint.as_deref(), Some(advice.as_str()), "{case}");
}

/// What was written is there after the volume was closed and opened again.
fn use_volume(spec: &Spec) {
    Volume::create(spec, &CreateOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let spec = spec.clone().again();
    let volume = Volume::open(&spec, MountOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    volume.write("/file", "some text").unwrap();
    volume.close().unwrap();
    drop(volume);
    let volume = Volume::open(&spec, MountOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    assert_eq!(volume.read("/file").unwrap(), b"some text", "{spec}");
    volume.close().unwrap();
    drop(volume);
    let report = onode::medium::check_medium(&spec, &mut |_, _| {}).unwrap();
    assert!(report.is_sound, "{spec}: {:?}", report.findings);
}

#[test]
fn a_device_works_or_is_refused_by_name() {
    for (number, (text, feature, is_there)) in DEVICES.into_iter().enumerate() {
        let folder = Folder::new(&format!("features-{number}"));
        let at = |name: &str| folder.path().join(name).display().to_string();
        let text = text.replace("IMAGE", &at("image")).replace("MEMORY", &at("memory"));
        match Spec::parse(&text) {
            Ok(spec) if is_there => use_volume(&spec),
            Err(error) if !is_there => assert_refused(&error, feature, &text),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// A path that is there is taken for what it holds.
#[test]
fn a_file_is_recognised_without_its_device() {
    let folder = Folder::new("features-argument");
    for (content, feature, is_there) in
        [(&b"ONODESPC"[..], "scm", cfg!(feature = "scm")), (b"anything", "flash", cfg!(feature = "flash"))]
    {
        let path = folder.path().join(feature);
        std::fs::write(&path, content).unwrap();
        match Spec::from_argument(path.as_os_str()) {
            Ok(spec) if is_there => assert!(spec.to_string().starts_with(&format!("{feature}:")), "{spec}"),
            Err(error) if !is_there => assert_refused(&error, feature, feature),
            other => panic!("{feature}: {other:?}"),
        }
    }
}

#[test]
fn memory_of_the_process_is_always_there() {
    let volume = Volume::open_or_create("ram:size=16M").unwrap();
    volume.write("/file", "some text").unwrap();
    assert_eq!(volume.read("/file").unwrap(), b"some text");
    volume.close().unwrap();
    let spec = Spec::parse("ram:size=16M").unwrap();
    assert_eq!(Volume::create(&spec, &CreateOptions::default()).unwrap_err().class, Class::Usage);
    assert_eq!(onode::medium::check_medium(&spec, &mut |_, _| {}).unwrap_err().class, Class::Usage);
}

#[test]
fn compression_is_there_or_refused() {
    let spec = Spec::parse("ram:size=16M").unwrap();
    let options = MountOptions { compression: Compression::Fast, ..MountOptions::default() };
    match Volume::open(&spec, options) {
        Ok(volume) if cfg!(feature = "compression") => volume.close().unwrap(),
        Err(error) if !cfg!(feature = "compression") => assert_refused(&error, "compression", "ram:"),
        other => panic!("{:?}", other.map(drop)),
    }
}

/// A volume whose settings say that its content may be compressed. That a build with `compression`
/// sets this bit is asserted in `services.rs`.
#[cfg(all(feature = "flash", not(feature = "compression")))]
#[test]
fn content_that_may_be_compressed_is_not_read_as_plain() {
    use onode::object::{Durability, Transaction};
    use onode_fs::volume::{VOLUME, VolumeInfo};
    use onode_object::AttributeKey;

    let folder = Folder::new("features-compressed");
    let mark = AttributeKey::VOLUME_COMPRESSED;
    for name in ["bit", "mark", "settings"] {
        let image = folder.path().join(name);
        let spec = Spec::parse(&format!("flash:{},size=8M,page=2K", image.display())).unwrap();
        Volume::create(&spec, &CreateOptions::default()).unwrap();
        let (device, _) = onode::open_device(&spec, false, false).unwrap();
        let mut change = Transaction::new();
        match name {
            "bit" => change.mutations.extend(VolumeInfo::admit_compressed(device.as_ref()).unwrap()),
            "mark" => drop(change.set_attribute(VOLUME, mark, vec![1])),
            _ => drop(change.remove(VOLUME)),
        }
        device.commit(change, Durability::Durable).unwrap();
        device.close().unwrap();
        drop(device);
        let before = std::fs::read(&image).unwrap();
        let error = Volume::open(&spec, MountOptions::default()).map(drop).unwrap_err();
        assert_refused(&error, "compression", name);
        let repaired = onode::open_device(&spec, false, false).map(drop).unwrap_err();
        assert_refused(&repaired, "compression", name);
        assert!(before == std::fs::read(&image).unwrap(), "{name}: a refused volume was changed");
    }
}

/// A build without `encryption` refuses what is encrypted, and changes nothing of it.
#[cfg(all(feature = "flash", not(feature = "encryption")))]
#[test]
fn what_is_encrypted_is_not_read_as_plain() {
    use onode::object::{Durability, Transaction};
    use onode_fs::volume::VOLUME;
    use onode_object::AttributeKey;

    let folder = Folder::new("features-encrypted");
    let image = folder.path().join("image");
    let spec = Spec::parse(&format!("flash:{},size=8M,page=2K", image.display())).unwrap();
    Volume::create(&spec, &CreateOptions::default()).unwrap();
    let (device, _) = onode::open_device(&spec, false, false).unwrap();
    let mut change = Transaction::new();
    change.set_attribute(VOLUME, AttributeKey::VOLUME_ENCRYPTED, vec![1, 1]);
    device.commit(change, Durability::Durable).unwrap();
    device.close().unwrap();
    drop(device);
    let before = std::fs::read(&image).unwrap();
    let error = Volume::open(&spec, MountOptions::default()).map(drop).unwrap_err();
    assert_refused(&error, "encryption", "volume");
    let error = onode::open_device(&spec, false, false).map(drop).unwrap_err();
    assert_refused(&error, "encryption", "device");
    assert!(before == std::fs::read(&image).unwrap(), "a refused volume was changed");
}
