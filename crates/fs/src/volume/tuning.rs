//! The settings of a volume that people change: its label, its unique number, and the options that
//! a mount takes where nobody says another.
//!
//! Label and number are part of the settings on the volume object. The mount options stand beside
//! them in an attribute of their own, which programs that do not know it leave alone. What they
//! mean is the business of who mounts; here they are words.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use crate::volume::label::{check_label, check_topmost};
use crate::volume::{VOLUME, VOLUME_KEY, VolumeInfo};
use onode_base::ErrorKind;
use onode_object::{AttributeKey, AttributeKind, Durability, SyncScope, Transaction};

/// The attribute of the topmost directory that tells the settings and changes them: a line
/// `NAME=VALUE` for each, where lines of other names are left alone.
pub const TUNING: &str = "onode.tuning";
/// The most bytes of mount options that a volume keeps.
pub const KEPT_OPTIONS_BYTES_MAX: usize = 512;

const OPTIONS_KEY: AttributeKey = AttributeKey::new(AttributeKind::VOLUME, 2);
/// The form in which the options are kept.
const FORM: u8 = 1;

/// The settings that can be changed, as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// The name for people; empty if there is none.
    pub label: String,
    /// The unique number.
    pub uuid: [u8; 16],
    /// Options of mounts, separated by commas; empty if there are none.
    pub mount_options: String,
}

/// What is to change of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTuning {
    /// The name for people; empty to have none.
    pub label: Option<String>,
    /// The unique number.
    pub uuid: Option<[u8; 16]>,
    /// Options of mounts; empty to have none.
    pub mount_options: Option<String>,
}

impl Tuning {
    /// As the attribute has it.
    fn to_text(&self) -> String {
        let uuid: String = self.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("label={}\nuuid={uuid}\nmount-options={}\n", self.label, self.mount_options)
    }

    /// What such a text says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let NewTuning { label, uuid, mount_options } = NewTuning::parse(text)?;
        Some(Self { label: label?, uuid: uuid?, mount_options: mount_options? })
    }
}

impl NewTuning {
    /// As the attribute takes it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let uuid = self.uuid.map(|uuid| uuid.iter().map(|byte| format!("{byte:02x}")).collect());
        let lines = [("label", &self.label), ("uuid", &uuid), ("mount-options", &self.mount_options)];
        lines.iter().filter_map(|(name, value)| Some(format!("{name}={}\n", value.as_ref()?))).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut new = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match name {
                "label" => new.label = Some(value.to_owned()),
                "uuid" => new.uuid = Some(number(value)?),
                "mount-options" => new.mount_options = Some(value.to_owned()),
                // Of a newer program.
                _ => {}
            }
        }
        Some(new)
    }
}

/// A number of 32 hexadecimal digits.
fn number(text: &str) -> Option<[u8; 16]> {
    let is_right = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_right).map(u128::to_be_bytes)
}

