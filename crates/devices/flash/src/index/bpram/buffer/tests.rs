//! The write buffer by itself: what is kept is found, also after a cut, and nonsense is not
//! believed.

use super::*;
use onode_media::SimPmem;
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;

const MEMORY_BYTES: u64 = 8 << 10;

fn area() -> Area {
    Area::new(MEMORY_BYTES, 512, Some(0)).unwrap()
}

fn place(page: u32) -> PagePlace {
    PagePlace { segment: 7, page, sequence: 90 }
}

fn memory() -> SimPmem {
    SimPmem::new(MEMORY_BYTES, PmemOptions::default())
}

#[test]
fn an_area_is_of_whole_lines_at_the_end_and_no_more_than_half() {
    let one = area();
    assert_eq!((one.slots, one.begin % 64, one.slot_bytes % 64), (2, 0, 0));
    assert!(one.begin + one.bytes() <= MEMORY_BYTES && one.begin >= MEMORY_BYTES / 2);
    assert_eq!(Area::new(MEMORY_BYTES, 4096, None), None);
    assert!(Area::new(1 << 20, 2048, Some(256 << 10)).unwrap().bytes() <= 256 << 10);
}

#[test]
fn what_is_kept_is_found_page_after_page_and_slot_after_slot() {
    let memory = memory();
    let mut buffer = WriteBuffer::new(area(), 5);
    let (mut content, mut frames) = (Vec::new(), Vec::new());
    for step in 0..200_u32 {
        if step % 40 == 0 {
            (content, frames) = (Vec::new(), Vec::new());
        }
        content.extend_from_slice(&[step as u8; 3][..(step % 4) as usize % 3]);
        frames.extend_from_slice(&[!step as u8; 9]);
        assert!(buffer.keep(&memory, place(step / 40), &content, &frames).unwrap());
        let (again, held) = WriteBuffer::take_up(&memory, area(), 5);
        let expected =
            HeldPage { place: place(step / 40), content: content.clone(), frames: frames.clone(), lost: None };
        assert_eq!(held.as_ref(), Some(&expected), "step {step}");
        if step % 17 == 0 {
            // A mount takes it up as it is.
            buffer = again;
        }
    }
    assert_eq!(WriteBuffer::take_up(&memory, area(), 6).1, None, "another volume");
    assert!(!buffer.keep(&memory, place(9), &[1; 900], &[]).unwrap(), "more than a slot takes");
}

#[test]
fn nothing_new_costs_nothing() {
    let memory = memory();
    let mut buffer = WriteBuffer::new(area(), 5);
    assert!(buffer.keep(&memory, place(0), b"content", b"frames").unwrap());
    let fences = memory.counters().fences;
    assert!(buffer.keep(&memory, place(0), b"content", b"frames").unwrap());
    assert_eq!(memory.counters().fences, fences);
}

#[test]
fn a_cut_in_an_entry_leaves_what_was_there_before() {
    for seed in 0..400 {
        let memory = memory();
        let mut buffer = WriteBuffer::new(area(), 5);
        let steps = 1 + seed as usize % 40;
        let mut frames = Vec::new();
        for step in 0..steps {
            frames.extend_from_slice(&[step as u8; 20]);
            assert!(buffer.keep(&memory, place(0), &[], &frames).unwrap());
        }
        let before = frames.clone();
        frames.extend_from_slice(&[200; 30]);
        memory.cut_after(seed % 7);
        // Whether it ends well depends on where it was cut.
        let _ = buffer.keep(&memory, place(0), &[], &frames);
        let left = SimPmem::from_image(memory.crash_image(Survival::Words(seed)), PmemOptions::default());
        let held = WriteBuffer::take_up(&left, area(), 5).1.unwrap();
        assert!(held.frames == before || held.frames == frames, "{seed}: {} bytes", held.frames.len());
    }
}

#[test]
fn nonsense_is_not_believed() {
    let mut prng = onode_base::Prng::new(3);
    for _ in 0..2000 {
        let memory = memory();
        let mut buffer = WriteBuffer::new(area(), 5);
        for step in 1..4 {
            assert!(buffer.keep(&memory, place(1), &[], &[9; 40][..10 * step]).unwrap());
        }
        for _ in 0..8 {
            let at = area().begin + prng.below(area().bytes());
            memory.write(at, &[prng.below(256) as u8]);
        }
        if let Some(held) = WriteBuffer::take_up(&memory, area(), 5).1 {
            assert!(held.place == place(1) || held.lost == Some(place(1)));
            assert!(held.frames.iter().all(|byte| *byte == 9));
        }
    }
}
