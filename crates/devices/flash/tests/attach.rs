//! The memory beside the flash goes and comes while the volume is mounted.

use crate::common;
use crate::common::pair::{Pair, look, memory, put, used};
use onode_base::ErrorKind;
use onode_flash::{FindMemory, MemoryOptions, MountPath};
use onode_media::sim::pmem::crash::Survival;
use onode_media::{Pmem, SimPmem};
use onode_object::powers::Attach;
use onode_object::{ObjectDevice, Result};
use std::sync::Arc;

/// A memory where the spec of the mount says it is.
struct There(Arc<SimPmem>, MemoryOptions);

impl FindMemory for There {
    fn find(&self) -> Result<(Box<dyn Pmem>, MemoryOptions)> {
        Ok((Box::new(self.0.clone()), self.1))
    }
}

fn tells(pair: &Pair, code: &str) -> bool {
    pair.device().health().conditions.iter().any(|told| told.code == code)
}

#[test]
fn the_memory_is_detached_and_attached_again() {
    for buffer in [false, true] {
        let beside = MemoryOptions { buffer, ..MemoryOptions::default() };
        let mut pair = used(64, 64 << 10, 200, beside);
        put(pair.device(), None, 0, 7000);
        let seen = look(pair.device());
        assert!(Attach::is_attached(pair.device()));
        Attach::detach(pair.device()).unwrap();
        assert!(!Attach::is_attached(pair.device()) && tells(&pair, "memory-given-up"));
        assert_eq!(Attach::detach(pair.device()).unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(look(pair.device()), seen);
        // The flash alone has everything, whatever was synced to the memory.
        put(pair.device(), None, 0, 300);
        let seen = look(pair.device());
        let (there, nand) = (pair.memory.clone(), pair.nand.with(|nand| nand.clone()));
        pair.memory = memory(64 << 10);
        pair.cut(Survival::Nothing);
        assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
        assert_eq!(look(pair.device()), seen, "the flash alone, buffer {buffer}");
        pair.agrees();
        // Nor is the memory of before taken for the one of now.
        pair.nand = common::Shared::holding(nand);
        pair.memory = there;
        assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
        assert_eq!(look(pair.device()), seen, "with the memory of before, buffer {buffer}");

        // It comes back, filled, and is used as ever.
        Attach::detach(pair.device()).unwrap();
        assert_eq!(Attach::attach(pair.device(), false).unwrap_err().kind, ErrorKind::NotSupported);
        pair.device().set_finder(Arc::new(There(pair.memory.clone(), beside)));
        Attach::attach(pair.device(), false).unwrap();
        assert!(Attach::is_attached(pair.device()) && !tells(&pair, "memory-given-up"));
        assert_eq!(Attach::attach(pair.device(), true).unwrap_err().kind, ErrorKind::Invalid);
        pair.agrees();
        put(pair.device(), None, 0, 500);
        let seen = look(pair.device());
        pair.cut(Survival::Nothing);
        assert_eq!(pair.mount(), MountPath::Behind);
        assert_eq!(look(pair.device()), seen, "after a cut, buffer {buffer}");
        pair.agrees();
        pair.device().close().unwrap();
        assert_eq!(pair.mount(), MountPath::Memory);
        assert_eq!(look(pair.device()), seen, "closed, buffer {buffer}");
        pair.agrees();
    }
}

#[test]
fn the_memory_of_another_volume_is_attached_only_to_be_emptied() {
    let pair = used(64, 64 << 10, 50, MemoryOptions::default());
    let seen = look(pair.device());
    let foreign = {
        let (nand, other) =
            (common::Shared::new(onode_media::Geometry { blocks: 64, ..common::SMALL }), memory(64 << 10));
        let options = onode_flash::FormatOptions { uuid: [9; 16], ..Default::default() };
        let (mount, beside) = Default::default();
        let made = onode_flash::FlashDevice::format_beside(nand, other.clone(), &options, &mount, &beside).unwrap();
        made.close().unwrap();
        other
    };
    let before = foreign.image();
    Attach::detach(pair.device()).unwrap();
    pair.device().set_finder(Arc::new(There(foreign.clone(), MemoryOptions::default())));
    assert_eq!(Attach::attach(pair.device(), false).unwrap_err().kind, ErrorKind::WrongPart);
    assert_eq!(foreign.image(), before);
    Attach::attach(pair.device(), true).unwrap();
    assert_eq!(look(pair.device()), seen);
    assert_eq!(pair.device().compare_memory().unwrap(), Vec::<String>::new());
    // One that is too small is refused, and the volume goes on without.
    Attach::detach(pair.device()).unwrap();
    let small = There(memory(1 << 10), MemoryOptions::default());
    pair.device().set_finder(Arc::new(small));
    assert_eq!(Attach::attach(pair.device(), true).unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(look(pair.device()), seen);
}
