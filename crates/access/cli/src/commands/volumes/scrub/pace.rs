//! How fast a scrub goes: at the rate that was asked for; without one at full speed where nobody
//! else uses the volume, and half of the time on a mount.

use onode::{Class, Error, Result, parse_size};
use std::time::Duration;

/// What one step verifies where nobody waits for it, and on a mount, where its server does nothing
/// to the topmost directory meanwhile.
const STEP_BYTES: u64 = 4 << 20;
const STEP_BYTES_MOUNTED: u64 = 1 << 20;
/// Steps a second at a rate that was asked for, at least: so it goes evenly.
const STEPS_A_SECOND: u64 = 8;
const STEP_BYTES_LEAST: u64 = 64 << 10;
const RATE_LEAST: u64 = 4 << 10;
/// The longest wait: who makes no step for half a minute is taken for gone.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as it goes.
    Unlimited,
    /// So many bytes a second.
    Bytes(u64),
}

/// The rate of an option.
pub fn rate_of(text: &str) -> Result<Rate> {
    let refused = |why: String| {
        let hint = "write bytes a second, for example --rate 50M, or --rate max";
        Err(Error::new(Class::Usage, format!("cannot scrub with --rate {text}"), why).hint(hint))
    };
    match (text, parse_size(text)) {
        ("max", _) => Ok(Rate::Unlimited),
        (_, Ok(bytes)) if bytes >= RATE_LEAST => Ok(Rate::Bytes(bytes)),
        (_, Ok(_)) => refused("the least is 4K a second".into()),
        (_, Err(why)) => refused(why),
    }
}

/// The pace of one scrub.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Option<Rate>,
    is_mounted: bool,
    /// What was done when it was looked at last, and what was waited for too long or too little
    /// since.
    done: Option<u64>,
    owed: Duration,
}

impl Pace {
    /// The pace of a scrub at this rate, if one was asked for.
    pub const fn new(rate: Option<Rate>, is_mounted: bool) -> Self {
        Self { rate, is_mounted, done: None, owed: Duration::ZERO }
    }

    /// What the next step is to verify.
    pub fn step_bytes(&self) -> u64 {
        let most = if self.is_mounted { STEP_BYTES_MOUNTED } else { STEP_BYTES };
        match self.rate {
            Some(Rate::Bytes(rate)) => (rate / STEPS_A_SECOND).clamp(STEP_BYTES_LEAST, most),
            _ => most,
        }
    }

    /// How long to wait after a step that took so long; `done` bytes are verified now.
    pub fn wait(&mut self, done: Option<u64>, took: Duration) -> Duration {
        let bytes = done.map_or(0, |done| done.saturating_sub(self.done.unwrap_or(0)));
        let is_first = std::mem::replace(&mut self.done, done).is_none();
        match self.rate {
            Some(Rate::Unlimited) => Duration::ZERO,
            // Of a pass that goes on, what others did does not count.
            Some(Rate::Bytes(_)) if is_first => Duration::ZERO,
            Some(Rate::Bytes(rate)) => {
                let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
                let wanted = self.owed + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
                let wait = wanted.saturating_sub(took);
                // The rest of a long wait comes after the next step.
                self.owed = wait.saturating_sub(WAIT_MAX);
                wait.min(WAIT_MAX)
            }
            None if self.is_mounted => took,
            None => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sizes_or_max() {
        assert_eq!(rate_of("50M").ok(), Some(Rate::Bytes(50 << 20)));
        assert_eq!(rate_of("max").ok(), Some(Rate::Unlimited));
        for wrong in ["", "fast", "0", "1K", "-1", "50M/s", "50X"] {
            let error = rate_of(wrong).expect_err(wrong);
            assert_eq!(error.class, Class::Usage);
            assert!(error.what.contains(&format!("--rate {wrong}")) && error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn a_rate_is_kept() {
        let mut pace = Pace::new(Some(Rate::Bytes(8 << 20)), true);
        assert_eq!(pace.step_bytes(), 1 << 20);
        let took = Duration::from_millis(25);
        assert_eq!(pace.wait(Some(100 << 20), took), Duration::ZERO, "others had done that");
        // A mebibyte each step: an eighth of a second with the step itself.
        for step in 1..=16 {
            assert_eq!(pace.wait(Some((100 + step) << 20), took), Duration::from_millis(100));
        }
        let slow = Duration::from_secs(1);
        assert_eq!(pace.wait(Some(117 << 20), slow), Duration::ZERO);
        assert_eq!(Pace::new(Some(Rate::Bytes(4 << 10)), false).step_bytes(), STEP_BYTES_LEAST);
        assert_eq!(Pace::new(Some(Rate::Bytes(1 << 40)), false).step_bytes(), STEP_BYTES);
    }

    #[test]
    fn a_large_step_at_a_small_rate_is_waited_for_in_pieces() {
        let mut pace = Pace::new(Some(Rate::Bytes(1 << 20)), false);
        pace.wait(Some(0), Duration::ZERO);
        assert_eq!(pace.wait(Some(15 << 20), Duration::ZERO), WAIT_MAX);
        assert_eq!(pace.wait(Some(15 << 20), Duration::ZERO), Duration::from_secs(5));
        assert_eq!(pace.wait(Some(15 << 20), Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_mount_has_half_of_the_time() {
        let took = Duration::from_millis(30);
        assert_eq!(Pace::new(None, true).wait(Some(1 << 20), took), took);
        assert_eq!(Pace::new(None, false).wait(Some(1 << 20), took), Duration::ZERO);
        assert_eq!(Pace::new(Some(Rate::Unlimited), true).wait(Some(1 << 20), took), Duration::ZERO);
    }
}
