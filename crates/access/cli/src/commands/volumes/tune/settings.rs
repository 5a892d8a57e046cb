//! All settings that a volume keeps, and what changes each.

use crate::commands::files::ls::date;
use crate::commands::volumes::info;
use crate::commands::volumes::tune::setting::uuid_of;
use onode::human_size;
use onode_base::Timestamp;
use onode_fs::Tuning;
use serde::Serialize;

/// One setting.
#[derive(Debug, Serialize)]
pub struct SettingShown {
    pub name: &'static str,
    pub value: String,
    /// The command; nothing if nothing changes it.
    pub changed_by: Option<&'static str>,
}

/// The settings of a volume of which this is known.
pub fn all_of(about: &info::Report, tuning: &Tuning) -> Vec<SettingShown> {
    let shown = |name, value, changed_by| SettingShown { name, value, changed_by };
    let mut all = vec![
        shown("label", tuning.label.clone(), Some("`onode tune label=NAME`")),
        shown("uuid", uuid_of(&tuning.uuid), Some("`onode tune uuid=random`")),
        shown("mount-options", tuning.mount_options.clone(), Some("`onode tune mount-options=LIST`")),
        shown("size", human_size(about.total_bytes()), resized_by(about.device())),
    ];
    let compressed = if about.is_compressed() { "content may be" } else { "no" };
    all.push(shown("compressed", compressed.to_owned(), Some("`onode mount -o compress=`, `onode compress`")));
    if let Some(count) = about.snapshots() {
        all.push(shown("snapshots", count.to_string(), Some("`onode snapshot`")));
    }
    if about.device() == "scm" {
        // Where processes share it there can be none.
        let (value, other) = if about.snapshots().is_some() {
            ("on", "`onode tune exclusive=off`")
        } else {
            ("off", "`onode tune exclusive=on`")
        };
        all.push(shown("exclusive", value.to_owned(), Some(other)));
    }
    let created = Timestamp { seconds: about.created_seconds(), nanoseconds: 0 };
    all.extend([
        shown("device", format!("{}: {}", about.device(), about.summary()), device_changed_by(about.device())),
        shown("format", format!("version {}", about.format_version()), None),
        shown("inodes", about.inodes().to_owned(), None),
        shown("made", format!("{} UTC", date(created)), None),
    ]);
    all
}

/// What makes such a device larger.
fn resized_by(device: &str) -> Option<&'static str> {
    match device {
        "ram" => None,
        "scm" => Some("`onode spaces resize`"),
        _ => Some("`onode resize`"),
    }
}

/// What changes how such a device works.
fn device_changed_by(device: &str) -> Option<&'static str> {
    match device {
        "flash" | "flash+scm" => Some("`onode mount -o wear=POLICY`, `placement=` in its spec"),
        "tier" => Some("`onode divide`, `onode place`"),
        "pool" => Some("`onode pool`"),
        _ => None,
    }
}
