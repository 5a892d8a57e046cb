//! A hot set of half the fast disk, in files of mixed size, comes to the fast disk by itself.

use onode_base::Prng;
use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, ObjectKind, SyncScope, Transaction};
use onode_tier::fast::{FastOptions, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

const MIB: u64 = 1 << 20;
const FAST: u64 = 64 * MIB;
const BIG: u64 = 512 * MIB;
/// What is stored, most of it cold.
const STORED: u64 = 320 * MIB;
const REQUEST: usize = 128 << 10;

struct Volume {
    disks: [SimDisk; 2],
    device: Option<TierDevice>,
    files: Vec<(ObjectId, u64)>,
    prng: Prng,
}

impl Volume {
    /// Divided as volumes are if nobody says how, and filled with files of 2 KiB to 16 MiB.
    fn filled(seed: u64) -> Self {
        let disks = [SimDisk::new("fast", FAST), SimDisk::new("big", BIG)];
        let sections = vec![SectionOptions::new("small", 1, 64 << 10), SectionOptions::new("large", 3, MIB)];
        let options = FastOptions { sections, ..FastOptions::for_disk(FAST) };
        let fast = NewFast { disk: Box::new(disks[0].clone()), uuid: [3; 16], options };
        let big = Box::new(disks[1].clone());
        let format = FormatOptions::default();
        let device = TierDevice::format(big, Some(fast), &format, &MountOptions::default()).expect("a volume");
        let mut volume = Self { disks, device: Some(device), files: Vec::new(), prng: Prng::new(seed) };
        let mut left = STORED;
        while left > 16 * MIB {
            let bytes = (2048 << volume.prng.below(14)) + volume.prng.below(2048);
            volume.create(bytes);
            left -= bytes;
        }
        volume.device().sync(SyncScope::All).expect("no fault");
        volume
    }

    fn device(&self) -> &TierDevice {
        self.device.as_ref().expect("mounted")
    }

    fn create(&mut self, bytes: u64) {
        let object = self.device().reserve_ids(1).expect("an id");
        let mut transaction = Transaction::new();
        transaction.create(object, Hints { kind: ObjectKind::Data, ..Hints::default() });
        self.device().commit(transaction, Durability::Buffered).expect("room");
        for at in (0..bytes).step_by(MIB as usize) {
            let mut transaction = Transaction::new();
            transaction.write(object, at, vec![object.0 as u8; (bytes - at).min(MIB) as usize]);
            self.device().commit(transaction, Durability::Buffered).expect("room");
        }
        self.files.push((object, bytes));
    }

    /// Files of half the room for copies, drawn at random.
    fn hot_set(&mut self) -> Vec<(ObjectId, u64)> {
        let counters = self.device().inspect().expect("it can").counters();
        let blocks = |(name, _): &&(String, u64)| name.starts_with("section.") && name.ends_with(".blocks");
        let room: u64 = counters.iter().filter(blocks).map(|(_, blocks)| blocks * 4096).sum();
        let (mut left, mut hot) = (room / 2, Vec::new());
        while let at = self.prng.below(self.files.len() as u64) as usize
            && left > 0
        {
            if !hot.contains(&self.files[at]) && self.files[at].1 <= left.max(MIB) {
                hot.push(self.files[at]);
                left = left.saturating_sub(self.files[at].1);
            }
        }
        hot
    }

    /// Reads all of the files in an order drawn at random; how many of a hundred bytes came from
    /// the fast disk.
    fn pass(&mut self, hot: &[(ObjectId, u64)]) -> u64 {
        self.disks.iter().for_each(SimDisk::reset_counters);
        let mut order = hot.to_vec();
        for at in (1..order.len()).rev() {
            order.swap(at, self.prng.below(at as u64 + 1) as usize);
        }
        let mut buffer = vec![0; REQUEST];
        for (object, bytes) in order {
            for at in (0..bytes).step_by(REQUEST) {
                let read = self.device().read(object, at, &mut buffer).expect("sound");
                assert!(buffer[..read].iter().all(|byte| *byte == object.0 as u8));
            }
        }
        let [fast, big] = [0, 1].map(|disk| self.disks[disk].counters().expect("it counts").total().bytes_read);
        100 * fast / (fast + big)
    }

    fn mount_anew(&mut self) {
        self.device.take().expect("mounted").close().expect("no fault");
        let [fast, big] = self.disks.clone().map(|disk| Box::new(disk) as Box<dyn BlockDev>);
        self.device = Some(TierDevice::mount(big, Some(fast), &MountOptions::default()).expect("a volume"));
    }
}

#[test]
fn a_hot_set_of_half_the_fast_disk_is_read_from_there_after_the_second_pass() {
    for seed in 1..=3 {
        let mut volume = Volume::filled(seed);
        let hot = volume.hot_set();
        let passes: Vec<u64> = (0..4).map(|_| volume.pass(&hot)).collect();
        volume.mount_anew();
        let after = volume.pass(&hot);
        println!("seed {seed}: {} files, of 100 bytes from the fast disk: {passes:?}, mounted anew {after}", hot.len());
        assert!(passes[2] >= 90 && passes[3] >= 90 && after >= 90, "{passes:?}, {after}");
    }
}
