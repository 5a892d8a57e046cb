//! Limits of a mounted volume: which there are, changing and removing them.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::quota::record::{self, Charged, StoredQuota};
use crate::quota::{Quota, QuotaLimits, QuotaSubject};
use crate::state::State;
use crate::volume::{VOLUME, VOLUME_KEY, VolumeInfo};
use onode_base::ErrorKind;
use onode_object::{Durability, SyncScope, Transaction};

impl FileSystem {
    /// Takes the limits that the device has into memory.
    pub(crate) fn load_quotas(&self, state: &mut State) -> Result<()> {
        state.quotas.is_memory = self.device.map_objects().is_some();
        if !self.volume.has_quotas() {
            return Ok(());
        }
        self.read_quotas(state)
    }

    /// Takes over what others have made of the limits at the device.
    pub(crate) fn reread_quotas(&self, state: &mut State) -> Result<()> {
        state.quotas.clear();
        self.read_quotas(state)?;
        state.recount_pending();
        Ok(())
    }

    fn read_quotas(&self, state: &mut State) -> Result<()> {
        let stored = record::list(self.device.as_ref())?;
        if state.quotas.is_memory {
            return self.drop_quotas(&stored);
        }
        for StoredQuota { charged, record, .. } in stored {
            match (charged, record) {
                (Some(charged), Some(record)) => state.quotas.insert(charged, record),
                // What is counted there would be wrong after the first change.
                _ if !self.options.read_only => {
                    let why = "a stored limit is damaged; run onode repair, or mount it read-only";
                    return Err(Error::new(ErrorKind::Corrupt, why));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Limits that a stream brought to a device on which nothing can be counted.
    fn drop_quotas(&self, stored: &[StoredQuota]) -> Result<()> {
        let mut transaction = Transaction::new();
        for StoredQuota { index, .. } in stored {
            let key = onode_object::AttributeKey::new(onode_object::AttributeKind::QUOTA, *index);
            transaction.remove_attribute(VOLUME, key);
        }
        if !self.options.read_only && !transaction.is_empty() {
            self.heard(self.device.commit(transaction, Durability::Buffered))?;
        }
        Ok(())
    }

    /// Whether there can be limits: not on storage-class memory.
    #[must_use]
    pub fn offers_quotas(&self) -> bool {
        !self.lock().quotas.is_memory
    }

    /// That limits can be set here.
    pub(crate) fn check_offers_quotas(&self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume is read-only"));
        }
        let state = &*self.lock();
        if state.quotas.is_view {
            let why = "limits are set outside of transactions";
            return Err(Error::new(ErrorKind::NotPermitted, why));
        }
        if state.quotas.is_memory {
            let why = "programs change files on storage-class memory without a call: nothing can be counted there";
            return Err(Error::new(ErrorKind::NotSupported, why));
        }
        Ok(())
    }

    /// Every limit with what is used of it: first those of directories, then of users, of groups.
    ///
    /// # Errors
    /// Those of the device.
    pub fn quotas(&self) -> Result<Vec<Quota>> {
        let state = &*self.lock();
        let told = state.quotas.iter().filter_map(|(charged, entry)| {
            let subject = state.quotas.subject(charged)?;
            Some(Quota { subject, limits: entry.record.limits, used: entry.used() })
        });
        Ok(told.collect())
    }

    /// What a subject is charged as; `None` for a directory that has no limit of its own.
    pub(crate) fn charged_as(&self, state: &mut State, subject: QuotaSubject) -> Result<Option<Charged>> {
        Ok(match subject {
            QuotaSubject::User(uid) => Some(Charged::User(uid)),
            QuotaSubject::Group(gid) => Some(Charged::Group(gid)),
            QuotaSubject::Directory(number) => {
                let inode = self.live_directory(state, number)?;
                let top = state.quotas.top(inode.tree);
                top.filter(|top| *top == number.0).map(|_| Charged::Tree(inode.tree))
            }
        })
    }

    /// Gives what has a limit already another one, durably; false if it has none.
    pub(crate) fn change_quota(&self, subject: QuotaSubject, limits: QuotaLimits) -> Result<bool> {
        {
            let state = &mut *self.lock();
            let Some(charged) = self.charged_as(state, subject)? else { return Ok(false) };
            let Some(entry) = state.quotas.get(charged) else { return Ok(false) };
            let mut record = entry.record;
            record.limits = limits;
            let mut transaction = Transaction::new();
            record.store(&mut transaction, charged);
            self.heard(self.device.commit(transaction, Durability::Buffered))?;
            if let Some(entry) = state.quotas.kept(charged) {
                entry.record = record;
            }
        }
        self.heard(self.device.sync(SyncScope::Object(VOLUME)))?;
        Ok(true)
    }

    /// Takes a limit away, durably. The files stay as they are.
    ///
    /// # Errors
    /// `NotFound` if there is none; `ReadOnly`; the device's errors.
    pub fn remove_quota(&self, subject: QuotaSubject) -> Result<()> {
        self.check_offers_quotas()?;
        {
            let state = &mut *self.lock();
            let charged = self.charged_as(state, subject)?.filter(|charged| state.quotas.get(*charged).is_some());
            let charged = charged.ok_or_else(|| Error::new(ErrorKind::NotFound, "it has no limit"))?;
            let mut transaction = Transaction::new();
            transaction.remove_attribute(VOLUME, charged.key());
            self.heard(self.device.commit(transaction, Durability::Buffered))?;
            state.quotas.remove(charged);
        }
        self.heard(self.device.sync(SyncScope::Object(VOLUME)))
    }

    /// From now on there may be limits: programs that know none refuse the volume.
    pub(crate) fn admit_quotas(&self) -> Result<()> {
        let mut info = VolumeInfo::load(self.device.as_ref())?;
        if info.has_quotas() {
            return Ok(());
        }
        info.admit_quotas();
        let mut transaction = Transaction::new();
        transaction.set_attribute(VOLUME, VOLUME_KEY, info.encode());
        self.heard(self.device.commit(transaction, Durability::Buffered))
    }
}