fn check_options(options: &str) -> Result<()> {
    let why = if options.len() > KEPT_OPTIONS_BYTES_MAX {
        format!("a volume keeps at most {KEPT_OPTIONS_BYTES_MAX} bytes of mount options")
    } else if options.chars().any(char::is_control) {
        "mount options have no line breaks or other control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Invalid, why))
}

impl FileSystem {
    /// The settings of the volume that can be changed, as they are now. Options that are kept in a
    /// form of a newer program are none.
    ///
    /// # Errors
    /// As [`VolumeInfo::load`].
    pub fn tuning(&self) -> Result<Tuning> {
        let VolumeInfo { label, uuid, .. } = VolumeInfo::load(self.device.as_ref())?;
        let kept = self.device.attribute(VOLUME, OPTIONS_KEY)?.unwrap_or_default();
        let options = kept.strip_prefix(&[FORM]).and_then(|text| str::from_utf8(text).ok());
        let mount_options = options.filter(|options| check_options(options).is_ok()).unwrap_or_default().to_owned();
        Ok(Tuning { label, uuid, mount_options })
    }

    /// Changes settings of the volume, durably: all that are said, or none.
    ///
    /// # Errors
    /// `Invalid` for what cannot be, `ReadOnly`, `NoSpace`; the device's errors.
    pub fn tune(&self, new: &NewTuning) -> Result<()> {
        new.label.as_deref().map_or(Ok(()), check_label)?;
        new.mount_options.as_deref().map_or(Ok(()), check_options)?;
        if self.is_read_only() {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume is read-only"));
        }
        {
            // Nobody else changes the settings of an open volume; two who do take turns.
            let _state = self.lock();
            let mut info = VolumeInfo::load(self.device.as_ref())?;
            info.label = new.label.clone().unwrap_or(info.label);
            info.uuid = new.uuid.unwrap_or(info.uuid);
            let mut transaction = Transaction::new();
            transaction.set_attribute(VOLUME, VOLUME_KEY, info.encode());
            match new.mount_options.as_deref() {
                None => {}
                Some("") => _ = transaction.remove_attribute(VOLUME, OPTIONS_KEY),
                Some(options) => {
                    _ = transaction.set_attribute(VOLUME, OPTIONS_KEY, [&[FORM], options.as_bytes()].concat());
                }
            }
            self.heard(self.device.commit(transaction, Durability::Buffered))?;
        }
        // Others need not wait for the medium.
        self.heard(self.device.sync(SyncScope::Object(VOLUME)))
    }

    /// Gives the volume another label, durably; an empty one takes it away.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub fn set_label(&self, label: &str) -> Result<()> {
        self.tune(&NewTuning { label: Some(label.to_owned()), ..NewTuning::default() })
    }

    pub(crate) fn tuning_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        Ok(self.tuning()?.to_text().into_bytes())
    }

    pub(crate) fn set_tuning_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        self.check_owner(caller, number)?;
        let new = str::from_utf8(value).ok().and_then(NewTuning::parse);
        self.tune(&new.ok_or_else(|| Error::new(ErrorKind::Invalid, "it does not say what is to change"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormatOptions, Options, XattrFlags, format};
    use onode_base::Timestamp;
    use onode_base::clock::ManualClock;
    use onode_object::ObjectDevice;
    use onode_object::ram::RamDevice;
    use std::sync::Arc;

    fn volume() -> Arc<RamDevice> {
        let device = Arc::new(RamDevice::new(1 << 20));
        let options = FormatOptions { label: "old".into(), uuid: [3; 16], ..FormatOptions::default() };
        format(device.as_ref(), &options, Timestamp::default()).expect("room");
        device
    }

    fn files(device: &Arc<RamDevice>, read_only: bool) -> FileSystem {
        let options = Options { read_only, ..Options::default() };
        FileSystem::mount(device.clone(), Arc::new(ManualClock::at(1)), options).expect("a volume")
    }

    #[test]
    fn settings_are_changed_together_and_are_there_after_a_mount() {
        let device = volume();
        let first = files(&device, false);
        let before = Tuning { label: "old".into(), uuid: [3; 16], mount_options: String::new() };
        assert_eq!(first.tuning().unwrap(), before);
        let new = NewTuning {
            label: Some("new = 1".into()),
            uuid: Some([0xab; 16]),
            mount_options: Some("compress=fast,noatime".into()),
        };
        first.tune(&new).unwrap();
        drop(first);
        let again = files(&device, false);
        let after = Tuning { label: "new = 1".into(), uuid: [0xab; 16], mount_options: "compress=fast,noatime".into() };
        assert_eq!(again.tuning().unwrap(), after);
        // By the attribute, too, and what is not said stays.
        let root = InodeNumber::ROOT;
        let clear = NewTuning { mount_options: Some(String::new()), ..NewTuning::default() };
        let text = format!("{}of-tomorrow=1\n", clear.to_text());
        again.set_xattr(&Caller::root(), root, TUNING.as_bytes(), text.as_bytes(), XattrFlags::Any).unwrap();
        let told = String::from_utf8(again.get_xattr(root, TUNING.as_bytes()).unwrap()).unwrap();
        assert_eq!(Tuning::parse(&told), Some(Tuning { mount_options: String::new(), ..after }));
        assert_eq!(device.attribute(VOLUME, OPTIONS_KEY).unwrap(), None, "nothing is left of what was cleared");
    }

    #[test]
    fn one_wrong_setting_changes_none() {
        let device = volume();
        let all = files(&device, false);
        let before = all.tuning().unwrap();
        let good = NewTuning { label: Some("new".into()), uuid: Some([9; 16]), ..NewTuning::default() };
        for options in ["a\nb", &"x".repeat(513)] {
            let wrong = NewTuning { mount_options: Some((*options).into()), ..good.clone() };
            assert_eq!(all.tune(&wrong).unwrap_err().kind, ErrorKind::Invalid);
        }
        let wrong = NewTuning { label: Some("a/b".into()), ..good.clone() };
        assert_eq!(all.tune(&wrong).unwrap_err().kind, ErrorKind::Invalid);
        let set = |caller: &Caller, value: &[u8]| {
            let set = all.set_xattr(caller, InodeNumber::ROOT, TUNING.as_bytes(), value, XattrFlags::Any);
            set.map_err(|error| error.kind)
        };
        let stranger = Caller { uid: 7, ..Caller::root() };
        assert_eq!(set(&stranger, good.to_text().as_bytes()), Err(ErrorKind::NotPermitted));
        for value in [&b"uuid=12"[..], b"uuid=+fffffffffffffffffffffffffffffff", &[0xff]] {
            assert_eq!(set(&Caller::root(), value), Err(ErrorKind::Invalid));
        }
        assert_eq!(all.tuning().unwrap(), before);
        drop(all);
        assert_eq!(files(&device, true).tune(&good).unwrap_err().kind, ErrorKind::ReadOnly);
    }

    #[test]
    fn options_of_another_form_are_none() {
        let device = volume();
        let mut transaction = Transaction::new();
        transaction.set_attribute(VOLUME, OPTIONS_KEY, vec![2, b'x']);
        device.commit(transaction, Durability::Durable).unwrap();
        assert_eq!(files(&device, false).tuning().unwrap().mount_options, "");
    }
}
