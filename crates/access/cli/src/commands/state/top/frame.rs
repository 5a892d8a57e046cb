//! One frame of `onode top`: figures now, and what they grew by since the frame before.

use crate::commands::state::map::grid::{Grid, Legend, mark};
use crate::figures::{Figures, Tag, Wear};
use onode::human_size;
use onode_object::powers::SegmentInfo;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

const BAR: usize = 24;
/// Rows that stand around the segment map, and those it has at least.
const OTHER_ROWS: usize = 28;
const LEAST_MAP_ROWS: usize = 4;

/// A look at a volume.
pub struct Frame {
    figures: Figures,
    segments: Vec<SegmentInfo>,
    taken: Instant,
    rates: Option<Rates>,
}

/// What grew since the frame before, for each second.
#[derive(Clone, Debug, Serialize)]
pub struct Rates {
    seconds: f64,
    written_bytes: u64,
    read_bytes: u64,
    programs: u64,
    page_reads: u64,
    erases: u64,
    segments_cleaned: u64,
    bytes_moved: u64,
    write_amplification: Option<f64>,
    tags: BTreeMap<String, (u64, u64)>,
}

/// A frame as it is printed.
#[derive(Serialize)]
pub struct Drawn<'a> {
    #[serde(flatten)]
    figures: &'a Figures,
    rates: &'a Option<Rates>,
    #[serde(skip)]
    text: String,
}

impl Frame {
    pub fn new(figures: Figures, segments: Vec<SegmentInfo>, taken: Instant, before: Option<Self>) -> Self {
        let rates = before
            .map(|before| Rates::between(&before.figures, &figures, taken.duration_since(before.taken).as_secs_f64()));
        Self { figures, segments, taken, rates }
    }

    /// The frame for a terminal of that many columns and rows.
    pub fn drawn(&self, size: (usize, usize), colored: bool) -> Drawn<'_> {
        let (columns, rows) = size;
        let mut text = String::new();
        self.heading(&mut text);
        self.map(columns, rows.saturating_sub(OTHER_ROWS).max(LEAST_MAP_ROWS), colored, &mut text);
        self.tags(&mut text);
        self.wear_and_memory(&mut text);
        Drawn { figures: &self.figures, rates: &self.rates, text }
    }

    fn heading(&self, text: &mut String) {
        let figures = &self.figures;
        text.push_str(&format!("{}   {}\n", figures.spec, figures.space_line()));
        if let Some(why) = &figures.read_only {
            text.push_str(&format!("READ-ONLY: {why}\n"));
        }
        text.push_str(&figures.health_lines());
        let waiting = human_size(figures.file_system("dirty_bytes"));
        match &self.rates {
            Some(rates) => text.push_str(&format!(
                "files     write {}/s   read {}/s   {waiting} to be written\n",
                human_size(rates.written_bytes),
                human_size(rates.read_bytes)
            )),
            None => text.push_str(&format!(
                "files     {} written   {} read   {waiting} to be written\n",
                human_size(figures.file_system("written_bytes")),
                human_size(figures.file_system("read_bytes"))
            )),
        }
        let cleaning = figures.cleaning_line();
        if !cleaning.is_empty() {
            text.push_str(&format!("cleaning  {cleaning}"));
            if let Some(rates) = &self.rates {
                let now = rates.write_amplification.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
                text.push_str(&format!("; now {now}, {} moved/s", human_size(rates.bytes_moved)));
            }
            text.push('\n');
        }
        if let Some(fast) = figures.fast_line() {
            text.push_str(&format!("fast      {fast}\n"));
        }
        if let Some(beside) = figures.beside_line() {
            text.push_str(&format!("memory    {beside}\n"));
        }
    }

    fn tags(&self, text: &mut String) {
        let all = self.figures.all_tags();
        if all.reads + all.programs + all.erases == 0 {
            return;
        }
        text.push_str("\npages for         reads     programs    erases     reads/s  programs/s\n");
        let rate = |tag: &str| self.rates.as_ref().and_then(|rates| rates.tags.get(tag)).copied();
        for one in self.figures.tags.iter().chain([&all]).filter(|one| one.reads + one.programs + one.erases > 0) {
            let Tag { tag, reads, programs, erases, .. } = one;
            text.push_str(&format!("  {tag:<10} {reads:>10} {programs:>12} {erases:>9}"));
            if let Some((reads, programs)) = rate(tag) {
                text.push_str(&format!(" {reads:>11} {programs:>11}"));
            }
            text.push('\n');
        }
    }

    fn wear_and_memory(&self, text: &mut String) {
        let (wear, ram) = (&self.figures.wear, &self.figures.ram);
        if wear.is_empty() && ram.is_empty() {
            return;
        }
        let total: u64 = ram.values().sum();
        let (left_head, width) = if wear.is_empty() { ("", 0) } else { ("wear: erases  segments", 46) };
        text.push_str(&format!(
            "\n{}\n",
            format!("{left_head:<width$} memory of the device {}", human_size(total)).trim_start()
        ));
        let most = wear.iter().map(|step| step.segments).max().unwrap_or(0).max(1) as usize;
        for row in 0..wear.len().max(ram.len()) {
            let left = wear.get(row).map_or_else(String::new, |Wear { from, to, segments }| {
                let bar = "#".repeat((*segments as usize * BAR).div_ceil(most));
                format!("  {:<11} {segments:>5} {bar}", format!("{from}-{to}"))
            });
            let right = ram.iter().nth(row).map_or_else(String::new, |(part, bytes)| {
                format!("{:<20} {:>10}", part.replace('_', " "), human_size(*bytes))
            });
            let line = if wear.is_empty() { format!("  {right}") } else { format!("{left:<width$} {right}") };
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }

    fn map(&self, columns: usize, rows: usize, colored: bool, text: &mut String) {
        let Some(first) = self.segments.first() else { return };
        let legend = Legend::of(&self.segments);
        let grid = Grid::of(&self.segments, &legend, columns, rows);
        let marks: Vec<String> =
            legend.streams().iter().map(|style| format!("{} {}", mark(style, colored), style.name)).collect();
        text.push_str(&format!(
            "\n{} segments of {}, {} in a cell: {}, . free, held\n",
            self.segments.len(),
            human_size(first.capacity_bytes),
            grid.segments_in_cell,
            marks.join(", ")
        ));
        text.push_str(&grid.text(&legend, colored));
    }
}

