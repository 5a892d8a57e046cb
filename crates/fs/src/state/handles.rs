//! The open handles: a table of slots. A handle names its slot and how often the slot was used, so
//! one that was given back is never taken for a later one.

use crate::types::FileHandle;

/// One open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub inode: u64,
    pub failures_told: u64,
}

#[derive(Debug)]
struct HandleSlot {
    uses: u32,
    open: Option<OpenFile>,
}

/// All open handles.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    slots: Vec<HandleSlot>,
    free: Vec<u32>,
}

impl Handles {
    pub(crate) fn open(&mut self, file: OpenFile) -> FileHandle {
        let number = self.free.pop().unwrap_or(self.slots.len() as u32);
        if number as usize == self.slots.len() {
            self.slots.push(HandleSlot { uses: 0, open: None });
        }
        let slot = &mut self.slots[number as usize];
        slot.uses = slot.uses.wrapping_add(1).max(1);
        slot.open = Some(file);
        FileHandle(u64::from(slot.uses) << 32 | u64::from(number))
    }

    fn slot(&mut self, handle: FileHandle) -> Option<&mut HandleSlot> {
        self.slots.get_mut(handle.0 as u32 as usize).filter(|slot| u64::from(slot.uses) == handle.0 >> 32)
    }

    pub(crate) fn get(&mut self, handle: FileHandle) -> Option<&mut OpenFile> {
        self.slot(handle)?.open.as_mut()
    }

    pub(crate) fn close(&mut self, handle: FileHandle) -> Option<OpenFile> {
        let closed = self.slot(handle)?.open.take()?;
        self.free.push(handle.0 as u32);
        Some(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_was_given_back_is_no_handle() {
        let mut handles = Handles::default();
        let open = |handles: &mut Handles, inode| handles.open(OpenFile { inode, failures_told: 0 });
        let (one, two) = (open(&mut handles, 1), open(&mut handles, 2));
        assert_eq!(handles.close(one).map(|file| file.inode), Some(1));
        assert!(handles.close(one).is_none() && handles.get(one).is_none());
        let three = open(&mut handles, 3);
        assert_ne!(one, three);
        assert!(handles.get(one).is_none());
        assert_eq!(handles.get(two).map(|file| file.inode), Some(2));
        assert_eq!(handles.get(three).map(|file| file.inode), Some(3));
        assert!(handles.get(FileHandle(0)).is_none() && handles.get(FileHandle(u64::MAX)).is_none());
        assert_eq!(handles.slots.len(), 2);
    }
}
