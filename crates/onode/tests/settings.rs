//! Memory that a mount chooses for its device: it is heeded, told, and refused where the device has
//! no such cache.

mod common;

use common::Folder;
use onode::{Class, CreateOptions, MountOptions, Settings, Spec, Volume};

fn open(spec: &str, settings: Settings) -> onode::Result<Volume> {
    Volume::open(&Spec::parse(spec)?, MountOptions { device: settings, ..MountOptions::default() })
}

#[test]
fn what_was_chosen_is_heeded_and_told() {
    let chosen = Settings { node_cache_bytes: Some(1 << 20), page_cache_bytes: Some(128 << 10) };
    let folder = Folder::new("settings");
    let at = |name: &str| folder.path().join(name).display().to_string();
    for spec in [format!("flash:{}", at("alone")), format!("flash+scm:{},{}", at("beside"), at("memory"))] {
        let make = Spec::parse(&format!("{spec},size=8M")).unwrap();
        Volume::create(&make, &CreateOptions::default()).unwrap();
        let volume = open(&spec, chosen).unwrap();
        assert_eq!(volume.device().inspect().unwrap().settings(), chosen, "{spec}");
        volume.write("/file", "some text").unwrap();
        assert_eq!(volume.read("/file").unwrap(), b"some text", "{spec}");
        volume.close().unwrap();
        drop(volume);
        // What nobody chose is told as well.
        let usual = open(&spec, Settings::NONE).unwrap().device().inspect().unwrap().settings();
        assert!(usual.node_cache_bytes.is_some() && usual.page_cache_bytes.is_some() && usual != chosen, "{usual:?}");
    }
}

#[test]
fn what_a_device_does_not_have_is_refused() {
    let nodes = Settings { node_cache_bytes: Some(1 << 20), page_cache_bytes: None };
    let pages = Settings { node_cache_bytes: None, page_cache_bytes: Some(1 << 20) };
    let folder = Folder::new("settings-refused");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let tier = format!("tier:{},{}", at("fast"), at("big"));
    Volume::create(&Spec::parse(&format!("{tier},size=32M,fast-size=16M")).unwrap(), &CreateOptions::default())
        .unwrap();
    for (spec, settings, name) in [
        ("scm:sim,size=8M", nodes, "node-cache"),
        ("ram:size=8M", pages, "page-cache"),
        ("flash:sim,size=8M", nodes, "node-cache"),
        ("tier:sim,size=64M,fast=none", nodes, "node-cache"),
        (tier.as_str(), pages, "page-cache"),
    ] {
        let error = open(spec, settings).map(drop).unwrap_err();
        assert_eq!(error.class, Class::Usage, "{spec}: {error}");
        assert!(error.why.contains(name) && error.hint.is_some(), "{spec}: {error}");
    }
    let volume = open(&tier, nodes).unwrap();
    assert_eq!(volume.device().inspect().unwrap().settings(), nodes);
}
