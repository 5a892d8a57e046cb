//! Page operations of whole streams: PostMark in three mixes, and one large file.

use super::{Measuring, Options, bounds, device, spec};
use crate::bench::{Caches, Durability};
use crate::replay::{Settings, replay};
use crate::report::Report;
use crate::stream::Operation;
use crate::stream::generate::{LargeFile, Phase, PostMark};
use crate::stream::trace::operations_of;
use onode::{Class, Error, Result};
use onode_fs::AccessTimes;
use std::path::{Path, PathBuf};

/// A page of the medium.
const PAGE_BYTES: u64 = 2048;
/// All memory of the device.
const RAM_BYTES: u64 = 384 << 10;

/// A PostMark stream, its generator, and what to reach.
struct Stream {
    name: &'static str,
    generator: PostMark,
    programs: [u64; 3],
    /// Page reads in each mode.
    reads: [Option<u64>; 3],
}

const fn mix(files: u64, transactions: u64, reads_in_ten: u64) -> PostMark {
    PostMark { seed: 42, files, transactions, reads_in_ten }
}

const STREAMS: [Stream; 3] = [
    Stream {
        name: "write",
        generator: mix(1000, 40_000, 1),
        programs: [146_000, 74_000, 8400],
        // 16 K and a tenth; UBIFS with write-back.
        reads: [Some(17_600), None, Some(21_000)],
    },
    Stream {
        name: "read",
        generator: mix(1000, 90_000, 9),
        programs: [238_000, 125_000, 18_800],
        reads: [None, None, Some(46_000)],
    },
    Stream {
        name: "table2",
        generator: mix(2000, 30_000, 5),
        programs: [100_000, 57_000, 6800],
        reads: [None, None, Some(17_000)],
    },
];

/// PostMark in every mix and mode.
pub(super) fn postmark(run: &mut Measuring<'_>) -> Result<()> {
    let mut most_ram = 0;
    for stream in STREAMS {
        let (operations, made) = operations(run, &stream)?;
        let modes = [Durability::Operation, Durability::Natural, Durability::Lazy];
        for ((durability, programs), reads) in modes.into_iter().zip(stream.programs).zip(stream.reads) {
            let name = format!("PostMark {}{made}, {}", stream.name, durability.name());
            run.say(&name);
            let report = replay_on(run, "", durability, &operations)?;
            run.at_most(format!("{name}: programs"), report.nand.programs, "pages", programs);
            match reads {
                Some(most) => run.at_most(format!("{name}: reads"), report.nand.reads, "pages", most),
                None => run.shown(format!("{name}: reads"), report.nand.reads, "pages"),
            }
            most_ram = most_ram.max(report.ram_peak_bytes);
            if durability == Durability::Operation && reads.is_some() {
                bound_reads(run, &name, &operations);
            }
        }
    }
    run.at_most("PostMark, all: RAM of the device at most", most_ram, "bytes", RAM_BYTES);
    let caches = run.caches().node_bytes.unwrap_or(0) + run.caches().page_bytes.unwrap_or(0);
    run.shown("of it caches of clean nodes and pages (paper: 60 KB)", caches as u64, "bytes");
    Ok(())
}

/// How many of the reads are the workload's: those of a device that writes nothing twice, whatever
/// it keeps in memory.
fn bound_reads(run: &mut Measuring<'_>, name: &str, operations: &[Operation]) {
    let caches = run.caches().node_bytes.unwrap_or(0) + run.caches().page_bytes.unwrap_or(0);
    for (what, bytes) in [("", 0), (", all caches for them", caches as u64), (", all memory for them", RAM_BYTES)] {
        let reads = bounds::reads_of_pieces(operations, PAGE_BYTES, (bytes / PAGE_BYTES) as usize);
        run.shown(format!("{name}: reads of pages as each operation left them{what}"), reads, "pages");
    }
}

/// That the folder of streams holds them all.
pub(super) fn look_for(options: &Options) -> Result<()> {
    let folder = options.traces.iter();
    let mut paths = folder.flat_map(|folder| STREAMS.iter().map(|stream| path(folder, stream)));
    paths.find(|path| !path.is_file()).map_or(Ok(()), |path| Err(missing(&path)))
}

fn path(folder: &Path, stream: &Stream) -> PathBuf {
    folder.join(format!("postmark-{}-s42.txt.zst", stream.name))
}

fn missing(path: &Path) -> Error {
    let what = format!("cannot read the stream {}", path.display());
    Error::new(Class::NotFound, what, "there is no such file")
        .hint("leave --traces out to measure with the built-in generator")
}

/// The stream of Table II of paper 1, and a word on where it comes from.
pub(super) fn table_two(run: &Measuring<'_>) -> Result<(Vec<Operation>, &'static str)> {
    mixed(run, Mix::TableTwo)
}

/// A mix of PostMark.
#[derive(Clone, Copy)]
pub(super) enum Mix {
    Write,
    Read,
    TableTwo,
}

/// The stream of a mix, and a word on where it comes from.
pub(super) fn mixed(run: &Measuring<'_>, mix: Mix) -> Result<(Vec<Operation>, &'static str)> {
    let [write, read, table_two] = &STREAMS;
    let stream = match mix {
        Mix::Write => write,
        Mix::Read => read,
        Mix::TableTwo => table_two,
    };
    operations(run, stream)
}

fn operations(run: &Measuring<'_>, stream: &Stream) -> Result<(Vec<Operation>, &'static str)> {
    let Some(folder) = &run.options.traces else {
        let whole = stream.generator;
        let part = PostMark {
            files: whole.files / run.scale().part,
            transactions: whole.transactions / run.scale().part,
            ..whole
        };
        return Ok((part.operations(), " (built-in)"));
    };
    let path = path(folder, stream);
    let text = path.to_str().ok_or_else(|| missing(&path))?;
    Ok((operations_of(text, &spec(run.scale().medium, "")?)?, ""))
}

pub(super) fn replay_on(run: &Measuring<'_>, more: &str, durability: Durability, all: &[Operation]) -> Result<Report> {
    replay_with(run.scale().medium, more, run.caches(), durability, all)
}

pub(super) fn replay_with(
    size: &str,
    more: &str,
    caches: Caches,
    durability: Durability,
    all: &[Operation],
) -> Result<Report> {
    let trace = format!("a stream on {}", device(size, more));
    let access_times = AccessTimes::Never;
    replay(&Settings { trace, device: spec(size, more)?, durability, caches, access_times }, all)
}

/// One file in calls of 4 KiB, after the large-file benchmark of paper 1.
pub(super) fn large_file(run: &mut Measuring<'_>) -> Result<()> {
    let bytes = run.scale().sequential_bytes;
    let file = |phase| LargeFile { phase, bytes, ..LargeFile::default() }.operations();
    let size = onode::exact_size(bytes);
    run.say("one large file");
    let write = replay_on(run, "", Durability::Natural, &file(Phase::Write))?;
    run.at_most(format!("{size} file, sequential write, natural: programs"), write.nand.programs, "pages", 31_000_u64);
    let read = replay_on(run, "", Durability::Natural, &file(Phase::Read))?;
    run.at_most(format!("{size} file, sequential read: reads"), read.nand.reads, "pages", 31_000_u64);
    for (more, kind, most) in [("", "with spare", 34_000_u64), (",spare=0", "without spare", 47_000)] {
        let name = format!("{size} file, synced random 4 KB rewrite, {kind}: programs");
        run.say(&name);
        let report = replay_on(run, more, Durability::Operation, &file(Phase::Rewrite))?;
        run.at_most(name, report.nand.programs, "pages", most);
    }
    Ok(())
}
