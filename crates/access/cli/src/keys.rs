//! Keys of encrypted volumes: from a file, a keyring of the kernel, or a person at a terminal.
//!
//! No key is ever an argument or a variable of the environment, where other users of the computer
//! could see it. Once this process has one it leaves no core dump.

mod elsewhere;
mod unlocks;

use linux_keyutils::{KeyError, KeyRing, KeyRingIdentifier};
use onode::keys::{Anchor, KEY_FILE_BYTES_MIN, KeyAgent, Secret, set_key_agent};
use onode::{Class, Error, Result, Spec};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use zeroize::Zeroizing;

pub use elsewhere::variable_elsewhere;
pub use unlocks::warn_of_unused;

/// The most bytes of a file with a key.
const BYTES_MAX: u64 = 64 << 10;
/// How often a person is asked for a passphrase.
pub const PROMPTS: u32 = 3;
/// The variable that names a key file where no option does.
const VARIABLE: &str = "ONODE_KEY_FILE";
/// Standard input as a file of a passphrase.
pub const STANDARD_INPUT: &str = "-";

/// Where the keys of encrypted volumes are.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Keys of encrypted volumes")]
pub struct KeyArguments {
    /// A key file: random bytes, 32 or more. Without any of these the variable ONODE_KEY_FILE may
    /// name one, and else a passphrase is asked for.
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["passphrase_file", "keyring"])]
    pub key_file: Option<PathBuf>,
    /// A file whose text is the passphrase; - is standard input.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "keyring")]
    pub passphrase_file: Option<PathBuf>,
    /// The name of a key of the type `user` in the session or user keyring of the kernel.
    #[arg(long, global = true, value_name = "NAME")]
    pub keyring: Option<String>,
    /// Refuse an authenticated volume that is older than this, which `onode key anchor` printed.
    #[arg(long, global = true, value_name = "ANCHOR", value_parser = anchor_of)]
    pub expect_anchor: Option<Anchor>,
    /// A file that opens keys of directories (`onode key new`): 32 random bytes or more, or the
    /// text of a passphrase. It may be given several times.
    #[arg(long, global = true, value_name = "FILE")]
    pub unlock: Vec<PathBuf>,
}

impl KeyArguments {
    /// Takes in an option of `-o`; says whether it is one of a key.
    ///
    /// # Errors
    /// `Usage` for a path that is none.
    pub fn apply(&mut self, name: &str, value: &str) -> Result<bool> {
        let absolute = || std::path::absolute(value).map_err(|error| Error::host_file("use", Path::new(value), &error));
        let (expect_anchor, unlock) = (self.expect_anchor, self.unlock.clone());
        let no_key = Self { expect_anchor, unlock, ..Self::default() };
        match name {
            "key-file" => *self = Self { key_file: Some(absolute()?), ..no_key },
            "passphrase-file" => *self = Self { passphrase_file: Some(absolute()?), ..no_key },
            "keyring" => *self = Self { keyring: Some(value.to_owned()), ..no_key },
            "unlock" => self.unlock.push(absolute()?),
            "expect-anchor" => {
                let anchor = anchor_of(value).map_err(|why| {
                    let what = format!("cannot expect the anchor `{value}`");
                    Error::new(Class::Usage, what, why).hint("`onode key anchor IMAGE` prints one")
                })?;
                self.expect_anchor = Some(anchor);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What options of `-o` say, with what flags say beside them: the key of the volume and the
    /// anchor of a flag come before those of an option; both unlock keys of directories.
    #[must_use]
    pub fn with_flags(self, flags: &Self) -> Self {
        let Self { expect_anchor, mut unlock, .. } = self.clone();
        // A mount hands its options on to its server in both ways.
        unlock.extend(flags.unlock.iter().filter(|path| !self.unlock.contains(path)).cloned());
        let of_volume = if flags.is_empty() { self } else { flags.clone() };
        Self { expect_anchor: flags.expect_anchor.or(expect_anchor), unlock, ..of_volume }
    }

    /// Whether no key of a volume is said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.key_file.is_none() && self.passphrase_file.is_none() && self.keyring.is_none()
    }

    /// What these say of a key, or the variable, or a person at a terminal who is asked for the
    /// passphrase `of` something; `None` if there is nothing (more).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn asked(&self, of: &str, attempt: u32) -> Result<Option<Secret>> {
        if !self.is_empty() {
            self.secret(attempt)
        } else if let Some(arguments) = of_variable() {
            arguments.secret(attempt)
        } else if attempt < PROMPTS {
            ask_for(of, attempt)?.map(passphrase).transpose()
        } else {
            Ok(None)
        }
    }

    /// What opens keys of directories: of each file what it can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_directories(&self) -> Result<Vec<Vec<Secret>>> {
        unlocks::note();
        self.unlock.iter().map(|path| either(path)).collect()
    }

