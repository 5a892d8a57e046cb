//! Lifetime levels: how much is written to the device before a page is written anew or freed.
//!
//! Six levels in steps of four, measured in shares of the device's own segments, so that they mean
//! the same on every size: level 0 dies before 1/64 of the device was filled, level 5 outlives four
//! fills. A level is advice. One that is wrong costs moves, never bytes.

use onode_object::{Hints, Lifetime, Temperature};

/// A level of expected life, 0 the shortest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

/// Number of levels.
pub const LEVELS: u8 = 6;

impl Level {
    /// The level `number`, or the last.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(if number < LEVELS { number } else { LEVELS - 1 })
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The life at which this level ends, in segments of a device that has `segments`; `None` for
    /// the last.
    #[must_use]
    pub const fn end(self, segments: u32) -> Option<u32> {
        match self.0 {
            0 => Some(segments / 64),
            1 => Some(segments / 16),
            2 => Some(segments / 4),
            3 => Some(segments),
            4 => Some(segments.saturating_mul(4)),
            _ => None,
        }
    }

    /// The level of something that lives for `life` segments.
    #[must_use]
    pub fn of_life(life: u32, segments: u32) -> Self {
        (0..LEVELS).map(Self).find(|level| level.end(segments).is_none_or(|end| life < end)).unwrap_or(Self(LEVELS - 1))
    }

    /// What is left of something of this level that has lived for `age`: the middle of what is
    /// still possible, and as long again as it lived once it has outlived its level.
    #[must_use]
    pub fn after(self, age: u32, segments: u32) -> Self {
        let Some(end) = self.end(segments) else { return self };
        let start = if self.0 == 0 { 0 } else { Self(self.0 - 1).end(segments).unwrap_or(0) };
        let left = if age < end {
            let soonest = start.max(age);
            soonest - age + (end - soonest) / 2
        } else {
            age / 2
        };
        Self::of_life(left, segments)
    }

    /// What the hints of an object say about its content, if anything. The lifetime says which
    /// third of the levels, the temperature which of its two halves: what is used all the time is
    /// replaced sooner.
    #[must_use]
    pub const fn of_hints(hints: &Hints) -> Option<Self> {
        let base = match hints.lifetime {
            Lifetime::Short => 0,
            Lifetime::Medium => 2,
            Lifetime::Long => 4,
            Lifetime::Unknown => {
                return match hints.temperature {
                    Temperature::Hot => Some(Self(1)),
                    Temperature::Warm => Some(Self(3)),
                    Temperature::Cold => Some(Self(5)),
                    Temperature::Unknown => None,
                };
            }
        };
        Some(match hints.temperature {
            Temperature::Hot => Self(base),
            Temperature::Warm | Temperature::Cold | Temperature::Unknown => Self(base + 1),
        })
    }

    /// Hints that say this level: what [`Self::of_hints`] reads back.
    #[must_use]
    pub const fn hints(self) -> (Lifetime, Temperature) {
        let lifetime = match self.0 / 2 {
            0 => Lifetime::Short,
            1 => Lifetime::Medium,
            _ => Lifetime::Long,
        };
        (lifetime, if self.0.is_multiple_of(2) { Temperature::Hot } else { Temperature::Cold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_each_other_in_steps_of_four() {
        let levels = [0, 31, 32, 127, 128, 511, 512, 2047, 2048, 8191, 8192, u32::MAX];
        let found: [u8; 12] = levels.map(|life| Level::of_life(life, 2048).number());
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }

    #[test]
    fn a_level_shrinks_with_age_and_grows_when_outlived() {
        let level = Level::new(3);
        assert_eq!(level.after(0, 2048), level);
        assert_eq!(level.after(2000, 2048), Level::new(0));
        assert_eq!(level.after(9000, 2048), Level::new(4));
        assert_eq!(Level::new(5).after(1 << 30, 2048), Level::new(5));
    }

    #[test]
    fn every_level_can_be_said_in_hints() {
        for level in (0..LEVELS).map(Level::new) {
            let (lifetime, temperature) = level.hints();
            assert_eq!(Level::of_hints(&Hints { lifetime, temperature, ..Hints::default() }), Some(level));
        }
        assert_eq!(Level::of_hints(&Hints::default()), None);
    }
}
