//! What is shown of limits.

use super::whom::{group_name, user_name};
use onode::human_size;
use onode_console::quote;
use onode_fs::{QuotaLine, QuotaSubject};
use serde::Serialize;
use std::fmt;

/// One limit.
#[derive(Debug, Serialize)]
pub struct QuotaShown {
    /// `directory`, `user` or `group`.
    kind: &'static str,
    /// Of a directory its path, else the name.
    name: String,
    /// The number of the user or group, of a directory its inode number.
    id: u64,
    used_bytes: u64,
    /// Nothing if there is no limit.
    limit_bytes: Option<u64>,
    used_files: u64,
    limit_files: Option<u64>,
}

impl QuotaShown {
    pub fn of(line: &QuotaLine) -> Self {
        let (kind, name, id) = match line.quota.subject {
            QuotaSubject::Directory(number) => ("directory", line.path.clone(), number.0),
            QuotaSubject::User(uid) => ("user", user_name(uid), u64::from(uid)),
            QuotaSubject::Group(gid) => ("group", group_name(gid), u64::from(gid)),
        };
        Self {
            kind,
            name,
            id,
            used_bytes: line.quota.used.bytes,
            limit_bytes: line.quota.limits.bytes,
            used_files: line.quota.used.files,
            limit_files: line.quota.limits.files,
        }
    }
}

/// Limits of a volume.
#[derive(Debug, Serialize)]
pub struct Report {
    pub target: String,
    pub limits: Vec<QuotaShown>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.limits.is_empty() {
            return writeln!(f, "no limits");
        }
        writeln!(f, "{:>12} {:>12} {:>5} {:>12} {:>12} {:>5}  of", "bytes", "limit", "use", "files", "limit", "use")?;
        let percent = |used: u64, limit: Option<u64>| match limit {
            // Rounded up: what is not full to the last may still be full.
            Some(limit) => format!("{}%", (u128::from(used) * 100).div_ceil(u128::from(limit.max(1)))),
            None => "-".to_owned(),
        };
        for one in &self.limits {
            let limit_bytes = one.limit_bytes.map_or_else(|| "-".to_owned(), human_size);
            let limit_files = one.limit_files.map_or_else(|| "-".to_owned(), |files| files.to_string());
            let of = if one.kind == "directory" { "" } else { one.kind };
            let gap = if of.is_empty() { "" } else { " " };
            writeln!(
                f,
                "{:>12} {limit_bytes:>12} {:>5} {:>12} {limit_files:>12} {:>5}  {of}{gap}{}",
                human_size(one.used_bytes),
                percent(one.used_bytes, one.limit_bytes),
                one.used_files,
                percent(one.used_files, one.limit_files),
                quote::message(&one.name),
            )?;
        }
        Ok(())
    }
}
