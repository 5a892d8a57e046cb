//! The sections as they are, and how they are divided anew.

use super::extent::Scheme;
use super::map::Copy;
use super::section::Section;
use super::{BLOCK, Fast, SectionOptions};
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::Result;
use onode_object::powers::SectionSize;

impl Fast {
    /// The sections and their sizes, in the order of their numbers.
    #[must_use]
    pub fn division(&self) -> Vec<SectionSize> {
        let places = self.superblock.division.sections.iter();
        let size = |place: &super::format::SectionPlace| SectionSize {
            name: place.name.clone(),
            extent_bytes: u64::from(place.extent_blocks) * BLOCK,
            bytes: place.blocks * BLOCK,
        };
        places.map(size).collect()
    }

    /// Divides the sections anew, in proportion to the sizes; what is filled as the paper has it
    /// goes on so.
    ///
    /// # Errors
    /// As [`reconfigure`](Self::reconfigure).
    pub fn divide(&mut self, sections: &[SectionSize]) -> Result<()> {
        let before = self.section_names();
        let scheme = self.superblock.division.sections.first().map_or(Scheme::Exact, |place| place.scheme);
        // Shares have 32 bits; of those that do not fit the lowest are left out.
        let largest = sections.iter().map(|section| section.bytes).max().unwrap_or(0);
        let shift = (u64::BITS - largest.leading_zeros()).saturating_sub(u32::BITS);
        let options = arranged(sections, &before).into_iter().map(|section| SectionOptions {
            scheme,
            ..SectionOptions::new(&section.name, (section.bytes >> shift) as u32, section.extent_bytes)
        });
        self.reconfigure(&options.collect::<Vec<_>>())
    }

    /// Divides the sections anew. Copies stay where they are as long as they lie inside a section;
    /// the others are dropped, which the big disk makes good. Nothing is copied.
    ///
    /// # Errors
    /// `Invalid` for sections that cannot be; nothing was changed. `Media`.
    pub fn reconfigure(&mut self, sections: &[SectionOptions]) -> Result<()> {
        let division = &self.superblock.division;
        let first = division.sections_first();
        let places =
            super::options::divide_sections(sections, first, division.blocks.saturating_sub(first), division.stripe)?;
        self.write_collected()?;
        self.superblock.division.sections = places;
        self.superblock.write_next(self.disk.as_mut())?;
        let before = core::mem::take(&mut self.map);
        let named: Vec<_> =
            self.sections.iter().map(|it| (it.place.name.clone(), it.place.first..it.place.end())).collect();
        let was_in = |fast: u64| named.iter().find(|(_, place)| place.contains(&fast)).map(|(name, _)| name.as_str());
        let fresh = self.superblock.division.sections.iter().cloned();
        let (stripe, policy) = (self.superblock.division.stripe, self.settings.policy);
        self.sections = fresh.map(|place| Section::new(place, stripe, policy)).collect();
        for (block, copy) in before.iter() {
            let tick = self.tick;
            let size = u64::from(copy.blocks);
            let Some(section) = self.section_of(copy.fast).filter(|section| section.holds(copy.fast, copy.blocks))
            else {
                continue;
            };
            let in_one_unit = copy.fast + size <= section.unit_range(copy.fast).end;
            if !in_one_unit || !section.take(copy.fast, copy.blocks) {
                continue;
            }
            let placed = copy.placed && was_in(copy.fast) == Some(section.place.name.as_str());
            if copy.pinned {
                section.pinned_blocks += size;
            } else {
                section.policy(placed).insert(block, size, tick);
            }
            self.map.insert(block, Copy { placed, ..*copy });
        }
        self.mover.changed();
        self.is_changed = true;
        self.snapshot()
    }
}

/// The sections so that a name which was there before keeps its number, if there are so many.
fn arranged<'a>(sections: &'a [SectionSize], before: &[String]) -> Vec<&'a SectionSize> {
    let number = |section: &SectionSize| before.iter().take(sections.len()).position(|name| *name == section.name);
    let mut places: Vec<Option<&SectionSize>> = alloc::vec![None; sections.len()];
    let mut others = Vec::new();
    for section in sections {
        match number(section).and_then(|number| places.get_mut(number)).filter(|place| place.is_none()) {
            Some(place) => *place = Some(section),
            None => others.push(section),
        }
    }
    let mut others = others.into_iter();
    places.into_iter().filter_map(|place| place.or_else(|| others.next())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn names_keep_their_numbers() {
        let of = |names: &[&str]| -> Vec<SectionSize> {
            let one = |name: &&str| SectionSize { name: name.to_string(), extent_bytes: 65_536, bytes: 1 };
            names.iter().map(one).collect()
        };
        let before: Vec<String> = ["small", "large", "mail"].map(String::from).to_vec();
        let after = |names: &[&str]| {
            let sections = of(names);
            arranged(&sections, &before).into_iter().map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(after(&["new", "large", "small"]), ["small", "large", "new"]);
        assert_eq!(after(&["large", "new"]), ["new", "large"]);
        assert_eq!(after(&["mail"]), ["mail"]);
        assert_eq!(after(&["a", "b", "c", "mail"]), ["a", "b", "mail", "c"]);
    }
}
