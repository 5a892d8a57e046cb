//! A second try for a write that found no space.
//!
//! A file that was just removed gives its space back when the kernel forgets it, which it says some
//! time after the call that removed it has returned. Whoever removes a file to make room and writes
//! at once must not be told that there is none: as long as such a file is to be expected, the write
//! waits a moment in a thread of its own, while the server goes on and hears what is forgotten. The
//! kernel holds the file meanwhile, so nothing overtakes.

use crate::request::answer::Answer;
use crate::request::convert::inode;
use crate::request::reply::LateReply;
use onode_base::ErrorKind;
use onode_fs::{Caller, FileSystem};
use std::sync::Arc;
use std::time::Duration;

const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Tries to write until there is space, or none is to be expected any more, or patience is over,
/// and answers.
pub(crate) fn write(files: &Arc<FileSystem>, caller: Caller, data: &[u8], answer: Answer<LateReply<u32>>) {
    let (files, data) = (Arc::clone(files), data.to_vec());
    let task = move || {
        let mut written = Err(ErrorKind::NoSpace.into());
        for _ in 0..TRIES {
            std::thread::sleep(PAUSE);
            let is_last = !files.is_space_expected();
            let write = |at: u64, data: &[u8]| files.write(&caller, inode(answer.number), at, data);
            written = match answer.is_whole {
                true => write_whole(answer.offset, &data, write),
                false => write(answer.offset, &data),
            };
            if is_last || !written.as_ref().is_err_and(|error: &onode_fs::Error| error.kind == ErrorKind::NoSpace) {
                break;
            }
        }
        answer.written(written);
    };
    // Without a thread the reply is dropped with the task, which answers with an input/output
    // error.
    let _ = std::thread::Builder::new().name("patience".to_owned()).spawn(task);
}

/// Writes all of what the kernel kept, or says why not. Of such a write the kernel hears an error
/// only: that a part is missing would reach nobody, and the pages count as written.
pub(crate) fn write_whole(
    offset: u64,
    data: &[u8],
    write: impl Fn(u64, &[u8]) -> onode_fs::Result<usize>,
) -> onode_fs::Result<usize> {
    let mut done = 0;
    while done < data.len() {
        match write(offset + done as u64, &data[done..])? {
            0 => return Err(ErrorKind::NoSpace.into()),
            written => done += written,
        }
    }
    Ok(done)
}
