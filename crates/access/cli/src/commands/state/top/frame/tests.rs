//! What a frame of the view shows.

#![expect(clippy::disallowed_methods, reason = "a moment to count from")]

use super::*;
use crate::figures::Erases;
use std::time::Duration;

fn figures(programs: u64, written: u64) -> Figures {
    Figures {
        spec: "flash:disk.img".to_owned(),
        read_only: None,
        health: Default::default(),
        total_bytes: 1 << 20,
        available_bytes: 1 << 19,
        objects: 3,
        files: BTreeMap::from([("written_bytes".to_owned(), written)]),
        requests: BTreeMap::new(),
        settings: BTreeMap::new(),
        device: BTreeMap::new(),
        tags: vec![Tag { tag: "data".to_owned(), programs, bytes_programmed: programs * 1000, ..Tag::default() }],
        segments_cleaned: 0,
        bytes_moved: 0,
        bytes_written: written,
        write_amplification: Some(1.25),
        policies: BTreeMap::new(),
        erases: Some(Erases::default()),
        costliest_objects: Vec::new(),
        wear: vec![Wear { from: 0, to: 1, segments: 4 }, Wear { from: 2, to: 3, segments: 2 }],
        ram: BTreeMap::from([("node_cache".to_owned(), 2048)]),
        segments: BTreeMap::new(),
        all: false,
    }
}

#[test]
fn the_first_frame_has_totals_and_the_next_ones_rates() {
    let begin = Instant::now();
    let first = Frame::new(figures(10, 5000), Vec::new(), begin, None);
    let text = first.drawn((80, 24), false).to_string();
    assert!(text.contains("4.8 KiB written") && text.contains("write amplification 1.25"), "{text}");
    assert!(
        text.contains("0-1")
            && text.contains("      4 ######################## ")
            && text.contains("      2 ############\n"),
        "{text}"
    );
    assert!(text.contains("node cache              2.0 KiB"), "{text}");
    let second = Frame::new(figures(30, 13_192), Vec::new(), begin + Duration::from_secs(2), Some(first));
    let rates = second.rates.clone().expect("rates");
    assert_eq!((rates.programs, rates.written_bytes, rates.tags["data"]), (10, 4096, (0, 10)));
    assert!((rates.write_amplification.expect("written") - 20_000.0 / 8192.0).abs() < 1e-9);
    let text = second.drawn((80, 24), false).to_string();
    assert!(text.contains("write 4.0 KiB/s") && text.contains("now 2.44"), "{text}");
}

#[test]
fn a_volume_that_starts_anew_has_no_negative_rates() {
    let begin = Instant::now();
    let first = Frame::new(figures(10, 5000), Vec::new(), begin, None);
    let second = Frame::new(figures(2, 0), Vec::new(), begin, Some(first));
    let rates = second.rates.expect("rates");
    assert_eq!((rates.programs, rates.written_bytes, rates.write_amplification), (0, 0, None));
}

#[test]
fn a_screen_is_never_larger_than_the_terminal() {
    let segments: Vec<SegmentInfo> = (0..5000)
        .map(|segment| SegmentInfo {
            segment,
            state: onode_object::powers::SegmentState::Full,
            stream: "data".to_owned(),
            live_bytes: 1,
            capacity_bytes: 2,
            erases: 0,
            age: 0,
        })
        .collect();
    let frame = Frame::new(figures(10, 5000), segments, Instant::now(), None);
    for size in [(80, 24), (40, 10), (200, 60), (1, 1)] {
        for colored in [false, true] {
            let screen = frame.drawn(size, colored).screen(size);
            assert!(screen.starts_with("\x1b[H") && screen.ends_with("\x1b[K\x1b[J"), "{screen:?}");
            assert_eq!(screen.matches("\x1b[K").count(), screen.matches("\r\n").count() + 1);
            assert!(screen.split("\r\n").count() <= size.1, "{size:?}");
            let plain = screen.replace("\x1b[H", "").replace("\x1b[K", "").replace("\x1b[J", "");
            let is_cut = plain.split("\r\n").filter(|line| !line.contains('\x1b'));
            assert!(is_cut.into_iter().all(|line| line.chars().count() <= size.0), "{size:?}: {plain}");
        }
    }
    let text = frame.drawn((80, 24), false).to_string();
    assert_eq!(text.lines().filter(|line| line.contains("DDDD")).count(), 4, "{text}");
}

#[test]
fn a_fast_disk_shows_what_it_is_good_for_in_place_of_wear() {
    let device = [("fast.hits", 9), ("fast.misses", 3), ("fast.blocks_copied", 100), ("fast.blocks_promoted", 4)];
    let two_disks = Figures {
        device: device.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        tags: Vec::new(),
        erases: None,
        wear: Vec::new(),
        ..figures(0, 5000)
    };
    let text = Frame::new(two_disks, Vec::new(), Instant::now(), None).drawn((80, 24), false).to_string();
    assert!(text.contains("fast      75.0 % of 12 reads hit, 400.0 KiB copied, 16.0 KiB promoted\n"), "{text}");
    assert!(text.contains("\nmemory of the device 2.0 KiB\n  node cache "), "{text}");
    assert!(!text.contains("wear") && !text.contains("cleaning") && !text.contains("pages for"), "{text}");
}
