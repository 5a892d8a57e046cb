//! The fast disk joins at the mount: what its log has that the big one's lacks, and whether both
//! tell the truth.
//!
//! Records are taken from the fast disk only if the big disk knows it as the one that took part
//! last and its records go on where the big disk's end. Everything else on it is dropped and
//! reported. Its copies stay of use in all cases: they are named by what only the big disk says,
//! and compared with its checksums.

use crate::commit::home::Home;
use crate::core::Core;
use crate::fast::Identity;
use crate::log::probe::Probe;
use crate::log::record::Seal;
use crate::log::ring::{self, Area, Claims, Found, Ring};
use crate::medium::errors::from_media;
use crate::medium::superblock::Mark;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Condition, Result, Severity};

/// What the fast disk brings.
#[derive(Debug, Default)]
pub struct Joined {
    /// Records of the history that the big disk tells of, or goes on with: the first as those of
    /// the big disk are.
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

/// What is to be seen on the fast disk.
struct Seen {
    identity: Identity,
    /// The first block of its log.
    first: u64,
    is_restored: bool,
    found: Vec<Found>,
    /// The last record that was durable there at the checkpoint is still there.
    last_stands: bool,
    /// What the records behind those say.
    claims: Claims,
}

/// Looks through the log of the fast disk; `None` if there is none, or if it fails, and then it is
/// away.
fn look(core: &Core) -> Option<Seen> {
    let (state, tail) = (core.superblock().fast, core.superblock().tail);
    let mut slot = core.disks().fast.lock();
    slot.with(|fast| {
        let (identity, (first, blocks), stripe) = (fast.identity(), fast.ring(), fast.stripe_blocks());
        let is_restored = fast.is_restored();
        let mut probe = Probe::new(fast.disk());
        let mut read = |block: u64, out: &mut [u8]| probe.read(block, out);
        let seal = Seal::of(&core.superblock().uuid, core.superblock().version);
        let area = Area { first, blocks, gap: 0, stripe, seal };
        let found = if state.is_known { ring::scan(&area, state.tail, &mut read) } else { Vec::new() };
        let last_stands = state.last.sequence > 0 && ring::stands(&area, state.last, &mut read);
        let (newest, session) = (newest_of(&found, tail.sequence), session_of(core, &found));
        // If nobody else has what it was given, its log must have no gap.
        let claims = if state.leans && identity.own == state.uuid {
            let mut pieces = ring::Pieces::new(&area, &mut read);
            ring::claims_behind(&area, newest, session, &mut |block, out| pieces.read(block, out))
        } else {
            Claims::default()
        };
        probe.finish().map_err(|error| from_media("reading its log", &error))?;
        Ok(Seen { identity, first, is_restored, found, last_stands, claims })
    })
}

/// Compares the logs of both disks. `claims` is what the records of the big disk behind `on_big`
/// say.
///
/// # Errors
/// `Loss` if less is there than was promised, and that is not consented to.
pub fn compare(core: &mut Core, on_big: &[Found], claims: Claims) -> Result<Joined> {
    let (state, tail) = (core.superblock().fast, core.superblock().tail);
    let Some(seen) = look(core) else {
        let lost = core.disks().fast.lock().lost.clone();
        let why =
            lost.map_or_else(|| String::from("the fast disk is left away"), |why| format!("the fast disk: {why}"));
        check_big(core, on_big, claims.big, newest_of(on_big, tail.sequence))?;
        core.miss_fast(&why)?;
        return Ok(Joined::default());
    };
    let Seen { identity, first, is_restored, found, last_stands, claims: claims_on_fast } = seen;
    let is_same = identity.own == state.uuid;
    // A superblock of an earlier join is one that was damaged since: the records say themselves
    // that they go on from here.
    let is_current = state.is_attached && is_same && identity.session <= state.session;
    let mut joined = Joined { session: identity.session, first, ..Joined::default() };
    if identity.session > core.superblock().session {
        let (theirs, ours) = (identity.session, core.superblock().session);
        core.recovery_mut().count_lie();
        core.miss(format!("the big disk is older (session {ours}) than the last join of the fast disk ({theirs})"))?;
    }
    if !is_current {
        let known = if state.is_attached { tail.sequence } else { state.detached_at };
        let dropped = if is_same { count_behind(&found, known) } else { 0 };
        core.recovery_mut().drop_records(dropped, "the big disk went on without it");
        check_big(core, on_big, claims.big, newest_of(on_big, tail.sequence))?;
        core.miss_fast("the fast disk is not the one that took part last")?;
        return Ok(joined);
    }
    let end = found.last().map_or(state.tail.position, |it| it.next);
    let on_fast: Vec<Found> = found.into_iter().filter(|it| it.header.sequence > tail.sequence).collect();
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
    let newest = newest_of(on_big, tail.sequence).max(newest_of(on_fast.get(..same).unwrap_or_default(), 0));
    check_claims(core, &Logs { on_big, on_fast: &on_fast, last_stands, claims }, newest)?;
    // What the fast disk's own log says of both.
    miss_records(core, claims_on_fast.fast.max(claims_on_fast.big), newest)?;
    let is_earlier = identity.session < state.session && on_fast.iter().all(|it| it.header.session < state.session);
    if is_restored && on_fast.is_empty() {
        core.miss_fast("the superblocks of the fast disk are damaged, and its log is empty or damaged as well")?;
    }
    if is_earlier {
        core.miss_fast("the fast disk is as it was in an earlier session")?;
    }
    core.recovery_mut().drop_records((on_fast.len() - same) as u64, "they belong to another history");
    if same == on_fast.len() {
        joined.position = end;
        joined.last = on_fast.last().map_or(if last_stands { state.last } else { Mark::default() }, mark_of);
    }
    joined.records = on_fast;
    joined.records.truncate(if is_planted(Bug::TierSurplusDropped) { same.min(on_big.len()) } else { same });
    Ok(joined)
}

/// The session of what stands in a log: what is older than its newest record, or than the
/// checkpoint, is of no more use.
pub fn session_of(core: &Core, found: &[Found]) -> u64 {
    found.last().map_or(0, |it| it.header.session).max(core.superblock().checkpoint >> 32)
}

fn newest_of(found: &[Found], otherwise: u64) -> u64 {
    found.last().map_or(otherwise, |it| it.header.sequence)
}

const fn mark_of(found: &Found) -> Mark {
    Mark { position: found.position, sequence: found.header.sequence, chain: found.header.crc }
}

fn count_behind(found: &[Found], sequence: u64) -> u64 {
    found.iter().filter(|it| it.header.sequence > sequence).count() as u64
}

/// What both logs have behind the checkpoint.
struct Logs<'a> {
    on_big: &'a [Found],
    on_fast: &'a [Found],
    /// The last record that was durable on the fast disk at the checkpoint is still there.
    last_stands: bool,
    /// What the records of the big disk behind those that can be reached say.
    claims: Claims,
}

