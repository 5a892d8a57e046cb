//! The operations a workload is made of, and the lines that name them.
//!
//! ```text
//! create NAME BYTES          a new file with that much content
//! append NAME BYTES          more content at the end
//! read NAME                  all of it
//! delete NAME
//! write NAME OFFSET BYTES    overwrite or extend in place
//! pread NAME OFFSET BYTES    a part of it
//! measure                    counting starts here; what came before was preparation
//! ```

pub mod generate;
pub mod pattern;
pub mod trace;

use onode::{Class, Error, Result};

/// One operation of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes a file with so many bytes.
    Create(String, u64),
    /// Adds so many bytes at the end of a file.
    Append(String, u64),
    /// Reads a whole file.
    Read(String),
    /// Removes a file.
    Delete(String),
    /// Writes so many bytes at an offset.
    Write(String, u64, u64),
    /// Reads so many bytes at an offset.
    ReadPart(String, u64, u64),
    /// Counting starts here.
    Measure,
}

impl Operation {
    /// Reads one line of a trace; `line_number` is for the error.
    ///
    /// # Errors
    /// `Usage`, quoting the line.
    pub fn parse(line: &str, line_number: usize) -> Result<Self> {
        let wrong = || {
            let why = format!("line {line_number} is no operation: `{line}`");
            Error::new(Class::Usage, "cannot understand the trace", why)
                .hint("a line is `create NAME BYTES`, `append NAME BYTES`, `read NAME` or `delete NAME`")
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["create", name, bytes] => Ok(Self::Create((*name).to_owned(), number(bytes)?)),
            ["append", name, bytes] => Ok(Self::Append((*name).to_owned(), number(bytes)?)),
            ["read", name] => Ok(Self::Read((*name).to_owned())),
            ["delete", name] => Ok(Self::Delete((*name).to_owned())),
            ["write", name, offset, bytes] => Ok(Self::Write((*name).to_owned(), number(offset)?, number(bytes)?)),
            ["pread", name, offset, bytes] => Ok(Self::ReadPart((*name).to_owned(), number(offset)?, number(bytes)?)),
            ["measure"] => Ok(Self::Measure),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_operations() {
        assert_eq!(Operation::parse("create a 17", 1), Ok(Operation::Create("a".to_owned(), 17)));
        assert_eq!(Operation::parse("append  a 5 ", 1), Ok(Operation::Append("a".to_owned(), 5)));
        assert_eq!(Operation::parse("pread a 4096 5", 1), Ok(Operation::ReadPart("a".to_owned(), 4096, 5)));
    }

    #[test]
    fn a_wrong_line_is_quoted() {
        for line in ["", "create a", "create a -1", "rename a b", "read a b"] {
            let error = Operation::parse(line, 7).expect_err(line);
            assert!(error.to_string().contains(&format!("line 7 is no operation: `{line}`")), "{error}");
        }
    }
}
