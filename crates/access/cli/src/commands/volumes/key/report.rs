//! What `onode key` shows.

use onode::keys::{Anchor, DirectoryKey, KeySlot, SlotKind, VolumeKeys};
use onode::{Result, Spec, human_size};
use onode_console::quote;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A key slot.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlotReport {
    pub slot: u32,
    kind: String,
    label: String,
    /// Of a passphrase.
    kdf: Option<Kdf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Kdf {
    name: String,
    memory_bytes: u64,
    passes: u32,
    lanes: u32,
}

/// The key slots of a volume.
#[derive(Debug, Serialize)]
pub struct Report {
    spec: String,
    cipher: &'static str,
    authenticated: bool,
    /// The key of the volume is no secret: only directories have keys.
    open: bool,
    opened_for_writing: u64,
    slots: Vec<SlotReport>,
    unreadable_slots: Vec<u32>,
    /// Keys of its directories.
    directory_keys: Vec<DirectoryKeyReport>,
}

/// A key of directories.
#[derive(Debug, Serialize, Deserialize)]
pub struct DirectoryKeyReport {
    key: u32,
    /// Of a mounted volume: whether what it keeps can be used now.
    unlocked: Option<bool>,
    slots: Vec<SlotReport>,
}

impl From<&DirectoryKey> for DirectoryKeyReport {
    fn from(key: &DirectoryKey) -> Self {
        let slots = key.slots.iter().map(SlotReport::from).collect();
        Self { key: key.number, unlocked: Some(key.is_unlocked), slots }
    }
}

impl DirectoryKeyReport {
    /// Those that some slots open.
    fn all_of(slots: &[KeySlot]) -> Vec<Self> {
        let by_key = slots.chunk_by(|one, other| one.directory_key() == other.directory_key());
        let of_key = |slots: &[KeySlot]| Self {
            key: slots.first().map_or(0, KeySlot::directory_key),
            unlocked: None,
            slots: slots.iter().map(SlotReport::from).collect(),
        };
        by_key.map(of_key).collect()
    }
}

impl fmt::Display for DirectoryKeyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.unlocked {
            None => "of directories",
            Some(true) => "of directories, unlocked",
            Some(false) => "of directories, locked",
        };
        writeln!(f, "key {:<7} {state}", self.key)?;
        self.slots.iter().try_for_each(|slot| write!(f, "  {slot}"))
    }
}

/// The keys of directories of a mounted volume.
#[derive(Debug, Serialize)]
pub struct MountedReport {
    /// The directory that was named.
    pub directory: String,
    /// The key that it needs.
    pub key: Option<u32>,
    /// Those of the volume.
    pub directory_keys: Vec<DirectoryKeyReport>,
}

impl fmt::Display for MountedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = quote::message(&self.directory);
        match self.key {
            Some(key) => writeln!(f, "{directory} needs key {key}")?,
            None => writeln!(f, "{directory} needs no key but that of the volume")?,
        }
        self.directory_keys.iter().try_for_each(|key| key.fmt(f))
    }
}

impl From<&KeySlot> for SlotReport {
    fn from(slot: &KeySlot) -> Self {
        let cost = slot.cost();
        let kdf = (slot.kind() == SlotKind::Passphrase).then(|| Kdf {
            name: "argon2id".to_owned(),
            memory_bytes: u64::from(cost.memory_kib) << 10,
            passes: cost.passes,
            lanes: cost.lanes,
        });
        Self { slot: slot.id(), kind: slot.kind().name().to_owned(), label: slot.label().to_owned(), kdf }
    }
}

impl Report {
    /// Those of a volume that nobody has mounted.
    ///
    /// # Errors
    /// Those of the device.
    pub fn of(spec: &Spec, keys: &VolumeKeys) -> Result<Self> {
        Ok(Self {
            spec: spec.to_string(),
            cipher: "aes-256-gcm-siv",
            authenticated: keys.is_authenticated(),
            open: keys.is_open(),
            opened_for_writing: keys.mounts(),
            slots: keys.slots().iter().map(SlotReport::from).collect(),
            unreadable_slots: keys.unknown().to_vec(),
            directory_keys: DirectoryKeyReport::all_of(&keys.directory_slots()?),
        })
    }
}

impl fmt::Display for SlotReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot, kind, label, kdf } = self;
        let cost = kdf.as_ref().map_or_else(String::new, |kdf| {
            format!("  {} {}, {} passes, {} lanes", kdf.name, human_size(kdf.memory_bytes), kdf.passes, kdf.lanes)
        });
        writeln!(f, "slot {slot:<6} {kind:<10}{cost}  {}", quote::message(label))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "volume      {}", self.spec)?;
        let more = match (self.authenticated, self.open) {
            (true, _) => ", authenticated",
            (false, true) => ", in directories with keys",
            (false, false) => "",
        };
        writeln!(f, "cipher      {}{more}", self.cipher)?;
        writeln!(f, "opened      {} times for writing", self.opened_for_writing)?;
        self.slots.iter().try_for_each(|slot| slot.fmt(f))?;
        for slot in &self.unreadable_slots {
            writeln!(f, "slot {slot:<6} unreadable: damaged, or of a newer version")?;
        }
        self.directory_keys.iter().try_for_each(|key| key.fmt(f))
    }
}

/// A state of a volume that its owner may note.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnchorReport {
    spec: String,
    anchor: String,
    /// How many changes there were.
    changes: u64,
}

impl AnchorReport {
    /// That of a volume.
    pub fn of(spec: &Spec, anchor: &Anchor) -> Self {
        Self { spec: spec.to_string(), anchor: anchor.to_string(), changes: anchor.changes }
    }
}

impl fmt::Display for AnchorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.anchor)
    }
}

/// What was done to a slot.
#[derive(Debug, Serialize)]
pub struct Done {
    pub spec: String,
    /// The slot that was added, or that the key opens.
    pub slot: Option<u32>,
    pub removed: Vec<u32>,
    /// Keys of directories that were made, unlocked or locked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<u32>,
    #[serde(skip)]
    pub text: String,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)
    }
}
