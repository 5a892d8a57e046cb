//! The state machine behind a placement: from what is known of some bytes to the class they go to.
//!
//! It is a few words large and costs a few comparisons, so the device asks it for every write and
//! once for every segment cleaned: all that survived in one segment goes on to one class, because
//! one class and one age is all that is known of it. It does not know which classes are open, nor
//! who asks.

use super::{Level, Placement};

/// Collected segments over which the mean life of short-lived ones is taken, as in SepBIT.
const COLLECTED: u32 = 16;

/// Ratio of one class of `lifespan` to the next.
const STEP: u32 = 8;

/// What is known of some bytes: where they lie, and for how long they have lain there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// The class of their segment.
    pub class: u8,
    /// Segments opened since theirs was.
    pub opened: u32,
}

/// A placement at work.
#[derive(Clone, Debug)]
pub struct Classifier {
    placement: Placement,
    segments: u32,
    /// Mean life of collected segments of class 0, and what the next mean will be made of.
    short_life: u32,
    collected: u32,
    life_sum: u64,
}

impl Classifier {
    /// `placement` on a device of so many segments.
    #[must_use]
    pub const fn new(placement: Placement, segments: u32) -> Self {
        // Until something is known, an eighth of the device is short.
        Self { placement, segments, short_life: segments / 8 + 1, collected: 0, life_sum: 0 }
    }

    /// The device has become larger.
    pub const fn set_segments(&mut self, segments: u32) {
        self.segments = segments;
    }

    /// The placement.
    #[must_use]
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// The class for a write by a user. `overwritten` is what it replaces, `level` what the host
    /// expects.
    #[inline]
    #[must_use]
    pub fn written(&self, overwritten: Option<Resident>, level: Option<Level>) -> u8 {
        let life = || overwritten.map_or(u32::MAX, |old| self.age(old));
        match self.placement {
            Placement::Combined
            | Placement::Split
            | Placement::SplitAtime
            | Placement::UserCleaner
            | Placement::AgeChain => 0,
            Placement::SepBit => u8::from(life() >= self.short_life),
            // What is new may stay for long or be gone at once.
            Placement::Lifespan => overwritten.map_or(1, |old| self.ladder(self.age(old), 1, STEP)),
            Placement::Hints => level.unwrap_or_else(|| Level::of_life(life(), self.segments)).number(),
        }
    }

    /// The class for what the cleaner moves.
    #[inline]
    #[must_use]
    pub fn moved(&self, from: Resident) -> u8 {
        match self.placement {
            Placement::Combined | Placement::Split | Placement::SplitAtime => 0,
            Placement::UserCleaner => 1,
            Placement::AgeChain => from.class.saturating_add(1).min(self.placement.classes() - 1),
            Placement::SepBit if from.class == 0 => 2,
            Placement::SepBit => 3 + self.ladder(self.age(from), 4, 16),
            Placement::Lifespan => 3 + self.ladder(self.age(from), 2, STEP),
            Placement::Hints => Level::new(from.class).after(from.opened, self.segments).number(),
        }
    }

    /// Segments opened since users wrote these bytes: since they came to where they are, and before
    /// that as long as their class stands for. So no age has to be kept beside the class, on the
    /// medium or in memory; exact ages bring less than 3 % (`docs/benchmarks.md`).
    fn age(&self, of: Resident) -> u32 {
        let lives = match (self.placement, of.class) {
            (Placement::Lifespan, 3) | (Placement::SepBit, 2) => 1,
            (Placement::Lifespan, 4) => STEP / 2,
            (Placement::Lifespan, 5) => 2 * STEP,
            (Placement::SepBit, 3) => 2,
            (Placement::SepBit, 4) => 8,
            (Placement::SepBit, 5) => 32,
            _ => 0,
        };
        of.opened.saturating_add(self.short_life.saturating_mul(lives))
    }

    /// A segment was cleaned: it teaches how long the short-lived live.
    pub fn cleaned(&mut self, from: Resident) {
        if from.class != 0 || !matches!(self.placement, Placement::SepBit | Placement::Lifespan) {
            return;
        }
        self.life_sum += u64::from(from.opened);
        self.collected += 1;
        if self.collected == COLLECTED {
            self.short_life = ((self.life_sum / u64::from(COLLECTED)) as u32).max(1);
            self.collected = 0;
            self.life_sum = 0;
        }
    }

    /// 0 below `first` short lives, 1 below `second`, else 2.
    fn ladder(&self, life: u32, first: u32, second: u32) -> u8 {
        u8::from(life >= self.short_life.saturating_mul(first))
            + u8::from(life >= self.short_life.saturating_mul(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(class: u8, opened: u32) -> Resident {
        Resident { class, opened }
    }

    #[test]
    fn every_class_is_within_the_placement() {
        for placement in Placement::ALL {
            let mut classifier = Classifier::new(placement, 2048);
            for age in [0, 1, 31, 257, 3000, 100_000, u32::MAX] {
                for class in [0, 1, 2, 3, 4, 5, 200] {
                    classifier.cleaned(resident(class, age));
                    assert!(classifier.moved(resident(class, age)) < placement.classes(), "{placement:?}");
                    let level = Some(Level::new(class));
                    assert!(classifier.written(Some(resident(class, age)), level) < placement.classes());
                    assert!(classifier.written(None, None) < placement.classes());
                }
            }
        }
    }

    #[test]
    fn the_chain_goes_one_on_with_each_move_and_ends() {
        let classifier = Classifier::new(Placement::AgeChain, 2048);
        assert_eq!(classifier.written(Some(resident(3, 1)), None), 0);
        assert_eq!([0, 1, 4, 5].map(|class| classifier.moved(resident(class, 9))), [1, 2, 5, 5]);
    }

    #[test]
    fn lifespan_learns_what_is_short() {
        let mut classifier = Classifier::new(Placement::Lifespan, 2048);
        assert_eq!(classifier.written(Some(resident(0, 100)), None), 0);
        for _ in 0..COLLECTED {
            classifier.cleaned(resident(0, 40));
            // Other classes teach nothing.
            classifier.cleaned(resident(3, 4000));
        }
        let classes = [39, 40, 319, 320].map(|life| classifier.written(Some(resident(0, life)), None));
        assert_eq!(classes, [0, 1, 1, 2]);
        assert_eq!(classifier.written(None, None), 1, "nothing is known of what is new");
        assert_eq!([79, 80, 320].map(|age| classifier.moved(resident(0, age))), [3, 4, 5]);
        // What was moved before is older than its segment.
        assert_eq!([3, 4, 5].map(|class| classifier.moved(resident(class, 40))), [4, 4, 5]);
    }

    #[test]
    fn hints_lead_and_without_one_the_past_does() {
        let classifier = Classifier::new(Placement::Hints, 2048);
        assert_eq!(classifier.written(Some(resident(0, 1)), Some(Level::new(4))), 4);
        assert_eq!(classifier.written(Some(resident(0, 100)), None), 1);
        assert_eq!(classifier.moved(resident(3, 2000)), 0);
    }
}
