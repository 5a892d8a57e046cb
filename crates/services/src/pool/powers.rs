//! What a pool tells of itself: its health, its counters, and what a scrub of all members finds.

use crate::pool::Pool;
use crate::pool::members::{PoolMemberState, PoolMemberStatus};
use onode_object::powers::{Inspect, Inspection, Scrub, ScrubPart, ScrubReport, SegmentInfo};
use onode_object::{
    AttributeKey, AttributeKind, Condition, Error, ErrorKind, Health, ObjectDevice, ObjectId, Result, Severity,
};

/// Bytes that a scrub reads at once.
const SCRUB_BYTES: usize = 256 << 10;
const ATTRIBUTES: usize = 64;
const BLOCK_BYTES: u64 = 4096;

impl<D: ObjectDevice> Pool<D> {
    /// As [`health`](ObjectDevice::health).
    pub(super) fn conditions(&self) -> Health {
        let mut conditions = Vec::new();
        if let Some(why) = &self.record.lock().broken {
            let remedy = "unmount it, and mount it with the members that work";
            conditions.push(Condition::new("pool-broken", Severity::Failed, why.clone()).remedy(remedy));
        }
        for member in self.status() {
            conditions.extend(condition_of(&member));
        }
        let (around, rebuilt) = {
            let standings = self.standings.lock();
            (standings.read_around.clone(), standings.rebuilt.clone())
        };
        for (index, count) in around.iter().enumerate().filter(|(_, count)| **count > 0) {
            let text = format!("{} could not give what another member had, {count} times", self.name(index));
            let remedy = "it was read from the other one and is written to this one again; if that goes on, replace it";
            conditions.push(Condition::new("pool-read-around", Severity::Notice, text).remedy(remedy));
        }
        for index in rebuilt {
            let text = format!("{} lacked something and has everything again", self.name(index));
            conditions.push(Condition::new("pool-rebuilt", Severity::Notice, text));
        }
        for (index, member) in self.members.iter().enumerate() {
            let of_member = |mut condition: Condition| {
                condition.text = format!("{}: {}", self.name(index), condition.text);
                // All data is there as long as another member has it.
                condition.severity = condition.severity.min(Severity::Degraded);
                condition
            };
            conditions.extend(member.device.health().conditions.into_iter().map(of_member));
        }
        Health::new(conditions)
    }
}

/// What is wrong with a member, if anything is.
fn condition_of(member: &PoolMemberStatus) -> Option<Condition> {
    let PoolMemberStatus { number, name, state } = member;
    let who = if name.is_empty() { format!("member {number}") } else { format!("member {number} ({name})") };
    match state {
        PoolMemberState::Whole => None,
        PoolMemberState::Away { why } => {
            let text = format!("{who} does not take part: {why}");
            let remedy = "mount the pool with it again, which gives it what changed; or `onode pool remove` it and \
                          `onode pool add` another one";
            Some(Condition::new("pool-member-away", Severity::Degraded, text).remedy(remedy))
        }
        PoolMemberState::Behind { objects, compares_all, stuck, why } => {
            let left = match (compares_all, objects) {
                (true, _) => "all objects are compared".to_owned(),
                (false, 1) => "1 object is left to compare".to_owned(),
                (false, objects) => format!("{objects} objects are left to compare"),
            };
            if *stuck > 0 && *objects == 0 && !compares_all {
                let text = format!("{who} cannot get {stuck} objects: {why}");
                let remedy = "make room if it is full, or replace it";
                return Some(Condition::new("pool-member-stuck", Severity::Degraded, text).remedy(remedy));
            }
            let text = format!("{who} is being rebuilt, {left}: {why}");
            Some(Condition::new("pool-rebuilding", Severity::Degraded, text))
        }
    }
}

impl<D: ObjectDevice> Inspect for Pool<D> {
    /// Those of the pool, then those of each member.
    fn counters(&self) -> Vec<(String, u64)> {
        let figures = self.record.lock().figures;
        let around: u64 = self.standings.lock().read_around.iter().sum();
        let own = [
            ("pool reads around a member", around),
            ("pool objects made equal", figures.objects),
            ("pool bytes compared", figures.compared_bytes),
            ("pool bytes copied", figures.copied_bytes),
        ];
        let mut all: Vec<_> = own.map(|(name, value)| (name.to_owned(), value)).into();
        for member in &self.members {
            let counters = member.device.inspect().map(Inspect::counters).unwrap_or_default();
            all.extend(counters.into_iter().map(|(name, value)| (format!("member {}: {name}", member.number), value)));
        }
        all
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn inspection(&self) -> Inspection {
        Inspection::default()
    }
}

impl<D: ObjectDevice> Scrub for Pool<D> {
    /// Reads every object from every member that has it and compares them. What one member cannot
    /// give is written to it again.
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let objects = self.list(from, limit)?;
        // Fewer than were asked for may come although there are more.
        if let Some(last) = objects.last() {
            report.next = self.list(ObjectId(last.0 + 1), 1)?.first().copied();
        }
        self.scrub_all(&objects, &mut report)?;
        Ok(report)
    }

