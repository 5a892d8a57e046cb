//! `onode key`: the key slots of an encrypted volume.

use crate::keys::{self, KeyArguments};
use crate::location;
use onode::keys::{KeyCost, KeySlot, NewKey, SlotKind, VolumeKeys};
use onode::{Class, CreateOptions, Error, MountOptions, Result, Spec, Volume, human_size, parse_size};
use onode_console::{Output, quote};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A volume is encrypted when it is made (`onode mkfs --encrypt`). Each of its key slots opens it: with
a passphrase, or with a key file. Slots can be added and removed any time; files are not written
anew for it. Nobody can open a volume without any of its keys, so keep two.

Examples:
  onode key list disk.img
  onode key add disk.img --label spare                  (asks for a passphrase of now and a new one)
  onode key add disk.img --new-key-file disk.key        (a key file for mounts at boot)
  onode --key-file disk.key key remove disk.img 0       (the key that is given must stay)
  onode key change disk.img                             (a new passphrase in the place of one)
  onode --key-file disk.key key test disk.img
  onode key anchor disk.img > noted                     (of a volume made with --authenticate)
  onode --expect-anchor \"$(cat noted)\" mount disk.img /mnt")]
pub struct Arguments {
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum KeyVerb {
    /// Show the key slots. No key is needed.
    List(Named),
    /// Add a key slot for another passphrase or key file.
    Add(Added),
    /// Put another passphrase or key file in the place of the one that is given.
    Change(Added),
    /// Remove key slots by their numbers. The key that is given must be of a slot that stays.
    Remove(Removed),
    /// Tell which key slot the given key opens.
    Test(Named),
    /// Print what to note of an authenticated volume, so that an older copy in its place is found
    /// out: `--expect-anchor` then refuses whatever is older. Nobody may have it mounted.
    Anchor(Named),
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The image or device spec.
    image: OsString,
}

#[derive(Debug, clap::Args)]
struct Removed {
    /// The image or device spec.
    image: OsString,
    /// Numbers of key slots, as `onode key list` shows them.
    #[arg(required = true, value_name = "SLOT")]
    slots: Vec<u32>,
}

#[derive(Debug, clap::Args)]
struct Added {
    /// The image or device spec.
    image: OsString,
    /// The new key: a file of random bytes, 32 or more. Without any of these a passphrase is asked
    /// for.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new_passphrase_file", "new_keyring"])]
    new_key_file: Option<PathBuf>,
    /// A file whose text is the new passphrase; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "new_keyring")]
    new_passphrase_file: Option<PathBuf>,
    /// The new key is one of the kernel with this name.
    #[arg(long, value_name = "NAME")]
    new_keyring: Option<String>,
    /// What people call the new slot, at most 64 bytes.
    #[arg(long, default_value = "")]
    label: String,
    #[command(flatten)]
    cost: CostArguments,
}

/// What it costs to try a passphrase.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CostArguments {
    /// Memory that it takes to try a passphrase (Argon2id). Default: 64M.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    kdf_memory: Option<u64>,
    /// How often that memory is gone over. Default: 3.
    #[arg(long, value_name = "COUNT")]
    kdf_passes: Option<u32>,
}

impl CostArguments {
    /// The cost that they say.
    ///
    /// # Errors
    /// `Usage` for more memory than can be said.
    pub fn cost(&self) -> Result<KeyCost> {
        let memory_kib = match self.kdf_memory {
            None => KeyCost::DEFAULT.memory_kib,
            Some(bytes) => u32::try_from(bytes / 1024)
                .map_err(|_| Error::new(Class::Usage, "cannot use --kdf-memory", "it is more than 4 TiB"))?,
        };
        let passes = self.kdf_passes.unwrap_or(KeyCost::DEFAULT.passes);
        Ok(KeyCost { memory_kib, passes, ..KeyCost::DEFAULT })
    }

