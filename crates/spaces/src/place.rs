//! Where there is room between what is taken.

use alloc::vec::Vec;

/// A part of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Extent {
    pub(super) const fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// The same bytes as extents in order that do not overlap.
pub(super) fn joined(mut taken: Vec<Extent>) -> Vec<Extent> {
    taken.sort_unstable_by_key(|extent| extent.start);
    let mut joined: Vec<Extent> = Vec::with_capacity(taken.len());
    for extent in taken {
        match joined.last_mut() {
            Some(last) if extent.start < last.end() => last.length = last.length.max(extent.end() - last.start),
            _ => joined.push(extent),
        }
    }
    joined
}

/// The parts between extents, which are in order and do not overlap.
fn gaps(taken: &[Extent], end: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = core::iter::once(0).chain(taken.iter().map(Extent::end));
    let ends = taken.iter().map(|extent| extent.start).chain(core::iter::once(end));
    starts.zip(ends)
}

/// The first place with room for `length` bytes from a multiple of `alignment` on.
pub(super) fn first_fit(taken: &[Extent], end: u64, length: u64, alignment: u64) -> Option<u64> {
    gaps(taken, end).find_map(|(start, end)| {
        let start = start.checked_next_multiple_of(alignment)?;
        (start.checked_add(length)? <= end).then_some(start)
    })
}

/// The length of the longest space that could be made.
pub(super) fn largest(taken: &[Extent], end: u64, alignment: u64) -> u64 {
    gaps(taken, end)
        .filter_map(|(start, end)| end.checked_sub(start.checked_next_multiple_of(alignment)?))
        .max()
        .map_or(0, |length| length - length % crate::layout::PAGE_BYTES)
}

/// The first byte that is taken at or behind `start`, or the end.
pub(super) fn next_taken(taken: &[Extent], end: u64, start: u64) -> u64 {
    taken.iter().map(|extent| extent.start).filter(|taken| *taken >= start).min().unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_extents_are_joined() {
        let extents = |all: &[(u64, u64)]| -> Vec<Extent> {
            all.iter().map(|(start, length)| Extent { start: *start, length: *length }).collect()
        };
        assert_eq!(joined(extents(&[(50, 5), (2, 40), (10, 5), (30, 15)])), extents(&[(2, 43), (50, 5)]));
        assert_eq!(joined(extents(&[(0, 4), (4, 4)])), extents(&[(0, 4), (4, 4)]));
    }

    #[test]
    fn gaps_are_found_and_aligned() {
        let taken = [(0, 10), (10, 6), (40, 8)].map(|(start, length)| Extent { start, length });
        assert_eq!(first_fit(&taken, 100, 24, 8), Some(16));
        assert_eq!(first_fit(&taken, 100, 24, 32), Some(64));
        assert_eq!(first_fit(&taken, 100, 52, 4), Some(48));
        assert_eq!(first_fit(&taken, 100, 53, 4), None);
        assert_eq!(first_fit(&taken, 100, u64::MAX, 4), None);
        assert_eq!((next_taken(&taken, 100, 16), next_taken(&taken, 100, 41)), (40, 100));
    }
}
