//! `onode receive`: gives a volume the files of a stream.

use crate::commands::files::copy::progress_without_end;
use crate::location;
use crate::signals::Stop;
use onode::{Class, Compression, Error, ReceiveOptions, ReceivedStream, Result, human_size};
use onode_console::{Output, quote};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, IsTerminal, Read};
use std::path::PathBuf;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A stream of all files makes the image if there is none; else it has to be empty, fresh from `onode mkfs`\n\
    with its own size, policies, keys and label. A stream of what changed (onode send --from) needs a volume that\n\
    has the earlier snapshot and has not changed since. At the end a snapshot of the volume is taken that has the name\n\
    of the one that was sent. The volume must not be mounted meanwhile.\n\n\
    If it is interrupted, or the stream ends too early, nobody can use the volume until the same stream is received\n\
    again, from its beginning; one that had an earlier snapshot goes back to that when it is mounted.\n\n\
    Examples:\n  onode send /mnt monday | onode receive backup.img\n  \
    onode send /mnt tuesday --from monday | onode receive backup.img\n  \
    onode mkfs --encrypt --size 20G vault.img && onode send /mnt monday | onode receive vault.img\n  \
    zstd -dc tuesday.onode.zst | onode receive --rollback backup.img"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// The file with the stream. Default, and -: standard input.
    file: Option<PathBuf>,
    /// The name of the snapshot that is taken at the end. Default: that of the one that was sent.
    #[arg(long)]
    name: Option<String>,
    /// Give up what has changed on the volume since the snapshot on which the stream builds.
    #[arg(long)]
    rollback: bool,
    /// Compress what is received: none, fast, small or auto. What has a hint of its own is stored
    /// as that says.
    #[arg(long, default_value = "none", value_name = "HOW", value_parser = compression)]
    compress: Compression,
}

#[derive(Debug, Serialize)]
struct Report {
    target: String,
    /// The snapshot that shows it.
    snapshot: Option<String>,
    /// The name of what was sent, and of what that builds on.
    sent: String,
    from: Option<String>,
    /// Bytes of the stream.
    bytes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = human_size(self.bytes);
        match &self.snapshot {
            Some(name) => writeln!(f, "received {bytes}: the snapshot `{}`", quote::message(name)),
            None => writeln!(f, "received {bytes}"),
        }
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let spec = location::spec(&arguments.image)?;
    if let Some(mounted) = location::mounted(&arguments.image, "receive on")? {
        let (what, directory) = (format!("cannot receive on {}", arguments.image.display()), mounted.display());
        return Err(Error::new(
            Class::InUse,
            what,
            format!("it is mounted at {directory}, and programs have its files open"),
        )
        .hint(format!("unmount it first: onode umount {directory}")));
    }
    let from = input(arguments)?;
    let stop = Stop::default();
    stop.listen()?;
    let options =
        ReceiveOptions { name: arguments.name.clone(), roll_back: arguments.rollback, compression: arguments.compress };
    let bar = progress_without_end(output);
    let received = onode::receive(&spec, from, &options, &mut |bytes| {
        bar.set_position(bytes);
        match stop.asked() {
            None => Ok(()),
            Some(why) => Err(Error::new(Class::General, format!("received on {spec} in part"), why)
                .hint("receive the same stream again, from its beginning")),
        }
    });
    bar.finish_and_clear();
    let received = received.map_err(|error| match error.class {
        Class::InUse => location::where_mounted(&spec, error),
        _ => error,
    })?;
    let ReceivedStream { header, snapshot, bytes, notes } = received;
    notes.iter().for_each(|note| output.warning(note));
    let target = arguments.image.display().to_string();
    let from = header.base.map(|base| base.name);
    output.report(&Report { target, snapshot, sent: header.name, from, bytes })?;
    Ok(0)
}

fn input(arguments: &Arguments) -> Result<Box<dyn Read>> {
    match arguments.file.as_ref().filter(|file| file.as_os_str() != "-") {
        Some(path) => {
            let file = File::open(path).map_err(|error| Error::host_file("read", path, &error))?;
            Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
        }
        None if std::io::stdin().is_terminal() => {
            Err(Error::new(Class::Usage, "cannot receive", "standard input is a terminal")
                .hint("hand it a stream: onode send ... | onode receive IMAGE; or name a file"))
        }
        None => Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, std::io::stdin()))),
    }
}

fn compression(text: &str) -> std::result::Result<Compression, String> {
    Compression::from_name(text).ok_or_else(|| "it is none, fast, small or auto".to_owned())
}
