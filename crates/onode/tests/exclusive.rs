//! Volumes on memory that one process at a time uses.

use crate::common::Folder;
use onode::{Class, Error, MountOptions, Spec, Volume};

#[test]
fn an_exclusive_memory_has_one_user_and_is_no_heap() {
    let folder = Folder::new("mapped-exclusive");
    let place = format!("scm:{}", folder.path().join("memory").display());
    let volume = Volume::open_or_create(&format!("{place},size=8M,exclusive=on")).unwrap();
    volume.write("/file", "content").unwrap();
    assert!(volume.snapshots().is_some() && volume.files().offers_quotas());
    let spec = Spec::parse(&place).unwrap();
    let options = MountOptions::default;
    let class = |refused: Result<(), Error>| refused.unwrap_err().class;
    assert_eq!(class(Volume::open(&spec, options()).map(drop)), Class::InUse);
    assert_eq!(class(Volume::open_memory(&spec, options()).map(drop)), Class::InUse);
    assert_eq!(class(Volume::set_exclusive(&spec, false).map(drop)), Class::InUse);
    volume.close().unwrap();
    drop(volume);
    let error = Volume::open_memory(&spec, options()).map(drop).unwrap_err();
    assert!(error.class == Class::Usage && error.to_string().contains("one process at a time"), "{error}");
    // Shared again it is one, and has no snapshots.
    assert!(Volume::set_exclusive(&spec, false).unwrap());
    assert!(!Volume::set_exclusive(&spec, false).unwrap());
    let (volume, _heap) = Volume::open_memory(&spec, options()).unwrap();
    assert_eq!(class(Volume::set_exclusive(&spec, true).map(drop)), Class::InUse);
    assert!(volume.snapshots().is_none());
    assert_eq!(volume.read("/file").unwrap(), b"content");
    volume.close().unwrap();
}
