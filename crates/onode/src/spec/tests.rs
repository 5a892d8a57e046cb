//! What specs are understood, and how others are refused.

use super::flash::Shape;
use super::*;

#[test]
fn specs_round_trip() {
    for text in [
        "ram:size=256M",
        "flash:disk.img",
        "flash:/dev/sdb1",
        "flash:disk.raw,direct,size=1G",
        "flash:sim,size=128M,page=2K",
        "scm:/dev/shm/heap,size=1G",
        "flash+scm:disk.img,/dev/shm/index",
        "flash+scm:disk.img,index.mem,memory=1M,full=refuse,rebuild=on,buffer=on,log=256K,size=1G,page=2K",
        "flash+scm:sim,memory=64K,size=128M",
        "scm:sim,size=64M,chunk=16K,objects=32M,flush=on",
        "scm:/dev/shm/heap,exclusive=on",
        "scm:/dev/shm/heap,exclusive=off,mode=mem",
        "scm:/dev/shm/heap,size=1G,mode=mem",
        "tier:ssd.img,hdd.img",
        "tier:/dev/nvme0n1p4,/dev/sdb,log=8M,sections=small:64K:1+large:1M:3,acknowledge=either,allocate=paper",
        "tier:ssd.img,hdd.img,size=4G,fast-size=512M,erase-block=256K,discard=off,fast=new",
        "tier:sim,size=64M,fast=none",
        "flash:disk.img,placement=sepbit,victim=d-choices,wear=static",
        "flash:/a/b c.img,size=1G,page=4K,spare=32,pages-per-block=64,blocks-per-segment=4,chips=2",
    ] {
        assert_eq!(Spec::parse(text).expect(text).to_string(), text);
    }
}

#[test]
fn a_name_behind_an_image_is_a_snapshot_or_a_clone() {
    let state = |text: &'static str| Spec::state_of(OsStr::new(text));
    assert_eq!(state("disk.img@monday"), Some(("disk.img", "monday")));
    assert_eq!(state("flash:disk.img,size=64M@monday"), Some(("flash:disk.img,size=64M", "monday")));
    assert_eq!(state("a@b.img@monday"), Some(("a@b.img", "monday")));
    for none in ["disk.img", "@monday", "disk.img@", "user@host/disk.img", ""] {
        assert_eq!(state(none), None, "{none}");
    }
}

#[test]
fn a_bare_path_is_a_flash_image() {
    assert_eq!(Spec::parse("a/b.img"), Ok(Spec::image("a/b.img")));
    assert_eq!(Spec::parse("sim"), Ok(Spec::image("sim")));
    assert_eq!(Spec::parse("./odd:name").map(|spec| spec.to_string()), Ok("flash:./odd:name".to_owned()));
}

#[test]
fn errors_quote_the_wrong_part() {
    for (text, quoted, class) in [
        ("tape:x", "`tape`", Class::Usage),
        ("flash:", "file is missing", Class::Usage),
        ("flash:mtd:no such partition,page=2K", "`no such partition`", Class::NotFound),
        ("flash:a,colour=red", "`colour=red`", Class::Usage),
        ("flash:a,direct=1", "`direct=1`", Class::Usage),
        ("flash:sim,direct", "`direct`", Class::Usage),
        ("flash:a,size=lots", "`lots`", Class::BadSize),
        ("flash:a,placement=anywhere", "`anywhere`", Class::Usage),
        ("flash:a,placement=random", "`random`", Class::Usage),
        ("flash:a,victim=all", "`all`", Class::Usage),
        ("flash:a,wear=none", "`none`", Class::Usage),
        ("flash:a,page=99999999999", "`99999999999`", Class::BadSize),
        ("scm:", "file is missing", Class::Usage),
        ("flash+scm:disk.img", "memory beside it is missing", Class::Usage),
        ("flash+scm:disk.img,size=1G", "memory beside it is missing", Class::Usage),
        ("flash+scm:disk.img,mtd:no such memory", "`no such memory`", Class::NotFound),
        ("flash+scm:mtd:no such chip,b", "`no such chip`", Class::NotFound),
        ("flash+scm:a,b,full=maybe", "`full=maybe`", Class::Usage),
        ("flash+scm:a,b,buffer=1M", "`buffer=1M`", Class::Usage),
        ("flash+scm:a,b,log=much", "`much`", Class::BadSize),
        ("flash+scm:a,b,colour=red", "`colour=red`", Class::Usage),
        ("flash+scm:a,b,memory=1K", "1K", Class::BadSize),
        ("scm:a,flush=maybe", "`flush=maybe`", Class::Usage),
        ("scm:a,mode=fast", "`fast`", Class::Usage),
        ("scm:a,size=4K", "4K", Class::BadSize),
        ("tier:", "big one is missing", Class::Usage),
        ("tier:ssd.img", "big one is missing", Class::Usage),
        ("tier:ssd.img,size=4G", "big one is missing", Class::Usage),
        ("tier:a,a", "cannot be both", Class::Usage),
        ("tier:a,b,fast=maybe", "`fast=maybe`", Class::Usage),
        ("tier:a,b,acknowledge=never", "`acknowledge=never`", Class::Usage),
        ("tier:a,b,size=1M", "1M is no size", Class::BadSize),
        ("tier:a,b,fast-size=8193K", "8193K is no size", Class::BadSize),
        ("tier:a,b,sections=small", "extent size is missing", Class::Usage),
        ("tier:a,b,sections=small:24K", "power of two", Class::Usage),
        ("tier:a,b,sections=small:64K:0", "above zero", Class::Usage),
        ("tier:a,b,sections=s:64K+s:64K", "twice", Class::Usage),
        ("tier:a,b,sections=s/t:64K", "its name", Class::Usage),
        ("ram:page=2K", "`page=2K`", Class::Usage),
        ("ram:size=1K", "1K", Class::BadSize),
    ] {
        let error = Spec::parse(text).expect_err(text);
        assert!(error.why.contains(quoted), "{text}: {error}");
        assert_eq!(error.class, class, "{text}");
    }
}

