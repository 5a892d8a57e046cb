//! Journal records, owners and hints in words.

use crate::log::record::{Change, Record};
use crate::medium::format::DEFERRED_PIECE;
use crate::policy::Stream;
use crate::space::items::Owner;
use alloc::format;
use alloc::string::String;
use onode_object::{Mutation, ObjectId};

/// A record in words; with `only`, just the changes of that object.
pub(super) fn record(record: &Record, only: Option<ObjectId>) -> String {
    match record {
        Record::Chain { segment, sequence } => format!("journal goes on in segment {segment}, sequence {sequence}"),
        Record::Opened { segment, sequence, erases, stream: Stream::Atime } => {
            format!("segment {segment} opened for access times, sequence {sequence}, erased {erases} times")
        }
        Record::Opened { segment, sequence, erases, stream } => {
            let rows = match stream.wished_parity() {
                Some(parity) => format!(" with {parity} pages of parity in a row"),
                None => String::new(),
            };
            format!("data segment {segment} opened{rows}, sequence {sequence}, erased {erases} times")
        }
        Record::Flushed { before } => format!("all before the journal page at {before} had been flushed"),
        Record::Waiting { location, bytes } => format!("copy of {} bytes of the page at {location}", bytes.len()),
        Record::Commit { transaction, changes } => {
            let mut text = format!("commit {transaction}:");
            for one in changes.iter().filter(|one| only.is_none_or(|only| concerns(one, only))) {
                text.push(' ');
                text.push_str(&change(one));
                text.push(';');
            }
            text.pop();
            text
        }
    }
}

/// Whether a change concerns an object.
pub(super) fn concerns(change: &Change, only: ObjectId) -> bool {
    match change {
        Change::Place { object, .. } | Change::Patch { object, .. } => *object == only,
        Change::Mutation(mutation) => mutation.changes(only),
    }
}

fn change(change: &Change) -> String {
    match change {
        Change::Place { object, offset, pieces } => {
            let mut text = format!("{object} from byte {offset} is");
            for piece in pieces {
                text.push_str(&format!(" {} bytes at {},", piece.length, piece.location));
            }
            text.pop();
            text
        }
        Change::Patch { object, key, patch } => {
            let (bytes, offset) = (patch.middle.len(), patch.prefix);
            format!("{object} has {bytes} bytes of attribute {}/{} set from byte {offset} on", key.kind.0, key.index)
        }
        Change::Mutation(mutation) => match mutation {
            Mutation::Create { object, .. } => format!("{object} is made"),
            Mutation::Remove { object } => format!("{object} is removed"),
            Mutation::Write { object, offset, .. } => format!("{object} is written with nothing at {offset}"),
            Mutation::Truncate { object, size } => format!("{object} is given {size} bytes"),
            Mutation::Punch { object, offset, length } => format!("{object} loses {length} bytes from {offset}"),
            Mutation::Move { object, offset, length, to } => {
                format!("{object} gives {length} bytes from {offset} to {to}")
            }
            Mutation::SetAttribute { object, key, value } => {
                format!("{object} has attribute {}/{} set to {} bytes", key.kind.0, key.index, value.len())
            }
            Mutation::RemoveAttribute { object, key } => {
                format!("{object} loses attribute {}/{}", key.kind.0, key.index)
            }
            Mutation::SetHints { object, .. } => format!("{object} has its hints set"),
            Mutation::SetAccessTime { object, time } => format!("{object} was read at {time}"),
        },
    }
}

/// An owner in words.
pub(super) fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Content { object, offset } => format!("object {object} from byte {offset}"),
        Owner::Node { key, level } => {
            format!("tree node of level {level} with key {}/{:#x}/{}", key.object, key.kind, key.index)
        }
        Owner::TablePiece { piece: DEFERRED_PIECE } => "deferred changes".into(),
        Owner::TablePiece { piece } => format!("segment table piece {piece}"),
    }
}
