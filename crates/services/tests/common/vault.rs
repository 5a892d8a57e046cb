//! The keys of volumes that tests encrypt. What the object of a volume would say stands here, so
//! that a device shows the objects of the test and no other.

use onode_base::sync::{Mutex, rank};
use onode_object::{ObjectDevice, ObjectId};
use onode_services::{Authenticated, Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotSettings};
use std::sync::Arc;

/// Keys, and the number of the last mount.
pub struct Vault {
    master: MasterKey,
    header: Mutex<KeyHeader, rank::Free>,
}

impl Vault {
    pub fn new() -> Self {
        let master = MasterKey::new([0x5a; 32]);
        let secret = Secret::passphrase(b"horse".to_vec()).expect("it is not empty");
        let slot = KeySlot::new(&master, &secret, SlotSettings { id: 0, label: "", cost: Cost::LEAST, salt: [7; 16] })
            .expect("it can be made");
        let header = Mutex::new(KeyHeader::new(&[ObjectId(62)], &master, slot));
        Self { master, header }
    }

    /// Opens a device that was encrypted with these keys, or is to be.
    pub fn open<D: ObjectDevice + ?Sized>(&self, device: &Arc<D>) -> Encrypted<D> {
        let mut header = self.header.lock();
        let session = Session::new([header.epoch() as u8; 32]);
        let opened = Encrypted::create(Arc::clone(device), header.clone(), &self.master, session);
        let opened = opened.expect("the keys fit");
        *header = opened.header().clone();
        opened
    }

    /// The same of a device that is authenticated, or is to be.
    pub fn open_authenticated<D: ObjectDevice + ?Sized>(&self, device: &Arc<D>) -> Encrypted<Authenticated<D>> {
        {
            let mut header = self.header.lock();
            *header = header.clone().authenticated(&self.master);
        }
        let is_made = device.stat(ObjectId::AUTHENTICATED).is_ok();
        let inner = Arc::clone(device);
        let opened =
            if is_made { Authenticated::open(inner, &self.master) } else { Authenticated::create(inner, &self.master) };
        self.open(&Arc::new(opened.expect("it is what was stored last")))
    }
}
