//! Each damage does what it says, and no more.

use super::*;
use crate::nand::Geometry;
use crate::sim::SimOptions;
use alloc::vec;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 8, chips: 1 };
const PAGE: PageAddress = PageAddress(9);
const BLOCK: BlockAddress = BlockAddress(1);

type Read = core::result::Result<(Vec<u8>, Vec<u8>), MediaErrorKind>;

fn read(nand: &mut SimNand, page: u64) -> Read {
    let (mut data, mut spare) = (vec![0; 512], vec![0; 16]);
    match nand.read(PageAddress(page), &mut data, &mut spare, IoTag::Check) {
        Ok(()) => Ok((data, spare)),
        Err(error) => Err(error.kind),
    }
}

fn pattern(page: u64) -> (Vec<u8>, Vec<u8>) {
    ((0..512).map(|i| (i * 3 + page) as u8).collect(), vec![page as u8; 16])
}

fn program(page: u64) -> MediaOperation {
    let (data, spare) = pattern(page);
    MediaOperation::Program { page: PageAddress(page), data: data.into(), spare: spare.into(), tag: IoTag::Data }
}

const fn erase() -> MediaOperation {
    MediaOperation::Erase { block: BLOCK, tag: IoTag::Cleaning }
}

/// Page 8 programmed, page 9 cut.
fn cut_page(damage: Damage, seed: u64) -> SimNand {
    let mut nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    nand.apply(&program(8)).unwrap();
    nand.apply_cut(&program(9), damage, seed).unwrap();
    assert_eq!(read(&mut nand, 8), Ok(pattern(8)), "the page before is untouched");
    nand
}

/// Block 1 full, its erase cut.
fn cut_block(damage: Damage, seed: u64) -> SimNand {
    let mut nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    for page in 0..16 {
        nand.apply(&program(page)).unwrap();
    }
    nand.apply_cut(&erase(), damage, seed).unwrap();
    assert_eq!(read(&mut nand, 7), Ok(pattern(7)), "the block before is untouched");
    nand
}

fn erased() -> Read {
    Ok((vec![0xff; 512], vec![0xff; 16]))
}

#[test]
fn nothing_and_complete() {
    let mut nand = cut_page(Damage::Nothing, 0);
    assert_eq!(read(&mut nand, 9), erased());
    nand.apply(&program(9)).unwrap();
    assert_eq!(read(&mut cut_page(Damage::Complete, 0), 9), Ok(pattern(9)));

    assert_eq!(read(&mut cut_block(Damage::Nothing, 0), 8), Ok(pattern(8)));
    let mut nand = cut_block(Damage::Complete, 0);
    assert_eq!((read(&mut nand, 8), nand.erase_count(BLOCK)), (erased(), Some(1)));
    nand.apply(&program(8)).unwrap();

    let mark = MediaOperation::MarkBad { block: BLOCK };
    nand.apply_cut(&mark, Damage::Nothing, 0).unwrap();
    assert_eq!(nand.is_bad(BLOCK), Ok(false));
    nand.apply_cut(&mark, Damage::Complete, 0).unwrap();
    assert_eq!(nand.is_bad(BLOCK), Ok(true));
}

#[test]
fn a_torn_page_holds_a_prefix_and_is_spent() {
    for (prefix, kept) in [(Prefix::One, 1), (Prefix::Quarter, 128), (Prefix::Half, 256), (Prefix::AllButOne, 511)] {
        let mut nand = cut_page(Damage::PrefixBytes(prefix), 0);
        let (mut wanted, _) = pattern(9);
        wanted[kept..].fill(0xff);
        assert_eq!(read(&mut nand, 9), Ok((wanted, vec![0xff; 16])));
        assert_eq!(nand.apply(&program(9)).unwrap_err().kind, MediaErrorKind::ProgramOrder);
        nand.apply(&program(10)).unwrap();
    }
}

