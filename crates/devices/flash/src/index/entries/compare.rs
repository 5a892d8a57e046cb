//! Whether the memory beside the flash and the tree say the same.

use super::memory::MemoryEntries;
use crate::index::bpram::{entries::BucketEntries as Bucket, keeps};
use crate::log::Log;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_codec::exact::Entry;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::Result;

impl MemoryEntries<'_> {
    /// All entries that the memory answers for, taken apart.
    pub fn kept(&mut self, log: &mut Log) -> Result<Vec<Entry>> {
        let mut found = Bucket::default();
        self.scan_kept(log, &Key::MIN, &mut |key, value| {
            found.insert(*key, value);
            true
        })?;
        Ok(found.items())
    }

    /// Entries that memory and tree do not agree on, as words; none if all is well.
    pub fn compare(&mut self, log: &mut Log) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let (mut on_flash, mut remembered) = (Vec::new(), Vec::new());
        self.flash().scan_as(log, &Key::MIN, IoTag::Check, &mut |key, value| {
            if keeps(key.kind) {
                on_flash.push((*key, value.to_vec()));
            }
            true
        })?;
        self.scan_kept(log, &Key::MIN, &mut |key, value| {
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
}
