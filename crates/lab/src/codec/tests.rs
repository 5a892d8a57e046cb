//! Small media: every codec gives back what it was given, and equal seeds give equal bytes.

use super::*;

fn quick() -> Options {
    Options { seed: 3, populations: Population::ALL.to_vec(), traces: None, only: None, quick: true }
}

#[test]
fn every_codec_gives_back_every_population_and_buckets_take_the_least() {
    let report = measure(&quick(), &mut |_| ()).unwrap();
    assert_eq!(report.rows.len(), 8 * Codec::all().len());
    for population in Population::ALL {
        let of = |codec: Codec| {
            let mut rows = report.rows.iter();
            rows.find(|row| row.population == population.name() && row.codec == codec.name()).unwrap().bytes.sum()
        };
        for other in Codec::all().into_iter().filter(|codec| !matches!(codec, Codec::Buckets | Codec::BucketsWithSizes))
        {
            assert!(of(Codec::Buckets) <= of(other), "{} {}", population.name(), other.name());
        }
    }
    let again = measure(&quick(), &mut |_| ()).unwrap();
    let bytes = |report: &CodecReport| report.rows.iter().map(|row| row.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&report), bytes(&again));
}

#[test]
fn updates_keep_all_records() {
    let updates = updates::measure(Population::Small, 64, 5).unwrap();
    assert!(updates.bytes_mean > 100.0 && updates.mib_per_gib > 0.1, "{updates:?}");
    let updates = updates::measure(Population::AgedSmall, 128, 5).unwrap();
    assert!(updates.bytes_max >= 512, "{updates:?}");
}

#[test]
fn the_volume_of_the_paper_keeps_its_shapes_and_mounts_agree() {
    let only = Some("paper".to_owned());
    let options = Options { seed: 2, populations: Vec::new(), traces: None, only, quick: false };
    let report = figures(&options, &mut |_| {});
    assert_eq!(report.failures, [""; 0]);
    for row in &report.rows {
        assert_ne!(row.met, Some(false), "{row:?}");
    }
    let mounts = report.rows.iter().find(|row| row.name.starts_with("mounts that found")).unwrap();
    assert!(matches!(mounts.value, crate::figures::Value::Count(count) if count > 100), "{mounts:?}");
}

#[test]
fn a_device_holds_a_population_and_reads_nothing_when_it_is_mounted() {
    let held = device::populate(Population::Small, 64, 5).unwrap();
    assert!(held.used_bytes() > 2048 && held.used_bytes() < 64 << 10, "{held:?}");
    let mount = mounts::after_an_end("flash+scm:sim,size=16M,page=2K,spare=64,memory=64K", 50).unwrap();
    assert_eq!(mount.reads, 0);
}
