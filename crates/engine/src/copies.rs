//! Several copies of one structure on a medium, such as a superblock: which of them counts.
//!
//! Copies are written one after the other, each over the one that is not relied upon, and every
//! write has a higher number. So a cut damages one of them at most.
//!
//! What it keeps true: the sound copy with the highest number counts, of equal ones the first that
//! was added. What is no copy is remembered with its place, so that a volume that was damaged is
//! not taken for a medium that never had one, and one of a newer format not for damage.
//!
//! What it does not do: read or write. Where copies lie and how they are made durable follows from
//! the medium.

use alloc::vec::Vec;

/// Why bytes are no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There never was one.
    Foreign,
    /// It began as one, and is not sound.
    Damaged,
    /// It is sound, of this format, which the code does not know.
    Newer(u32),
}

/// A structure whose writes are numbered.
pub trait Numbered {
    /// Its number: the copy with a higher one is newer.
    fn number(&self) -> u64;
}

/// The copies looked at so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies<T> {
    newest: Option<(T, u64)>,
    faults: Vec<(u64, Fault)>,
}

impl<T> Default for Copies<T> {
    fn default() -> Self {
        Self { newest: None, faults: Vec::new() }
    }
}

impl<T: Numbered> Copies<T> {
    /// Adds what was found at `place`, in the unit of the medium; whether it is a sound copy.
    pub fn add(&mut self, place: u64, found: Result<T, Fault>) -> bool {
        match found {
            Ok(copy) => {
                let best = self.newest.as_ref().map(|(newest, _)| newest.number());
                if best.is_none_or(|best| best < copy.number()) {
                    self.newest = Some((copy, place));
                }
                true
            }
            Err(fault) => {
                self.faults.push((place, fault));
                false
            }
        }
    }

    /// The copy that counts, and where it lies.
    #[must_use]
    pub const fn newest(&self) -> Option<&(T, u64)> {
        self.newest.as_ref()
    }

    /// The same, taken out.
    #[must_use]
    pub fn into_newest(self) -> Option<(T, u64)> {
        self.newest
    }

    /// Where none is, or none that is sound.
    pub fn missing(&self) -> impl Iterator<Item = u64> {
        self.faults.iter().map(|(place, _)| *place)
    }

    /// The format of a sound one that the code does not know.
    #[must_use]
    pub fn newer_format(&self) -> Option<u32> {
        self.faults.iter().find_map(|(_, fault)| if let Fault::Newer(version) = fault { Some(*version) } else { None })
    }

    /// Whether one began as a copy and is not sound.
    #[must_use]
    pub fn any_damaged(&self) -> bool {
        self.faults.iter().any(|(_, fault)| *fault == Fault::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Numbered for u64 {
        fn number(&self) -> u64 {
            *self
        }
    }

    fn of(found: &[Result<u64, Fault>]) -> Copies<u64> {
        let mut copies = Copies::default();
        for (place, found) in found.iter().enumerate() {
            assert_eq!(copies.add(place as u64, *found), found.is_ok());
        }
        copies
    }

    #[test]
    fn the_newest_sound_copy_counts_wherever_it_lies() {
        assert_eq!(of(&[Ok(4), Ok(5)]).newest(), Some(&(5, 1)));
        assert_eq!(of(&[Ok(5), Ok(4)]).newest(), Some(&(5, 0)));
        assert_eq!(of(&[Err(Fault::Damaged), Ok(4)]).newest(), Some(&(4, 1)));
        assert_eq!(of(&[Ok(5), Ok(5)]).newest(), Some(&(5, 0)), "of equal ones the first");
        assert_eq!(of(&[Err(Fault::Foreign), Err(Fault::Damaged)]).into_newest(), None);
    }

    #[test]
    fn a_medium_that_was_damaged_is_no_medium_without_a_volume() {
        let nothing = of(&[Err(Fault::Foreign), Err(Fault::Foreign)]);
        assert!(!nothing.any_damaged() && nothing.newer_format().is_none());
        assert!(of(&[Err(Fault::Foreign), Err(Fault::Damaged)]).any_damaged());
        let newer = of(&[Err(Fault::Newer(9)), Err(Fault::Damaged)]);
        assert_eq!((newer.newer_format(), newer.any_damaged()), (Some(9), true));
    }

    #[test]
    fn the_place_of_what_is_no_copy_is_known() {
        let one = of(&[Ok(5), Err(Fault::Damaged)]);
        assert_eq!(one.missing().collect::<Vec<_>>(), [1]);
    }
}
