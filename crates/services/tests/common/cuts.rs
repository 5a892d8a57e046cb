//! Cuts of power at every operation of a chip while wrapped content is rewritten: what is found
//! afterwards is what some whole number of transactions left, none that was durable is missing.

use super::changes::{Changes, OBJECTS};
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::sim::RecordedNand;
use onode_media::{Damage, Geometry, SimNand, SimOptions};
use onode_object::conformance::{Tree, dump};
use onode_object::{Durability, ObjectDevice, ObjectId, RamDevice, Transaction};
use std::sync::Arc;

/// How many transactions had begun and how many were durable, from an operation of the chip on.
struct Moment {
    position: usize,
    begun: usize,
    durable: usize,
}

/// Wraps a device that may have been wrapped before.
pub type Wrap<'a> = &'a dyn Fn(Arc<FlashDevice>) -> Box<dyn ObjectDevice>;

fn mount(chip: &RecordedNand, wrap: Wrap<'_>) -> std::result::Result<Box<dyn ObjectDevice>, String> {
    let device = FlashDevice::mount(chip.clone(), &MountOptions::default()).map_err(|error| error.to_string())?;
    Ok(wrap(Arc::new(device)))
}

/// Cuts runs of some seeds at every operation.
pub fn cut_at_every_operation(wrap: Wrap<'_>) {
    let mut judged = 0;
    for seed in 1..4 {
        judged += run(wrap, seed, 40).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(judged > 1000, "only {judged} cuts");
}

/// Runs `steps` transactions and cuts at every operation; tells how many cuts were judged, or the
/// first that leaves something wrong.
pub fn run(wrap: Wrap<'_>, seed: u64, steps: usize) -> std::result::Result<usize, String> {
    let geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 40, chips: 1 };
    let nand = SimNand::new(geometry, SimOptions::default()).map_err(|error| error.to_string())?;
    let chip = RecordedNand::new(nand, true);
    let flash = FlashDevice::format(chip.clone(), &FormatOptions::default(), &MountOptions::default());
    let device = wrap(Arc::new(flash.map_err(|error| error.to_string())?));
    let mut changes = Changes::small(seed);
    let model = RamDevice::new(1 << 40);
    let mut first = Transaction::new();
    (1..=OBJECTS).for_each(|object| _ = first.create(ObjectId(object), changes.hints()));
    for device in [device.as_ref(), &model] {
        device.commit(first.clone(), Durability::Durable).map_err(|error| error.to_string())?;
    }
    let first_operation = chip.position();
    let mut moments = vec![Moment { position: first_operation, begun: 0, durable: 0 }];
    let mut states: Vec<Tree> = vec![dump(&model).map_err(|error| error.to_string())?];
    for _ in 0..steps {
        let mut transaction = Transaction::new();
        for _ in 0..=changes.prng.below(3) {
            changes.mutate(&model, &mut transaction);
        }
        let durability = if changes.prng.chance(1, 2) { Durability::Durable } else { Durability::Buffered };
        let durable = moments.last().map_or(0, |last| last.durable);
        moments.push(Moment { position: chip.position(), begun: states.len(), durable });
        model.commit(transaction.clone(), durability).map_err(|error| error.to_string())?;
        device.commit(transaction, durability).map_err(|error| error.to_string())?;
        states.push(dump(&model).map_err(|error| error.to_string())?);
        if durability == Durability::Durable {
            let done = states.len() - 1;
            moments.push(Moment { position: chip.position(), begun: done, durable: done });
        }
    }
    let recording = chip.take_recording();
    let cuts: Vec<usize> = recording.kept().filter(|position| *position >= first_operation).collect();
    let mut prng = Prng::new(seed);
    let damages = [
        Damage::Nothing,
        Damage::Complete,
        Damage::RandomBits,
        Damage::SpareLost,
        Damage::Uncorrectable,
        Damage::ErasePrefix,
        Damage::EraseRandom,
    ];
    for (number, &position) in cuts.iter().enumerate() {
        let lost = || format!("operation {position} is not kept");
        let (operation, mut left) = recording.operation(position).zip(recording.before(position)).ok_or_else(lost)?;
        let fitting: Vec<Damage> = damages.into_iter().filter(|damage| damage.fits(operation)).collect();
        let damage = fitting[prng.below(fitting.len() as u64) as usize];
        left.apply_cut(operation, damage, prng.next_u64()).map_err(|error| error.to_string())?;
        let since = moments.partition_point(|moment| moment.position <= position).saturating_sub(1);
        let Moment { begun, durable, .. } = moments[since];
        let found = mount(&RecordedNand::new(left, false), wrap)
            .and_then(|device| dump(&*device).map_err(|error| error.to_string()));
        let found = found.map_err(|error| format!("cut {number} ({damage:?}): {error}"))?;
        let allowed = &states[durable..=begun.min(states.len() - 1)];
        if !allowed.iter().any(|state| found.difference(state).is_none()) {
            let what = allowed.last().and_then(|state| found.difference(state)).unwrap_or_default();
            return Err(format!(
                "cut {number} of {} ({damage:?}): no state of {allowed:?}: {what}",
                cuts.len(),
                allowed = durable..=begun
            ));
        }
    }
    Ok(cuts.len())
}
