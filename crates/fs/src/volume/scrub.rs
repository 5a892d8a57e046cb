//! Scrubs: everything that is stored is read and verified, damage is repaired where the device can,
//! and told where it cannot.
//!
//! A scrub is a pass of many steps. Between two steps programs are served, and whoever makes the
//! steps can stop: an interrupted pass goes on where it was, after a remount, too, for its position
//! is kept on the volume object (`record`). Nothing is kept by a mount that may not write.
//!
//! Programs reach it through [`SCRUB`], an attribute of the topmost directory that no listing
//! shows. Reading it tells how scrubs stand, in the lines that [`ScrubStatus::parse`] understands;
//! setting it to `begin OWNER`, `resume OWNER`, `step OWNER BYTES` or `stop OWNER` makes a pass,
//! one step after the other. The owner is any number but 0 by which a program is known again.

mod pace;
pub mod record;
pub mod state;
mod step;
pub mod told;

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use crate::volume::VOLUME;
use crate::volume::scrub::record::{FinishedScrub, KEY, ScrubPass, ScrubPhase, ScrubRecord};
use crate::volume::scrub::state::{ScrubOwner, ScrubState};
use crate::volume::scrub::step::Scrubbed;
use crate::volume::scrub::told::ScrubStatus;
use onode_base::ErrorKind;
use onode_object::{Demand, ObjectId, Transaction};
use pace::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// The attribute of the topmost directory that tells of scrubs and makes them.
pub const SCRUB: &str = "onode.scrub";

/// Seconds after which the position is kept again.
const KEEP_SECONDS: i64 = 10;
/// The same in the background, where a pass takes days.
const KEEP_SECONDS_BACKGROUND: i64 = 600;
/// Seconds after which a program that makes no step is taken for gone.
const GONE_SECONDS: i64 = 30;
/// What one step of a program verifies at most.
pub const STEP_BYTES_MAX: u64 = 16 << 20;
/// What programs may read and write between two looks of a volume that is taken for idle.
const IDLE_BYTES: u64 = 1 << 20;

