//! The sections as they are, and how they are divided anew.

use super::extent::Scheme;
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
