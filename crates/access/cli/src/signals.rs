//! Signals that ask for an end (interrupt, termination, hang-up), as a wake-up or as a flag, and
//! those that stop a process which must not be stopped.

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use onode::{Class, Error, Result};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How long somebody may stop a process that must not be stopped.
const STOPPED_MOST: Duration = Duration::from_secs(1);
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
const WHAT: &str = "cannot listen for signals";

/// What a signal that asks for an end is called.
const fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "interrupted",
        SIGTERM => "asked to terminate",
        _ => "the terminal hung up",
    }
}

/// Calls `tell` for every signal that asks for an end, for the rest of the process's life.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn forward<T: Send + 'static>(to: Sender<T>, tell: fn(&'static str) -> T) -> Result<()> {
    let mut signals = Signals::new(ENDS).map_err(|error| Error::host(WHAT, &error))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if to.send(tell(name(signal))).is_err() {
                    break;
                }
            }
        })
        .map_err(|error| Error::new(Class::General, WHAT, error.to_string()))?;
    Ok(())
}

/// Has the kernel continue this process soon whenever it is stopped, for the rest of its life. Who
/// stops the server of the root would wait for it at the next file: systemd stops all processes
/// while it ends them, and looks into `/etc` meanwhile.
///
/// # Errors
/// If there is no such timer.
pub fn stay_running() -> Result<()> {
    let failed = |why: String| Error::new(Class::General, "cannot stay running", why);
    // Kernels of today set a timer aside whose signal nobody hears.
    flag::register(SIGCONT, Arc::default()).map_err(|error| failed(error.to_string()))?;
    let event = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGCONT, si_value: 0 });
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, event).map_err(|errno| failed(errno.to_string()))?;
    timer
        .set(Expiration::Interval(STOPPED_MOST.into()), TimerSetTimeFlags::empty())
        .map_err(|errno| failed(errno.to_string()))?;
    // It ends with the process.
    std::mem::forget(timer);
    Ok(())
}

/// Whether an end was asked for: for work that looks between its steps. Who asks a second time does
/// not wait for the next step: the process ends.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicUsize>,
    listens: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from now on, for the rest of the process's life. Not before there is work: nothing
    /// would look while somebody is asked for a passphrase.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn listen(&self) -> Result<()> {
        if self.listens.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let is_second = Arc::new(AtomicBool::new(false));
        for signal in ENDS {
            // In this order: what ends the process comes before what says that there was a first.
            flag::register_conditional_default(signal, Arc::clone(&is_second))
                .and_then(|_| flag::register(signal, Arc::clone(&is_second)))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&self.asked), signal as usize))
                .map_err(|error| Error::host(WHAT, &error))?;
        }
        Ok(())
    }

    /// What was asked for, if an end was.
    pub fn asked(&self) -> Option<&'static str> {
        match self.asked.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(name(signal as i32)),
        }
    }
}
