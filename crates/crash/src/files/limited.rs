//! Files that are counted: a limit of all files holds from the beginning, another one comes and
//! goes. After each crash each is there with exactly what it counts, or not at all.

use crate::files::state::FileState;
use crate::violation::{Violation, unexpected};
use onode_fs::check::check;
use onode_fs::{ErrorKind, FileSystem, InodeNumber, QuotaLimits, QuotaSubject};

/// The name of the workload.
pub const NAME: &str = "limited";
/// Its calls.
pub const STEPS: u32 = 30;

const ALL: QuotaSubject = QuotaSubject::Directory(InodeNumber::ROOT);
/// All files are of that group, too.
const GROUP: QuotaSubject = QuotaSubject::Group(0);

/// More than the workload ever has: only the counting is looked at.
const LIMITS: QuotaLimits = QuotaLimits { bytes: Some(1 << 40), files: Some(1 << 40) };

/// Sets the limit that stays.
///
/// # Errors
/// `N7` if it cannot be set.
pub fn begin(fs: &FileSystem) -> Result<(), Violation> {
    if !fs.offers_quotas() {
        return Ok(());
    }
    fs.set_quota(ALL, LIMITS).map_err(unexpected("set a limit"))
}

/// Sets the other limit, or removes it if it is there.
///
/// # Errors
/// `N7` if neither is done for another reason than space.
pub fn change(fs: &FileSystem) -> Result<(), Violation> {
    if !fs.offers_quotas() {
        return Ok(());
    }
    let done = match fs.remove_quota(GROUP) {
        Err(error) if error.kind == ErrorKind::NotFound => fs.set_quota(GROUP, LIMITS),
        other => other,
    };
    match done {
        // A full volume has room for no other record.
        Err(error) if error.kind == ErrorKind::NoSpace => Ok(()),
        other => other.map_err(unexpected("set or remove a limit")),
    }
}

/// That all limits count what there is, by a check and by the state.
///
/// # Errors
/// `N3` if one does not.
pub fn verify(fs: &FileSystem, state: &FileState) -> Result<(), Violation> {
    let wrong = |text: String| Err(Violation::new("N3", text));
    let findings = check(fs.device().as_ref()).map_err(unexpected("check"))?.findings;
    if !findings.is_empty() {
        return wrong(format!("a check finds {findings:?}"));
    }
    let quotas = fs.quotas().map_err(unexpected("tell the limits"))?;
    if fs.offers_quotas() && quotas.iter().all(|quota| quota.subject != ALL) {
        return wrong("the limit of all files is gone".into());
    }
    let files = state.files.len() as u64;
    match quotas.iter().find(|quota| quota.used.files != files || quota.limits != LIMITS) {
        Some(quota) => wrong(format!("{quota:?} for {files} files")),
        None => Ok(()),
    }
}
