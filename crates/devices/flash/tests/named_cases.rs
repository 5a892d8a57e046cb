//! What broke YAFFS, and what the format of paper 3 leaves open, on flash with a memory beside it:
//! each by its number in the catalogue of failures.

use crate::common::pair::{Look, look, memory, put, used};
use crate::common::{SMALL, Shared};
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, MemoryOptions, MountOptions, MountPath};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{
    BlockAddress, Counters, Damage, Error, Geometry, IoTag, MediaErrorKind, MediaOperation, Nand, PageAddress, SimPmem,
};
use onode_object::powers::{Inspect, SegmentState};
use onode_object::{Durability, ObjectDevice, ObjectId, Transaction};
use std::sync::Arc;

const OFF: MemoryOptions = MemoryOptions { rebuild: false, spill: false, buffer: false, log_bytes: None };
const ON: MemoryOptions = MemoryOptions { buffer: true, ..OFF };

fn mounted(nand: &Shared, image: &[u8], beside: &MemoryOptions) -> onode_object::Result<(FlashDevice, MountPath)> {
    let memory = Arc::new(SimPmem::from_image(image.to_vec(), PmemOptions::default()));
    let nand = Shared::holding(nand.with(|nand| nand.clone()));
    FlashDevice::mount_beside(nand, memory, &MountOptions::default(), beside, &mut |_| {})
        .and_then(|(device, path)| device.confirm().map(|()| (device, path)))
}

/// YAFFS: files were changed after the checkpoint, which was believed all the same, and went back
/// to what they were.
#[test]
fn case_15_an_old_checkpoint_is_not_believed() {
    for beside in [OFF, ON] {
        let mut pair = used(96, 128 << 10, 60, beside);
        pair.device().close().unwrap();
        let closed = pair.memory.image();
        pair.mount();
        for _ in 0..40 {
            put(pair.device(), None, 0, 900);
        }
        pair.device().close().unwrap();
        pair.mount();
        put(pair.device(), None, 0, 10);
        let seen = look(pair.device());
        pair.device().close().unwrap();
        // The memory says that nothing followed.
        let old = mounted(&pair.nand, &closed, &beside);
        assert_eq!(old.err().map(|error| error.kind), Some(ErrorKind::Stale));
        let (device, _) = mounted(&pair.nand, &closed, &MemoryOptions { rebuild: true, ..beside }).unwrap();
        assert_eq!(look(&device), seen);
    }
}

/// YAFFS: the id of a removed object was given to another while its old headers were still there.
#[test]
fn case_16_ids_are_never_used_again() {
    for beside in [OFF, ON] {
        let mut pair = used(96, 128 << 10, 40, beside);
        let mut highest = ObjectId(0);
        for round in 0..9 {
            let object = put(pair.device(), None, 0, 50);
            assert!(object > highest, "round {round}: {object:?} after {highest:?}");
            highest = object;
            let mut transaction = Transaction::new();
            transaction.remove(object);
            pair.device().commit(transaction, Durability::Durable).unwrap();
            match round % 3 {
                0 => pair.device().close().unwrap(),
                1 => pair.cut(Survival::Nothing),
                _ => {
                    // All of it on the flash, then no memory at all.
                    pair.device().close().unwrap();
                    pair.memory = memory(128 << 10);
                }
            }
            pair.mount();
            assert!(pair.device().stat(object).is_err());
        }
    }
}

/// YAFFS: mounted without its checkpoint, files had no bytes.
#[test]
fn case_17_sizes_and_bytes_are_the_same_however_it_is_mounted() {
    for beside in [OFF, ON] {
        let pair = used(96, 128 << 10, 150, beside);
        let device = pair.device();
        // Long and short of their extents, and without any.
        for (object, size) in [(put(device, None, 0, 5000), 70_000), (put(device, None, 90_000, 10), 95_000)] {
            let mut transaction = Transaction::new();
            transaction.truncate(object, size);
            device.commit(transaction, Durability::Durable).unwrap();
        }
        let cut_off = put(device, None, 0, 8000);
        let mut transaction = Transaction::new();
        transaction.truncate(cut_off, 3001);
        device.commit(transaction, Durability::Durable).unwrap();
        let seen = look(device);
        let behind = pair.memory.crash_image(Survival::Nothing);
        let (device, path) = mounted(&pair.nand, &behind, &beside).unwrap();
        assert_eq!((look(&device), path), (seen.clone(), MountPath::Behind));
        pair.device().close().unwrap();
        for (image, wanted) in [(pair.memory.image(), true), (vec![0; behind.len()], false)] {
            let (device, path) = mounted(&pair.nand, &image, &beside).unwrap();
            assert_eq!(path == MountPath::Memory, wanted);
            assert_eq!(look(&device), seen);
        }
    }
}

