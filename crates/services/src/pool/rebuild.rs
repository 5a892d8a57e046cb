//! Rebuilding: members that lack something get it, a step at a time, while the pool is used.

use crate::pool::Pool;
use crate::pool::copy::{CopyFailure, CopyJob, Progress};
use crate::pool::record::PoolRecord;
use crate::pool::standing::{MemberStanding, Verdict};
use onode_object::{Error, ErrorKind, Maintenance, ObjectDevice, ObjectId, Result, SyncScope};

impl<D: ObjectDevice> Pool<D> {
    /// As [`maintain`](ObjectDevice::maintain): first of the pool, then of each member.
    pub(super) fn tend(&self, budget: u32) -> Result<Maintenance> {
        let mut all = Maintenance::default();
        if !self.is_read_only {
            self.look_after_members()?;
            while all.done < budget && self.rebuild_step()? {
                all.done += 1;
            }
            all.more = self.has_work();
        }
        let done = self.tend_members(|device| device.maintain(budget - all.done.min(budget)))?;
        Ok(Maintenance { done: all.done.saturating_add(done.done), more: all.more | done.more })
    }

    /// As [`rearrange`](ObjectDevice::rearrange), of each member.
    pub(super) fn rearrange_members(&self, budget: u32) -> Result<Maintenance> {
        self.tend_members(|device| device.rearrange(budget))
    }

    fn tend_members(&self, tend: impl Fn(&D) -> Result<Maintenance>) -> Result<Maintenance> {
        let (mut all, mut failed) = (Maintenance::default(), Vec::new());
        for (index, _) in self.order() {
            match tend(&self.members[index].device) {
                Ok(Maintenance { done, more }) => {
                    all.done = all.done.saturating_add(done);
                    all.more |= more;
                }
                Err(error) => failed.push((index, error)),
            }
        }
        if !failed.is_empty() {
            let mut record = self.record.lock();
            self.leave_out_all(&mut record, &failed)?;
        }
        Ok(all)
    }

    /// Leaves out members that were found not to work.
    fn leave_out_all(&self, record: &mut PoolRecord, failed: &[(usize, Error)]) -> Result<()> {
        record.check()?;
        let mut is_other = false;
        for (index, error) in failed {
            is_other |= self.leave_out(record, *index, error)?;
        }
        if is_other { self.record_standings(record) } else { Ok(()) }
    }

    /// Members that say themselves that they take no changes any more are left out, and what reads
    /// found damaged is to be made equal.
    fn look_after_members(&self) -> Result<()> {
        let mut record = self.record.lock();
        if record.broken.is_some() {
            return Ok(());
        }
        let latched = |(index, _): (usize, bool)| {
            let why = self.members[index].device.info().read_only?;
            Some((index, Error::new(ErrorKind::ReadOnly, why)))
        };
        let failed: Vec<_> = self.order().into_iter().filter_map(latched).collect();
        self.leave_out_all(&mut record, &failed)?;
        let (mut is_other, mut hopeless) = (false, Vec::new());
        {
            let mut standings = self.standings.lock();
            let repairs = std::mem::take(&mut standings.repairs);
            for (index, object) in repairs {
                // Where nobody else has it, nothing can be mended with.
                let others = (0..self.members.len()).filter(|other| *other != index);
                let has_other = others.into_iter().any(|other| standings.members[other].has(object));
                let is_last = standings.members[index].is_whole()
                    && standings.members.iter().filter(|standing| standing.is_whole()).count() == 1;
                if !has_other || is_last || !standings.members[index].has(object) {
                    continue;
                }
                if !standings.mended.insert((index, object)) {
                    let why = format!("{object} was written to it anew and is damaged again");
                    hopeless.push((index, Error::new(ErrorKind::Media, why)));
                    continue;
                }
                standings.members[index].lose(&[object].into(), "something on it was damaged");
                is_other = true;
            }
            // What could not be done is tried again after something changed.
            if record.tried != record.ring.last() {
                for standing in &mut standings.members {
                    if let MemberStanding::Behind(lag) = standing {
                        lag.listed.append(&mut lag.stuck);
                    }
                }
            }
        }
        self.leave_out_all(&mut record, &hopeless)?;
        if is_other { self.record_standings(&mut record) } else { Ok(()) }
    }

    /// Whether a step would do anything.
    pub(super) fn has_work(&self) -> bool {
        let standings = self.standings.lock();
        !standings.repairs.is_empty()
            || standings.members.iter().any(
                |standing| matches!(standing, MemberStanding::Behind(lag) if !lag.is_idle() || lag.stuck.is_empty()),
            )
    }

