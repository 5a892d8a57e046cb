//! The spread of erases over the blocks of a NAND.

/// How often the good blocks of a medium were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Erases of the least erased block.
    pub least: u32,
    /// Erases of the most erased block.
    pub most: u32,
    /// Erases of all blocks.
    pub total: u64,
}

impl Wear {
    /// The spread of these erase counts; all zero if there are none.
    #[must_use]
    pub fn over(erase_counts: impl Iterator<Item = u32>) -> Self {
        let begin: Option<Self> = None;
        let add = |sum: Option<Self>, erases: u32| {
            let sum = sum.unwrap_or(Self { least: erases, most: erases, total: 0 });
            Some(Self {
                least: sum.least.min(erases),
                most: sum.most.max(erases),
                total: sum.total + u64::from(erases),
            })
        };
        erase_counts.fold(begin, add).unwrap_or_default()
    }
}
