//! Streams of page writes: which page is written next.
//!
//! All are seeded and made with integer or exactly rounded arithmetic only, so that they are the
//! same on every machine. Pages of equal heat are strewn over the numbers at random: nothing can be
//! learned from a number.

use onode_base::Prng;

/// A kind of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every page equally often.
    Uniform,
    /// 80 % of the writes go to 20 % of the pages.
    HotCold,
    /// The page of rank r is written r^-0.99 times as often as the first.
    Zipf,
    /// 90 % of the writes go to 10 % of the pages, and that window moves on by a page with every
    /// 32nd write.
    MovingHot,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::HotCold, Self::Zipf, Self::MovingHot];

    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::HotCold => "hot-cold",
            Self::Zipf => "zipf",
            Self::MovingHot => "moving-hot",
        }
    }

    /// The pattern called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// `count` writes over `pages` pages.
    #[must_use]
    pub fn writes(self, pages: u32, count: usize, seed: u64) -> Vec<u32> {
        let mut prng = Prng::new(seed);
        let places = shuffled(pages, &mut prng);
        let place = |rank: u32| places[rank as usize];
        match self {
            Self::Uniform => (0..count).map(|_| below(&mut prng, pages)).collect(),
            Self::HotCold => {
                let hot = (pages / 5).max(1);
                let rank = |prng: &mut Prng| {
                    if below(prng, 5) < 4 || hot == pages { below(prng, hot) } else { hot + below(prng, pages - hot) }
                };
                (0..count).map(|_| place(rank(&mut prng))).collect()
            }
            Self::Zipf => {
                let zipf = Zipf::new(pages);
                (0..count).map(|_| place(zipf.rank(&mut prng))).collect()
            }
            Self::MovingHot => {
                let hot = (pages / 10).max(1);
                let rank = |prng: &mut Prng, at: usize| {
                    let start = ((at / 32) as u64 % u64::from(pages)) as u32;
                    let within = if below(prng, 10) < 9 || hot == pages {
                        below(prng, hot)
                    } else {
                        hot + below(prng, pages - hot)
                    };
                    (start + within) % pages
                };
                (0..count).map(|at| place(rank(&mut prng, at))).collect()
            }
        }
    }
}

fn below(prng: &mut Prng, bound: u32) -> u32 {
    (((prng.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
}

fn shuffled(pages: u32, prng: &mut Prng) -> Vec<u32> {
    let mut places: Vec<u32> = (0..pages).collect();
    for last in (1..places.len()).rev() {
        let other = prng.below(last as u64 + 1) as usize;
        places.swap(last, other);
    }
    places
}

/// Ranks with probability proportional to (rank + 1)^-0.99, by the alias method of Walker and Vose:
/// one random word and one look-up a draw.
struct Zipf {
    /// Below the first figure the column's own rank, else the other one.
    columns: Vec<(u32, u32)>,
}

impl Zipf {
    fn new(ranks: u32) -> Self {
        let weights = weights(ranks);
        let mean = weights.iter().sum::<f64>() / f64::from(ranks);
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) = (0..ranks).partition(|&rank| shares[rank as usize] < 1.0);
        let mut columns: Vec<(u32, u32)> = (0..ranks).map(|rank| (u32::MAX, rank)).collect();
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            let share = shares[poor as usize];
            columns[poor as usize] = ((share * 4_294_967_295.0) as u32, rich);
            shares[rich as usize] -= 1.0 - share;
            if shares[rich as usize] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { columns }
    }

    fn rank(&self, prng: &mut Prng) -> u32 {
        let word = prng.next_u64();
        let column = (((word >> 32) * self.columns.len() as u64) >> 32) as u32;
        let (limit, other) = self.columns[column as usize];
        if word as u32 <= limit { column } else { other }
    }
}

/// (rank + 1)^-0.99 for each rank, as n^0.01 / n. The root is found by Newton's method, so that
/// only exactly rounded operations are used; the power functions of two machines may differ in the
/// last bit.
fn weights(ranks: u32) -> Vec<f64> {
    let mut root = 1.0_f64;
    (1..=ranks)
        .map(|number| {
            let number = f64::from(number);
            for _ in 0..8 {
                root -= (root - number / power_99(root)) / 100.0;
            }
            root / number
        })
        .collect()
}

fn power_99(base: f64) -> f64 {
    let power_2 = base * base;
    let power_3 = power_2 * base;
    let power_6 = power_3 * power_3;
    let power_12 = power_6 * power_6;
    let power_24 = power_12 * power_12;
    let power_48 = power_24 * power_24;
    power_48 * power_48 * power_3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the writes that go to the most written `part` of the pages.
    fn share_of_hottest(pattern: Pattern, part: f64) -> f64 {
        let (pages, count) = (10_000_u32, 400_000);
        let mut times = vec![0_u32; pages as usize];
        for page in pattern.writes(pages, count, 3) {
            times[page as usize] += 1;
        }
        times.sort_unstable_by(|a, b| b.cmp(a));
        let hottest = (f64::from(pages) * part) as usize;
        f64::from(times[..hottest].iter().sum::<u32>()) / count as f64
    }

    #[test]
    fn skew_is_as_named() {
        assert!((share_of_hottest(Pattern::HotCold, 0.2) - 0.8).abs() < 0.01);
        assert!(share_of_hottest(Pattern::Uniform, 0.2) < 0.27);
        // The sum of r^-0.99 over 100 ranks against 10,000.
        let sum = |ranks: u32| (1..=ranks).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>();
        assert!((share_of_hottest(Pattern::Zipf, 0.01) - sum(100) / sum(10_000)).abs() < 0.01);
    }

    #[test]
    fn weights_are_powers() {
        for (rank, weight) in (1..=100_000).zip(weights(100_000)) {
            let exact = f64::from(rank).powf(-0.99);
            assert!((weight / exact - 1.0).abs() < 1e-12, "rank {rank}: {weight} is not {exact}");
        }
    }

    #[test]
    fn the_hot_window_moves() {
        let writes = Pattern::MovingHot.writes(1000, 64_000, 1);
        let distinct = |part: &[u32]| {
            let mut times = vec![0_u32; 1000];
            part.iter().for_each(|&page| times[page as usize] += 1);
            let hot: Vec<usize> = (0..1000).filter(|&page| times[page] > 20).collect();
            hot
        };
        let (early, late) = (distinct(&writes[..6400]), distinct(&writes[16_000..22_400]));
        assert!(early.len() > 100 && late.len() > 100);
        assert!(early.iter().all(|page| !late.contains(page)));
    }

    #[test]
    fn equal_seeds_give_equal_streams() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.writes(5000, 1000, 7), pattern.writes(5000, 1000, 7));
            assert_ne!(pattern.writes(5000, 1000, 7), pattern.writes(5000, 1000, 8));
            assert_eq!(Pattern::from_name(pattern.name()), Some(pattern));
        }
    }
}
