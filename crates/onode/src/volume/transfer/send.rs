//! Sending: what a snapshot shows, or what changed since an earlier one, as bytes to be read.

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::volume_error;
use crate::spec::Spec;
use crate::volume::Volume;
use crate::volume::layers::States;
use onode_base::Clock;
use onode_object::ObjectId;
use onode_services::{Differences, Sending, Snapshot, SnapshotId, StreamBase, StreamHeader};
use std::io::{self, Read};
use std::sync::Arc;

/// The name of a state that no snapshot has.
const UNNAMED: &str = "received";

/// A stream from which another volume gets the state of a snapshot ([`receive`](crate::receive)).
/// Reading it reads the snapshot; a failure is told as one of reading.
pub struct SendStream {
    header: StreamHeader,
    sending: Sending,
    spec: Spec,
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").field("header", &self.header).finish_non_exhaustive()
    }
}

impl SendStream {
    /// What the stream leads to, and what it builds on.
    #[must_use]
    pub const fn header(&self) -> &StreamHeader {
        &self.header
    }

    /// All that a snapshot shows, or what has changed since an earlier one.
    pub(crate) fn of_snapshot(spec: &Spec, states: &States, name: &str, from: Option<&str>) -> Result<Self> {
        let what = || format!("cannot send the snapshot `{name}` of {spec}");
        let found = |name: &str| {
            states.named(name).ok_or_else(|| {
                Error::new(Class::NotFound, what(), format!("there is no snapshot `{name}`"))
                    .hint(format!("`onode snapshot list {spec}` shows those that there are"))
            })
        };
        let identified = |snapshot: &Snapshot| {
            snapshot.id.ok_or_else(|| {
                let why = format!("the snapshot `{}` was taken by an earlier version and has no number", snapshot.name);
                Error::new(Class::Usage, what(), why).hint("take a new one and send that")
            })
        };
        let snapshot = found(name)?;
        let mut header = StreamHeader {
            id: identified(&snapshot)?,
            name: snapshot.name.clone(),
            created: snapshot.created,
            next_id: snapshot.first_later_id(),
            base: None,
        };
        let shown = states.shown(&snapshot)?;
        let differences = match from {
            None => Differences::whole(shown),
            Some(from) => {
                let base = found(from)?;
                header.base = Some(StreamBase { id: identified(&base)?, name: base.name.clone() });
                let before = states.shown(&base)?;
                Differences::between(&states.versioned, (&base, before), (&snapshot, shown)).map_err(|error| {
                    match error.kind {
                        onode_base::ErrorKind::Invalid => Error::new(Class::Usage, what(), error.detail),
                        _ => volume_error(what(), &error),
                    }
                })?
            }
        };
        Ok(Self { sending: Sending::new(header.clone(), differences), header, spec: spec.clone() })
    }

    /// Fills the buffer with the next bytes; with fewer only at the end. How many.
    ///
    /// # Errors
    /// `NotFound` if the snapshot was deleted meanwhile; those of the device.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let what = || format!("cannot send the snapshot `{}` of {}", self.header.name, self.spec);
        self.sending.fill(buffer).map_err(|error| match error.kind {
            onode_base::ErrorKind::Stale => Error::new(Class::NotFound, what(), "it was deleted meanwhile"),
            _ => volume_error(what(), &error),
        })
    }
}

impl Read for SendStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill(buffer).map_err(io::Error::other)
    }
}

impl Volume {
    /// A stream of all files as they are, of a volume that is opened for reading: it needs no
    /// snapshot.
    ///
    /// # Errors
    /// `Usage` for a volume that may change meanwhile; those of the device.
    pub fn send_as_it_is(&self, clock: &dyn Clock) -> Result<SendStream> {
        let what = || format!("cannot send {}", self.spec());
        if !self.files().options().read_only {
            return Err(Error::new(Class::Usage, what(), "it is open for writing, and may change meanwhile")
                .hint("take a snapshot and send that"));
        }
        let device = Arc::clone(self.files().device());
        // No object is missed: ids of versions are above all others.
        let (mut next_id, mut from) = (ObjectId::FIRST_FREE, ObjectId(0));
        loop {
            let found = device.list(from, 4096).map_err(|error| volume_error(what(), &error))?;
            let Some(last) = found.last() else { break };
            from = ObjectId(last.0 + 1);
            next_id = next_id.max(from);
        }
        let header = StreamHeader {
            id: SnapshotId(random_bytes()?),
            name: UNNAMED.to_owned(),
            created: clock.now(),
            next_id,
            base: None,
        };
        let sending = Sending::new(header.clone(), Differences::whole(device));
        Ok(SendStream { header, sending, spec: self.spec().clone() })
    }
}
