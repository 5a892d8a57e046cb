//! Damage of stored frames: exactly the bytes of the frame are lost, whatever is changed in it.

use super::changes::CHUNK;
use onode_object::{Compression, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::Compressed;
use std::sync::Arc;

const OBJECT: ObjectId = ObjectId(5);

/// Changes stored bytes one by one; tells the first damage that goes unseen or is told wrongly.
pub fn run() -> Result<(), String> {
    let inner = Arc::new(RamDevice::new(1 << 30));
    let device = Compressed::new(Arc::clone(&inner), Compression::Fast);
    let content: Vec<u8> = (0..3 * CHUNK as usize + 100).map(|at| (at / 300) as u8 ^ b"some text"[at % 9]).collect();
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default()).write(OBJECT, 0, content.clone());
    device.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())?;
    let stored = inner.extents(OBJECT, CHUNK, 1).map_err(|error| error.to_string())?;
    let length = stored.first().map_or(0, |(_, length)| *length).min(8192);
    let range = CHUNK..2 * CHUNK;
    for at in (0..length).step_by(7) {
        let mut byte = [0];
        inner.read(OBJECT, CHUNK + at, &mut byte).map_err(|error| error.to_string())?;
        let put = |byte: u8| {
            let mut transaction = Transaction::new();
            transaction.write(OBJECT, CHUNK + at, vec![byte]);
            inner.commit(transaction, Durability::Buffered).map_err(|error| error.to_string())
        };
        put(byte[0] ^ 0x41)?;
        let mut found = vec![0; content.len()];
        match device.read(OBJECT, 0, &mut found) {
            Err(error) if error.kind == ErrorKind::Corrupt && error.range == Some(range.clone()) => {}
            // Behind the frame nothing counts.
            Ok(count) if found[..count] == content[..] && byte[0] == 0 => {}
            other => return Err(format!("byte {at} of the frame: {other:?}")),
        }
        // What lies beside it is there.
        let mut beside = vec![0; CHUNK as usize];
        device.read(OBJECT, 0, &mut beside).map_err(|error| error.to_string())?;
        device.read(OBJECT, 2 * CHUNK, &mut beside).map_err(|error| error.to_string())?;
        if beside != content[2 * CHUNK as usize..3 * CHUNK as usize] {
            return Err("the chunk beside is another one".to_string());
        }
        put(byte[0])?;
    }
    Ok(())
}
