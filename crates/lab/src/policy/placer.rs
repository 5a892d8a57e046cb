//! Who decides on the class of a page: the device's own classifier, blind or with hints, or an
//! oracle.

use super::simulator::Shape;
use onode_flash::policy::{Classifier, Level, Placement, Resident};

/// What decides on classes.
pub(super) trait Placer {
    /// Number of classes.
    fn classes(&self) -> u8;

    /// The class of the write number `at` (the first fill comes before number 0 and has none),
    /// which replaces `overwritten`.
    fn written(&mut self, page: u32, at: Option<usize>, overwritten: Option<Resident>) -> u8;

    /// The class to which the cleaner moves `page`, where [`Self::moved_together`] says nothing.
    fn moved(&self, page: u32) -> u8;

    /// The class to which everything goes that survived in a segment, if that is known.
    fn moved_together(&self, from: Resident) -> Option<u8>;

    /// A segment was cleaned.
    fn cleaned(&mut self, from: Resident);

    /// Whether the content of a class is expected to stay.
    fn is_long_lived(&self, class: u8) -> bool;
}

/// The device's code, without hints or with a level for every write.
pub(super) struct Device<'a> {
    classifier: Classifier,
    levels: Option<&'a Levels>,
}

impl<'a> Device<'a> {
    pub(super) fn new(placement: Placement, segments: u32, levels: Option<&'a Levels>) -> Self {
        Self { classifier: Classifier::new(placement, segments), levels }
    }
}

impl Placer for Device<'_> {
    fn classes(&self) -> u8 {
        self.classifier.placement().classes()
    }

    #[inline]
    fn written(&mut self, page: u32, at: Option<usize>, overwritten: Option<Resident>) -> u8 {
        let level = self.levels.map(|levels| match at {
            Some(at) => Level::new(levels.of_writes[at]),
            None => Level::new(levels.of_first[page as usize]),
        });
        self.classifier.written(overwritten, level)
    }

    fn moved(&self, _page: u32) -> u8 {
        0
    }

    fn moved_together(&self, from: Resident) -> Option<u8> {
        Some(self.classifier.moved(from))
    }

    fn cleaned(&mut self, from: Resident) {
        self.classifier.cleaned(from);
    }

    fn is_long_lived(&self, class: u8) -> bool {
        self.classifier.placement().is_long_lived(class)
    }
}

/// When each version of each page dies, counted in writes.
pub(super) struct Lives {
    /// For each write, the number of the write that replaces it; [`NEVER`] if none does.
    of_writes: Vec<u32>,
    /// The same for what the first fill put there.
    of_first: Vec<u32>,
}

const NEVER: u32 = u32::MAX;

impl Lives {
    pub(super) fn new(pages: u32, writes: &[u32]) -> Self {
        let mut next = vec![NEVER; pages as usize];
        let mut of_writes = vec![NEVER; writes.len()];
        for (at, &page) in writes.iter().enumerate().rev() {
            of_writes[at] = next[page as usize];
            next[page as usize] = at as u32;
        }
        Self { of_writes, of_first: next }
    }
}

/// What the host says of each write: the level of the life that it will really have, or sometimes
/// another.
pub(super) struct Levels {
    of_writes: Vec<u8>,
    of_first: Vec<u8>,
}

impl Levels {
    /// Levels of which `right` in a hundred are right and the others drawn at random.
    pub(super) fn new(lives: &Lives, right: u32, shape: Shape, seed: u64) -> Self {
        let Shape { segments, segment_pages, .. } = shape;
        let mut prng = onode_base::Prng::new(seed);
        let mut level = |life: u32| {
            let level = if prng.chance(u64::from(right), 100) {
                Level::of_life(life / segment_pages, segments)
            } else {
                Level::new(prng.below(u64::from(onode_flash::policy::LEVELS)) as u8)
            };
            level.number()
        };
        let of_first = lives.of_first.iter().map(|&dies| level(dies)).collect();
        let of_writes = (0..).zip(&lives.of_writes).map(|(at, &dies)| level(dies.saturating_sub(at))).collect();
        Self { of_writes, of_first }
    }
}

/// Knows when each page dies, also when the cleaner asks.
pub(super) struct Oracle<'a> {
    lives: &'a Lives,
    dies: Vec<u32>,
    now: u32,
    shape: Shape,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(lives: &'a Lives, shape: Shape) -> Self {
        Self { dies: lives.of_first.clone(), lives, now: 0, shape }
    }

    fn level(&self, page: u32) -> u8 {
        let left = self.dies[page as usize].saturating_sub(self.now);
        Level::of_life(left / self.shape.segment_pages, self.shape.segments).number()
    }
}

impl Placer for Oracle<'_> {
    fn classes(&self) -> u8 {
        onode_flash::policy::LEVELS
    }

    fn written(&mut self, page: u32, at: Option<usize>, _overwritten: Option<Resident>) -> u8 {
        if let Some(at) = at {
            self.now = at as u32;
            self.dies[page as usize] = self.lives.of_writes[at];
        }
        self.level(page)
    }

    fn moved(&self, page: u32) -> u8 {
        self.level(page)
    }

    fn moved_together(&self, _from: Resident) -> Option<u8> {
        None
    }

    fn cleaned(&mut self, _from: Resident) {}

    fn is_long_lived(&self, class: u8) -> bool {
        Placement::Hints.is_long_lived(class)
    }
}
