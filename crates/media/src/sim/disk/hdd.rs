//! The time of a hard disk: seek, rotation, transfer.
//!
//! One request at a time, in the order of their arrival. A read that continues the last one finds
//! its bytes read ahead; a write that continues the last one while that is still under way loses no
//! turn. A synced append therefore loses one turn each, which is the figure that logs on such disks
//! live with. Nothing is reordered.
//!
//! [`HddOptions::seagate_750`] is the disk of paper 4, Table 1 (Seagate ST3750330AS); what its
//! sheet does not say is that of its class (`research/hybrid-peers.md`, section 3.1).

use super::model::DiskModel;

const SECTOR: u64 = 512;
const ZONES: u64 = 20;
const MILLISECOND: u64 = 1_000_000;

/// The shape and speed of a hard disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HddOptions {
    /// Sectors of 512 bytes in all. A simulated disk that is smaller is the outer part of this one.
    pub sectors: u64,
    /// Nanoseconds of a turn.
    pub turn_nanoseconds: u64,
    /// Surfaces.
    pub heads: u64,
    /// Sectors of an outermost track.
    pub outer_sectors: u64,
    /// Sectors of an innermost track.
    pub inner_sectors: u64,
    /// Nanoseconds of the shortest seek that do not depend on its length.
    pub seek_base_nanoseconds: u64,
    /// Nanoseconds times the root of the cylinders that a seek crosses, up to a third of all; a
    /// line from there on.
    pub seek_root_nanoseconds: u64,
    /// Nanoseconds that a write waits longer after a seek.
    pub write_settle_nanoseconds: u64,
    /// Nanoseconds to another surface or to the next cylinder.
    pub head_switch_nanoseconds: u64,
    /// Nanoseconds of a command.
    pub command_nanoseconds: u64,
}

impl HddOptions {
    /// 750 GB, 7,200 turns a minute, 8.5 ms mean seek, 105 MB/s at its outer edge.
    #[must_use]
    pub const fn seagate_750() -> Self {
        Self {
            sectors: 1_465_149_168,
            turn_nanoseconds: 8_333_333,
            heads: 6,
            outer_sectors: 1900,
            inner_sectors: 900,
            seek_base_nanoseconds: 766_000,
            seek_root_nanoseconds: 33_830,
            write_settle_nanoseconds: MILLISECOND,
            head_switch_nanoseconds: 900_000,
            command_nanoseconds: 100_000,
        }
    }
}

/// Where a sector lies.
#[derive(Clone, Copy)]
struct Position {
    cylinder: u64,
    /// Tracks before its own, over all surfaces.
    track: u64,
    /// Its number within the track.
    index: u64,
    /// Sectors of its track.
    of: u64,
}

/// The state of a hard disk.
#[derive(Clone, Debug)]
pub struct Hdd {
    options: HddOptions,
    cylinders_per_zone: u64,
    cylinder: u64,
    busy_until: u64,
    /// The byte after the last request, and whether that was a write.
    last: Option<(u64, bool)>,
    seeks: u64,
    lost_turns: u64,
}

impl Hdd {
    /// A disk at rest over its outermost cylinder.
    #[must_use]
    pub fn new(options: HddOptions) -> Self {
        let per_cylinder = options.heads * (options.outer_sectors + options.inner_sectors) / 2;
        let cylinders = options.sectors.div_ceil(per_cylinder.max(1));
        let cylinders_per_zone = cylinders.div_ceil(ZONES).max(1);
        Self { options, cylinders_per_zone, cylinder: 0, busy_until: 0, last: None, seeks: 0, lost_turns: 0 }
    }

    fn sectors_of_zone(&self, zone: u64) -> u64 {
        let options = &self.options;
        let fall = options.outer_sectors.saturating_sub(options.inner_sectors);
        options.outer_sectors - fall * zone.min(ZONES - 1) / (ZONES - 1)
    }

