//! The watch over a mount: what is wrong with it is told as soon as it is seen.
//!
//! A thread of its own looks at the health of the volume once a second. What is new goes to the
//! log, to standard error if the mount is in the foreground, and to the hook; a file of metrics is
//! kept up to date. Serving never waits for any of it.

pub mod health;
pub mod log;
pub mod overdue;
pub mod record;
pub mod settings;

mod hook;
mod metrics;
mod syslog;

use crate::figures::Figures;
use hook::Hook;
use metrics::{Metrics, State};
use onode::{Condition, Error, Health, Result, Severity, Volume, human_size};
use onode_console::Output;
use onode_fs::scrub::record::FinishedScrub;
use overdue::Hanging;
use record::Left;
use settings::Telling;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the end of a mount waits for a look that is under way.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(2);
/// Looks between two files of metrics.
const LOOKS: u32 = 10;

/// A volume and what is known of its last mount.
#[derive(Debug)]
pub struct Watched {
    volume: Arc<Volume>,
    past: Vec<Condition>,
    hanging: Hanging,
}

impl Watched {
    /// An open volume, and what earlier mounts left.
    pub fn new(volume: Arc<Volume>, left: &[Left]) -> Self {
        let past = left.iter().map(|left| left.as_condition(Severity::Notice)).collect();
        Self { volume, past, hanging: Hanging::default() }
    }

    /// What hangs in its server, as far as somebody looks.
    pub const fn hanging(&self) -> &Hanging {
        &self.hanging
    }

    /// The volume.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// What is wrong with the volume, with its last mount, and with its server.
    pub fn health(&self) -> Health {
        let mut health = self.volume.health();
        health.conditions.extend(self.past.iter().cloned());
        health.conditions.extend(self.hanging.lock().clone());
        health
    }

    /// Its figures, with its health.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::of(&self.volume);
        figures.health = self.health().into();
        figures
    }
}

/// The thread that watches.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Watcher>>,
}

/// What the thread has.
#[derive(Debug)]
struct Watcher {
    watched: Arc<Watched>,
    hook: Option<Hook>,
    metrics: Option<Metrics>,
    /// Why metrics could not be written the last time.
    metrics_error: Option<String>,
    told: BTreeMap<String, Severity>,
    /// The last scrub that was told of.
    scrubbed: Option<FinishedScrub>,
    /// Standard error, for mounts in the foreground.
    aloud: Option<Output>,
}

impl Watch {
    /// Watches the mount at `directory`. What was found at its opening goes to the log at once;
    /// `aloud` hears of what comes later.
    ///
    /// # Errors
    /// If no thread can be started, or the metrics cannot be written.
    pub fn start(watched: Arc<Watched>, directory: &Path, telling: &Telling, aloud: Option<Output>) -> Result<Self> {
        let mount = directory.display().to_string();
        let volume = watched.volume().spec().to_string();
        let mut watcher = Watcher {
            hook: telling.hook.clone().map(|program| Hook::new(program, mount.clone(), volume)),
            metrics: telling.metrics.clone().map(|path| Metrics::new(path, mount)),
            metrics_error: None,
            told: BTreeMap::new(),
            scrubbed: watched.volume().files().last_scrub(),
            aloud: None,
            watched,
        };
        if let Some(metrics) = &watcher.metrics {
            metrics.write(&watcher.watched.figures(), State::Mounted)?;
        }
        watcher.look();
        watcher.aloud = aloud;
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || watcher.run(&stopped));
        let thread =
            thread.map_err(|error| Error::new(onode::Class::General, "cannot start a thread", error.to_string()))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends before the mount does; what it knows of the volume then is taken along, and the volume
    /// let go of.
    pub fn stop(mut self) -> Option<Last> {
        drop(self.stop.take());
        let thread = self.thread.take()?;
        let mut waited = Duration::ZERO;
        while !thread.is_finished() {
            // It may hang in a hook's file system or in a device; what can be saved is saved
            // without it.
            if waited >= PATIENCE {
                tracing::warn!("the watch hangs: the end of the mount is not told to the hook and in the metrics");
                return None;
            }
            std::thread::sleep(POLL);
            waited += POLL;
        }
        // A panic in it was reported by the panic hook already.
        let mut watcher = thread.join().ok()?;
        watcher.look();
        let Watcher { watched, hook, metrics, .. } = watcher;
        let figures = metrics.is_some().then(|| watched.figures());
        Some(Last { hook, metrics: metrics.zip(figures) })
    }
}

