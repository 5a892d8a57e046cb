//! What can be read of objects in a directory with a key before and after it is locked.

use super::keyed::{make_key, secret};
use super::secrecy::{Witness, made, opened};
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_services::DirectoryKeys;
use std::sync::Arc;

const INODE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);
const NAME: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 77);
const ABSENT: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 78);
const SIZES: [usize; 3] = [100, 5000, 300_000];

/// Locks a key and looks at what it keeps, in the same mount and in the next one.
pub fn lock_and_look() -> Result<(), String> {
    let witness = Witness::new();
    let device = made(Arc::clone(&witness));
    let number = make_key(&device, 5);
    let objects: Vec<ObjectId> = (40..).map(ObjectId).take(SIZES.len()).collect();
    for (object, size) in objects.iter().zip(SIZES) {
        let mut transaction = Transaction::new();
        let hints = Hints { encryption_key: number, ..Hints::default() };
        transaction.create(*object, hints).set_attribute(*object, INODE, b"an inode".to_vec());
        transaction.set_attribute(*object, NAME, vec![b'n'; 590]).write(*object, 0, vec![b'c'; size]);
        device.commit(transaction, Durability::Durable).map_err(|error| error.to_string())?;
    }
    let check = |device: &dyn ObjectDevice, is_open: bool| {
        for (object, size) in objects.iter().zip(SIZES) {
            let mut bytes = vec![0; size];
            let read = device.read(*object, 0, &mut bytes).map_err(|error| error.kind);
            let name = device.attribute(*object, NAME).map_err(|error| error.kind);
            let others = device.attribute(*object, ABSENT).map_err(|error| error.kind);
            let listed = device.attributes(*object, ABSENT, 9).map(|_| ()).map_err(|error| error.kind);
            let is_right = match is_open {
                true => {
                    let is_read = read == Ok(size) && bytes.iter().all(|byte| *byte == b'c');
                    is_read && name == Ok(Some(vec![b'n'; 590])) && others == Ok(None) && listed.is_ok()
                }
                false => {
                    let locked = ErrorKind::KeyNeeded;
                    let is_nothing = bytes.iter().all(|byte| *byte == 0);
                    is_nothing
                        && read == Err(locked)
                        && name == Err(locked)
                        && others == Err(locked)
                        && listed == Err(locked)
                }
            };
            // Inode and size need the key of the volume alone.
            let told = device.attribute(*object, INODE).map_err(|error| error.to_string())?;
            let stat = device.stat(*object).map_err(|error| error.to_string())?;
            if !is_right || told.as_deref() != Some(b"an inode") || stat.size != size as u64 {
                return Err(format!("{object} while the key is open: {is_open}"));
            }
        }
        Ok(())
    };
    check(&device, true)?;
    assert!(device.lock(number) && !device.lock(number));
    check(&device, false)?;
    device.unlock(None, &secret()).map_err(|error| error.to_string())?;
    check(&device, true)?;
    drop(device);
    let device = opened(witness).map_err(|error| error.to_string())?;
    check(&device, false)?;
    device.unlock(Some(number), &secret()).map_err(|error| error.to_string())?;
    check(&device, true)
}
