//! Content of objects in the streams: runs of any length, and what they cost.

use super::{Log, Writer};
use crate::log::record::{EXTENT_BYTES_MAX, Piece};
use crate::policy::Stream;
use crate::space::heavy_hitters::HeavyHitters;
use crate::space::items::Owner;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

impl Log {
    /// Appends `data`, which `object` has from `offset` on; returns where it lies.
    pub fn append_content(
        &mut self,
        stream: Stream,
        writer: Writer,
        object: ObjectId,
        offset: u64,
        data: &[u8],
    ) -> Result<Vec<Piece>> {
        self.costliest.count(object.0, data.len() as u64);
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < data.len() {
            let owner = Owner::Content { object: object.0, offset: offset + done as u64 };
            let piece = self.append(stream, writer, &data[done..], owner)?;
            done += piece.length as usize;
            self.join(&mut pieces, piece);
        }
        Ok(pieces)
    }

    /// Adds `next` to `pieces`, to the last of them if it goes on where that ends, in the same
    /// segment.
    pub fn join(&self, pieces: &mut Vec<Piece>, next: Piece) {
        let layout = self.store.layout();
        let is_joint = |last: &Piece| {
            last.location + u64::from(last.length) == next.location
                && layout.segment_of(last.location) == layout.segment_of(next.location)
                && last.length + next.length <= EXTENT_BYTES_MAX
        };
        match pieces.last_mut() {
            Some(last) if is_joint(last) => last.length += next.length,
            _ => pieces.push(next),
        }
    }

    /// So much content was moved.
    pub const fn count_moved_content(&mut self, bytes: u64) {
        self.moved_content += bytes;
    }

    /// Nodes of so many bytes are to be written elsewhere.
    pub const fn count_moved_nodes(&mut self, bytes: u64) {
        self.moved_nodes += bytes;
    }

    /// Bytes of content that were moved.
    pub const fn moved_content(&self) -> u64 {
        self.moved_content
    }

    /// Bytes of nodes that were to be written elsewhere.
    pub const fn moved_nodes(&self) -> u64 {
        self.moved_nodes
    }

    /// Bytes of an attribute of `object` are logged.
    pub fn count_attribute(&mut self, object: ObjectId, bytes: usize) {
        self.costliest.count(object.0, bytes as u64);
    }

    /// The objects that cost the most programs.
    pub const fn costliest(&self) -> &HeavyHitters {
        &self.costliest
    }
}
