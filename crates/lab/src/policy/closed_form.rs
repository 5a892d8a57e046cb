//! What theory says of uniform writes, to check the simulator against.
//!
//! Both figures are write amplification: pages programmed for each page written. They are derived
//! here from first principles; the results agree with the literature that is named.

/// First-in first-out, for large segments (Robinson 1996; Desnoyers 2012).
///
/// With r pages of room for each page of content, a page written now is reached by the cleaner
/// after r * n / A user writes on n pages, A being the amplification. It is still alive with
/// probability u = (1 - 1/n)^(r n / A) = exp(-r / A), and A = 1 / (1 - u). So u solves u = exp(-r
/// (1 - u)).
pub(super) fn fifo(fill: f64) -> f64 {
    let room = 1.0 / fill;
    let mut alive = 0.5;
    for _ in 0..10_000 {
        alive = (-room * (1.0 - alive)).exp();
    }
    1.0 / (1.0 - alive)
}

/// Greedy, in the limit of many segments of `pages` pages (the mean field of Van Houdt 2013).
///
/// Let x(i) be the share of the segments with i live pages, c the segments cleaned for each user
/// write, f the share of all pages that is alive. A user write kills a page of a segment with i
/// live ones with probability i x(i) / (pages f), and in the steady state that flow is c at every
/// level from `pages` down to the level m at which segments are taken: all of those, except a share
/// q that falls to m - 1 first. Hence x(i) = c pages f / i above m, and q times that at m. The
/// shares add up to one, and what is freed feeds the writes: c (pages - m + q) = 1. These two fix m
/// and q.
pub(super) fn greedy(fill: f64, pages: u32) -> f64 {
    let all = f64::from(pages);
    let mut sum = 1.0 / all;
    for taken in (1..pages).rev() {
        // fill * pages * (sum + q / taken) = pages - taken + q
        let level = f64::from(taken);
        let share = (all - level - fill * all * sum) / (fill * all / level - 1.0);
        if (0.0..1.0).contains(&share) {
            return all / (all - level + share);
        }
        sum += 1.0 / level;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifo_agrees_with_published_values() {
        // a / (a + W(-a e^-a)) of Desnoyers, with a = 1 / fill.
        assert!((fifo(0.5) - 1.255).abs() < 0.001, "{}", fifo(0.5));
        assert!((fifo(0.8) - 2.69).abs() < 0.02, "{}", fifo(0.8));
    }

    #[test]
    fn greedy_comes_near_fifo_for_large_segments_and_is_better_for_small_ones() {
        for fill in [0.7, 0.8, 0.9] {
            assert!((greedy(fill, 1 << 16) / fifo(fill) - 1.0).abs() < 0.001);
            assert!(greedy(fill, 16) < greedy(fill, 128));
            assert!(greedy(fill, 128) < fifo(fill));
        }
    }
}
