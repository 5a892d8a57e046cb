//! The rules of the chip, wear, virtual time, failures and independence of clones.

use super::*;
use crate::fault::Fault;
use alloc::vec;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 4, blocks: 16, chips: 2 };

fn perfect() -> SimNand {
    SimNand::new(SHAPE, SimOptions::default()).unwrap()
}

fn kind<T: core::fmt::Debug>(result: Result<T>) -> MediaErrorKind {
    result.unwrap_err().kind
}

fn byte_of(nand: &mut SimNand, page: u64) -> Result<u8> {
    let mut data = [0; 512];
    nand.read(PageAddress(page), &mut data, &mut [], IoTag::Data)?;
    assert!(data.iter().all(|byte| *byte == data[0]));
    Ok(data[0])
}

fn put(nand: &mut SimNand, page: u64, byte: u8) -> Result<()> {
    nand.program(PageAddress(page), &[byte; 512], &[byte; 16], IoTag::Data)
}

#[test]
fn a_page_is_programmed_once_and_in_order() {
    let mut nand = perfect();
    put(&mut nand, 0, 1).unwrap();
    assert_eq!(kind(put(&mut nand, 0, 2)), MediaErrorKind::ProgramOrder);
    put(&mut nand, 2, 3).unwrap();
    assert_eq!(kind(put(&mut nand, 1, 2)), MediaErrorKind::ProgramOrder);
    assert_eq!(byte_of(&mut nand, 0), Ok(1));
    assert_eq!(byte_of(&mut nand, 1), Ok(0xff));
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
    assert_eq!(byte_of(&mut nand, 2), Ok(0xff));
    put(&mut nand, 0, 4).unwrap();
    assert_eq!(byte_of(&mut nand, 0), Ok(4));
}

#[test]
fn wrong_addresses_and_buffers_are_out_of_range() {
    let mut nand = perfect();
    let end = SHAPE.pages();
    assert_eq!(kind(put(&mut nand, end, 1)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.program(PageAddress(0), &[0; 511], &[], IoTag::Data)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.program(PageAddress(0), &[0; 1024], &[], IoTag::Data)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.program(PageAddress(0), &[], &[0; 16], IoTag::Data)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.program(PageAddress(0), &[0; 512], &[0; 15], IoTag::Data)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.erase(BlockAddress(16), IoTag::Data)), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.is_bad(BlockAddress(16))), MediaErrorKind::OutOfRange);
    assert_eq!(kind(nand.mark_bad(BlockAddress(16))), MediaErrorKind::OutOfRange);
    // A run may not leave its block.
    assert_eq!(
        kind(nand.read_run(PageAddress(2), &mut [0; 3 * 512], &mut [], IoTag::Data)),
        MediaErrorKind::OutOfRange
    );
    let wrong = Geometry { page_bytes: 1000, ..SHAPE };
    assert_eq!(kind(SimNand::new(wrong, SimOptions::default())), MediaErrorKind::OutOfRange);
}

#[test]
fn runs_carry_data_and_spare_of_each_page() {
    let mut nand = perfect();
    let data: Vec<u8> = (0..3u8).flat_map(|i| [i; 512]).collect();
    let spare: Vec<u8> = (0..3u8).flat_map(|i| [0x10 + i; 16]).collect();
    nand.program_run(PageAddress(5), &data, &spare, IoTag::Data).unwrap();
    let (mut found, mut found_spare) = (vec![0; 3 * 512], vec![0; 3 * 16]);
    nand.read_run(PageAddress(5), &mut found, &mut found_spare, IoTag::Data).unwrap();
    assert_eq!((&found, &found_spare), (&data, &spare));
    let mut only_spare = vec![0; 2 * 16];
    nand.read_run(PageAddress(6), &mut [], &mut only_spare, IoTag::Data).unwrap();
    assert_eq!(only_spare, &spare[16..]);
    assert_eq!(nand.counters().unwrap().of(IoTag::Data), crate::OperationCounts { reads: 5, programs: 3, erases: 0 });
}

