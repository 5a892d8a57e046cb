//! Checkpoints: the whole state on the medium, and a superblock that says where.
//!
//! Order is everything: content, then tree nodes and what was deferred, then the segment table,
//! then the superblock, each complete before the next begins. Until the superblock is on the medium
//! the one before it counts, and nothing that it refers to has been touched.

use crate::core::{CheckpointState, Core};
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NOWHERE, References};
use crate::medium::layout::SegmentPage;
use crate::policy::Stream;
use crate::space::items::Owner;
use crate::space::segments::SegmentState;
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Core {
    /// Writes a checkpoint. `clean` seals the streams first: nothing follows in the journal.
    pub fn checkpoint(&mut self, clean: bool) -> Result<()> {
        if clean {
            self.merge_access_times()?;
            self.settle_in_steps()?;
        }
        let result = self.write_checkpoint(clean);
        if let Err(error) = &result {
            self.log.store.latch(&format!("a checkpoint failed: {error}"));
        }
        result
    }

    fn write_checkpoint(&mut self, clean: bool) -> Result<()> {
        self.log.store.check_writable()?;
        if clean || !self.can_store_deferred() {
            self.settle_all()?;
        }
        let (position, journal_sequence) = loop {
            // What a failed program left in memory has to go elsewhere first.
            self.rescue()?;
            self.move_restored()?;
            let position = self.write_state(clean)?;
            if !self.log.has_stranded() || is_planted(Bug::StrandedForgotten) {
                break position;
            }
        };
        self.log.store.flush()?;
        self.checkpoint_state = CheckpointState {
            root: self.tree.written_root().ok_or_else(|| damaged("a checkpoint before the tree was written"))?,
            clean,
            journal_segment: position.segment,
            journal_page: position.page,
            journal_sequence,
            journal_next: self.log.next_journal,
            next_sequence: self.log.table.next_sequence,
            next_object: self.next_object,
            transaction: self.log.transaction,
            objects: self.objects,
            extents: self.extents,
            references: References {
                pieces: self.log.table.pieces().to_vec(),
                deferred: self.stored_deferred(),
                saved: Vec::new(),
            },
        };
        self.write_superblock(true)?;
        self.log.store.forget_restored();
        self.log.store.set_watermark(self.log.transaction)?;
        self.log.table.release_held();
        self.log.journal_pages = 0;
        self.log.mixed_pages = 0;
        self.log.echoes.clear();
        self.log.chain_broken = false;
        self.emptied.clear();
        self.statistics.checkpoints += 1;
        self.clean = clean;
        self.share_memory();
        self.retire_failing(journal_sequence)
    }

    /// Writes everything but the superblock; returns where the journal goes on and the sequence
    /// number there.
    fn write_state(&mut self, clean: bool) -> Result<(SegmentPage, u32)> {
        self.log.program_page(Stream::Journal)?;
        // A clean volume goes on in a journal segment that holds nothing yet, so no node may go
        // there. And with hardly a free segment left nodes keep to themselves: among content they
        // would not leave one empty soon.
        let apart = clean || !self.has_room(1);
        self.log.index_stream = if apart { Stream::Index } else { Stream::of_index(self.placement.placement()) };
        if clean {
            // The summary at its end also tells a replay from the superblock before to go on in the
            // next journal segment, should the coming superblock be lost.
            self.log.seal(Stream::Journal)?;
            for stream in Stream::CONTENT {
                self.log.seal(stream)?;
            }
            // The whole table in one place: the next mount reads few pages.
            for piece in 0..self.log.table.pieces().len() {
                self.log.table.touch_piece(piece);
            }
        }
        if !is_planted(Bug::CheckpointBeforeContent) {
            self.log.program_content()?;
        }
        // Written nodes stay in memory, as clean ones.
        self.nodes.set_budget(self.options.node_cache_bytes + self.dirty_limit);
        let (tree, mut source) = self.index();
        tree.write_back(&mut source)?;
        self.store_deferred()?;
        if self.pending_access.is_empty() && (clean || self.log.access.is_long()) {
            self.log.release_access_times();
        }
        self.log.table.hold_dead(self.log.journal_position().1);
        self.write_table()?;
        if !is_planted(Bug::SuperblockBeforeIndex) {
            self.log.program_index()?;
        }
        // Behind all of it, should it have gone to the journal.
        Ok(self.log.journal_position())
    }

    /// Writes the changed pieces of the segment table.
    ///
    /// Writing a piece changes the table: the segment it goes to gains live bytes, the one it was
    /// in loses them. So the set of pieces is completed first, until it no longer grows.
    fn write_table(&mut self) -> Result<()> {
        let mut wanted = Vec::new();
        let segment = loop {
            let dirty: Vec<usize> =
                (0..self.log.table.pieces().len()).filter(|&piece| self.log.table.is_dirty(piece)).collect();
            let segment = self.log.reserve_index(dirty.len() * self.log.table.piece_bytes())?;
            self.log.table.touch(segment);
            for &piece in &dirty {
                let old = self.log.table.pieces()[piece].location.get();
                if old != NOWHERE {
                    self.log.table.touch(self.log.store.layout.segment_of(old));
                }
            }
            if dirty == wanted {
                break segment;
            }
            wanted = dirty;
        };
        let mut lengths = Vec::with_capacity(wanted.len());
        for &piece in &wanted {
            let old = self.log.table.pieces()[piece];
            if old.location.get() != NOWHERE {
                self.log.release(old.location.get(), u64::from(old.length.get()));
            }
            let length = self.log.table.encode_piece(piece).len();
            self.log.table.retain(segment, length as u64);
            lengths.push(length);
        }
        for (index, &piece) in wanted.iter().enumerate() {
            let mut bytes = self.log.table.encode_piece(piece);
            bytes.resize(lengths[index], 0);
            let owner = Owner::TablePiece { piece: piece as u32 };
            let location = self.log.append_whole(self.log.index_stream, &bytes, owner)?;
            if self.log.store.layout.segment_of(location) != segment {
                if self.log.table.get(segment).state != SegmentState::Failing {
                    return Err(damaged("the segment table did not go where room was made for it"));
                }
                // A program failed: the pieces that are left, this one too, stay where they were.
                for (&piece, &length) in wanted.iter().zip(&lengths).skip(index) {
                    self.return_piece(piece, segment, length);
                }
                return self.write_table();
            }
            let reference = BlobReference {
                location: location.into(),
                length: (bytes.len() as u32).into(),
                checksum: onode_base::checksum::crc32c(&bytes).into(),
            };
            self.log.table.set_piece(piece, reference);
        }
        Ok(())
    }

    /// Takes back what was noted down for the move of a piece to `segment`, where it was to take
    /// `length` bytes.
    fn return_piece(&mut self, piece: usize, segment: u32, length: usize) {
        let old = self.log.table.pieces()[piece];
        self.log.table.release(segment, length as u64);
        if old.location.get() != NOWHERE {
            let length = u64::from(old.length.get());
            self.log.table.retain(self.log.store.layout.segment_of(old.location.get()), length);
        }
    }

    /// Brings everything to a state from which the next mount needs no recovery.
    pub fn close(&mut self) -> Result<()> {
        if self.log.store.read_only().is_some() {
            return Ok(());
        }
        if self.clean {
            return self.close_memory();
        }
        self.checkpoint(true)?;
        self.write_last_superblock()
    }
}
