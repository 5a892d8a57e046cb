//! Attributes of an object as a snapshot has them: those that versions kept go before those that
//! are there now.

use crate::snapshots::version::{Version, absent, is_kept, present};
use onode_object::{AttributeKey, AttributeKind, ObjectDevice, ObjectId, Result};
use std::collections::VecDeque;

/// Attributes that are asked for at once.
const AT_ONCE: usize = 32;

/// What one object says of attributes, in the order of their keys.
struct Layer {
    object: ObjectId,
    /// It says of which there were none.
    says_absent: bool,
    read: VecDeque<(AttributeKey, Vec<u8>)>,
    /// Where to read on.
    next: Option<AttributeKey>,
}

impl Layer {
    fn new(object: ObjectId, from: AttributeKey, says_absent: bool) -> Self {
        let from = if says_absent { absent(from) } else { from };
        Self { object, says_absent, read: VecDeque::new(), next: Some(from) }
    }

    /// The key of the next attribute.
    fn peek<D: ObjectDevice + ?Sized>(&mut self, device: &D) -> Result<Option<AttributeKey>> {
        while self.read.is_empty()
            && let Some(from) = self.next
        {
            let found = device.attributes(self.object, from, AT_ONCE)?;
            self.next = found.last().and_then(|(key, _)| key.next());
            for (key, value) in found {
                let key = if self.says_absent {
                    present(key)
                } else if is_kept(key) {
                    key
                } else if key.kind < AttributeKind::FIRST_ABSENT {
                    continue;
                } else {
                    self.next = None;
                    break;
                };
                self.read.push_back((key, value));
            }
        }
        Ok(self.read.front().map(|(key, _)| *key))
    }
}

/// All that say something, what goes before first.
pub(super) struct Merge<'a, D: ?Sized> {
    device: &'a D,
    layers: Vec<Layer>,
}

impl<'a, D: ObjectDevice + ?Sized> Merge<'a, D> {
    /// The attributes from a key on: of versions, and of the object itself if what they do not have
    /// is there.
    pub(super) fn new(device: &'a D, versions: &[Version], live: Option<ObjectId>, from: AttributeKey) -> Self {
        let kept = versions.iter().flat_map(|one| [(one.id, false), (one.id, true)]);
        let all = kept.chain(live.map(|object| (object, false)));
        // Attributes of these kinds there are none: they would come again from the start.
        let is_over = from.kind >= AttributeKind::FIRST_ABSENT;
        let layers = all.filter(|_| !is_over).map(|(object, says_absent)| Layer::new(object, from, says_absent));
        Self { device, layers: layers.collect() }
    }

    /// As many as `limit`.
    pub(super) fn take(mut self, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let mut taken = Vec::new();
        while taken.len() < limit {
            let mut first: Option<(AttributeKey, usize)> = None;
            for (index, layer) in self.layers.iter_mut().enumerate() {
                if let Some(key) = layer.peek(self.device)?
                    && first.is_none_or(|(least, _)| key < least)
                {
                    first = Some((key, index));
                }
            }
            let Some((key, winner)) = first else { break };
            for (index, layer) in self.layers.iter_mut().enumerate() {
                if layer.peek(self.device)? != Some(key) {
                    continue;
                }
                let said = layer.read.pop_front();
                if index == winner && !layer.says_absent {
                    taken.extend(said);
                }
            }
        }
        Ok(taken)
    }
}
