//! The segment map as a picture: one square a segment, a legend with totals and the wear histogram.
//!
//! The height of the coloured part of a square is the live share; pointing at it shows all about
//! it. Plain SVG 1.1 without scripts or fonts of its own.

use super::grid::Legend;
use crate::figures::Figures;
use onode::human_size;
use onode_object::powers::{SegmentInfo, SegmentState};
use std::fmt::Write;

const SQUARE: usize = 12;
const STEP: usize = SQUARE + 2;
const MARGIN: usize = 20;
const LINE: usize = 18;
const BAR: usize = 300;
const LEGEND_WIDTH: usize = 420;

pub fn picture(figures: &Figures, segments: &[SegmentInfo]) -> String {
    let legend = Legend::of(segments);
    // Twice as wide as high.
    let columns = (1..).find(|n| n * n >= 2 * segments.len().max(16)).unwrap_or(64);
    let rows = segments.len().div_ceil(columns);
    let top = MARGIN + 3 * LINE;
    let legend_top = top + rows * STEP + LINE;
    let lines = legend.streams().len() + SegmentState::ALL.len() - 1;
    let height = legend_top + lines.max(figures.wear.len() + 1) * LINE + MARGIN;
    let width = (columns * STEP).max(2 * LEGEND_WIDTH) + 2 * MARGIN;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>Segments of {}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>",
        escaped(&figures.spec)
    );
    for (line, said) in [figures.spec.clone(), figures.space_line(), figures.cleaning_line()].iter().enumerate() {
        text(&mut svg, MARGIN, MARGIN + line * LINE, said);
    }
    for (index, segment) in segments.iter().enumerate() {
        let (x, y) = (MARGIN + index % columns * STEP, top + index / columns * STEP);
        square(&mut svg, x, y, segment, &legend);
    }
    legend_lines(&mut svg, legend_top, segments, &legend);
    histogram(&mut svg, legend_top, figures);
    svg.push_str("</svg>\n");
    svg
}

fn square(svg: &mut String, x: usize, y: usize, segment: &SegmentInfo, legend: &Legend) {
    let SegmentInfo { segment: number, state, stream, live_bytes, capacity_bytes, erases, age } = segment;
    let _ = write!(
        svg,
        "<g><title>segment {number}: {} {}, {} of {} live, {erases} erases, age {age}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" fill=\"{}\"/>",
        state.name(),
        escaped(stream),
        human_size(*live_bytes),
        human_size(*capacity_bytes),
        ground(*state)
    );
    if let Some(style) = legend.style(stream) {
        // Anything that is needed is visible.
        let filled = (SQUARE * segment.live_in_1000() as usize).div_ceil(1000);
        let from = y + SQUARE - filled;
        let _ =
            write!(svg, "<rect x=\"{x}\" y=\"{from}\" width=\"{SQUARE}\" height=\"{filled}\" fill=\"{}\"/>", style.rgb);
    }
    if *state == SegmentState::Open {
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" fill=\"none\" stroke=\"#222222\"/>"
        );
    }
    svg.push_str("</g>\n");
}

const fn ground(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Free => "#f2f2f2",
        SegmentState::Held => "#e0d4f0",
        SegmentState::Open | SegmentState::Full => "#d8d8d8",
        SegmentState::Bad => "#222222",
    }
}

fn legend_lines(svg: &mut String, top: usize, segments: &[SegmentInfo], legend: &Legend) {
    let mut y = top;
    let mut line = |color: &str, name: &str, count: usize, live: Option<u64>| {
        let _ =
            writeln!(svg, "<rect x=\"{MARGIN}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" fill=\"{color}\"/>");
        let live = live.map_or_else(String::new, |bytes| format!(", {} live", human_size(bytes)));
        text(svg, MARGIN + 2 * SQUARE, y + SQUARE - 2, &format!("{name}: {count} segments{live}"));
        y += LINE;
    };
    for style in legend.streams() {
        let of_it = || segments.iter().filter(|one| one.stream == style.name);
        line(style.rgb, &style.name, of_it().count(), Some(of_it().map(|one| one.live_bytes).sum()));
    }
    for state in SegmentState::ALL.into_iter().filter(|state| *state != SegmentState::Full) {
        let count = segments.iter().filter(|one| one.state == state).count();
        let name = if state == SegmentState::Open { "open (framed)" } else { state.name() };
        line(ground(state), name, count, None);
    }
}

fn histogram(svg: &mut String, top: usize, figures: &Figures) {
    let x = MARGIN + LEGEND_WIDTH;
    let most = figures.wear.iter().map(|step| step.segments).max().unwrap_or(0).max(1) as usize;
    if !figures.wear.is_empty() {
        text(svg, x, top + SQUARE - 2, "wear: segments by times erased");
    }
    for (index, step) in figures.wear.iter().enumerate() {
        let y = top + (index + 1) * LINE;
        let length = (BAR / 2 * step.segments as usize).div_ceil(most);
        text(svg, x, y + SQUARE - 2, &format!("{} - {}", step.from, step.to));
        let _ =
            writeln!(svg, "<rect x=\"{}\" y=\"{y}\" width=\"{length}\" height=\"{SQUARE}\" fill=\"#8172b3\"/>", x + 80);
        text(svg, x + 86 + length, y + SQUARE - 2, &step.segments.to_string());
    }
}

fn text(svg: &mut String, x: usize, y: usize, said: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{}</text>", escaped(said));
}

fn escaped(said: &str) -> String {
    let mut safe = String::with_capacity(said.len());
    for character in said.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // Most control characters may not occur in XML at all.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
