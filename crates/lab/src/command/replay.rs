//! `onode-lab replay`: a stream of file operations on a simulated device, and what the device does
//! for it.

use onode::{Class, Error, Result, Spec, parse_size, wear_of};
use onode_console::Output;
use onode_fs::AccessTimes;
use onode_lab::{Caches, Durability, Settings, figures, operations_of};
use std::path::PathBuf;

const EXTENTS: &str = "extents";
const SMALL_OBJECT_BUFFER: &str = "small-object-buffer";
const INODE_EMBEDDING: &str = "inode-embedding";
/// What `--without` knows.
const PARTS: [&str; 3] = [EXTENTS, SMALL_OBJECT_BUFFER, INODE_EMBEDDING];

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode-lab replay postmark:seed=1,files=1000,transactions=40000,reads=1 --durability op\n  \
    onode-lab replay largefile:rewrite,size=60M --durability op\n  \
    onode-lab replay zipf:fill=80,seed=1,operations=100000 --device flash:sim,size=64M,page=2K\n  \
    onode-lab replay trace.txt.zst --device flash:sim,size=128M,page=2K,spare=64 --durability natural\n  \
    onode-lab replay --figures --traces traces   all figures of the flash device, in a minute or two\n\n\
    A trace has one operation a line: create NAME BYTES, append NAME BYTES, read NAME, delete NAME,\n\
    write NAME OFFSET BYTES, pread NAME OFFSET BYTES. Equal runs print equal reports, cpu_s excepted.\n\n\
    Generators: postmark:seed,files,transactions,reads; largefile:write|read|rewrite|random-read,size,seed;\n\
    uniform, hot-cold, zipf, moving-hot:fill,size,seed,operations (4 KiB pieces of files that fill that share\n\
    of the medium, in percent, are rewritten; the second half is counted); aging with the same settings\n\
    (files of all sizes come, change and go).")]
pub struct Replay {
    /// Measure every figure of the flash device that files can show and set it beside the one to
    /// reach.
    #[arg(long, conflicts_with_all = ["trace", "device", "durability", "atime", "node_cache", "page_cache", "dirty_nodes",
        "write_buffer", "checkpoint_pages"])]
    figures: bool,
    /// Where the PostMark streams of --figures are: postmark-write-s42.txt.zst, -read-, -table2-.
    #[arg(long, value_name = "DIR", requires = "figures", conflicts_with = "trace")]
    traces: Option<PathBuf>,
    /// With --figures: only one group of them.
    #[arg(long, value_name = "GROUP", requires = "figures", conflicts_with = "trace", value_parser = figures::groups())]
    only: Option<String>,
    /// With --figures: small media and short streams, to see that it works; nothing is judged.
    #[arg(long, requires = "figures", conflicts_with = "trace")]
    quick: bool,
    /// A trace file, plain or .zst, or a generator: postmark:..., largefile:..., aging:...,
    /// zipf:...
    #[arg(required_unless_present = "figures")]
    trace: Option<String>,
    /// The device, one in memory.
    #[arg(long, value_name = "SPEC", default_value = "flash:sim,size=128M,page=2K,spare=64")]
    device: String,
    /// When operations become durable: op (each before the next), natural (1 MiB), lazy (64 MiB).
    #[arg(long, value_name = "MODE", default_value = "natural")]
    durability: String,
    /// Which reads renew access times.
    #[arg(long, value_name = "WHICH", default_value = "never", value_parser = ["never", "relative", "strict"])]
    atime: String,
    /// Memory for clean tree nodes.
    #[arg(long, value_name = "SIZE")]
    node_cache: Option<String>,
    /// Memory for pages.
    #[arg(long, value_name = "SIZE")]
    page_cache: Option<String>,
    /// Memory for tree nodes that wait for a checkpoint.
    #[arg(long, value_name = "SIZE")]
    dirty_nodes: Option<String>,
    /// Memory in which each stream but the journal collects pages.
    #[arg(long, value_name = "SIZE")]
    write_buffer: Option<String>,
    /// Journal pages between two checkpoints.
    #[arg(long, value_name = "COUNT")]
    checkpoint_pages: Option<u32>,
    /// How the device spreads wear: dynamic, static, off.
    #[arg(long, value_name = "POLICY", conflicts_with = "figures")]
    wear: Option<String>,
    /// Parts to go without, to see what they are worth: extents, small-object-buffer,
    /// inode-embedding.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    without: Vec<String>,
}

impl Replay {
    fn goes_without(&self, part: &str) -> bool {
        self.without.iter().any(|one| one == part)
    }

    pub fn run(&self, output: &Output) -> Result<u8> {
        let Some(trace) = &self.trace else {
            let options = figures::Options { traces: self.traces.clone(), only: self.only.clone(), quick: self.quick };
            let report = figures::measure(&options, &mut |what| output.progress(what));
            output.progress("");
            let report = report?;
            output.report(&report)?;
            return Ok(if report.failures.is_empty() { 0 } else { Class::General.exit_code() });
        };
        let durability = match self.durability.as_str() {
            "op" => Durability::Operation,
            "natural" => Durability::Natural,
            "lazy" => Durability::Lazy,
            other => {
                return Err(Error::new(Class::Usage, "cannot use --durability", format!("`{other}` is no mode"))
                    .hint("the modes are op, natural and lazy"));
            }
        };
        let small = Caches::small();
        let caches = Caches {
            node_bytes: bytes("--node-cache", self.node_cache.as_deref())?.or(small.node_bytes),
            page_bytes: bytes("--page-cache", self.page_cache.as_deref())?.or(small.page_bytes),
            dirty_node_bytes: bytes("--dirty-nodes", self.dirty_nodes.as_deref())?.or(small.dirty_node_bytes),
            write_buffer_bytes: bytes("--write-buffer", self.write_buffer.as_deref())?.or(small.write_buffer_bytes),
            checkpoint_pages: self.checkpoint_pages.or(small.checkpoint_pages),
            without_extents: self.goes_without(EXTENTS),
            without_small_object_buffer: self.goes_without(SMALL_OBJECT_BUFFER),
            without_inode_embedding: self.goes_without(INODE_EMBEDDING),
        };
        if let Some(part) = self.without.iter().find(|part| !PARTS.contains(&part.as_str())) {
            return Err(Error::new(Class::Usage, "cannot use --without", format!("`{part}` is no part to go without"))
                .hint(format!("the parts are {}", PARTS.join(", "))));
        }
        let mut device = Spec::parse(&self.device)?;
        if let Some(wear) = &self.wear {
            device = device.with_wear(wear_of("cannot use --wear", wear)?)?;
        }
        let access_times = match self.atime.as_str() {
            "strict" => AccessTimes::Strict,
            "relative" => AccessTimes::Relative,
            _ => AccessTimes::Never,
        };
        let settings = Settings { trace: trace.clone(), device, durability, caches, access_times };
        let operations = operations_of(trace, &settings.device)?;
        output.report(&onode_lab::replay(&settings, &operations)?)?;
        Ok(0)
    }
}

fn bytes(option: &str, said: Option<&str>) -> Result<Option<usize>> {
    let Some(said) = said else { return Ok(None) };
    let wrong = |why: String| Error::new(Class::BadSize, format!("cannot use {option}"), why);
    let size = parse_size(said).map_err(wrong)?;
    usize::try_from(size).map(Some).map_err(|_| wrong(format!("`{said}` is too large")))
}
