//! A key slot: the master key of a volume, wrapped by something that a person has or knows.
//!
//! A passphrase goes through Argon2id (RFC 9106), which costs a thief memory and time for every
//! guess. A key file has as many random bytes as a key, so nobody guesses it and it is only hashed.

use crate::encrypted::cipher::{Cipher, Context, KEY_BYTES, OVERHEAD_BYTES, What};
use crate::encrypted::keys::{Key, MasterKey, derive};
use argon2::{Algorithm, Argon2, Params, Version};
use onode_object::{Error, ErrorKind, ObjectId, Result};
use std::fmt;
use zeroize::{Zeroize as _, Zeroizing};

/// The format of a slot that this version writes.
const VERSION: u8 = 1;
/// The same of the key of a directory, whose number follows.
const DIRECTORY_VERSION: u8 = 2;
const SALT_BYTES: usize = 16;
/// The most bytes of a label.
pub const LABEL_BYTES_MAX: usize = 64;
/// The fewest bytes of a key file.
pub const KEY_FILE_BYTES_MIN: usize = 32;
/// The most memory, in KiB, and passes that a slot may ask for, and the most of both together: what
/// a damaged or hostile volume says must not take all memory of the machine, or an hour.
const COST_MAX: Cost = Cost { memory_kib: 1 << 20, passes: 1000, lanes: 64 };
const KIB_PASSES_MAX: u64 = 64 << 20;
/// Each slot has a key of its own, which seals once.
const ONLY_NONCE: [u8; 12] = [0; 12];

/// What opens a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Words that a person remembers.
    Passphrase,
    /// Random bytes of a file or of a keyring.
    KeyFile,
    /// Nothing: whoever reads the volume can open it.
    Open,
}

impl SlotKind {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passphrase => "passphrase",
            Self::KeyFile => "key-file",
            Self::Open => "open",
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Passphrase => 1,
            Self::KeyFile => 2,
            Self::Open => 3,
        }
    }
}

/// What somebody has or knows. It is wiped from memory when it is dropped, and nothing prints it.
#[derive(Clone)]
pub struct Secret {
    kind: SlotKind,
    bytes: Zeroizing<Vec<u8>>,
}

impl Secret {
    /// A passphrase.
    ///
    /// # Errors
    /// `Invalid` if it is empty.
    pub fn passphrase(bytes: Vec<u8>) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "an empty passphrase keeps nothing secret"));
        }
        Ok(Self { kind: SlotKind::Passphrase, bytes: Zeroizing::new(bytes) })
    }

    /// What a key file holds.
    ///
    /// # Errors
    /// `Invalid` if it has fewer than [`KEY_FILE_BYTES_MIN`] bytes.
    pub fn key_file(mut bytes: Vec<u8>) -> Result<Self> {
        if bytes.len() < KEY_FILE_BYTES_MIN {
            let why = format!("a key file has {KEY_FILE_BYTES_MIN} random bytes or more, and this has {}", bytes.len());
            bytes.zeroize();
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        Ok(Self { kind: SlotKind::KeyFile, bytes: Zeroizing::new(bytes) })
    }

    /// What everybody has: the key of a volume of which only directories keep something.
    #[must_use]
    pub fn open() -> Self {
        Self { kind: SlotKind::Open, bytes: Zeroizing::new(Vec::new()) }
    }

    /// Its bytes, for who hands it on to the server of a mount.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes
    }

    /// What kind of slot it opens.
    #[must_use]
    pub const fn kind(&self) -> SlotKind {
        self.kind
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.kind.name())
    }
}

/// What it costs to try a passphrase: memory in KiB, passes over it, and parts of it that can be
/// filled at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Parts of the memory.
    pub lanes: u32,
}

impl Cost {
    /// The second choice of RFC 9106, section 4: 64 MiB, three passes, four lanes.
    pub const DEFAULT: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 4 };
    /// The least that Argon2id admits. For tests.
    pub const LEAST: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };

    fn check(self) -> Result<Params> {
        let is_too_much = self.memory_kib > COST_MAX.memory_kib
            || self.passes > COST_MAX.passes
            || self.lanes > COST_MAX.lanes
            || u64::from(self.memory_kib) * u64::from(self.passes) > KIB_PASSES_MAX;
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(KEY_BYTES)).ok();
        params.filter(|_| !is_too_much).ok_or_else(|| {
            let Self { memory_kib, passes, lanes } = self;
            let what = format!("Argon2id with {memory_kib} KiB, {passes} passes and {lanes} lanes");
            Error::new(ErrorKind::Invalid, format!("{what} is not possible, or more than this version does"))
        })
    }
}