    /// Whether nothing is said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kdf_memory.is_none() && self.kdf_passes.is_none()
    }
}

/// A key slot.
#[derive(Debug, Serialize)]
struct SlotReport {
    slot: u32,
    kind: &'static str,
    label: String,
    /// Of a passphrase.
    kdf: Option<Kdf>,
}

#[derive(Debug, Serialize)]
struct Kdf {
    name: &'static str,
    memory_bytes: u64,
    passes: u32,
    lanes: u32,
}

/// The key slots of a volume.
#[derive(Debug, Serialize)]
struct Report {
    spec: String,
    cipher: &'static str,
    authenticated: bool,
    opened_for_writing: u64,
    slots: Vec<SlotReport>,
    unreadable_slots: Vec<u32>,
}

impl From<&KeySlot> for SlotReport {
    fn from(slot: &KeySlot) -> Self {
        let cost = slot.cost();
        let kdf = (slot.kind() == SlotKind::Passphrase).then(|| Kdf {
            name: "argon2id",
            memory_bytes: u64::from(cost.memory_kib) << 10,
            passes: cost.passes,
            lanes: cost.lanes,
        });
        Self { slot: slot.id(), kind: slot.kind().name(), label: slot.label().to_owned(), kdf }
    }
}

impl Report {
    fn of(spec: &Spec, keys: &VolumeKeys) -> Self {
        Self {
            spec: spec.to_string(),
            cipher: "aes-256-gcm-siv",
            authenticated: keys.is_authenticated(),
            opened_for_writing: keys.mounts(),
            slots: keys.slots().iter().map(SlotReport::from).collect(),
            unreadable_slots: keys.unknown().to_vec(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "volume      {}", self.spec)?;
        writeln!(f, "cipher      {}{}", self.cipher, if self.authenticated { ", authenticated" } else { "" })?;
        writeln!(f, "opened      {} times for writing", self.opened_for_writing)?;
        for SlotReport { slot, kind, label, kdf } in &self.slots {
            let cost = kdf.as_ref().map_or_else(String::new, |kdf| {
                format!("  {} {}, {} passes, {} lanes", kdf.name, human_size(kdf.memory_bytes), kdf.passes, kdf.lanes)
            });
            let label = quote::message(label);
            writeln!(f, "slot {slot:<6} {kind:<10}{cost}  {label}")?;
        }
        for slot in &self.unreadable_slots {
            writeln!(f, "slot {slot:<6} unreadable: damaged, or of a newer version")?;
        }
        Ok(())
    }
}

/// A state of a volume that its owner may note.
#[derive(Debug, Serialize)]
struct AnchorReport {
    spec: String,
    anchor: String,
    /// How many changes there were.
    changes: u64,
}

impl fmt::Display for AnchorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.anchor)
    }
}

/// What was done to a slot.
#[derive(Debug, Serialize)]
struct Done {
    spec: String,
    /// The slot that was added, or that the key opens.
    slot: Option<u32>,
    removed: Vec<u32>,
    #[serde(skip)]
    text: String,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        KeyVerb::List(Named { image }) => {
            let spec = location::spec(image)?;
            let keys = VolumeKeys::open(&spec, true)?;
            output.report(&Report::of(&spec, &keys))?;
        }
        KeyVerb::Test(Named { image }) => {
            let spec = location::spec(image)?;
            let slot = VolumeKeys::open(&spec, true)?.test()?;
            let text = format!("the key opens slot {slot} of {spec}");
            output.report(&Done { spec: spec.to_string(), slot: Some(slot), removed: Vec::new(), text })?;
        }
        KeyVerb::Anchor(Named { image }) => {
            let spec = location::spec(image)?;
            let volume = Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() })?;
            let anchor = volume.anchor();
            volume.close()?;
            let anchor = anchor.ok_or_else(|| {
                Error::new(Class::Usage, format!("cannot note the state of {spec}"), "it is not authenticated")
                    .hint("a volume is authenticated when it is made: onode mkfs --encrypt --authenticate IMAGE")
            })?;
            let report = AnchorReport { spec: spec.to_string(), anchor: anchor.to_string(), changes: anchor.changes };
            output.report(&report)?;
        }
        KeyVerb::Add(added) => put(added, false, output)?,
        KeyVerb::Change(added) => put(added, true, output)?,
        KeyVerb::Remove(Removed { image, slots }) => {
            let spec = location::spec(image)?;
            let mut keys = VolumeKeys::open(&spec, false)?;
            keys.remove(slots)?;
            keys.close()?;
            let numbers: Vec<String> = slots.iter().map(u32::to_string).collect();
            let text = format!("removed slot {} of {spec}", numbers.join(", "));
            output.report(&Done { spec: spec.to_string(), slot: None, removed: slots.clone(), text })?;
        }
    }
    Ok(0)
}

