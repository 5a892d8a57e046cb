//! How programs reach limits through a mount: attributes that no listing shows.
//!
//! [`QUOTA`] of the topmost directory has a line for each limit, that of another directory its own
//! one. [`QUOTA_FROM`] with a number behind it has those after so many, for what does not fit one
//! value. [`QUOTA_COUNT`] has `OWNER BYTES FILES` while a new limit is counted, and is not there
//! otherwise. To set [`QUOTA`] of the topmost directory, or of that which is meant, to `begin OWNER
//! WHOM BYTES FILES`, `step OWNER FILES`, `stop OWNER` or `remove WHOM` does that; `WHOM` is
//! `directory`, `user UID` or `group GID`, and `-` is no limit.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::quota::{Quota, QuotaLimits, QuotaSubject, QuotaUse};
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use std::fmt::Write;

/// The attribute with limits.
pub const QUOTA: &str = "onode.quota";
/// The beginning of the name of that with more of them.
pub const QUOTA_FROM: &str = "onode.quota.from.";
/// The attribute with what was counted of a new one.
pub const QUOTA_COUNT: &str = "onode.quota.count";

/// No more lines begin behind so many bytes of a value.
const VALUE_BYTES: usize = 32 << 10;

pub(crate) fn is_ours(name: &[u8]) -> bool {
    name.strip_prefix(QUOTA.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

/// A limit as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLine {
    /// The limit with what is used of it.
    pub quota: Quota,
    /// The path of a directory; empty for users and groups.
    pub path: String,
}

impl QuotaLine {
    fn to_text(&self) -> String {
        let Quota { subject, limits, used } = self.quota;
        let whom = match subject {
            QuotaSubject::Directory(number) => format!("directory {}", number.0),
            QuotaSubject::User(uid) => format!("user {uid}"),
            QuotaSubject::Group(gid) => format!("group {gid}"),
        };
        let path = self.path.replace('\\', "\\\\").replace('\n', "\\n");
        format!("{whom} {} {} {} {} {path}\n", shown(limits.bytes), shown(limits.files), used.bytes, used.files)
    }

    /// What such a line says.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(7, ' ');
        let (whom, number) = (words.next()?, words.next()?);
        let subject = match whom {
            "directory" => QuotaSubject::Directory(InodeNumber(number.parse().ok()?)),
            "user" => QuotaSubject::User(number.parse().ok()?),
            "group" => QuotaSubject::Group(number.parse().ok()?),
            _ => return None,
        };
        let limits = QuotaLimits { bytes: limit(words.next()?)?, files: limit(words.next()?)? };
        let used = QuotaUse { bytes: words.next()?.parse().ok()?, files: words.next()?.parse().ok()? };
        let escaped = words.next().unwrap_or_default();
        let parts: Vec<String> = escaped.split("\\\\").map(|part| part.replace("\\n", "\n")).collect();
        Some(Self { quota: Quota { subject, limits, used }, path: parts.join("\\") })
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

fn limit(word: &str) -> Option<Option<u64>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}

/// What the attribute asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRequest {
    /// A new limit.
    Begin {
        /// Who makes the steps.
        owner: u64,
        /// What it is for.
        subject: QuotaSubject,
        /// How much there may be.
        limits: QuotaLimits,
    },
    /// So many files more are counted.
    Step {
        /// Who makes the steps.
        owner: u64,
        /// How many.
        files: usize,
    },
    /// Nothing comes of a new limit.
    Stop {
        /// Who made the steps.
        owner: u64,
    },
    /// No limit any more.
    Remove {
        /// What it is for.
        subject: QuotaSubject,
    },
}

impl QuotaRequest {
    /// As the attribute takes it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let whom = |subject| match subject {
            QuotaSubject::Directory(_) => "directory".to_owned(),
            QuotaSubject::User(uid) => format!("user {uid}"),
            QuotaSubject::Group(gid) => format!("group {gid}"),
        };
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match self {
            Self::Begin { owner, subject, limits } => {
                let (bytes, files) = (shown(limits.bytes), shown(limits.files));
                write!(text, "begin {owner} {} {bytes} {files}", whom(*subject))
            }
            Self::Step { owner, files } => write!(text, "step {owner} {files}"),
            Self::Stop { owner } => write!(text, "stop {owner}"),
            Self::Remove { subject } => write!(text, "remove {}", whom(*subject)),
        };
        text
    }

    /// What a text asks for that the attribute of `number` is set to.
    fn parse(text: &str, number: InodeNumber) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let request = match words.next()? {
            "begin" => Self::Begin {
                owner: words.next()?.parse().ok()?,
                subject: whom(&mut words, number)?,
                limits: QuotaLimits { bytes: limit(words.next()?)?, files: limit(words.next()?)? },
            },
            "step" => Self::Step { owner: words.next()?.parse().ok()?, files: words.next()?.parse().ok()? },
            "stop" => Self::Stop { owner: words.next()?.parse().ok()? },
            "remove" => Self::Remove { subject: whom(&mut words, number)? },
            _ => return None,
        };
        words.next().is_none().then_some(request)
    }
}

