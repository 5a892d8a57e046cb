//! The replacement policies against each other, and each against what all of them promise.

use onode_base::Prng;
use onode_lab::tier::replacement::PolicyKind;
use onode_lab::tier::replacement::measure::{CAPACITY, REQUESTS, play};
use onode_lab::tier::replacement::streams::Stream;
use onode_tier::policy::Policy;
use std::collections::BTreeMap;

#[test]
fn the_default_is_never_worse_than_the_queues_of_the_paper() {
    for seed in [1, 2] {
        for stream in [Stream::Zipf, Stream::ScanAndHot, Stream::Loop] {
            let [paper, ours] = [PolicyKind::MultiQueue, PolicyKind::default()]
                .map(|kind| play(kind, stream, CAPACITY, REQUESTS, seed).per_ten_thousand());
            assert!(ours >= paper, "{}: {ours} hits of 10,000, multi-queue {paper}", stream.name());
            if stream == Stream::ScanAndHot {
                assert!(ours * 10 >= paper * 11, "{}: {ours} hits of 10,000, multi-queue {paper}", stream.name());
            }
        }
    }
}

#[test]
fn a_hot_set_that_moves_on_is_followed() {
    let least = |kind| play(kind, Stream::Moving, CAPACITY, REQUESTS / 2, 3).per_ten_thousand();
    let lru = least(PolicyKind::Lru);
    for kind in PolicyKind::ALL {
        assert!(least(kind) * 100 >= lru * 97, "{}: {} of 10,000, lru {lru}", kind.name(), least(kind));
    }
}

#[test]
fn a_scan_does_not_drive_out_what_is_used() {
    let play = |kind| play(kind, Stream::ScanAndHot, CAPACITY, REQUESTS, 4).per_ten_thousand();
    let lru = play(PolicyKind::Lru);
    for kind in PolicyKind::ALL.into_iter().filter(|kind| *kind != PolicyKind::Lru) {
        assert!(play(kind) > lru, "{}", kind.name());
    }
}

fn keep(policy: &mut dyn Policy, kept: &mut BTreeMap<u64, u64>, key: u64, size: u64, capacity: u64, now: u64) {
    policy.insert(key, size, now);
    kept.insert(key, size);
    while policy.used() > capacity {
        let victim = policy.victim(now).expect("something is kept");
        assert!(kept.remove(&victim).is_some(), "{victim} goes, but was not kept");
    }
}

#[test]
fn every_policy_keeps_what_it_says_and_names_victims_until_it_is_empty() {
    for kind in PolicyKind::ALL {
        let (capacity, mut prng) = (500, Prng::new(11));
        let mut policy = kind.build(capacity);
        let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
        for now in 0..20_000 {
            let (key, size) = (prng.below(200) * prng.below(5), 1 + prng.below(64));
            match prng.below(10) {
                0 => {
                    policy.remove(key);
                    kept.remove(&key);
                }
                1 => keep(policy.as_mut(), &mut kept, key, size, capacity, now),
                _ if policy.contains(key) => policy.hit(key, now),
                _ => {
                    if policy.missed(key, size, now) {
                        keep(policy.as_mut(), &mut kept, key, size, capacity, now);
                    }
                }
            }
            assert_eq!(policy.used(), kept.values().sum::<u64>(), "{}", kind.name());
            assert_eq!(policy.contains(key), kept.contains_key(&key), "{}", kind.name());
            assert!(kept.contains_key(&key) || !policy.is_hot(key), "{}", kind.name());
        }
        while let Some(victim) = policy.victim(20_000) {
            assert!(kept.remove(&victim).is_some(), "{}", kind.name());
        }
        assert!(kept.is_empty() && policy.used() == 0, "{}", kind.name());
    }
}

#[test]
fn names_lead_to_policies_and_streams_to_the_same_keys() {
    for kind in PolicyKind::ALL {
        assert_eq!(PolicyKind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(PolicyKind::from_name("belady"), None);
    for stream in Stream::ALL {
        assert_eq!(stream.keys(100, 1000, 5), stream.keys(100, 1000, 5));
        assert_eq!(stream.keys(100, 1000, 5).len(), 1000);
    }
}
