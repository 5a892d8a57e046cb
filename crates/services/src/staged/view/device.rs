//! A view as an object device.

use crate::staged::shadow::ENTRY_BYTES;
use crate::staged::view::look::Lookup;
use crate::staged::view::{ENTRY_BYTES_MAX, View, ViewState};
use crate::turn::Turn;
use onode_object::validate::{Admission, never_needs_space, validate};
use onode_object::{
    AttributeKey, Compression, Demand, DeviceInfo, Durability, Error, ErrorKind, Health, Maintenance, Mutation,
    ObjectDevice, ObjectId, ObjectStat, ParityChoice, Result, Space, SyncScope, Transaction,
};

/// Content that stays in memory, beyond what may, because it finds no room elsewhere.
const UNSPILLED_BYTES_MAX: usize = 8 << 20;

/// Memory for names and attributes, and bytes of content, that a transaction adds at most.
fn growth(transaction: &Transaction) -> (usize, usize) {
    let (mut entries, mut content) = (0, 0);
    for mutation in &transaction.mutations {
        match mutation {
            Mutation::Write { data, .. } => content += data.len(),
            Mutation::SetAttribute { value, .. } => entries += ENTRY_BYTES + value.len(),
            Mutation::Create { .. } | Mutation::RemoveAttribute { .. } | Mutation::Remove { .. } => {
                entries += ENTRY_BYTES;
            }
            _ => {}
        }
    }
    (entries, content)
}

impl<D: ObjectDevice + ?Sized> View<D> {
    /// Refuses what memory or the wrapped device would have no room for.
    fn check_room(&self, state: &mut ViewState, transaction: &Transaction) -> Result<()> {
        let (entries, content) = growth(transaction);
        if state.entry_bytes + entries > ENTRY_BYTES_MAX {
            let why = "the transaction changes too many names and attributes; commit it in parts";
            return Err(Error::new(ErrorKind::OutOfMemory, why));
        }
        let fits = |state: &ViewState| {
            let needs = (state.entry_bytes + state.held_bytes + entries + content) as u64;
            needs <= self.room()
        };
        if entries + content == 0 || fits(state) || never_needs_space(transaction, &mut Lookup { view: self, state })? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NoSpace, "the device has no room for what the transaction changes"))
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for View<D> {
    fn info(&self) -> DeviceInfo {
        self.staged.info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.staged.inner.reserve_ids(count)
    }

    /// Changes what the view shows; how durable that is to be says who commits the view.
    fn commit(&self, transaction: Transaction, _: Durability) -> Result<()> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        let state = &mut *self.open()?;
        if self.is_fixed {
            let why = "a committed transaction is not in place yet: it takes a mount that may write";
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        let is_new = |one: &Mutation| matches!(one, Mutation::Create { object, .. } if *object >= ObjectId::FIRST_FREE);
        let next_id = match transaction.mutations.iter().any(is_new) {
            true => self.staged.inner.reserve_ids(0)?,
            false => ObjectId::FIRST_FREE,
        };
        self.touch(state, &transaction);
        let admission = Admission { next_id, move_unit: None };
        validate(&transaction, admission, &mut |object| self.exists(state, object))?;
        self.refuse_keys_in(state, &transaction)?;
        let sizes = self.sizes(state, &transaction)?;
        if state.held_bytes > self.held_bytes_max() + UNSPILLED_BYTES_MAX {
            // There was no room for what was to leave memory, which is bounded all the same.
            self.spill(state, self.held_bytes_max())?;
        }
        self.check_room(state, &transaction)?;
        let before = state.entry_bytes + state.held_bytes;
        let work = Self::apply(state, transaction, &sizes);
        self.account(state, before);
        if !work.is_empty() {
            let _changing = self.staged.changing.read();
            self.staged.work(work)?;
        }
        if state.held_bytes > self.held_bytes_max() {
            // What finds no room stays in memory, for which there is room as well.
            let _ = self.spill(state, self.held_bytes_max() / 2);
        }
        Ok(())
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        self.open().map(drop)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.read_in(&mut *self.open()?, (object, offset), buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.attribute_in(&mut *self.open()?, object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.attributes_in(&mut *self.open()?, object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.stat_in(&*self.open()?, object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.list_in(&*self.open()?, from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let _turn = Turn::take(self.staged.inner.as_ref());
        self.extents_in(&*self.open()?, object, offset, limit)
    }

    fn space(&self) -> Space {
        let (state, space) = (self.state(), ObjectDevice::space(self.staged.as_ref()));
        let held = (state.entry_bytes + state.held_bytes) as u64;
        let objects = Self::objects_in(&state, space.objects);
        Space { available: space.available.saturating_sub(held), objects, ..space }
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        self.staged.inner.space_for(demand)
    }

    fn space_to_replace(&self, bytes: u64) -> u64 {
        self.staged.inner.space_to_replace(bytes)
    }

    fn promisable(&self) -> u64 {
        let state = self.state();
        let held = (state.entry_bytes + state.held_bytes) as u64;
        self.staged.inner.promisable().saturating_sub(held + self.set_aside())
    }

    fn maintain(&self, _: u32) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    /// The wrapped device stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn health(&self) -> Health {
        self.staged.inner.health()
    }

    fn has_directory_keys(&self) -> bool {
        self.staged.inner.has_directory_keys()
    }

    fn compression(&self) -> Option<Compression> {
        self.staged.inner.compression()
    }

    fn parity(&self) -> Option<ParityChoice> {
        self.staged.inner.parity()
    }
}
