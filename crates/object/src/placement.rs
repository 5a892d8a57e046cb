//! What the hint `placement_class` says: which part of a tiered device keeps an object, and when a
//! change of it is safe (paper 4, section 3.5: directories are mapped to sections, or bypass the
//! fast device).
//!
//! The sixteen bits are one value that a directory hands on to what is made in it, so nobody has to
//! look anything up. Every value means something: advice that this version does not know is as if
//! it had not been given.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

/// Where content goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Where the device thinks best.
    #[default]
    Device,
    /// To the section of that number, from 0 on; at most [`Placement::SECTIONS_MAX`].
    Section(u8),
    /// Only to the big device.
    Bypass,
}

/// When a durable change counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Acknowledge {
    /// As the volume is set: [`Safe`](Self::Safe), unless somebody chose otherwise.
    #[default]
    Volume = 0,
    /// When both devices have it. The loss of either loses nothing.
    Safe = 1,
    /// When one of the two has it: the rule of paper 4. The loss of the fast device may lose the
    /// last changes.
    Either = 2,
    /// When the big device has it.
    Big = 3,
}

/// The hint `placement_class`, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Where content goes.
    pub target: Target,
    /// When it is safe.
    pub acknowledge: Acknowledge,
    /// Whether what is on the fast device stays there.
    pub pinned: bool,
}

const TARGET: u16 = 0xff;
const BYPASS: u16 = 0xff;
const ACKNOWLEDGE_SHIFT: u32 = 8;
const PINNED: u16 = 1 << 10;

impl Placement {
    /// The most sections that can be told apart.
    pub const SECTIONS_MAX: usize = 254;

    /// The value of the hint. A section beyond what can be said is left to the device.
    #[must_use]
    pub const fn to_class(self) -> u16 {
        let target = match self.target {
            Target::Section(number) if (number as usize) < Self::SECTIONS_MAX => number as u16 + 1,
            Target::Device | Target::Section(_) => 0,
            Target::Bypass => BYPASS,
        };
        let pinned = if self.pinned { PINNED } else { 0 };
        target | (self.acknowledge as u16) << ACKNOWLEDGE_SHIFT | pinned
    }

    /// What a value of the hint means.
    #[must_use]
    pub const fn from_class(class: u16) -> Self {
        let target = match class & TARGET {
            0 => Target::Device,
            BYPASS => Target::Bypass,
            number => Target::Section((number - 1) as u8),
        };
        let acknowledge = match class >> ACKNOWLEDGE_SHIFT & 3 {
            1 => Acknowledge::Safe,
            2 => Acknowledge::Either,
            3 => Acknowledge::Big,
            _ => Acknowledge::Volume,
        };
        Self { target, acknowledge, pinned: class & PINNED != 0 }
    }

    /// Words for people, which [`parse`](Self::parse) understands: `hot`, `bypass,big`,
    /// `default,either,pin`.
    #[must_use]
    pub fn words(self, sections: &[String]) -> String {
        let mut words = match self.target {
            Target::Device => "default".to_string(),
            Target::Bypass => "bypass".to_string(),
            Target::Section(number) => {
                sections.get(usize::from(number)).cloned().unwrap_or_else(|| format!("section-{number}"))
            }
        };
        words.push_str(match self.acknowledge {
            Acknowledge::Volume => "",
            Acknowledge::Safe => ",safe",
            Acknowledge::Either => ",either",
            Acknowledge::Big => ",big",
        });
        if self.pinned {
            words.push_str(",pin");
        }
        words
    }

    /// This placement with the words of `text` applied, which are separated by commas: the name of
    /// a section, `default`, `bypass`, `safe`, `either`, `big`, `volume`, `pin`, `unpin`.
    ///
    /// # Errors
    /// The word that means nothing, with what would have.
    pub fn parse(mut self, text: &str, sections: &[String]) -> core::result::Result<Self, String> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            // Names come first: somebody may call a section `safe`, and must be able to reach it.
            if let Some(number) = sections.iter().position(|section| section == word) {
                self.target = u8::try_from(number).map_or(Target::Device, Target::Section);
                continue;
            }
            match word {
                "default" => self.target = Target::Device,
                "bypass" => self.target = Target::Bypass,
                "volume" => self.acknowledge = Acknowledge::Volume,
                "safe" => self.acknowledge = Acknowledge::Safe,
                "either" => self.acknowledge = Acknowledge::Either,
                "big" => self.acknowledge = Acknowledge::Big,
                "pin" => self.pinned = true,
                "unpin" => self.pinned = false,
                _ => return Err(unknown(word, sections)),
            }
        }
        Ok(self)
    }
}

fn unknown(word: &str, sections: &[String]) -> String {
    let names: Vec<&str> = sections.iter().map(String::as_str).collect();
    let names = if names.is_empty() { "there are none".to_string() } else { names.join(", ") };
    format!(
        "`{word}` is no section (they are: {names}) and none of the words default, bypass, safe, either, big, volume, pin, unpin"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_means_something_and_known_ones_come_back() {
        for class in 0..=u16::MAX {
            let placement = Placement::from_class(class);
            assert_eq!(placement.to_class(), class & 0x7ff, "{placement:?}");
        }
    }

    #[test]
    fn words_are_understood_again() {
        let sections = ["small".to_string(), "large".to_string()];
        for class in [0, 1, 2, 0xff, 0x101, 0x2ff, 0x700, 0x401] {
            let placement = Placement::from_class(class);
            let words = placement.words(&sections);
            assert_eq!(Placement::default().parse(&words, &sections), Ok(placement), "{words}");
        }
        let pinned = Placement { pinned: true, ..Placement::default() };
        let large = pinned.parse("large", &sections).expect("a section");
        assert_eq!(large, Placement { target: Target::Section(1), ..pinned });
        assert_eq!(large.parse("unpin,either", &sections).map(Placement::to_class), Ok(0x202));
        let refused = large.parse("middle", &sections).expect_err("no such section");
        assert!(refused.contains("`middle`") && refused.contains("small, large"), "{refused}");
    }
}
