//! Segments as cells of a grid, and the colours and letters of what they hold.
//!
//! Streams have names that only the device gives; known ones have colours of their own, others get
//! what is left, in alphabetical order, so that equal devices look equal.

use onode_object::powers::{SegmentInfo, SegmentState};
use std::collections::BTreeSet;

/// Name, letter, colour of a terminal with 256, colour of a picture.
const KNOWN: [(&str, char, u8, &str); 6] = [
    ("data", 'd', 71, "#55a868"),
    ("journal", 'j', 67, "#4c72b0"),
    ("index", 'i', 173, "#dd8452"),
    ("cold", 'c', 74, "#64b5cd"),
    ("atime", 'a', 133, "#a05195"),
    ("parity", 'p', 131, "#c44e52"),
];
const OTHERS: [(u8, &str); 6] =
    [(143, "#ccb974"), (103, "#8172b3"), (102, "#7f7f7f"), (65, "#3b7a57"), (174, "#da8bc3"), (95, "#937860")];
/// Eighths of a full block.
const LEVELS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
const RESET: &str = "\x1b[0m";

/// How one stream is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStyle {
    pub name: String,
    pub letter: char,
    /// Of a terminal with 256 colours.
    pub terminal: u8,
    /// Of a picture.
    pub rgb: &'static str,
}

/// How the streams of a device are drawn.
#[derive(Debug)]
pub struct Legend(Vec<StreamStyle>);

impl Legend {
    /// The streams that occur in `segments`.
    pub fn of(segments: &[SegmentInfo]) -> Self {
        let names: BTreeSet<&str> =
            segments.iter().map(|one| one.stream.as_str()).filter(|name| !name.is_empty()).collect();
        let is_known = |name: &str| KNOWN.iter().any(|one| one.0 == name);
        let mut styles: Vec<StreamStyle> = KNOWN
            .iter()
            .filter(|known| names.contains(known.0))
            .map(|&(name, letter, terminal, rgb)| StreamStyle { name: name.to_owned(), letter, terminal, rgb })
            .collect();
        let mut others = OTHERS.iter().cycle();
        for name in names.into_iter().filter(|name| !is_known(name)) {
            let taken = |letter: &char| styles.iter().any(|style| style.letter == *letter);
            let own = name.chars().map(|c| c.to_ascii_lowercase()).filter(char::is_ascii_lowercase);
            let letter = own.chain('a'..='z').find(|letter| *letter != 'x' && !taken(letter)).unwrap_or('?');
            if let Some(&(terminal, rgb)) = others.next() {
                styles.push(StreamStyle { name: name.to_owned(), letter, terminal, rgb });
            }
        }
        Self(styles)
    }

    pub fn streams(&self) -> &[StreamStyle] {
        &self.0
    }

    pub fn style(&self, stream: &str) -> Option<&StreamStyle> {
        self.0.iter().find(|style| style.name == stream)
    }
}

/// One or several segments that are drawn as one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    state: SegmentState,
    stream: String,
    live_in_1000: u64,
}

/// All segments in rows of cells.
#[derive(Debug)]
pub struct Grid {
    cells: Vec<Cell>,
    pub segments_in_cell: usize,
    cells_in_row: usize,
}

impl Grid {
    /// A grid for a terminal with so many columns, of at most `rows` rows.
    pub fn of(segments: &[SegmentInfo], legend: &Legend, columns: usize, rows: usize) -> Self {
        // Powers of two make numbers of rows easy to read; eight columns go to them.
        let cells_in_row = match columns.saturating_sub(8) {
            0..64 => 32,
            64..128 => 64,
            _ => 128,
        };
        let segments_in_cell = segments.len().div_ceil(cells_in_row * rows.max(1)).max(1);
        let cells = segments.chunks(segments_in_cell).map(|some| Cell::of(some, legend)).collect();
        Self { cells, segments_in_cell, cells_in_row }
    }

    /// The rows, each with the number of its first segment.
    pub fn text(&self, legend: &Legend, colored: bool) -> String {
        let mut text = String::new();
        for (row, cells) in self.cells.chunks(self.cells_in_row).enumerate() {
            text.push_str(&format!("{:>6}  ", row * self.cells_in_row * self.segments_in_cell));
            for cell in cells {
                cell.draw(legend, colored, &mut text);
            }
            text.push('\n');
        }
        text
    }
}

impl Cell {
    fn of(segments: &[SegmentInfo], legend: &Legend) -> Self {
        let count = |state| segments.iter().filter(|one| one.state == state).count();
        let most = SegmentState::ALL.into_iter().max_by_key(|&state| count(state)).unwrap_or(SegmentState::Free);
        let live: u64 = segments.iter().map(|one| one.live_bytes).sum();
        let capacity: u64 = segments.iter().map(|one| one.capacity_bytes).sum();
        let held_by = |style: &StreamStyle| {
            let of_it = segments.iter().filter(|one| one.stream == style.name);
            // An open segment without live bytes still belongs to its stream.
            of_it.map(|one| one.live_bytes + 1).sum::<u64>()
        };
        let stream = legend.streams().iter().filter(|style| held_by(style) > 0).max_by_key(|style| held_by(style));
        Self {
            state: if count(SegmentState::Open) > 0 { SegmentState::Open } else { most },
            stream: stream.map_or_else(String::new, |style| style.name.clone()),
            live_in_1000: live.saturating_mul(1000).checked_div(capacity).unwrap_or(0).min(1000),
        }
    }

    fn draw(&self, legend: &Legend, colored: bool, text: &mut String) {
        let style = legend.style(&self.stream);
        match (self.state, style) {
            (SegmentState::Bad, _) if colored => text.push_str(&format!("\x1b[1;31mx{RESET}")),
            (SegmentState::Bad, _) => text.push('x'),
            (SegmentState::Free, _) => text.push('.'),
            (SegmentState::Held, _) | (SegmentState::Full, None) => text.push(','),
            (SegmentState::Open | SegmentState::Full, Some(style)) if colored => {
                let level = LEVELS.get((self.live_in_1000 * 8 / 1001) as usize).copied().unwrap_or(' ');
                // What is being filled stands on a lighter ground.
                let ground = if self.state == SegmentState::Open { 250 } else { 236 };
                text.push_str(&format!("\x1b[38;5;{};48;5;{ground}m{level}{RESET}", style.terminal));
            }
            (SegmentState::Open, _) => text.push('+'),
            (SegmentState::Full, Some(style)) if self.live_in_1000 >= 500 => {
                text.push(style.letter.to_ascii_uppercase());
            }
            (SegmentState::Full, Some(style)) => text.push(style.letter),
        }
    }
}

/// The mark of a stream in a legend.
pub fn mark(style: &StreamStyle, colored: bool) -> String {
    if colored {
        format!("\x1b[38;5;{}m{}{RESET}", style.terminal, '\u{2588}')
    } else {
        style.letter.to_ascii_uppercase().to_string()
    }
}
