//! Receiving: a volume gets the state of which a stream tells.

use crate::error::{Class, Error, Result};
use crate::open::access::{Access, Users, volume_error};
use crate::spec::Spec;
use crate::volume::layers::{Layers, Opening};
use crate::volume::transfer::{Progress, check_room, is_at, lead_back, received, settings_of};
use crate::volume::{CreateOptions, Volume};
use onode_base::ErrorKind;
use onode_fs::volume::VolumeInfo;
use onode_object::{Compression, ObjectDevice, ObjectId};
use onode_services::{Applied, NewSnapshot, Received, Receiving, Snapshot, StreamHeader};
use std::io::{self, Read};
use std::sync::Arc;

/// Objects that are listed at once.
const AT_ONCE: usize = 256;

/// How to receive a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// The name of the snapshot that is taken at the end; `None`: that of the one that was sent.
    pub name: Option<String>,
    /// What has changed on the volume since the snapshot on which the stream builds is given up.
    pub roll_back: bool,
    /// What is compressed of what is received, beside what its hints say.
    pub compression: Compression,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self { name: None, roll_back: false, compression: Compression::Never }
    }
}

/// What was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedStream {
    /// What the stream said of itself.
    pub header: StreamHeader,
    /// The snapshot that shows it now; `None` on a volume that can have none.
    pub snapshot: Option<String>,
    /// Bytes of the stream.
    pub bytes: u64,
    /// What people should hear.
    pub notes: Vec<String>,
}

/// Gives a volume the state of which a stream tells. A stream of all files makes the volume if its
/// image is missing, else it has to be empty; one that builds on a snapshot needs a volume in just
/// that state. At the end a snapshot of it is taken, on which the next stream can build.
///
/// Until the end nobody can use the volume, but for its snapshots. If it is interrupted, the same
/// stream is received again, from its beginning; a volume with a snapshot of before goes back to
/// that when it is mounted.
///
/// # Errors
/// `Damaged` for a stream that is damaged or cut short; `NotFound` if the volume has not the
/// snapshot on which the stream builds; `Conflict` if it has changed since; `Exists` if it is not
/// empty, or has that state already; `VolumeFull`; as [`Volume::open`].
pub fn receive(
    spec: &Spec,
    from: impl Read,
    options: &ReceiveOptions,
    progress: &mut Progress<'_>,
) -> Result<ReceivedStream> {
    let mut receiving = Receiving::begin(from).map_err(|error| unreadable(spec, &error))?;
    let header = receiving.header().clone();
    if header.base.is_none() && spec.image_path().is_some_and(|path| !path.exists()) {
        Volume::create(spec, &CreateOptions::default())?;
    }
    let opening =
        Opening { access: Access::CHANGE, users: Users::Alone, compression: options.compression, may_lose: false };
    let mut layers = Layers::open(spec, opening)?;
    let device = layers.settled(spec, false)?;
    let mut target = Target { spec, layers, device, options };
    let done = target.receive(&mut receiving, progress);
    let closed = target.device.close().map_err(|error| volume_error(format!("cannot close {spec}"), &error));
    let snapshot = done?;
    closed?;
    Ok(ReceivedStream { header, snapshot, bytes: receiving.bytes(), notes: target.layers.notes })
}

/// The volume that receives.
struct Target<'a> {
    spec: &'a Spec,
    layers: Layers,
    device: Arc<dyn ObjectDevice>,
    options: &'a ReceiveOptions,
}

