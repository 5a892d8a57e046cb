//! Authenticated volumes: opening one, and what people are told if it is not what was stored last.

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::keys::{AGENT, VolumeKey};
use crate::volume::layers::Opening;
use onode_base::ErrorKind;
use onode_object::ObjectDevice;
use onode_services::{Authenticated, MasterKey};
use std::sync::Arc;

/// Objects that are named to people.
const NAMED: usize = 8;

/// The sums of an open volume.
pub(in crate::volume) type Sums = Authenticated<dyn ObjectDevice>;

/// The device of a volume that is to be made on this one.
pub(super) fn created(spec: &Spec, device: &Arc<dyn ObjectDevice>, master: &MasterKey) -> Result<Arc<Sums>> {
    let created = Authenticated::create(Arc::clone(device), master);
    created.map(Arc::new).map_err(|error| told(format!("cannot make {spec}"), &error))
}

/// The device of a volume, which nobody may have changed.
pub(super) fn opened(spec: &Spec, device: Arc<dyn ObjectDevice>, master: &MasterKey) -> Result<Arc<Sums>> {
    let sums = Authenticated::open(device, master).map_err(|error| told(format!("cannot open {spec}"), &error))?;
    compare(spec, Some(&sums))?;
    Ok(Arc::new(sums))
}

/// The sums of the volume on a device, if it has some; with consent to loss whatever there is has
/// new ones.
pub(in crate::volume) fn sums_of(
    spec: &Spec,
    device: &Arc<dyn ObjectDevice>,
    key: Option<&VolumeKey>,
    how: Opening,
    notes: &mut Vec<String>,
) -> Result<Option<Arc<Sums>>> {
    let Some(VolumeKey { master, .. }) = key.filter(|key| key.header.is_authenticated()) else {
        compare(spec, None)?;
        return Ok(None);
    };
    let closed = |error: Error| {
        // It is left as it was found.
        let _ = device.close();
        error
    };
    if !how.access.accept_loss {
        return opened(spec, Arc::clone(device), master).map(Some).map_err(closed);
    }
    let accepted = Authenticated::open_accepting(Arc::clone(device), master);
    let (sums, others) = accepted.map_err(|error| closed(told(format!("cannot open {spec}"), &error)))?;
    compare(spec, Some(&sums)).map_err(closed)?;
    if let Some(others) = others {
        let named: Vec<String> = others.iter().take(NAMED).map(|object| object.0.to_string()).collect();
        let more = if others.len() > NAMED { ", ..." } else { "" };
        notes.push(format!(
            "the volume was not what was stored last, and is taken as it is now: {} objects ({}{more})",
            others.len(),
            named.join(", ")
        ));
    }
    Ok(Some(Arc::new(sums)))
}

/// Compares a volume with what its owner has noted.
fn compare(spec: &Spec, sums: Option<&Sums>) -> Result<()> {
    let Some(anchor) = AGENT.get().and_then(|agent| agent.anchor(spec)) else { return Ok(()) };
    let what = format!("cannot open {spec}");
    let Some(sums) = sums else {
        let why = "an anchor was given, and the volume is not authenticated";
        return Err(Error::new(Class::Usage, what, why)
            .hint("a volume is authenticated when it is made: onode mkfs --encrypt --authenticate IMAGE"));
    };
    sums.expect(&anchor).map_err(|error| {
        volume_error(what, &error).hint("somebody put an older copy in its place: find the one that the anchor is of")
    })
}

fn told(what: String, error: &onode_object::Error) -> Error {
    let told = volume_error(what, error);
    match error.kind {
        ErrorKind::Corrupt => told
            .hint("somebody changed the medium, or it is damaged: restore a copy; `--accept-loss` takes it as it is"),
        ErrorKind::NotSupported => Error { class: Class::Usage, ..told }
            .hint("have one process at a time use the memory: add exclusive=on to its spec"),
        _ => told,
    }
}
