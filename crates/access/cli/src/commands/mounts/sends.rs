//! Streams that a mount sends: `onode send` asks for them piece by piece, as for other views.
//!
//! A view is asked for with a number that the asking program draws, the number of the piece, and
//! the numbers of the snapshots. A piece can be asked for twice in a row.

use crate::commands::state::ask::{self, VIEW_BYTES_MAX};
use onode::{Class, Error, Result, SendStream, SnapshotId, Volume};
use onode_base::sync::{Mutex, rank};
use onode_fuse::SEND_VIEW;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Streams at a time; the one that nobody has asked for the longest time gives way to another.
const SENDS_MAX: usize = 8;

const BYTES: u8 = 0;
const END: u8 = 1;
const FAILED: u8 = 2;

/// A piece of a stream as it is handed over.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamPart {
    Bytes(Vec<u8>),
    End,
    Failed(Failure),
}

/// An error on its way from the mount to who asks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    class: u8,
    what: String,
    why: String,
    hint: Option<String>,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let class = Class::ALL.into_iter().find(|class| class.exit_code() == failure.class).unwrap_or(Class::General);
        let error = Self::new(class, failure.what, failure.why);
        match failure.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl StreamPart {
    fn failed(error: &Error) -> Self {
        let (what, why, hint) = (error.what.clone(), error.why.clone(), error.hint.clone());
        Self::Failed(Failure { class: error.class.exit_code(), what, why, hint })
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => [&[BYTES], bytes.as_slice()].concat(),
            Self::End => vec![END],
            Self::Failed(failure) => {
                let mut value = vec![FAILED];
                value.extend(serde_json::to_vec(failure).unwrap_or_default());
                value
            }
        }
    }

    fn decode(value: &[u8]) -> Option<Self> {
        match value.split_first()? {
            (&BYTES, bytes) => Some(Self::Bytes(bytes.to_vec())),
            (&END, []) => Some(Self::End),
            (&FAILED, text) => serde_json::from_slice(text).ok().map(Self::Failed),
            _ => None,
        }
    }

    /// Asks the mount at a directory for a piece.
    ///
    /// # Errors
    /// If there is no answer; what the mount says instead of a piece is none.
    pub fn fetch(directory: &Path, asked: &str) -> Result<Self> {
        let what = format!("cannot send {}", directory.display());
        let value = ask::value_of(&what, directory, &format!("{SEND_VIEW}{asked}"))?;
        let malformed = || Error::new(Class::General, &what, "its server says what this version does not understand");
        Self::decode(&value).ok_or_else(malformed)
    }
}

/// What a piece is asked for by.
pub fn asked_of(session: u64, sequence: u64, id: SnapshotId, from: Option<SnapshotId>) -> String {
    let from = from.map_or_else(String::new, |from| format!(".{from}"));
    format!("{session}.{sequence}.{id}{from}")
}

/// What is asked for.
struct Asked {
    session: u64,
    sequence: u64,
    id: SnapshotId,
    from: Option<SnapshotId>,
}

impl Asked {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let session = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        let id = SnapshotId::parse(parts.next()?)?;
        let from = parts.next().map(SnapshotId::parse);
        let is_whole = parts.next().is_none();
        (is_whole && from != Some(None)).then_some(Self { session, sequence, id, from: from.flatten() })
    }
}

/// A stream, and the piece that was handed over last.
struct Send {
    stream: SendStream,
    next: u64,
    last: Vec<u8>,
}

impl Send {
    fn begin(volume: &Volume, asked: &Asked) -> Result<Self> {
        let gone =
            || Error::new(Class::NotFound, format!("cannot send from {}", volume.spec()), "the snapshot is gone");
        let all = volume.snapshots().ok_or_else(gone)?;
        let named = |id| all.identified(id).map(|one| one.name).ok_or_else(gone);
        let (name, from) = (named(asked.id)?, asked.from.map(named).transpose()?);
        let stream = all.send(&name, from.as_deref())?;
        Ok(Self { stream, next: 0, last: Vec::new() })
    }

