//! The key of encrypted volumes.

use onode::Result;
use onode::Spec;
use onode::keys::{KeyAgent, Secret, set_key_agent};

struct Agent;

impl KeyAgent for Agent {
    fn secret(&self, _: &Spec, attempt: u32) -> Result<Option<Secret>> {
        Ok((attempt == 0).then(secret))
    }
}

pub fn secret() -> Secret {
    Secret::key_file(vec![5; 32]).unwrap()
}

/// From now on volumes are opened with that key.
pub fn give() {
    set_key_agent(Box::new(Agent));
}
