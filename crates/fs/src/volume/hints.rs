//! The hints that people give: their names, the words they take, and the attributes through which
//! programs read and set them.
//!
//! Each is the attribute `user.onode.NAME` of a file or directory; `onode.NAME` is the same, for
//! programs that were written before the other. No listing shows them, so that a copy of a tree
//! takes over what is said of the place where it is made and not what was said of where it came
//! from. What a directory says goes on to what is made in it ([advice](crate::volume::advice)).

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::state::advice::Advice;
use crate::types::InodeNumber;
use onode_base::ErrorKind;
use onode_base::size::{exact_size, parse_size};
use onode_object::{Compression, Hints, Lifetime, ParityChoice, Placement, Temperature};

const NAMESPACE: &[u8] = b"user.";
const OURS: &[u8] = b"onode.";

/// A hint that people can give for a file, or for all that is made in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// How long content stays as it is: `short`, `medium`, `long`.
    Lifetime,
    /// How often it is used: `cold`, `warm`, `hot`.
    Temperature,
    /// How many bytes a file will have.
    Size,
    /// How content is compressed: `none`, `fast`, `small`, `auto`.
    Compress,
    /// How many lost pages of a group it outlives: a number, `none`, `default`.
    Parity,
    /// Where two disks keep it.
    Placement,
    /// The number of the key that it needs beside that of an encrypted volume.
    Key,
}

impl Hint {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Lifetime, Self::Temperature, Self::Size, Self::Compress, Self::Parity, Self::Placement, Self::Key];

    /// Its name in commands and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifetime => "lifetime",
            Self::Temperature => "temperature",
            Self::Size => "size",
            Self::Compress => "compress",
            Self::Parity => "parity",
            Self::Placement => "placement",
            Self::Key => "key",
        }
    }

    /// The hint of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The name of the attribute that programs read and set.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::Lifetime => "user.onode.lifetime",
            Self::Temperature => "user.onode.temperature",
            Self::Size => "user.onode.size",
            Self::Compress => "user.onode.compress",
            Self::Parity => "user.onode.parity",
            Self::Placement => "user.onode.placement",
            Self::Key => "user.onode.key",
        }
    }

    /// The values it takes, in words for people.
    #[must_use]
    pub const fn values(self) -> &'static str {
        match self {
            Self::Lifetime => "unknown, short, medium or long",
            Self::Temperature => "unknown, cold, warm or hot",
            Self::Size => "unknown, or a number of bytes as 4096, 64K, 10M or 1G",
            Self::Compress => "none, fast, small or auto",
            Self::Parity => "default, none, or a number of pages as 1 or 2",
            Self::Placement => "default, bypass or a section; safe, either, big or volume; pin or unpin",
            Self::Key => "none, or the number of a key of the volume, for a directory without files",
        }
    }

    /// The value of who says nothing.
    #[must_use]
    pub const fn nothing(self) -> &'static str {
        match self {
            Self::Lifetime | Self::Temperature | Self::Size => "unknown",
            Self::Compress => "auto",
            Self::Placement | Self::Parity => "default",
            Self::Key => "none",
        }
    }

    /// That a value is one that this hint takes, as far as that can be told without the volume: of
    /// a placement it cannot.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, value: &str) -> std::result::Result<(), String> {
        self.advise(value, &mut Advice::default())
    }

    /// The hint that an attribute is for.
    pub(crate) fn of_attribute(name: &[u8]) -> Option<Self> {
        let name = name.strip_prefix(NAMESPACE).unwrap_or(name).strip_prefix(OURS)?;
        Self::from_name(str::from_utf8(name).ok()?)
    }

    /// Puts a value into the advice, unless only the device knows what it means.
    fn advise(self, value: &str, advice: &mut Advice) -> std::result::Result<(), String> {
        let known = match self {
            Self::Lifetime => Lifetime::from_name(value).map(|lifetime| advice.lifetime = lifetime),
            Self::Temperature => Temperature::from_name(value).map(|temperature| advice.temperature = temperature),
            Self::Size => {
                let size = if value == self.nothing() { Some(0) } else { parse_size(value).ok() };
                size.map(|size| advice.expected_size = size)
            }
            Self::Compress => Compression::from_name(value).map(|compression| advice.compression = compression),
            Self::Parity => parity_of(value).map(|pages| advice.parity_pages = pages),
            Self::Placement => Some(()),
            Self::Key if value == self.nothing() => {
                advice.encryption_key = 0;
                Some(())
            }
            Self::Key => value.parse().ok().filter(|number| *number != 0).map(|number| advice.encryption_key = number),
        };
        known.ok_or_else(|| format!("`{value}` is no {}: it is {}", self.name(), self.values()))
    }
}

/// The pages of parity that a word means.
fn parity_of(word: &str) -> Option<u8> {
    match word {
        "default" => Some(0),
        "none" | "0" => Some(Hints::NO_PARITY),
        number => number.parse().ok().filter(|pages| *pages != Hints::NO_PARITY),
    }
}

/// That a name below `user.onode.` is one of ours: what is misspelt would be kept and do nothing.
pub(crate) fn check_ours(name: &[u8]) -> Result<()> {
    if name.strip_prefix(NAMESPACE).is_some_and(|rest| rest.starts_with(OURS)) {
        return Err(Error::new(ErrorKind::Invalid, "no hint has this name"));
    }
    Ok(())
}

/// That a volume with this choice has as much parity as a word wishes.
fn check_parity(choice: ParityChoice, word: &str) -> std::result::Result<(), String> {
    match parity_of(word) {
        Some(pages) if pages <= choice.most || pages == Hints::NO_PARITY => Ok(()),
        _ => Err(format!("the volume was made with at most {} pages of parity, not {word}", choice.most)),
    }
}

