//! Where a stream comes from: a trace file, plain or compressed, or a generator named on the
//! command line (`postmark:seed=42,files=1000`). A file of that name goes before a generator.

use crate::stream::Operation;
use crate::stream::generate;
use onode::{Class, Error, Result, Spec};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The operations of a trace file or of a generator, for `device`.
///
/// # Errors
/// `NotFound` or `Usage`, quoting the part that is wrong.
pub fn operations_of(source: &str, device: &Spec) -> Result<Vec<Operation>> {
    let path = Path::new(source);
    if !path.exists()
        && let Some(made) = generate::from_text(source, medium_bytes(device)?)?
    {
        return Ok(made);
    }
    let host = |error: &std::io::Error| {
        let class = if error.kind() == std::io::ErrorKind::NotFound { Class::NotFound } else { Class::General };
        Error::new(class, format!("cannot read the trace {source}"), error.to_string())
            .hint("name a file, or a generator such as `postmark:seed=1` or `largefile:write`")
    };
    let file = File::open(path).map_err(|error| host(&error))?;
    let text: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "zst") {
        let decoder = ruzstd::decoding::StreamingDecoder::new(file).map_err(|error| {
            Error::new(Class::Damaged, format!("cannot unpack the trace {source}"), error.to_string())
        })?;
        Box::new(decoder)
    } else {
        Box::new(file)
    };
    let mut operations = Vec::new();
    for (index, line) in BufReader::new(text).lines().enumerate() {
        let line = line.map_err(|error| host(&error))?;
        operations.push(Operation::parse(&line, index + 1)?);
    }
    Ok(operations)
}

/// Size of the medium of `device`, or of what it would be.
fn medium_bytes(device: &Spec) -> Result<u64> {
    match device {
        Spec::Ram(ram) => Ok(ram.size),
        Spec::Scm(memory) => Ok(memory.bytes()),
        Spec::Tier(disks) => Ok(disks.bytes()),
        Spec::Flash(flash) => Ok(flash.shape.geometry()?.bytes()),
        _ => Err(Error::new(Class::Usage, format!("cannot measure on {device}"), "nobody said how large it is")),
    }
}
