//! `onode-crash`: runs the crash explorer, replays what it found, lists what there is to run.
//!
//! Exit status 0: nothing was found; 1: a promise was broken; 2: the command line was wrong.

use clap::{Parser, Subcommand, ValueEnum};
use onode_base::Prng;
use onode_crash::damage;
use onode_crash::files::cases::CASES;
use onode_crash::kind::geometry::{MEMORY_SHAPES, SHAPES};
use onode_crash::kind::variant::VARIANTS;
use onode_crash::object::brim;
use onode_crash::object::clients;
use onode_crash::report::Report;
use onode_crash::task::spec::{RunName, Spec};
use onode_crash::task::{self, LEVELS, Media};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

mod cpu;
#[cfg(feature = "mutants")]
mod mutants;

/// Crash explorer of Onode.
#[derive(Parser)]
#[command(name = "onode-crash", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge crash states until a limit is reached.
    Run {
        /// Stop after so many states; without --seconds 100,000 if not given.
        #[arg(long)]
        states: Option<u64>,
        /// Stop after so many seconds of processor time.
        #[arg(long)]
        seconds: Option<u64>,
        /// Seed of the first round.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Which kind of medium.
        #[arg(long, value_enum, default_value_t = MediumName::Nand)]
        medium: MediumName,
        /// Which level.
        #[arg(long, value_enum, default_value_t = Level::All)]
        level: Level,
        /// How many clients use the device at once, 1 to 4, or several numbers; more than one on
        /// nand, beside and tier, and on the level of objects.
        #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = number_of_clients)]
        clients: Vec<usize>,
        /// Only runs whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
        /// Threads.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Judge one state again and tell its story.
    Replay {
        /// The line that a failure printed: LEVEL.WORKLOAD.SHAPE.SEED[:K:V[:K:V]].
        spec: Spec,
    },
    /// Damage volumes in every way and judge what is said of them.
    Damage {
        /// Which kind of medium.
        #[arg(long, value_enum, default_value_t = MediumName::Nand)]
        medium: MediumName,
        /// Damaged images.
        #[arg(long, default_value_t = 2000)]
        images: u64,
        /// Seed of the volumes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of the first image.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Threads.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// Violations of one volume after which it ends.
        #[arg(long, default_value_t = 5)]
        violations: usize,
        /// Keep the images that violate a promise in this folder, each in one named by its number.
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Hit single pages of flash volumes with 0 to 3 pages of parity, and judge every read of them.
    Faults {
        /// Faults injected.
        #[arg(long, default_value_t = 100_000)]
        faults: u64,
        /// Seed of the volumes.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of the first fault.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Threads.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
    },
    /// Plant one bug after the other and find each (needs the feature `mutants`).
    #[cfg(feature = "mutants")]
    Mutants {
        /// Only bugs whose name contains this; with a `=` before it, only the one of this name.
        /// Bugs of full and of damaged volumes (`Full`, `Damaged`) have to be named.
        #[arg(long, default_value = "")]
        only: String,
        /// States judged before a bug counts as not found.
        #[arg(long, default_value_t = 300_000)]
        states: u64,
        /// Bugs looked for at a time, each in a process of its own.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
        /// Look for bugs of several clients (`Many`) with one, which does not find them; one job.
        #[arg(long)]
        one_client: bool,
    },
    /// List workloads and shapes.
    List,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Transactions on the device.
    Object,
    /// Files.
    Fs,
    /// Both.
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MediumName {
    /// NAND with the flash device.
    Nand,
    /// Byte-addressable memory with the device of storage-class memory.
    Scm,
    /// NAND with the flash device, and its index in a memory beside it.
    Beside,
    /// A fast and a big disk with the device of both.
    Tier,
    /// NAND, memory, and two disks with compression over their device.
    Compressed,
    /// The same with encryption over their device.
    Encrypted,
    /// The same, with all files in a directory with a key of its own.
    Keyed,
    /// NAND, memory, and two disks with authentication and encryption over their device.
    Authenticated,
    /// NAND and a memory with a pool over the devices on them.
    Pool,
    /// Transactions of users on each of NAND, memory and two disks.
    Tx,
    /// Snapshots of NAND, alone and beside a memory, of memory alone, and of two disks.
    Snap,
}

impl From<MediumName> for Media {
    fn from(name: MediumName) -> Self {
        match name {
            MediumName::Nand => Self::Nand,
            MediumName::Scm => Self::Scm,
            MediumName::Beside => Self::Beside,
            MediumName::Tier => Self::Tier,
            MediumName::Compressed => Self::Compressed,
            MediumName::Encrypted => Self::Encrypted,
            MediumName::Keyed => Self::Keyed,
            MediumName::Authenticated => Self::Authenticated,
            MediumName::Pool => Self::Pool,
            MediumName::Tx => Self::Transacted,
            MediumName::Snap => Self::Snapshots,
        }
    }
}

impl Level {
    fn names(self) -> Vec<&'static str> {
        let is_wanted = |name: &&str| match self {
            Self::Object => *name == "object",
            Self::Fs => *name != "object",
            Self::All => true,
        };
        LEVELS.into_iter().filter(is_wanted).collect()
    }
}

fn main() -> ExitCode {
    // A panic in what is judged is a violation like any other, told in its line.
    std::panic::set_hook(Box::new(|_| {}));
    match Arguments::parse().command {
        Command::Run { states, seconds, seed, medium, level, clients, only, jobs, json } => {
            let media = Media::from(medium);
            let many: Vec<usize> = clients.iter().copied().filter(|clients| *clients > 1).collect();
            if !many.is_empty() && task::round_of_clients(media, &many, seed).is_empty() {
                eprintln!("onode-crash: on this medium the calls of several clients do not meet");
                return ExitCode::from(2);
            }
            let states = states.unwrap_or(if seconds.is_some() { u64::MAX } else { 100_000 });
            let limits = Limits { states, cpu: seconds.map(Duration::from_secs) };
            let levels = if clients.contains(&1) { level.names() } else { Vec::new() };
            let report = run(&limits, &Runs { seed, media, levels: &levels, clients: &many, only: &only }, jobs.max(1));
            let cpu_seconds = cpu::time().as_secs_f64();
            print!("{}", if json { report.json(cpu_seconds) } else { report.text(cpu_seconds) });
            // Several clients that never met have proved nothing.
            let never_met = !many.is_empty() && report.interleaving().changes == 0;
            if never_met {
                eprintln!("onode-crash: nothing came in between the calls of any client");
            }
            ExitCode::from(u8::from(report.violations() > 0 || never_met))
        }
        Command::Replay { spec } => match task::replay(&spec) {
            Ok((story, Ok(()))) => {
                println!("{spec}\n{story}No promise is broken.");
                ExitCode::SUCCESS
            }
            Ok((story, Err(violation))) => {
                println!("{spec}\n{story}{violation}");
                ExitCode::FAILURE
            }
            Err(wrong) => {
                eprintln!("onode-crash: {wrong}; `onode-crash list` shows what there is");
                ExitCode::from(2)
            }
        },
        Command::Damage { medium, images, seed, first, jobs, violations, keep } => {
            let medium = Media::from(medium).name().into();
            damaged(&damage::DamagePlan { medium, seed, first, images, jobs, most_violations: violations, keep })
        }
        Command::Faults { faults, seed, first, jobs } => {
            injected(&damage::faults::FaultPlan { seed, first, faults, jobs })
        }
        #[cfg(feature = "mutants")]
        Command::Mutants { only, states, jobs, one_client } => mutants::run(&only, states, jobs, one_client),
        Command::List => {
            for level in LEVELS {
                println!("{level}: {}", task::workloads(level).join(" "));
            }
            let names: Vec<&str> = (2..=clients::MOST).filter_map(clients::name_of).collect();
            println!("object, several clients: {}", names.join(" "));
            println!("cases: {}", CASES.map(|(name, _)| name).join(" "));
            for shape in SHAPES {
                println!("{}: {:?}", shape.name, shape.geometry);
            }
            for shape in MEMORY_SHAPES {
                println!("{shape:?}");
            }
            for variant in VARIANTS {
                println!("{variant:?}");
            }
            ExitCode::SUCCESS
        }
    }
}

/// Judges damaged media and tells of it.
fn damaged(plan: &damage::DamagePlan) -> ExitCode {
    let outcome = match damage::run(plan) {
        Ok(outcome) => outcome,
        Err(why) => {
            eprintln!("onode-crash: without any damage: {why}");
            return ExitCode::FAILURE;
        }
    };
    for (image, what, why) in &outcome.violations {
        println!("{}\n    {what}\n    {why}", damage::line(plan, *image));
    }
    let damage::DamageOutcome { images, told, opened, repaired, beyond_repair, .. } = outcome;
    let violations = outcome.violations.len();
    println!(
        "{}: {images} damaged images, {told} of them told, {opened} opened, {repaired} repaired, \
         {beyond_repair} beyond repair, {violations} violations",
        plan.medium
    );
    ExitCode::from(u8::from(violations > 0 || images == 0))
}

/// Injects faults and tells of it.
fn injected(plan: &damage::faults::FaultPlan) -> ExitCode {
    let outcome = match damage::faults::run(plan) {
        Ok(outcome) => outcome,
        Err(why) => {
            eprintln!("onode-crash: without any fault: {why}");
            return ExitCode::FAILURE;
        }
    };
    for (number, what, why) in outcome.violations.iter().take(20) {
        println!("{}\n    {what}\n    {why}", damage::faults::line(plan, *number));
    }
    println!("{}", outcome.text());
    ExitCode::from(u8::from(!outcome.violations.is_empty() || outcome.faults() == 0))
}

fn number_of_clients(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=clients::MOST).contains(number));
    number.ok_or_else(|| format!("not a number from 1 to {}", clients::MOST))
}

