//! A block allocated and released: our allocator beside glibc, jemalloc, mimalloc and libpmemobj.

use super::Measuring;
use super::pairs::{SIZES, Times};
use super::peers::{Peer, Subject, Table, measure_subject, needed_library, parse_own};
use onode::{Result, human_size};
use std::collections::BTreeMap;

/// The name of the own allocator among its peers.
pub(super) const OWN: &str = "onode";
const GLIBC: &str = "glibc";
const JEMALLOC: &str = "jemalloc";
const MIMALLOC: &str = "mimalloc";
const PMEMOBJ: &str = "libpmemobj";
/// Up to this size mimalloc is held to a share of its time, from the next on it is to be beaten.
const SMALL_BYTES_MAX: u64 = 4 << 10;
const NANOSECONDS: &str = "ns";
const TIMES: &str = "times";

/// Measures all allocators there are.
pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    let (batches, rounds) = if measuring.options.quick { (3, 1) } else { (150, 15) };
    let tables = match measuring.options.program.clone() {
        None => {
            measuring.say("blocks of our allocator");
            BTreeMap::from([(OWN, parse_own(&measure_subject(Subject::Own, batches)?)?)])
        }
        Some(program) => {
            let preloaded =
                |name, library| Ok(Peer::of_program(name, &program, Some(&needed_library(name, library)?), batches));
            let mut peers = Vec::new();
            for peer in [
                Ok(Peer::of_program(OWN, &program, None, batches)),
                Ok(Peer::of_program(GLIBC, &program, None, batches)),
                preloaded(JEMALLOC, "libjemalloc.so.2"),
                preloaded(MIMALLOC, "libmimalloc.so.2"),
                Peer::pmemobj(PMEMOBJ, batches.div_ceil(5)),
            ] {
                match peer {
                    Ok(peer) => peers.push(peer),
                    Err(error) => measuring.failures.push(error.to_string()),
                }
            }
            in_rounds(measuring, peers, rounds)
        }
    };
    report(measuring, &tables);
    Ok(())
}

/// The best of several rounds, each of which visits all peers.
fn in_rounds(measuring: &mut Measuring<'_>, mut peers: Vec<Peer>, rounds: usize) -> BTreeMap<&'static str, Table> {
    let mut tables: BTreeMap<&'static str, Table> = BTreeMap::new();
    for round in 1..=rounds {
        peers.retain_mut(|peer| {
            measuring.say(&format!("blocks of {}, round {round} of {rounds}", peer.name));
            match peer.measure() {
                Ok(table) => {
                    let best = tables.entry(peer.name).or_default();
                    for (bytes, times) in table {
                        best.entry(bytes).and_modify(|best| *best = best.best(times)).or_insert(times);
                    }
                    true
                }
                Err(error) => {
                    measuring.failures.push(error.to_string());
                    false
                }
            }
        });
    }
    tables
}

fn report(measuring: &mut Measuring<'_>, tables: &BTreeMap<&'static str, Table>) {
    let times = |name: &str, bytes: u64| tables.get(name).and_then(|table| table.get(&bytes)).copied();
    for bytes in SIZES {
        let Some(own) = times(OWN, bytes) else { continue };
        let what = format!("malloc+free pair {}", human_size(bytes));
        if let Some(mimalloc) = times(MIMALLOC, bytes) {
            if bytes <= SMALL_BYTES_MAX {
                measuring.at_most(format!("{what}, time against mimalloc"), own.pair / mimalloc.pair, TIMES, 1.25);
            } else {
                measuring.at_least(format!("{what}, faster than mimalloc"), mimalloc.pair / own.pair, TIMES, 2.0);
            }
        }
        if let Some(jemalloc) = times(JEMALLOC, bytes).filter(|_| bytes > SMALL_BYTES_MAX) {
            measuring.at_least(format!("{what}, faster than jemalloc"), jemalloc.pair / own.pair, TIMES, 20.0);
        }
        if let Some(pmemobj) = times(PMEMOBJ, bytes) {
            let faster = pmemobj.pair / own.pair;
            measuring.at_least(format!("{what}, faster than libpmemobj that flushes"), faster, TIMES, 50.0);
        }
        measuring.at_most(format!("{what}, two threads against one"), own.pair_of_two / own.pair, TIMES, 1.3);
    }
    for (name, table) in tables {
        for (bytes, times) in table {
            let Times { pair, allocate, release, pair_of_two } = times;
            for (what, value) in [
                ("malloc+free pair", pair),
                ("malloc of many blocks,", allocate),
                ("free in any order,", release),
                ("malloc+free pair, two threads,", pair_of_two),
            ] {
                if !value.is_nan() {
                    measuring.shown(format!("{what} {}, {name}", human_size(*bytes)), *value, NANOSECONDS);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scm::{Options, measure};

    #[test]
    fn the_own_allocator_is_measured_without_others() {
        let report = measure(&Options { program: None, only: Some("blocks".to_owned()), quick: true }, &mut |_| {});
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        let pairs: Vec<_> = report.rows.iter().filter(|row| row.name.starts_with("malloc+free pair 32 B")).collect();
        assert_eq!(pairs.len(), 2, "{pairs:?}");
        assert!(report.rows.iter().all(|row| row.met.is_none()), "a quick run judges nothing");
    }
}
