//! `mkfs.onode`: this program as mkfs(8) calls it, for `mkfs -t onode`, installers and partition
//! tools: `mkfs.onode [-V] [-v] [-L LABEL] [OPTIONS] DEVICE [SIZE-IN-BLOCKS]`.
//!
//! The options are those of `onode mkfs`; the exit code is 0 or 1, as mkfs(8) has it.

use crate::commands::volumes::mkfs;
use crate::keys::{self, KeyArguments};
use clap::{CommandFactory, Parser};
use onode::{Class, Error, Result, parse_size};
use onode_console::Output;
use std::ffi::OsString;

/// The name of the link.
pub const NAME: &str = "mkfs.onode";
/// What mkfs(8) says of everything that is not success.
const FAILED: u8 = 1;
/// A block of the size that stands behind the device, as mke2fs(8) and mkfs(8) count.
const BLOCK_BYTES: u64 = 1024;
const EXAMPLES: &str = "Examples:\n  mkfs.onode -L photos /dev/sdb1\n  mkfs.onode disk.img 16G\n  \
    mkfs.onode disk.img 65536                 (blocks of 1 KiB: 64 MiB)\n\n\
    Exit codes: 0 made, 1 not made";

/// Make an empty Onode volume, as mkfs(8) asks for it.
#[derive(Debug, Parser)]
#[command(name = NAME, version, max_term_width = 100)]
struct MkfsCall {
    #[command(flatten)]
    volume: mkfs::Arguments,
    /// Size in blocks of 1 KiB; with a unit (64M, 16G) in that. Default: that of --size.
    #[arg(value_name = "SIZE-IN-BLOCKS")]
    blocks: Option<String>,
    /// Accepted because other programs send it: what was made is told anyway.
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    keys: KeyArguments,
}

/// Does it and returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let definition = MkfsCall::command().after_help(EXAMPLES);
    let mut call: MkfsCall = match onode_console::parse(NAME, definition, arguments, FAILED) {
        Ok(call) => call,
        Err(code) => return code,
    };
    let output = Output::new(NAME, false);
    keys::provide(&call.keys);
    let outcome = call.take_size().and_then(|()| mkfs::run(&call.volume, &call.keys, &output));
    outcome.unwrap_or_else(|error| {
        output.error(&error);
        FAILED
    })
}

impl MkfsCall {
    /// What stands behind the device is the size of the volume.
    fn take_size(&mut self) -> Result<()> {
        let Some(said) = &self.blocks else { return Ok(()) };
        let bytes = match said.parse::<u64>() {
            Ok(count) => count.checked_mul(BLOCK_BYTES).ok_or_else(|| "it is larger than any device".to_owned()),
            Err(_) => parse_size(said),
        };
        let bytes = bytes.map_err(|why| wrong(said, why))?;
        if self.volume.size.replace(bytes.to_string()).is_some() {
            return Err(wrong(said, "--size says it, too".to_owned()));
        }
        Ok(())
    }
}

fn wrong(said: &str, why: String) -> Error {
    Error::new(Class::BadSize, format!("cannot use `{said}` as the size"), why)
        .hint("give one size: a number of blocks of 1 KiB, or one with a unit such as 64M or 16G")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> MkfsCall {
        let words = std::iter::once(NAME).chain(line.split_whitespace());
        MkfsCall::try_parse_from(words).expect(line)
    }

    fn size(line: &str) -> Result<Option<String>> {
        let mut call = read(line);
        call.take_size().map(|()| call.volume.size)
    }

    #[test]
    fn the_definition_is_sound() {
        MkfsCall::command().debug_assert();
    }

    #[test]
    fn a_size_without_a_unit_is_blocks() {
        assert_eq!(size("disk.img").expect("none"), None);
        assert_eq!(size("disk.img 65536").expect("blocks").as_deref(), Some("67108864"));
        assert_eq!(size("-v -L x disk.img 64M").expect("a unit").as_deref(), Some("67108864"));
        assert_eq!(size("--size 8M disk.img").expect("the option").as_deref(), Some("8M"));
    }

    #[test]
    fn a_size_that_cannot_be_is_refused() {
        for line in ["disk.img many", "disk.img 18446744073709551615", "disk.img -- -1", "--size 8M disk.img 8192"] {
            let error = size(line).expect_err(line);
            assert!(error.class == Class::BadSize && error.hint.is_some(), "{line}: {error}");
        }
    }
}
