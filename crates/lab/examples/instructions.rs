//! Work whose instructions are counted: `instructions SPEC WORK COUNT` does it so many times on a
//! new volume in memory. `tests/bench/instructions.sh` runs it twice and takes the difference.

use onode::Spec;
use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::{Caller, FileSystem, FormatOptions, InodeNumber, OpenFlags};
use std::sync::Arc;

const FILES: u64 = 64;
const BLOCK: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, spec, work, count] = &arguments[..] else { panic!("usage: instructions SPEC WORK COUNT") };
    let count: u64 = count.parse().expect("a number");
    let (device, _) = onode::open_device(&Spec::parse(spec).expect("a spec"), false, false).expect("a device");
    onode_fs::format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).expect("a volume");
    // The clock of the kernel cannot be looked at while instructions are counted.
    let files = &FileSystem::mount(device, Arc::new(ManualClock::at(1)), Default::default()).expect("mounted");
    let block = vec![7; BLOCK];
    let overwrite = |file| {
        files.write(&Caller::root(), file, 0, &block).expect("written");
        files.fsync(file, None, false).expect("durable");
    };
    let made: Vec<InodeNumber> = (0..FILES).map(|number| make(files, &format!("file-{number}"))).collect();
    made.iter().for_each(|&file| overwrite(file));
    let mut buffer = vec![0; BLOCK];
    for number in 0..count {
        let file = made[(number % FILES) as usize];
        match work.as_str() {
            "creat" => _ = make(files, &format!("new-{number}")),
            "overwrite" => overwrite(file),
            "stat" => {
                let name = format!("file-{}", number % FILES);
                let found = files.lookup(InodeNumber::ROOT, name.as_bytes()).expect("it is there");
                files.forget(found.inode, 1);
            }
            "read" => _ = files.read(file, 0, &mut buffer).expect("read"),
            _ => panic!("the works are creat, overwrite, stat and read"),
        }
    }
}

/// Makes a file and closes it, as `creat` and `close` do.
fn make(files: &FileSystem, name: &str) -> InodeNumber {
    let made = files.create(&Caller::root(), InodeNumber::ROOT, name.as_bytes(), 0o644).expect("made").inode;
    let handle = files.open(&Caller::root(), made, OpenFlags { write: true, truncate: false }).expect("open");
    files.flush(handle).expect("flushed");
    files.release(handle).expect("closed");
    made
}