#[test]
fn clones_share_content_and_are_independent() {
    let mut nand = perfect();
    put(&mut nand, 0, 1).unwrap();
    let mut clone = nand.clone();
    put(&mut clone, 1, 2).unwrap();
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
    put(&mut nand, 0, 3).unwrap();
    assert_eq!((byte_of(&mut clone, 0), byte_of(&mut clone, 1)), (Ok(1), Ok(2)));
    assert_eq!((byte_of(&mut nand, 0), byte_of(&mut nand, 1)), (Ok(3), Ok(0xff)));
    assert_eq!((nand.erase_count(BlockAddress(0)), clone.erase_count(BlockAddress(0))), (Some(1), Some(0)));
}

#[test]
fn bad_blocks_refuse_and_stay_bad() {
    let options = SimOptions { factory_bad: FactoryBad::List(vec![BlockAddress(3)]), ..SimOptions::default() };
    let mut nand = SimNand::new(SHAPE, options).unwrap();
    assert_eq!((nand.is_bad(BlockAddress(3)), nand.is_bad(BlockAddress(4))), (Ok(true), Ok(false)));
    assert_eq!(kind(nand.erase(BlockAddress(3), IoTag::Data)), MediaErrorKind::BadBlock);
    nand.mark_bad(BlockAddress(4)).unwrap();
    assert_eq!(kind(put(&mut nand, 16, 1)), MediaErrorKind::BadBlock);
    assert_eq!(nand.clone().is_bad(BlockAddress(4)), Ok(true));

    let share = SimOptions { factory_bad: FactoryBad::PerThousand(250), seed: 5, ..SimOptions::default() };
    let shape = Geometry { blocks: 1000, ..SHAPE };
    let mut nand = SimNand::new(shape, share).unwrap();
    let bad = (0..1000).filter(|b| nand.is_bad(BlockAddress(*b)).unwrap()).count();
    assert!((200..300).contains(&bad), "{bad}");
    assert_eq!(nand.is_bad(BlockAddress(0)), Ok(false));
}

#[test]
fn erases_beyond_the_endurance_fail() {
    let mut nand = SimNand::new(SHAPE, SimOptions { endurance: Some(3), ..SimOptions::default() }).unwrap();
    for _ in 0..3 {
        nand.erase(BlockAddress(1), IoTag::Cleaning).unwrap();
    }
    put(&mut nand, 4, 7).unwrap();
    assert_eq!(kind(nand.erase(BlockAddress(1), IoTag::Cleaning)), MediaErrorKind::EraseFailed);
    assert_eq!(byte_of(&mut nand, 4), Ok(7));
    assert_eq!(nand.wear(), Wear { least: 0, most: 3, total: 3 });
    assert_eq!(nand.counters().unwrap().of(IoTag::Cleaning).erases, 4);
}

