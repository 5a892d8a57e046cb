//! Which arenas are open in this process: each at most once, as two that save to the same slots would spoil both.

use crate::error::{Error, Result};
use onode_base::ErrorKind;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The names of open arenas of one heap.
#[derive(Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<BTreeSet<Vec<u8>>>>);

/// The right to have an arena open; given back when it is dropped.
pub(crate) struct Claim {
    claims: Claims,
    name: Vec<u8>,
}

impl Claims {
    pub(crate) fn claim(&self, name: &[u8]) -> Result<Claim> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.insert(name.to_vec()) {
            let why = format!("the arena {} is open in this process", String::from_utf8_lossy(name));
            return Err(Error::new(ErrorKind::Busy, why));
        }
        Ok(Claim { claims: self.clone(), name: name.to_vec() })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}
