//! What each wrapper adds, and that it passes the rest through.

use super::*;
use crate::fault::{Fault, OperationKind};
use crate::sim::{LatencyTable, MediaOperation, SimNand, SimOptions};
use crate::{BlockAddress, Geometry, IoTag, MediaErrorKind, Nand, OperationCounts, PageAddress};
use alloc::vec;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 8, pages_per_block: 8, blocks: 8, chips: 2 };

fn sim() -> SimNand {
    SimNand::new(SHAPE, SimOptions::default()).unwrap()
}

fn put<N: Nand>(nand: &mut N, page: u64, byte: u8) -> Result<(), MediaErrorKind> {
    nand.program(PageAddress(page), &[byte; 512], &[byte; 8], IoTag::Data).map_err(|error| error.kind)
}

fn get<N: Nand>(nand: &mut N, page: u64) -> Result<[u8; 512], MediaErrorKind> {
    let mut data = [0; 512];
    nand.read(PageAddress(page), &mut data, &mut [], IoTag::Check).map_err(|error| error.kind)?;
    Ok(data)
}

#[test]
fn counting_counts_by_tag_and_by_page() {
    let mut nand = Counting::new(sim());
    put(&mut nand, 0, 1).unwrap();
    nand.program_run(PageAddress(1), &[2; 3 * 512], &[], IoTag::Cleaning).unwrap();
    nand.read_run(PageAddress(0), &mut [0; 4 * 512], &mut [], IoTag::Recovery).unwrap();
    nand.erase(BlockAddress(0), IoTag::Cleaning).unwrap();
    let counters = nand.counters().unwrap();
    assert_eq!(counters.of(IoTag::Data), OperationCounts { programs: 1, ..OperationCounts::default() });
    assert_eq!(counters.of(IoTag::Cleaning), OperationCounts { reads: 0, programs: 3, erases: 1 });
    assert_eq!(counters.total(), nand.inner().counters().unwrap().total());
    nand.reset();
    assert_eq!(nand.counters().unwrap().total(), OperationCounts::default());
}

#[test]
fn a_fault_tears_the_page_and_passes() {
    let mut nand = Faulty::new(sim());
    let handle = nand.handle();
    put(&mut nand, 0, 0).unwrap();
    handle.inject(Fault::once(OperationKind::Program, handle.seen(OperationKind::Program)));
    assert_eq!(put(&mut nand, 1, 0), Err(MediaErrorKind::ProgramFailed));
    assert_eq!(put(&mut nand, 1, 0), Err(MediaErrorKind::ProgramOrder));
    put(&mut nand, 2, 0).unwrap();
    let torn = get(&mut nand, 1).unwrap();
    assert_eq!((&torn[..256], &torn[256..]), (&[0; 256][..], &[0xff; 256][..]));

    // Another error does nothing, so the program may be repeated.
    let full = Fault { error: MediaErrorKind::HostFull, ..Fault::once(OperationKind::Program, 4) };
    handle.inject(full);
    assert_eq!(put(&mut nand, 3, 3), Err(MediaErrorKind::HostFull));
    put(&mut nand, 3, 3).unwrap();
    assert_eq!(get(&mut nand, 3), Ok([3; 512]));
}

