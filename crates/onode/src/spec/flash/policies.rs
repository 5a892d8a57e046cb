//! The policies of a volume on flash, as far as they were said: where content goes, what the
//! cleaner takes, how wear is spread.
//!
//! A policy that was said holds from then on, also for a volume that had another one. What was not
//! said stays as it is.

use crate::error::{Class, Error, Result};
pub use onode_flash::Policies;
use onode_flash::policy::{Placement, VictimPolicy, WearPolicy};
use std::fmt;

/// Takes a part `key=value` of a spec; false if it is about something else.
pub(super) fn take(policies: &mut Policies, what: &str, key: &str, value: &str) -> Result<bool> {
    match key {
        "placement" => policies.placement = Some(placement_of(what, value)?),
        "victim" => policies.victim = Some(victim_of(what, value)?),
        "wear" => policies.wear = Some(wear_of(what, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Policies as further parts of a spec.
pub(super) struct Parts<'a>(pub &'a Policies);

impl fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Policies { placement, victim, wear } = self.0;
        if let Some(placement) = placement {
            write!(f, ",placement={}", placement.name())?;
        }
        if let Some(victim) = victim {
            write!(f, ",victim={}", victim.name())?;
        }
        if let Some(wear) = wear {
            write!(f, ",wear={}", wear.name())?;
        }
        Ok(())
    }
}

fn placement_of(what: &str, value: &str) -> Result<Placement> {
    Placement::from_name(value).ok_or_else(|| {
        let names: Vec<_> = Placement::ALL.into_iter().map(Placement::name).collect();
        Error::new(Class::Usage, what, format!("`{value}` is no placement of this device"))
            .hint(format!("the placements are {}", names.join(", ")))
    })
}

fn victim_of(what: &str, value: &str) -> Result<VictimPolicy> {
    VictimPolicy::from_name(value).ok_or_else(|| {
        let names: Vec<_> = VictimPolicy::ALL.into_iter().map(VictimPolicy::name).collect();
        Error::new(Class::Usage, what, format!("`{value}` is no victim policy"))
            .hint(format!("the victim policies are {}", names.join(", ")))
    })
}

/// The wear policy called `value`.
///
/// # Errors
/// `Usage` with the names there are; `what` is what cannot be done.
pub fn wear_of(what: &str, value: &str) -> Result<WearPolicy> {
    WearPolicy::from_name(value).ok_or_else(|| {
        let names: Vec<_> = WearPolicy::ALL.into_iter().map(WearPolicy::name).collect();
        Error::new(Class::Usage, what, format!("`{value}` is no wear policy"))
            .hint(format!("the wear policies are {}", names.join(", ")))
    })
}
