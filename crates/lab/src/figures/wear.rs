//! Wear: how far the most erased segment runs ahead of the mean under each wear policy, and what
//! that costs.
//!
//! Files are rewritten by the zipf distribution, each write durable before the next: once all of
//! the files, and once a third of them while the others never change, the hardest load early in a
//! medium's life. Wear counts from the new medium on, programs over the second half.

use super::{Measuring, bounds, device, spec};
use crate::bench::{Bench, Durability};
use crate::replay::{Settings, replay};
use crate::report::Report;
use crate::stream::Operation;
use crate::stream::generate::Rewrite;
use crate::stream::pattern::Pattern;
use onode::Result;
use onode_flash::policy::WearPolicy;

const FILE_BYTES: u64 = 1 << 20;
/// How often the capacity is written.
const FILLS: u64 = 8;
const REACH: f64 = 1.2;
const REACH_PERCENT: f64 = 5.0;
/// An exchange of segments in so many opened is all that these percent pay for.
const EXCHANGE_EVERY: usize = 20;

/// Both loads under all policies.
pub(super) fn levelling(run: &mut Measuring<'_>) -> Result<()> {
    let (usable, segments) = {
        let bench = Bench::new(&spec(run.scale().wear_medium, ",wear=static")?, Durability::Operation, run.caches())?;
        let device = bench.files.device();
        (device.space().total, device.inspect().map_or(0, |inspect| inspect.segments().len()))
    };
    let filled = usable / 100 * u64::from(100 - run.scale().spare);
    for (still, what) in [(0, "all files"), (2, "a third of the files")] {
        let scale = run.scale();
        let name = |part: &str| format!("zipf over {what} of {}, {} % spare: {part}", scale.wear_medium, scale.spare);
        let operations = load(filled, filled * still / 3, FILLS * usable / 4096);
        let mut reports = Vec::new();
        for policy in [WearPolicy::Off, WearPolicy::Dynamic, WearPolicy::Static] {
            run.say(&name(policy.name()));
            reports.push((policy, measure(run, policy, &operations)?));
        }
        let ratio = |report: &Report| f64::from(report.segment_wear.max) / report.segment_wear.mean.max(1.0);
        let programs = |report: &Report| report.nand.programs.max(1) as f64;
        let [(_, off), (_, dynamic), (_, levelled)] = &reports[..] else { continue };
        let more = (programs(levelled) / programs(off).min(programs(dynamic)) - 1.0) * 100.0;
        let (of_off, of_dynamic, of_static) = (ratio(off), ratio(dynamic), ratio(levelled));
        let wear = |policy: WearPolicy| name(&format!("most worn segment to the mean, {}", policy.name()));
        let names = [wear(WearPolicy::Off), wear(WearPolicy::Dynamic), wear(WearPolicy::Static)];
        let cost = name("more programs with static levelling");
        let blocks = name("most worn block to the mean, static, superblocks included");
        let of_blocks = f64::from(levelled.wear.max) / levelled.wear.mean.max(1.0);
        let [name_off, name_dynamic, name_static] = names;
        run.shown(name_off, of_off, "times");
        run.shown(name_dynamic, of_dynamic, "times");
        if still == 0 {
            run.at_most(name_static, of_static, "times", REACH);
            run.at_most(cost, more, "%", REACH_PERCENT);
        } else {
            run.shown(name_static, of_static, "times");
            run.shown(cost, more, "%");
            let resting = (filled * still / 3 * segments as u64 / usable.max(1)) as usize;
            let mean = levelled.segment_wear.mean;
            let bound = bounds::wear_with_exchanges(segments, resting, mean, EXCHANGE_EVERY);
            run.shown(name("erases of a segment on average, static"), mean, "erases");
            run.shown(name("most worn segment to the mean, with the best exchanges that 5 % pay for"), bound, "times");
        }
        run.shown(blocks, of_blocks, "times");
    }
    Ok(())
}

/// Files of `still` bytes that are written once, and others that fill up to `filled` and are
/// rewritten.
fn load(filled: u64, still: u64, writes: u64) -> Vec<Operation> {
    let files = 0..still / FILE_BYTES;
    let mut all: Vec<_> = files.map(|number| Operation::Create(format!("still{number}"), FILE_BYTES)).collect();
    let work = Rewrite { pattern: Pattern::Zipf, bytes: filled - still, seed: 42, operations: Some(writes) };
    all.extend(work.operations());
    all
}

fn measure(run: &Measuring<'_>, policy: WearPolicy, operations: &[Operation]) -> Result<Report> {
    let more = format!(",wear={}", policy.name());
    let settings = Settings {
        trace: format!("zipf over files on {}", device(run.scale().wear_medium, &more)),
        device: spec(run.scale().wear_medium, &more)?,
        durability: Durability::Operation,
        caches: run.caches(),
        access_times: onode_fs::AccessTimes::Never,
    };
    replay(&settings, operations)
}