#[test]
fn random_bits_are_only_set_and_follow_the_seed() {
    let (data, spare) = pattern(9);
    let wanted = [data, spare].concat();
    let found = |seed| {
        let (data, spare) = read(&mut cut_page(Damage::RandomBits, seed), 9).unwrap();
        [data, spare].concat()
    };
    let lost: u32 = wanted.iter().zip(found(1)).map(|(before, after)| (before ^ after).count_ones()).sum();
    assert_eq!(lost, LOST_BITS);
    assert!(wanted.iter().zip(found(1)).all(|(before, after)| before & after == *before));
    assert_eq!(found(1), found(1));
    assert_ne!(found(1), found(2));

    // A page with a single programmed bit loses just that.
    let mut almost_erased = vec![0xff; 512];
    almost_erased[300] = 0xdf;
    unprogram(&mut almost_erased, &mut Prng::new(0));
    assert_eq!(almost_erased, vec![0xff; 512]);
}

#[test]
fn spare_lost_keeps_the_data() {
    assert_eq!(read(&mut cut_page(Damage::SpareLost, 0), 9), Ok((pattern(9).0, vec![0xff; 16])));
}

#[test]
fn an_unstable_page_turns_after_its_good_reads_also_in_clones() {
    let mut nand = cut_page(Damage::Unstable { good_reads: 2, later: Later::Uncorrectable }, 0);
    assert_eq!(read(&mut nand, 9), Ok(pattern(9)));
    let mut clone = nand.clone();
    assert_eq!(read(&mut nand, 9), Ok(pattern(9)));
    assert_eq!(read(&mut nand, 9), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(read(&mut nand, 9), Err(MediaErrorKind::Uncorrectable));
    assert_eq!(read(&mut clone, 9), Ok(pattern(9)));
    assert_eq!(read(&mut clone, 9), Err(MediaErrorKind::Uncorrectable));

    let mut nand = cut_page(Damage::Unstable { good_reads: 1, later: Later::Different }, 0);
    assert_eq!(read(&mut nand, 9), Ok(pattern(9)));
    let (second, third) = (read(&mut nand, 9).unwrap(), read(&mut nand, 9).unwrap());
    assert_ne!(second, pattern(9));
    assert_ne!(second, third);
    nand.erase(BLOCK, IoTag::Data).unwrap();
    nand.apply(&program(9)).unwrap();
    for _ in 0..3 {
        assert_eq!(read(&mut nand, 9), Ok(pattern(9)));
    }
}

#[test]
fn uncorrectable_from_the_start_until_the_erase() {
    let mut nand = cut_page(Damage::Uncorrectable, 0);
    assert_eq!(read(&mut nand, 9), Err(MediaErrorKind::Uncorrectable));
    nand.erase(BLOCK, IoTag::Data).unwrap();
    assert_eq!(read(&mut nand, 9), erased());

    let mut nand = cut_block(Damage::Uncorrectable, 0);
    assert!((8..16).all(|page| read(&mut nand, page) == Err(MediaErrorKind::Uncorrectable)));
    nand.erase(BLOCK, IoTag::Data).unwrap();
    nand.apply(&program(8)).unwrap();
    assert_eq!(read(&mut nand, 8), Ok(pattern(8)));
}

#[test]
fn a_partly_erased_block_needs_a_new_erase() {
    let mut nand = cut_block(Damage::ErasePrefix, 0);
    for page in 8..16 {
        assert_eq!(read(&mut nand, page), if page < 12 { erased() } else { Ok(pattern(page)) });
    }
    assert_eq!(nand.apply(&program(8)).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    assert_eq!(nand.erase_count(BLOCK), Some(1));

    let mut seen = [0; 2];
    for seed in 0..50 {
        let mut nand = cut_block(Damage::EraseRandom, seed);
        let pages: Vec<Read> = (8..16).map(|page| read(&mut nand, page)).collect();
        let gone = pages.iter().filter(|page| **page == erased()).count();
        assert!((1..8).contains(&gone), "{gone}");
        for (page, found) in (8..16).zip(pages) {
            assert!(found == erased() || found == Ok(pattern(page)));
        }
        seen[usize::from(gone > 4)] += 1;
        assert_eq!(nand.apply(&program(8)).unwrap_err().kind, MediaErrorKind::ProgramOrder);
    }
    assert!(seen[0] > 0 && seen[1] > 0);
}

#[test]
fn a_block_that_was_not_full_needs_a_new_erase_too() {
    for damage in [Damage::ErasePrefix, Damage::EraseRandom, Damage::EraseGarbage, Damage::Uncorrectable] {
        let mut nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
        nand.apply(&program(8)).unwrap();
        nand.apply_cut(&erase(), damage, 0).unwrap();
        assert_eq!(nand.apply(&program(9)).unwrap_err().kind, MediaErrorKind::ProgramOrder, "{damage:?}");
        nand.apply(&erase()).unwrap();
        nand.apply(&program(9)).unwrap();
        assert_eq!(read(&mut nand, 9), Ok(pattern(9)));
    }
}

#[test]
fn a_half_erased_block_looks_erased_and_keeps_nothing() {
    let mut nand = cut_block(Damage::HalfErased(WeakBlock::ProgramFails), 0);
    assert!((8..16).all(|page| read(&mut nand, page) == erased()));
    assert_eq!(nand.apply(&program(8)).unwrap_err().kind, MediaErrorKind::ProgramFailed);
    assert_eq!(read(&mut nand, 8), Err(MediaErrorKind::Uncorrectable));

    let mut nand = cut_block(Damage::HalfErased(WeakBlock::ContentLost), 0);
    assert!((8..16).all(|page| read(&mut nand, page) == erased()));
    nand.apply(&program(8)).unwrap();
    assert_eq!(read(&mut nand, 8), Err(MediaErrorKind::Uncorrectable));
    nand.erase(BLOCK, IoTag::Data).unwrap();
    nand.apply(&program(8)).unwrap();
    assert_eq!(read(&mut nand, 8), Ok(pattern(8)));
}

#[test]
fn garbage_is_neither_old_nor_erased() {
    let mut nand = cut_block(Damage::EraseGarbage, 4);
    for page in 8..16 {
        let found = read(&mut nand, page);
        assert!(found.is_ok() && found != Ok(pattern(page)) && found != erased());
    }
    assert_eq!(nand.apply(&program(8)).unwrap_err().kind, MediaErrorKind::ProgramOrder);
}

#[test]
fn only_fitting_damages_are_listed_and_taken() {
    let mark = MediaOperation::MarkBad { block: BLOCK };
    let MediaOperation::Program { page, data, tag, .. } = program(0) else { unreachable!() };
    let without_spare = MediaOperation::Program { page, data, spare: Arc::from(&[][..]), tag };
    let counts = [(program(0), 11), (without_spare, 10), (erase(), 8), (mark, 2)];
    for (operation, count) in &counts {
        let listed = Damage::variants_for(operation);
        assert_eq!(listed.len(), *count);
        let mut left = listed;
        while let [first, rest @ ..] = left {
            assert!(first.fits(operation) && !rest.contains(first), "{first:?}");
            left = rest;
        }
    }
    let mut nand = SimNand::new(SHAPE, SimOptions::default()).unwrap();
    assert_eq!(nand.apply_cut(&erase(), Damage::RandomBits, 0).unwrap_err().kind, MediaErrorKind::OutOfRange);
    assert_eq!(nand.apply_cut(&program(9), Damage::EraseRandom, 0).unwrap_err().kind, MediaErrorKind::OutOfRange);
    nand.apply_cut(&program(9), Damage::Complete, 0).unwrap();
    assert_eq!(nand.apply_cut(&program(PAGE.0), Damage::Complete, 0).unwrap_err().kind, MediaErrorKind::ProgramOrder);
}
