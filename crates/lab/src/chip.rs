//! A simulated NAND that the laboratory looks at, copies and cuts from power while a device owns
//! it.
//!
//! Pages with equal content share it, so that a volume of many gigabytes filled with patterns takes
//! little more memory than its page tables.

use onode_base::sync::{Mutex, rank};
use onode_media::{
    BlockAddress, Counters, Damage, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SimNand, SimOptions,
    Wear,
};
use std::sync::Arc;

/// Page contents that are remembered to be shared.
const REMEMBERED: usize = 64;

/// A NAND in the hands of both the laboratory and a device.
#[derive(Clone)]
pub(crate) struct Chip(Arc<Mutex<State, rank::MediumContent>>);

struct State {
    nand: SimNand,
    contents: [Option<Arc<[u8]>>; REMEMBERED],
    cut: Option<Cut>,
}

/// A power cut within a program that is still to come.
struct Cut {
    programs_before: u64,
    left_behind: Option<SimNand>,
}

impl Chip {
    /// A blank NAND.
    pub(crate) fn new(geometry: Geometry) -> Result<Self> {
        Ok(Self::holding(SimNand::new(geometry, SimOptions::default())?))
    }

    /// A NAND with what is on it.
    pub(crate) fn holding(nand: SimNand) -> Self {
        Self(Arc::new(Mutex::new(State { nand, contents: [const { None }; REMEMBERED], cut: None })))
    }

    /// What a power cut between two operations would leave now.
    pub(crate) fn image(&self) -> SimNand {
        self.0.lock().nand.clone()
    }

    /// Notes down what a power cut would leave that hits the program after `programs_before` more.
    pub(crate) fn cut_later(&self, programs_before: u64) {
        self.0.lock().cut = Some(Cut { programs_before, left_behind: None });
    }

    /// What that cut left, once the program came.
    pub(crate) fn left_behind(&self) -> Option<SimNand> {
        let mut state = self.0.lock();
        let left = state.cut.as_mut()?.left_behind.take()?;
        state.cut = None;
        Some(left)
    }

    /// The counters.
    pub(crate) fn counters(&self) -> Counters {
        self.0.lock().nand.counters().unwrap_or_default()
    }

    /// Sets counters and virtual time back to zero.
    pub(crate) fn reset_counters(&self) {
        self.0.lock().nand.reset_counters();
    }

    /// Virtual time spent so far.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.0.lock().nand.counters().map_or(0, |counters| counters.virtual_nanoseconds)
    }

    /// The spread of erases.
    pub(crate) fn wear(&self) -> Wear {
        self.0.lock().nand.wear()
    }
}

impl State {
    fn shared(&mut self, data: &[u8]) -> Arc<[u8]> {
        // Patterns differ in their first bytes; a wrong slot only costs memory.
        let hash =
            data.iter().take(8).fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        let Some(slot) = self.contents.get_mut(hash % REMEMBERED) else { return Arc::from(data) };
        match slot {
            Some(known) if known[..] == *data => Arc::clone(known),
            _ => Arc::clone(slot.insert(Arc::from(data))),
        }
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let operation = MediaOperation::Program { page, data: self.shared(data), spare: Arc::from(spare), tag };
        if let Some(cut) = self.cut.as_mut().filter(|cut| cut.left_behind.is_none()) {
            if cut.programs_before == 0 {
                let mut torn = self.nand.clone();
                torn.apply_cut(&operation, Damage::Uncorrectable, page.0)?;
                cut.left_behind = Some(torn);
            } else {
                cut.programs_before -= 1;
            }
        }
        self.nand.apply(&operation)
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
        self.0.lock().program(page, data, spare, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.0.lock().nand.erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.0.lock().nand.mark_bad(block)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.lock().nand.flush()
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.0.lock().nand.take_bitflips()
    }

    /// The laboratory counts.
    fn counters(&self) -> Option<Counters> {
        None
    }

    fn virtual_nanoseconds(&self) -> u64 {
        self.nanoseconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 4, blocks: 8, chips: 1 };

    fn first_byte(nand: SimNand, page: u64) -> Result<u8> {
        let mut data = [0; 512];
        Chip::holding(nand).read(PageAddress(page), &mut data, &mut [], IoTag::Data)?;
        Ok(data[0])
    }

    #[test]
    fn a_cut_tears_one_program_and_the_device_goes_on() {
        let mut chip = Chip::new(SHAPE).expect("a chip");
        chip.cut_later(1);
        for page in 0..3 {
            assert_eq!(chip.0.lock().cut.as_ref().is_some_and(|cut| cut.left_behind.is_some()), page > 1);
            chip.program(PageAddress(page), &[7; 512], &[1; 16], IoTag::Data).expect("a program");
        }
        let left = chip.left_behind().expect("a cut");
        assert_eq!(first_byte(left.clone(), 0), Ok(7));
        assert!(first_byte(left.clone(), 1).is_err());
        assert_eq!(first_byte(left, 2), Ok(0xff));
        assert_eq!(first_byte(chip.image(), 2), Ok(7));
        assert!(chip.left_behind().is_none());
    }

    #[test]
    fn equal_pages_share_their_content_and_others_do_not() {
        let chip = Chip::new(SHAPE).expect("a chip");
        let mut state = chip.0.lock();
        let one = state.shared(&[7; 512]);
        assert!(Arc::ptr_eq(&one, &state.shared(&[7; 512])));
        let mut other = [7; 512];
        other[511] = 8;
        assert_eq!(state.shared(&other)[..], other);
        assert_eq!(one[..], [7; 512]);
    }
}