    fn piece(&mut self, sequence: u64) -> Vec<u8> {
        if self.next == sequence {
            let mut bytes = vec![0; VIEW_BYTES_MAX - 1];
            let part = match self.stream.fill(&mut bytes) {
                Ok(0) => StreamPart::End,
                Ok(count) => {
                    bytes.truncate(count);
                    StreamPart::Bytes(bytes)
                }
                Err(error) => StreamPart::failed(&error),
            };
            self.last = part.encode();
            self.next += 1;
        } else if self.next != sequence + 1 {
            return lost().encode();
        }
        self.last.clone()
    }
}

fn lost() -> StreamPart {
    let error = Error::new(Class::General, "cannot go on sending", "the mount gave the stream up: nobody asked for it")
        .hint("send it again");
    StreamPart::failed(&error)
}

type Shared = Arc<Mutex<Send, rank::MountSend>>;

/// The streams of a mount with the numbers that those drew who ask, the one that was asked for last
/// at the end.
#[derive(Default)]
pub struct Sends {
    all: Mutex<VecDeque<(u64, Shared)>, rank::MountSends>,
}

impl Sends {
    /// The piece that is asked for; `None` for what asks for none.
    pub fn piece(&self, volume: &Volume, asked: &str) -> Option<Vec<u8>> {
        let asked = Asked::parse(asked)?;
        let send = match self.of(volume, &asked) {
            Ok(Some(send)) => send,
            Ok(None) => return Some(lost().encode()),
            Err(error) => return Some(StreamPart::failed(&error).encode()),
        };
        let piece = send.lock().piece(asked.sequence);
        if piece.first() == Some(&FAILED) {
            self.all.lock().retain(|(session, _)| *session != asked.session);
        }
        Some(piece)
    }

    fn of(&self, volume: &Volume, asked: &Asked) -> Result<Option<Shared>> {
        let known = {
            let mut all = self.all.lock();
            let position = all.iter().position(|(session, _)| *session == asked.session);
            position.and_then(|position| all.remove(position)).inspect(|one| all.push_back(one.clone()))
        };
        if known.is_some() || asked.sequence > 0 {
            return Ok(known.map(|(_, send)| send));
        }
        let send = Arc::new(Mutex::new(Send::begin(volume, asked)?));
        let mut all = self.all.lock();
        if all.len() >= SENDS_MAX {
            all.pop_front();
        }
        all.push_back((asked.session, Arc::clone(&send)));
        Ok(Some(send))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_as_they_went() {
        let error = Error::new(Class::InUse, "cannot", "so").hint("wait");
        let failed = StreamPart::failed(&error);
        for part in [StreamPart::Bytes(vec![1, 2, 3]), StreamPart::Bytes(vec![]), StreamPart::End, failed] {
            assert_eq!(StreamPart::decode(&part.encode()), Some(part));
        }
        let StreamPart::Failed(failure) = StreamPart::failed(&error) else { panic!("it is a failure") };
        assert_eq!(Error::from(failure).to_string(), error.to_string());
        assert_eq!(StreamPart::decode(&[]), None);
        assert_eq!(StreamPart::decode(&[9]), None);
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let (id, from) = (SnapshotId([7; 16]), SnapshotId([8; 16]));
        let asked = Asked::parse(&asked_of(u64::MAX, 5, id, Some(from))).unwrap();
        assert_eq!((asked.session, asked.sequence, asked.id, asked.from), (u64::MAX, 5, id, Some(from)));
        assert_eq!(Asked::parse(&asked_of(1, 0, id, None)).unwrap().from, None);
        let whole = asked_of(1, 0, id, Some(from));
        for bad in ["", "1.2", "1.2.3", &format!("{whole}.1"), &whole[..whole.len() - 1], "-1.2.3"] {
            assert!(Asked::parse(bad).is_none(), "{bad}");
        }
    }
}