    /// What these say; `None` if there is nothing (more).
    fn secret(&self, attempt: u32) -> Result<Option<Secret>> {
        match (&self.key_file, &self.passphrase_file, &self.keyring) {
            (Some(path), ..) if attempt == 0 => key_file(path).map(Some),
            (_, Some(path), _) if attempt == 0 => passphrase_file(path).map(Some),
            (.., Some(name)) => from_keyring(name, attempt),
            _ => Ok(None),
        }
    }

    /// The first key of a volume: what these say, or the variable, or what a person types twice.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn first_secret(&self) -> Result<Secret> {
        match of_variable().filter(|_| self.is_empty()) {
            Some(arguments) => arguments.new_secret(),
            None => self.new_secret(),
        }
    }

    /// A new key: what these say, or what a person types twice.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new_secret(&self) -> Result<Secret> {
        if let Some(secret) = self.secret(0)? {
            return Ok(secret);
        }
        let first = ask("New passphrase: ")?.ok_or_else(|| {
            Error::new(Class::Key, "cannot make a key", "there is no terminal to ask for a passphrase")
                .hint("name a file: --key-file FILE, or --passphrase-file FILE (- is standard input)")
        })?;
        if ask("Once more: ")?.is_none_or(|second| *second != *first) {
            return Err(Error::new(Class::Key, "cannot make a key", "the two passphrases differ"));
        }
        passphrase(first)
    }
}

fn anchor_of(text: &str) -> std::result::Result<Anchor, String> {
    text.parse().map_err(|error: onode_object::Error| error.detail)
}

/// What this process uses, and a key that it was given already.
#[derive(Default)]
struct Known {
    arguments: KeyArguments,
    remembered: Option<Secret>,
}

static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();

