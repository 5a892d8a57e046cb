//! `onode df`: how full volumes are, mounted or not.

use crate::commands::state::{ask, health, silent};
use crate::location::{self, Consent};
use onode::{Error, Result, Volume, human_size};
use onode_console::Output;
use onode_console::quote::{self, Style};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Available is what can still be written for certain; directories count as files. A volume that\n\
    cannot be asked is told, the others are shown, and the exit code is that of the first one. A mount\n\
    whose server does not answer for 5 s is such a one, with exit code 5, as `onode health` has it.\n\n\
    Examples:\n  onode df                       all mounts\n  \
    onode df disk.img /mnt         not mounted, or wherever it is\n  \
    onode df --bytes disk.img      exact numbers\n  onode df --json disk.img"
)]
pub struct Arguments {
    /// Images, device specs or directories of mounts. Default: all mounts.
    #[arg(value_name = "DIR|IMAGE")]
    volumes: Vec<OsString>,
    /// Show exact numbers of bytes.
    #[arg(short, long)]
    bytes: bool,
    #[command(flatten)]
    consent: Consent,
}

/// How full one volume is.
#[derive(Debug, Default, Serialize)]
struct Fill {
    volume: String,
    /// Nothing if it is not mounted.
    directory: Option<String>,
    size_bytes: u64,
    used_bytes: u64,
    available_bytes: u64,
    files: u64,
    /// Why there are no figures.
    state: Option<String>,
    #[serde(skip)]
    is_exact: bool,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(Vec<Fill>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let mut targets = arguments.volumes.clone();
    if targets.is_empty() {
        let ours = onode_fuse::all_mounts()?.into_iter().filter(|mounted| mounted.is_ours());
        targets = ours.map(|mounted| mounted.directory.into_os_string()).collect();
    }
    let mut report = Report(Vec::new());
    let mut code = 0;
    for target in &targets {
        match of(target, arguments) {
            Ok(fill) => {
                if fill.state.is_some() && code == 0 {
                    code = health::FAILED;
                }
                report.0.push(fill);
            }
            Err(error) => {
                output.error(&error);
                code = if code == 0 { error.class.exit_code() } else { code };
            }
        }
    }
    if code == 0 || !report.0.is_empty() {
        output.report(&report)?;
    }
    Ok(code)
}

fn of(target: &OsStr, arguments: &Arguments) -> Result<Fill> {
    let mounted = match silent::mount_named(Path::new(target))? {
        Some(mounted) => Some(mounted),
        None if !Path::new(target).is_dir() => location::spec(target).ok().and_then(|spec| onode_fuse::mount_of(&spec)),
        None => None,
    };
    if let Some(mounted) = mounted.filter(|mounted| !silent::answers(&mounted.directory)) {
        return Ok(Fill {
            volume: mounted.source.to_string_lossy().into_owned(),
            directory: Some(mounted.directory.display().to_string()),
            state: Some(silent::state()),
            ..Fill::default()
        });
    }
    let fill = ask::ask(target, arguments.consent, of_volume, of_mount)?;
    Ok(Fill { is_exact: arguments.bytes, ..fill })
}

fn of_volume(volume: &Volume) -> Fill {
    let space = volume.files().statfs();
    let bytes = |blocks: u64| blocks.saturating_mul(u64::from(space.block_bytes));
    Fill {
        volume: volume.spec().to_string(),
        size_bytes: bytes(space.blocks),
        used_bytes: bytes(space.blocks.saturating_sub(space.blocks_free)),
        available_bytes: bytes(space.blocks_free),
        files: space.files.saturating_sub(space.files_free),
        ..Fill::default()
    }
}

/// The kernel asks the mount the same.
fn of_mount(directory: &Path) -> Result<Fill> {
    let space = rustix::fs::statvfs(directory).map_err(|errno| {
        let told = errno.into();
        let error = Error::host(format!("cannot show {}", directory.display()), &told);
        match onode_fuse::is_disconnected(&told) {
            true => error.hint(format!("take the dead mount away: onode umount {}", directory.display())),
            false => error,
        }
    })?;
    let source = onode_fuse::mounted_at(directory)?.map(|mounted| mounted.source);
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Ok(Fill {
        volume: source.map(|source| source.to_string_lossy().into_owned()).unwrap_or_default(),
        directory: Some(directory.display().to_string()),
        size_bytes: bytes(space.f_blocks),
        used_bytes: bytes(space.f_blocks.saturating_sub(space.f_bfree)),
        available_bytes: bytes(space.f_bavail),
        files: space.f_files.saturating_sub(space.f_ffree),
        ..Fill::default()
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "no volume is mounted");
        }
        writeln!(f, "{:>12} {:>12} {:>12} {:>5} {:>10}  volume", "size", "used", "available", "use", "files")?;
        for fill in &self.0 {
            let size = |bytes: u64| if fill.is_exact { bytes.to_string() } else { human_size(bytes) };
            let [whole, used, left] = [fill.size_bytes, fill.used_bytes, fill.available_bytes].map(size);
            // Rounded up: a volume that is not full to the last byte may still be full.
            let percent = (u128::from(fill.used_bytes) * 100).div_ceil(u128::from(fill.size_bytes.max(1)));
            let shown = |text: &str| quote::name(text.as_bytes(), Style::Shell);
            let place = fill.directory.as_ref().map_or_else(String::new, |at| format!(" at {}", shown(at)));
            let volume = shown(&fill.volume);
            if let Some(why) = &fill.state {
                writeln!(
                    f,
                    "{:>12} {:>12} {:>12} {:>5} {:>10}  {volume}{place}  {}",
                    "-",
                    "-",
                    "-",
                    "-",
                    "-",
                    quote::message(why)
                )?;
                continue;
            }
            writeln!(f, "{whole:>12} {used:>12} {left:>12} {percent:>4}% {:>10}  {volume}{place}", fill.files)?;
        }
        Ok(())
    }
}
