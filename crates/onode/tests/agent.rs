//! Where the tests have the keys of encrypted volumes from: there is one place in a process.

use onode::Spec;
use onode::keys::{Anchor, KeyAgent, Secret, set_key_agent};

/// A file of this name beside the image says that the key opens one of its directories, too.
pub const HAS_KEY: &str = "has-key";

/// Gives every volume the same key, and one whose name says so an anchor of far away.
struct Agent;

impl KeyAgent for Agent {
    fn secret(&self, _: &Spec, attempt: u32) -> onode::Result<Option<Secret>> {
        Ok((attempt == 0).then(secret))
    }

    fn directory_secrets(&self, spec: &Spec) -> onode::Result<Vec<Vec<Secret>>> {
        let has_key = spec.image_path().is_some_and(|path| path.with_file_name(HAS_KEY).exists());
        Ok(if has_key { vec![vec![secret()]] } else { Vec::new() })
    }

    fn anchor(&self, spec: &Spec) -> Option<Anchor> {
        let is_anchored = spec.to_string().contains("anchored");
        is_anchored.then(|| format!("1000000-{}", "0".repeat(32)).parse().unwrap())
    }
}

/// The key.
pub fn secret() -> Secret {
    Secret::key_file(vec![5; 32]).unwrap()
}

/// Has every volume opened with it.
pub fn provide() {
    set_key_agent(Box::new(Agent));
}
