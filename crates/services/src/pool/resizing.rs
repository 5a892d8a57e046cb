//! A pool that becomes larger or smaller: all its members do.
//!
//! Every member has everything, so a pool is as large as its smallest member. It grows when all
//! that have less have more, and shrinks when all that have more have less. Members do so one after
//! another, each by itself: after a crash or a failure some may have the new size already, which
//! takes nothing away, and the same call goes on from there.

use crate::pool::Pool;
use crate::pool::members::PoolMemberState;
use onode_object::powers::{Extent, Resize};
use onode_object::{Error, ErrorKind, ObjectDevice, Result};

/// A member and what it has.
type Measured<'a> = (usize, &'a dyn Resize, Extent);

impl<D: ObjectDevice> Pool<D> {
    /// Whether every member can have another size.
    pub(super) fn can_be_resized(&self) -> bool {
        self.members.iter().all(|member| member.device.resizing().is_some())
    }

    /// All members, which have to take part and to have everything.
    fn sizes(&self) -> Result<Vec<Measured<'_>>> {
        if self.is_read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "the pool was opened so that nothing changes"));
        }
        // Those that are away have their size when they come back.
        if let Some(lacking) = self.status().iter().find(|member| member.state != PoolMemberState::Whole) {
            let why = format!("member {} does not have everything, so none gets another size", lacking.number);
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let all = self.members.iter().enumerate();
        let sized = all.filter_map(|(index, member)| Some((index, member.device.resizing()?)));
        sized.map(|(index, device)| Ok((index, device, self.of_member(index, device.extent())?))).collect()
    }

    fn of_member<T>(&self, index: usize, done: Result<T>) -> Result<T> {
        done.map_err(|error| Error::new(error.kind, format!("{}: {}", self.name(index), error.detail)))
    }
}

impl<D: ObjectDevice> Resize for Pool<D> {
    fn extent(&self) -> Result<Extent> {
        let extents: Vec<Extent> = self
            .members
            .iter()
            .filter_map(|member| member.device.resizing())
            .map(Resize::extent)
            .collect::<Result<_>>()?;
        Ok(together(&extents))
    }

    fn grow(&self, bytes: u64) -> Result<()> {
        self.stop_shrinking()?;
        let smaller: Vec<Measured<'_>> =
            self.sizes()?.into_iter().filter(|(_, _, extent)| extent.bytes < bytes).collect();
        if smaller.is_empty() {
            let why = format!("{bytes} bytes are no more than each member has");
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        // Before any of them has changed.
        for (index, _, extent) in &smaller {
            if bytes < extent.least {
                let why = format!("{}: {bytes} bytes are too few more, {} are needed", self.name(*index), extent.least);
                return Err(Error::new(ErrorKind::Invalid, why));
            }
        }
        smaller.into_iter().try_for_each(|(index, device, _)| self.of_member(index, device.grow(bytes)))
    }

    fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        let larger = |(_, _, extent): &Measured<'_>| extent.bytes > bytes;
        for (index, device, _) in self.sizes()?.into_iter().filter(larger) {
            if let Err(error) = self.of_member(index, device.begin_shrinking(bytes)) {
                self.stop_shrinking()?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn shrink_some(&self) -> Result<bool> {
        let mut is_done = true;
        for (index, device, _) in self.sizes()? {
            match self.of_member(index, device.shrink_some()) {
                Ok(member_is_done) => is_done &= member_is_done,
                Err(error) => {
                    self.stop_shrinking()?;
                    return Err(error);
                }
            }
        }
        Ok(is_done)
    }

    fn stop_shrinking(&self) -> Result<()> {
        let devices = self.members.iter().filter_map(|member| member.device.resizing());
        let mut stopped = Ok(());
        for device in devices {
            // All of them, whatever one says.
            stopped = stopped.and(device.stop_shrinking());
        }
        stopped
    }
}

/// What a pool has whose members have these.
fn together(extents: &[Extent]) -> Extent {
    let bytes = extents.iter().map(|one| one.bytes).min().unwrap_or(0);
    let unit = extents.iter().map(|one| one.unit).fold(1, least_common_multiple);
    let can_shrink = extents.iter().all(|one| one.fewest < one.bytes);
    let fewest = extents.iter().map(|one| one.fewest).max().unwrap_or(0);
    // More for those that have the least may be too little more for the next one.
    let mut by_size: Vec<&Extent> = extents.iter().collect();
    by_size.sort_by_key(|one| one.bytes);
    let least =
        by_size.iter().fold(0, |least, one| if one.bytes < least || least == 0 { least.max(one.least) } else { least });
    Extent {
        bytes,
        most: extents.iter().map(|one| one.most).min().unwrap_or(0).max(bytes),
        least,
        unit,
        fewest: if can_shrink { fewest.next_multiple_of(unit).min(bytes) } else { bytes },
        moving: extents.iter().map(|one| one.moving).sum(),
    }
}

fn least_common_multiple(one: u64, other: u64) -> u64 {
    let (mut divisor, mut rest) = (one.max(1), other.max(1));
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one.max(1) / divisor).saturating_mul(other.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(bytes: u64, fewest: u64, unit: u64) -> Extent {
        Extent { bytes, most: 8 * bytes, least: bytes + 3 * unit, unit, fewest, moving: unit }
    }

    #[test]
    fn a_pool_is_as_large_as_its_smallest_member() {
        let (one, other) = (extent(64 * MIB, 20 * MIB, 256 << 10), extent(96 * MIB, 30 * MIB, 4096));
        let both = together(&[one, other]);
        assert_eq!((both.bytes, both.most, both.unit), (64 * MIB, 8 * 64 * MIB, 256 << 10));
        assert_eq!((both.least, both.fewest, both.moving), (one.least, 30 * MIB, (256 << 10) + 4096));
        // Who is only a little larger has to grow as well.
        let close = extent(64 * MIB + 4096, MIB, MIB);
        assert_eq!(together(&[one, close]).least, close.least);
        // With one that cannot shrink nor can the pool.
        assert_eq!(together(&[one, extent(96 * MIB, 96 * MIB, 4096)]).fewest, 64 * MIB);
        assert_eq!(together(&[extent(64 * MIB, 20 * MIB, 12), extent(64 * MIB, MIB, 18)]).unit, 36);
    }
}
