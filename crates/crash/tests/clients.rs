//! Several clients at once: their calls do come in between each other's, the seed alone says how,
//! and no promise is broken.

use onode_crash::object::clients::{Interleaving, MOST, name_of};
use onode_crash::task::spec::Spec;
use onode_crash::task::{Media, explore, replay, round_of_clients};

/// Shapes on each of the media.
const SHAPES: [&str; 6] = ["tiny", "spare", "beside-tiny", "tier-alone", "tier-safe", "tier-either"];

#[test]
fn calls_of_several_clients_meet_and_break_no_promise() {
    for shape in SHAPES {
        let mut all = Interleaving::default();
        for clients in 2..=MOST {
            let spec: Spec = format!("object.{}.{shape}.1", name_of(clients).unwrap()).parse().unwrap();
            let outcome = explore(&spec.run, 60).unwrap().unwrap_or_else(|violation| panic!("{spec}: {violation}"));
            assert_eq!(outcome.found, [], "{spec}");
            assert!(outcome.states > 0, "{spec}");
            assert!(outcome.interleaving.deepest <= clients as u64, "{spec}");
            all.add(&outcome.interleaving);
        }
        assert!(all.points > 500 && all.changes > 100, "{shape}: {all:?}");
        // With four clients a read may come in between a read in a read in a commit.
        assert_eq!(all.deepest, MOST as u64, "{shape}");
    }
}

#[test]
fn the_seed_alone_says_how_calls_meet() {
    for shape in SHAPES {
        let spec: Spec = format!("object.many-3.{shape}.2").parse().unwrap();
        let (story, verdict) = replay(&spec).unwrap();
        assert_eq!(verdict, Ok(()), "{spec}");
        assert!(story.contains("    client "), "nobody came in between: {story}");
        assert_eq!(replay(&spec).unwrap().0, story, "{spec}");
    }
}

#[test]
fn nobody_meets_where_a_call_has_the_lock_as_long_as_it_takes() {
    for media in [Media::Scm, Media::Compressed, Media::Encrypted, Media::Pool, Media::Transacted, Media::Snapshots] {
        assert_eq!(round_of_clients(media, &[2, 3, 4], 1), []);
    }
    for media in [Media::Nand, Media::Beside, Media::Tier] {
        let round = round_of_clients(media, &[2, 4], 1);
        assert!(round.iter().any(|run| run.workload == "many-2") && round.iter().any(|run| run.workload == "many-4"));
    }
}
