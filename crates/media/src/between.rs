//! Where a device works with its medium and has let go of its locks, others go on. Who explores
//! that in one thread is told of such a moment and makes the calls of the others right there.
//!
//! It does not know which locks are free: whoever is told finds that out.

use alloc::sync::Arc;
use core::fmt;
use onode_base::sync::{Mutex, as_another_thread, rank};

/// What a thread of a device is about to do, or has just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// A medium works for it.
    Works,
    /// It waits until others have read. In one thread that would be for ever.
    Waits,
}

/// Who is told.
pub trait Between: Send + Sync {
    /// A call of a device is at such a moment.
    fn at(&self, gap: Gap);
}

/// Where somebody may be told; clones are the same place. Nobody is, unless it is said who.
#[derive(Clone, Default)]
pub struct Seam(Arc<Mutex<Option<Arc<dyn Between>>, rank::MediumNotes>>);

impl Seam {
    /// From now on this one is told, or nobody.
    pub fn set(&self, between: Option<Arc<dyn Between>>) {
        *self.0.lock() = between;
    }

    /// A call is at such a moment.
    pub fn at(&self, gap: Gap) {
        // The others come here, too.
        let between = self.0.lock().clone();
        if let Some(between) = between {
            as_another_thread(|| between.at(gap));
        }
    }
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seam")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Deeper(Seam, Mutex<u32, rank::Free>);

    impl Between for Deeper {
        fn at(&self, gap: Gap) {
            assert_eq!(gap, Gap::Works);
            *self.1.lock() += 1;
            if *self.1.lock() < 3 {
                self.0.at(gap);
            }
        }
    }

    #[test]
    fn who_is_told_may_come_to_such_a_moment_again() {
        let seam = Seam::default();
        seam.at(Gap::Works);
        let deeper = Arc::new(Deeper(seam.clone(), Mutex::new(0)));
        let told: Arc<dyn Between> = Arc::clone(&deeper) as Arc<dyn Between>;
        seam.set(Some(told));
        seam.at(Gap::Works);
        seam.set(None);
        seam.at(Gap::Works);
        assert_eq!(*deeper.1.lock(), 3);
    }
}