    fn position(&self, sector: u64) -> Position {
        let (mut zone, mut rest) = (0, sector);
        loop {
            let of = self.sectors_of_zone(zone);
            let all = of * self.options.heads * self.cylinders_per_zone;
            if rest < all || zone + 1 == ZONES {
                let track = zone * self.cylinders_per_zone * self.options.heads + rest / of;
                return Position { cylinder: track / self.options.heads, track, index: rest % of, of };
            }
            rest -= all;
            zone += 1;
        }
    }

    fn seek(&self, cylinders: u64) -> u64 {
        // 1,024 times the root.
        let root = |cylinders: u64| (cylinders << 20).isqrt();
        let options = &self.options;
        let third = (self.cylinders_per_zone * ZONES / 3).max(1);
        let curve = if cylinders <= third {
            root(cylinders)
        } else {
            // The tangent of the root at a third.
            root(third) + (cylinders - third) * root(third) / (2 * third)
        };
        options.seek_base_nanoseconds + options.seek_root_nanoseconds * curve / 1024
    }

    /// Where the platters are at `time`, and where the sector begins, in nanoseconds of a turn.
    /// Each track is turned against the one before, so that nothing is missed while heads are
    /// switched.
    fn wait_for(&self, time: u64, position: Position) -> u64 {
        let turn = self.options.turn_nanoseconds;
        let begins =
            (position.index * turn / position.of + position.track * self.options.head_switch_nanoseconds) % turn;
        (begins + turn - time % turn) % turn
    }

    /// Nanoseconds for `length` bytes from `position` on, switches of heads included.
    fn transfer(&self, position: Position, length: u64) -> u64 {
        let options = &self.options;
        let sectors = length.div_ceil(SECTOR);
        let switches = (position.index + sectors - u64::from(sectors > 0)) / position.of;
        sectors * options.turn_nanoseconds / position.of + switches * options.head_switch_nanoseconds
    }

    /// When a request is done that the disk turns to at `start`.
    fn run(&mut self, start: u64, offset: u64, length: u64, write: bool) -> u64 {
        let position = self.position(offset / SECTOR);
        let mut time = start + self.options.command_nanoseconds;
        let crossed = position.cylinder.abs_diff(self.cylinder);
        if crossed > 0 {
            self.seeks += 1;
            time += self.seek(crossed) + if write { self.options.write_settle_nanoseconds } else { 0 };
        }
        let wait = self.wait_for(time, position);
        self.lost_turns += u64::from(crossed == 0 && wait > self.options.turn_nanoseconds / 2);
        time + wait + self.transfer(position, length)
    }

    fn request(&mut self, now: u64, offset: u64, length: u64, write: bool) -> u64 {
        let follows = self.last == Some((offset, write));
        let done = if follows && (!write || now < self.busy_until) {
            // Under way without a pause: read ahead, or written on.
            let position = self.position(offset / SECTOR);
            (self.busy_until + self.transfer(position, length)).max(if write { 0 } else { now })
        } else {
            self.run(now.max(self.busy_until), offset, length, write)
        };
        self.last = Some((offset + length, write));
        self.cylinder = self.position((offset + length.saturating_sub(1)) / SECTOR).cylinder;
        let started = now.max(self.busy_until);
        self.busy_until = done;
        if write { started } else { done }
    }
}

impl DiskModel for Hdd {
    fn read(&mut self, now: u64, offset: u64, length: u64) -> u64 {
        self.request(now, offset, length, false)
    }

    /// The disk takes one write while it carries out another.
    fn write(&mut self, now: u64, offset: u64, length: u64) -> u64 {
        self.request(now, offset, length, true)
    }

    fn discard(&mut self, _offset: u64, _length: u64) {}

    fn flush(&mut self, now: u64) -> u64 {
        now.max(self.busy_until)
    }

    fn idle_at(&self) -> u64 {
        self.busy_until
    }

    fn counters(&self) -> alloc::vec::Vec<(&'static str, u64)> {
        alloc::vec![("seeks", self.seeks), ("lost turns", self.lost_turns)]
    }
}
