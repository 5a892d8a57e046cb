//! Small media: every codec gives back what it was given, and equal seeds give equal bytes.

use super::*;

fn quick() -> Options {
    Options { seed: 3, populations: Population::ALL.to_vec(), quick: true }
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
    let options = Options { seed: 2, populations: Vec::new(), quick: false };
    let mut rows = super::figures::Rows::new(&options);
    paper::measure(&mut rows).unwrap();
    for row in &rows.rows {
        assert_ne!(row.met, Some(false), "{row:?}");
    }
    let mounts = rows.rows.iter().find(|row| row.name.starts_with("mounts that found")).unwrap();
    assert!(matches!(mounts.value, crate::figures::Value::Count(count) if count > 100), "{mounts:?}");
}