fn known<T>(with: impl FnOnce(&mut Known) -> T) -> T {
    let known = KNOWN.get_or_init(Mutex::default);
    with(&mut known.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Who is asked for keys by whatever opens a volume.
struct Agent;

impl KeyAgent for Agent {
    fn secret(&self, spec: &Spec, attempt: u32) -> Result<Option<Secret>> {
        let (remembered, arguments) = known(|known| (known.remembered.clone(), known.arguments.clone()));
        // The key that opened a volume before comes first: a command that opens it again asks no
        // person twice, and finds nothing more on standard input.
        let attempt = match remembered {
            Some(secret) if attempt == 0 => return Ok(Some(secret)),
            Some(_) => attempt - 1,
            None => attempt,
        };
        arguments.asked(&spec.to_string(), attempt)
    }

    fn directory_secrets(&self, _: &Spec) -> Result<Vec<Vec<Secret>>> {
        known(|known| known.arguments.clone()).of_directories()
    }

    fn opened(&self, secret: &Secret) {
        remember(secret.clone());
    }

    fn anchor(&self, _: &Spec) -> Option<Anchor> {
        known(|known| known.arguments.expect_anchor)
    }
}

/// What the variable says.
fn of_variable() -> Option<KeyArguments> {
    let path = std::env::var_os(VARIABLE)?;
    Some(KeyArguments { key_file: Some(path.into()), ..KeyArguments::default() })
}

/// Has whatever opens a volume ask these for keys from now on.
pub fn provide(arguments: &KeyArguments) {
    if *arguments != KeyArguments::default() {
        known(|known| known.arguments = arguments.clone());
    }
    set_key_agent(Box::new(Agent));
}

/// Has whatever opens a volume use this key.
pub fn remember(secret: Secret) {
    known(|known| known.remembered = Some(secret));
}

/// The passphrase of a volume, or of something else; `None` if there is no terminal.
pub fn ask_for(of: &str, attempt: u32) -> Result<Option<Zeroizing<String>>> {
    let again = if attempt > 0 { "That opens no key slot. " } else { "" };
    ask(&format!("{again}Passphrase of {of}: "))
}

/// What a person types; `None` if there is no terminal.
fn ask(prompt: &str) -> Result<Option<Zeroizing<String>>> {
    if File::open("/dev/tty").is_err() {
        return Ok(None);
    }
    let typed = rpassword::prompt_password(prompt);
    typed.map(|typed| Some(Zeroizing::new(typed))).map_err(|error| Error::host("cannot ask for a passphrase", &error))
}

/// Text of standard input, without a line break at its end.
pub fn standard_input() -> Result<Zeroizing<Vec<u8>>> {
    read("standard input".as_ref(), std::io::stdin().lock()).map(|text| without_line_break(&text))
}

fn passphrase(text: Zeroizing<String>) -> Result<Secret> {
    made("cannot use it", Secret::passphrase(text.as_bytes().to_vec()))
}

fn key_file(path: &Path) -> Result<Secret> {
    made(format!("cannot use the key file {}", path.display()), Secret::key_file(open(path)?.to_vec())).map_err(
        |error| error.hint(format!("make one: head -c {KEY_FILE_BYTES_MIN} /dev/urandom > FILE; chmod 600 FILE")),
    )
}

fn passphrase_file(path: &Path) -> Result<Secret> {
    let text = match path.as_os_str() == STANDARD_INPUT {
        true => standard_input()?,
        false => without_line_break(&open(path)?),
    };
    made(format!("cannot use the passphrase in {}", path.display()), Secret::passphrase(text.to_vec()))
}

/// A file that may be either: random bytes, or the text of a passphrase.
fn either(path: &Path) -> Result<Vec<Secret>> {
    let bytes = open(path)?;
    let what = || format!("cannot use {} as a key", path.display());
    let mut all = Vec::with_capacity(2);
    if bytes.len() >= KEY_FILE_BYTES_MIN {
        all.push(made(what(), Secret::key_file(bytes.to_vec()))?);
    }
    let text = without_line_break(&bytes);
    if !text.is_empty() || all.is_empty() {
        all.push(made(what(), Secret::passphrase(text.to_vec()))?);
    }
    Ok(all)
}

/// A secret that this process has from now on, or what is wrong with it.
fn made(what: impl Into<String>, secret: onode_object::Result<Secret>) -> Result<Secret> {
    leave_no_core();
    secret.map_err(|error| Error::new(Class::Key, what, error.detail))
}

/// A key of the kernel can be random bytes or a passphrase: both are tried.
fn from_keyring(name: &str, attempt: u32) -> Result<Option<Secret>> {
    let what = format!("cannot use the key `{name}` of the kernel");
    let search = |ring| KeyRing::from_special_id(ring, false)?.search(name)?.read_to_vec();
    let found = search(KeyRingIdentifier::Session).or_else(|_| search(KeyRingIdentifier::User));
    let bytes = Zeroizing::new(found.map_err(|error: KeyError| {
        Error::new(Class::Key, what.clone(), error.to_string())
            .hint(format!("put it there: keyctl padd user {name} @u < FILE"))
    })?);
    let secret = match (attempt, bytes.len() >= KEY_FILE_BYTES_MIN) {
        (0, true) => Secret::key_file(bytes.to_vec()),
        (0, false) | (1, true) => Secret::passphrase(bytes.to_vec()),
        _ => return Ok(None),
    };
    made(what, secret).map(Some)
}

fn open(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let hint = "name a file with a key that this user can read";
    let file = File::open(path).map_err(|error| Error::host_file("open", path, &error).hint(hint))?;
    read(path, file)
}

fn read(path: &Path, from: impl Read) -> Result<Zeroizing<Vec<u8>>> {
    // With room for all of it no part of it is left behind where it was first.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX as usize + 1));
    let count = from.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    if count.map_err(|error| Error::host_file("read", path, &error))? as u64 > BYTES_MAX {
        let what = format!("cannot use {} as a key", path.display());
        return Err(Error::new(Class::Key, what, format!("it has more than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn without_line_break(text: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    Zeroizing::new(text.strip_suffix(b"\r").unwrap_or(text).to_vec())
}

fn leave_no_core() {
    // It fails for nobody; if it did, the key would still be as safe as the memory of the process.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_counts_and_others_are_none() {
        let mut keys = KeyArguments::default();
        assert_eq!(keys.apply("key-file", "/a"), Ok(true));
        assert_eq!(keys.apply("keyring", "disk"), Ok(true));
        assert_eq!(keys.apply("compress", "fast"), Ok(false));
        assert!(keys.apply("expect-anchor", "7").is_err());
        assert_eq!(keys, KeyArguments { keyring: Some("disk".into()), ..KeyArguments::default() });
        assert_eq!(keys.as_flags(), Ok(vec!["--keyring".into(), "disk".into()]));
    }

    #[test]
    fn flags_come_before_options_and_both_unlock() {
        let mut options = KeyArguments::default();
        for (name, value) in [("keyring", "disk"), ("unlock", "/a"), ("unlock", "/b")] {
            assert_eq!(options.apply(name, value), Ok(true));
        }
        let flags = KeyArguments { unlock: vec!["/b".into(), "/c".into()], ..KeyArguments::default() };
        let both = options.clone().with_flags(&flags);
        assert_eq!(
            (both.keyring.as_deref(), &both.unlock),
            (Some("disk"), &vec!["/a".into(), "/b".into(), "/c".into()])
        );
        let flags = KeyArguments { key_file: Some("/key".into()), ..flags };
        let both = options.clone().with_flags(&flags);
        assert_eq!((both.key_file, both.keyring), (flags.key_file, None));
        assert_eq!(options.clone().with_flags(&KeyArguments::default()), options);
    }

    #[test]
    fn one_line_break_is_no_part_of_a_passphrase() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), (" a ", " a "), ("", "")] {
            assert_eq!(without_line_break(text.as_bytes()).as_slice(), expected.as_bytes());
        }
    }
}
