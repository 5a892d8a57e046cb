//! What `onode find` looks for, as it is written on a command line: sizes and moments.

use onode::parse_size;
use onode_base::Timestamp;

const DAY_SECONDS: i64 = 86_400;

/// A bound for the size of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeBound {
    /// More bytes than that.
    Over(u64),
    /// Fewer bytes than that.
    Under(u64),
    /// Exactly so many.
    Exactly(u64),
}

impl SizeBound {
    /// Reads `+1M`, `-4K` or `512`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(size), _) => parse_size(size).map(Self::Over),
            (None, Some(size)) => parse_size(size).map(Self::Under),
            (None, None) => parse_size(text).map(Self::Exactly),
        }
    }

    /// Whether so many bytes are within.
    pub const fn admits(self, bytes: u64) -> bool {
        match self {
            Self::Over(bound) => bytes > bound,
            Self::Under(bound) => bytes < bound,
            Self::Exactly(bound) => bytes == bound,
        }
    }
}

/// Reads `2026-11-21` or `2026-11-21 03:27:37`, UTC, as `onode ls -l` shows it; nothing if it is no
/// date.
pub fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years that begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468;
    let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    Some(Timestamp { seconds, nanoseconds: 0 })
}

/// Three numbers of so many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut found = [0; 3];
    let mut parts = text.split(between);
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::files::ls::date;

    #[test]
    fn sizes_are_bounds() {
        assert_eq!(SizeBound::parse("+1M"), Ok(SizeBound::Over(1 << 20)));
        assert_eq!(SizeBound::parse("-4K"), Ok(SizeBound::Under(4096)));
        assert_eq!(SizeBound::parse("512"), Ok(SizeBound::Exactly(512)));
        assert!(SizeBound::parse("+lots").is_err() && SizeBound::parse("").is_err());
        assert!(SizeBound::Over(3).admits(4) && !SizeBound::Over(3).admits(3) && SizeBound::Under(3).admits(2));
    }

    #[test]
    fn moments_are_read_as_they_are_shown() {
        for text in [
            "1970-01-01 00:00:00",
            "2000-02-29 00:00:00",
            "1969-12-31 23:59:59",
            "2100-03-01 00:00:00",
            "0000-01-01 00:00:00",
        ] {
            assert_eq!(moment(text).map(date).as_deref(), Some(text));
        }
        assert_eq!(moment("2026-11-21"), moment("2026-11-21T00:00:00"));
        for text in ["/notes", "2026-13-01", "2026-02-29", "2026-1-01", "2026-11-21 24:00:00", "2026-11-21-1", ""] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
