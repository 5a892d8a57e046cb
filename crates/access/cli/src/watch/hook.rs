//! The program that is run when something is wrong with a mount.
//!
//! It never holds up the mount: it runs beside it, a few at most at a time, and is ended when it
//! takes too long.

use onode::{Condition, Severity};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long it may run.
const TIME: Duration = Duration::from_secs(60);
/// How many may run at a time; what is more is logged only.
const RUNNING_MAX: usize = 4;
/// How long the end of a mount waits for it.
const LAST_TIME: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// A hook and what runs of it.
#[derive(Debug)]
pub struct Hook {
    program: PathBuf,
    mount: String,
    volume: String,
    running: Vec<(Child, Duration)>,
}

impl Hook {
    /// The hook of the mount of `volume` at `mount`.
    pub fn new(program: PathBuf, mount: String, volume: String) -> Self {
        Self { program, mount, volume, running: Vec::new() }
    }

    /// Runs it for a condition that somebody has to look at.
    pub fn tell(&mut self, condition: &Condition) {
        if condition.severity < Severity::Degraded {
            return;
        }
        let program = self.program.display().to_string();
        if self.running.len() >= RUNNING_MAX {
            tracing::warn!("the hook {program} was not run for `{}`: {RUNNING_MAX} of it run already", condition.code);
            return;
        }
        let started = Command::new(&self.program)
            .env("ONODE_CODE", &*condition.code)
            .env("ONODE_SEVERITY", condition.severity.name())
            .env("ONODE_TEXT", without_zeros(&condition.text))
            .env("ONODE_REMEDY", without_zeros(&condition.remedy))
            .env("ONODE_MOUNT", &self.mount)
            .env("ONODE_VOLUME", &self.volume)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match started {
            Ok(child) => {
                tracing::debug!("the hook {program} runs for `{}` as process {}", condition.code, child.id());
                self.running.push((child, Duration::ZERO));
            }
            Err(error) => tracing::warn!("the hook {program} cannot be run: {error}"),
        }
    }

    /// Looks after what runs; `passed` is the time since the last look.
    pub fn tend(&mut self, passed: Duration) {
        let program = self.program.display().to_string();
        self.running.retain_mut(|(child, age)| {
            *age += passed;
            match child.try_wait() {
                Ok(None) if *age < TIME => return true,
                Ok(None) => {
                    end(child);
                    tracing::warn!("the hook {program} was ended: it ran for longer than {} seconds", TIME.as_secs());
                }
                Ok(Some(status)) if !status.success() => tracing::warn!("the hook {program} failed: {status}"),
                Ok(Some(_)) => tracing::debug!("the hook {program} of process {} is done", child.id()),
                Err(error) => tracing::warn!("the hook {program} is out of sight: {error}"),
            }
            false
        });
    }

    /// Waits for what still runs, but not for long.
    pub fn finish(mut self) {
        let mut waited = Duration::ZERO;
        while !self.running.is_empty() && waited < LAST_TIME {
            std::thread::sleep(POLL);
            waited += POLL;
            self.tend(POLL);
        }
    }
}

/// Ends a program with all that it started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // If it ended just now, there is nothing to end.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    let _ = child.wait();
}

/// An environment cannot hold a zero.
fn without_zeros(text: &str) -> String {
    text.replace('\0', " ")
}
