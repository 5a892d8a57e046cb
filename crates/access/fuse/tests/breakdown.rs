//! A panic in one of several server threads ends the mount, and nothing more is served; one that
//! hangs can be seen from outside.

use onode::{Class, MountOptions, Spec, Volume};
use onode_fuse::{Mount, Options, Transport};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A new directory of its own.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("onode-breakdown-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("directory");
    path
}

#[test]
fn a_panic_of_one_thread_ends_all() {
    if !PathBuf::from("/dev/fuse").exists() {
        eprintln!("skipped: no /dev/fuse");
        return;
    }
    breaks_down("device", "threads=4,io-uring=off", Transport::Device);
}

/// Only where somebody has switched it on: a test changes nothing for others.
#[test]
fn a_panic_of_one_thread_ends_all_that_io_uring_serves() {
    if !std::fs::read_to_string("/sys/module/fuse/parameters/enable_uring").is_ok_and(|state| state.trim() == "Y") {
        eprintln!("skipped: FUSE over io_uring is not switched on");
        return;
    }
    breaks_down("ring", "threads=4,io-uring=on", Transport::IoUring);
}

fn breaks_down(name: &str, list: &str, transport: Transport) {
    let directory = directory(name);
    let spec = Spec::parse("ram:size=8M").expect("spec");
    let volume = Arc::new(Volume::open(&spec, MountOptions::default()).expect("volume"));
    let mut options = Options::new();
    options.apply(list).expect("options");
    // A request that hangs holds up nobody for long.
    let views = Box::new(|name: &str, _: &_| -> Option<Vec<u8>> {
        if name == "hangs" {
            std::thread::sleep(Duration::from_secs(3600));
        }
        panic!("this view ({name}) is there to panic")
    });
    let (ended, end) = channel();
    let on_end = move || ended.send(()).expect("it is waited for");
    let mount = Mount::start(volume, &directory, &options, views, on_end).expect("mount");
    assert_eq!(mount.transport(), transport);
    let hanging = (transport == Transport::IoUring).then(|| {
        let asked = directory.clone();
        std::thread::spawn(move || rustix::fs::getxattr(&asked, "onode.hangs", &mut [0_u8; 8]))
    });
    while hanging.is_some() && mount.requests().served().all(|served| served.kind != "getxattr") {
        std::thread::yield_now();
    }
    let file = fs::File::create(directory.join("open")).expect("create");
    let error = rustix::fs::getxattr(&directory, "onode.boom", &mut [0_u8; 8]).expect_err("no answer");
    // Who waits when the mount is taken away is told so.
    assert!([rustix::io::Errno::IO, rustix::io::Errno::CONNABORTED].contains(&error), "{error}");
    end.recv_timeout(Duration::from_secs(20)).expect("the server ends");
    fs::metadata(directory.join("other")).expect_err("nothing is served");
    let error = mount.finish().expect_err("it broke down");
    assert_eq!(error.class, Class::Bug, "{error}");
    drop(file);
    if let Some(hanging) = hanging {
        hanging.join().expect("no panic").expect_err("no answer");
    }
    let _ = fs::remove_dir(&directory);
}

#[test]
fn a_request_that_is_not_answered_is_seen() {
    if !PathBuf::from("/dev/fuse").exists() {
        eprintln!("skipped: no /dev/fuse");
        return;
    }
    let directory = directory("hangs");
    let spec = Spec::parse("ram:size=8M").expect("spec");
    let volume = Arc::new(Volume::open(&spec, MountOptions::default()).expect("volume"));
    let mut options = Options::new();
    options.apply("threads=2,io-uring=off").expect("options");
    let ((begun, has_begun), (goes_on, wait)) = (channel(), channel::<()>());
    let wait = Mutex::new(wait);
    let views = Box::new(move |_: &str, _: &_| -> Option<Vec<u8>> {
        begun.send(()).expect("it is waited for");
        wait.lock().expect("one at a time").recv().expect("it goes on");
        Some(Vec::new())
    });
    let mount = Mount::start(volume, &directory, &options, views, || ()).expect("mount");
    let seen = || mount.requests().served().filter(|served| served.kind == "getxattr").collect::<Vec<_>>();
    // Several times: which request of a thread it is makes no difference.
    for round in 0..5 {
        let asked = directory.clone();
        let asks = std::thread::spawn(move || rustix::fs::getxattr(&asked, "onode.slow", &mut [0_u8; 8]));
        has_begun.recv_timeout(Duration::from_secs(20)).expect("it is asked for");
        let first = seen();
        // Others are served meanwhile, and end.
        fs::write(directory.join(format!("other {round}")), b"content").expect("another thread serves");
        assert!(first.len() == 1 && seen() == first, "round {round}: {first:?}, {:?}", seen());
        goes_on.send(()).expect("it waits");
        asks.join().expect("no panic").expect("an answer");
        // It is answered before it is noted.
        while mount.requests().served().next().is_some() {
            std::thread::yield_now();
        }
    }
    mount.finish().expect("an orderly end");
    let _ = fs::remove_dir(&directory);
}
