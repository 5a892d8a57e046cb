//! Directories that a spec maps to sections of the fast disk, or past it (paper 4, 3.5): they are
//! made if they are not there, and what is made in them from then on goes where they say.

use crate::error::{Class, Error, Result};
use crate::spec::Spec;
use crate::spec::tiers::{Mapping, Tiers, USUAL_SECTIONS};
use crate::volume::{MountOptions, Volume};
use onode_fs::Hint;

/// That all sections of a new volume's mappings will be there.
pub(in crate::volume) fn check_new(spec: &Spec) -> Result<()> {
    let Spec::Tier(tiers) = spec else { return Ok(()) };
    let said: Vec<&str> = tiers.sections.iter().map(|section| section.name.as_str()).collect();
    let known = if said.is_empty() { USUAL_SECTIONS.map(|(name, ..)| name).to_vec() } else { said };
    for Mapping { directory, section } in &tiers.mappings {
        if let Some(section) = section.as_ref().filter(|section| !known.contains(&section.as_str())) {
            let what = format!("cannot map {} in {spec}", directory.display());
            return Err(Error::new(Class::Usage, what, format!("there is no section `{section}`"))
                .hint(format!("the sections are {}; `bypass` keeps content off the fast disk", known.join(", "))));
        }
    }
    Ok(())
}

/// Maps what the spec of a new volume says.
///
/// # Errors
/// As [`Volume::open`].
pub(in crate::volume) fn map_new(spec: &Spec) -> Result<()> {
    match spec {
        Spec::Tier(Tiers { mappings, disks: Some(_), .. }) if !mappings.is_empty() => {
            Volume::open(&spec.clone().again(), MountOptions::default())?.close()
        }
        _ => Ok(()),
    }
}

impl Volume {
    /// Maps what the spec says, unless it is so already.
    pub(in crate::volume) fn map_directories(&self) -> Result<()> {
        let Spec::Tier(tiers) = self.spec() else { return Ok(()) };
        for Mapping { directory, section } in &tiers.mappings {
            let wanted = section.as_deref().unwrap_or("bypass");
            self.create_dir_all(directory)?;
            if self.hint(directory, Hint::Placement)? != wanted {
                self.set_hint(directory, Hint::Placement, wanted)?;
            }
        }
        Ok(())
    }
}
