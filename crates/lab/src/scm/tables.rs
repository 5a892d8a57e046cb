//! Paper 2, Tables 2 to 5, in shape: the same operations in the virtual time of the simulated
//! memories of its board, FeRAM with 55 ns a word and SDRAM with 35 ns. Only accesses to memory
//! take time there, not the processor, so values are below those of the paper; what stands in
//! relation is what the paper compares: FeRAM with SDRAM, sizes with one another, copies with none.

use super::Measuring;
use super::host::failed;
use super::postmark;
use onode::Result;
use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::{Block, Caller, FileSystem, FormatOptions, InodeNumber, OpenFlags, Options, WriteMode};
use onode_media::Pmem;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem};
use onode_scm::ScmDevice;
use onode_scm::allocator::{Allocator, Process};
use std::sync::Arc;

/// A device holds its memory in an `Arc` of its own.
type Memory = Arc<SimPmem>;

const MICROSECONDS: &str = "us";
const MILLISECONDS: &str = "ms";
/// Repetitions of Tables 2 and 3 in the paper.
const MEMORY_RUNS: u64 = 100;
const FILE_RUNS: u64 = 10;
/// The files of Table 5.
const APPLICATION_FILES: [u64; 5] = [35_761, 2278, 1108, 2598, 4797];

/// A volume on simulated memory.
struct Board {
    memory: Memory,
    blocks: Allocator<Arc<Memory>>,
    files: FileSystem,
}

fn went(error: onode_fs::Error) -> onode::Error {
    failed("a call of the file system failed", error)
}

impl Board {
    fn new(latency: PmemLatency) -> Result<Self> {
        let what = "cannot make a volume on simulated memory";
        let memory = Arc::new(SimPmem::new(64 << 20, PmemOptions { latency, ..PmemOptions::default() }));
        let device = ScmDevice::format(Arc::clone(&memory), &onode_scm::FormatOptions::default());
        let device = device.map_err(|error| failed(what, error))?;
        onode_fs::format(&device, &FormatOptions::default(), Timestamp::default()).map_err(went)?;
        let mut blocks = device.blocks().map_err(|error| failed(what, error))?;
        blocks.join(Process { id: 1, started: 1 }, |_| false);
        let options = Options { write_mode: WriteMode::WriteThrough, ..Options::default() };
        let clock = Arc::new(ManualClock::at(1_790_000_000_000_000_000));
        let files = FileSystem::mount(Arc::new(device), clock, options).map_err(went)?;
        Ok(Self { memory, blocks, files })
    }

    /// Virtual nanoseconds that `work` takes.
    fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let before = self.memory.counters().virtual_nanoseconds;
        work()?;
        Ok((self.memory.counters().virtual_nanoseconds - before) as f64)
    }

    /// The same for each of several repetitions.
    fn each(&self, runs: u64, mut work: impl FnMut(u64) -> Result<()>) -> Result<f64> {
        Ok(self.time(|| (0..runs).try_for_each(&mut work))? / runs as f64)
    }

    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.blocks.allocate(bytes).ok_or_else(|| failed("no block", "the memory is full"))
    }

    fn create(&self, name: &str) -> Result<InodeNumber> {
        let made = self.files.create(&Caller::root(), InodeNumber::ROOT, name.as_bytes(), 0o644).map_err(went)?;
        self.files.forget(made.inode, 1);
        Ok(made.inode)
    }

    fn write(&self, file: InodeNumber, bytes: u64) -> Result<()> {
        self.files.write(&Caller::root(), file, 0, &vec![7; bytes as usize]).map(drop).map_err(went)
    }

    fn read(&self, file: InodeNumber, bytes: u64) -> Result<()> {
        self.files.read(file, 0, &mut vec![0; bytes as usize]).map(drop).map_err(went)
    }
}

