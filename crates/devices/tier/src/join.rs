//! The fast disk joins at the mount: what its log has that the big one's lacks, and whether both tell the truth.
//!
//! Records are taken from the fast disk only if the big disk knows it as the one that took part last and its records go
//! on where the big disk's end. Everything else on it is dropped and reported. Its copies stay of use in all cases: they
//! are named by what only the big disk says, and compared with its checksums.

use crate::core::Core;
use crate::log::Log;
use crate::ring::{self, Found, Ring};
use crate::superblock::{FastState, Mark};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

/// What the fast disk brings.
#[derive(Debug, Default)]
pub struct Joined {
    /// Records of the history that the big disk tells of, or goes on with: the first as those of the big disk are.
    pub records: Vec<Found>,
    /// The first block of its log.
    pub first: u64,
    /// The session of its last join.
    pub session: u64,
    /// Where its log goes on.
    position: u64,
    /// The last record that stands in its log.
    last: Mark,
}

/// Compares the logs of both disks. `said_by_big` is the last record that the big disk's log calls durable there.
pub fn compare(core: &mut Core, on_big: &[Found], said_by_big: u64) -> Joined {
    let (state, tail) = (core.superblock.fast, core.superblock.tail);
    let mut slot = core.disks.fast.lock();
    let lost = slot.lost.clone();
    let Some(fast) = slot.get() else {
        drop(slot);
        core.reports.extend(lost.map(|why| format!("mounted without the fast disk: {why}")));
        check_big(core, on_big, said_by_big);
        return Joined::default();
    };
    let (identity, (first, blocks), stripe) = (fast.identity(), fast.ring(), fast.stripe_blocks());
    let disk = fast.disk();
    let bytes = crate::layout::BLOCK;
    let mut read = |block: u64, out: &mut [u8]| disk.read_at(block * bytes, out, IoTag::Recovery).is_ok();
    let found = if state.is_known { ring::scan((first, blocks, 0, stripe), state.tail, &mut read) } else { Vec::new() };
    let last_stands = state.last.sequence > 0 && ring::stands(first, blocks, state.last, &mut read);
    drop(slot);

    let is_current = state.is_attached && identity.own == state.uuid && identity.session == state.session;
    let mut joined = Joined { session: identity.session, first, ..Joined::default() };
    if identity.session > core.superblock.session {
        let (theirs, ours) = (identity.session, core.superblock.session);
        let report = format!("the big disk is older (session {ours}) than the last join of the fast disk ({theirs})");
        tell_lie(core, report);
    }
    if !is_current {
        let known = if state.is_attached { tail.sequence } else { state.detached_at };
        let is_same = identity.own == state.uuid;
        let dropped = if is_same { count_behind(&found, known) } else { 0 };
        drop_records(core, dropped, "the big disk went on without it");
        check_big(core, on_big, said_by_big);
        return joined;
    }
    let end = found.last().map_or(state.tail.position, |it| it.next);
    let on_fast: Vec<Found> = found.into_iter().filter(|it| it.header.sequence > tail.sequence).collect();
    check_claims(core, on_big, &on_fast, last_stands, said_by_big);
    // The histories must be one: the same records as far as both go.
    let mut before = tail.chain;
    let mut same = 0;
    for (number, record) in on_fast.iter().enumerate() {
        let is_ours = on_big.get(number).is_none_or(|ours| ours.header.crc == record.header.crc);
        if !is_ours || record.header.chain != before {
            break;
        }
        before = record.header.crc;
        same = number + 1;
    }
    drop_records(core, (on_fast.len() - same) as u64, "they belong to another history");
    if same == on_fast.len() {
        joined.position = end;
        joined.last = on_fast.last().map_or(if last_stands { state.last } else { Mark::default() }, mark_of);
    }
    joined.records = on_fast;
    joined.records.truncate(if is_planted(Bug::TierSurplusDropped) { same.min(on_big.len()) } else { same });
    joined
}

const fn mark_of(found: &Found) -> Mark {
    Mark { position: found.position, sequence: found.header.sequence, chain: found.header.crc }
}

fn count_behind(found: &[Found], sequence: u64) -> u64 {
    found.iter().filter(|it| it.header.sequence > sequence).count() as u64
}

/// Whether each disk has what the other one's records say was durable on it.
fn check_claims(core: &mut Core, on_big: &[Found], on_fast: &[Found], last_stands: bool, said_by_big: u64) {
    let last = core.superblock.fast.last.sequence;
    let newest = |found: &[Found], otherwise| found.last().map_or(otherwise, |it| it.header.sequence);
    let fast_has = newest(on_fast, if last_stands { last } else { 0 });
    let fast_said = on_big.iter().map(|it| it.header.fast_durable).max().unwrap_or(0).max(last);
    if fast_has < fast_said {
        let report = format!(
            "the fast disk lost records it had made durable ({fast_said}, has {fast_has}): rolled back, or it lies about flushes"
        );
        tell_lie(core, report);
    }
    let big_said = on_fast.iter().map(|it| it.header.big_durable).max().unwrap_or(0);
    check_big(core, on_big, big_said.max(said_by_big));
}

/// Whether the big disk has what was said to be durable on it.
fn check_big(core: &mut Core, on_big: &[Found], said: u64) {
    let has = on_big.last().map_or(core.superblock.tail.sequence, |it| it.header.sequence);
    if has < said {
        let report = format!(
            "the big disk lost records it had made durable ({said}, has {has}): damaged, rolled back, or it lies about flushes"
        );
        tell_lie(core, report);
    }
}

fn tell_lie(core: &mut Core, report: String) {
    core.figures.lies += 1;
    core.reports.push(report);
}

fn drop_records(core: &mut Core, count: u64, why: &str) {
    if count > 0 {
        core.figures.records_dropped += count;
        core.reports.push(format!("{count} records of the fast disk were dropped: {why}"));
    }
}

/// The fast disk takes part from now on: the big disk says so first.
///
/// # Errors
/// `Media` of the big disk.
pub fn attach(core: &mut Core, log: &mut Log, joined: &Joined) -> Result<()> {
    let found = core
        .disks
        .fast
        .lock()
        .get()
        .map(|fast| (fast.identity(), fast.ring(), fast.stripe_blocks(), fast.section_names()));
    let Some((identity, (first, blocks), stripe, names)) = found else { return Ok(()) };
    let session = core.superblock.session;
    let mut ring = Ring::new(first, blocks, joined.position, 0);
    ring.durable = joined.last;
    ring.align(stripe.max(1));
    ring.mark();
    ring.release();
    let tail = Mark { position: ring.position(), ..log.newest };
    core.superblock.fast = FastState {
        is_attached: true,
        is_known: true,
        uuid: identity.own,
        session,
        tail,
        last: ring.durable,
        detached_at: 0,
    };
    core.superblock.sections = names;
    core.write_superblock()?;
    core.disks.fast.lock().with(|fast| fast.join(session));
    log.stripe_blocks = stripe.max(1);
    log.fast = Some(ring);
    log.note_room(core);
    log.notice_loss(core)
}
