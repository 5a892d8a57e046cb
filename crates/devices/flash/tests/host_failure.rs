//! A medium in a file of a host: when the host itself fails, what was not flushed survives in part
//! and in any order. The volume still shows a prefix of its commits and stays writable.

use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{
    BlockAddress, Counters, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SharedNand, SimNand, SimOptions,
};
use onode_object::conformance::{Harness, differential};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

struct State {
    flushed: SimNand,
    present: SimNand,
    pending: Vec<MediaOperation>,
    prng: Prng,
}

/// A NAND that keeps what was flushed, and of the rest whatever it likes.
#[derive(Clone)]
struct Volatile(Arc<Mutex<State>>);

impl Volatile {
    fn new(geometry: Geometry, seed: u64) -> Self {
        let nand = SimNand::new(geometry, SimOptions::default()).unwrap();
        let state = State { flushed: nand.clone(), present: nand, pending: Vec::new(), prng: Prng::new(seed) };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The host fails: each operation since the last flush is there or not.
    fn fail(&self) {
        let state = &mut *self.0.lock().unwrap();
        let mut survivor = state.flushed.clone();
        let share = state.prng.below(5);
        for operation in state.pending.drain(..) {
            if state.prng.below(4) < share {
                // One that depends on a lost one is lost, too.
                let _ = survivor.apply(&operation);
            }
        }
        state.flushed = survivor.clone();
        state.present = survivor;
    }
}

impl Volatile {
    /// What a failure of the host would leave now.
    fn after_failure(&self, seed: u64) -> Self {
        let state = self.0.lock().unwrap();
        let (flushed, present, pending) = (state.flushed.clone(), state.present.clone(), state.pending.clone());
        let copy = Self(Arc::new(Mutex::new(State { flushed, present, pending, prng: Prng::new(seed) })));
        copy.fail();
        copy
    }
}

impl Nand for Volatile {
    fn geometry(&self) -> Geometry {
        self.0.lock().unwrap().present.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().unwrap().present.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let state = &mut *self.0.lock().unwrap();
        state.present.program(page, data, spare, tag)?;
        state.pending.push(MediaOperation::Program { page, data: data.into(), spare: spare.into(), tag });
        Ok(())
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        let state = &mut *self.0.lock().unwrap();
        state.present.erase(block, tag)?;
        state.pending.push(MediaOperation::Erase { block, tag });
        Ok(())
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().unwrap().present.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.0.lock().unwrap().present.mark_bad(block)
    }
    fn flush(&mut self) -> Result<()> {
        let state = &mut *self.0.lock().unwrap();
        state.flushed = state.present.clone();
        state.pending.clear();
        Ok(())
    }
    fn keeps_order(&self) -> bool {
        false
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
}

impl SharedNand for Volatile {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().unwrap().present.read_run(first, data, spare, tag)
    }
    fn finish_flush(&self) -> Result<()> {
        self.clone().flush()
    }
}

struct OnHost {
    nand: Volatile,
    device: Option<FlashDevice>,
}

impl OnHost {
    fn new(bytes: u64, seed: u64) -> Self {
        Self::with_spare(bytes, seed, 16)
    }

    fn with_spare(bytes: u64, seed: u64, spare_bytes: u32) -> Self {
        let blocks = (bytes * 2 / (2048 * 32) + 64) as u32;
        let nand =
            Volatile::new(Geometry { page_bytes: 2048, spare_bytes, pages_per_block: 32, blocks, chips: 1 }, seed);
        let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
        Self { nand, device: Some(device) }
    }

