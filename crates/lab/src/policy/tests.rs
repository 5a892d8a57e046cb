//! The policy simulator against theory, and what holds for every policy.

use super::*;

/// A device small enough for debug builds.
fn small(pattern: Pattern, decider: Decider) -> PolicySettings {
    PolicySettings { pattern, decider, segments: 512, segment_pages: 64, fills: 6, ..PolicySettings::default() }
}

fn amplification(settings: &PolicySettings) -> f64 {
    simulate(settings).expect("a device that works").write_amplification
}

#[test]
fn the_simulator_agrees_with_theory() {
    // Segments of 64 pages and 512 of them are further from the limit than the 2,048 of 128 of the
    // lab.
    for check in self_check(&small(Pattern::Uniform, Decider::Oracle)).expect("a device that works") {
        assert!(check.error < 0.02, "{check:?}");
    }
}

#[test]
fn equal_settings_give_equal_figures() {
    for decider in Decider::all() {
        let settings = PolicySettings { fills: 3, ..small(Pattern::Zipf, decider) };
        let run = |seed| {
            let row = simulate(&PolicySettings { seed, ..settings }).expect("a device that works");
            (row.pages_moved, row.pages_levelled, row.wear)
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}

#[test]
fn what_is_known_of_the_future_pays() {
    for (pattern, blind, hinted, oracle) in
        [(Pattern::HotCold, 4.0, 2.6, 2.0), (Pattern::Zipf, 3.2, 2.2, 1.8), (Pattern::MovingHot, 3.2, 2.2, 1.8)]
    {
        let combined = amplification(&small(pattern, Decider::Device(Placement::Combined)));
        let found = [Decider::Device(Placement::Lifespan), Decider::Hinted(100), Decider::Oracle]
            .map(|decider| amplification(&small(pattern, decider)));
        assert!(combined > 4.0, "{pattern:?}: {combined}");
        for (found, bound) in found.into_iter().zip([blind, hinted, oracle]) {
            assert!(found < bound, "{pattern:?}: {found} is above {bound}");
        }
        assert!(found[2] < found[1] && found[1] < found[0], "{pattern:?}: {found:?}");
        let unsure = amplification(&small(pattern, Decider::Hinted(80)));
        assert!(found[1] < unsure, "{pattern:?}: wrong hints cost nothing: {unsure}");
    }
}

#[test]
fn every_combination_works() {
    for decider in Decider::all() {
        for victim in VictimPolicy::ALL {
            for wear in WearPolicy::ALL {
                let settings =
                    PolicySettings { victim, wear, fills: 2, segments: 256, ..small(Pattern::Zipf, decider) };
                let settings = PolicySettings { spare: 20, segment_pages: 16, ..settings };
                let row = simulate(&settings).expect("a device that works");
                assert!(row.write_amplification >= 1.0 && row.write_amplification < 20.0, "{row:?}");
            }
        }
    }
}

#[test]
fn static_levelling_brings_wear_together() {
    let zipf = |wear| {
        simulate(&PolicySettings { wear, fills: 12, ..small(Pattern::Zipf, Decider::Hinted(100)) }).expect("it works")
    };
    let (off, level) = (zipf(WearPolicy::Off), zipf(WearPolicy::Static));
    assert!(off.wear_max_by_mean > 1.5, "{}", off.wear_max_by_mean);
    assert!(level.wear_max_by_mean < 1.25, "{}", level.wear_max_by_mean);
    assert!(level.pages_levelled > 0 && off.pages_levelled == 0);
    assert!(level.write_amplification < off.write_amplification * 1.08);
}

#[test]
fn the_mounted_device_does_what_the_simulator_says() {
    let lifespan = Decider::Device(Placement::Lifespan);
    let settings = PolicySettings { spare: 30, fills: 4, wear: WearPolicy::Dynamic, ..small(Pattern::Zipf, lifespan) };
    let found = on_device(&settings).expect("the device has room");
    assert!(found.apart < 0.1, "{found:?}");
}

#[test]
fn devices_that_cannot_work_are_refused() {
    let base = PolicySettings::default();
    for wrong in [
        PolicySettings { segments: 64, ..base },
        PolicySettings { spare: 0, ..base },
        PolicySettings { spare: 95, ..base },
        PolicySettings { segment_pages: 1, ..base },
        PolicySettings { segments: 1 << 24, ..base },
        PolicySettings { fills: 1, ..base },
    ] {
        assert!(wrong.validate().is_err(), "{wrong:?}");
    }
    assert!(base.validate().is_ok());
    assert!(Decider::from_name("luck", 100).is_err());
    assert_eq!(Decider::from_name("hints", 80).ok(), Some(Decider::Hinted(80)));
}
