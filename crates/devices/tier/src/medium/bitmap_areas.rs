//! Where the pages of the bitmap lie that came when the volume grew: each time in an area at the
//! start of what came, with room for more pages, so that many small growths need few areas.

/// Areas of a volume at most: each holds at least a page, and a superblock has room for no more.
pub const MOST_AREAS: usize = 20;
/// Of so many blocks that come, one page may be for what comes later: 1/128 of them, in two slots.
const BLOCKS_PER_SPARE_PAGE: u64 = 256;

/// Blocks that hold pages of the bitmap, two slots each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitmapArea {
    /// The first block.
    pub first: u64,
    /// Pages that it has room for.
    pub pages: u64,
}

impl BitmapArea {
    /// The block behind it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.pages.saturating_mul(2))
    }
}

/// The areas, in the order in which they came, which is that of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitmapAreas {
    areas: [BitmapArea; MOST_AREAS],
    count: usize,
}

impl BitmapAreas {
    /// These areas; `None` if there are too many.
    #[must_use]
    pub fn of(areas: &[BitmapArea]) -> Option<Self> {
        let mut all = Self { count: areas.len(), ..Self::default() };
        all.areas.get_mut(..areas.len())?.copy_from_slice(areas);
        Some(all)
    }

    /// The areas.
    #[must_use]
    pub fn all(&self) -> &[BitmapArea] {
        self.areas.get(..self.count).unwrap_or_default()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The areas when pages of a volume that had `blocks`, and `pages` with those here, become
    /// `wanted`, `more` blocks coming. The block behind the volume, where a superblock may be, is
    /// left out. `None` if there are too many areas.
    #[must_use]
    pub fn grown(&self, blocks: u64, pages: u64, wanted: u64, more: u64) -> Option<Self> {
        let missing = wanted.saturating_sub(pages);
        if missing == 0 {
            return Some(*self);
        }
        let spare = pages.min(more / BLOCKS_PER_SPARE_PAGE);
        let area = BitmapArea { first: blocks + 1, pages: missing.max(spare) };
        let mut grown = *self;
        *grown.areas.get_mut(self.count)? = area;
        grown.count += 1;
        Some(grown)
    }

    /// The areas of a volume that ends in front of the first of those that go, whose blocks are
    /// `blocks` or fewer; with the blocks that such a volume has.
    #[must_use]
    pub fn shrunk(&self, blocks: u64) -> (Self, u64) {
        let count = self.all().iter().take_while(|area| area.end() <= blocks).count();
        // The block in front of an area was left out when it came.
        let blocks =
            self.areas.get(count).filter(|_| count < self.count).map_or(blocks, |goes| blocks.min(goes.first - 1));
        let mut shrunk = Self { count, ..*self };
        shrunk.areas.iter_mut().skip(count).for_each(|area| *area = BitmapArea::default());
        (shrunk, blocks)
    }

    /// Pages that all of them have room for.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.all().iter().fold(0, |sum: u64, area| sum.saturating_add(area.pages))
    }

    /// Those that came with the blocks from `first` on.
    pub fn from(&self, first: u64) -> impl Iterator<Item = &BitmapArea> {
        self.all().iter().filter(move |area| area.first >= first)
    }

    /// The area of a page of those in areas, counted from 0, and which of its pages that is.
    fn area_of(&self, page: u64) -> Option<(&BitmapArea, u64)> {
        let mut left = page;
        for area in self.all() {
            if left < area.pages {
                return Some((area, left));
            }
            left -= area.pages;
        }
        None
    }

    /// The first block of such a page.
    #[must_use]
    pub fn block_of(&self, page: u64) -> Option<u64> {
        self.area_of(page).map(|(area, number)| area.first + 2 * number)
    }

    /// Pages of the area of such a page, from it on.
    #[must_use]
    pub fn pages_from(&self, page: u64) -> u64 {
        self.area_of(page).map_or(0, |(area, number)| area.pages - number)
    }

    /// Whether none of `first..end` lies in an area.
    #[must_use]
    pub fn leave_free(&self, first: u64, end: u64) -> bool {
        self.all().iter().all(|area| end <= area.first || first >= area.end())
    }

    /// Whether they are in order, between `first` and `end`, and each has pages.
    #[must_use]
    pub fn are_sound(&self, first: u64, end: u64) -> bool {
        let mut before = first;
        self.all().iter().all(|area| {
            let follows = area.first >= before && area.pages > 0 && area.pages <= end;
            before = area.end();
            follows && before <= end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_several_growths_lie_in_the_areas_that_came_with_them() {
        let none = BitmapAreas::default();
        assert_eq!(none.grown(1000, 1, 1, 500), Some(none));
        let one = none.grown(1000, 1, 3, 70_000).unwrap();
        assert_eq!(one.all(), [BitmapArea { first: 1001, pages: 2 }]);
        // Four pages are there, one more is needed, and there is room for four.
        let two = one.grown(71_000, 3, 4, 2000).unwrap();
        assert_eq!(two.all()[1], BitmapArea { first: 71_001, pages: 3 });
        assert_eq!(two.pages(), 5);
        assert_eq!(
            [0, 1, 2, 4, 5].map(|page| two.block_of(page)),
            [Some(1001), Some(1003), Some(71_001), Some(71_005), None]
        );
        assert_eq!([0, 1, 2, 4, 5].map(|page| two.pages_from(page)), [2, 1, 3, 1, 0]);
        assert!(two.leave_free(1005, 71_001) && !two.leave_free(1004, 1005) && !two.leave_free(71_000, 71_002));
        assert!(two.are_sound(900, 80_000) && !two.are_sound(1002, 80_000) && !two.are_sound(900, 71_006));
        // Behind an area, in it, in front of it, and far in front of both.
        assert_eq!(two.shrunk(71_007), (two, 71_007));
        assert_eq!(two.shrunk(71_006), (one, 71_000));
        assert_eq!(two.shrunk(70_000), (one, 70_000));
        assert_eq!(two.shrunk(900), (none, 900));
        let mut all = none;
        for count in 0..MOST_AREAS as u64 {
            all = all.grown(count * 100, 0, 1, 100).unwrap();
        }
        assert_eq!(all.grown(100_000, 0, 1, 100), None);
    }
}