/// Whether each disk has what the other one's records say was durable on it, and one of them the
/// `newest` that was said to be.
fn check_claims(core: &mut Core, logs: &Logs<'_>, newest: u64) -> Result<()> {
    let Logs { on_big, on_fast, last_stands, mut claims } = *logs;
    on_big.iter().for_each(|it| claims.fast = claims.fast.max(it.header.fast_durable));
    on_fast.iter().for_each(|it| claims.big = claims.big.max(it.header.big_durable));
    let (last, tail) = (core.superblock().fast.last.sequence, core.superblock().tail.sequence);
    let fast_has = newest_of(on_fast, if last_stands { last } else { 0 });
    // Records between the last one and the checkpoint's end may have become durable there while the
    // checkpoint was under way. They are in it, and nobody looks for them.
    let fast_said = if claims.fast > tail { claims.fast.max(last) } else { last };
    if fast_has < fast_said {
        let text = format!(
            "the fast disk lost records it had made durable ({fast_said}, has {fast_has}): rolled back, or it lies about flushes"
        );
        report_inconsistency(core, "fast-disk-lying", text);
        miss_records(core, fast_said, newest)?;
    }
    check_big(core, on_big, claims.big, newest)
}

/// Whether the big disk has what was said to be durable on it, or the fast one instead of it.
fn check_big(core: &mut Core, on_big: &[Found], said: u64, newest: u64) -> Result<()> {
    let has = newest_of(on_big, core.superblock().tail.sequence);
    if has < said {
        let text = format!(
            "the big disk lost records it had made durable ({said}, has {has}): damaged, rolled back, or it lies about flushes"
        );
        report_inconsistency(core, "big-disk-lying", text);
        miss_records(core, said, newest)?;
    }
    Ok(())
}

/// Records up to `said` were durable, and there are only those up to `newest`.
fn miss_records(core: &mut Core, said: u64, newest: u64) -> Result<()> {
    if newest >= said {
        return Ok(());
    }
    let count = said - newest;
    core.miss(format!(
        "at least {count} records of the log that were durable (up to number {said}) are on neither disk"
    ))
}

fn report_inconsistency(core: &mut Core, code: &'static str, text: String) {
    core.recovery_mut().count_lie();
    let told = Condition::new(code, Severity::Degraded, text);
    core.recovery_mut()
        .report(told.remedy("look at the disk and how it is connected; replace it if that happens again"));
}

/// The fast disk takes part from now on: the big disk says so first.
///
/// # Errors
/// `Media` of the big disk.
pub fn attach(home: &mut Home<'_>, joined: &Joined) -> Result<()> {
    let found =
        home.disks.fast.lock().get().map(|fast| {
            (fast.identity(), fast.ring(), fast.stripe_blocks(), fast.section_names(), fast.layout().clone())
        });
    let Some((identity, (first, blocks), stripe, names, division)) = found else { return Ok(()) };
    let ring = Ring::rejoined(first, blocks, joined.position, joined.last, stripe.max(1));
    let session = {
        let (log, core) = (home.volume.log.lock(), &mut *home.volume.core.lock());
        let tail = Mark { position: ring.position(), ..log.newest() };
        core.anchors_mut().attach_fast(identity.own, tail, ring.durable());
        core.anchors_mut().set_division(names, division);
        core.superblock().session
    };
    home.write_superblock()?;
    home.disks.fast.lock().with(|fast| fast.join(session));
    let leans = home.volume.core.lock().commits().leans_on_fast();
    if leans && home.disks.fast.lock().is_there() {
        // Only now: a fast disk that does not name this session has no records of it.
        home.lean_on_fast()?;
    }
    {
        let (log, core) = (&mut *home.volume.log.lock(), &mut *home.volume.core.lock());
        log.attach_fast(ring, stripe.max(1));
        core.note_fast_room(log);
    }
    home.notice_loss()
}