/// When to stop.
struct Limits {
    states: u64,
    cpu: Option<Duration>,
}

/// Most states of one run, so that no run eats the budget of the others.
const RUN_STATES: u64 = 4000;

/// Which runs are explored.
struct Runs<'a> {
    seed: u64,
    media: Media,
    levels: &'a [&'a str],
    /// Numbers of clients above one.
    clients: &'a [usize],
    only: &'a str,
}

fn run(limits: &Limits, runs: &Runs<'_>, jobs: usize) -> Report {
    let Runs { seed, media, levels, clients, only } = *runs;
    let report = Mutex::new(Report::default());
    let next = AtomicU64::new(0);
    let rounds = |number: u64| -> Vec<RunName> {
        let mut round = task::round(media, levels, seed + number);
        round.extend(task::round_of_clients(media, clients, seed + number));
        // Whatever the limits cut off, what comes before is a mix of all levels, workloads and
        // shapes.
        let mut prng = Prng::new(number);
        for last in (1..round.len()).rev() {
            round.swap(last, prng.below(last as u64 + 1) as usize);
        }
        // Full volumes come first: they are few, and none of them is to be cut off.
        round.sort_by_key(|run| run.workload != brim::NAME);
        round.into_iter().filter(|run| run.to_string().contains(only)).collect()
    };
    let length = rounds(0).len() as u64;
    if length == 0 {
        return Report::default();
    }
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let done = report.lock().map_or(u64::MAX, |report| report.states());
                    if done >= limits.states || limits.cpu.is_some_and(|limit| cpu::time() >= limit) {
                        return;
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let round = rounds(number / length);
                    let Some(run) = round.get((number % length) as usize) else { return };
                    let most = RUN_STATES.min(limits.states - done);
                    if let (Ok(explored), Ok(mut report)) = (task::explore(run, most), report.lock()) {
                        report.add(run, explored);
                    }
                }
            });
        }
    });
    report.into_inner().unwrap_or_default()
}
