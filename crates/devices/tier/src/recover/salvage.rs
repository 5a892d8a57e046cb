//! Going on without what is damaged, if that is asked for.
//!
//! Nodes of the tree that cannot be read are taken out of it before the log is replayed, then
//! entries that make no sense without them; free space is counted anew from what is left. Changes
//! in the log that concern what is gone are left out. Nothing is written before the mount writes
//! its first checkpoint: a cut before that leaves the volume as it was.

use crate::commit::apply::Applier;
use crate::index::onode::Onode;
use crate::index::tree::Visited;
use crate::log::change::Change;
use crate::medium::layout::{BLOCK, Layout};
use crate::recover::salvaged::Salvaged;
use crate::space::bitmap::Bitmap;
use crate::space::extent::Extent;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// What the tree holds.
#[derive(Default)]
struct Survey {
    objects: u64,
    /// Entries that make no sense, with the reason.
    unsound: Vec<(Key, &'static str)>,
    /// Objects that have entries and no onode.
    bare: Vec<u64>,
    /// Objects whose onodes count other blocks, and how many there are.
    counted: Vec<(u64, Onode, u64)>,
    current: Current,
}

/// The object whose entries come by.
#[derive(Default)]
struct Current {
    id: u64,
    onode: Option<Onode>,
    blocks: u64,
    end: u64,
}

impl Survey {
    fn entry(&mut self, used: &mut Bitmap, layout: &Layout, key: &Key, value: &[u8]) {
        if key.object != self.current.id {
            self.end_object();
            self.current = Current { id: key.object, ..Current::default() };
        }
        match key.kind {
            Key::ONODE => match Onode::decode(value) {
                Some(onode) => {
                    self.current.onode = Some(onode);
                    self.objects += 1;
                }
                None => self.unsound.push((*key, "its onode")),
            },
            Key::EXTENT => {
                let extent = Extent::decode(value).filter(|it| layout.holds(it.block, it.blocks()));
                let Some(extent) = extent.filter(|_| key.index >= self.current.end) else {
                    return self.unsound.push((*key, "an extent"));
                };
                let taken = used.take(extent.block, extent.blocks());
                if taken != extent.blocks() {
                    return self.unsound.push((*key, "an extent, whose blocks are in use elsewhere"));
                }
                self.current.end = key.index.saturating_add(extent.blocks());
                self.current.blocks += extent.blocks();
            }
            _ => {}
        }
    }

    fn end_object(&mut self) {
        let Current { id, onode, blocks, .. } = core::mem::take(&mut self.current);
        match onode {
            None if id == 0 => {}
            None => self.bare.push(id),
            Some(onode) if onode.blocks != blocks => self.counted.push((id, onode, blocks)),
            Some(_) => {}
        }
    }
}

/// What going on without what is damaged needs of the state, borrowed side by side.
pub struct Salvager<'a> {
    /// What changes the tree.
    pub applier: Applier<'a>,
    /// What was dropped so far.
    pub salvaged: &'a mut Salvaged,
}

