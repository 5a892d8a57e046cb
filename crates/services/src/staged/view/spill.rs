//! Content that is too much for memory goes to hidden objects of the wrapped device.

use crate::staged::content::Hidden;
use crate::staged::shadow::Standing;
use crate::staged::view::{View, ViewState};
use onode_object::{Durability, Error, ErrorKind, Hints, ObjectDevice, ObjectId, Result, Transaction};

/// Content that a view keeps in memory; no more than one transaction of the device takes.
const HELD_BYTES_MAX: usize = 8 << 20;

impl<D: ObjectDevice + ?Sized> View<D> {
    /// Content that stays in memory.
    pub(crate) fn held_bytes_max(&self) -> usize {
        self.staged.transaction_bytes.min(HELD_BYTES_MAX)
    }

    /// Brings content to hidden objects until at most `most` bytes are in memory.
    pub(crate) fn spill(&self, state: &mut ViewState, most: usize) -> Result<()> {
        if state.held_bytes <= most {
            return Ok(());
        }
        let before = state.entry_bytes + state.held_bytes;
        let _changing = self.staged.changing.read();
        let spilled = self.spill_largest(state, most);
        self.account(state, before);
        spilled
    }

    fn spill_largest(&self, state: &mut ViewState, most: usize) -> Result<()> {
        let held = state.shadows.iter().map(|(object, shadow)| (shadow.held_bytes(), *object));
        let mut largest: Vec<_> = held.filter(|(bytes, _)| *bytes > 0).collect();
        // The largest first: so there are few of them.
        largest.sort_unstable_by(|one, other| other.cmp(one));
        for (_, object) in largest {
            if state.held_bytes <= most {
                break;
            }
            self.spill_object(state, object)?;
        }
        Ok(())
    }

    fn spill_object(&self, state: &mut ViewState, object: ObjectId) -> Result<()> {
        let Some(shadow) = state.shadows.get_mut(&object) else { return Ok(()) };
        let (standing, replaces) = (shadow.standing, shadow.replaces);
        let hints = shadow.hints;
        let Some(content) = shadow.content.as_mut() else { return Ok(()) };
        if content.pieces.bytes() as u64 > self.room() {
            let why = "the device has no room for the content of the transaction";
            return Err(Error::of(ErrorKind::NoSpace, object, why));
        }
        let mut hidden = match content.hidden {
            Some(hidden) => hidden,
            None => {
                // What is new may have its own number at once, unless others may make one of it.
                let is_own = standing == Standing::Made && !replaces && object >= ObjectId::FIRST_FREE;
                let is_free = || match self.staged.inner.stat(object) {
                    Err(error) if error.kind == ErrorKind::NotFound => Ok(true),
                    other => other.map(|_| false),
                };
                let own = if is_own && is_free()? { Some(object) } else { None };
                let hints = match hints {
                    Some(hints) => hints,
                    None => {
                        // What needs a key needs it here, too.
                        let encryption_key = self.staged.directory_key(object)?;
                        Hints { locality: Some(object), encryption_key, ..Hints::default() }
                    }
                };
                self.staged.hide(own, hints)?
            }
        };
        content.hidden = Some(hidden);
        let most = self.staged.transaction_bytes.max(1);
        while !content.pieces.is_empty() {
            let mut transaction = Transaction::new();
            let (mut bytes, mut moved) = (0, Vec::new());
            for (start, data) in content.pieces.iter() {
                let length = data.len().min(most - bytes);
                transaction.write(hidden.object, start, data[..length].to_vec());
                moved.push((start, start + length as u64));
                bytes += length;
                if bytes >= most {
                    break;
                }
            }
            self.staged.inner.commit(transaction, Durability::Buffered)?;
            for (start, end) in moved {
                content.pieces.discard(start, end);
                hidden = Hidden { size: hidden.size.max(end), ..hidden };
            }
            content.hidden = Some(hidden);
            state.held_bytes -= bytes;
        }
        Ok(())
    }
}
