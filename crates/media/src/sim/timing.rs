//! Virtual time of a NAND with several chips.
//!
//! Each chip does one operation at a time, and different chips work at the same time. A read holds
//! its caller until the data is there; a program or erase is posted, and holds the caller only
//! while the chip still does something else. Reads that are asked for together hold their caller
//! until the last of them is there. The channel between host and chips is not modelled.

/// Chips that a geometry may have.
const CHIPS_MAX: usize = 64;

/// How long the operations of a chip take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTable {
    /// Read of one page.
    pub read_nanoseconds: u64,
    /// Program of one page.
    pub program_nanoseconds: u64,
    /// Erase of one block.
    pub erase_nanoseconds: u64,
}

impl Default for LatencyTable {
    /// The NAND of paper 1, Table I: 15 us, 200 us, 2 ms.
    fn default() -> Self {
        Self { read_nanoseconds: 15_000, program_nanoseconds: 200_000, erase_nanoseconds: 2_000_000 }
    }
}

/// The clocks of the caller and of all chips.
#[derive(Clone, Debug)]
pub struct ChipClock {
    table: LatencyTable,
    now: u64,
    end: u64,
    busy_until: [u64; CHIPS_MAX],
    /// When the last of the reads is there that were asked for together, while there are such.
    together: Option<u64>,
}

impl ChipClock {
    /// All chips idle at time 0.
    #[must_use]
    pub const fn new(table: LatencyTable) -> Self {
        Self { table, now: 0, end: 0, busy_until: [0; CHIPS_MAX], together: None }
    }

    /// A read on `chip`: the caller waits for it.
    pub fn read(&mut self, chip: u32) {
        let Some(last) = self.together else {
            self.now = self.run(chip, self.table.read_nanoseconds);
            return;
        };
        // Each chip has its reads in a queue, and the caller goes on.
        let now = self.now;
        let done = self.run(chip, self.table.read_nanoseconds);
        self.now = now;
        self.together = Some(last.max(done));
    }

    /// The reads from now on are asked for together, up to
    /// [`wait_for_reads`](Self::wait_for_reads).
    pub const fn read_together(&mut self) {
        self.together = Some(self.now);
    }

    /// The caller waits for the reads that were asked for together.
    pub fn wait_for_reads(&mut self) {
        self.now = self.now.max(self.together.take().unwrap_or(0));
    }

    /// A program on `chip`, posted.
    pub fn program(&mut self, chip: u32) {
        self.run(chip, self.table.program_nanoseconds);
    }

    /// An erase on `chip`, posted.
    pub fn erase(&mut self, chip: u32) {
        self.run(chip, self.table.erase_nanoseconds);
    }

    /// The caller waits until every chip is idle.
    pub fn wait(&mut self) {
        self.now = self.end;
    }

    /// The time at which the caller is.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// The time at which everything begun so far is done.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    fn run(&mut self, chip: u32, nanoseconds: u64) -> u64 {
        let busy_until = &mut self.busy_until[chip as usize % CHIPS_MAX];
        // The caller hands the command over only when the chip can take it.
        self.now = self.now.max(*busy_until);
        *busy_until = self.now.saturating_add(nanoseconds);
        self.end = self.end.max(*busy_until);
        *busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_overlap_and_one_chip_does_not() {
        let mut two = ChipClock::new(LatencyTable::default());
        two.program(0);
        two.program(1);
        assert_eq!((two.now(), two.end()), (0, 200_000));
        two.program(0);
        assert_eq!((two.now(), two.end()), (200_000, 400_000));
    }

    #[test]
    fn reads_that_are_asked_for_together_use_all_chips() {
        let mut clock = ChipClock::new(LatencyTable::default());
        clock.read_together();
        (0..16).chain(0..4).for_each(|chip| clock.read(chip));
        clock.wait_for_reads();
        assert_eq!((clock.now(), clock.end()), (30_000, 30_000));
        clock.read(0);
        assert_eq!(clock.now(), 45_000);
    }

    #[test]
    fn a_read_waits_for_its_own_chip_only() {
        let mut clock = ChipClock::new(LatencyTable::default());
        clock.erase(0);
        clock.read(1);
        assert_eq!(clock.now(), 15_000);
        clock.read(0);
        assert_eq!(clock.now(), 2_015_000);
        clock.erase(1);
        clock.wait();
        assert_eq!(clock.now(), 4_015_000);
    }
}
