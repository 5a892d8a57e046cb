//! Lines flushed and fences waited for by one operation, counted by the simulated memory under the
//! whole stack: names in `fs`, records in the device, blocks of the heap's allocator. Exact: one
//! line more or less fails.

use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::{Block, Caller, FileSystem, InodeNumber, Options, WriteMode};
use onode_media::Pmem;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem};
use onode_object::ObjectDevice;
use onode_scm::ScmDevice;
use onode_scm::allocator::{Allocator, Process};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_790_000_000 * SECOND + 123_456_789;
/// What a user's files look like, three directories down.
const PERMISSIONS: u16 = 0o640;
const NAME: &[u8] = b"quarterly-report.txt";

/// A device holds its memory in an `Arc` of its own.
type Memory = Arc<SimPmem>;

struct Stack {
    memory: Memory,
    blocks: Allocator<Arc<Memory>>,
    clock: Arc<ManualClock>,
    files: FileSystem,
    caller: Caller,
    directory: InodeNumber,
}

impl Stack {
    /// A volume with a past: some thousand files made and removed, a directory of a user that is
    /// weeks old.
    fn new() -> Self {
        let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
        let memory = Arc::new(SimPmem::new(64 << 20, options));
        let device = ScmDevice::format(Arc::clone(&memory), &onode_scm::FormatOptions::default()).unwrap();
        let format = onode_fs::FormatOptions { hash_key: *b"a secret of test", ..Default::default() };
        onode_fs::format(&device, &format, Timestamp::from_nanoseconds(START)).unwrap();
        let mut blocks = device.blocks().unwrap();
        blocks.join(Process { id: 1, started: 1 }, |_| false).unwrap();
        // Ids as they are on a volume that has seen a million files.
        device.reserve_ids(1 << 20).unwrap();
        let clock = Arc::new(ManualClock::at(START));
        let options = Options { write_mode: WriteMode::WriteThrough, ..Options::default() };
        let files = FileSystem::mount(Arc::new(device), clock.clone(), options).unwrap();
        let mut directory = InodeNumber::ROOT;
        let caller = Caller { uid: 1000, gid: 1000, umask: 0o022, ..Caller::default() };
        for name in [&b"home"[..], b"user", b"documents"] {
            directory = files.make_directory(&caller, directory, name, 0o755).unwrap().inode;
        }
        for number in 0..500 {
            clock.advance(3600 * SECOND);
            let made = files.create(&caller, directory, format!("file-{number}").as_bytes(), PERMISSIONS).unwrap();
            files.forget(made.inode, 1);
        }
        Self { memory, blocks, clock, files, caller, directory }
    }

    /// Lines flushed and fences of `work`.
    fn cost(&self, work: impl FnOnce()) -> (u64, u64) {
        self.clock.advance(SECOND);
        let before = self.memory.counters();
        work();
        let after = self.memory.counters();
        (after.lines_flushed - before.lines_flushed, after.fences - before.fences)
    }

    /// Asserts that each operation costs that. One in eight may open a segment of the log, which is
    /// a line more, and one for what of its record still fitted into the segment before.
    fn assert_cost(&self, what: &str, lines: u64, fences: u64, mut work: impl FnMut(u64)) {
        let costs: Vec<(u64, u64)> = (0..8).map(|number| self.cost(|| work(number))).collect();
        let dear = costs.iter().filter(|cost| **cost != (lines, fences)).collect::<Vec<_>>();
        let opened = |cost: &(u64, u64)| lines > 0 && (lines + 1..=lines + 2).contains(&cost.0) && cost.1 == fences;
        assert!(dear.len() <= 1 && dear.into_iter().all(opened), "{what}: {costs:?}");
    }

    fn name(&self, number: u64) -> Vec<u8> {
        [format!("{number}-").as_bytes(), NAME].concat()
    }

    fn publish(&self, number: u64, block: Block) {
        self.files.publish(&self.caller, self.directory, &self.name(number), PERMISSIONS, block).unwrap();
    }
}

#[test]
fn memory_costs_no_line_and_no_fence() {
    let stack = Stack::new();
    let mut cache = stack.blocks.cache();
    for bytes in [32, 100, 4096, 64 << 10, 128 << 10, 1 << 20] {
        stack.assert_cost("malloc and free", 0, 0, |_| {
            let address = stack.blocks.allocate_cached(&mut cache, bytes).unwrap();
            stack.memory.write(address, &[7; 32]);
            stack.blocks.release_cached(&mut cache, address).unwrap();
            let address = stack.blocks.allocate(bytes).unwrap();
            stack.blocks.release(address, bytes);
        });
    }
}

#[test]
fn a_file_is_made_with_two_lines_and_one_fence() {
    let stack = Stack::new();
    stack.assert_cost("creat", 2, 1, |number| {
        let made = stack.files.create(&stack.caller, stack.directory, &stack.name(number), PERMISSIONS).unwrap();
        stack.files.forget(made.inode, 1);
    });
}

#[test]
fn memory_becomes_a_file_with_two_lines_and_one_fence() {
    let stack = Stack::new();
    for bytes in [2048, 1 << 20] {
        let durable: Vec<u64> = (0..8).map(|_| stack.blocks.allocate(bytes).unwrap()).collect();
        for address in &durable {
            stack.memory.write_through(*address, &vec![7; bytes as usize]);
        }
        stack.memory.fence().unwrap();
        stack.assert_cost("mm_to_file of what is durable", 2, 1, |number| {
            let address = durable[number as usize];
            stack.publish(bytes + number, Block { address, bytes, is_durable: true });
        });
        // What is not durable is made so first, each of its lines once.
        let fresh: Vec<u64> = (0..8).map(|_| stack.blocks.allocate(bytes).unwrap()).collect();
        for address in &fresh {
            stack.memory.write(*address, &vec![7; bytes as usize]);
        }
        stack.assert_cost("mm_to_file", bytes / 64 + 2, 2, |number| {
            let address = fresh[number as usize];
            stack.publish(bytes + 8 + number, Block { address, bytes, is_durable: false });
        });
    }
}

#[test]
fn a_file_becomes_memory_with_one_line_and_one_fence() {
    let stack = Stack::new();
    for bytes in [2048, 1 << 20] {
        for number in 0..8 {
            let address = stack.blocks.allocate(bytes).unwrap();
            stack.memory.write(address, &vec![7; bytes as usize]);
            stack.publish(number, Block { address, bytes, is_durable: false });
        }
        stack.assert_cost("file_to_mm", 1, 1, |number| {
            let block = stack.files.withdraw(stack.directory, &stack.name(number)).unwrap();
            assert_eq!(block.bytes, bytes);
            stack.blocks.release(block.address, bytes);
        });
    }
}
