//! Many threads at once: nobody waits for ever, everybody reads what was written, and the volume is
//! sound at the end.

use crate::common::*;
use onode_base::Prng;
use onode_fs::*;

#[test]
fn four_threads_share_a_directory() {
    let volume = Volume::of_size(64 << 20);
    let fs = volume.mount_with(Options {
        cached_inodes: 8,
        write_cache_bytes: 64 << 10,
        stream_bytes: 16 << 10,
        ..Options::default()
    });
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (fs, volume) = (&fs, &volume);
            scope.spawn(move || {
                let mut prng = Prng::new(u64::from(thread));
                for round in 0..600u32 {
                    let name = format!("{thread} {}", prng.below(5));
                    let file = match fs.create(&root(), ROOT, name.as_bytes(), 0o644) {
                        Ok(file) => file.inode,
                        Err(error) => {
                            assert_eq!(error.kind, ErrorKind::Exists);
                            fs.lookup(ROOT, name.as_bytes()).unwrap().inode
                        }
                    };
                    let handle = fs.open(&root(), file, OpenFlags { write: true, truncate: true }).unwrap();
                    let data = vec![thread * 50 + round as u8 % 50; 1 + prng.below(30_000) as usize];
                    write(fs, file, 0, &data);
                    assert!(content(fs, file) == data, "thread {thread} round {round}");
                    match prng.below(5) {
                        0 => fs.unlink(ROOT, name.as_bytes()).unwrap(),
                        1 => {
                            let other = format!("{thread} {}", prng.below(5));
                            fs.rename(ROOT, name.as_bytes(), ROOT, other.as_bytes(), RenameFlags::Replace).unwrap();
                        }
                        2 => fs.fsync(file, Some(handle), false).unwrap(),
                        3 => {
                            volume.clock.advance(SECOND);
                            fs.tick();
                        }
                        _ => assert!(names(fs, ROOT).len() <= 20),
                    }
                    assert!(content(fs, file) == data, "thread {thread} round {round}");
                    fs.flush(handle).unwrap();
                    fs.release(handle).unwrap();
                    fs.forget(file, 1);
                }
            });
        }
    });
    fs.unmount().unwrap();
    assert_eq!(check::check(volume.device.as_ref()).unwrap().findings, []);
}
