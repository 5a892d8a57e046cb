//! Reading: from any member that has the object, and around one that cannot give it.
//!
//! Which member is asked first follows from the object's number, so that reads are spread and the
//! same call has the same answer each time. What a member could not give although another one had
//! it is noted, and written to it again by `maintain`.

use crate::pool::Pool;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId, Result};

/// The least piece that is read alone to get around damage.
pub(super) const PIECE_BYTES: u64 = 4096;

impl<D: ObjectDevice> Pool<D> {
    /// Asks members that have the object, one after another, until one answers.
    pub(super) fn ask<T>(&self, object: ObjectId, look: impl FnMut(&D) -> Result<T>) -> Result<T> {
        let _content = self.content_of(object).read();
        self.ask_unlocked(object, look)
    }

    /// The same for who has seen to it that nobody changes the object.
    pub(super) fn ask_unlocked<T>(&self, object: ObjectId, mut look: impl FnMut(&D) -> Result<T>) -> Result<T> {
        let candidates = self.holders(object);
        let mut failures: Vec<(usize, Error)> = Vec::new();
        for index in candidates {
            match look(&self.members[index].device) {
                Ok(answer) => {
                    if !failures.is_empty() {
                        self.note_damage(object, &failures);
                    }
                    return Ok(answer);
                }
                Err(error) if error.kind == ErrorKind::Invalid || is_planted(Bug::PoolDamageTold) => return Err(error),
                Err(error) => failures.push((index, error)),
            }
        }
        // That it is not there is believed if nobody says anything else.
        let told = failures.iter().position(|(_, error)| error.kind != ErrorKind::NotFound).unwrap_or(0);
        match failures.into_iter().nth(told) {
            Some((_, error)) => Err(error),
            None => Err(Error::of(ErrorKind::Media, object, "no member of the pool has it")),
        }
    }

    /// Members that have the object as it is, the one that is asked first in front.
    pub(super) fn holders(&self, object: ObjectId) -> Vec<usize> {
        let standings = self.standings.lock();
        let believes_all = is_planted(Bug::PoolLagBelieved);
        let mut all: Vec<usize> = (0..self.members.len())
            .filter(|index| {
                let standing = &standings.members[*index];
                standing.has(object) || believes_all && !standing.is_out()
            })
            .collect();
        drop(standings);
        if !all.is_empty() {
            let first = (object.0 % all.len() as u64) as usize;
            all.rotate_left(first);
        }
        all
    }

    /// Notes what members could not give.
    pub(super) fn note_damage(&self, object: ObjectId, failures: &[(usize, Error)]) {
        let mut standings = self.standings.lock();
        for (index, _) in failures {
            standings.read_around[*index] += 1;
            standings.repairs.insert((*index, object));
        }
    }

    /// As [`read`](ObjectDevice::read): whole if one member can give it, else piece by piece, each
    /// from the member that has it sound.
    pub(super) fn read_around(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let whole = self.ask(object, |device| device.read(object, offset, buffer));
        match whole {
            Err(error) if is_damage(error.kind) && buffer.len() as u64 > PIECE_BYTES && self.members.len() > 1 => {
                let half = (buffer.len() as u64 / 2).next_multiple_of(PIECE_BYTES).min(buffer.len() as u64);
                // Pieces begin where blocks do.
                let middle = ((offset + half) / PIECE_BYTES * PIECE_BYTES).max(offset + 1) - offset;
                let (first, second) = buffer.split_at_mut((middle as usize).min(half as usize));
                if second.is_empty() {
                    return Err(error);
                }
                let count = self.read_around(object, offset, first)?;
                if count < first.len() {
                    return Ok(count);
                }
                Ok(count + self.read_around(object, offset + count as u64, second)?)
            }
            other => other,
        }
    }
}

pub(super) const fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Media)
}
