//! Whether the state agrees with itself: what the tree refers to, what the bitmap says, what is
//! counted.

use crate::content::pending::Pending;
use crate::device::TierDevice;
use crate::index::Index;
use crate::index::onode::Onode;
use crate::index::tree::Visited;
use crate::medium::errors::damaged;
use crate::space::Space;
use crate::space::bitmap::Bitmap;
use crate::space::extent::Extent;
use alloc::format;
use onode_engine::Key;
use onode_object::{ObjectId, Result};

impl TierDevice {
    /// Walks the whole tree and compares: no block is used twice, every block in use is taken,
    /// every taken block is in use or waits for the next checkpoint, and the counts of blocks,
    /// nodes and objects are those found. Content is not read; that is what a scrub does.
    ///
    /// # Errors
    /// `Corrupt` with the first difference; `Media`.
    pub fn verify(&self) -> Result<()> {
        let core = &mut *self.volume.core.lock();
        let (index, space, pending) = core.parts();
        verify(index, space, pending)
    }
}

/// What the entries of one object add up to.
#[derive(Default)]
struct Object {
    id: u64,
    onode: Option<Onode>,
    blocks: u64,
    end: u64,
}

fn verify(index: &mut Index, space: &Space, pending: &Pending) -> Result<()> {
    let layout = index.layout();
    let mut used = Bitmap::new(&layout);
    let (mut taken, mut objects) = (0, 0);
    let mut object = Object::default();
    let nodes = index.counts().nodes;
    let mut finish = |object: &Object| {
        let id = ObjectId(object.id);
        let Some(onode) = object.onode else {
            return if object.id == 0 { Ok(()) } else { Err(damaged(format!("{id} has no onode"))) };
        };
        objects += 1;
        let blocks = object.blocks + pending.range(object.id, 0, u64::MAX).count() as u64;
        if blocks != onode.blocks {
            return Err(damaged(format!("{id} has {blocks} blocks, and {} are counted", onode.blocks)));
        }
        Ok(())
    };
    let mut mark = |first: u64, count: u64| {
        let is_taken = layout.holds(first, count) && (first..first + count).all(|block| !space.is_free(block));
        if !is_taken {
            return Err(damaged(format!("block {first} is in use and counts as free")));
        }
        if used.take(first, count) != count {
            return Err(damaged(format!("block {first} is used twice")));
        }
        taken += count;
        Ok(())
    };
    index.visit(&mut |visited| {
        let (key, value) = match visited {
            Visited::Node(block) => return mark(block, 1),
            Visited::Entry(key, value) => (key, value),
        };
        let id = ObjectId(key.object);
        if key.object != object.id {
            finish(&object)?;
            object = Object { id: key.object, ..Object::default() };
        }
        match key.kind {
            Key::ONODE => {
                let onode = Onode::decode(value).ok_or_else(|| damaged(format!("the onode of {id} is damaged")))?;
                object.onode = Some(onode);
            }
            Key::EXTENT => {
                let extent = Extent::decode(value).ok_or_else(|| damaged(format!("an extent of {id} is damaged")))?;
                let end = key.index.saturating_add(extent.blocks());
                if key.index < object.end || pending.range(key.object, key.index, end).next().is_some() {
                    return Err(damaged(format!("{id} has two contents from block {} on", key.index)));
                }
                (object.end, object.blocks) = (end, object.blocks + extent.blocks());
                mark(extent.block, extent.blocks())?;
            }
            _ => {}
        }
        Ok(())
    })?;
    finish(&object)?;
    let (counted, held) = (space.used(), space.held());
    if counted != taken {
        return Err(damaged(format!("{counted} blocks are taken beside {held} held, and {taken} are in use")));
    }
    if index.counts().nodes != nodes || objects != index.objects() {
        let found = index.counts().nodes;
        let counted = index.objects();
        return Err(damaged(format!("{found} nodes of {nodes}, {objects} objects of {counted}")));
    }
    Ok(())
}
