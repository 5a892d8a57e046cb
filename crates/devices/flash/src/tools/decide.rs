//! Which log the content of an object goes to, and why, for people who ask.

use crate::core::Core;
use crate::policy::{Level, Placement, Stream};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::powers::Decision;
use onode_object::{Hints, ObjectId, ObjectKind, Result};

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
    let mut decisions = Vec::from([Decision::new("log", stream.name(), why)]);
    decisions.extend(of_parity(core, object, &hints)?);
    Ok(decisions)
}

/// How much parity the content of an object has; nothing if there is none and none is wished.
fn of_parity(core: &mut Core, object: ObjectId, hints: &Hints) -> Result<Option<Decision>> {
    let (layout, is_combined) = (*core.log().layout(), core.log().is_combined());
    let wished = hints.parity_pages;
    let is_wished = wished != 0 && wished != Hints::NO_PARITY;
    let pages = |parity: u8| match parity {
        0 => String::from("none"),
        pages => format!("{pages} of {} pages", layout.blocks_per_segment),
    };
    let most = layout.parity_pages as u8;
    let Some(usual) = layout.chosen_parity else {
        let why = match most {
            0 if !is_wished => return Ok(None),
            0 => String::from("the volume was made without: what is wished changes nothing"),
            _ if is_wished && wished != most => format!(
                "everything on the volume has so much; files choose where it was made with --parity {most}-{}",
                wished.max(most)
            ),
            _ => String::from("everything on the volume has so much"),
        };
        return Ok(Some(Decision::new("parity", pages(most), why)));
    };
    if is_combined {
        return Ok(Some(Decision::new("parity", pages(most), "placement=combined has one log, with as much for all")));
    }
    let parity = layout.parity_for(wished);
    let mut why = match wished {
        0 => format!("nothing is wished, and {usual} is usual here"),
        Hints::NO_PARITY => String::from("none is wished"),
        wished if u32::from(wished) > layout.parity_pages => {
            format!("{wished} are wished, the volume has at most {most}")
        }
        _ => String::from("it is wished"),
    };
    if parity < most {
        why.push_str(&format!("; names, and what is less than a page, have {most}"));
    }
    let (other, all) = core.other_parity(object, hints)?;
    if other > 0 {
        why.push_str(&format!("; {other} of {all} bytes have another and move in the background"));
    }
    Ok(Some(Decision::new("parity", pages(parity), why)))
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
