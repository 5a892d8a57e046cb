//! What the map of segments shows.

use super::*;
use crate::figures::Segments;
use std::collections::BTreeMap;

fn segment(segment: u32, state: SegmentState, stream: &str, live_bytes: u64) -> SegmentInfo {
    SegmentInfo { segment, state, stream: stream.to_owned(), live_bytes, capacity_bytes: 1000, erases: segment, age: 1 }
}

/// One of each kind.
pub fn mixed() -> Vec<SegmentInfo> {
    vec![
        segment(0, SegmentState::Full, "data", 900),
        segment(1, SegmentState::Full, "data", 100),
        segment(2, SegmentState::Full, "index", 500),
        segment(3, SegmentState::Open, "journal", 0),
        segment(4, SegmentState::Free, "", 0),
        segment(5, SegmentState::Held, "", 0),
        segment(6, SegmentState::Bad, "", 0),
        segment(7, SegmentState::Full, "drafts <&\"", 600),
    ]
}

pub fn figures() -> Figures {
    Figures {
        spec: "flash:a<b>&\"c\u{1}.img".to_owned(),
        read_only: None,
        health: Default::default(),
        total_bytes: 8000,
        available_bytes: 5900,
        objects: 3,
        files: BTreeMap::new(),
        requests: BTreeMap::new(),
        settings: BTreeMap::new(),
        device: BTreeMap::new(),
        tags: Vec::new(),
        segments_cleaned: 0,
        bytes_moved: 0,
        bytes_written: 0,
        write_amplification: None,
        policies: BTreeMap::new(),
        erases: None,
        costliest_objects: Vec::new(),
        wear: vec![Wear { from: 0, to: 3, segments: 4 }, Wear { from: 4, to: 7, segments: 3 }],
        ram: BTreeMap::new(),
        all: false,
        segments: BTreeMap::from([("full data".to_owned(), Segments::default())]),
    }
}

#[test]
fn a_plain_map_has_a_letter_for_each_segment() {
    let text = draw(&figures(), &mixed(), 80, false);
    // `d` is taken by the data, so the drafts get their next letter.
    assert!(text.contains("     0  DdI+.,xR\n"), "{text}");
    assert!(text.contains("D data             2") && text.contains("x bad              1"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_coloured_map_shows_the_fill_by_height() {
    let text = draw(&figures(), &mixed(), 80, true);
    assert!(text.contains("\x1b[38;5;71;48;5;236m\u{2588}\x1b[0m\x1b[38;5;71;48;5;236m\u{2581}\x1b[0m"), "{text}");
    // Each colour is ended.
    assert_eq!(text.matches("\x1b[").count(), 2 * text.matches("\x1b[0m").count());
}

#[test]
fn many_segments_share_cells_and_none_is_lost() {
    let all: Vec<_> = (0..10_000).map(|number| segment(number, SegmentState::Full, "data", 700)).collect();
    let legend = Legend::of(&all);
    for (columns, rows) in [(10, 1), (80, 64), (200, 16), (0, 0)] {
        let grid = Grid::of(&all, &legend, columns, rows);
        let text = grid.text(&legend, false);
        assert!(text.lines().count() <= rows.max(1), "{columns} {rows}");
        assert_eq!(text.matches('D').count(), all.len().div_ceil(grid.segments_in_cell));
    }
    let one_open = [all[..9].to_vec(), vec![segment(9, SegmentState::Open, "journal", 0)]].concat();
    let legend = Legend::of(&one_open);
    assert!(Grid::of(&one_open, &legend, 80, 0).text(&legend, false).contains('+'));
}

#[test]
fn a_device_without_segments_says_so() {
    assert!(draw(&figures(), &[], 80, false).contains("no segments"));
    well_formed(&svg::picture(&figures(), &[]));
}

#[test]
fn the_picture_is_well_formed_and_complete() {
    let picture = svg::picture(&figures(), &mixed());
    well_formed(&picture);
    assert_eq!(picture.matches("<g><title>segment ").count(), 8);
    assert!(
        picture.contains("<title>segment 1: full data, 100 B of 1000 B live, 1 erases, age 1</title>"),
        "{picture}"
    );
    assert!(picture.contains("open (framed): 1 segments") && picture.contains(">4 - 7</text>"), "{picture}");
    assert!(picture.contains("a&lt;b&gt;&amp;&quot;c .img"), "{picture}");
}

/// Elements nest, attributes are quoted, and nothing that XML forbids is in the text.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>') && !text.contains(char::is_control) || text.trim().is_empty(), "{text:?}");
        for entity in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "{entity}");
        }
        let end = start + rest[start..].find('>').expect("an end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let name = tag.split([' ', '/']).next().expect("a name");
        assert_eq!(tag.matches('"').count(), 2 * tag.matches('=').count(), "{tag}");
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
}
