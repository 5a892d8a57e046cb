//! `onode put --tar`: a tar archive unpacked into an image.

use crate::commands::files::copy::stream::read_input;
use crate::commands::files::copy::tar::{Reader, Unpacking};
use crate::commands::files::copy::{Copied, CopyManner, Side, Stream, progress, progress_without_end, shows_progress};
use crate::signals::Stop;
use indicatif::ProgressBar;
use onode::{Error, Result};
use onode_console::Output;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// An archive that was opened.
pub struct Archive {
    input: Box<dyn Read>,
    name: String,
    /// Bytes that it has, if that is known.
    bytes: Option<u64>,
}

/// Standard input, which ends if somebody asks for an end.
struct Input(Stop);

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_input(buffer, &self.0)
    }
}

/// A file, which ends if somebody asks for an end.
struct Until(Stop, File);

impl Read for Until {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.asked().is_some() { Ok(0) } else { self.1.read(buffer) }
    }
}

impl Archive {
    /// Opens the archive `local`, or standard input.
    pub fn open(local: &Path, stop: &Stop) -> Result<Self> {
        if Stream::is_meant(local) {
            let input = Box::new(io::BufReader::with_capacity(1 << 20, Input(stop.clone())));
            return Ok(Self { input, name: "standard input".into(), bytes: None });
        }
        let failed = |error| Error::host_file("read", local, &error);
        let file = File::open(local).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()).hint("leave --tar out to copy a directory"));
        }
        let bytes = metadata.is_file().then_some(metadata.len());
        let input = Box::new(io::BufReader::with_capacity(1 << 20, Until(stop.clone(), file)));
        Ok(Self { input, name: local.display().to_string(), bytes })
    }

    /// Unpacks it into a directory of a volume.
    pub fn unpack(self, side: &dyn Side, directory: &Path, manner: &CopyManner, output: &Output) -> Result<Copied> {
        let bar = match self.bytes {
            _ if !shows_progress(manner, output) => ProgressBar::hidden(),
            Some(bytes) => progress(bytes, output),
            None => progress_without_end(output),
        };
        let unpacking = Unpacking { side, directory, manner, output, bar, attributes: Default::default() };
        unpacking.run(Reader::new(self.input, self.name))
    }
}
