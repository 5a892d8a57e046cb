//! Which arenas are open: each at most once, as two that save to the same slots would spoil both.
//!
//! Within a process a list says it; between processes that share the memory, a lock of the kernel
//! on the number of the arena's file, which ends with the process however it dies.

use crate::error::{Error, Result};
use onode::MappedSpace;
use onode_base::ErrorKind;
use onode_base::sync::{Mutex, rank};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names of open arenas of one heap.
#[derive(Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeSet<Vec<u8>>, rank::HeapArenas>>);

/// The right to have an arena open; given back when it is dropped.
pub(crate) struct Claim {
    claims: Claims,
    name: Vec<u8>,
    number: Option<(Arc<MappedSpace>, u64)>,
}

impl Claims {
    pub(crate) fn claim(&self, name: &[u8]) -> Result<Claim> {
        let mut open = self.0.lock();
        if !open.insert(name.to_vec()) {
            let why = format!("the arena {} is open in this process", String::from_utf8_lossy(name));
            return Err(Error::new(ErrorKind::Busy, why));
        }
        Ok(Claim { claims: self.clone(), name: name.to_vec(), number: None })
    }
}

impl Claim {
    /// Claims it among all processes, by the number of its file.
    pub(crate) fn among_processes(&mut self, memory: &Arc<MappedSpace>, number: u64) -> Result<()> {
        let name = String::from_utf8_lossy(&self.name).into_owned();
        match memory.region().pmem().claim(number) {
            Ok(true) => {
                self.number = Some((Arc::clone(memory), number));
                Ok(())
            }
            Ok(false) => Err(Error::new(ErrorKind::Busy, format!("the arena {name} is open in another process"))),
            Err(error) => Err(Error::new(ErrorKind::Media, format!("cannot claim the arena {name}: {error}"))),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((memory, number)) = &self.number {
            // It ends with the process in any case.
            let _ = memory.region().pmem().disclaim(*number);
        }
        self.claims.0.lock().remove(&self.name);
    }
}
