//! The check of a medium below its objects, in words that hold for every device.

use crate::device::open_image;
use crate::error::{Class, Error, Result};
use crate::spec::{Medium, Spec};
use onode_flash::check::{CheckOptions, Finding, Severity};

/// One thing on a medium that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// Checks the medium of `spec` by a walk of its own over the raw pages; changes nothing. `progress` hears
/// of pages done and in all.
///
/// # Errors
/// If the medium cannot be opened. What is wrong on it is no error but a finding.
pub fn check_medium(spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
    let Spec::Flash { medium: Medium::Image(path), shape } = spec else {
        return Err(Error::new(Class::Usage, format!("cannot check {spec}"), "it lives in memory only"));
    };
    let mut nand = open_image(spec, path, shape, true)?;
    let report = onode_flash::check(&mut nand, &CheckOptions::default(), progress);
    Ok(MediumReport {
        is_sound: report.is_sound(),
        is_mountable: report.worst() < Some(Severity::Fatal),
        is_closed: report.clean,
        pages_read: report.pages_read,
        bytes_verified: report.bytes_verified,
        findings: report.findings.iter().map(MediumFinding::of).collect(),
    })
}

impl MediumFinding {
    fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity.name(),
            kind: format!("{:?}", finding.kind),
            place: finding.place.to_string(),
            object: finding.object.map(|object| object.0),
            range: finding.range.as_ref().map(|range| (range.start, range.end)),
            // The severity stands in a field of its own.
            message: finding.to_string().split_off(finding.severity.name().len() + 2),
        }
    }
}