impl FileSystem {
    fn scrubbed(&self) -> Result<Scrubbed<'_>> {
        let why = "the device keeps no checksums of content: there is nothing that a scrub could verify";
        let power = self.device.scrub().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        Ok(Scrubbed { device: self.device.as_ref(), power, is_read_only: self.options.read_only })
    }

    /// The state, with what is kept.
    fn scrub_record<'a>(&self, state: &'a mut ScrubState) -> &'a mut ScrubRecord {
        state.record.get_or_insert_with(|| {
            let kept = self.device.attribute(VOLUME, KEY).ok().flatten();
            kept.and_then(|bytes| ScrubRecord::decode(&bytes)).unwrap_or_default()
        })
    }

    /// How scrubs of the volume stand.
    ///
    /// # Errors
    /// The device's errors.
    pub fn scrub_status(&self) -> Result<ScrubStatus> {
        let total = self.scrubbed().ok().map_or(Ok(0), |scrubbed| scrubbed.total())?;
        let now = self.now().seconds;
        let state = &mut *self.scrub.lock();
        let is_running = state.owner.is_some() && is_there(state, now);
        let unkept = state.unkept.clone();
        let ScrubRecord { last, pass } = self.scrub_record(state).clone();
        Ok(ScrubStatus { pass, is_running, total, last, unkept })
    }

    /// Begins a pass, or goes on with one that was interrupted if that is wanted and there is one.
    ///
    /// # Errors
    /// `Busy` if a program is at one; `NotSupported` if the device verifies nothing.
    pub fn begin_scrub(&self, owner: ScrubOwner, resumes: bool) -> Result<()> {
        let moved = self.scrubbed()?.moved();
        let now = self.now();
        let state = &mut *self.scrub.lock();
        let is_taken = |by: ScrubOwner| ![owner, ScrubOwner::BACKGROUND].contains(&by) && is_there(state, now.seconds);
        if state.owner.is_some_and(is_taken) {
            return Err(Error::new(ErrorKind::Busy, "another program scrubs the volume"));
        }
        let record = self.scrub_record(state);
        if !resumes || record.pass.is_none() {
            record.pass = Some(ScrubPass { started: now, ..ScrubPass::default() });
        }
        (state.owner, state.touched, state.kept) = (Some(owner), now.seconds, now.seconds);
        (state.is_working, state.is_changed, state.moved) = (false, true, Some(moved));
        Ok(())
    }

    /// Makes one step of about `budget` bytes; false at the end of the pass.
    ///
    /// # Errors
    /// `Busy` if somebody else has taken the pass over; the device's errors, if it cannot go on.
    pub fn step_scrub(&self, owner: ScrubOwner, budget: u64) -> Result<bool> {
        let scrubbed = self.scrubbed()?;
        let is_over = || Error::new(ErrorKind::Busy, "another program has taken the scrub over, or it was stopped");
        let mut pass = {
            let state = &mut *self.scrub.lock();
            let pass = state.record.as_ref().and_then(|record| record.pass.clone());
            let pass = pass.filter(|_| state.owner == Some(owner) && !state.is_working).ok_or_else(is_over)?;
            (state.is_working, state.touched) = (true, self.now().seconds);
            pass
        };
        // Without the lock: whoever asks how it stands does not wait for the medium.
        let advanced = scrubbed.advance(&mut pass, budget.clamp(1, STEP_BYTES_MAX));
        let (moved, now) = (scrubbed.moved(), self.now());
        step::as_files(&mut pass.found, |object| self.inodes.file_of(object));
        let (goes_on, keeps) = {
            let state = &mut *self.scrub.lock();
            if state.owner != Some(owner) {
                return Err(is_over());
            }
            (state.is_working, state.touched) = (false, now.seconds);
            pass.found.moved += moved.saturating_sub(state.moved.replace(moved).unwrap_or(moved));
            let is_end = self.heard(advanced)?;
            state.is_changed = true;
            let record = self.scrub_record(state);
            if is_end {
                let ScrubPass { started, found, .. } = pass;
                *record = ScrubRecord { last: Some(FinishedScrub { started, ended: now, found }), pass: None };
                state.owner = None;
            } else {
                record.pass = Some(pass);
            }
            let period = if owner == ScrubOwner::BACKGROUND { KEEP_SECONDS_BACKGROUND } else { KEEP_SECONDS };
            (!is_end, is_end || !(0..period).contains(&(now.seconds - state.kept)))
        };
        if keeps {
            self.keep_scrub();
        }
        Ok(goes_on)
    }

    /// Stops: the pass stays where it is until somebody goes on with it.
    ///
    /// # Errors
    /// `Busy` if somebody else has taken it over.
    pub fn stop_scrub(&self, owner: ScrubOwner) -> Result<()> {
        {
            let state = &mut *self.scrub.lock();
            if state.owner != Some(owner) {
                return Err(Error::new(ErrorKind::Busy, "another program has taken the scrub over"));
            }
            state.owner = None;
        }
        self.keep_scrub();
        Ok(())
    }

    /// Keeps what changed. A volume without room for it has the position in memory only: a scrub is
    /// no reason to fail.
    pub(crate) fn keep_scrub(&self) {
        if self.is_read_only() {
            return;
        }
        let value = {
            let state = &mut *self.scrub.lock();
            if !std::mem::take(&mut state.is_changed) {
                return;
            }
            state.kept = self.now().seconds;
            self.scrub_record(state).encode()
        };
        let demand = Demand { entries: 1, entry_bytes: value.len() as u64, ..Demand::default() };
        let mut transaction = Transaction::new();
        transaction.set_attribute(VOLUME, KEY, value);
        let kept = {
            let files = &mut *self.lock();
            self.leave_room(files, &demand).and_then(|()| self.commit_promised(files, transaction))
        };
        self.scrub.lock().unkept = kept.err().map(|error| error.to_string());
    }

    /// What the owner of a mount calls about once a second if a pass is to take about `period`
    /// seconds: verifies what is due. Programs go before it.
    ///
    /// # Errors
    /// The device's errors, if the pass cannot go on.
    pub fn scrub_in_background(&self, period: u64) -> Result<()> {
        let now = self.now();
        let total = self.scrubbed()?.total()?;
        let statistics = self.statistics();
        let used = statistics.read_bytes.saturating_add(statistics.written_bytes);
        let turn = {
            let state = &mut *self.scrub.lock();
            let is_idle = used.saturating_sub(std::mem::replace(&mut state.used, used)) <= IDLE_BYTES;
            let is_ours = state.owner.is_none_or(|owner| owner == ScrubOwner::BACKGROUND);
            if !is_ours && is_there(state, now.seconds) {
                return Ok(());
            }
            let owner = state.owner;
            let record = self.scrub_record(state);
            match &record.pass {
                None => pace::next_pass(record.last.as_ref(), period, now),
                Some(_) if owner != Some(ScrubOwner::BACKGROUND) => Turn::Begin,
                Some(pass) if pass.phase == ScrubPhase::Moving => Turn::Verify(1),
                Some(pass) => pace::next_turn(pass, total, period, now, is_idle),
            }
        };
        match turn {
            Turn::Wait => Ok(()),
            Turn::Begin => self.begin_scrub(ScrubOwner::BACKGROUND, true),
            Turn::Verify(bytes) => match self.step_scrub(ScrubOwner::BACKGROUND, bytes) {
                // A program was faster.
                Err(error) if error.kind == ErrorKind::Busy => Ok(()),
                stepped => stepped.map(drop),
            },
        }
    }

    /// Files with damage that a scrub found, each with its bytes, for people; `None` if there are
    /// none. Files are named if [`name_damage`](Self::name_damage) has looked them up.
    #[must_use]
    pub fn scrub_damage(&self) -> Option<(Vec<String>, u64)> {
        let state = &mut *self.scrub.lock();
        let record = self.scrub_record(state);
        let passes = record.pass.as_ref().map(|pass| &pass.found);
        let found = [passes, record.last.as_ref().map(|last| &last.found)];
        let found = found.into_iter().flatten().find(|found| found.is_damaged())?.clone();
        let told = found.damaged.iter().map(|range| {
            let name = state.names.get(&range.object);
            let object = ObjectId(range.object);
            let name = name.cloned().unwrap_or_else(|| match (object.in_clone_of(), object.version_of()) {
                (Some((file, _)), _) => format!("inode {} as a clone has it", file.0),
                (None, Some((file, _))) => format!("inode {} as a snapshot has it", file.0),
                (None, None) => format!("inode {}", range.object),
            });
            match range.start == range.end {
                true => name,
                false => format!("{name} bytes {} to {}", range.start, range.end),
            }
        });
        Some((told.collect(), found.more_damaged))
    }

    /// The last scrub that came to its end.
    #[must_use]
    pub fn last_scrub(&self) -> Option<FinishedScrub> {
        self.scrub_record(&mut self.scrub.lock()).last.clone()
    }

    /// Looks up the names of files with damage, as long as `goes_on` says so. It walks over all
    /// names, a directory after the other, so it is nothing for who must not wait.
    pub fn name_damage(&self, goes_on: &dyn Fn() -> bool) {
        let mut wanted: BTreeSet<u64> = {
            let state = &mut *self.scrub.lock();
            let ScrubRecord { last, pass } = self.scrub_record(state).clone();
            let found = [pass.map(|pass| pass.found), last.map(|last| last.found)];
            let ranges = found.into_iter().flatten().flat_map(|found| found.damaged);
            ranges.map(|range| range.object).filter(|object| !state.names.contains_key(object)).collect()
        };
        if wanted.is_empty() {
            return;
        }
        let mut names = BTreeMap::new();
        let mut is_stopped = false;
        // A damaged volume may hide some. Only an error ends the walk.
        let _ = self.walk(b"/", &mut |path, attributes| {
            if wanted.remove(&attributes.inode.0) {
                names.insert(attributes.inode.0, String::from_utf8_lossy(path).escape_debug().to_string());
            }
            is_stopped = !goes_on();
            if is_stopped || wanted.is_empty() { Err(ErrorKind::Busy.into()) } else { Ok(true) }
        });
        if !is_stopped {
            // Nor is anything without a name looked for again.
            names.extend(wanted.into_iter().map(|object| (object, format!("object {object}, which has no name"))));
        }
        self.scrub.lock().names.extend(names);
    }

    /// What the attribute tells.
    pub(crate) fn scrub_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        if number != InodeNumber::ROOT {
            return Err(ErrorKind::NoAttribute.into());
        }
        Ok(self.scrub_status()?.to_text().into_bytes())
    }

    /// Does what the setting of the attribute asks for.
    pub(crate) fn set_scrub_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        let refused = |kind, why: &str| Err(Error::of(kind, number, why));
        if number != InodeNumber::ROOT {
            return refused(ErrorKind::NotPermitted, "only the topmost directory has it");
        }
        // It costs everybody time.
        self.check_owner(caller, number)?;
        let words: Vec<&str> = str::from_utf8(value).unwrap_or_default().split_whitespace().collect();
        let owner = words.get(1).and_then(|word| word.parse().ok()).filter(|owner| *owner > 0).map(ScrubOwner);
        let bytes = words.get(2).and_then(|word| word.parse().ok());
        match (words.first().copied(), owner, bytes) {
            (Some("begin"), Some(owner), None) => self.begin_scrub(owner, false),
            (Some("resume"), Some(owner), None) => self.begin_scrub(owner, true),
            (Some("step"), Some(owner), Some(bytes)) => self.step_scrub(owner, bytes).map(drop),
            (Some("stop"), Some(owner), None) => self.stop_scrub(owner),
            _ => {
                let why = "it is none of begin OWNER, resume OWNER, step OWNER BYTES, stop OWNER";
                refused(ErrorKind::Invalid, why)
            }
        }
    }
}

/// Whether whoever is at a scrub is still there.
const fn is_there(state: &ScrubState, now: i64) -> bool {
    let since = now.saturating_sub(state.touched);
    state.is_working || (since >= 0 && since < GONE_SECONDS)
}