impl Salvager<'_> {
    /// Takes out of the checkpoint what is damaged, and counts what is left.
    ///
    /// # Errors
    /// `Media`, `Corrupt` if the medium reads otherwise than before.
    pub fn drop_damaged(&mut self) -> Result<()> {
        for lost in self.applier.reader.index.prune()? {
            let from = ObjectId(lost.from.object);
            let place = match lost.until {
                Some(until) => format!("of {from} to {}", ObjectId(until.object)),
                None => format!("from {from} on"),
            };
            // What lies between has no name left that could be told; the neighbours may lack a
            // part.
            let ends = [Some(lost.from), lost.until];
            let ends = ends.into_iter().flatten().map(|key| ObjectId(key.object));
            self.salvaged.losers.extend(ends.filter(|object| object.0 > 0));
            self.salvaged.is_loss = true;
            self.salvaged.actions.push(format!("lost: a tree node with entries {place}"));
        }
        let survey = self.survey()?;
        for (key, what) in &survey.unsound {
            self.applier.reader.index.remove_entry(key)?;
            let object = ObjectId(key.object);
            self.salvaged.lose(object, format!("lost: {object}: {what}"));
        }
        for object in survey.bare {
            self.applier.reader.index.drop_entries(object)?;
            let object = ObjectId(object);
            self.salvaged.lose(object, format!("lost: {object}, whose onode is gone"));
        }
        for (object, onode, blocks) in survey.counted {
            let object = ObjectId(object);
            self.applier
                .reader
                .index
                .put_onode(object, &Onode { blocks, has_blocks: onode.has_blocks || blocks > 0, ..onode })?;
            let from = onode.blocks;
            self.salvaged.lose(object, format!("{object}: {from} blocks of content set to {blocks}"));
        }
        let objects = self.applier.reader.index.objects();
        if objects != survey.objects {
            self.salvaged.actions.push(format!("number of objects {objects} set to {}", survey.objects));
            self.applier.reader.index.set_objects(survey.objects);
        }
        self.recount_space()
    }

    fn survey(&mut self) -> Result<Survey> {
        let layout = self.applier.reader.index.layout();
        let (mut survey, mut used) = (Survey::default(), Bitmap::new(&layout));
        self.applier.reader.index.visit(&mut |visited| {
            match visited {
                Visited::Node(block) => _ = used.take(block, 1),
                Visited::Entry(key, value) => survey.entry(&mut used, &layout, key, value),
            }
            Ok(())
        })?;
        survey.end_object();
        Ok(survey)
    }

    /// Finds out from the tree which blocks are in use; replaced nodes stay until the checkpoint.
    fn recount_space(&mut self) -> Result<()> {
        let layout = self.applier.reader.index.layout();
        let mut bitmap = Bitmap::new(&layout);
        self.applier.reader.index.visit(&mut |visited| {
            match visited {
                Visited::Node(block) => _ = bitmap.take(block, 1),
                Visited::Entry(key, value) if key.is_extent() => {
                    if let Some(extent) = Extent::decode(value) {
                        bitmap.take(extent.block, extent.blocks());
                    }
                }
                Visited::Entry(..) => {}
            }
            Ok(())
        })?;
        let replaced = self.applier.reader.index.take_freed();
        let is_as_before = replaced.is_empty() && self.applier.space.agrees_with(&bitmap);
        if is_as_before && self.salvaged.actions.is_empty() {
            return Ok(());
        }
        if !is_as_before && self.salvaged.actions.is_empty() {
            self.salvaged.actions.push(String::from("free blocks were counted anew"));
        }
        self.applier.space.count_anew(bitmap);
        for block in replaced {
            // It is in use until then.
            _ = self.applier.space.claim(block, 1);
            self.applier.space.give_up(block, 1);
        }
        self.applier.commits.mark_dirty();
        Ok(())
    }

    /// A change of the log cannot be done as it stands, for `error`: it is done as far as it can
    /// be, or left out.
    ///
    /// # Errors
    /// What no damage explains.
    pub fn redo(&mut self, change: &Change, mut error: Error) -> Result<()> {
        let object = match change {
            Change::Plain(mutation) => mutation.object(),
            Change::Placed { object, .. } => *object,
        };
        // A change reads the block that it begins in and the one that it ends in.
        for _ in 0..2 {
            let range = error.range.clone().filter(|_| error.kind == ErrorKind::Corrupt);
            let (Some(range), Some(mut onode)) = (range, self.applier.reader.index.onode(object)?) else { break };
            self.applier.drop_blocks(object, &mut onode, range.start / BLOCK, range.end.div_ceil(BLOCK))?;
            self.applier.reader.index.put_onode(object, &onode)?;
            let (from, until) = (range.start, range.end);
            self.salvaged.lose(object, format!("zeroed bytes {from} to {until} of {object}, which were damaged"));
            match self.applier.apply(change) {
                Ok(()) => return self.recount_blocks(object),
                Err(other) => error = other,
            }
        }
        if let Change::Placed { extents, .. } = change {
            // Nobody refers to them.
            extents.iter().for_each(|extent| self.applier.space.disclaim(extent.block, extent.blocks()));
        }
        let is_gone = matches!(error.kind, ErrorKind::NotFound | ErrorKind::Exists | ErrorKind::Corrupt);
        if !is_gone {
            return Err(error);
        }
        if self.salvaged.losers.insert(object) || !self.salvaged.is_loss {
            self.salvaged.is_loss = true;
            self.salvaged.actions.push(format!("lost: changes of {object} in the log: {error}"));
        }
        self.recount_blocks(object)
    }

    /// The blocks that an object has, after a change of it was done in part.
    fn recount_blocks(&mut self, object: ObjectId) -> Result<()> {
        let Some(onode) = self.applier.reader.index.onode(object)? else { return Ok(()) };
        let stored: u64 =
            self.applier.reader.index.extents(object, 0, u64::MAX)?.iter().map(|(_, extent)| extent.blocks()).sum();
        let blocks = stored + self.applier.reader.buffers.pending().range(object.0, 0, u64::MAX).count() as u64;
        if blocks == onode.blocks {
            return Ok(());
        }
        self.applier
            .reader
            .index
            .put_onode(object, &Onode { blocks, has_blocks: onode.has_blocks || blocks > 0, ..onode })
    }
}
