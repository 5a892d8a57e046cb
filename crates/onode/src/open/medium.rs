//! What the check and the repair of a medium tell, whatever kind of device lies on it.

use crate::error::{Class, Error};
#[cfg(any(feature = "scm", feature = "tier"))]
use crate::open::access::Access;
use crate::spec::Spec;

/// One thing on a medium that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediumFinding {
    /// How bad it is: `warning`, `error` or `fatal`.
    pub severity: &'static str,
    /// What is wrong.
    pub kind: String,
    /// Where on the medium.
    pub place: String,
    /// The object concerned.
    pub object: Option<u64>,
    /// The bytes of the object concerned.
    pub range: Option<(u64, u64)>,
    /// One line with all of it.
    pub message: String,
}

/// What the check of a medium saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediumReport {
    /// What is wrong.
    pub findings: Vec<MediumFinding>,
    /// Nothing is lost or wrong; warnings do not count.
    pub is_sound: bool,
    /// The volume can be mounted.
    pub is_mountable: bool,
    /// The volume was closed in order.
    pub is_closed: bool,
    /// Pages read in all.
    pub pages_read: u64,
    /// Bytes of content that were read and verified.
    pub bytes_verified: u64,
    /// What a check of this medium cannot verify, one phrase each.
    pub unverified: Vec<String>,
}

/// What a repair of a medium did, one line each, and whether anything is gone with it.
///
/// Whoever takes it apart has to tell all of it: more than this would be another loss to name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumRepaired {
    /// In the order it was done; empty if nothing was wrong.
    pub actions: Vec<String>,
    /// Something could not be saved.
    pub lost: bool,
    /// Objects that lost something of what they held, in order.
    pub losers: Vec<u64>,
}

/// Opens what is there. That something is missing is a finding, and the rest is looked at all the
/// same.
#[cfg(any(feature = "scm", feature = "tier"))]
pub(super) fn look<D>(missing: &mut Option<String>, mount: impl Fn(Access) -> crate::Result<D>) -> crate::Result<D> {
    match mount(Access::LOOK) {
        Err(error) if error.class == Class::Loss => {
            *missing = Some(error.why);
            mount(Access { accept_loss: true, ..Access::LOOK })
        }
        other => other,
    }
}

/// Objects verified between two looks at the clock.
#[cfg(any(feature = "flash", feature = "tier"))]
pub(super) const OBJECTS_A_STEP: usize = 64;

/// Refuses to look into a volume without a medium.
pub(super) fn lives_in_memory(spec: &Spec) -> Error {
    Error::new(Class::Usage, format!("cannot look into {spec}"), "it lives in memory only")
}
