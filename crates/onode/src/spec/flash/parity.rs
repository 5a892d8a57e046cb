//! Pages of parity of a flash volume: `2`, or `0-2` where each object chooses.

use std::fmt;

/// How many pages of each row are parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// The most, 0 to 3: names, records and all that is less than a page have so many.
    pub most: u8,
    /// If objects choose, what those have that wish nothing.
    pub usual: Option<u8>,
}

impl Parity {
    /// The most pages of parity that a row may have.
    pub const MOST: u8 = onode_flash::layout::PARITY_PAGES_MAX as u8;

    /// What a word says: a number, or two with a `-` between them.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(word: &str) -> Result<Self, String> {
        let number = |word: &str| {
            let number = word.parse::<u8>().ok().filter(|number| *number <= Self::MOST);
            number.ok_or_else(|| format!("`{word}` is not between 0 and {}", Self::MOST))
        };
        let Some((usual, most)) = word.split_once('-') else {
            return Ok(Self { most: number(word)?, usual: None });
        };
        let (usual, most) = (number(usual)?, number(most)?);
        if most == 0 || usual > most {
            return Err(format!("`{word}`: what objects choose goes from a usual number to the most, as 0-2"));
        }
        Ok(Self { most, usual: Some(usual) })
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.usual {
            Some(usual) => write!(f, "{usual}-{}", self.most),
            None => write!(f, "{}", self.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_the_same() {
        for (word, most, usual) in [("0", 0, None), ("3", 3, None), ("0-2", 2, Some(0)), ("1-1", 1, Some(1))] {
            assert_eq!(Parity::parse(word), Ok(Parity { most, usual }));
            assert_eq!(Parity { most, usual }.to_string(), word);
        }
        for word in ["4", "-1", "1-", "2-1", "0-0", "0-4", "x", "", "1-2-3"] {
            assert!(Parity::parse(word).is_err(), "{word}");
        }
    }
}
