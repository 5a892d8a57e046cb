//! Seeded workloads, named by one line: `NAME:KEY=VALUE,...`.
//!
//! ```text
//! postmark:seed=1,files=1000,transactions=40000,reads=1    small files, like mail and web
//! largefile:write | read | rewrite | random-read, size=60M one file in 4 KiB calls
//! ```
//! Equal lines give equal streams on every machine.

mod large_file;
mod postmark;

pub use large_file::{LargeFile, Phase};
pub use postmark::PostMark;

use crate::stream::Operation;
use onode::{Class, Error, Result, parse_size};

/// The stream that `text` names; `None` if it does not look like a generator at all.
///
/// # Errors
/// `Usage`, quoting the part that is wrong.
pub fn from_text(text: &str) -> Result<Option<Vec<Operation>>> {
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
        _ => Ok(None),
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
        let stream = |text| from_text(text).expect(text).expect(text);
        let short = "postmark:seed=1,files=20,transactions=100";
        assert_eq!(stream(short), stream(short));
        assert_ne!(stream(short), stream("postmark:seed=2,files=20,transactions=100"));
    }

    #[test]
    fn wrong_settings_are_quoted_and_other_words_are_no_generators() {
        let error = from_text("postmark:colour=red").expect_err("unknown setting");
        assert!(error.to_string().contains("`colour=red`"), "{error}");
        assert_eq!(from_text("trace.txt"), Ok(None));
    }
}
