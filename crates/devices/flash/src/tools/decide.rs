//! Which log the content of an object goes to, and why, for people who ask.

use crate::core::Core;
use crate::policy::{Level, Placement, Stream};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::powers::Decision;
use onode_object::{ObjectId, ObjectKind, Result};

/// What the hints of an object lead to.
pub fn decisions(core: &mut Core, object: ObjectId) -> Result<Vec<Decision>> {
    let (stream, onode) = core.next_stream(object)?;
    let hints = onode.hints;
    // Of others only entries of the index are kept.
    if !matches!(hints.kind, ObjectKind::Data | ObjectKind::Unknown) {
        return Ok(Vec::new());
    }
    let placement = core.log().placement();
    let why = match (placement, Level::of_hints(&hints)) {
        _ if stream == Stream::Journal && placement != Placement::Combined => {
            String::from("less than a page is written with its record")
        }
        (Placement::Hints, Some(level)) => format!("placement=hints, and by lifetime and temperature {}", told(level)),
        (Placement::Hints, None) => {
            String::from("placement=hints, but none is given: by how long what it replaces lived; what is new stays")
        }
        (_, None) => format!("by placement={}", placement.name()),
        (_, Some(_)) => format!(
            "by placement={}, which does not look at lifetime and temperature: open the volume with placement=hints",
            placement.name()
        ),
    };
    Ok(Vec::from([Decision::new("log", stream.name(), why)]))
}

/// How long what is of a level is expected to stay.
const fn told(level: Level) -> &'static str {
    match level.number() {
        0 => "it is gone before 1/64 of the volume was written",
        1 => "it is gone before 1/16 of the volume was written",
        2 => "it is gone before a quarter of the volume was written",
        3 => "it is gone before the volume was written once",
        4 => "it is gone before the volume was written four times",
        _ => "it stays",
    }
}
