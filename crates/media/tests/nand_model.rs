//! The same random operations on the simulator, on an image and on wrapped media give what a
//! trivial model of a chip gives.

use onode_media::image::{CreateOptions, ImageNand, OpenMode};
use onode_media::sim::{LatencyTable, SimNand, SimOptions};
use onode_media::wrap::{Counting, Faulty, Latency, Trace};
use onode_media::{BlockAddress, Geometry, IoTag, MediaErrorKind, Nand, OperationCounts, PageAddress};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 8, pages_per_block: 4, blocks: 8, chips: 2 };

#[derive(Clone, Debug)]
enum Operation {
    Read { first: u64, pages: usize, spare: bool },
    Program { first: u64, pages: usize, spare: bool, byte: u8 },
    Erase(u32),
    MarkBad(u32),
    Flush,
    Reopen,
}

fn operation() -> impl Strategy<Value = Operation> {
    // Addresses reach a little past the end, runs past their block.
    prop_oneof![
        6 => (0..34u64, 0..5usize, any::<bool>()).prop_map(|(first, pages, spare)| Operation::Read { first, pages, spare }),
        9 => (0..34u64, 0..5usize, any::<bool>(), any::<u8>())
            .prop_map(|(first, pages, spare, byte)| Operation::Program { first, pages, spare, byte }),
        4 => (0..9u32).prop_map(Operation::Erase),
        1 => (0..20u32).prop_map(Operation::MarkBad),
        1 => Just(Operation::Flush),
        1 => Just(Operation::Reopen),
    ]
}

/// A chip in its simplest form.
#[derive(Default)]
struct Model {
    pages: Vec<Option<(u8, Option<u8>)>>,
    bad: [bool; 8],
    counts: OperationCounts,
}

type Outcome = Result<Vec<u8>, MediaErrorKind>;

impl Model {
    fn new() -> Self {
        Self { pages: vec![None; 32], ..Self::default() }
    }

    fn check_run(first: u64, pages: usize) -> Result<usize, MediaErrorKind> {
        let inside = first < 32 && first % 4 + pages as u64 <= 4;
        if inside { Ok(first as usize) } else { Err(MediaErrorKind::OutOfRange) }
    }

    fn run(&mut self, operation: &Operation) -> Outcome {
        match *operation {
            Operation::Read { first, pages, spare } => {
                let first = Self::check_run(first, pages)?;
                self.counts.reads += pages as u64;
                let run = &self.pages[first..first + pages];
                let mut found: Vec<u8> =
                    run.iter().flat_map(|page| [page.map_or(0xff, |(data, _)| data); 512]).collect();
                if spare {
                    found.extend(run.iter().flat_map(|page| [page.and_then(|(_, spare)| spare).unwrap_or(0xff); 8]));
                }
                Ok(found)
            }
            Operation::Program { first, pages, spare, byte } => {
                let first = Self::check_run(first, pages)?;
                if pages == 0 {
                    return Ok(vec![]);
                }
                if self.bad[first / 4] {
                    return Err(MediaErrorKind::BadBlock);
                }
                if self.pages[first..first / 4 * 4 + 4].iter().any(Option::is_some) {
                    return Err(MediaErrorKind::ProgramOrder);
                }
                self.counts.programs += pages as u64;
                for (i, page) in self.pages[first..first + pages].iter_mut().enumerate() {
                    let byte = byte.wrapping_add(i as u8);
                    *page = Some((byte, spare.then_some(!byte)));
                }
                Ok(vec![])
            }
            Operation::Erase(block) => {
                if block >= 8 {
                    return Err(MediaErrorKind::OutOfRange);
                }
                if self.bad[block as usize] {
                    return Err(MediaErrorKind::BadBlock);
                }
                self.counts.erases += 1;
                self.pages[block as usize * 4..][..4].fill(None);
                Ok(vec![])
            }
            Operation::MarkBad(block) => {
                *self.bad.get_mut(block as usize).ok_or(MediaErrorKind::OutOfRange)? = true;
                Ok(vec![])
            }
            Operation::Flush | Operation::Reopen => Ok(vec![]),
        }
    }
}

