//! Serving a mount in this process until somebody ends it: what `up` and `mount` share.

use crate::commands::mounts::kept;
use crate::commands::mounts::sends::Sends;
use crate::commands::mounts::views;
use crate::location::where_mounted;
use crate::signals;
use crate::watch::overdue::Overdue;
use crate::watch::record::{self, Left, Record};
use crate::watch::settings::Settings;
use crate::watch::{Watch, Watched, log};
use onode::{Class, MountOptions, Result, Spec, Volume, cache_bytes, human_size, write_cache_bytes};
use onode_console::Output;
use onode_fs::{AccessTimes, WriteMode};
use onode_fuse::{Atime, Ending, Mount, Options, Requests};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Between two looks at the volume.
const PERIOD: Duration = Duration::from_secs(1);
/// How long to wait for a mount that is just being ended to let go of the image.
const PATIENCE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);
/// Files of which more is known than their number.
const INODES_MAX: usize = 65_536;
/// What is known of a file, about.
const INODE_BYTES: usize = 400;

/// What can happen to a mount.
#[derive(Debug)]
pub enum Event {
    /// It was unmounted, or its server failed.
    Ended,
    /// A signal asked for the end; the text says which.
    Asked(&'static str),
}

/// Who hears of a mount beside its log.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Whoever sees standard error of this process.
    Foreground(Output),
    /// Nobody: the log is that of the system.
    Background,
}

/// A mount that is being served.
#[derive(Debug)]
pub struct Session {
    mount: Mount,
    events: Receiver<Event>,
    watch: Watch,
    _overdue: Overdue,
    record: Option<Record>,
    notes: Vec<String>,
}

impl Session {
    /// Opens the volume and mounts it. Signals are listened to from before the mount on, so that
    /// none of them can leave a dead mount behind.
    pub fn start(spec: &Spec, directory: &Path, settings: &Settings, manner: Manner) -> Result<Self> {
        let telling = &settings.telling;
        log::start(telling.log.as_deref(), telling.level, matches!(manner, Manner::Background))?;
        let started = Self::begin(spec, directory, settings, manner);
        if let Err(error) = &started {
            tracing::error!("{error}");
        }
        started
    }

    fn begin(spec: &Spec, directory: &Path, settings: &Settings, manner: Manner) -> Result<Self> {
        let telling = &settings.telling;
        onode_fuse::prepare(directory)?;
        let (sender, events) = channel();
        signals::forward(sender.clone(), Event::Asked)?;
        let OpenedAsKept { volume, spec, options, mut notes } = OpenedAsKept::open(spec, settings)?;
        let options = &options;
        let volume = Arc::new(volume);
        let left = Left::of(spec.image_path());
        let watched = Arc::new(Watched::new(Arc::clone(&volume), &left));
        notes.extend(left.iter().map(|left| left.text.clone()));
        if options.scrub.is_some() && (options.read_only || volume.device().scrub().is_none()) {
            let why =
                if options.read_only { "it is mounted read-only" } else { "its device keeps no checksums of content" };
            notes.push(format!("nothing is scrubbed in the background: {why}"));
        }
        let viewed = Arc::clone(&watched);
        let shown = options.clone();
        let sends = Sends::default();
        let views =
            Box::new(move |name: &str, requests: &Requests| views::view(&viewed, &shown, &sends, requests, name));
        let mount = Mount::start(volume, directory, options, views, move || {
            // If nobody listens any more, the end is under way already.
            let _ = sender.send(Event::Ended);
        })?;
        let record = match Record::begin(&spec.to_string(), spec.image_path(), directory) {
            Ok(record) => Some(record),
            Err(error) => {
                notes.push(format!("{error}; `onode umount` will not know whether everything was saved"));
                None
            }
        };
        if !options.read_only {
            left.iter().for_each(Left::forget);
            record::sweep();
        }
        tracing::info!("{spec} is mounted at {}", directory.display());
        tracing::debug!("{spec}: requests come by {}", mount.transport().name());
        tracing::debug!("{spec}: {options:?}, {telling:?}");
        notes.iter().for_each(|note| tracing::warn!("{spec}: {note}"));
        let aloud = match manner {
            Manner::Foreground(output) => Some(output),
            Manner::Background => None,
        };
        let overdue = Overdue::start(&mount.requests(), spec.to_string(), watched.hanging(), aloud);
        match overdue.and_then(|overdue| Ok((Watch::start(watched, directory, telling, aloud)?, overdue))) {
            Ok((watch, overdue)) => Ok(Self { mount, events, watch, _overdue: overdue, record, notes }),
            Err(error) => {
                mount.finish()?;
                if let Some(record) = record {
                    record.end(None);
                }
                Err(error)
            }
        }
    }

    /// The volume that is mounted.
    pub fn volume(&self) -> &Volume {
        self.mount.volume()
    }