fn put(added: &Added, is_change: bool, output: &Output) -> Result<()> {
    let spec = location::spec(&added.image)?;
    let mut keys = VolumeKeys::open(&spec, false)?;
    // Who cannot open it is told before a new passphrase has been thought of.
    keys.test()?;
    let new = KeyArguments {
        key_file: added.new_key_file.clone(),
        passphrase_file: added.new_passphrase_file.clone(),
        keyring: added.new_keyring.clone(),
        expect_anchor: None,
    };
    let secret = new.new_secret()?;
    let authenticates = keys.is_authenticated();
    let key = NewKey { secret: &secret, label: &added.label, cost: added.cost.cost()?, authenticates };
    let (slot, removed) = if is_change {
        let (slot, old) = keys.change(&key)?;
        (slot, vec![old])
    } else {
        (keys.add(&key)?, Vec::new())
    };
    keys.close()?;
    let instead = removed.first().map_or_else(String::new, |old| format!(" in the place of slot {old}"));
    let text = format!("added slot {slot}{instead}: a {} opens {spec} now", secret.kind().name());
    output.report(&Done { spec: spec.to_string(), slot: Some(slot), removed, text })
}

/// The key of a volume that is to be made, if it is to be encrypted.
#[derive(Debug)]
pub struct FirstKey<'a> {
    /// Whether it is.
    pub encrypts: bool,
    /// Where the key is.
    pub arguments: &'a KeyArguments,
    /// What people call it.
    pub label: &'a str,
    /// What it costs to try it.
    pub cost: &'a CostArguments,
    /// Whether the volume is authenticated, too.
    pub authenticates: bool,
}

impl FirstKey<'_> {
    /// Makes a volume. If it is encrypted this process remembers its key.
    ///
    /// # Errors
    /// Those of the key and of the volume; `Usage` for a key of a volume that is not encrypted.
    pub fn create(&self, spec: &Spec, options: &CreateOptions) -> Result<()> {
        self.hand(spec, &|key| match key {
            None => Volume::create(spec, options),
            Some(key) => Volume::create_encrypted(spec, options, key),
        })
    }

    /// Hands the key to what makes a volume; nothing if it is not to be encrypted.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn hand(&self, spec: &Spec, make: &dyn Fn(Option<&NewKey<'_>>) -> Result<()>) -> Result<()> {
        if !self.encrypts {
            if !self.arguments.is_empty() || !self.label.is_empty() || !self.cost.is_empty() {
                let what = format!("cannot make {spec}");
                return Err(Error::new(Class::Usage, what, "a key was given, and --encrypt was not")
                    .hint("add --encrypt, or leave out the options of keys"));
            }
            return make(None);
        }
        let secret = self.arguments.first_secret()?;
        let cost = self.cost.cost()?;
        let key = NewKey { secret: &secret, label: self.label, cost, authenticates: self.authenticates };
        make(Some(&key))?;
        keys::remember(secret);
        Ok(())
    }
}