#[test]
fn the_default_shape_is_a_gibibyte() {
    let geometry = Shape::default().geometry().expect("default");
    assert_eq!(geometry.bytes(), 1 << 30);
    assert_eq!((geometry.page_bytes, geometry.spare_bytes, geometry.chips), (4096, 32, 1));
}

/// Above 384 GiB the segments that were chosen had more pages than one may have, and above 4 TiB
/// there were too many erase blocks.
#[test]
fn every_size_from_1_mib_to_64_tib_has_a_shape() {
    for shift in 20..=46 {
        for size in [1 << shift, (1_u64 << shift) / 2 * 3].into_iter().filter(|size| *size <= 64 << 40) {
            let shape = Shape { size: Some(size), ..Shape::default() };
            let geometry = shape.geometry().unwrap_or_else(|error| panic!("{size}: {error}"));
            let blocks = u16::try_from(shape.segment_blocks()).unwrap();
            let layout = onode_flash::layout::Layout::new(geometry, blocks);
            let layout = layout.unwrap_or_else(|error| panic!("{size}: {error}"));
            assert!(geometry.blocks <= 1 << 20, "{size}: {} erase blocks", geometry.blocks);
            assert!(layout.segments <= 70_000, "{size}: {} segments", layout.segments);
            assert!(geometry.bytes() <= size && geometry.bytes() > size / 16 * 15, "{size}: {geometry:?}");
        }
    }
}

#[test]
fn impossible_shapes_are_refused() {
    let with = |change: fn(&mut Shape)| {
        let mut shape = Shape::default();
        change(&mut shape);
        shape.geometry().map_err(|error| error.class)
    };
    assert_eq!(with(|shape| shape.size = Some(0)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.size = Some(1 << 17)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.size = Some(u64::MAX)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.page = Some(0)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.page = Some(3000)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.pages_per_block = Some(u32::MAX)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.blocks_per_segment = Some(0)), Err(Class::BadSize));
    assert_eq!(with(|shape| shape.chips = Some(1000)), Err(Class::BadSize));
}

#[test]
fn all_settings_of_a_memory_beside_flash_are_named() {
    for wrong in ["sise=1G", "buffer=yes", "full"] {
        let error = Spec::parse(&format!("flash+scm:/x/d,/y/i,{wrong}")).unwrap_err();
        let hint = error.hint.unwrap();
        for key in ["memory", "buffer", "log", "full", "rebuild"] {
            assert!(hint.contains(key), "{wrong}: {hint}");
        }
    }
    let hint = Spec::parse("flash+scm:/x/d,/y/i,sise=1G").unwrap_err().hint.unwrap();
    assert!(hint.contains("placement"), "{hint}");
    assert!(!Spec::parse("flash:/x/d,sise=1G").unwrap_err().hint.unwrap().contains("buffer"));
}

#[test]
fn what_is_needed_again_stays() {
    for (spec, again) in [
        ("/x/disk.img,size=4G,page=2K,placement=sepbit", "flash:/x/disk.img"),
        ("flash:/x/raw,direct,size=4G", "flash:/x/raw,direct"),
        (
            "flash+scm:/x/d,/y/i,buffer=on,full=refuse,rebuild=on,memory=1M,log=64K",
            "flash+scm:/x/d,/y/i,full=refuse,buffer=on",
        ),
        ("scm:/x/heap,size=1G,mode=mem,flush=on", "scm:/x/heap,flush=on,mode=mem"),
        ("tier:/x/ssd,/y/hdd,size=1G,fast-size=256M,acknowledge=either", "tier:/x/ssd,/y/hdd,acknowledge=either"),
        ("tier:/x/ssd,/y/hdd,fast=none", "tier:/x/ssd,/y/hdd,fast=none"),
        ("tier:/x/ssd,/y/hdd,fast=new", "tier:/x/ssd,/y/hdd"),
        ("ram:size=16M", "ram:size=16M"),
    ] {
        let short = Spec::parse(spec).unwrap().again();
        assert_eq!(short.to_string(), again);
        assert_eq!(Spec::parse(again).unwrap(), short, "{again}");
    }
}

#[test]
fn a_memory_is_recognised_without_its_device() {
    assert_eq!(MEMORY_MAGIC, onode_spaces::MAGIC);
}