/// What is left to tell when the volume is closed.
#[derive(Debug)]
pub struct Last {
    hook: Option<Hook>,
    metrics: Option<(Metrics, Figures)>,
}

impl Last {
    /// Tells how the mount ended.
    pub fn tell(self, outcome: Option<&Error>) {
        if let Some((metrics, figures)) = &self.metrics
            && let Err(error) = metrics.write(figures, State::Unmounted(outcome.is_none()))
        {
            tracing::warn!("{error}");
        }
        let Some(mut hook) = self.hook else { return };
        if let Some(error) = outcome {
            let mut condition = Condition::new("not-saved", Severity::Failed, error.to_string());
            condition.remedy = error.hint.clone().unwrap_or_default();
            hook.tell(&condition);
        }
        hook.finish();
    }
}

impl Watcher {
    fn run(mut self, stopped: &Receiver<()>) -> Self {
        let mut looks = 0;
        while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            let is_new = self.look();
            looks += 1;
            if is_new || looks >= LOOKS {
                self.write_metrics();
                looks = 0;
            }
            if let Some(hook) = &mut self.hook {
                hook.tend(PERIOD);
            }
        }
        self
    }

    /// Tells what is new; returns whether anything is.
    fn look(&mut self) -> bool {
        let mut now = BTreeMap::new();
        let mut is_new = false;
        for condition in self.watched.health().conditions {
            let code = condition.code.to_string();
            if self.told.get(&code).is_none_or(|told| *told < condition.severity) {
                self.tell(&condition);
                is_new = true;
            }
            // What became better and worse again is no news.
            let before = self.told.get(&code).copied().unwrap_or(condition.severity);
            let worst = now.entry(code).or_insert(before);
            *worst = (*worst).max(condition.severity);
        }
        for code in self.told.keys().filter(|code| !now.contains_key(*code)) {
            tracing::info!("{}: `{code}` is over", self.watched.volume().spec());
            is_new = true;
        }
        self.told = now;
        self.tell_scrub();
        is_new
    }

    /// Tells in the log that a scrub has come to its end; what it found is a condition.
    fn tell_scrub(&mut self) {
        let last = self.watched.volume().files().last_scrub();
        if let Some(FinishedScrub { found, .. }) = last.as_ref().filter(|_| last != self.scrubbed) {
            let (objects, bytes) = (found.objects, human_size(found.bytes));
            let damaged = found.damaged.len() as u64 + found.more_damaged;
            let spec = self.watched.volume().spec();
            tracing::info!("{spec}: a scrub has ended: {objects} objects, {bytes}, {damaged} damaged ranges");
        }
        self.scrubbed = last;
    }

    fn tell(&mut self, condition: &Condition) {
        if condition.code != overdue::CODE {
            self.say(condition);
        }
        if let Some(hook) = &mut self.hook {
            hook.tell(condition);
        }
    }

    /// Tells in the log and aloud.
    fn say(&self, condition: &Condition) {
        let line = format!("{}: {}", self.watched.volume().spec(), health::ConditionReport::from(condition.clone()));
        match condition.severity {
            Severity::Notice => tracing::info!("{line}"),
            Severity::Degraded => tracing::warn!("{line}"),
            Severity::Failed => tracing::error!("{line}"),
        }
        if let Some(output) = &self.aloud {
            output.warning(&line);
        }
    }

    fn write_metrics(&mut self) {
        let Some(metrics) = &self.metrics else { return };
        let failure = metrics.write(&self.watched.figures(), State::Mounted).err().map(|error| error.to_string());
        if let Some(why) = failure.as_ref().filter(|why| self.metrics_error.as_ref() != Some(*why)) {
            tracing::warn!("{why}");
        }
        if failure.is_none() {
            tracing::debug!("{}: the metrics are written", self.watched.volume().spec());
        }
        self.metrics_error = failure;
    }
}
