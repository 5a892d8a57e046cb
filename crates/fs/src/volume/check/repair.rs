//! Repairing what a check found, each finding in a transaction of its own.
//!
//! A repair may uncover the next finding (a dropped name leaves a file without one), so checks and
//! repairs alternate until nothing more can be done. Nothing that holds bytes is removed: files
//! without a name go to `/lost+found`, named `#` and their number.

use super::{Finding, FindingKind, Report, check, load_settings, settings};
use crate::error::Result;
use crate::inodes::inode::Inode;
use crate::inodes::xattr::Xattr;
use crate::inodes::{Found, Inodes};
use crate::names::entry::Entry;
use crate::names::slots::{NameHash, PASSED, Slots};
use crate::quota::record::QuotaRecord;
use crate::types::FileType;
use crate::volume::VOLUME;
use onode_base::Timestamp;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction};

const LOST_AND_FOUND: &[u8] = b"lost+found";
const ROOT: ObjectId = ObjectId(1);
/// Each round uncovers at most what the one before hid; damage nests only a few levels deep.
const ROUNDS_MAX: u32 = 10;

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What the first check found.
    pub before: Report,
    /// What the last check still finds.
    pub after: Report,
    /// Findings dealt with, over all rounds.
    pub fixed: u64,
}

/// Checks and repairs the file system on a device that nobody has mounted. If the settings of the
/// volume are lost, `hash_key`, 16 random bytes, is the secret of its names from then on.
///
/// # Errors
/// As [`check`]; `NoSpace` if there is no room for a repair.
pub fn repair(device: &dyn ObjectDevice, now: Timestamp, hash_key: [u8; 16]) -> Result<Repaired> {
    let before = check(device)?;
    let mut after = before.clone();
    let mut fixed = 0;
    if load_settings(device)?.is_none() {
        settings::make_anew(device, now, hash_key)?;
        fixed += 1;
        after = check(device)?;
    }
    let Some((hash, inodes)) = load_settings(device)? else { return Ok(Repaired { before, after, fixed }) };
    let repair = Repair { device, hash, inodes, now };
    for _ in 0..ROUNDS_MAX {
        let mut any = false;
        for finding in &after.findings {
            let mut transaction = Transaction::new();
            repair.fix(finding, &mut transaction)?;
            if !transaction.is_empty() {
                device.commit(transaction, Durability::Durable)?;
                fixed += 1;
                any = true;
            }
        }
        if !any {
            break;
        }
        after = check(device)?;
    }
    Ok(Repaired { before, after, fixed })
}

struct Repair<'a> {
    device: &'a dyn ObjectDevice,
    hash: NameHash,
    inodes: Inodes,
    now: Timestamp,
}

