//! What encryption and authentication tell: each block of content is verified by its tag, whatever
//! checksums the medium has, and an authenticated volume says what it did not store last.

use super::Found;
use crate::bar::bar;
use onode::keys::NOT_AUTHENTIC;
use onode::{MountOptions, Spec, Volume};
use onode_console::Output;
use onode_fs::volume::VOLUME;
use onode_object::{Durability, Error, ErrorKind, ObjectDevice, ObjectId, Result, Transaction};

/// Bytes that are read at once, and extents that are asked for.
const PIECE: usize = 1 << 20;
const AT_ONCE: usize = 256;

/// What was found in content that is encrypted.
#[derive(Default)]
pub(super) struct Sealed {
    pub(super) findings: Vec<Found>,
    /// Bytes that were read; `None` if the volume is not encrypted.
    pub(super) verified_bytes: Option<u64>,
    /// Objects whose content needs the key of a directory that is locked.
    pub(super) locked: u64,
}

impl Sealed {
    /// Reads all content of an encrypted volume.
    ///
    /// # Errors
    /// Those of the device but damage.
    pub(super) fn of(device: &dyn ObjectDevice, output: &Output) -> Result<Self> {
        let is_told = |error: &Error| error.kind == ErrorKind::Corrupt || error.kind == ErrorKind::NotFound;
        let decisions = match device.decisions(VOLUME) {
            Err(error) if is_told(&error) => return Ok(Self::default()),
            decisions => decisions?,
        };
        if !decisions.iter().any(|decision| decision.matter == "encryption") {
            return Ok(Self::default());
        }
        let bar = bar(Some(device.space().objects), "verifying {bar:30} {pos}/{len} objects {eta}", output);
        let mut it = Self { verified_bytes: Some(0), ..Self::default() };
        let (mut from, mut buffer) = (Some(ObjectId(0)), vec![0; PIECE]);
        while let Some(start) = from {
            let some = match device.list(start, AT_ONCE) {
                // The sums have told of it.
                Err(error) if is_told(&error) => break,
                some => some?,
            };
            from = some.last().and_then(|last| last.0.checked_add(1)).map(ObjectId);
            for object in some {
                match it.object(device, object, &mut buffer) {
                    Err(error) if error.kind == ErrorKind::KeyNeeded => it.locked += 1,
                    read => read?,
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(it)
    }

    /// Reads the content of an object; of each damaged range there is one finding.
    fn object(&mut self, device: &dyn ObjectDevice, object: ObjectId, buffer: &mut [u8]) -> Result<()> {
        let size = match device.stat(object) {
            // What is wrong with the names of files tells of it.
            Err(error) if error.kind == ErrorKind::Corrupt => return Ok(()),
            stat => stat?.size,
        };
        let mut offset = 0;
        while offset < size {
            let Some((start, length)) = device.extents(object, offset, 1)?.first().copied() else { break };
            let (start, end) = (start.max(offset), (start + length).min(size));
            let wanted = (end - start).min(PIECE as u64);
            offset = match device.read(object, start, &mut buffer[..wanted as usize]) {
                Ok(_) => {
                    self.verified_bytes = self.verified_bytes.map(|bytes| bytes + wanted);
                    start + wanted
                }
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    let damaged = error.range.clone().unwrap_or(start..start + wanted);
                    self.findings.push(Found {
                        object: Some(object.0),
                        range: Some((damaged.start, damaged.end)),
                        ..Found::error("content", "corrupt", error.detail)
                    });
                    damaged.end.max(start + 1)
                }
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}

/// Makes holes of content that is not what was sealed, durably; these were its findings.
///
/// # Errors
/// As [`Sealed::of`]; those of the change.
pub fn drop_damaged(device: &dyn ObjectDevice, output: &Output) -> Result<Vec<Found>> {
    let findings = Sealed::of(device, output)?.findings;
    for found in &findings {
        if let (Some(object), Some((start, end))) = (found.object, found.range) {
            let mut transaction = Transaction::new();
            transaction.punch(ObjectId(object), start, end - start);
            device.commit(transaction, Durability::Durable)?;
        }
    }
    Ok(findings)
}

/// What an authenticated volume found out when it was opened.
pub(super) fn in_sums(device: &dyn ObjectDevice) -> Option<Found> {
    let found = device.health().conditions.into_iter().find(|condition| condition.code == NOT_AUTHENTIC)?;
    Some(Found::error("authentication", &found.code, format!("{}; {}", found.text, found.remedy)))
}

/// What is not verified although all content of the volume was read, of what the medium cannot
/// verify: what only snapshots and clones have.
pub(super) fn left_unverified(spec: &Spec, of_medium: Vec<String>) -> Vec<String> {
    let is_content = |what: &String| what.starts_with("the content of files");
    let (content, mut left): (Vec<_>, Vec<_>) = of_medium.into_iter().partition(is_content);
    let options = MountOptions { read_only: true, accept_loss: true, ..MountOptions::default() };
    let has_others = |volume: Volume| {
        volume.snapshots().is_some_and(|all| !all.list().is_empty())
            || volume.clones().is_some_and(|all| !all.list().is_empty())
    };
    if !content.is_empty() && Volume::open(spec, options).is_ok_and(has_others) {
        left.push("what only snapshots and clones have: this kind of device has no checksums of it".to_owned());
    }
    left
}
