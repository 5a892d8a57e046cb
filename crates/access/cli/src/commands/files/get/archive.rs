//! `onode get --tar`: files of an image as a tar archive.

use crate::commands::files::copy::tar::{Packing, Top};
use crate::commands::files::copy::{Copied, CopyManner, InVolume, Side, Stream};
use crate::location::expand::Meaning;
use crate::whole::write_whole;
use onode::{Class, Error, Result};
use onode_console::Output;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Packs what is meant and writes it to `local`, or to standard output.
pub fn pack(
    side: InVolume<'_>,
    what: &Meaning,
    local: Option<&Path>,
    manner: &CopyManner,
    output: &Output,
) -> Result<()> {
    let Some(local) = local.filter(|local| !Stream::is_meant(local)) else {
        if local.is_none() || (std::io::stdout().is_terminal() && !manner.is_dry) {
            let why = if local.is_none() { "it is not said where to" } else { "standard output is a terminal" };
            return Err(Error::new(Class::Usage, "cannot write a tar archive", why)
                .hint("name a file, or - to hand it on: onode get --tar IMAGE /DIR - | ssh host tar -x"));
        }
        return all(side, what, Packing::new(manner, output, |bytes| output.offer(bytes))).map(drop);
    };
    if manner.is_dry {
        return all(side, what, Packing::new(manner, output, |_| Ok(true)))?.report(manner.voice, output);
    }
    write_whole(local, |put| all(side, what, Packing::new(manner, output, put)))?.report(manner.voice, output)
}

fn all(side: InVolume<'_>, what: &Meaning, mut packing: Packing<'_>) -> Result<Copied> {
    match what {
        // The content of one directory has no name before its own.
        Meaning::This(path) if side.is_directory(path)? => packing.add(Top { side: &side, path, name: b"" })?,
        Meaning::This(path) => packing.add(Top { side: &side, path, name: name(path) })?,
        Meaning::Matches(paths) => {
            for path in paths {
                packing.add(Top { side: &side, path, name: name(path) })?;
            }
        }
    }
    packing.finish()
}

fn name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}