/// YAFFS: a block that was erased by half had a header of garbage, and was believed.
#[test]
fn case_18_a_block_that_was_erased_by_half_is_nothing() {
    for seed in 0..6 {
        let pair = used(96, 128 << 10, 500, OFF);
        let seen = look(pair.device());
        // Segments lie one after another behind the blocks of superblocks.
        let segments = pair.device().segments();
        let per_segment = (96 - 4) / segments.len() as u32;
        let free = segments.iter().filter(|one| one.state == SegmentState::Free).map(|one| one.segment);
        let mut hit = 0;
        for segment in free {
            let block = BlockAddress(4 + segment * per_segment);
            let erase = MediaOperation::Erase { block, tag: IoTag::Data };
            for damage in [Damage::EraseRandom, Damage::EraseGarbage, Damage::ErasePrefix] {
                hit += u32::from(pair.nand.with(|nand| nand.apply_cut(&erase, damage, seed)).is_ok());
            }
        }
        assert!(hit > 0);
        for image in [pair.memory.crash_image(Survival::Nothing), vec![0; 128 << 10]] {
            let (device, _) = mounted(&pair.nand, &image, &OFF).unwrap();
            assert_eq!(look(&device), seen);
            assert_eq!(device.compare_memory().unwrap(), Vec::<String>::new());
            // And is used again as if nothing had been.
            for _ in 0..100 {
                put(&device, None, 0, 4000);
            }
            assert_eq!(device.compare_memory().unwrap(), Vec::<String>::new());
        }
    }
}

/// A chip that loses power with the memory beside it.
struct CutTogether {
    nand: Shared,
    memory: Arc<SimPmem>,
}

impl CutTogether {
    fn check(&self) -> onode_media::Result<()> {
        let refused = || Error::new(MediaErrorKind::Host, "the power is off".to_owned());
        if self.memory.is_cut() { Err(refused()) } else { Ok(()) }
    }
}

impl Nand for CutTogether {
    fn geometry(&self) -> Geometry {
        self.nand.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> onode_media::Result<()> {
        self.nand.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> onode_media::Result<()> {
        self.check()?;
        self.nand.program(page, data, spare, tag)
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> onode_media::Result<()> {
        self.check()?;
        self.nand.erase(block, tag)
    }
    fn is_bad(&mut self, block: BlockAddress) -> onode_media::Result<bool> {
        self.nand.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> onode_media::Result<()> {
        self.check()?;
        self.nand.mark_bad(block)
    }
    fn flush(&mut self) -> onode_media::Result<()> {
        self.check()
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
}

/// CMFS: what is cut while records are replaced, whatever of it survives and whichever of anchor
/// and records does; nothing old is given up before the new counts.
#[test]
fn case_40_records_are_replaced_wholly_or_not_at_all() {
    for beside in [OFF, ON] {
        let pair = used(64, 64 << 10, 40, beside);
        pair.device().close().unwrap();
        let (nand, image) = (pair.nand.with(|nand| nand.clone()), pair.memory.image());
        // Opens, changes objects and closes: several folds. Each state in between is one of these.
        let work = |nand: Shared, memory: Arc<SimPmem>, states: &mut Vec<Vec<Look>>| -> onode_object::Result<()> {
            let together = CutTogether { nand, memory: memory.clone() };
            let (device, _) =
                FlashDevice::mount_beside(together, memory, &MountOptions::default(), &beside, &mut |_| {})?;
            let objects = device.list(ObjectId(0), usize::MAX)?;
            for (step, object) in objects.into_iter().take(6).enumerate() {
                let mut transaction = Transaction::new();
                transaction.write(object, 0, vec![step as u8; 3000]);
                device.commit(transaction, Durability::Durable)?;
                states.push(look(&device));
            }
            device.close()
        };
        let whole = Arc::new(SimPmem::from_image(image.clone(), PmemOptions::default()));
        let mut states = vec![look(pair.device())];
        let before = whole.events();
        work(Shared::holding(nand.clone()), whole.clone(), &mut states).unwrap();
        let events = whole.events() - before;
        assert!(events > 60, "{events} events");
        for cut in (0..events).step_by((events / 70).max(1) as usize) {
            let memory = Arc::new(SimPmem::from_image(image.clone(), PmemOptions::default()));
            let chip = Shared::holding(nand.clone());
            memory.cut_after(cut);
            let mut reached = Vec::new();
            let _ = work(chip.clone(), memory.clone(), &mut reached);
            for survival in [Survival::Nothing, Survival::Everything, Survival::Words(cut)] {
                let (device, path) = mounted(&chip, &memory.crash_image(survival), &beside).unwrap();
                assert!(!matches!(path, MountPath::Rebuilt(_)), "cut {cut}: {path:?}");
                let found = look(&device);
                let at = states.iter().position(|state| *state == found).expect("a state that there never was");
                assert!(at >= reached.len(), "cut {cut}: state {at}, {} were synced", reached.len());
                assert_eq!(device.compare_memory().unwrap(), Vec::<String>::new());
            }
        }
    }
}

/// CMFS: the memory of another board.
#[test]
fn case_40_the_memory_of_another_board_is_told_and_left_alone() {
    let pair = used(64, 64 << 10, 40, ON);
    let seen = look(pair.device());
    pair.device().close().unwrap();
    let other = {
        let nand = Shared::new(Geometry { blocks: 64, ..SMALL });
        let format = onode_flash::FormatOptions { uuid: [9; 16], ..Default::default() };
        let theirs = memory(64 << 10);
        let mount = MountOptions::default();
        let device = FlashDevice::format_beside(nand, theirs.clone(), &format, &mount, &ON).unwrap();
        put(&device, None, 0, 100);
        theirs.image()
    };
    assert_eq!(mounted(&pair.nand, &other, &ON).err().map(|error| error.kind), Some(ErrorKind::WrongPart));
    // Told to take it, the volume is what it was, and nothing of the other one's buffer comes in.
    let (device, _) = mounted(&pair.nand, &other, &MemoryOptions { rebuild: true, ..ON }).unwrap();
    assert_eq!(look(&device), seen);
}