impl Target<'_> {
    fn receive(&mut self, receiving: &mut Receiving<impl Read>, progress: &mut Progress<'_>) -> Result<Option<String>> {
        let header = receiving.header().clone();
        let name = self.options.name.clone().unwrap_or_else(|| header.name.clone());
        let mut own = settings_of(self.spec, self.device.as_ref())?;
        if self.layers.states.is_some() {
            own.admit_snapshots();
        }
        self.check_name(&header, &name)?;
        self.prepare(&header, &own)?;
        self.check_no_keys()?;
        let base = header.base.as_ref().map(|base| base.id);
        let failed = |error: onode_object::Error| self.failed(&error);
        Received::Part { to: header.id, base }.note(self.layers.bare.as_ref()).map_err(failed)?;
        let keep = |mutation| own.keep_own(mutation);
        let mut applied = Applied::new(Arc::clone(&self.device), header.next_id, &keep).map_err(failed)?;
        loop {
            let batch = receiving.next_batch().map_err(|error| unreadable(self.spec, &error))?;
            if batch.is_empty() {
                break;
            }
            applied.apply(batch).map_err(failed)?;
            progress(receiving.bytes())?;
        }
        applied.finish().map_err(failed)?;
        let Some(states) = &self.layers.states else {
            Received::All(header.id).note(self.layers.bare.as_ref()).map_err(failed)?;
            return Ok(None);
        };
        let new = NewSnapshot { name: name.clone(), created: header.created, id: Some(header.id) };
        states.versioned.take_with(&new, Received::forgotten()).map_err(failed)?;
        Ok(Some(name))
    }

    fn what(&self) -> String {
        format!("cannot receive on {}", self.spec)
    }

    fn failed(&self, error: &onode_object::Error) -> Error {
        match error.kind {
            ErrorKind::Invalid => Error::new(Class::Damaged, self.what(), format!("the stream is malformed: {error}")),
            ErrorKind::Stale => Error::new(Class::Damaged, self.what(), format!("the stream does not fit: {error}")),
            _ => volume_error(self.what(), error),
        }
    }

    /// Refuses a name that is taken, before anything is done.
    fn check_name(&self, header: &StreamHeader, name: &str) -> Result<()> {
        if received::base_of(&self.layers, Some(header.id)).is_some() {
            return Err(Error::new(Class::Exists, self.what(), "it has this snapshot already")
                .hint("there is nothing to do; `onode snapshot list` shows it"));
        }
        if self.layers.states.as_ref().is_some_and(|states| states.named(name).is_some()) {
            return Err(Error::new(Class::Exists, self.what(), format!("it has another snapshot `{name}`"))
                .hint("give this one another name with --name, or delete that one: onode snapshot delete"));
        }
        Ok(())
    }

    /// Has the volume in the state with which the stream begins.
    fn prepare(&mut self, header: &StreamHeader, own: &VolumeInfo) -> Result<()> {
        let base_id = header.base.as_ref().map(|base| base.id);
        let said = received::of(self.spec, &self.layers)?;
        let base = received::base_of(&self.layers, base_id);
        match (said, &header.base) {
            // It goes on, from its beginning.
            (Some(Received::Part { to, base }), _) if to == header.id && base == base_id => Ok(()),
            (Some(Received::Part { base: began, .. }), _) => {
                match received::base_of(&self.layers, began).filter(|began| began.id == base_id) {
                    Some(base) => received::take_back(self.spec, &mut self.layers, &base),
                    None => Err(Error::new(Class::Exists, self.what(), "it has a part of another stream")
                        .hint("end that one first: receive it again; or make the volume anew with mkfs")),
                }
            }
            (_, None) => self.check_empty(),
            (_, Some(wanted)) => match (base, said) {
                (Some(base), _) => self.go_to(&base, own),
                (None, Some(Received::All(has))) if has == wanted.id => Ok(()),
                (None, _) => {
                    let why =
                        format!("it has not the snapshot `{}` ({}) on which the stream builds", wanted.name, wanted.id);
                    let on_memory = "a volume on storage-class memory has it only until it is mounted for writing; ";
                    let on_memory = if self.layers.states.is_none() { on_memory } else { "" };
                    Err(Error::new(Class::NotFound, self.what(), why)
                        .hint(format!("{on_memory}send all files, without --from, to a new volume")))
                }
            },
        }
    }

    /// Refuses a volume some of whose directories have keys: a stream tells of no keys, and what it
    /// makes in such a directory would be stored without.
    fn check_no_keys(&self) -> Result<()> {
        if !self.device.has_directory_keys() {
            return Ok(());
        }
        let failed = |error: onode_object::Error| self.failed(&error);
        let mut from = ObjectId(0);
        loop {
            let found = self.device.list(from, AT_ONCE).map_err(failed)?;
            let Some(last) = found.last() else { return Ok(()) };
            from = ObjectId(last.0.saturating_add(1));
            for object in found {
                if self.device.stat(object).map_err(failed)?.hints.encryption_key != 0 {
                    let why = "it has directories with keys of their own, and a stream takes no key along";
                    return Err(Error::new(Class::Usage, self.what(), why)
                        .hint("send all files, without --from, to a new volume"));
                }
            }
        }
    }

    /// Refuses a volume with files or snapshots.
    fn check_empty(&self) -> Result<()> {
        let objects = self.device.list(ObjectId::FIRST_FREE, 1).map_err(|error| self.failed(&error))?;
        let has_snapshots = self.layers.states.as_ref().is_some_and(|all| !all.all().is_empty());
        if objects.is_empty() && !has_snapshots {
            return Ok(());
        }
        let why = "the stream has all files of a volume, and this one is not empty";
        Err(Error::new(Class::Exists, self.what(), why)
            .hint("receive it on a new image, or one made by mkfs; or send what changed: onode send --from"))
    }

    /// Has the volume at a snapshot, with consent also if that means to give up what changed since.
    fn go_to(&self, base: &Snapshot, own: &VolumeInfo) -> Result<()> {
        let Some(states) = &self.layers.states else { return Ok(()) };
        if is_at(states, &self.device, base, own)? {
            return Ok(());
        }
        if !self.options.roll_back {
            let why = format!("it has changed since the snapshot `{}`, on which the stream builds", base.name);
            return Err(Error::new(Class::Conflict, self.what(), why)
                .hint("--rollback gives up what changed; a snapshot taken before keeps it"));
        }
        check_room(states, &self.device, base)?;
        let failed = |error: onode_object::Error| self.failed(&error);
        // It was found by its number.
        if let Some(id) = base.id {
            let part = Received::Part { to: id, base: Some(id) };
            part.note(self.layers.bare.as_ref()).map_err(failed)?;
        }
        lead_back(states, &self.device, base, own, &mut |_| Ok(())).map(drop)
    }
}

fn unreadable(spec: &Spec, error: &io::Error) -> Error {
    let what = format!("cannot receive on {spec}");
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(Class::Damaged, what, "the stream ends before its end")
            .hint("send it again; what was received of it is not shown"),
        io::ErrorKind::InvalidData => Error::new(Class::Damaged, what, error.to_string())
            .hint("see what `onode send` says, and send it again; what was received of it is not shown"),
        _ => Error::host(what, error),
    }
}