impl Repair<'_> {
    fn fix(&self, finding: &Finding, transaction: &mut Transaction) -> Result<()> {
        let object = finding.object;
        let slot = finding.slot.unwrap_or_default();
        match finding.kind {
            FindingKind::EntryDamaged
            | FindingKind::EntryDuplicate
            | FindingKind::EntryDangling
            | FindingKind::DirectoryTwice => Self::empty_slot(transaction, object, AttributeKind::ENTRY, slot),
            FindingKind::XattrDamaged | FindingKind::XattrValueWrong => {
                Self::empty_slot(transaction, object, AttributeKind::XATTR, slot);
            }
            FindingKind::EntryMisplaced => self.move_slot(transaction, object, AttributeKind::ENTRY, slot)?,
            FindingKind::XattrMisplaced => self.move_slot(transaction, object, AttributeKind::XATTR, slot)?,
            FindingKind::EntryWrongType => self.fix_type(transaction, finding)?,
            FindingKind::NamesInFile => self.drop_names(transaction, object)?,
            FindingKind::DirectoryCycle => self.unhook(transaction, object)?,
            FindingKind::RootMissing => self.make_root(transaction),
            FindingKind::InodeMissing | FindingKind::InodeDamaged => self.make_inode(transaction, object)?,
            FindingKind::WrongParent | FindingKind::WrongEntryCount | FindingKind::WrongLinkCount => {
                self.fix_inode(transaction, finding)?;
            }
            FindingKind::XattrsHidden => self.fix_inode(transaction, finding)?,
            FindingKind::Unreachable => self.rescue(transaction, object)?,
            FindingKind::LostObject => {
                // A repair before this one may have given an inode its file again.
                let file = self.inodes.file_of(object);
                if file.is_none_or(|file| self.device.stat(file).is_err()) {
                    transaction.remove(object);
                }
            }
            FindingKind::OrphanMissing | FindingKind::OrphanNamed => {
                transaction.remove_attribute(VOLUME, AttributeKey::new(AttributeKind::ORPHAN, object.0));
            }
            FindingKind::QuotaDamaged | FindingKind::QuotaOfNothing => {
                transaction.remove_attribute(VOLUME, AttributeKey::new(AttributeKind::QUOTA, slot));
            }
            FindingKind::WrongQuotaBytes | FindingKind::WrongQuotaFiles => self.fix_quota(transaction, finding)?,
            // The next mount does it; it is done already; or nobody can.
            FindingKind::Orphan | FindingKind::VolumeDamaged | FindingKind::Unreadable => {}
        }
        Ok(())
    }

    fn slots(&self, object: ObjectId, kind: AttributeKind) -> Slots<'_> {
        Slots { device: self.device, object, kind }
    }

    fn inode(&self, object: ObjectId) -> Result<Option<Inode>> {
        Ok(self.inodes.load(self.device, object).map(Found::sound)?)
    }

    /// Empties a slot so that every search goes on past it.
    fn empty_slot(transaction: &mut Transaction, object: ObjectId, kind: AttributeKind, slot: u64) {
        transaction.set_attribute(object, AttributeKey::new(kind, slot), vec![PASSED]);
    }

    /// Puts an entry where a search finds it.
    fn move_slot(
        &self,
        transaction: &mut Transaction,
        object: ObjectId,
        kind: AttributeKind,
        index: u64,
    ) -> Result<()> {
        let slots = self.slots(object, kind);
        let Some(slot) = slots.list(index, 1)?.into_iter().find(|slot| slot.index == index) else { return Ok(()) };
        let name = match kind {
            AttributeKind::ENTRY => Entry::decode(&slot.payload).map(|entry| entry.name),
            _ => Xattr::decode(&slot.payload).map(|xattr| xattr.name),
        };
        let Some(home) = name.map(|name| self.hash.home(name)) else { return Ok(()) };
        Self::empty_slot(transaction, object, kind, index);
        slots.insert(transaction, home, &slot.payload, Some(index))?;
        Ok(())
    }

    fn fix_type(&self, transaction: &mut Transaction, finding: &Finding) -> Result<()> {
        let (Some(index), Some(expected)) = (finding.slot, finding.expected) else { return Ok(()) };
        let slots = self.slots(finding.object, AttributeKind::ENTRY);
        let Some(slot) = slots.list(index, 1)?.into_iter().find(|slot| slot.index == index) else { return Ok(()) };
        let file_type = u8::try_from(expected).ok().and_then(FileType::from_byte);
        if let (Some(entry), Some(file_type)) = (Entry::decode(&slot.payload), file_type) {
            slots.replace(transaction, &slot, &Entry { file_type, ..entry }.encode());
        }
        Ok(())
    }

    fn drop_names(&self, transaction: &mut Transaction, object: ObjectId) -> Result<()> {
        for slot in self.slots(object, AttributeKind::ENTRY).list(0, 64)? {
            transaction.remove_attribute(object, AttributeKey::new(AttributeKind::ENTRY, slot.index));
        }
        Ok(())
    }

    /// Takes a directory of a cycle out of the one that has its name; the next round rescues it.
    fn unhook(&self, transaction: &mut Transaction, object: ObjectId) -> Result<()> {
        let Some(inode) = self.inode(object)? else { return Ok(()) };
        let slots = self.slots(ObjectId(inode.parent), AttributeKind::ENTRY);
        let mut from = 0;
        loop {
            let batch = slots.list(from, 64)?;
            let Some(last) = batch.last() else { return Ok(()) };
            from = last.index.saturating_add(1);
            for slot in &batch {
                if Entry::decode(&slot.payload).is_some_and(|entry| entry.inode == object.0) {
                    slots.remove(transaction, slot);
                    return Ok(());
                }
            }
        }
    }

    fn make_root(&self, transaction: &mut Transaction) {
        let mut root = Inode::new(FileType::Directory, 0o755, self.now);
        root.parent = ROOT.0;
        if self.device.stat(ROOT).is_err() {
            let embed = self.inodes == Inodes::Embedded;
            transaction.create(ROOT, Hints { kind: ObjectKind::Directory, embed, ..Hints::default() });
        }
        self.inodes.restore(self.device, transaction, ROOT, &root);
    }

    /// Gives an object a fresh inode, readable only by root; counts are set right in the next
    /// round.
    fn make_inode(&self, transaction: &mut Transaction, object: ObjectId) -> Result<()> {
        if object == ROOT {
            self.make_root(transaction);
            return Ok(());
        }
        let has_names = !self.slots(object, AttributeKind::ENTRY).list(0, 1)?.is_empty();
        let file_type = match self.device.stat(object)?.hints.kind {
            ObjectKind::Directory => FileType::Directory,
            _ if has_names => FileType::Directory,
            ObjectKind::SymbolicLink => FileType::SymbolicLink,
            // Which kind of special file it was nobody knows; a socket does no harm.
            ObjectKind::Special => FileType::Socket,
            ObjectKind::Unknown | ObjectKind::Data | ObjectKind::Volume | ObjectKind::Memory => FileType::Regular,
        };
        let mut inode = Inode::new(file_type, if file_type == FileType::Directory { 0o700 } else { 0o600 }, self.now);
        inode.has_xattrs = !self.slots(object, AttributeKind::XATTR).list(0, 1)?.is_empty();
        self.inodes.restore(self.device, transaction, object, &inode);
        Ok(())
    }

    fn fix_inode(&self, transaction: &mut Transaction, finding: &Finding) -> Result<()> {
        let Some(mut inode) = self.inode(finding.object)? else { return Ok(()) };
        let expected = finding.expected.unwrap_or_default();
        match finding.kind {
            FindingKind::WrongParent => inode.parent = expected,
            FindingKind::WrongEntryCount => inode.entries = expected,
            FindingKind::XattrsHidden => inode.has_xattrs = true,
            _ => inode.links = u32::try_from(expected).unwrap_or(u32::MAX),
        }
        self.inodes.store(transaction, finding.object, &inode);
        Ok(())
    }

    /// Has a limit say what was counted.
    fn fix_quota(&self, transaction: &mut Transaction, finding: &Finding) -> Result<()> {
        let key = AttributeKey::new(AttributeKind::QUOTA, finding.slot.unwrap_or_default());
        let stored = self.device.attribute(VOLUME, key)?;
        let Some(mut record) = stored.and_then(|bytes| QuotaRecord::decode(&bytes)) else { return Ok(()) };
        let counted = finding.expected.unwrap_or_default();
        match finding.kind {
            FindingKind::WrongQuotaBytes => record.used.bytes = counted,
            _ => record.used.files = counted,
        }
        transaction.set_attribute(VOLUME, key, record.encode());
        Ok(())
    }

    /// Names a file in `/lost+found`.
    fn rescue(&self, transaction: &mut Transaction, object: ObjectId) -> Result<()> {
        // In the rounds before there may be no sound root yet.
        let (Some(mut root), Some(mut inode)) = (self.inode(ROOT)?, self.inode(object)?) else { return Ok(()) };
        let names = self.slots(ROOT, AttributeKind::ENTRY);
        let home = self.hash.home(LOST_AND_FOUND);
        let slot = names.find(home, |payload| Entry::decode(payload).is_some_and(|e| e.name == LOST_AND_FOUND))?;
        let Some(slot) = slot else {
            // The directory first; the file has its turn in the next round.
            let directory = ObjectId(self.inodes.reserve(self.device, 1)?.start);
            let mut new = Inode::new(FileType::Directory, 0o700, self.now);
            new.parent = ROOT.0;
            let entry = Entry { file_type: FileType::Directory, inode: directory.0, name: LOST_AND_FOUND };
            let hints = Hints { kind: ObjectKind::Directory, ..Hints::default() };
            self.inodes.create(transaction, directory, hints, &new);
            names.insert(transaction, home, &entry.encode(), None)?;
            root.entries += 1;
            root.links += 1;
            self.inodes.store(transaction, ROOT, &root);
            return Ok(());
        };
        let Some(found) = Entry::decode(&slot.payload).map(|entry| ObjectId(entry.inode)) else { return Ok(()) };
        let Some(mut directory) = self.inode(found)?.filter(Inode::is_directory) else { return Ok(()) };
        let name = format!("#{}", object.0).into_bytes();
        let entry = Entry { file_type: inode.file_type, inode: object.0, name: &name };
        self.slots(found, AttributeKind::ENTRY).insert(transaction, self.hash.home(&name), &entry.encode(), None)?;
        directory.entries += 1;
        if inode.is_directory() {
            directory.links += 1;
            inode.parent = found.0;
        } else {
            inode.links = 1;
        }
        self.inodes.store(transaction, found, &directory);
        self.inodes.store(transaction, object, &inode);
        Ok(())
    }
}
