//! Signals that ask for an end (interrupt, termination, hang-up), as a flag and a wake-up.

use onode::{Class, Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Sender;

/// Calls `tell` for every signal that asks for an end, for the rest of the process's life.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn forward<T: Send + 'static>(to: Sender<T>, tell: fn(&'static str) -> T) -> Result<()> {
    let what = "cannot listen for signals";
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| Error::host(what, &error))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let name = match signal {
                    SIGINT => "interrupted",
                    SIGTERM => "asked to terminate",
                    _ => "the terminal hung up",
                };
                if to.send(tell(name)).is_err() {
                    break;
                }
            }
        })
        .map_err(|error| Error::new(Class::General, what, error.to_string()))?;
    Ok(())
}
