//! The volume object: what is true of the whole volume, and the list of orphans.

pub mod advice;
pub mod check;
pub mod explain;
pub mod hints;
pub mod label;
pub mod orphan;
pub mod placement;
pub mod rewrite;
pub mod scrub;
pub mod share;
pub mod size;
pub mod snapshot;
pub mod staging;
pub mod tuning;

use crate::error::{Error, Result};
use crate::inodes::Inodes;
use crate::inodes::inode::Inode;
use crate::options::FormatOptions;
use crate::types::{FileType, InodeNumber};
use onode_base::{ErrorKind, Timestamp, varint};
use onode_object::{
    AttributeKey, AttributeKind, Durability, Hints, Mutation, ObjectDevice, ObjectId, ObjectKind, Transaction,
};

/// The object that holds it.
pub const VOLUME: ObjectId = ObjectId(2);
/// Where the settings are.
pub(crate) const VOLUME_KEY: AttributeKey = AttributeKey::new(AttributeKind::VOLUME, 0);

pub(crate) const MAGIC: &[u8; 8] = b"onodefs\n";
const LABEL_BYTES_MAX: usize = 255;

/// The format this code writes. Raised when older code could not even read the settings.
pub const FORMAT_VERSION: u32 = 1;

/// Incompatible feature: inodes are objects of their own ([`Inodes::Separate`]).
const SEPARATE_INODES: u64 = 1 << 0;
/// Incompatible feature: inodes may be in the dense form.
const DENSE_INODES: u64 = 1 << 1;
/// Incompatible feature: content may be compressed by a service below the file system.
const COMPRESSED: u64 = 1 << 2;
/// Incompatible feature: there may be snapshots, for which a service below the file system keeps
/// what changes.
const SNAPSHOTS: u64 = 1 << 3;
/// Incompatible feature: there may be limits, and inodes may say which tree they belong to.
const QUOTAS: u64 = 1 << 4;

/// Features a volume may have, in three sets by what code that does not know one must do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Refuse to mount.
    pub incompatible: u64,
    /// Mount read-only.
    pub read_only_compatible: u64,
    /// Nothing.
    pub compatible: u64,
}

/// The settings of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Version of the format.
    pub format_version: u32,
    /// Features in use.
    pub features: Features,
    /// Its unique number.
    pub uuid: [u8; 16],
    /// Secret of the name hash.
    pub(crate) hash_key: [u8; 16],
    /// When it was made.
    pub created: Timestamp,
    /// A name for people, as it was at the mount; [`FileSystem::label`](crate::FileSystem::label)
    /// tells it as it is.
    pub label: String,
}

impl VolumeInfo {
    /// Those of a new volume.
    pub(crate) fn new(options: &FormatOptions, now: Timestamp) -> Self {
        let separate = if options.inodes == Inodes::Separate { SEPARATE_INODES } else { 0 };
        Self {
            format_version: FORMAT_VERSION,
            features: Features { incompatible: DENSE_INODES | separate, ..Features::default() },
            uuid: options.uuid,
            hash_key: options.hash_key,
            created: now,
            label: options.label.clone(),
        }
    }

    /// Where the volume keeps its inodes.
    #[must_use]
    pub const fn inodes(&self) -> Inodes {
        if self.features.incompatible & SEPARATE_INODES == 0 { Inodes::Embedded } else { Inodes::Separate }
    }

    /// Whether content may be compressed by a service below the file system.
    #[must_use]
    pub const fn is_compressed(&self) -> bool {
        self.features.incompatible & COMPRESSED != 0
    }

    /// Features without which the volume cannot be read and that this code does not know.
    pub(crate) const fn unknown_features(&self) -> u64 {
        self.features.incompatible & !(SEPARATE_INODES | DENSE_INODES | COMPRESSED | SNAPSHOTS | QUOTAS)
    }

