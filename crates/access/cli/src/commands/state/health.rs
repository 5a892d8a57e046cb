//! `onode health`: whether volumes are well, in one word, one line for each thing that is wrong,
//! and one exit code.

use crate::commands::state::{ask, silent};
use crate::location::{self, Consent};
use crate::watch::health::HealthReport;
use crate::watch::record;
use onode::{Class, Condition, Health, Result, Severity};
use onode_console::Output;
use onode_fuse::Mounted;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

/// Exit codes that no class of errors has.
const NOTICE: u8 = 3;
const DEGRADED: u8 = 4;
pub const FAILED: u8 = 5;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 healthy; 3 notice: something happened and is over; 4 degraded: all data is there, but redundancy, speed\n\
    or room is less than it should be; 5 failed: data is lost or damaged, or nothing can be changed. Of several volumes the\n\
    worst counts. Any other code: it could not be told (see `onode --help`).\n\n\
    Each condition has a code that does not change, for example read-only, write-back-failed, last-unmount-failed,\n\
    last-mount-killed, fast-disk-away, server-silent, request-hangs. It is not `onode check`: nothing is read to verify it.\n\n\
    A mount tells of conditions in its log, in a file of metrics (`onode mount --metrics FILE`) and by a program\n\
    (`onode mount --hook PROGRAM`), which is run for each one that is degraded or failed with ONODE_CODE, ONODE_SEVERITY,\n\
    ONODE_TEXT, ONODE_REMEDY, ONODE_MOUNT and ONODE_VOLUME in its environment, and ended after a minute.\n\n\
    Examples:\n  onode health                  all mounts\n  onode health /mnt\n  onode health disk.img         not mounted, or wherever it is\n  \
    onode health --json --all"
)]
pub struct Arguments {
    /// The directory of a mount, or the image or device spec. Default: all mounts.
    #[arg(value_name = "DIR|IMAGE", conflicts_with = "all")]
    target: Option<OsString>,
    /// All mounts on this machine.
    #[arg(long)]
    all: bool,
    /// Only ask the mount, and say nothing.
    #[arg(long, hide = true, requires = "target")]
    probe: bool,
}

/// The health of volumes.
#[derive(Debug, Serialize)]
struct Report {
    state: String,
    volumes: Vec<ConditionRow>,
}

#[derive(Debug, Serialize)]
struct ConditionRow {
    volume: String,
    /// Nothing if it is not mounted.
    directory: Option<String>,
    #[serde(flatten)]
    health: HealthReport,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    if let Some(target) = arguments.target.as_ref().filter(|_| arguments.probe) {
        let directory = Path::new(target);
        return Ok(u8::from(onode_fuse::is_dead(directory) || ask::health_of(directory).is_err()));
    }
    let mut unknown = None;
    let volumes = match &arguments.target {
        Some(target) => vec![of_target(target)?],
        None => {
            let mut rows = Vec::new();
            for mounted in onode_fuse::all_mounts()?.iter().filter(|mounted| mounted.is_ours()) {
                match of_mount(mounted) {
                    Ok(row) => rows.push(row),
                    Err(error) => {
                        output.error(&error);
                        unknown = Some(error.class.exit_code());
                    }
                }
            }
            rows
        }
    };
    let worst = volumes.iter().map(|row| &row.health).max_by_key(|health| health.rank()).cloned().unwrap_or_default();
    output.report(&Report { state: worst.state.clone(), volumes })?;
    Ok(match worst.rank() {
        0 => unknown.unwrap_or(0),
        1 => unknown.unwrap_or(NOTICE),
        2 => DEGRADED,
        _ => FAILED,
    })
}

fn of_target(target: &OsStr) -> Result<ConditionRow> {
    let path = Path::new(target);
    if let Some(mounted) = silent::mount_named(path)? {
        return of_mount(&mounted);
    }
    // A dead mount is no directory to anybody who asks.
    if path.is_dir() || onode_fuse::is_dead(path) {
        return of_mount(&onode_fuse::our_mount_at(path, format!("cannot tell the health of {}", path.display()))?);
    }
    let spec = location::spec(target)?;
    if let Some(mounted) = onode_fuse::mount_of(&spec) {
        return of_mount(&mounted);
    }
    let row = |health: Health| ConditionRow { volume: spec.to_string(), directory: None, health: health.into() };
    match location::open(target, true, Consent::default()) {
        Ok(volume) => Ok(row(record::health_at_rest(&volume))),
        // That it cannot be used any more is the answer, not an obstacle to one.
        Err(error) if matches!(error.class, Class::Damaged | Class::Loss) => {
            let code = if error.class == Class::Loss { "data-missing" } else { "damaged" };
            let condition = Condition::new(code, Severity::Failed, error.to_string());
            let mut conditions = vec![condition.remedy(error.hint.unwrap_or_default())];
            conditions.extend(record::past_conditions(spec.image_path()));
            Ok(row(Health::new(conditions)))
        }
        Err(error) => Err(error),
    }
}

fn of_mount(mounted: &Mounted) -> Result<ConditionRow> {
    let directory = mounted.directory.as_path();
    let health = if !silent::answers(directory) {
        let condition = Condition::new(silent::CODE, Severity::Failed, silent::told());
        Health::new(vec![condition.remedy(silent::REMEDY)]).into()
    } else if onode_fuse::is_dead(directory) {
        let condition = Condition::new("server-gone", Severity::Failed, "the server of the mount was killed")
            .remedy(format!("onode umount {}; the next mount goes on with what was synced", directory.display()));
        Health::new(vec![condition]).into()
    } else {
        ask::health_of(directory)?
    };
    let directory = Some(directory.display().to_string());
    Ok(ConditionRow { volume: mounted.source.to_string_lossy().into_owned(), directory, health })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.volumes.is_empty() {
            return write!(f, "no volume is mounted");
        }
        for ConditionRow { volume, directory, health } in &self.volumes {
            let place = directory.as_ref().map_or_else(String::new, |directory| format!(" at {directory}"));
            writeln!(f, "{}: {volume}{place}", health.state)?;
            write!(f, "{}", health.lines("  "))?;
        }
        Ok(())
    }
}
