//! `fsck.onode`: this program as fsck(8) calls it, at boot and by hand:
//! `fsck.onode [-a|-p|-y|-n] [-f] [-r] [-v] [-V] [-C[FD]] [OPTIONS] DEVICE`.
//!
//! It becomes a line of `onode check` or `onode repair`, which have the exit codes of fsck(8)
//! already. Nothing that can still be read is given up unless `--drop-damaged` is among the
//! options.

use crate::commands::Command;
use crate::commands::volumes::check::{CLEAN, USAGE};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::ffi::OsString;
use std::mem::take;

/// The name of the link.
pub const NAME: &str = "fsck.onode";
const HELP: &str = "Check an Onode volume, as fsck(8) asks for it.

Usage: fsck.onode [-a|-p|-y|-n] [OPTIONS] DEVICE

  -a, -p, -y  repair what can be repaired, without a question; nothing that can still be read is
              given up, so all three do the same
  -n          change nothing: what happens without any of these, too
  -V          print the version
  -f, -r, -v, -C[FD]
              accepted because fsck(8) sends them: each check is a whole one, nothing is asked, and
              the report is always the same
  --accept-loss, --drop-damaged, --key-file FILE, ...
              as `onode repair` and `onode check` have them

Examples:
  fsck.onode -n disk.img
  fsck.onode -a /dev/sdb1

Exit codes: 0 clean, 1 repaired, 4 damage left, 8 could not check, 16 wrong usage
";

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    Look,
    Repair,
    Version,
    Help,
}

/// A call of fsck(8), and what of it goes to the verb as it is.
#[derive(Debug, Default)]
struct FsckCall {
    wish: Wish,
    changes_nothing: bool,
    rest: Vec<OsString>,
}

/// Does it and returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let output = Output::new(NAME, false);
    let outcome = FsckCall::read(arguments.into_iter().skip(1)).and_then(|call| call.run(&output));
    outcome.unwrap_or_else(|error| {
        output.error(&error);
        USAGE
    })
}

impl FsckCall {
    fn read(arguments: impl Iterator<Item = OsString>) -> Result<Self> {
        let mut call = Self::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--") => {
                    call.rest.push(argument);
                    call.rest.extend(arguments.by_ref());
                }
                Some("--help") => call.wish = Wish::Help,
                Some("--version") => call.wish = Wish::Version,
                Some(flags) if flags.len() > 1 && flags.starts_with('-') && !flags.starts_with("--") => {
                    // The descriptor of a progress bar may stand by itself.
                    if call.read_flags(flags)? {
                        let _ = arguments.next_if(|next| next.to_str().is_some_and(is_number));
                    }
                }
                _ => call.rest.push(argument),
            }
        }
        if call.wish == Wish::Repair && call.changes_nothing {
            return Err(usage("-n changes nothing, and -a, -p and -y repair: only one of them can be meant"));
        }
        Ok(call)
    }

    /// Reads one word of flags; whether the next word may be the descriptor that its `-C` wants.
    fn read_flags(&mut self, flags: &str) -> Result<bool> {
        for (at, flag) in flags.char_indices().skip(1) {
            match flag {
                'a' | 'p' | 'y' if self.wish == Wish::Look => self.wish = Wish::Repair,
                'n' => self.changes_nothing = true,
                'V' => self.wish = Wish::Version,
                'h' => self.wish = Wish::Help,
                'C' => return self.read_descriptor(&flags[at + 1..], flags),
                'a' | 'p' | 'y' | 'f' | 'r' | 'v' => {}
                _ => return Err(usage(&format!("`{flags}` is not an option"))),
            }
        }
        Ok(false)
    }

    /// What follows `-C` in its word is the descriptor, negative if the caller draws the progress.
    fn read_descriptor(&self, descriptor: &str, flags: &str) -> Result<bool> {
        match descriptor {
            "" => Ok(true),
            _ if is_number(descriptor) => Ok(false),
            _ => Err(usage(&format!("`{flags}` names no descriptor for the progress"))),
        }
    }

    /// The command line of the verb that does it.
    fn line(&mut self) -> Vec<OsString> {
        let verb = if self.wish == Wish::Repair { "repair" } else { "check" };
        let mut line: Vec<OsString> = ["onode", verb].map(OsString::from).into();
        line.append(&mut take(&mut self.rest));
        line
    }

    fn run(mut self, output: &Output) -> Result<u8> {
        match self.wish {
            Wish::Version => output.bytes(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION")).as_bytes())?,
            Wish::Help => output.bytes(HELP.as_bytes())?,
            Wish::Look | Wish::Repair if self.rest.is_empty() => return Err(usage("no device is named")),
            Wish::Look | Wish::Repair => {
                return match Command::parse(self.line()) {
                    Ok(command) => Ok(output.exit_code(command.run(output))),
                    Err(code) => Ok(code),
                };
            }
        }
        Ok(CLEAN)
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn usage(why: &str) -> Error {
    Error::new(Class::Usage, "cannot check the volume", why).hint("fsck.onode [-a|-p|-y|-n] [-f] [-C[FD]] DEVICE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<FsckCall> {
        FsckCall::read(line.split_whitespace().map(OsString::from))
    }

    /// The command line that comes of it.
    fn line(line: &str) -> String {
        let words = read(line).expect(line).line();
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_call_becomes_a_verb() {
        for call in ["disk", "-n disk", "-nf disk", "-r -v disk", "-C0 disk", "-C 5 disk", "-fC-1 disk", "-n -C disk"] {
            assert_eq!(line(call), "onode check disk", "{call}");
        }
        for call in ["-a disk", "-p disk", "-y disk", "-a -f disk -C5", "-ayf disk", "-paC0 disk"] {
            assert_eq!(line(call), "onode repair disk", "{call}");
        }
        assert_eq!(line("-y --key-file k disk"), "onode repair --key-file k disk");
        assert_eq!(line("-n -- -disk"), "onode check -- -disk");
    }

    #[test]
    fn the_version_wins() {
        assert_eq!(read("-V").expect("valid").wish, Wish::Version);
        assert_eq!(read("-aV disk").expect("valid").wish, Wish::Version);
        assert_eq!(read("-V -a disk").expect("valid").wish, Wish::Version);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for call in ["-n -a disk", "-yn disk", "-x disk", "-Cx disk", "-b 8193 disk"] {
            let error = read(call).expect_err(call);
            assert!(error.class == Class::Usage && error.hint.is_some(), "{call}: {error}");
        }
    }
}
