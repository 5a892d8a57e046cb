//! `onode list`: the volumes of this computer, mounted or not, and what udev asks of a device.

use crate::commands::state::{ask, health, silent};
use crate::commands::volumes::info;
use crate::location::{self, Consent};
use onode::devices::{self, FoundVolume};
use onode::{Class, Error, Result, human_size};
use onode_console::{Output, quote};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A mount whose server does not answer for 5 s is told as `onode health` does, with exit code 5.\n\n\
    Examples:\n  onode list                     all mounts, and all block devices that hold a volume\n  \
    onode list images/*.img        these images\n  onode list --udev /dev/sdb1    for a rule of udev, as blkid -o udev"
)]
pub struct Arguments {
    /// Look at these devices or images, and not at all that there are.
    devices: Vec<PathBuf>,
    /// Print what udev keeps of one device: ID_FS_TYPE, ID_FS_UUID, ID_FS_LABEL. Exit code 1 if it
    /// holds no volume.
    #[arg(long)]
    udev: bool,
}

/// A volume, or a part of one.
#[derive(Debug, Default, Serialize)]
struct Row {
    /// The device, image or spec.
    volume: String,
    label: String,
    uuid: String,
    total_bytes: Option<u64>,
    available_bytes: Option<u64>,
    mounted_at: Option<PathBuf>,
    /// Why nothing more is told.
    state: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    volumes: Vec<Row>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    if arguments.udev {
        return udev(&arguments.devices, output);
    }
    let mut volumes = Vec::new();
    let mut mounted = Vec::new();
    let mut code = 0;
    for mount in onode_fuse::all_mounts()?.into_iter().filter(|mount| mount.is_ours()) {
        let image = mount.image_path();
        let image = image.and_then(|path| path.canonicalize().ok());
        let is_wanted = |path: &PathBuf| path.canonicalize().ok() == image;
        if arguments.devices.is_empty() || arguments.devices.iter().any(is_wanted) {
            let source = mount.source.display().to_string();
            let row = if silent::answers(&mount.directory) {
                row(source, ask::fetch::<info::Report>(&mount.directory, "info"))
            } else {
                code = health::FAILED;
                Row { volume: source, state: Some(silent::state()), ..Row::default() }
            };
            volumes.push(Row { mounted_at: Some(mount.directory), ..row });
        }
        mounted.extend(image);
    }
    let found = match &arguments.devices[..] {
        [] => devices::volumes()?,
        devices => devices.iter().map(|path| on(path)).collect::<Result<_>>()?,
    };
    for FoundVolume { path, what } in found {
        if path.canonicalize().is_ok_and(|path| mounted.contains(&path)) {
            continue;
        }
        let opened = location::open(path.as_os_str(), true, Consent::default());
        let asked = opened.map(|volume| info::Report::of(&volume));
        let row = row(path.display().to_string(), asked);
        // A part of a volume cannot be opened by itself.
        let part = row.state.as_ref().filter(|_| what != "an Onode volume" && what != "an Onode image");
        let state = part.map(|_| what.to_owned()).or_else(|| row.state.clone());
        volumes.push(Row { state, ..row });
    }
    output.report(&Report { volumes })?;
    Ok(code)
}

/// What is on a device that somebody named.
fn on(path: &Path) -> Result<FoundVolume> {
    devices::volume_on(path)?.ok_or_else(|| {
        Error::new(Class::NotAnImage, format!("cannot list {}", path.display()), "it holds no volume of Onode")
    })
}

fn row(volume: String, asked: Result<info::Report>) -> Row {
    match asked {
        Ok(report) => Row {
            volume,
            label: report.label().to_owned(),
            uuid: report.uuid().to_owned(),
            total_bytes: Some(report.total_bytes()),
            available_bytes: Some(report.available_bytes()),
            ..Row::default()
        },
        Err(error) => Row { volume, state: Some(error.why), ..Row::default() },
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.volumes.is_empty() {
            return writeln!(
                f,
                "no volumes: nothing is mounted, and no block device that this user may read holds one"
            );
        }
        let told = |text: &str| if text.is_empty() { "-".to_owned() } else { quote::message(text).to_string() };
        let mut rows = vec![["volume", "label", "uuid", "size", "free", "mounted at"].map(str::to_owned)];
        for row in &self.volumes {
            let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), human_size);
            let at = row.mounted_at.as_ref().map(|at| at.display().to_string()).unwrap_or_default();
            let [size, free] = [row.total_bytes, row.available_bytes].map(size);
            rows.push([told(&row.volume), told(&row.label), told(&row.uuid), size, free, told(&at)]);
        }
        let widths: Vec<usize> =
            (0..6).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        let states = std::iter::once(None).chain(self.volumes.iter().map(|row| row.state.as_ref()));
        for (row, state) in rows.iter().zip(states) {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            match state {
                Some(why) => writeln!(f, "{}  {}", line.trim_end(), quote::message(why))?,
                None => writeln!(f, "{}", line.trim_end())?,
            }
        }
        Ok(())
    }
}

/// What udev keeps of a device.
#[derive(Debug, Serialize)]
struct UdevReport {
    uuid: String,
    label: String,
}

impl fmt::Display for UdevReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ID_FS_USAGE=filesystem\nID_FS_TYPE=onode")?;
        for (key, value) in
            [("UUID", &self.uuid), ("LABEL", &self.label)].into_iter().filter(|(_, value)| !value.is_empty())
        {
            writeln!(f, "ID_FS_{key}={}\nID_FS_{key}_ENC={}", safe(value), encoded(value))?;
        }
        Ok(())
    }
}

fn is_plain(one: char) -> bool {
    one.is_ascii_alphanumeric() || "#+-.:=@_".contains(one) || !one.is_ascii()
}

/// With an underscore for what could mean something in a rule.
fn safe(value: &str) -> String {
    value.chars().map(|one| if is_plain(one) { one } else { '_' }).collect()
}

/// As it stands in the name of a link below `/dev/disk`.
fn encoded(value: &str) -> String {
    value
        .chars()
        .map(|one| if is_plain(one) { one.to_string() } else { format!("\\x{:02x}", u32::from(one)) })
        .collect()
}

fn udev(devices: &[PathBuf], output: &Output) -> Result<u8> {
    let [device] = devices else {
        return Err(
            Error::new(Class::Usage, "cannot list for udev", "name one device").hint("onode list --udev /dev/sdb1")
        );
    };
    let Some(found) = devices::volume_on(device)? else { return Ok(1) };
    // What cannot be opened by itself, or not without a key, still is what it is.
    let report = match location::open(found.path.as_os_str(), true, Consent::default()) {
        Ok(volume) => {
            let report = info::Report::of(&volume);
            UdevReport { uuid: report.uuid().to_owned(), label: report.label().to_owned() }
        }
        Err(_) => UdevReport { uuid: String::new(), label: String::new() },
    };
    output.report(&report)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_for_udev_mean_nothing_to_it() {
        assert_eq!(
            (safe("My Photos/1").as_str(), encoded("My Photos/1").as_str()),
            ("My_Photos_1", "My\\x20Photos\\x2f1")
        );
        assert_eq!(encoded("a\"$b"), "a\\x22\\x24b");
        let report = UdevReport { uuid: "12-34".into(), label: String::new() };
        assert_eq!(
            report.to_string(),
            "ID_FS_USAGE=filesystem\nID_FS_TYPE=onode\nID_FS_UUID=12-34\nID_FS_UUID_ENC=12-34\n"
        );
    }
}
