//! The memory behind the seam of the index: which entries it answers for, and how it keeps up with
//! the flash.

use super::fold::Moment;
use super::{Bpram, Found, MemoryUse, entries, keeps};
use crate::core::{Core, Source};
use crate::index::tree::Key;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_codec::exact::Entry;
use onode_media::IoTag;
use onode_object::{Error, Mutation, Result, Transaction};

/// Bytes of content for one of the memory, as long as nobody knows better: a volume has a
/// thousandth of memory.
const CONTENT_EACH: u64 = 1024;

/// Entries that a rebuild takes over between two folds.
const REFILL_ENTRIES: usize = 512;

impl Core {
    /// What the memory says of `key`.
    pub fn remembered<T>(&mut self, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Found<T> {
        match &mut self.bpram {
            Some(bpram) if keeps(key.kind) => bpram.get(key, with),
            _ => Found::Elsewhere,
        }
    }

    /// Visits entries that the memory keeps, wherever they are now.
    pub fn scan_remembered(&mut self, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        let Self { bpram: Some(bpram), tree, log, nodes, .. } = self else { return Ok(()) };
        let mut from = *from;
        loop {
            let (entries, next) = bpram.run(&from);
            let mut goes_on = true;
            match entries {
                Some(entries) => goes_on = entries.from(&from).iter().all(|(key, value)| visit(key, value)),
                None => {
                    let mut source = Source { log, nodes, tag: IoTag::Index };
                    tree.scan(&mut source, &from, &mut |key, value| {
                        if next.is_some_and(|next| *key >= next) {
                            return false;
                        }
                        goes_on = !keeps(key.kind) || visit(key, value);
                        goes_on
                    })?;
                }
            }
            match next {
                Some(next) if goes_on => from = next,
                _ => return Ok(()),
            }
        }
    }

    /// Brings the memory to the superblock that is about to get the number `generation`; `is_full`
    /// says that it is of a new checkpoint, `closed` that nothing will follow it. False if there
    /// was a memory and it had to be given up.
    pub fn fold(&mut self, is_full: bool, closed: bool, generation: u32) -> Result<bool> {
        let Some(mut bpram) = self.bpram.take() else { return Ok(true) };
        let layout = self.log.store.layout;
        let moment = Moment { uuid: self.uuid, superblock: self.encode_superblock(generation), closed, layout };
        let folded = if is_full { bpram.fold(&moment, &self.log.table) } else { bpram.repeat(&moment) };
        match folded {
            Ok(()) => {
                self.bpram = Some(bpram);
                self.statistics.folds += u64::from(is_full);
            }
            // The flash has everything, or is about to: it goes on without.
            Err(error) => {
                self.save_held()?;
                // Until the coming superblock a write buffer may be the only place of what was made
                // durable.
                if !bpram.has_buffer() {
                    bpram.abandon();
                }
                self.memory_lost = Some(format!("{error}"));
            }
        }
        Ok(self.bpram.is_some())
    }

    /// The same for the superblock that there is.
    fn fold_now(&mut self, is_full: bool) -> Result<()> {
        if self.fold(is_full, false, self.ring.generation)? { Ok(()) } else { self.write_superblock(false) }
    }

    /// Something will follow the anchor that says that nothing does.
    pub fn reopen_memory(&mut self) -> Result<()> {
        if self.bpram.as_ref().is_some_and(|bpram| bpram.is_closed) {
            self.fold_now(false)?;
            // Both anchors have to say so: that of before fits the same superblock, and should the
            // newer one be damaged it would have a mount believe that nothing followed.
            self.fold_now(false)?;
        }
        Ok(())
    }

    /// Says that nothing follows the anchor of a volume that was found closed, or was made so
    /// without its memory.
    pub fn close_memory(&mut self) -> Result<()> {
        let is_open = self.bpram.as_ref().is_some_and(|bpram| !bpram.is_closed);
        if is_open && self.checkpoint_state.clean {
            self.fold(false, true, self.ring.generation)?;
        }
        Ok(())
    }

    /// Whether the changed buckets want a checkpoint.
    pub fn memory_is_due(&self) -> bool {
        self.bpram.as_ref().is_some_and(|bpram| bpram.fold_is_due(self.spills))
    }

    /// Makes sure that the memory has room for what a transaction may add, unless entries may stay
    /// on flash alone. Only what makes objects is refused: content of those that exist was promised
    /// a place, and if it is worst it is found on flash alone.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed that anyone can see.
    pub fn make_memory_room(&mut self, transaction: &Transaction) -> Result<()> {
        let mutations = &transaction.mutations;
        if self.spills || self.bpram.is_none() || !mutations.iter().any(|one| matches!(one, Mutation::Create { .. })) {
            return Ok(());
        }
        // Those of a large transaction mostly go to the same buckets; should they not, they stay on
        // flash alone.
        let changes = mutations.len().min(8);
        let is_full = |core: &Self| core.bpram.as_ref().is_some_and(|bpram| bpram.is_full(changes));
        if is_full(self) {
            self.set_free()?;
            if is_full(self) {
                let detail = "the memory beside the flash is full; remove files, or give it a larger one";
                return Err(Error::new(ErrorKind::NoSpace, detail));
            }
        }
        Ok(())
    }

    /// Bytes of content that the memory has room for the places of, by what it needs for those that
    /// there are.
    pub fn memory_allows(&self) -> u64 {
        let Some(bpram) = self.bpram.as_ref().filter(|_| !self.spills) else { return u64::MAX };
        let (room, used) = bpram.entry_room();
        let content = self.log.table.live_bytes().max(1);
        // Of few entries nothing can be told yet.
        let few = used < room / 8;
        let each = if few { CONTENT_EACH.max(content / used.max(1)) } else { content / used.max(1) };
        room.saturating_mul(each)
    }

    /// Takes over from the tree what the memory does not hold, as far as it has room. `progress` is
    /// told how many entries were taken over.
    pub fn refill_memory(&mut self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut done = 0;
        while let Some((first, end)) =
            self.bpram.as_ref().filter(|bpram| !bpram.is_full(REFILL_ENTRIES / 16)).and_then(Bpram::first_elsewhere)
        {
            let (mut taken, mut rest) = (entries::Entries::default(), None);
            let (tree, mut source) = self.index();
            source.tag = IoTag::Recovery;
            tree.scan(&mut source, &first, &mut |key, value| {
                if end.is_some_and(|end| *key >= end) {
                    return false;
                }
                if !keeps(key.kind) {
                    return true;
                }
                if taken.len() == REFILL_ENTRIES {
                    rest = Some(*key);
                    return false;
                }
                taken.insert(*key, value);
                true
            })?;
            done += taken.len() as u64;
            if let Some(bpram) = &mut self.bpram {
                bpram.fill(first, taken, rest);
            }
            self.fold_now(true)?;
            progress(done);
        }
        Ok(())
    }

    /// All entries that the memory answers for, taken apart.
    pub fn memory_entries(&mut self) -> Result<Vec<Entry>> {
        let mut found = entries::Entries::default();
        self.scan_remembered(&Key::MIN, &mut |key, value| {
            found.insert(*key, value);
            true
        })?;
        Ok(found.items())
    }

    /// Entries that memory and tree do not agree on, as words; none if all is well.
    pub fn compare_memory(&mut self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        if self.bpram.is_none() {
            return Ok(wrong);
        }
        let (mut on_flash, mut remembered) = (Vec::new(), Vec::new());
        let (tree, mut source) = self.index();
        source.tag = IoTag::Check;
        tree.scan(&mut source, &Key::MIN, &mut |key, value| {
            if keeps(key.kind) {
                on_flash.push((*key, value.to_vec()));
            }
            true
        })?;
        self.scan_remembered(&Key::MIN, &mut |key, value| {
            remembered.push((*key, value.to_vec()));
            true
        })?;
        let (mut one, mut other) = (on_flash.iter().peekable(), remembered.iter().peekable());
        while wrong.len() < 16 && (one.peek().is_some() || other.peek().is_some()) {
            let (a, b) = (one.peek().map(|(key, _)| *key), other.peek().map(|(key, _)| *key));
            match (a, b) {
                (Some(a), Some(b)) if a == b => {
                    if one.next() != other.next() {
                        wrong.push(format!("flash and memory disagree on {a:?}"));
                    }
                }
                (Some(a), b) if b.is_none_or(|b| a < b) => {
                    wrong.push(format!("the memory lacks {a:?}"));
                    one.next();
                }
                (_, b) => {
                    wrong.push(format!("the memory alone has {b:?}"));
                    other.next();
                }
            }
        }
        Ok(wrong)
    }

    /// What the memory holds, if there is one.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        self.bpram.as_ref().map(Bpram::usage)
    }
}
