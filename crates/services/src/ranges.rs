//! A set of numbers kept as ranges, in order, none empty, none touching another.

/// The ranges, each from its first number to the one after its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    all: Vec<(u64, u64)>,
}

impl Ranges {
    /// One range; none if it is empty.
    pub(crate) fn of(start: u64, end: u64) -> Self {
        let mut ranges = Self::default();
        ranges.add(start, end);
        ranges
    }

    /// The ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.all.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number after the last one; 0 if there is none.
    pub(crate) fn end(&self) -> u64 {
        self.all.last().map_or(0, |(_, end)| *end)
    }

    /// How many ranges there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Takes in the numbers from `start` to before `end`.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.all.partition_point(|(_, until)| *until < start);
        let after = self.all.partition_point(|(from, _)| *from <= end);
        let start = self.all.get(first).filter(|_| first < after).map_or(start, |(from, _)| start.min(*from));
        let end = if first < after { end.max(self.all[after - 1].1) } else { end };
        self.all.splice(first..after, [(start, end)]);
    }

    /// Leaves out the numbers from `start` to before `end`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.all.partition_point(|(_, until)| *until <= start);
        let after = self.all.partition_point(|(from, _)| *from < end);
        if first >= after {
            return;
        }
        let before = (self.all[first].0, start);
        let behind = (end, self.all[after - 1].1);
        let rest = [before, behind].into_iter().filter(|(from, until)| from < until);
        self.all.splice(first..after, rest);
    }

    /// Whether all numbers from `start` to before `end` are in it.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let found = self.all.partition_point(|(_, until)| *until <= start);
        start >= end || self.all.get(found).is_some_and(|(from, until)| *from <= start && *until >= end)
    }

    /// What of it lies from `start` to before `end`.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.all.partition_point(|(_, until)| *until <= start);
        let ranges = self.all[first..].iter().take_while(move |(from, _)| *from < end);
        ranges.map(move |(from, until)| ((*from).max(start), (*until).min(end))).filter(|(from, until)| from < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn it_is_the_set_that_a_table_says() {
        let mut prng = Prng::new(7);
        for _ in 0..200 {
            let (mut ranges, mut table) = (Ranges::default(), [false; 40]);
            for _ in 0..30 {
                let (start, end) = (prng.below(40), prng.below(41));
                let is_added = prng.chance(1, 2);
                if is_added {
                    ranges.add(start, end)
                } else {
                    ranges.remove(start, end)
                }
                (start..end).for_each(|number| table[number as usize] = is_added);
                let has = |number: u64| ranges.iter().any(|(from, until)| from <= number && number < until);
                assert!((0..40).all(|number| has(number) == table[number as usize]), "{ranges:?} {table:?}");
                let joined = ranges.all.windows(2).any(|pair| pair[0].1 >= pair[1].0);
                assert!(!joined && ranges.iter().all(|(from, until)| from < until), "{ranges:?}");
                let (start, end) = (prng.below(40), prng.below(41));
                let all = (start..end).all(|number| table[number as usize]);
                assert_eq!(ranges.covers(start, end), all, "{ranges:?} {start} {end}");
                let count = ranges.within(start, end).map(|(from, until)| until - from).sum::<u64>();
                assert_eq!(count, (start..end).filter(|number| table[*number as usize]).count() as u64);
            }
        }
    }
}
