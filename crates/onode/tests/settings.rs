//! What a mount chooses for its device: it is heeded, told, and refused where the device has no
//! such thing.

use crate::common::Folder;
use onode::{Class, CreateOptions, MountOptions, Settings, Spec, Volume};

fn open(spec: &str, settings: Settings) -> onode::Result<Volume> {
    Volume::open(&Spec::parse(spec)?, MountOptions { device: settings, ..MountOptions::default() })
}

#[test]
fn what_was_chosen_is_heeded_and_told() {
    let chosen = Settings {
        node_cache_bytes: Some(1 << 20),
        page_cache_bytes: Some(128 << 10),
        // Whole pages of content are told.
        checkpoint_bytes: None,
        clean_ahead: Some(12),
        ..Settings::NONE
    };
    let folder = Folder::new("settings");
    let at = |name: &str| folder.path().join(name).display().to_string();
    for spec in [format!("flash:{}", at("alone")), format!("flash+scm:{},{}", at("beside"), at("memory"))] {
        let make = Spec::parse(&format!("{spec},size=8M")).unwrap();
        Volume::create(&make, &CreateOptions::default()).unwrap();
        let volume = open(&spec, chosen).unwrap();
        let told = volume.device().inspect().unwrap().settings();
        assert_eq!(Settings { checkpoint_bytes: None, ..told }, chosen, "{spec}");
        assert!(told.checkpoint_bytes.is_some(), "{spec}");
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
    let nodes = Settings { node_cache_bytes: Some(1 << 20), ..Settings::NONE };
    let pages = Settings { page_cache_bytes: Some(1 << 20), ..Settings::NONE };
    let checkpoint = Settings { checkpoint_bytes: Some(1 << 20), ..Settings::NONE };
    let ahead = Settings { clean_ahead: Some(9), ..Settings::NONE };
    let daily = Settings { fast_daily_bytes: Some(1 << 30), ..Settings::NONE };
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
        (tier.as_str(), checkpoint, "checkpoint"),
        ("scm:sim,size=8M", ahead, "clean-ahead"),
        ("flash+scm:sim,size=8M", daily, "fast-daily"),
    ] {
        let error = open(spec, settings).map(drop).unwrap_err();
        assert_eq!(error.class, Class::Usage, "{spec}: {error}");
        assert!(error.why.contains(name) && error.hint.is_some(), "{spec}: {error}");
    }
    let told = |chosen: Settings| open(&tier, chosen).unwrap().device().inspect().unwrap().settings();
    let usual =
        Settings { fast_sequential_bytes: Some(4 << 20), fast_collect_seconds: Some(5), fast_admit: Some(2), ..nodes };
    assert_eq!(told(nodes), usual);
    let chosen = Settings {
        fast_daily_bytes: Some(1 << 30),
        fast_sequential_bytes: Some(0),
        fast_collect_seconds: Some(60),
        fast_admit: Some(0),
        ..nodes
    };
    assert_eq!(told(chosen), chosen);
}

/// Work that a checkpoint after every so many bytes makes costlier, and a mount after a crash
/// cheaper.
#[test]
fn checkpoints_and_cleaning_come_when_they_were_chosen_to() {
    const FILES: u32 = 560;
    let counted = |settings: Settings, name: &str| {
        let folder = Folder::new(name);
        let spec = format!("flash:{}", folder.path().join("disk").display());
        Volume::create(&Spec::parse(&format!("{spec},size=16M")).unwrap(), &CreateOptions::default()).unwrap();
        let volume = open(&spec, settings).unwrap();
        // Seven tenths full, and overwritten in an order that leaves something in each segment.
        for step in 0..3000_u32 {
            let file = if step < FILES { step } else { step.wrapping_mul(7919) % FILES };
            volume.write(format!("/{file}"), vec![file as u8; 18_000]).unwrap();
            if step % 16 == 0 {
                volume.files().sync().unwrap();
            }
        }
        let counters = volume.device().inspect().unwrap().counters();
        let of = |name: &str| counters.iter().find(|(found, _)| found == name).unwrap().1;
        let found = (of("checkpoints"), of("segments_cleaned"));
        for file in 0..FILES {
            assert!(volume.read(format!("/{file}")).unwrap() == [file as u8; 18_000], "{file}");
        }
        volume.close().unwrap();
        found
    };
    let usual = counted(Settings::NONE, "settings-usual");
    let often = counted(Settings { checkpoint_bytes: Some(16 << 10), ..Settings::NONE }, "settings-often");
    assert!(often.0 > usual.0 + 5, "{often:?} after {usual:?}");
    let early = counted(Settings { clean_ahead: Some(16), ..Settings::NONE }, "settings-early");
    assert!(early.1 > usual.1, "{early:?} after {usual:?}");
}