    /// What people should hear of how it was opened, and of how its last mount ended.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Waits for the end, with a live line of figures if `output` is a terminal.
    pub fn wait(&self, output: &Output) -> Event {
        let mut before = SessionFigures::of(self.volume());
        loop {
            match self.events.recv_timeout(PERIOD) {
                Ok(event) => {
                    if let Event::Asked(why) = &event {
                        tracing::info!("{}: {why}", self.volume().spec());
                    }
                    if output.is_live() {
                        output.live("");
                    }
                    return event;
                }
                Err(RecvTimeoutError::Disconnected) => return Event::Ended,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = SessionFigures::of(self.volume());
            if output.is_live() {
                output.live(&now.line(&before));
            }
            before = now;
        }
    }

    /// Ends the mount, and tells how it ended: the log, whoever unmounted it, the hook and the
    /// metrics.
    pub fn finish(self) -> Result<Ending> {
        let Self { mount, watch, record, .. } = self;
        let spec = mount.volume().spec().to_string();
        // It must have let go of the volume when others hear that the mount has ended.
        let last = watch.stop();
        let outcome = mount.finish();
        match &outcome {
            Ok(Ending::Clean) => tracing::info!("{spec} is unmounted, everything is saved"),
            Ok(Ending::Busy) => tracing::info!("{spec} is unmounted, everything is saved; some files were still open"),
            Err(error) => {
                let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
                tracing::error!("{spec} is unmounted, but not everything is saved: {error}{hint}");
            }
        }
        if let Some(record) = record {
            record.end(outcome.as_ref().err());
        }
        if let Some(last) = last {
            last.tell(outcome.as_ref().err());
        }
        outcome
    }
}

/// A volume that was opened with the options that it keeps and those that were said.
struct OpenedAsKept {
    volume: Volume,
    /// What it lies on, with policies from options.
    spec: Spec,
    options: Options,
    /// What people should hear of how it was opened.
    notes: Vec<String>,
}

impl OpenedAsKept {
    /// What a volume keeps is known when it is open. If that says how to open it, it is opened
    /// again; by then it needs no recovery any more.
    fn open(spec: &Spec, settings: &Settings) -> Result<Self> {
        let worn =
            |options: &Options| options.wear.map_or_else(|| Ok(spec.clone()), |wear| spec.clone().with_wear(wear));
        let said = &settings.options;
        let first = open_patiently(&worn(said)?, said)?;
        let kept = first.files().tuning().map(|tuning| tuning.mount_options).unwrap_or_default();
        let (options, ignored) = kept::merged(spec, &kept, settings);
        let mut notes = first.notes().to_vec();
        let volume = if mount_options(&options) == mount_options(said) && options.wear == said.wear {
            first
        } else {
            first.close()?;
            drop(first);
            let again = open_patiently(&worn(&options)?, &options)?;
            let more: Vec<_> = again.notes().iter().filter(|note| !notes.contains(note)).cloned().collect();
            notes.extend(more);
            again
        };
        notes.extend(ignored);
        Ok(Self { volume, spec: worn(&options)?, options, notes })
    }
}

/// Opens a volume; if its image is in use, gives a mount that is just ending a moment to let go.
fn open_patiently(spec: &Spec, options: &Options) -> Result<Volume> {
    let mut waited = Duration::ZERO;
    loop {
        let opened = match &options.state {
            Some(name) => Volume::open_state(spec, name, mount_options(options)),
            None => Volume::open(spec, mount_options(options)),
        };
        match opened {
            Err(error) if error.class == Class::InUse && waited < PATIENCE && !is_mounted(spec) => {
                std::thread::sleep(POLL);
                waited += POLL;
            }
            Err(error) if error.class == Class::InUse => return Err(where_mounted(spec, error)),
            other => return other,
        }
    }
}

fn is_mounted(spec: &Spec) -> bool {
    onode_fuse::mount_of(spec).is_some()
}

fn mount_options(options: &Options) -> MountOptions {
    let usual = MountOptions::default();
    let memory = &options.memory;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let fitting = |bytes: usize| size(cache_bytes(bytes as u64));
    let chosen = |bytes: Option<u64>, usual: usize| bytes.map_or_else(|| fitting(usual), size);
    let write_cache = memory.write_cache.unwrap_or_else(|| write_cache_bytes(usual.write_cache_bytes as u64));
    MountOptions {
        read_only: options.read_only,
        accept_loss: options.accept_loss,
        compression: options.compression,
        write_mode: if options.sync { WriteMode::WriteThrough } else { WriteMode::WriteBack },
        access_times: match options.atime {
            Atime::Never => AccessTimes::Never,
            Atime::Relative => AccessTimes::Relative,
            Atime::Strict => AccessTimes::Strict,
        },
        // The mount answers no open calls, which makes opening a file almost free.
        opens_are_counted: false,
        closes_are_heard: options.hears_closes(),
        write_cache_bytes: size(write_cache).max(usual.stream_bytes),
        write_back_age_seconds: memory.write_back_seconds.unwrap_or(usual.write_back_age_seconds),
        name_cache_bytes: chosen(memory.name_cache, usual.name_cache_bytes),
        cached_inodes: match memory.inode_cache {
            Some(count) => count as usize,
            None => fitting(INODES_MAX * INODE_BYTES) / INODE_BYTES,
        },
        device: memory.device,
        ..usual
    }
}

/// The figures of the live line.
struct SessionFigures {
    used: u64,
    total: u64,
    written: u64,
    read: u64,
    dirty: u64,
    moved: Option<u64>,
}

impl SessionFigures {
    fn of(volume: &Volume) -> Self {
        let space = volume.device().space();
        let statistics = volume.files().statistics();
        let counters = volume.device().inspect().map(|inspect| inspect.counters()).unwrap_or_default();
        Self {
            used: space.total.saturating_sub(space.available),
            total: space.total,
            written: statistics.written_bytes,
            read: statistics.read_bytes,
            dirty: statistics.dirty_bytes,
            moved: counters.iter().find(|(name, _)| name == "bytes_moved").map(|(_, value)| *value),
        }
    }

    fn line(&self, before: &Self) -> String {
        let mut line = format!(
            "  {} of {} used | write {}/s | read {}/s | to be written {}",
            human_size(self.used),
            human_size(self.total),
            human_size(self.written.saturating_sub(before.written)),
            human_size(self.read.saturating_sub(before.read)),
            human_size(self.dirty),
        );
        if let (Some(now), Some(before)) = (self.moved, before.moved)
            && now > before
        {
            line.push_str(" | cleaning");
        }
        line
    }
}