fn whom<'a>(words: &mut impl Iterator<Item = &'a str>, number: InodeNumber) -> Option<QuotaSubject> {
    Some(match words.next()? {
        "directory" => QuotaSubject::Directory(number),
        "user" => QuotaSubject::User(words.next()?.parse().ok()?),
        "group" => QuotaSubject::Group(words.next()?.parse().ok()?),
        _ => return None,
    })
}

impl FileSystem {
    /// A limit with the path of its directory.
    ///
    /// # Errors
    /// Those of the device.
    pub fn quota_line(&self, quota: Quota) -> Result<QuotaLine> {
        let path = match quota.subject {
            QuotaSubject::Directory(number) => String::from_utf8_lossy(&self.path_of_directory(number)?).into_owned(),
            QuotaSubject::User(_) | QuotaSubject::Group(_) => String::new(),
        };
        Ok(QuotaLine { quota, path })
    }

    pub(crate) fn quota_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Vec<u8>> {
        let none = || Error::of(ErrorKind::NoAttribute, number, "");
        let name = str::from_utf8(name).map_err(|_| none())?;
        if name == QUOTA_COUNT {
            let state = &*self.lock();
            let forming = state.quotas.forming.as_ref().ok_or_else(none)?;
            let QuotaUse { bytes, files } = forming.entry.record.used;
            return Ok(format!("{} {bytes} {files}", forming.owner).into_bytes());
        }
        let position = match name.strip_prefix(QUOTA_FROM) {
            Some(position) => position.parse().map_err(|_| none())?,
            None if name == QUOTA => 0,
            None => return Err(none()),
        };
        let is_wanted = |quota: &Quota| number == InodeNumber::ROOT || quota.subject == QuotaSubject::Directory(number);
        let mut text = String::new();
        for quota in self.quotas()?.into_iter().filter(is_wanted).skip(position) {
            if text.len() > VALUE_BYTES {
                break;
            }
            text.push_str(&self.quota_line(quota)?.to_text());
        }
        Ok(text.into_bytes())
    }

    pub(crate) fn set_quota_xattr(
        &self,
        caller: &Caller,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.check_owner(caller, InodeNumber::ROOT)?;
        let request = str::from_utf8(value).ok().filter(|_| name == QUOTA.as_bytes());
        let request = request.and_then(|text| QuotaRequest::parse(text, number));
        match request.ok_or_else(|| Error::of(ErrorKind::Invalid, number, "it is none of begin, step, stop, remove"))? {
            QuotaRequest::Begin { owner, subject, limits } => self.begin_quota(owner, subject, limits).map(drop),
            QuotaRequest::Step { owner, files } => self.step_quota(owner, files).map(drop),
            QuotaRequest::Stop { owner } => {
                self.stop_quota(owner);
                Ok(())
            }
            QuotaRequest::Remove { subject } => self.remove_quota(subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_requests_come_back() {
        let number = InodeNumber(70);
        let limits = QuotaLimits { bytes: Some(1 << 30), files: None };
        let used = QuotaUse { bytes: 7, files: 3 };
        for (subject, path) in [
            (QuotaSubject::Directory(number), "/a b\\n\nc\\"),
            (QuotaSubject::User(1000), ""),
            (QuotaSubject::Group(7), ""),
        ] {
            let line = QuotaLine { quota: Quota { subject, limits, used }, path: path.to_owned() };
            let text = line.to_text();
            assert_eq!(text.lines().count(), 1);
            assert_eq!(QuotaLine::parse(text.trim_end_matches('\n')), Some(line));
            for request in [
                QuotaRequest::Begin { owner: 5, subject, limits },
                QuotaRequest::Step { owner: 5, files: 100 },
                QuotaRequest::Stop { owner: 5 },
                QuotaRequest::Remove { subject },
            ] {
                assert_eq!(QuotaRequest::parse(&request.to_text(), number), Some(request));
            }
        }
        for wrong in ["", "begin 1 user x - -", "step 1", "remove nobody", "stop 1 2"] {
            assert_eq!(QuotaRequest::parse(wrong, number), None, "{wrong}");
        }
        assert!(is_ours(b"onode.quota") && is_ours(b"onode.quota.count") && !is_ours(b"onode.quotas"));
    }
}
