//! Check and repair of memory, without a mount of its files.

use crate::error::{Class, Error, Result};
use crate::open::access::Access;
use crate::open::medium::{MediumFinding, MediumRepaired, MediumReport, look};
use crate::open::scm::memory;
use crate::spec::Spec;
use crate::spec::memory::Memory;
use onode_object::ObjectDevice;
use std::path::Path;

/// Recovers a private copy of the memory and has blocks, index and log compared.
pub(crate) fn check(
    spec: &Spec,
    memory: &Memory,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MediumReport> {
    progress(0, 1);
    let finding = |severity, object: Option<u64>, message: String| {
        let (kind, place) = ("Damaged".to_owned(), path.display().to_string());
        MediumFinding { severity, kind, place, object, range: None, message }
    };
    let mut report = MediumReport { is_closed: true, is_mountable: true, ..MediumReport::default() };
    let mut missing = None;
    match look(&mut missing, |access| memory::mount(spec, memory, path, access)) {
        Ok(device) => {
            report.is_closed = device.was_closed();
            report.unverified.push("the content of files: this kind of device has no checksums of it".to_owned());
            report.findings.extend(missing.map(|why| finding("error", None, why)));
            report.findings.extend(device.mended().into_iter().map(|what| finding("warning", None, what)));
            report.findings.extend(device.verify().err().map(|what| finding("error", None, what)));
            let concerned = device.objects_of_losses().into_iter();
            let files = concerned.map(|id| finding("error", Some(id.0), format!("{id} may lack what was lost")));
            report.findings.extend(files);
        }
        Err(error) if error.class == Class::Damaged => {
            report.findings.push(finding("fatal", None, error.why));
            report.is_mountable = false;
        }
        Err(error) => return Err(error),
    }
    progress(1, 1);
    report.is_sound = report.findings.iter().all(|finding| finding.severity == "warning");
    Ok(report)
}

/// A mount makes everything anew that is not in the log. Where the log lacks something, with
/// consent, it says again what is left.
pub(crate) fn repair(spec: &Spec, memory: &Memory, path: &Path, access: Access) -> Result<MediumRepaired> {
    let device = memory::mount(spec, memory, path, access)?;
    let losses = device.losses();
    let losers = device.objects_of_losses().iter().map(|object| object.0).collect();
    let mut done = MediumRepaired { actions: device.mended(), lost: !losses.is_empty(), losers };
    done.actions.extend(losses.into_iter().map(|what| format!("dropped what cannot be read: {what}")));
    device.close().map_err(|error| Error::device(format!("cannot repair {spec}"), &error))?;
    Ok(done)
}
