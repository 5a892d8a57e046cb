//! Handles: open, close, fsync.
//!
//! A handle keeps a file alive without a name and remembers which write-back failures its holder
//! was told of, so that each is told once to each.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::state::State;
use crate::types::{Caller, FileHandle, FileType, InodeNumber, OpenFlags};
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::SyncScope;

impl FileSystem {
    /// Opens a file or directory.
    ///
    /// # Errors
    /// `ReadOnly`, `IsDirectory` for writing, `Stale` if the file is gone.
    pub fn open(&self, caller: &Caller, number: InodeNumber, flags: OpenFlags) -> Result<FileHandle> {
        if flags.write || flags.truncate {
            self.check_writable()?;
        }
        let state = &mut *self.lock();
        let node = self.node(state, number)?;
        let is_directory = node.inode.file_type == FileType::Directory;
        if is_directory && (flags.write || flags.truncate) {
            return Err(Error::of(ErrorKind::IsDirectory, number, ""));
        }
        if node.removed && !is_directory {
            return Err(Error::of(ErrorKind::Stale, number, "the file is gone"));
        }
        if flags.truncate {
            self.set_size(state, caller, number, 0)?;
        }
        state.open_handle(number.0).ok_or_else(|| Error::of(ErrorKind::Stale, number, ""))
    }

    /// What `close` calls, once for every descriptor that is closed: writes out a file that was cut
    /// to nothing and written anew, and tells a failed write-back.
    ///
    /// # Errors
    /// `BadHandle`; the kind of a write-back failure not told yet.
    pub fn flush(&self, handle: FileHandle) -> Result<()> {
        let state = &mut *self.lock();
        let number = InodeNumber(state.handles.get(handle).ok_or(ErrorKind::BadHandle)?.inode);
        self.flush_node(state, number, Some(handle))
    }

    /// [`flush`](Self::flush) for those who do not open files: a failed write-back is told once to
    /// all of them together.
    ///
    /// # Errors
    /// The kind of a write-back failure not told yet; `Stale`.
    pub fn flush_file(&self, number: InodeNumber) -> Result<()> {
        self.flush_node(&mut self.lock(), number, None)
    }

    fn flush_node(&self, state: &mut State, number: InodeNumber, handle: Option<FileHandle>) -> Result<()> {
        if self.node(state, number)?.rewritten {
            self.write_back_rewritten(state, number);
        }
        tell_failure(state, number, handle)
    }

    /// Gives a handle back. A file without name, use and handle goes away.
    ///
    /// # Errors
    /// `BadHandle`.
    pub fn release(&self, handle: FileHandle) -> Result<()> {
        // Of a file that stays and of which nothing waits the device is not asked.
        let mut state = self.state.lock();
        let number = InodeNumber(state.handles.close(handle).ok_or(ErrorKind::BadHandle)?.inode);
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.opens = node.opens.saturating_sub(1);
            if !node.is_dirty() && !node.rewritten && !node.removed && !node.is_orphan {
                return Ok(());
            }
        }
        let state = &mut *self.take_turn(state);
        if let Some(node) = state.nodes.get_mut(&number.0) {
            if node.rewritten {
                self.write_back_rewritten(state, number);
            } else if self.writes_through() {
                // The times of a file that was overwritten where it lies.
                if node.inode_dirty
                    && node.is_as_on_device()
                    && let Err(error) = self.write_back_file(state, number)
                {
                    self.remember_failure(state, number, error.kind);
                }
            } else if node.is_read_only_since() {
                // Gathering such times is the device's trade. One that is lost is no failure.
                let _ = self.write_back_file(state, number);
            }
        }
        self.let_go(state, number);
        Ok(())
    }

    /// Makes a file or directory durable: its content, its inode and every name it has. `handle`
    /// says who asks, if the files are opened at all. `data_only` is accepted and makes no
    /// difference: the inode travels with the data for free.
    ///
    /// # Errors
    /// The kind of a write-back failure not told yet; the device's errors.
    pub fn fsync(&self, number: InodeNumber, handle: Option<FileHandle>, data_only: bool) -> Result<()> {
        let _ = data_only;
        if self.options.read_only {
            return Ok(());
        }
        let moves = {
            let state = &mut *self.lock_written_ahead(number);
            if self.node(state, number)?.removed {
                return Ok(());
            }
            if let Err(error) = self.write_back_file(state, number) {
                self.remember_failure(state, number, error.kind);
            }
            tell_failure(state, number, handle)?;
            (state.directory_moves != state.directory_moves_synced).then_some(state.directory_moves)
        };
        if is_planted(Bug::FsyncWithoutSync) {
            return Ok(());
        }
        let result = match moves {
            // A directory on the way may have a new name since the file's last commit.
            Some(moves) => self.sync_everything(moves),
            None => self.heard(self.device.sync(SyncScope::Object(number.object()))),
        };
        if let Err(error) = &result {
            let state = &mut *self.lock();
            self.remember_failure(state, number, error.kind);
            // Whoever asked hears of it now; the other handles at their next call.
            let _ = tell_failure(state, number, handle);
        }
        result
    }

    /// Writes out a file that was cut to nothing and written anew. If the device had to be told of
    /// the cut before the new content was there, because space ran short, only a sync keeps it from
    /// being found empty after this returns.
    fn write_back_rewritten(&self, state: &mut State, number: InodeNumber) {
        let empty_on_device =
            state.nodes.get(&number.0).is_some_and(|node| node.device_size == 0 && node.valid == 0 && node.size > 0);
        if !is_planted(Bug::RewriteNotWritten)
            && let Err(error) = self.write_back_file(state, number)
        {
            self.remember_failure(state, number, error.kind);
        }
        if empty_on_device && let Err(error) = self.device.sync(SyncScope::Object(number.object())) {
            self.remember_failure(state, number, error.kind);
        }
        if let Some(node) = state.nodes.get_mut(&number.0) {
            node.rewritten = false;
        }
    }
}

/// The failure that whoever asks was not told yet, if there is one; it counts as told now.
fn tell_failure(state: &mut State, number: InodeNumber, handle: Option<FileHandle>) -> Result<()> {
    let Some(node) = state.nodes.get_mut(&number.0) else { return Ok(()) };
    let told = match handle {
        Some(handle) => &mut state.handles.get(handle).ok_or(ErrorKind::BadHandle)?.failures_told,
        None => &mut node.failures_told,
    };
    if *told == node.failures {
        return Ok(());
    }
    *told = node.failures;
    Err(Error::of(node.failure.unwrap_or(ErrorKind::Media), number, "data could not be written back"))
}
