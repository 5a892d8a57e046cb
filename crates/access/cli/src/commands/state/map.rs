//! `onode map`: the segments of a volume as a picture, in the terminal or as SVG.

use crate::commands::state::ask;
use crate::figures::{Figures, Segment, Wear};
use grid::{Grid, Legend};
use onode::{Error, Result, human_size};
use onode_console::Output;
use onode_object::powers::{SegmentInfo, SegmentState};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

pub mod grid;
mod svg;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode map disk.img\n  onode map /mnt                 a mounted volume\n  \
    onode map --svg map.svg disk.img\n  onode map --json disk.img\n\n\
    In a terminal the colour of a cell is what the segment holds and its height how much of it is still\n\
    needed. Without colours (NO_COLOR, or piped) a letter says what it holds: small if less than half of it\n\
    is needed, `.` free, `,` held until the next checkpoint, `+` being filled, `x` bad.")]
pub struct Arguments {
    /// The image or device spec, or the directory where it is mounted.
    image: OsString,
    /// Write a picture, `-` to standard output, instead of drawing in the terminal.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Rows of a map at most; beyond, a cell stands for several segments.
const ROWS: usize = 64;

/// The segment map.
#[derive(Debug, Serialize)]
struct Report {
    spec: String,
    total_bytes: u64,
    available_bytes: u64,
    write_amplification: Option<f64>,
    segments_cleaned: u64,
    bytes_moved: u64,
    wear: Vec<Wear>,
    segments: Vec<Segment>,
    #[serde(skip)]
    text: String,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let (figures, segments) = ask::with_segments(&arguments.image)?;
    if let Some(path) = &arguments.svg {
        let picture = svg::picture(&figures, &segments);
        if path.as_os_str() == "-" {
            output.bytes(picture.as_bytes())?;
            return Ok(0);
        }
        std::fs::write(path, picture).map_err(|error| Error::host_file("write", path, &error))?;
        output.note(&format!("wrote {} segments to {}", segments.len(), path.display()));
        return Ok(0);
    }
    let text = draw(&figures, &segments, output.size().0, output.is_colored());
    let Figures {
        spec, total_bytes, available_bytes, write_amplification, segments_cleaned, bytes_moved, wear, ..
    } = figures;
    let segments = segments.into_iter().map(Segment::from).collect();
    output.report(&Report {
        spec,
        total_bytes,
        available_bytes,
        write_amplification,
        segments_cleaned,
        bytes_moved,
        wear,
        segments,
        text,
    })?;
    Ok(0)
}

fn draw(figures: &Figures, segments: &[SegmentInfo], columns: usize, colored: bool) -> String {
    let mut text = format!("{}\n{}\n", figures.spec, figures.space_line());
    let Some(first) = segments.first() else {
        text.push_str("the device has no segments\n");
        return text;
    };
    let legend = Legend::of(segments);
    let grid = Grid::of(segments, &legend, columns, ROWS);
    text.push_str(&format!("{} segments of {}", segments.len(), human_size(first.capacity_bytes)));
    if grid.segments_in_cell > 1 {
        text.push_str(&format!(", {} in a cell", grid.segments_in_cell));
    }
    text.push_str("\n\n");
    text.push_str(&grid.text(&legend, colored));
    text.push('\n');
    for stream in legend.streams() {
        let of_it = || segments.iter().filter(|one| one.stream == stream.name);
        let live: u64 = of_it().map(|one| one.live_bytes).sum();
        let capacity: u64 = of_it().map(|one| one.capacity_bytes).sum();
        let mark = grid::mark(stream, colored);
        let (live, capacity) = (human_size(live), human_size(capacity));
        text.push_str(&format!("{mark} {:<10} {:>7}  {live} live of {capacity}\n", stream.name, of_it().count()));
    }
    for (mark, state) in
        [('.', SegmentState::Free), (',', SegmentState::Held), ('+', SegmentState::Open), ('x', SegmentState::Bad)]
    {
        let count = segments.iter().filter(|one| one.state == state).count();
        text.push_str(&format!("{mark} {:<10} {count:>7}\n", state.name()));
    }
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