    fn mount(&mut self) {
        self.device = None;
        let device = FlashDevice::mount(self.nand.clone(), &MountOptions::default()).unwrap();
        assert_eq!(device.info().read_only, None);
        self.device = Some(device);
    }
}

impl Harness for OnHost {
    fn device(&self) -> &dyn ObjectDevice {
        self.device.as_ref().unwrap()
    }
    fn reopen(&mut self) {
        self.device().close().unwrap();
        self.mount();
    }
    fn can_crash(&self) -> bool {
        true
    }
    fn crash(&mut self) {
        self.nand.fail();
        self.mount();
    }
}

#[test]
fn a_prefix_of_the_commits_survives_a_failing_host() {
    for seed in 0..12 {
        differential(&|bytes| Box::new(OnHost::new(bytes, seed)), seed, 600, true);
    }
}

#[test]
fn the_same_where_pages_wait_to_be_filled() {
    for seed in 0..12 {
        differential(&|bytes| Box::new(OnHost::with_spare(bytes, seed, 0)), seed, 600, true);
    }
}

/// Tails of synced writes wait in a page that later writes fill, and those may be lost with the
/// page.
#[test]
fn what_was_synced_outlives_a_page_that_is_lost() {
    for seed in 0..8 {
        let mut prng = Prng::new(seed);
        let mut host = OnHost::with_spare(4 << 20, seed, 0);
        let [synced, other] = [0; 2].map(|_| host.device().reserve_ids(1).unwrap());
        let mut transaction = Transaction::new();
        transaction.create(synced, Hints::default()).create(other, Hints::default());
        host.device().commit(transaction, Durability::Durable).unwrap();
        let mut expected = vec![0; 64 << 10];
        for round in 0..40 {
            for _ in 0..1 + prng.below(3) {
                let at = prng.below((expected.len() - 4096) as u64) as usize;
                expected[at..at + 4096].fill(prng.next_u64() as u8 | 1);
                let mut transaction = Transaction::new();
                transaction.write(synced, at as u64, expected[at..at + 4096].to_vec());
                host.device().commit(transaction, Durability::Durable).unwrap();
            }
            for _ in 0..prng.below(4) {
                let mut transaction = Transaction::new();
                transaction.write(other, prng.below(60_000), vec![round as u8; 100 + prng.below(30_000) as usize]);
                host.device().commit(transaction, Durability::Buffered).unwrap();
            }
            host.crash();
            let end = expected.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let mut found = vec![0; expected.len()];
            assert_eq!(host.device().read(synced, 0, &mut found).unwrap(), end, "seed {seed}, round {round}");
            assert!(found == expected, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn large_unflushed_writes_are_there_whole_or_not_at_all() {
    for seed in 0..40 {
        let mut host = OnHost::new(4 << 20, seed);
        let objects: Vec<ObjectId> = (0..6).map(|_| host.device().reserve_ids(1).unwrap()).collect();
        for &object in &objects {
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default()).write(object, 0, vec![object.0 as u8; 150_000]);
            host.device().commit(transaction, Durability::Buffered).unwrap();
        }
        host.crash();
        let alive = host.device().list(ObjectId(1), 100).unwrap();
        assert_eq!(alive, objects[..alive.len()], "seed {seed}: not a prefix");
        for object in alive {
            let mut bytes = vec![0; 150_000];
            assert_eq!(host.device().read(object, 0, &mut bytes).unwrap(), bytes.len());
            assert!(bytes.iter().all(|&byte| byte == object.0 as u8));
        }
    }
}

/// Several programs write and sync at the same time: what one of them was told is durable outlives
/// the host, whoever made the flush and whatever else was being written.
#[test]
fn what_was_synced_beside_others_outlives_the_host() {
    for spare_bytes in [0, 16] {
        let host = OnHost::with_spare(8 << 20, 1, spare_bytes);
        let device = host.device.as_ref().unwrap();
        let objects: Vec<ObjectId> = (0..4).map(|_| device.reserve_ids(1).unwrap()).collect();
        let mut transaction = Transaction::new();
        for object in &objects {
            transaction.create(*object, Hints::default());
        }
        device.commit(transaction, Durability::Durable).unwrap();
        let told: Vec<AtomicU64> = objects.iter().map(|_| AtomicU64::new(0)).collect();
        let running = AtomicU64::new(objects.len() as u64);
        std::thread::scope(|scope| {
            for (which, (object, told)) in objects.iter().zip(&told).enumerate() {
                let running = &running;
                scope.spawn(move || {
                    for round in 1..=120u64 {
                        let mut transaction = Transaction::new();
                        transaction.write(*object, 8, vec![round as u8; 200 + which * 900]).write(
                            *object,
                            0,
                            round.to_le_bytes().to_vec(),
                        );
                        if round.is_multiple_of(2) {
                            device.commit(transaction, Durability::Durable).unwrap();
                        } else {
                            device.commit(transaction, Durability::Buffered).unwrap();
                            device.sync(SyncScope::Object(*object)).unwrap();
                        }
                        told.store(round, Ordering::Release);
                    }
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            let mut seed = 0;
            while running.load(Ordering::Acquire) > 0 {
                seed += 1;
                let promised: Vec<u64> = told.iter().map(|told| told.load(Ordering::Acquire)).collect();
                let left = host.nand.after_failure(seed);
                let device = FlashDevice::mount(left, &MountOptions::default()).unwrap();
                for (object, promised) in objects.iter().zip(promised) {
                    let mut bytes = [0; 208];
                    let length = device.read(*object, 0, &mut bytes).unwrap();
                    let round = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    assert!(round >= promised, "{object}: {round} of {promised} rounds that were synced");
                    let content = &bytes[8.min(length)..length];
                    assert!(content.iter().all(|byte| *byte == round as u8), "{object}: a commit in part");
                }
            }
        });
    }
}
