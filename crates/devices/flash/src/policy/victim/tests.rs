//! Which segment each victim policy takes.

use super::*;
use alloc::vec::Vec;

fn candidate(segment: u32, live_bytes: u32, age: u32) -> Candidate {
    Candidate { segment, live_bytes, age, erases: 0, stream: Stream::Data }
}

fn chosen(policy: VictimPolicy, all: &[Candidate]) -> Option<u32> {
    policy.choose(1000, all.iter().copied()).map(|one| one.segment)
}

#[test]
fn greedy_takes_the_emptiest_and_fifo_the_oldest() {
    let all = [candidate(0, 500, 9), candidate(1, 100, 1), candidate(2, 900, 20)];
    assert_eq!(chosen(VictimPolicy::Greedy, &all), Some(1));
    assert_eq!(chosen(VictimPolicy::Fifo, &all), Some(2));
    assert_eq!(chosen(VictimPolicy::Greedy, &[]), None);
}

#[test]
fn cost_benefit_prefers_old_segments_at_equal_fill_and_avoids_full_ones() {
    let all = [candidate(0, 500, 2), candidate(1, 500, 8), candidate(2, 999, 1_000_000)];
    for policy in [VictimPolicy::CostBenefit, VictimPolicy::FlashCostBenefit] {
        assert_eq!(chosen(policy, &all), Some(1));
        assert_eq!(chosen(policy, &all[2..]), Some(2), "but a full one if there is nothing else");
    }
    // An emptier but younger one: moving little counts for more where reading the dead costs
    // nothing.
    let pair = [candidate(0, 50, 2), candidate(1, 500, 9)];
    assert_eq!(chosen(VictimPolicy::CostBenefit, &pair), Some(1));
    assert_eq!(chosen(VictimPolicy::FlashCostBenefit, &pair), Some(0));
}

#[test]
fn cost_age_times_spares_the_worn() {
    let worn = Candidate { erases: 9, ..candidate(0, 500, 8) };
    assert_eq!(chosen(VictimPolicy::CostAgeTimes, &[worn, candidate(1, 500, 2)]), Some(1));
    assert_eq!(chosen(VictimPolicy::CostBenefit, &[worn, candidate(1, 500, 2)]), Some(0));
}

#[test]
fn thresholds_decide_who_may_be_cleaned_and_the_emptiest_is() {
    let policy = VictimPolicy::Thresholds(Thresholds::default());
    let of = |stream, live_bytes| Candidate { stream, ..candidate(7, live_bytes, 1) };
    assert_eq!(chosen(policy, &[candidate(1, 500, 1), of(Stream::Index, 300)]), Some(7));
    assert_eq!(chosen(policy, &[candidate(1, 300, 1), of(Stream::Index, 500)]), Some(1));
    assert_eq!(chosen(policy, &[candidate(1, 790, 1), of(Stream::Index, 700)]), Some(1), "content below its threshold");
    assert_eq!(chosen(policy, &[candidate(1, 900, 1), of(Stream::Index, 700)]), Some(7), "without any it is greedy");
    assert_eq!(chosen(policy, &[candidate(1, 900, 1), of(Stream::Atime, 950)]), Some(7), "access times have none");
}

#[test]
fn of_segments_about_as_full_metadata_waits_longest_and_access_times_least() {
    let policy = VictimPolicy::Thresholds(Thresholds::default());
    let of = |segment, stream| Candidate { stream, ..candidate(segment, 300, 1) };
    let (journal, data) = (of(1, Stream::Journal), of(2, Stream::Data));
    let (atime, emptier) = (of(3, Stream::Atime), Candidate { live_bytes: 290, ..of(4, Stream::Index) });
    assert_eq!(chosen(policy, &[journal, emptier, data, atime]), Some(3));
    assert_eq!(chosen(policy, &[journal, emptier, data]), Some(2));
    assert_eq!(chosen(policy, &[journal, emptier]), Some(4));
}

#[test]
fn choices_follow_the_seed_and_with_many_find_the_emptiest() {
    let all: Vec<_> = (0..200).map(|n| candidate(n, 100 + (n * 37) % 800, n)).collect();
    let run = |seed, count| {
        let mut chooser = Chooser::new(VictimPolicy::Choices { count, seed }, 1000);
        (0..50).map(|_| chooser.choose(all.iter().copied()).map(|one| one.live_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(run(1, 10), run(1, 10));
    assert_ne!(run(1, 10), run(2, 10));
    let mean = |count| run(3, count).into_iter().flatten().sum::<u32>() / 50;
    // The least of d even draws out of 100..900 lies at 100 + 800 / (d + 1) on average.
    assert!((450..550).contains(&mean(1)), "{}", mean(1));
    assert!((130..220).contains(&mean(10)), "{}", mean(10));
}

#[test]
fn names_are_one_to_one() {
    for policy in VictimPolicy::ALL {
        assert_eq!(VictimPolicy::from_name(policy.name()), Some(policy));
        assert_eq!(VictimPolicy::from_byte(policy.byte()), Some(policy));
    }
    assert_eq!(VictimPolicy::from_name("luck"), None);
}

#[test]
fn shares_are_rounded_up_and_exact_at_both_ends() {
    for capacity in [1, 100, 128, 1000, 65_536, 1 << 30] {
        let chooser = Chooser::new(VictimPolicy::Greedy, capacity);
        let share = |live_bytes| chooser.share_of(&candidate(0, live_bytes, 0));
        assert_eq!((share(0), share(capacity), share(u32::MAX)), (0, SHARES, SHARES));
        assert!(share(1) >= 1);
        let live = capacity / 3;
        assert_eq!(share(live), (live as usize * SHARES).div_ceil(capacity as usize), "{capacity}");
    }
}
