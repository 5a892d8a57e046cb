//! Where there is room between what is taken.

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
        .map_or(0, |length| length - length % super::format::PAGE_BYTES)
}

/// The first byte that is taken at or behind `start`, or the end.
pub(super) fn next_taken(taken: &[Extent], end: u64, start: u64) -> u64 {
    taken.iter().map(|extent| extent.start).filter(|taken| *taken >= start).min().unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

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