#[test]
fn a_sticky_fault_lasts_until_cleared() {
    let mut nand = Faulty::new(sim());
    let handle = nand.handle();
    put(&mut nand, 0, 9).unwrap();
    handle.inject(Fault::forever(OperationKind::Read, 1));
    handle.inject(Fault::forever(OperationKind::Erase, 0));
    handle.inject(Fault::once(OperationKind::Flush, 1));
    assert_eq!(get(&mut nand, 0), Ok([9; 512]));
    assert_eq!(get(&mut nand, 0), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(get(&mut nand, 0), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(nand.erase(BlockAddress(0), IoTag::Data).unwrap_err().kind, MediaErrorKind::EraseFailed);
    nand.flush().unwrap();
    assert_eq!(nand.flush().unwrap_err().kind, MediaErrorKind::Host);
    handle.clear();
    assert_eq!(get(&mut nand, 0), Ok([9; 512]));
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
}

#[test]
fn a_run_fails_at_the_page_that_is_due() {
    let mut nand = Faulty::new(sim());
    nand.handle().inject(Fault::once(OperationKind::Program, 2));
    nand.handle().inject(Fault::once(OperationKind::Read, 6));
    let failed = nand.program_run(PageAddress(0), &[5; 4 * 512], &[6; 4 * 8], IoTag::Data).unwrap_err();
    assert_eq!(failed.kind, MediaErrorKind::ProgramFailed);
    let (mut data, mut spare) = (vec![0; 4 * 512], vec![0; 4 * 8]);
    nand.read_run(PageAddress(0), &mut data, &mut spare, IoTag::Data).unwrap();
    assert!(data[..1024].iter().all(|byte| *byte == 5) && spare[..16].iter().all(|byte| *byte == 6));
    assert!(data[1536..].iter().all(|byte| *byte == 0xff) && spare[16..].iter().all(|byte| *byte == 0xff));
    let failed = nand.read_run(PageAddress(0), &mut data, &mut spare, IoTag::Data).unwrap_err();
    assert_eq!(failed.kind, MediaErrorKind::Uncorrectable);
    nand.read_run(PageAddress(0), &mut data, &mut spare, IoTag::Data).unwrap();
}

#[test]
fn latency_gives_the_times_of_the_simulator() {
    let (mut timed, mut simulated) = (Latency::new(Counting::new(sim()), LatencyTable::default()), sim());
    let steps = |nand: &mut dyn Nand| {
        nand.program_run(PageAddress(0), &[1; 3 * 512], &[], IoTag::Data).unwrap();
        nand.erase(BlockAddress(1), IoTag::Cleaning).unwrap();
        nand.read_run(PageAddress(0), &mut [0; 2 * 512], &mut [], IoTag::Data).unwrap();
        nand.read(PageAddress(8), &mut [0; 512], &mut [], IoTag::Data).unwrap();
        nand.program(PageAddress(8), &[1; 512], &[], IoTag::Data).unwrap();
        nand.flush().unwrap();
        nand.counters()
    };
    assert_eq!(steps(&mut timed), steps(&mut simulated));
    assert_eq!(timed.now_nanoseconds(), simulated.now_nanoseconds());
    assert!(timed.now_nanoseconds() > 2_000_000);
}

#[test]
fn a_trace_holds_what_succeeded_and_can_be_read_from_a_mark() {
    let mut nand = Trace::new(sim());
    let log = nand.log();
    put(&mut nand, 0, 1).unwrap();
    put(&mut nand, 0, 2).unwrap_err();
    get(&mut nand, 0).unwrap();
    let mark = log.mark();
    nand.program_run(PageAddress(1), &[3; 2 * 512], &[4; 16], IoTag::Journal).unwrap();
    nand.erase(BlockAddress(3), IoTag::Cleaning).unwrap();
    nand.mark_bad(BlockAddress(4)).unwrap();
    let program = |page, byte, spare: u8, tag| MediaOperation::Program {
        page: PageAddress(page),
        data: vec![byte; 512].into(),
        spare: vec![spare; 8].into(),
        tag,
    };
    let expected = [
        program(0, 1, 1, IoTag::Data),
        program(1, 3, 4, IoTag::Journal),
        program(2, 3, 4, IoTag::Journal),
        MediaOperation::Erase { block: BlockAddress(3), tag: IoTag::Cleaning },
        MediaOperation::MarkBad { block: BlockAddress(4) },
    ];
    assert_eq!((mark, log.mark()), (1, 5));
    assert_eq!(log.since(mark), expected[1..]);
    assert_eq!(log.since(99), []);
    assert_eq!(log.take(), expected);
    assert_eq!(log.mark(), 0);
}