/// Blocks of memory, and bytes stored and loaded through pointers.
fn table_2(measuring: &mut Measuring<'_>) -> Result<()> {
    for (who, latency) in [("SDRAM", PmemLatency::DRAM_BOARD), ("FeRAM", PmemLatency::FERAM_BOARD)] {
        let board = Board::new(latency)?;
        let mut blocks = Vec::new();
        let time = board.each(MEMORY_RUNS, |_| {
            blocks.push(board.allocate(4096)?);
            Ok(())
        })?;
        let show = |measuring: &mut Measuring<'_>, what: &str, time: f64| {
            measuring.shown(format!("Table 2: {what}, {who} simulated"), time / 1e3, MICROSECONDS);
        };
        show(measuring, "malloc", time);
        for bytes in [512, 1024, 4096] {
            let content = vec![7; bytes as usize];
            let at = |run: u64| blocks[run as usize % blocks.len()];
            let time = board.each(MEMORY_RUNS, |run| {
                board.memory.write(at(run), &content);
                Ok(())
            })?;
            show(measuring, &format!("store {bytes} B"), time);
            let mut buffer = vec![0; bytes as usize];
            let time = board.each(MEMORY_RUNS, |run| {
                board.memory.read(at(run), &mut buffer);
                Ok(())
            })?;
            show(measuring, &format!("load {bytes} B"), time);
        }
        let time = board.each(MEMORY_RUNS, |run| {
            board.blocks.release(blocks[run as usize], 4096);
            Ok(())
        })?;
        show(measuring, "free", time);
    }
    Ok(())
}

/// Calls on files.
fn table_3(measuring: &mut Measuring<'_>) -> Result<()> {
    let board = Board::new(PmemLatency::FERAM_BOARD)?;
    let mut files = Vec::new();
    let name = |run: u64| format!("file-{run}");
    let mut rows = Vec::new();
    rows.push((
        "creat".to_owned(),
        board.each(FILE_RUNS, |run| {
            files.push(board.create(&name(run))?);
            Ok(())
        })?,
    ));
    let mut handles = Vec::new();
    rows.push((
        "open".to_owned(),
        board.each(FILE_RUNS, |run| {
            let found = board.files.lookup(InodeNumber::ROOT, name(run).as_bytes()).map_err(went)?;
            handles.push(board.files.open(&Caller::root(), found.inode, OpenFlags::default()).map_err(went)?);
            board.files.forget(found.inode, 1);
            Ok(())
        })?,
    ));
    for bytes in [512, 1024, 4096] {
        rows.push((format!("write {bytes} B"), board.each(FILE_RUNS, |run| board.write(files[run as usize], bytes))?));
        rows.push((format!("read {bytes} B"), board.each(FILE_RUNS, |run| board.read(files[run as usize], bytes))?));
    }
    rows.push((
        "close".to_owned(),
        board.each(FILE_RUNS, |run| board.files.release(handles[run as usize]).map_err(went))?,
    ));
    for (what, time) in rows {
        measuring.shown(format!("Table 3: {what}, FeRAM simulated"), time / 1e3, MICROSECONDS);
    }
    Ok(())
}

/// PostMark, and the Andrew benchmark without its last phase.
fn table_4(measuring: &mut Measuring<'_>) -> Result<()> {
    let board = Board::new(PmemLatency::FERAM_BOARD)?;
    let stream = postmark::stream();
    let time = board.time(|| postmark::in_process(&board.files, &stream))?;
    measuring.shown("Table 4: PostMark, sync, FeRAM simulated", time / 1e6, MILLISECONDS);
    let board = Board::new(PmemLatency::FERAM_BOARD)?;
    let time = board.time(|| andrew(&board.files))?;
    measuring.shown("Table 4: Andrew, four phases, FeRAM simulated", time / 1e6, MILLISECONDS);
    Ok(())
}

/// Makes directories, copies files into them, lists them with all attributes, reads every file.
fn andrew(files: &FileSystem) -> Result<()> {
    const DIRECTORIES: u64 = 20;
    const FILES: u64 = 70;
    let root = Caller::root();
    let mut directories = Vec::new();
    for number in 0..DIRECTORIES {
        let name = format!("directory-{number}");
        let made = files.make_directory(&root, InodeNumber::ROOT, name.as_bytes(), 0o755).map_err(went)?;
        directories.push(made.inode);
    }
    let mut made = Vec::new();
    for number in 0..FILES {
        let directory = directories[(number % DIRECTORIES) as usize];
        let file = files.create(&root, directory, format!("file-{number}").as_bytes(), 0o644).map_err(went)?;
        let bytes = 200 + number * 83;
        files.write(&root, file.inode, 0, &vec![7; bytes as usize]).map_err(went)?;
        made.push((file.inode, bytes));
    }
    for directory in &directories {
        let mut found = Vec::new();
        files
            .read_directory(*directory, 0, &mut |entry| {
                found.push(entry.inode);
                true
            })
            .map_err(went)?;
        for inode in found {
            files.attributes(inode).map_err(went)?;
        }
    }
    for (inode, bytes) in made {
        files.read(inode, 0, &mut vec![0; bytes as usize]).map_err(went)?;
    }
    Ok(())
}

