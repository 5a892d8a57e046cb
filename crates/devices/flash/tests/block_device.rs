//! The device on block devices: the conformance suite in a file, and what such devices do beyond a
//! chip: they show old content where something was erased, and lose what was not flushed sector by
//! sector.

#[cfg(target_os = "linux")]
mod linux {
    use onode_base::Prng;
    use onode_flash::{FlashDevice, FormatOptions, MountOptions};
    use onode_media::image::OpenMode;
    use onode_media::real::BlockNand;
    use onode_media::real::block::bytes_for;
    use onode_media::{BlockDev, IoTag};
    use onode_media::{Geometry, Result};
    use onode_object::conformance::{Harness, differential};
    use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard};

    fn shape(blocks: u32, pages_per_block: u32) -> Geometry {
        Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block, blocks, chips: 1 }
    }

    /// A volume on a file used like a device.
    struct InFile {
        path: PathBuf,
        device: Option<FlashDevice>,
    }

    static NEXT: AtomicU32 = AtomicU32::new(0);

    impl InFile {
        fn holding(bytes: u64) -> Self {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("onode-flash-block-{}-{number}", std::process::id()));
            std::fs::write(&path, "").unwrap();
            let mut blocks = (bytes / (4096 * 64)) as u32 + 24;
            loop {
                let nand = BlockNand::create(&path, shape(blocks, 64), [3; 16]).unwrap();
                let device = FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).unwrap();
                if device.space().available >= bytes {
                    return Self { path, device: Some(device) };
                }
                blocks += blocks / 8 + 1;
            }
        }

        fn mount(&mut self) {
            self.device = None;
            let nand = BlockNand::open(&self.path, OpenMode::ReadWrite).unwrap();
            self.device = Some(FlashDevice::mount(nand, &MountOptions::default()).unwrap());
        }
    }

    impl Drop for InFile {
        fn drop(&mut self) {
            // Not worth failing for.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    impl Harness for InFile {
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
            self.mount();
        }
        fn extent_bytes(&self) -> u64 {
            4096
        }
    }

    onode_object::conformance!(block_device_in_a_file, |bytes| InFile::holding(bytes));

    /// What a range reads as after it was discarded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Discarded {
        Zeros,
        OldContent,
        Anything,
    }

    struct State {
        /// What survives a failure of the host.
        kept: Vec<u8>,
        present: Vec<u8>,
        /// Sectors that differ, with what they hold now.
        pending: BTreeMap<usize, [u8; 4096]>,
        prng: Prng,
        discarded: Discarded,
    }

    /// A block device with a volatile cache.
    #[derive(Clone)]
    struct Device(Arc<Mutex<State>>);

    impl Device {
        fn new(bytes: u64, discarded: Discarded, seed: u64) -> Self {
            let mut prng = Prng::new(seed);
            let present: Vec<u8> = (0..bytes / 8).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
            let state = State { kept: present.clone(), present, pending: BTreeMap::new(), prng, discarded };
            Self(Arc::new(Mutex::new(state)))
        }

        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap()
        }

        /// The host fails: each sector written since the last flush is there or not, or in part.
        fn fail(&self) {
            let state = &mut *self.state();
            let share = state.prng.below(5);
            for (sector, bytes) in core::mem::take(&mut state.pending) {
                if state.prng.below(4) < share {
                    let torn = if state.prng.below(8) == 0 { 512 * state.prng.below(8) as usize } else { 4096 };
                    state.kept[sector * 4096..][..torn].copy_from_slice(&bytes[..torn]);
                }
            }
            state.present.clone_from(&state.kept);
        }
    }

    impl State {
        fn put(&mut self, offset: u64, bytes: &[u8]) {
            for (i, sector) in bytes.chunks_exact(4096).enumerate() {
                let number = offset as usize / 4096 + i;
                self.present[number * 4096..][..4096].copy_from_slice(sector);
                self.pending.insert(number, sector.try_into().unwrap());
            }
        }
    }

    impl BlockDev for Device {
        fn name(&self) -> &str {
            "device"
        }
        fn bytes(&self) -> u64 {
            self.state().present.len() as u64
        }
        fn read_at(&mut self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
            out.copy_from_slice(&self.state().present[offset as usize..][..out.len()]);
            Ok(())
        }
        fn write_at(&mut self, offset: u64, bytes: &[u8], _tag: IoTag) -> Result<()> {
            self.state().put(offset, bytes);
            Ok(())
        }
        fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
            self.state().put(offset, &vec![0; bytes as usize]);
            Ok(())
        }
        fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
            let state = &mut *self.state();
            match state.discarded {
                Discarded::OldContent => {}
                Discarded::Zeros => state.put(offset, &vec![0; bytes as usize]),
                Discarded::Anything => {
                    let garbage: Vec<u8> = (0..bytes / 8).flat_map(|_| state.prng.next_u64().to_le_bytes()).collect();
                    state.put(offset, &garbage);
                }
            }
            Ok(())
        }
        fn flush(&mut self) -> Result<()> {
            let state = &mut *self.state();
            for (sector, bytes) in core::mem::take(&mut state.pending) {
                state.kept[sector * 4096..][..4096].copy_from_slice(&bytes);
            }
            Ok(())
        }
    }

    /// A volume on such a device.
    struct OnDevice {
        below: Device,
        device: Option<FlashDevice>,
    }

    impl OnDevice {
        fn new(bytes: u64, discarded: Discarded, seed: u64) -> Self {
            let shape = shape((bytes * 2 / (4096 * 16) + 64) as u32, 16);
            let below = Device::new(bytes_for(&shape), discarded, seed);
            // An earlier volume leaves its superblocks and pages behind.
            for identity in [1, 2] {
                let nand = BlockNand::create_on(below.clone(), shape, [identity; 16]).unwrap();
                let options = FormatOptions { uuid: [identity; 16], ..FormatOptions::default() };
                let device = FlashDevice::format(nand, &options, &MountOptions::default()).unwrap();
                for round in 0..u64::from(2 - identity) * 40 {
                    let object = device.reserve_ids(1).unwrap();
                    let mut transaction = Transaction::new();
                    transaction.create(object, Hints::default()).write(object, 0, vec![round as u8; 20_000]);
                    device.commit(transaction, Durability::Durable).unwrap();
                }
                device.close().unwrap();
            }
            let mut volume = Self { below, device: None };
            volume.mount();
            volume
        }

        fn mount(&mut self) {
            self.device = None;
            let nand = BlockNand::open_on(self.below.clone(), OpenMode::ReadWrite).unwrap();
            let device = FlashDevice::mount(nand, &MountOptions::default()).unwrap();
            assert_eq!(device.info().read_only, None);
            self.device = Some(device);
        }

        fn check(&self) {
            let mut nand = BlockNand::open_on(self.below.clone(), OpenMode::ReadOnly).unwrap();
            let report = onode_flash::check(&mut nand, &onode_flash::check::CheckOptions::default(), &mut |_, _| {});
            let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            assert!(report.is_sound(), "{findings:?}");
        }
    }

    impl Harness for OnDevice {
        fn device(&self) -> &dyn ObjectDevice {
            self.device.as_ref().unwrap()
        }
        fn reopen(&mut self) {
            self.device().close().unwrap();
            self.check();
            self.mount();
        }
        fn can_crash(&self) -> bool {
            true
        }
        fn crash(&mut self) {
            self.device = None;
            self.below.fail();
            self.mount();
        }
    }

    #[test]
    fn a_prefix_of_the_commits_survives_whatever_discarded_ranges_read_as() {
        for discarded in [Discarded::Zeros, Discarded::OldContent, Discarded::Anything] {
            for seed in 0..6 {
                differential(&|bytes| Box::new(OnDevice::new(bytes, discarded, seed)), seed, 400, true);
            }
        }
    }

    #[test]
    fn a_closed_volume_is_sound_and_mounts_again_whatever_discarded_ranges_read_as() {
        for discarded in [Discarded::Zeros, Discarded::OldContent, Discarded::Anything] {
            let mut volume = OnDevice::new(4 << 20, discarded, 9);
            let object = volume.device().reserve_ids(1).unwrap();
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default());
            volume.device().commit(transaction, Durability::Durable).unwrap();
            // Enough to fill every segment several times over.
            for round in 0..60_u8 {
                let mut transaction = Transaction::new();
                transaction.write(object, u64::from(round % 7) * 300_000, vec![round; 300_000]);
                let durability = if round % 5 == 0 { Durability::Durable } else { Durability::Buffered };
                volume.device().commit(transaction, durability).unwrap();
                if round % 6 == 5 {
                    volume.reopen();
                }
            }
            let mut bytes = vec![0; 300_000];
            for slot in 0..7_u64 {
                volume.device().read(object, slot * 300_000, &mut bytes).unwrap();
                let last = (0..60_u64).rev().find(|round| round % 7 == slot).unwrap();
                assert!(bytes.iter().all(|byte| u64::from(*byte) == last), "{discarded:?}, slot {slot}");
            }
            volume.reopen();
            assert_eq!(volume.device().list(ObjectId(1), 10).unwrap(), [object], "{discarded:?}");
        }
    }
}