impl FileSystem {
    /// The value of a hint; of a directory, that of what is made in it.
    ///
    /// # Errors
    /// `NotSupported` for `compress`, `parity`, `placement` and `key` where the device has no such
    /// choice; `Stale`; the device's errors.
    pub fn hint(&self, number: InodeNumber, hint: Hint) -> Result<String> {
        match hint {
            Hint::Compress => self.check_compresses()?,
            Hint::Parity => _ = self.parity_choice()?,
            Hint::Placement => _ = self.tiers()?,
            Hint::Key => self.check_has_keys()?,
            Hint::Lifetime | Hint::Temperature | Hint::Size => {}
        }
        let advice = self.advice(&mut self.lock(), number)?;
        self.told(hint, advice)
    }

    /// Sets a hint for what is written from now on; of a directory, for what is made in it from now
    /// on.
    ///
    /// # Errors
    /// `Invalid` for a value that it does not take; as [`hint`](Self::hint); `ReadOnly`.
    pub fn set_hint(&self, number: InodeNumber, hint: Hint, value: &str) -> Result<()> {
        self.check_writable()?;
        let value = value.trim();
        hint.check(value).map_err(|why| Error::of(ErrorKind::Invalid, number, why))?;
        match hint {
            Hint::Compress => self.check_compresses()?,
            Hint::Parity => {
                let choice = self.parity_choice()?;
                check_parity(choice, value).map_err(|why| Error::of(ErrorKind::Invalid, number, why))?;
            }
            Hint::Placement => return self.set_placement_words(number, value),
            Hint::Key => {
                let mut wanted = Advice::default();
                _ = hint.advise(value, &mut wanted);
                return self.set_directory_key(number, wanted.encryption_key);
            }
            Hint::Lifetime | Hint::Temperature | Hint::Size => {}
        }
        // It was looked at already.
        self.advise(number, |advice| _ = hint.advise(value, advice))
    }

    /// How many pages of parity files may choose.
    fn parity_choice(&self) -> Result<ParityChoice> {
        let why = "files of this volume have no parity of their own: it takes flash made with `--parity 0-2` or so";
        self.device.parity().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// The value in words.
    pub(crate) fn told(&self, hint: Hint, advice: Advice) -> Result<String> {
        Ok(match hint {
            Hint::Lifetime => advice.lifetime.name().into(),
            Hint::Temperature => advice.temperature.name().into(),
            Hint::Size if advice.expected_size == 0 => hint.nothing().into(),
            Hint::Size => exact_size(advice.expected_size),
            Hint::Compress => advice.compression.name().into(),
            Hint::Parity if advice.parity_pages == 0 => hint.nothing().into(),
            Hint::Parity if advice.parity_pages == Hints::NO_PARITY => "none".into(),
            Hint::Parity => advice.parity_pages.to_string(),
            Hint::Placement => self.placement_words(advice)?,
            Hint::Key if advice.encryption_key == 0 => hint.nothing().into(),
            Hint::Key => advice.encryption_key.to_string(),
        })
    }

    /// Does what the setting of the attribute asks for.
    pub(crate) fn set_hint_xattr(&self, number: InodeNumber, hint: Hint, value: &[u8]) -> Result<()> {
        let words = str::from_utf8(value).map_err(|_| Error::of(ErrorKind::Invalid, number, "it is not UTF-8"))?;
        self.set_hint(number, hint, words)
    }

    /// Takes a hint back, as if nobody had said anything.
    pub(crate) fn remove_hint_xattr(&self, number: InodeNumber, hint: Hint) -> Result<()> {
        match hint {
            // A section may have the name of any word.
            Hint::Placement => self.set_placement(number, Placement::default()),
            Hint::Lifetime | Hint::Temperature | Hint::Size | Hint::Compress | Hint::Parity | Hint::Key => {
                self.set_hint(number, hint, hint.nothing())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_two_names_and_others_are_not_ours() {
        for hint in Hint::ALL {
            let name = hint.attribute().as_bytes();
            assert_eq!(Hint::of_attribute(name), Some(hint));
            assert_eq!(Hint::of_attribute(&name[NAMESPACE.len()..]), Some(hint));
            assert_eq!(Hint::from_name(hint.name()), Some(hint));
            assert_eq!(hint.check(hint.nothing()), Ok(()));
        }
        for other in
            ["lifetime", "user.lifetime", "user.onode.", "user.onode.copies", "user.user.onode.size", "onode.why"]
        {
            assert_eq!(Hint::of_attribute(other.as_bytes()), None, "{other}");
        }
        assert!(check_ours(b"user.onode.liftime").is_err() && check_ours(b"user.onodes").is_ok());
    }

    #[test]
    fn values_are_words_or_sizes() {
        for (hint, value) in [
            (Hint::Lifetime, "short"),
            (Hint::Temperature, "hot"),
            (Hint::Size, "64K"),
            (Hint::Size, "0"),
            (Hint::Compress, "small"),
            (Hint::Key, "7"),
        ] {
            assert_eq!(hint.check(value), Ok(()), "{value}");
        }
        for (hint, value) in [
            (Hint::Lifetime, "hot"),
            (Hint::Lifetime, "Short"),
            (Hint::Temperature, ""),
            (Hint::Size, "-1"),
            (Hint::Size, "16777216T"),
            (Hint::Compress, "zip"),
            (Hint::Key, "0"),
            (Hint::Key, "4294967296"),
        ] {
            let refused = hint.check(value).unwrap_err();
            assert!(refused.contains(value) && refused.contains(hint.values()), "{refused}");
        }
    }
}