    /// The change by which the settings on `device` say from now on that content may be compressed,
    /// so that programs that would read the compressed bytes refuse the volume; `None` if they say
    /// so.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn admit_compressed(device: &dyn ObjectDevice) -> Result<Option<Mutation>> {
        let mut info = Self::load(device)?;
        if info.is_compressed() {
            return Ok(None);
        }
        info.features.incompatible |= COMPRESSED;
        Ok(Some(Mutation::SetAttribute { object: VOLUME, key: VOLUME_KEY, value: info.encode() }))
    }

    /// From now on there may be snapshots.
    pub const fn admit_snapshots(&mut self) {
        self.features.incompatible |= SNAPSHOTS;
    }

    /// Whether there may be limits.
    #[must_use]
    pub const fn has_quotas(&self) -> bool {
        self.features.incompatible & QUOTAS != 0
    }

    /// From now on there may be limits.
    pub const fn admit_quotas(&mut self) {
        self.features.incompatible |= QUOTAS;
    }

    /// What becomes of a change that gives the volume of these settings the state of another one,
    /// or one of before: its number, its label and what services below it do stay its own.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be read, or that this code does not understand.
    pub fn keep_own(&self, mutation: Mutation) -> onode_object::Result<Option<Mutation>> {
        if mutation.object() != VOLUME {
            return Ok(Some(mutation));
        }
        Ok(match mutation {
            Mutation::SetAttribute { object, key: VOLUME_KEY, value } => {
                let refused = |why: String| onode_object::Error::of(ErrorKind::Invalid, VOLUME, why);
                let given = Self::decode(&value).ok_or_else(|| refused("its settings are damaged".into()))?;
                given.check_known().map_err(|error| refused(error.detail))?;
                let value = self.adopting(given).encode();
                Some(Mutation::SetAttribute { object, key: VOLUME_KEY, value })
            }
            // Settings are replaced and never missing; of scrubs each volume has its own.
            Mutation::Remove { .. } => None,
            Mutation::SetAttribute { key, .. } | Mutation::RemoveAttribute { key, .. }
                if key.kind == AttributeKind::VOLUME =>
            {
                None
            }
            mutation => Some(mutation),
        })
    }

    fn adopting(&self, given: Self) -> Self {
        let services = COMPRESSED | SNAPSHOTS;
        let incompatible = (given.features.incompatible & !services) | (self.features.incompatible & services);
        Self {
            features: Features { incompatible, ..given.features },
            uuid: self.uuid,
            created: self.created,
            label: self.label.clone(),
            ..given
        }
    }

    /// Refuses settings of a version, or with features, that this code does not know.
    fn check_known(&self) -> Result<()> {
        if self.format_version != FORMAT_VERSION {
            let why = format!("volume has format version {}, this program knows {FORMAT_VERSION}", self.format_version);
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        if self.unknown_features() != 0 {
            let why = format!("volume needs features unknown to this program: {:#x}", self.unknown_features());
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        Ok(())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        varint::put(&mut out, u64::from(self.format_version));
        varint::put(&mut out, self.features.incompatible);
        varint::put(&mut out, self.features.read_only_compatible);
        varint::put(&mut out, self.features.compatible);
        out.extend_from_slice(&self.uuid);
        out.extend_from_slice(&self.hash_key);
        varint::put(&mut out, self.created.seconds as u64);
        varint::put(&mut out, u64::from(self.created.nanoseconds));
        varint::put_bytes(&mut out, self.label.as_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = bytes.strip_prefix(MAGIC.as_slice())?;
        let input = &mut input;
        let format_version = u32::try_from(varint::take(input)?).ok()?;
        let features = Features {
            incompatible: varint::take(input)?,
            read_only_compatible: varint::take(input)?,
            compatible: varint::take(input)?,
        };
        let uuid = take_array(input)?;
        let hash_key = take_array(input)?;
        let seconds = varint::take(input)? as i64;
        let nanoseconds = u32::try_from(varint::take(input)?).ok().filter(|n| *n < 1_000_000_000)?;
        let label = String::from_utf8(varint::take_bytes(input)?.to_vec()).ok()?;
        let created = Timestamp { seconds, nanoseconds };
        input.is_empty().then_some(Self { format_version, features, uuid, hash_key, created, label })
    }

    /// Reads the settings of the volume on `device`.
    ///
    /// # Errors
    /// `Invalid` if there is no volume, or none that this code understands; the device's errors.
    pub fn load(device: &dyn ObjectDevice) -> Result<Self> {
        let bytes = match device.attribute(VOLUME, VOLUME_KEY) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let Some(bytes) = bytes else {
            let objects = device.space().objects;
            return Err(if objects == 0 {
                Error::new(ErrorKind::Invalid, "the device holds no file system; make one with mkfs")
            } else {
                let why = format!("the settings of the volume are lost, {objects} objects are there; run onode repair");
                Error::new(ErrorKind::Corrupt, why)
            });
        };
        let Some(info) = Self::decode(&bytes) else {
            return Err(Error::new(ErrorKind::Corrupt, "the settings of the volume are damaged; run onode repair"));
        };
        info.check_known()?;
        Ok(info)
    }
}

fn take_array(input: &mut &[u8]) -> Option<[u8; 16]> {
    let (array, rest) = input.split_first_chunk::<16>()?;
    *input = rest;
    Some(*array)
}

/// Makes an empty file system on a device that holds none.
///
/// # Errors
/// `Exists` if it holds one; `Invalid` for a label that is too long; the device's errors.
pub fn format(device: &dyn ObjectDevice, options: &FormatOptions, now: Timestamp) -> Result<()> {
    label::check_label(&options.label)?;
    let info = VolumeInfo::new(options, now);
    let mut root = Inode::new(FileType::Directory, 0o755, now);
    (root.uid, root.gid, root.parent, root.is_dense) = (options.uid, options.gid, InodeNumber::ROOT.0, true);
    let directory = Hints { kind: ObjectKind::Directory, ..Hints::default() };
    let mut transaction = Transaction::new();
    options.inodes.create(&mut transaction, InodeNumber::ROOT.object(), directory, &root);
    transaction.create(VOLUME, Hints { kind: ObjectKind::Volume, embed: true, ..Hints::default() }).set_attribute(
        VOLUME,
        VOLUME_KEY,
        info.encode(),
    );
    device.commit(transaction, Durability::Durable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileSystem, Options};
    use onode_base::clock::ManualClock;
    use onode_object::ram::RamDevice;
    use std::sync::Arc;

    fn mount(info: &VolumeInfo, read_only: bool) -> Result<FileSystem> {
        let device = Arc::new(RamDevice::new(1 << 20));
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).unwrap();
        let mut transaction = Transaction::new();
        transaction.set_attribute(VOLUME, VOLUME_KEY, info.encode());
        device.commit(transaction, Durability::Durable).unwrap();
        FileSystem::mount(device, Arc::new(ManualClock::at(0)), Options { read_only, ..Options::default() })
    }

    fn sample() -> VolumeInfo {
        VolumeInfo {
            format_version: FORMAT_VERSION,
            features: Features::default(),
            uuid: [1; 16],
            hash_key: [2; 16],
            created: Timestamp { seconds: -2, nanoseconds: 3 },
            label: "a label".into(),
        }
    }

    #[test]
    fn settings_come_back_and_cuts_are_refused() {
        let bytes = sample().encode();
        assert_eq!(VolumeInfo::decode(&bytes), Some(sample()));
        for length in 0..bytes.len() {
            assert_eq!(VolumeInfo::decode(&bytes[..length]), None);
        }
        assert_eq!(bytes[..12], *b"onodefs\n\x01\0\0\0");
    }

    #[test]
    fn unknown_versions_and_features_are_refused_as_they_ask() {
        assert!(mount(&sample(), false).is_ok());
        let newer = VolumeInfo { format_version: 2, ..sample() };
        assert_eq!(mount(&newer, true).unwrap_err().kind, ErrorKind::Invalid);
        let with = |features| VolumeInfo { features, ..sample() };
        let incompatible = with(Features { incompatible: 32, ..Features::default() });
        assert_eq!(mount(&incompatible, true).unwrap_err().kind, ErrorKind::Invalid);
        let known = DENSE_INODES | COMPRESSED | SNAPSHOTS | QUOTAS;
        assert!(mount(&with(Features { incompatible: known, ..Features::default() }), false).is_ok());
        let read_only = with(Features { read_only_compatible: 1, ..Features::default() });
        assert_eq!(mount(&read_only, false).unwrap_err().kind, ErrorKind::ReadOnly);
        assert!(mount(&read_only, true).is_ok());
        assert!(mount(&with(Features { compatible: 1, ..Features::default() }), false).is_ok());
        let empty: Arc<dyn ObjectDevice> = Arc::new(RamDevice::new(1 << 20));
        let nothing = FileSystem::mount(empty, Arc::new(ManualClock::at(0)), Options::default());
        assert_eq!(nothing.unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn a_volume_of_before_keeps_the_older_form_of_inodes() {
        for is_dense in [false, true] {
            let device = Arc::new(RamDevice::new(1 << 20));
            format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).unwrap();
            if !is_dense {
                let root = Inodes::Embedded.load(device.as_ref(), ObjectId(1)).unwrap().sound().unwrap();
                let mut before = Transaction::new();
                Inodes::Embedded.store(&mut before, ObjectId(1), &Inode { is_dense, ..root });
                before.set_attribute(VOLUME, VOLUME_KEY, sample().encode());
                device.commit(before, Durability::Durable).unwrap();
            }
            let fs = FileSystem::mount(device.clone(), Arc::new(ManualClock::at(7)), Options::default()).unwrap();
            let caller = crate::Caller::root();
            let directory = fs.make_directory(&caller, InodeNumber::ROOT, b"d", 0o755).unwrap().inode;
            let file = fs.create(&caller, directory, b"f", 0o644).unwrap().inode;
            for number in [InodeNumber::ROOT, directory, file] {
                let inode = Inodes::Embedded.load(device.as_ref(), number.object()).unwrap().sound().unwrap();
                assert_eq!(inode.is_dense, is_dense);
            }
        }
    }
}