fn run(nand: &mut dyn Nand, operation: &Operation) -> Outcome {
    let done = match *operation {
        Operation::Read { first, pages, spare } => {
            let (mut data, mut spares) = (vec![0x55; pages * 512], vec![0x55; if spare { pages * 8 } else { 0 }]);
            nand.read_run(PageAddress(first), &mut data, &mut spares, IoTag::Data).map(|()| [data, spares].concat())
        }
        Operation::Program { first, pages, spare, byte } => {
            let bytes = || (0..pages).map(|i| byte.wrapping_add(i as u8));
            let data: Vec<u8> = bytes().flat_map(|byte| [byte; 512]).collect();
            let spares: Vec<u8> = bytes().filter(|_| spare).flat_map(|byte| [!byte; 8]).collect();
            nand.program_run(PageAddress(first), &data, &spares, IoTag::Data).map(|()| vec![])
        }
        Operation::Erase(block) => nand.erase(BlockAddress(block), IoTag::Data).map(|()| vec![]),
        Operation::MarkBad(block) => nand.mark_bad(BlockAddress(block)).map(|()| vec![]),
        Operation::Flush => nand.flush().map(|()| vec![]),
        Operation::Reopen => Ok(vec![]),
    };
    done.map_err(|error| error.kind)
}

/// The number of the next image, so that threads of one process do not meet.
static NEXT: AtomicU32 = AtomicU32::new(0);

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn media_behave_as_the_model(operations in prop::collection::vec(operation(), 1..80)) {
        let sim = || SimNand::new(SHAPE, SimOptions::default()).unwrap();
        let mut model = Model::new();
        let mut plain = sim();
        let trace = Trace::new(sim());
        let log = trace.log();
        let boxed: Box<dyn Nand> = Box::new(Latency::new(trace, LatencyTable::default()));
        let mut wrapped = Counting::new(Faulty::new(boxed));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onode-nand-model-{}-{number}", std::process::id()));
        let overwrite = CreateOptions { overwrite: true, ..CreateOptions::default() };
        let mut image = ImageNand::create(&path, SHAPE, overwrite).unwrap();
        let mut seen_by_image = OperationCounts::default();

        for operation in &operations {
            if matches!(operation, Operation::Reopen) {
                let counts = image.counters().unwrap().total();
                seen_by_image.reads += counts.reads;
                seen_by_image.programs += counts.programs;
                seen_by_image.erases += counts.erases;
                drop(image);
                image = ImageNand::open(&path, OpenMode::ReadWrite).unwrap();
            }
            let expected = model.run(operation);
            prop_assert_eq!(&run(&mut plain, operation), &expected, "simulator, {:?}", operation);
            prop_assert_eq!(&run(&mut wrapped, operation), &expected, "wrapped, {:?}", operation);
            prop_assert_eq!(&run(&mut image, operation), &expected, "image, {:?}", operation);
        }
        let last = image.counters().unwrap().total();
        seen_by_image.reads += last.reads;
        seen_by_image.programs += last.programs;
        seen_by_image.erases += last.erases;
        prop_assert_eq!(plain.counters().unwrap().total(), model.counts);
        prop_assert_eq!(seen_by_image, model.counts);

        // The trace, replayed on a new chip, gives the same chip.
        let mut replayed = sim();
        for operation in log.take() {
            replayed.apply(&operation).unwrap();
        }
        for block in 0..SHAPE.blocks {
            let read = Operation::Read { first: u64::from(block) * 4, pages: 4, spare: true };
            prop_assert_eq!(run(&mut replayed, &read), run(&mut plain, &read));
            prop_assert_eq!(image.erase_count(BlockAddress(block)), plain.erase_count(BlockAddress(block)));
            prop_assert_eq!(replayed.erase_count(BlockAddress(block)), plain.erase_count(BlockAddress(block)));
        }
        drop(image);
        std::fs::remove_file(&path).unwrap();
    }
}
