//! Directories that a spec maps to sections of the fast disk, or past it.

use crate::common::Folder;
use onode::{Class, CreateOptions, Hint, MountOptions, Spec, Volume};

fn create(spec: &str) -> onode::Result<()> {
    Volume::create(&Spec::parse(spec)?, &CreateOptions::default())
}

fn open(spec: &str, read_only: bool) -> onode::Result<Volume> {
    Volume::open(&Spec::parse(spec)?, MountOptions { read_only, ..MountOptions::default() })
}

#[test]
fn directories_are_mapped_when_a_volume_is_made_and_when_it_is_opened() {
    let folder = Folder::new("mapped");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let disks = format!("tier:{},{}", at("fast"), at("big"));
    create(&format!("{disks},size=64M,fast-size=16M,map=mail:small+/video/raw:bypass")).unwrap();
    let placement = |volume: &Volume, path: &str| volume.hint(path, Hint::Placement).unwrap();
    let volume = open(&disks, false).unwrap();
    assert_eq!((placement(&volume, "/mail"), placement(&volume, "/video/raw")), ("small".into(), "bypass".into()));
    volume.create_dir_all("/mail/inbox").unwrap();
    volume.write("/mail/inbox/1", "a mail").unwrap();
    assert_eq!(placement(&volume, "/mail/inbox/1"), "small", "what is made there goes where it is mapped");
    assert_eq!(placement(&volume, "/video"), "default");
    volume.close().unwrap();
    drop(volume);
    // Another mapping counts from now on; what it does not name stays as it was.
    let volume = open(&format!("{disks},map=mail:large"), false).unwrap();
    volume.write("/mail/inbox2", "another").unwrap();
    assert_eq!(
        (placement(&volume, "/mail/inbox/1"), placement(&volume, "/mail/inbox2")),
        ("small".into(), "large".into())
    );
    assert_eq!(placement(&volume, "/video/raw"), "bypass");
    volume.close().unwrap();
    drop(volume);
    // To look at a volume changes nothing.
    let volume = open(&format!("{disks},map=new:large"), true).unwrap();
    assert!(volume.hint("/new", Hint::Placement).is_err());
}

#[test]
fn what_maps_nothing_is_refused_and_makes_nothing() {
    let folder = Folder::new("mapped-wrong");
    let at = |name: &str| folder.path().join(name);
    let disks = format!("tier:{},{}", at("fast").display(), at("big").display());
    for wrong in ["", "mail", "mail:", ":small", "mail:small+"] {
        let error = Spec::parse(&format!("{disks},map={wrong}")).unwrap_err();
        assert_eq!(error.class, Class::Usage, "{wrong}: {error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("map=")), "{wrong}");
    }
    let error = create(&format!("{disks},size=64M,fast-size=16M,map=mail:none")).unwrap_err();
    assert_eq!(error.class, Class::Usage, "{error}");
    assert!(error.why.contains("`none`") && error.hint.is_some_and(|hint| hint.contains("small, large")));
    assert!(!at("big").exists(), "nothing is made");
    create(&format!("{disks},size=64M,fast-size=16M")).unwrap();
    let error = open(&format!("{disks},map=mail:none"), false).unwrap_err();
    assert_eq!(error.class, Class::Usage, "{error}");
    let spec = Spec::parse(&format!("{disks},map=a/b:small+/c:bypass")).unwrap();
    assert_eq!(Spec::parse(&spec.to_string()).unwrap(), spec);
}
