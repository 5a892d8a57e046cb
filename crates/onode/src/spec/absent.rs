//! The devices that this build lacks: their specs are known and refused, so that nobody takes one
//! for a mistyped name.
//!
//! Each module stands in the place of the one that the feature of its name would bring.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;

/// Refuses what needs `feature`.
fn lacks(what: &str, feature: &str) -> Result<Spec> {
    let why = format!("this build of Onode has no {feature}: the crate `onode` was built without it");
    Err(Error::new(Class::Usage, what, why).hint(format!("enable the feature `{feature}` of the crate `onode`")))
}

#[cfg(not(feature = "flash"))]
pub(super) mod flash {
    use super::{Result, Spec, lacks};
    use std::path::Path;

    pub(crate) fn in_image(what: &str, _: &Path) -> Result<Spec> {
        lacks(what, "flash")
    }

    pub(crate) fn parse(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "flash")
    }

    pub(crate) fn parse_beside(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "flash")
    }

    pub(crate) fn parse_image(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "flash")
    }
}

#[cfg(not(feature = "scm"))]
pub(super) mod memory {
    use super::{Result, Spec, lacks};
    use std::path::Path;

    pub(crate) fn in_file(what: &str, _: &Path) -> Result<Spec> {
        lacks(what, "scm")
    }

    pub(crate) fn parse(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "scm")
    }
}

#[cfg(not(feature = "tier"))]
pub(super) mod tiers {
    use super::{Result, Spec, lacks};

    pub(crate) fn parse(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "tier")
    }
}

#[cfg(not(feature = "pool"))]
pub(super) mod pool {
    use super::{Result, Spec, lacks};

    pub(crate) fn parse(what: &str, _: &str) -> Result<Spec> {
        lacks(what, "pool")
    }
}