    /// Verifies the whole object at once: members are compared by what each says of all of it.
    fn scrub_part(&self, object: ObjectId, _from: u64, _limit: u64) -> Result<Option<ScrubPart>> {
        match self.stat(object) {
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
            // Whatever else is wrong with it is what the scrub finds.
            _ => {}
        }
        let mut found = ScrubReport::default();
        self.scrub_all(&[object], &mut found)?;
        Ok(Some(ScrubPart { found, next: None }))
    }
}

impl<D: ObjectDevice> Pool<D> {
    /// Verifies objects and has members get what they could not give.
    fn scrub_all(&self, objects: &[ObjectId], report: &mut ScrubReport) -> Result<()> {
        let before = self.record.lock().figures.copied_bytes;
        for object in objects {
            self.scrub_object(*object, report);
            report.objects += 1;
        }
        let is_found = !self.standings.lock().repairs.is_empty();
        if is_found && !self.is_read_only {
            while self.tend(1)?.done > 0 && self.has_work() {}
        }
        report.repaired = self.record.lock().figures.copied_bytes - before;
        Ok(())
    }
}

impl<D: ObjectDevice> Pool<D> {
    fn scrub_object(&self, object: ObjectId, report: &mut ScrubReport) {
        let _content = self.content_of(object).read();
        let mut answers = Vec::new();
        let mut failures = Vec::new();
        for (index, _) in self.order() {
            if self.standings.lock().members[index].has(object) {
                match self.digest(index, object) {
                    Ok(digest) => answers.push((index, digest)),
                    Err(error) => failures.push((index, error)),
                }
            }
        }
        let sound = answers.first().map(|(_, digest)| *digest);
        let Some(sound) = sound else {
            // Not all may be gone: each piece from whom has it.
            report.damaged.extend(failures.into_iter().map(|(_, error)| error).next());
            return;
        };
        report.bytes += sound.bytes * answers.len() as u64;
        for (index, _) in answers.iter().filter(|(_, digest)| *digest != sound) {
            let detail = format!("{} and {} differ, and neither knows it", self.name(answers[0].0), self.name(*index));
            report.damaged.push(Error::of(ErrorKind::Corrupt, object, detail));
        }
        if self.is_read_only {
            // Nobody mends it, so it has to be told.
            report.damaged.extend(failures.iter().map(|(index, error)| {
                let mut told = error.clone();
                told.detail = format!("{} cannot give it, and others can: {}", self.name(*index), error.detail);
                told
            }));
        }
        self.note_damage(object, &failures);
    }

    /// What a member says of an object, in short.
    fn digest(&self, index: usize, object: ObjectId) -> Result<ObjectDigest> {
        let device = &self.members[index].device;
        let stat = device.stat(object)?;
        let mut digest = ObjectDigest { size: stat.size, bytes: 0, sum: 0 };
        let mut from = Some(AttributeKey::new(AttributeKind(0), 0));
        while let Some(start) = from {
            let some = device.attributes(object, start, ATTRIBUTES)?;
            from = some.last().and_then(|(key, _)| key.next());
            for (key, value) in some {
                digest.add(key.index ^ u64::from(key.kind.0), &value);
            }
        }
        // Devices divide content as they like: what is summed are whole blocks that are not zeros.
        let (mut offset, mut buffer) = (0, vec![0; SCRUB_BYTES]);
        while let Some((start, length)) = device.extents(object, offset, 1)?.first().copied() {
            let end = (start + length).next_multiple_of(BLOCK_BYTES).min(stat.size.max(1));
            offset = offset.max(start / BLOCK_BYTES * BLOCK_BYTES);
            while offset < end {
                let wanted = ((end - offset) as usize).min(SCRUB_BYTES);
                let count = device.read(object, offset, &mut buffer[..wanted])?;
                for (number, block) in (0..).zip(buffer[..count].chunks(BLOCK_BYTES as usize)) {
                    if block.iter().any(|byte| *byte != 0) {
                        digest.add(offset + number * BLOCK_BYTES, block);
                        digest.bytes += block.len() as u64;
                    }
                }
                offset += wanted as u64;
            }
        }
        Ok(digest)
    }
}

/// What an object is, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectDigest {
    size: u64,
    bytes: u64,
    sum: u32,
}

impl ObjectDigest {
    fn add(&mut self, place: u64, bytes: &[u8]) {
        let sum = onode_base::checksum::crc32c_append(self.sum, &place.to_le_bytes());
        self.sum = onode_base::checksum::crc32c_append(sum, bytes);
    }
}
