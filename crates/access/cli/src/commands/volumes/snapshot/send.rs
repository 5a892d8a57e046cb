//! `onode send`: writes a snapshot, or what changed since an earlier one, as a stream.

use crate::commands::files::copy::progress_without_end;
use crate::commands::mounts::sends::{StreamPart, asked_of};
use crate::commands::volumes::snapshot::FOLDER;
use crate::commands::volumes::snapshot::folder::{plain, snapshots, told};
use crate::location::{self, Consent};
use crate::signals::Stop;
use crate::whole::write_whole;
use indicatif::ProgressBar;
use onode::{Class, Error, Result, SendStream, SnapshotId, SystemClock, Volume, human_size};
use onode_console::{Output, quote};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Bytes that are written at once.
const PIECE_BYTES: usize = 256 << 10;
/// What the mount says of a snapshot.
const ID: &str = "user.onode.snapshot.id";

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The stream goes to standard output, or to a file with --output, and `onode receive` makes of it a volume\n\
    with the same files: on another disk, another computer, another kind of device. With --from it has only what\n\
    changed since an earlier snapshot, and the other volume must have that one. The stream is neither compressed nor\n\
    encrypted, also if the volume is.\n\n\
    A volume that is not mounted is sent as it is without a name; so is one on storage-class memory that processes\n\
    share, which has no snapshots.\n\n\
    Examples:\n  onode snapshot create /mnt monday\n  \
    onode send /mnt monday | onode receive backup.img     all files\n  \
    onode send /mnt tuesday --from monday | ssh host onode receive backup.img     what changed\n  \
    onode send /mnt tuesday | zstd > tuesday.onode.zst    into a file\n  \
    onode send old.img | onode receive tier:ssd.img,disk.img     from one kind of device to another"
)]
pub struct Arguments {
    /// The directory where the volume is mounted, or an image or device spec.
    #[arg(value_name = "DIR|IMAGE")]
    target: OsString,
    /// The name of the snapshot.
    name: Option<String>,
    /// Send only what changed since this earlier snapshot.
    #[arg(long, value_name = "NAME", requires = "name")]
    from: Option<String>,
    /// Write to this file, which gets its name when it is complete. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    /// The snapshot that was sent.
    snapshot: Option<String>,
    /// The one on which the stream builds.
    from: Option<String>,
    /// Bytes of the stream.
    bytes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sent {}", human_size(self.bytes))
    }
}

/// Where the stream comes from: the volume, or the mount that has it open.
enum StreamSource {
    Volume(Box<Volume>, Box<SendStream>),
    Mount(MountedSend),
}

/// A stream of a mount, asked for piece by piece.
struct MountedSend {
    directory: PathBuf,
    session: u64,
    sequence: u64,
    id: SnapshotId,
    from: Option<SnapshotId>,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    if arguments.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::new(Class::Usage, "cannot send", "standard output is a terminal")
            .hint("hand the stream on: onode send ... | onode receive IMAGE; or name a file with --output"));
    }
    let mut source = StreamSource::open(arguments)?;
    let stop = Stop::default();
    stop.listen()?;
    let mut sending = SendingTo { bar: progress_without_end(output), stop, bytes: 0 };
    let written = match &arguments.output {
        None => sending.all(&mut source, |bytes| output.offer(bytes)),
        Some(path) => write_whole(path, |put| sending.all(&mut source, put)),
    };
    sending.bar.finish_and_clear();
    let closed = source.close();
    let is_whole = written?;
    closed?;
    if !is_whole {
        return Err(Error::new(Class::General, "cannot send", "who reads the stream has gone")
            .hint("see what `onode receive` says at the other end"));
    }
    let report = Report {
        target: arguments.target.display().to_string(),
        snapshot: arguments.name.clone(),
        from: arguments.from.clone(),
        bytes: sending.bytes,
    };
    if arguments.output.is_some() {
        output.report(&report)?;
    }
    Ok(0)
}

/// A stream on its way.
struct SendingTo {
    bar: ProgressBar,
    stop: Stop,
    bytes: u64,
}

impl SendingTo {
    /// Hands all of it on; false if nobody takes it any more.
    fn all(&mut self, source: &mut StreamSource, mut put: impl FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let mut piece = Vec::new();
        while source.next(&mut piece)? {
            if let Some(why) = self.stop.asked() {
                return Err(Error::new(Class::General, "sent in part", why)
                    .hint("whoever receives it shows nothing of it; send it again"));
            }
            if !put(&piece)? {
                return Ok(false);
            }
            self.bytes += piece.len() as u64;
            self.bar.set_position(self.bytes);
        }
        Ok(true)
    }
}

impl StreamSource {
    fn open(arguments: &Arguments) -> Result<Self> {
        let Arguments { target, name, from, .. } = arguments;
        if let Some(folder) = FOLDER.of(target)? {
            let what = format!("cannot send {}", target.display());
            let Some(name) = name else {
                return Err(Error::new(Class::Usage, what, "it is mounted and changes: it is not said which snapshot")
                    .hint(format!("take one and name it: onode snapshot create {} NAME", target.display())));
            };
            let id = |name: &str| id_of(&folder, name);
            let (id, from) = (id(name)?, from.as_deref().map(id).transpose()?);
            let directory = folder.parent().unwrap_or(Path::new("/")).to_owned();
            let session = u64::from_le_bytes(onode::random_bytes()?);
            return Ok(Self::Mount(MountedSend { directory, session, sequence: 0, id, from }));
        }
        let volume = location::open(target, true, arguments.consent)?;
        let stream = match name {
            Some(name) => snapshots(&volume)?.send(name, from.as_deref()),
            None => volume.send_as_it_is(&SystemClock),
        };
        let stream = stream.inspect_err(|_| {
            // Nothing was changed.
            let _ = volume.close();
        })?;
        Ok(Self::Volume(Box::new(volume), Box::new(stream)))
    }

    /// The next bytes; false if there are no more.
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Volume(_, stream) => {
                piece.resize(PIECE_BYTES, 0);
                let count = stream.fill(piece)?;
                piece.truncate(count);
                Ok(count > 0)
            }
            Self::Mount(mounted) => mounted.next(piece),
        }
    }

    fn close(&self) -> Result<()> {
        match self {
            Self::Volume(volume, _) => volume.close(),
            Self::Mount(_) => Ok(()),
        }
    }
}

/// The number of a snapshot of a mount.
fn id_of(folder: &Path, name: &str) -> Result<SnapshotId> {
    let what = || format!("cannot send the snapshot `{}`", quote::message(name));
    let path = folder.join(plain(name)?);
    if !path.is_dir() {
        return Err(Error::new(Class::NotFound, what(), "there is no snapshot of that name")
            .hint(format!("`ls {}` shows those that there are", folder.display())));
    }
    told(&path, ID).and_then(|id| SnapshotId::parse(&id)).ok_or_else(|| {
        Error::new(Class::Usage, what(), "it was taken by an earlier version and has no number")
            .hint("take a new one and send that")
    })
}

impl MountedSend {
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        let asked = asked_of(self.session, self.sequence, self.id, self.from);
        self.sequence += 1;
        match StreamPart::fetch(&self.directory, &asked)? {
            StreamPart::Bytes(bytes) => {
                *piece = bytes;
                Ok(true)
            }
            StreamPart::End => Ok(false),
            StreamPart::Failed(failure) => Err(failure.into()),
        }
    }
}