    /// Does one step of making a member equal to the others; whether there was anything to do.
    ///
    /// # Errors
    /// If nobody is left who has everything.
    pub(super) fn rebuild_step(&self) -> Result<bool> {
        let mut record = self.record.lock();
        if record.broken.is_some() {
            return Ok(false);
        }
        let job = match record.job.take() {
            Some(job) => Some(job),
            None => match self.next_job() {
                Ok(job) => job,
                // What there is must be known on both sides before anything counts as equal.
                Err((index, error)) if Verdict::of(error.kind) == Verdict::Failed => {
                    if self.leave_out(&mut record, index, &error)? {
                        self.record_standings(&mut record)?;
                    }
                    return Ok(true);
                }
                Err((_, error)) => return Err(error),
            },
        };
        let Some(mut job) = job else { return self.finish_one(&mut record) };
        let mut figures = record.figures;
        let result = job.step(self, &mut figures);
        record.figures = figures;
        match result {
            Ok(Progress::More) => record.job = Some(job),
            Ok(Progress::Equal) => {
                record.figures.objects += 1;
                self.conclude(job, None);
            }
            // It was removed meanwhile.
            Err(CopyFailure::Source(error)) if error.kind == ErrorKind::NotFound => {
                record.job = Some(CopyJob::new(job.member, job.object));
            }
            Err(CopyFailure::Source(error)) => {
                record.tried = record.ring.last();
                self.conclude(job, Some(format!("{}: nobody can give it: {error}", job.object)));
            }
            Err(CopyFailure::Target(error)) if Verdict::of(error.kind) == Verdict::Failed => {
                if self.leave_out(&mut record, job.member, &error)? {
                    self.record_standings(&mut record)?;
                }
            }
            Err(CopyFailure::Target(error)) => {
                record.tried = record.ring.last();
                self.conclude(job, Some(format!("{}: it does not take it: {error}", job.object)));
            }
        }
        Ok(true)
    }

    /// What is to be made equal next.
    ///
    /// # Errors
    /// The member that could not say what it has, and why.
    fn next_job(&self) -> std::result::Result<Option<CopyJob>, (usize, Error)> {
        for index in 0..self.members.len() {
            let (listed, rest_from) = {
                let standings = self.standings.lock();
                let MemberStanding::Behind(lag) = &standings.members[index] else { continue };
                (lag.listed.first().copied(), lag.rest_from)
            };
            let object = match (listed, rest_from) {
                (Some(object), _) => Some(object),
                (None, Some(from)) => self.next_of_all(index, from)?,
                (None, None) => continue,
            };
            let mut standings = self.standings.lock();
            let MemberStanding::Behind(lag) = &mut standings.members[index] else { continue };
            if listed.is_none() {
                lag.rest_from = object;
            }
            if let Some(object) = object {
                lag.listed.remove(&object);
                lag.current = Some(object);
                return Ok(Some(CopyJob::new(index, object)));
            }
        }
        Ok(None)
    }

    /// The next object of those that are compared one after another, on either side.
    fn next_of_all(&self, index: usize, from: ObjectId) -> std::result::Result<Option<ObjectId>, (usize, Error)> {
        let next = |from| {
            let whole = self.order().first().map_or(index, |(first, _)| *first);
            let mine = self.members[index].device.list(from, 1).map_err(|error| (index, error))?;
            let theirs = self.list_whole(from, 1).map_err(|error| (whole, error))?;
            Ok(mine.into_iter().chain(theirs).min())
        };
        match next(from)? {
            Some(ObjectId::POOL) => next(ObjectId(ObjectId::POOL.0 + 1)),
            other => Ok(other),
        }
    }

    /// The object is equal, or could not be made so because of this.
    fn conclude(&self, job: CopyJob, stuck: Option<String>) {
        let mut standings = self.standings.lock();
        if let MemberStanding::Behind(lag) = &mut standings.members[job.member] {
            lag.current = None;
            if lag.rest_from == Some(job.object) {
                lag.rest_from = Some(ObjectId(job.object.0 + 1));
            }
            if let Some(why) = stuck {
                lag.stuck.insert(job.object);
                lag.why = why;
            }
        }
    }

    /// A member that lacks nothing any more has everything from now on.
    fn finish_one(&self, record: &mut PoolRecord) -> Result<bool> {
        let ready = {
            let standings = self.standings.lock();
            standings.members.iter().position(
                |standing| matches!(standing, MemberStanding::Behind(lag) if lag.is_idle() && lag.stuck.is_empty()),
            )
        };
        let Some(index) = ready else { return Ok(false) };
        // Before the others say that it has everything.
        if let Err(error) = self.members[index].device.sync(SyncScope::All) {
            if self.leave_out(record, index, &error)? {
                self.record_standings(record)?;
            }
            return Ok(true);
        }
        {
            let mut standings = self.standings.lock();
            standings.members[index] = MemberStanding::Whole;
            standings.rebuilt.insert(index);
        }
        self.record_standings(record)?;
        Ok(true)
    }

    /// Ids of objects as a member has them that has everything.
    pub(super) fn list_whole(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut first = None;
        for (index, _) in self.order().into_iter().filter(|(_, is_whole)| *is_whole) {
            match self.members[index].device.list(from, limit) {
                Ok(list) => return Ok(list),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| Error::new(ErrorKind::Media, "no member of the pool has everything")))
    }
}
