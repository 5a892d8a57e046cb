//! Seeded workloads, named by one line: `NAME:KEY=VALUE,...`.
//!
//! ```text
//! postmark:seed=1,files=1000,transactions=40000,reads=1    small files, like mail and web
//! largefile:write | read | rewrite | random-read, size=60M one file in 4 KiB calls
//! uniform | hot-cold | zipf | moving-hot:fill=80,seed=1,operations=100000
//!                                                          pieces of 4 KiB of a filled volume, rewritten
//! aging:fill=80,seed=1,operations=100000                   files of all sizes in a filled volume
//! ```
//! `fill` is a share of the medium in percent; `size` takes the place of the medium's size. Equal
//! lines for media of equal size give equal streams on every machine.

mod aging;
mod large_file;
mod postmark;
mod rewrite;

pub use aging::Aging;
pub use large_file::{LargeFile, Phase};
pub use postmark::PostMark;
pub use rewrite::Rewrite;

use crate::stream::Operation;
use crate::stream::pattern::Pattern;
use onode::{Class, Error, Result, parse_size};

/// The stream that `text` names, for a medium of `medium_bytes`; `None` if it does not look like a
/// generator at all.
///
/// # Errors
/// `Usage`, quoting the part that is wrong.
pub fn from_text(text: &str, medium_bytes: u64) -> Result<Option<Vec<Operation>>> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let parts = settings.split(',').filter(|part| !part.is_empty());
    match name {
        "postmark" => {
            let mut workload = PostMark::default();
            for part in parts {
                match part.split_once('=') {
                    Some(("seed", value)) => workload.seed = figure(text, value)?,
                    Some(("files", value)) => workload.files = figure(text, value)?,
                    Some(("transactions", value)) => workload.transactions = figure(text, value)?,
                    Some(("reads", value)) => workload.reads_in_ten = figure(text, value)?,
                    _ => return Err(unknown(text, part, "seed, files, transactions, reads")),
                }
            }
            Ok(Some(workload.operations()))
        }
        "largefile" => {
            let mut workload = LargeFile::default();
            for part in parts {
                match (part, part.split_once('=')) {
                    ("write", _) => workload.phase = Phase::Write,
                    ("read", _) => workload.phase = Phase::Read,
                    ("rewrite", _) => workload.phase = Phase::Rewrite,
                    ("random-read", _) => workload.phase = Phase::RandomRead,
                    (_, Some(("size", value))) => workload.bytes = figure(text, value)?,
                    (_, Some(("seed", value))) => workload.seed = figure(text, value)?,
                    _ => return Err(unknown(text, part, "write, read, rewrite, random-read, size, seed")),
                }
            }
            Ok(Some(workload.operations()))
        }
        "aging" => {
            let Filled { bytes, seed, operations } = Filled::parse(text, parts, medium_bytes)?;
            Ok(Some(Aging { bytes, seed, operations: operations.unwrap_or(100_000) }.operations()))
        }
        _ => {
            let Some(pattern) = Pattern::from_name(name) else { return Ok(None) };
            let Filled { bytes, seed, operations } = Filled::parse(text, parts, medium_bytes)?;
            Ok(Some(Rewrite { pattern, bytes, seed, operations }.operations()))
        }
    }
}

/// The settings of workloads on a filled volume.
struct Filled {
    bytes: u64,
    seed: u64,
    operations: Option<u64>,
}

impl Filled {
    fn parse<'a>(text: &str, parts: impl Iterator<Item = &'a str>, medium_bytes: u64) -> Result<Self> {
        let (mut fill, mut size, mut seed, mut operations) = (80, medium_bytes, 42, None);
        for part in parts {
            match part.split_once('=') {
                Some(("fill", value)) => fill = figure(text, value)?,
                Some(("size", value)) => size = figure(text, value)?,
                Some(("seed", value)) => seed = figure(text, value)?,
                Some(("operations", value)) => operations = Some(figure(text, value)?),
                _ => return Err(unknown(text, part, "fill, size, seed, operations")),
            }
        }
        if !(1..=99).contains(&fill) {
            let what = format!("cannot understand the workload `{text}`");
            return Err(Error::new(Class::Usage, what, format!("fill={fill} is no share between 1 and 99 percent")));
        }
        Ok(Self { bytes: (u128::from(size) * u128::from(fill) / 100) as u64, seed, operations })
    }
}

fn figure(text: &str, value: &str) -> Result<u64> {
    parse_size(value).map_err(|why| Error::new(Class::Usage, format!("cannot understand the workload `{text}`"), why))
}

fn unknown(text: &str, part: &str, known: &str) -> Error {
    let what = format!("cannot understand the workload `{text}`");
    Error::new(Class::Usage, what, format!("`{part}` is not a setting of it")).hint(format!("it knows {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_give_equal_streams_and_seeds_differ() {
        let stream = |text: &str| from_text(text, 1 << 22).expect(text).expect(text);
        for (name, settings) in [
            ("postmark", "files=20,transactions=100"),
            ("aging", "operations=100"),
            ("zipf", "operations=100"),
            ("hot-cold", "operations=100"),
            ("moving-hot", "operations=100"),
            ("uniform", "operations=100"),
        ] {
            let seeded = |seed: u64| stream(&format!("{name}:seed={seed},{settings}"));
            assert_eq!(seeded(1), seeded(1));
            assert_ne!(seeded(1), seeded(2));
        }
    }

    #[test]
    fn filled_volumes_stay_as_full_as_was_said() {
        for name in ["aging", "zipf", "hot-cold", "moving-hot", "uniform"] {
            let text = format!("{name}:fill=50,operations=2000");
            let mut sizes = std::collections::BTreeMap::new();
            let mut before = None;
            for operation in from_text(&text, 16 << 20).expect("a stream").expect("a stream") {
                match operation {
                    Operation::Create(name, bytes) => assert_eq!(sizes.insert(name, bytes), None),
                    Operation::Append(name, bytes) => *sizes.get_mut(&name).expect("a file") += bytes,
                    Operation::Write(name, offset, bytes) => assert!(bytes > 0 && offset + bytes <= sizes[&name]),
                    Operation::Delete(name) => assert!(sizes.remove(&name).is_some()),
                    Operation::Measure => before = Some(sizes.values().sum::<u64>()),
                    other => panic!("{other:?}"),
                }
                assert!(sizes.values().sum::<u64>() <= 8 << 20, "{name} overflows");
            }
            let (before, after) = (before.expect("it is measured"), sizes.values().sum::<u64>());
            assert!(before > 6 << 20 && after > 5 << 20, "{name}: {before}, {after}");
        }
    }

    #[test]
    fn wrong_settings_are_quoted_and_other_words_are_no_generators() {
        for (text, quoted) in [
            ("postmark:colour=red", "`colour=red`"),
            ("zipf:transactions=3", "`transactions=3`"),
            ("aging:fill=100", "fill=100"),
            ("zipf:seed=x", "`x`"),
        ] {
            let error = from_text(text, 1 << 27).expect_err(text);
            assert!(error.to_string().contains(quoted), "{error}");
        }
        assert_eq!(from_text("trace.txt", 1 << 27), Ok(None));
    }
}