/// How a slot is to be.
#[derive(Clone, Copy, Debug)]
pub struct SlotSettings<'a> {
    /// Its number in the volume.
    pub id: u32,
    /// What people call it, at most [`LABEL_BYTES_MAX`] bytes.
    pub label: &'a str,
    /// What it costs to try a passphrase.
    pub cost: Cost,
    /// Random bytes.
    pub salt: [u8; SALT_BYTES],
}

/// A slot as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySlot {
    id: u32,
    /// The number of the key of a directory; 0 for that of the volume.
    directory_key: u32,
    kind: SlotKind,
    cost: Cost,
    label: String,
    salt: [u8; SALT_BYTES],
    wrapped: Vec<u8>,
}

impl KeySlot {
    /// Wraps a master key.
    ///
    /// # Errors
    /// `Invalid` for a label that is too long, and for a cost that is not possible.
    pub fn new(master: &MasterKey, secret: &Secret, settings: SlotSettings<'_>) -> Result<Self> {
        Self::of_directory(0, master, secret, settings)
    }

    /// Wraps the key of a directory, which has a number.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn of_directory(
        number: u32,
        key: &MasterKey,
        secret: &Secret,
        settings: SlotSettings<'_>,
    ) -> Result<Self> {
        let SlotSettings { id, label, cost, salt } = settings;
        if label.len() > LABEL_BYTES_MAX || label.chars().any(char::is_control) {
            let why = format!("a label has at most {LABEL_BYTES_MAX} bytes, and no control character");
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let (kind, label, wrapped) = (secret.kind, label.to_owned(), Vec::new());
        let mut slot = Self { id, directory_key: number, kind, cost, label, salt, wrapped };
        let cipher = Cipher::new(&*slot.key(secret)?);
        slot.wrapped = cipher.seal_value(&ONLY_NONCE, &slot.context(), key.bytes());
        Ok(slot)
    }

    /// Its number in the volume.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The number of the key of a directory that it opens; 0 for that of the volume.
    #[must_use]
    pub const fn directory_key(&self) -> u32 {
        self.directory_key
    }

    /// What opens it.
    #[must_use]
    pub const fn kind(&self) -> SlotKind {
        self.kind
    }

    /// What somebody called it.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it costs to try a passphrase.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// The master key; `None` if this is not the secret of this slot.
    ///
    /// # Errors
    /// `Invalid` for a cost that is not possible.
    pub fn open(&self, secret: &Secret) -> Result<Option<MasterKey>> {
        if secret.kind != self.kind {
            return Ok(None);
        }
        let opened = Cipher::new(&*self.key(secret)?).open_value(&self.context(), &self.wrapped).map(Zeroizing::new);
        Ok(opened.and_then(|bytes| bytes.as_slice().try_into().ok()).map(MasterKey::new))
    }

    fn key(&self, secret: &Secret) -> Result<Key> {
        let mut key = Key::new([0; KEY_BYTES]);
        match self.kind {
            SlotKind::Passphrase => {
                let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.cost.check()?);
                argon
                    .hash_password_into(&secret.bytes, &self.salt, &mut *key)
                    .map_err(|error| Error::new(ErrorKind::OutOfMemory, format!("Argon2id failed: {error}")))?;
            }
            SlotKind::Open => key = derive(&self.salt, b"onode 1 open"),
            SlotKind::KeyFile => key = derive(&*derive(&self.salt, &secret.bytes), b"onode 1 key file"),
        }
        Ok(key)
    }

    /// What the wrapped key is bound to, beside the salt, which its key comes from.
    fn context(&self) -> Context {
        Context::of_kind(What::Slot, ObjectId(u64::from(self.directory_key)), self.kind.byte(), u64::from(self.id))
    }

    /// As it is stored.
    pub(super) fn value(&self) -> Vec<u8> {
        let version = if self.directory_key == 0 { VERSION } else { DIRECTORY_VERSION };
        let mut value = vec![version, self.kind.byte()];
        for number in [self.cost.memory_kib, self.cost.passes, self.cost.lanes] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        value.extend_from_slice(&self.salt);
        value.extend_from_slice(&self.wrapped);
        if self.directory_key != 0 {
            value.extend_from_slice(&self.directory_key.to_le_bytes());
        }
        value.extend_from_slice(self.label.as_bytes());
        value
    }

    /// What is stored. A slot of a form that this version does not know is told as such.
    pub(super) fn parse(id: u32, value: &[u8]) -> std::result::Result<Self, &'static str> {
        const WRAPPED_BYTES: usize = KEY_BYTES + OVERHEAD_BYTES;
        let (&[version, kind], rest) = value.split_first_chunk().ok_or("it is too short")?;
        if ![VERSION, DIRECTORY_VERSION].contains(&version) {
            return Err("a newer version made it");
        }
        let kind = match kind {
            1 => SlotKind::Passphrase,
            2 => SlotKind::KeyFile,
            3 => SlotKind::Open,
            _ => return Err("a newer version made it"),
        };
        let (cost, rest) = rest.split_first_chunk::<12>().ok_or("it is too short")?;
        let number = |at: usize| u32::from_le_bytes([cost[at], cost[at + 1], cost[at + 2], cost[at + 3]]);
        let cost = Cost { memory_kib: number(0), passes: number(4), lanes: number(8) };
        let (salt, rest) = rest.split_first_chunk().ok_or("it is too short")?;
        let (wrapped, rest) = rest.split_at_checked(WRAPPED_BYTES).ok_or("it is too short")?;
        let (directory_key, label) = match version {
            VERSION => (0, rest),
            _ => {
                let (number, label) = rest.split_first_chunk().ok_or("it is too short")?;
                (u32::from_le_bytes(*number), label)
            }
        };
        let label = std::str::from_utf8(label).map_err(|_| "its label is no text")?;
        if label.len() > LABEL_BYTES_MAX {
            return Err("its label is too long");
        }
        let (label, wrapped) = (label.to_owned(), wrapped.to_vec());
        Ok(Self { id, directory_key, kind, cost, label, salt: *salt, wrapped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase(words: &str) -> Secret {
        Secret::passphrase(words.as_bytes().to_vec()).expect("not empty")
    }

    fn slot(secret: &Secret) -> KeySlot {
        let settings = SlotSettings { id: 3, label: "desk", cost: Cost::LEAST, salt: [4; 16] };
        KeySlot::new(&MasterKey::new([9; 32]), secret, settings).expect("a slot can be made")
    }

    #[test]
    fn only_its_secret_opens_a_slot() {
        let file = |byte| Secret::key_file(vec![byte; 32]).expect("long enough");
        for (right, wrong) in [(passphrase("horse"), passphrase("horsf")), (file(1), file(2))] {
            let slot = slot(&right);
            let opened = slot.open(&right).expect("possible").expect("the right one");
            assert_eq!(opened.bytes(), &[9; 32]);
            assert!(slot.open(&wrong).expect("possible").is_none());
        }
        // The same bytes as another kind of secret are another secret.
        let bytes = vec![b'x'; 40];
        let slot = slot(&Secret::passphrase(bytes.clone()).expect("not empty"));
        assert!(slot.open(&Secret::key_file(bytes).expect("long enough")).expect("possible").is_none());
    }

    #[test]
    fn a_slot_is_read_as_it_was_stored() {
        let slot = slot(&passphrase("horse"));
        assert_eq!(KeySlot::parse(3, &slot.value()), Ok(slot.clone()));
        assert!(slot.value().len() <= onode_object::Transaction::MAX_ATTRIBUTE_BYTES);
        for length in 0..slot.value().len() - slot.label.len() {
            assert!(KeySlot::parse(3, &slot.value()[..length]).is_err(), "{length} bytes");
        }
        // In another place it is not what it was.
        let moved = KeySlot::parse(4, &slot.value()).expect("of the right form");
        assert!(moved.open(&passphrase("horse")).expect("possible").is_none());
    }

    #[test]
    fn what_asks_for_too_much_is_refused() {
        let secret = passphrase("horse");
        for cost in [
            Cost { memory_kib: u32::MAX, ..Cost::LEAST },
            Cost { passes: u32::MAX, ..Cost::LEAST },
            Cost { memory_kib: 1 << 20, passes: 100, ..Cost::LEAST },
            Cost { passes: 0, ..Cost::LEAST },
            Cost { memory_kib: 0, ..Cost::LEAST },
            Cost { lanes: 1 << 20, ..Cost::LEAST },
        ] {
            let hostile = KeySlot { cost, ..slot(&secret) };
            assert_eq!(hostile.open(&secret).map_err(|error| error.kind).err(), Some(ErrorKind::Invalid), "{cost:?}");
        }
        let master = MasterKey::new([9; 32]);
        for label in ["x".repeat(65).as_str(), "a\nb"] {
            let settings = SlotSettings { id: 1, label, cost: Cost::LEAST, salt: [4; 16] };
            assert!(KeySlot::new(&master, &secret, settings).is_err());
        }
        assert!(Secret::passphrase(Vec::new()).is_err() && Secret::key_file(vec![1; 31]).is_err());
    }

    #[test]
    fn nothing_prints_a_secret() {
        assert_eq!(format!("{:?}", passphrase("horse")), "Secret(passphrase)");
    }
}
