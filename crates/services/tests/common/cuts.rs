//! Cuts of power at every operation of a chip while compressed content is rewritten: what is found
//! afterwards is what some whole number of transactions left, none that was durable is missing.

use super::changes::{Changes, OBJECTS};
use onode_base::Prng;
use onode_base::sync::Mutex;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{
    BlockAddress, Counters, Damage, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SimNand, SimOptions,
};
use onode_object::conformance::{Tree, dump};
use onode_object::{Compression, Durability, ObjectDevice, ObjectId, RamDevice, Transaction};
use onode_services::Compressed;
use std::sync::Arc;

/// The chip before an operation, and the operation.
struct Cut {
    before: SimNand,
    operation: MediaOperation,
    /// Transactions that were durable then, and those that had begun.
    durable: usize,
    begun: usize,
}

struct Inner {
    nand: SimNand,
    cuts: Option<Vec<Cut>>,
    durable: usize,
    begun: usize,
}

/// A chip that remembers what it was before each operation.
#[derive(Clone)]
struct Chip(Arc<Mutex<Inner>>);

impl Chip {
    fn holding(nand: SimNand, is_recording: bool) -> Self {
        let cuts = is_recording.then(Vec::new);
        Self(Arc::new(Mutex::new(Inner { nand, cuts, durable: 0, begun: 0 })))
    }

    fn change(&self, operation: MediaOperation) -> Result<()> {
        let inner = &mut *self.0.lock();
        let before = inner.cuts.is_some().then(|| inner.nand.clone());
        inner.nand.apply(&operation)?;
        let (durable, begun) = (inner.durable, inner.begun);
        if let (Some(cuts), Some(before)) = (&mut inner.cuts, before) {
            cuts.push(Cut { before, operation, durable, begun });
        }
        Ok(())
    }
}

impl Nand for Chip {
    fn geometry(&self) -> Geometry {
        self.0.lock().nand.geometry()
    }
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().nand.read(page, data, spare, tag)
    }
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Program { page, data: Arc::from(data), spare: Arc::from(spare), tag })
    }
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Erase { block, tag })
    }
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().nand.is_bad(block)
    }
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.change(MediaOperation::MarkBad { block })
    }
    fn flush(&mut self) -> Result<()> {
        self.0.lock().nand.flush()
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
}

fn mount(chip: &Chip) -> std::result::Result<Compressed<FlashDevice>, String> {
    let device = FlashDevice::mount(chip.clone(), &MountOptions::default()).map_err(|error| error.to_string())?;
    Ok(Compressed::new(Arc::new(device), Compression::Fast))
}

/// Runs `steps` transactions and cuts at every operation; tells how many cuts were judged, or the
/// first that leaves something wrong.
pub fn run(seed: u64, steps: usize) -> std::result::Result<usize, String> {
    let geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 40, chips: 1 };
    let nand = SimNand::new(geometry, SimOptions::default()).map_err(|error| error.to_string())?;
    let chip = Chip::holding(nand, true);
    let flash = FlashDevice::format(chip.clone(), &FormatOptions::default(), &MountOptions::default());
    let device = Compressed::new(Arc::new(flash.map_err(|error| error.to_string())?), Compression::Fast);
    let mut changes = Changes::small(seed);
    let model = RamDevice::new(1 << 40);
    let mut first = Transaction::new();
    (1..=OBJECTS).for_each(|object| _ = first.create(ObjectId(object), changes.hints()));
    for device in [&device as &dyn ObjectDevice, &model] {
        device.commit(first.clone(), Durability::Durable).map_err(|error| error.to_string())?;
    }
    chip.0.lock().cuts = Some(Vec::new());
    let mut states: Vec<Tree> = vec![dump(&model).map_err(|error| error.to_string())?];
    for _ in 0..steps {
        let mut transaction = Transaction::new();
        for _ in 0..=changes.prng.below(3) {
            changes.mutate(&model, &mut transaction);
        }
        let durability = if changes.prng.chance(1, 2) { Durability::Durable } else { Durability::Buffered };
        chip.0.lock().begun = states.len();
        model.commit(transaction.clone(), durability).map_err(|error| error.to_string())?;
        device.commit(transaction, durability).map_err(|error| error.to_string())?;
        states.push(dump(&model).map_err(|error| error.to_string())?);
        if durability == Durability::Durable {
            chip.0.lock().durable = states.len() - 1;
        }
    }
    let cuts = chip.0.lock().cuts.take().unwrap_or_default();
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
    for (number, cut) in cuts.iter().enumerate() {
        let fitting: Vec<Damage> = damages.into_iter().filter(|damage| damage.fits(&cut.operation)).collect();
        let damage = fitting[prng.below(fitting.len() as u64) as usize];
        let mut left = cut.before.clone();
        left.apply_cut(&cut.operation, damage, prng.next_u64()).map_err(|error| error.to_string())?;
        let found =
            mount(&Chip::holding(left, false)).and_then(|device| dump(&device).map_err(|error| error.to_string()));
        let found = found.map_err(|error| format!("cut {number} ({damage:?}): {error}"))?;
        let allowed = &states[cut.durable..=cut.begun.min(states.len() - 1)];
        if !allowed.iter().any(|state| found.difference(state).is_none()) {
            let what = allowed.last().and_then(|state| found.difference(state)).unwrap_or_default();
            return Err(format!(
                "cut {number} of {} ({damage:?}): no state of {allowed:?}: {what}",
                cuts.len(),
                allowed = cut.durable..=cut.begun
            ));
        }
    }
    Ok(cuts.len())
}