#[test]
fn planned_failures_happen_once_and_spend_the_page() {
    let faults = vec![
        Fault::once(OperationKind::Program, 1),
        Fault::once(OperationKind::Read, 0),
        Fault::forever(OperationKind::Erase, 1),
        Fault::once(OperationKind::Flush, 0),
    ];
    let mut nand = SimNand::new(SHAPE, SimOptions { faults, ..SimOptions::default() }).unwrap();
    put(&mut nand, 0, 1).unwrap();
    assert_eq!(kind(put(&mut nand, 1, 2)), MediaErrorKind::ProgramFailed);
    assert_eq!(kind(put(&mut nand, 1, 2)), MediaErrorKind::ProgramOrder);
    put(&mut nand, 2, 3).unwrap();
    assert_eq!(byte_of(&mut nand, 0).map_err(|e| e.kind), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(byte_of(&mut nand, 0), Ok(1));
    assert_eq!(byte_of(&mut nand, 1).map_err(|e| e.kind), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(kind(nand.flush()), MediaErrorKind::Host);
    nand.flush().unwrap();
    nand.erase(BlockAddress(0), IoTag::Data).unwrap();
    assert_eq!(byte_of(&mut nand, 1), Ok(0xff));
    for block in 0..3 {
        assert_eq!(kind(nand.erase(BlockAddress(block), IoTag::Data)), MediaErrorKind::EraseFailed);
    }
}

#[test]
fn bit_errors_within_the_budget_are_corrected_and_counted() {
    let errors = BitErrors { per_billion_bits: 500_000, correctable_bits: 40, ..BitErrors::default() };
    let mut nand = SimNand::new(SHAPE, SimOptions { bit_errors: Some(errors), ..SimOptions::default() }).unwrap();
    put(&mut nand, 0, 9).unwrap();
    for _ in 0..1000 {
        assert_eq!(byte_of(&mut nand, 0), Ok(9));
    }
    // 4,224 bits at 5 * 10^-4 are 2.1 errors a read.
    let corrected = nand.counters().unwrap().corrected_bits;
    assert!((1900..2350).contains(&corrected), "{corrected}");

    let hopeless = BitErrors { per_billion_bits: 10_000_000, correctable_bits: 8, ..BitErrors::default() };
    let mut nand = SimNand::new(SHAPE, SimOptions { bit_errors: Some(hopeless), ..SimOptions::default() }).unwrap();
    let failed = (0..100).filter(|_| byte_of(&mut nand, 0).is_err()).count();
    assert!(failed > 95, "{failed}");
}

#[test]
fn reads_disturb_a_block_until_it_is_erased() {
    let errors = BitErrors { correctable_bits: 8, reads_per_bit: 10, ..BitErrors::default() };
    let mut nand = SimNand::new(SHAPE, SimOptions { bit_errors: Some(errors), ..SimOptions::default() }).unwrap();
    let block = SHAPE.block_of(PageAddress(0));
    for round in 0..2 {
        put(&mut nand, 0, 9).unwrap();
        let read = |nand: &mut SimNand| byte_of(nand, 0) == Ok(9);
        let told = (0..).take_while(|_| read(&mut nand) && nand.take_bitflips() == Some(vec![])).count();
        // Six wrong bits, each after 10 reads in the usual page.
        assert!((40..=120).contains(&told), "round {round}: {told} reads");
        let more = (0..).take_while(|_| read(&mut nand)).count();
        assert!((told / 3 - 2..=told / 2 + 2).contains(&more), "round {round}: {told} reads and {more}");
        assert_eq!(nand.take_bitflips(), Some(vec![block]));
        nand.erase(block, IoTag::Data).unwrap();
    }
    assert_eq!(nand.take_bitflips(), Some(vec![]));
    assert_eq!(perfect().take_bitflips(), None);
}

#[test]
fn virtual_time_overlaps_over_chips() {
    let mut nand = perfect();
    // Blocks 0 and 1 lie on chips 0 and 1, block 2 on chip 0 again.
    put(&mut nand, 0, 1).unwrap();
    put(&mut nand, 4, 1).unwrap();
    assert_eq!(nand.counters().unwrap().virtual_nanoseconds, 200_000);
    put(&mut nand, 8, 1).unwrap();
    assert_eq!(nand.counters().unwrap().virtual_nanoseconds, 400_000);
    byte_of(&mut nand, 4).unwrap();
    assert_eq!(nand.now_nanoseconds(), 215_000);
    nand.flush().unwrap();
    assert_eq!(nand.now_nanoseconds(), 400_000);
    nand.reset_counters();
    assert_eq!((nand.now_nanoseconds(), nand.counters()), (0, Some(Counters::default())));
}

#[test]
fn equal_calls_give_equal_runs() {
    let options = SimOptions {
        bit_errors: Some(BitErrors { per_billion_bits: 1_000_000, correctable_bits: 5, ..BitErrors::default() }),
        factory_bad: FactoryBad::PerThousand(100),
        seed: 77,
        ..SimOptions::default()
    };
    let run = || {
        let mut nand = SimNand::new(SHAPE, options.clone()).unwrap();
        let reads: Vec<bool> = (0..64).map(|page| byte_of(&mut nand, page).is_ok()).collect();
        (reads, nand.counters().unwrap())
    };
    assert_eq!(run(), run());
    assert!(run().0.contains(&false));
}