impl Drawn<'_> {
    /// The frame cut to a screen, with what it takes to draw it over the one before: each line
    /// clears what stood there.
    pub fn screen(&self, size: (usize, usize)) -> String {
        let (columns, rows) = size;
        let mut screen = "\x1b[H".to_owned();
        for (row, line) in self.text.lines().take(rows.max(1)).enumerate() {
            if row > 0 {
                screen.push_str("\r\n");
            }
            // Rows of the map are made to fit and hold colours that must not be cut.
            let fits = line.contains('\x1b') || line.chars().count() <= columns;
            let shown: String = if fits { line.to_owned() } else { line.chars().take(columns).collect() };
            screen.push_str(&shown);
            screen.push_str("\x1b[K");
        }
        screen.push_str("\x1b[J");
        screen
    }
}

impl Rates {
    fn between(before: &Figures, now: &Figures, seconds: f64) -> Self {
        // A volume that was closed and opened in between counts from zero again.
        let rate = |before: u64, now: u64| match seconds > 0.0 {
            true => (now.saturating_sub(before) as f64 / seconds).round() as u64,
            false => 0,
        };
        let file_system = |name: &str| rate(before.file_system(name), now.file_system(name));
        let (all_before, all_now) = (before.all_tags(), now.all_tags());
        let written = now.bytes_written.saturating_sub(before.bytes_written);
        let programmed = all_now.bytes_programmed.saturating_sub(all_before.bytes_programmed);
        let mut tags: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for one in now.tags.iter().chain([&all_now]) {
            let then = before.tags.iter().chain([&all_before]).find(|then| then.tag == one.tag);
            let (reads, programs) = then.map_or((0, 0), |then| (then.reads, then.programs));
            tags.insert(one.tag.clone(), (rate(reads, one.reads), rate(programs, one.programs)));
        }
        Self {
            seconds,
            written_bytes: file_system("written_bytes"),
            read_bytes: file_system("read_bytes"),
            programs: rate(all_before.programs, all_now.programs),
            page_reads: rate(all_before.reads, all_now.reads),
            erases: rate(all_before.erases, all_now.erases),
            segments_cleaned: rate(before.segments_cleaned, now.segments_cleaned),
            bytes_moved: rate(before.bytes_moved, now.bytes_moved),
            write_amplification: (written > 0).then(|| programmed as f64 / written as f64),
            tags,
        }
    }
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
