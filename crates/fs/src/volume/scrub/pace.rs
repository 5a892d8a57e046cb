//! How fast a scrub in the background goes: so that a whole pass takes about the period that was
//! asked for, and not while programs use the volume unless it falls far behind.

use crate::volume::scrub::record::{FinishedScrub, ScrubPass};
use onode_base::Timestamp;

/// What one turn verifies at most, whatever it is behind: with a turn a second the bound of its
/// rate.
pub const BACKGROUND_BYTES_MAX: u64 = 8 << 20;
/// What it may be behind while programs use the volume: this part of the period.
const PATIENCE: u64 = 10;

/// What a scrub in the background is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing now.
    Wait,
    /// A new pass.
    Begin,
    /// About so many bytes.
    Verify(u64),
}

/// Whether a pass is due of which none goes on.
pub(crate) fn next_pass(last: Option<&FinishedScrub>, period: u64, now: Timestamp) -> Turn {
    let Some(last) = last else { return Turn::Begin };
    let age = now.seconds.saturating_sub(last.started.seconds);
    // A clock set back must not put it off for longer than the period.
    if age < 0 || age.unsigned_abs() >= period { Turn::Begin } else { Turn::Wait }
}

/// What is to be verified now of a pass that goes on, of so many bytes in all.
pub(crate) fn next_turn(pass: &ScrubPass, total: u64, period: u64, now: Timestamp, is_idle: bool) -> Turn {
    let age = now.seconds.saturating_sub(pass.started.seconds).max(0).unsigned_abs();
    let due = |age: u64| (u128::from(total) * u128::from(age.min(period)) / u128::from(period.max(1))) as u64;
    let wanted = due(age).saturating_sub(pass.done);
    let is_late = due(age.saturating_sub(period / PATIENCE)) > pass.done || age >= period;
    match wanted {
        // All of the estimate is done and the pass is not at its end, or its time is over.
        0 if age >= period => Turn::Verify(BACKGROUND_BYTES_MAX),
        0 => Turn::Wait,
        _ if !is_idle && !is_late => Turn::Wait,
        bytes => Turn::Verify(bytes.min(BACKGROUND_BYTES_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn at(seconds: u64) -> Timestamp {
        Timestamp { seconds: seconds as i64, nanoseconds: 0 }
    }

    fn pass(done: u64) -> ScrubPass {
        ScrubPass { started: at(1000), done, ..ScrubPass::default() }
    }

    #[test]
    fn a_pass_begins_a_period_after_the_one_before_began() {
        let last = FinishedScrub { started: at(1000), ended: at(1000 + DAY), ..FinishedScrub::default() };
        assert_eq!(next_pass(None, DAY, at(5)), Turn::Begin);
        assert_eq!(next_pass(Some(&last), 2 * DAY, at(1000 + 2 * DAY - 1)), Turn::Wait);
        assert_eq!(next_pass(Some(&last), 2 * DAY, at(1000 + 2 * DAY)), Turn::Begin);
        assert_eq!(next_pass(Some(&last), 2 * DAY, at(5)), Turn::Begin, "the clock was set back");
    }

    #[test]
    fn a_pass_takes_about_its_period() {
        let (total, mut done) = (DAY << 10, 0);
        let mut ended = 0;
        for second in 1..=2 * DAY {
            match next_turn(&pass(done), total, DAY, at(1000 + second), true) {
                Turn::Verify(bytes) => {
                    assert!(bytes <= 2048, "{bytes} bytes after {second} seconds");
                    done += bytes;
                }
                turn => assert_eq!(turn, Turn::Wait),
            }
            if done >= total {
                ended = second;
                break;
            }
        }
        assert!((DAY - 2..=DAY).contains(&ended), "{ended}");
    }

    #[test]
    fn programs_come_first_unless_it_is_far_behind() {
        let half = at(1000 + DAY / 2);
        let total = 1 << 30;
        let turn = |done, is_idle| next_turn(&pass(done), total, DAY, half, is_idle);
        assert_eq!(turn(total * 45 / 100, false), Turn::Wait);
        assert_eq!(turn(total * 45 / 100, true), Turn::Verify(BACKGROUND_BYTES_MAX));
        assert_eq!(turn(total * 39 / 100, false), Turn::Verify(BACKGROUND_BYTES_MAX));
        assert_eq!(turn(total * 51 / 100, true), Turn::Wait, "it is ahead");
        let over = next_turn(&pass(total), total, DAY, at(1000 + DAY), false);
        assert_eq!(over, Turn::Verify(BACKGROUND_BYTES_MAX), "the estimate was too low");
    }
}
