//! Limits: whether what their records say is used is what counting gives.

use super::walk::Walk;
use super::{Finding, FindingKind};
use crate::error::Result;
use crate::inodes::inode::Inode;
use crate::quota::QuotaUse;
use crate::quota::record::{self, Charged, QuotaRecord, StoredQuota};
use crate::quota::table::Holder;
use crate::volume::VOLUME;
use onode_base::ErrorKind;
use onode_object::ObjectDevice;
use std::collections::BTreeMap;

/// The limits of a volume with what was counted of each: memory for limits, not for files.
#[derive(Debug, Default)]
pub(super) struct Usage {
    stored: Vec<(u64, Option<QuotaRecord>)>,
    counted: BTreeMap<Charged, QuotaUse>,
}

impl Usage {
    /// Reads the records.
    pub(super) fn load(device: &dyn ObjectDevice) -> Result<Self> {
        let mut usage = Self::default();
        let stored = match record::list(device) {
            Ok(stored) => stored,
            // Whatever else is wrong with the volume's own object is told where it is looked at.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => Vec::new(),
            Err(error) => return Err(error),
        };
        for StoredQuota { index, charged, record } in stored {
            if let Some(charged) = charged.filter(|_| record.is_some()) {
                usage.counted.insert(charged, QuotaUse::default());
            }
            usage.stored.push((index, record.filter(|_| charged.is_some())));
        }
        Ok(usage)
    }

    /// Counts a file.
    pub(super) fn count(&mut self, inode: &Inode, bytes: u64) {
        if self.counted.is_empty() {
            return;
        }
        for charged in Holder::of(inode).charged() {
            if let Some(used) = self.counted.get_mut(&charged) {
                used.bytes = used.bytes.saturating_add(bytes);
                used.files += 1;
            }
        }
    }
}

/// What people call whom a limit is for.
fn whom(index: u64, record: Option<&QuotaRecord>) -> String {
    match (Charged::from_index(index), record) {
        (Some(Charged::Tree(_)), Some(record)) => format!("limit of directory {}", record.directory),
        (Some(Charged::User(uid)), _) => format!("limit of user {uid}"),
        (Some(Charged::Group(gid)), _) => format!("limit of group {gid}"),
        (Some(Charged::Tree(_)) | None, _) => "limit".to_owned(),
    }
}

/// Compares both.
pub(super) fn judge(walk: &mut Walk<'_>) {
    let Usage { stored, counted } = std::mem::take(&mut walk.usage);
    let by_index: BTreeMap<u64, QuotaUse> = counted.iter().map(|(charged, used)| (charged.index(), *used)).collect();
    for (index, record) in stored {
        let whom = whom(index, record.as_ref());
        let at = |kind| Finding::new(kind, VOLUME.0).at(index, whom.as_bytes());
        let (Some(record), Some(counted)) = (record, by_index.get(&index)) else {
            walk.find(at(FindingKind::QuotaDamaged));
            continue;
        };
        if record.directory != 0 && !walk.seen.contains_key(&record.directory) {
            walk.find(Finding { found: Some(record.directory), ..at(FindingKind::QuotaOfNothing) });
            continue;
        }
        if record.used.bytes != counted.bytes {
            walk.find(at(FindingKind::WrongQuotaBytes).counts(counted.bytes, record.used.bytes));
        }
        if record.used.files != counted.files {
            walk.find(at(FindingKind::WrongQuotaFiles).counts(counted.files, record.used.files));
        }
    }
}