/// What the applications do with the five files, as they were written, and with memory and file as
/// one.
fn table_5(measuring: &mut Measuring<'_>) -> Result<()> {
    type Application = (&'static str, fn(&Board, bool, u64, &str) -> Result<()>);
    let applications: [Application; 3] = [
        // A compressor reads a file and leaves half as much in a new one.
        ("distillery", |board, adapted, bytes, name| {
            take(board, adapted, bytes, name)?;
            leave(board, adapted, bytes / 2, &format!("{name}.packed"))
        }),
        // A download leaves what came from the network in a file.
        ("ftpget", |board, adapted, bytes, name| leave(board, adapted, bytes, &format!("{name}.got"))),
        // What insmod, cp and cat do first: to have a file in memory.
        ("insmod, cp, cat: the load", take),
    ];
    let files_bytes: u64 = APPLICATION_FILES.iter().sum();
    for (name, run) in applications {
        let mut times = [0.0; 2];
        for (adapted, time) in [false, true].into_iter().zip(&mut times) {
            let board = Board::new(PmemLatency::FERAM_BOARD)?;
            for (number, bytes) in APPLICATION_FILES.into_iter().enumerate() {
                let file = board.create(&format!("input-{number}"))?;
                board.write(file, bytes)?;
            }
            let one = |(number, bytes)| run(&board, adapted, bytes, &format!("input-{number}"));
            *time = board.time(|| APPLICATION_FILES.into_iter().enumerate().try_for_each(one))?;
        }
        let each = |time: f64| time / (files_bytes as f64 / 512.0) / 1e3;
        let [original, adapted] = times;
        measuring.shown(format!("Table 5: {name}, 512 B, original, FeRAM simulated"), each(original), MICROSECONDS);
        measuring.shown(format!("Table 5: {name}, 512 B, adapted, FeRAM simulated"), each(adapted), MICROSECONDS);
    }
    Ok(())
}

/// A program gets a file into memory: by `open` and `read` into memory of its own, or as it lies
/// there.
fn take(board: &Board, adapted: bool, bytes: u64, name: &str) -> Result<()> {
    let found = board.files.lookup(InodeNumber::ROOT, name.as_bytes()).map_err(went)?;
    let mut content = vec![0; bytes as usize];
    let at = if adapted {
        board.files.placement(found.inode).map_err(went)?.first().map_or(0, |part| part.address)
    } else {
        let at = board.allocate(bytes)?;
        board.files.read(found.inode, 0, &mut content).map_err(went)?;
        board.memory.write(at, &content);
        at
    };
    board.files.forget(found.inode, 1);
    // It looks at all of it, wherever it is.
    board.memory.read(at, &mut content);
    if !adapted {
        board.blocks.release(at, bytes);
    }
    Ok(())
}

/// A program leaves what it has made in memory in a file: by `creat` and `write`, or by giving the
/// memory a name.
fn leave(board: &Board, adapted: bool, bytes: u64, name: &str) -> Result<()> {
    let at = board.allocate(bytes)?;
    let mut content = vec![7; bytes as usize];
    board.memory.write(at, &content);
    if adapted {
        let block = Block { address: at, bytes, is_durable: false };
        let (root, parent) = (Caller::root(), InodeNumber::ROOT);
        return board.files.publish(&root, parent, name.as_bytes(), 0o644, block).map(drop).map_err(went);
    }
    board.memory.read(at, &mut content);
    let file = board.create(name)?;
    board.files.write(&Caller::root(), file, 0, &content).map_err(went)?;
    board.blocks.release(at, bytes);
    Ok(())
}

/// All four tables.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    measuring.say("the tables of paper 2 on simulated memory");
    table_2(measuring)?;
    table_3(measuring)?;
    table_4(measuring)?;
    table_5(measuring)?;
    let note = "Tables 2 to 5: simulated rows are virtual time of memory accesses alone; the same operations on this \
                machine's memory are the rows of blocks, files and PostMark above";
    measuring.notes.push(note.to_owned());
    Ok(())
}
