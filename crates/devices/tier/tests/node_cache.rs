//! Memory for nodes of the tree is bounded, whatever is looked at.

use crate::common::Alone;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

const CACHE_BYTES: u64 = 256 << 10;
const OBJECTS: u64 = 20_000;

fn node_bytes(device: &TierDevice) -> u64 {
    let inspect = device.inspect().expect("two disks can be looked into").inspection();
    inspect.ram.iter().find(|(name, _)| *name == "tree_nodes").expect("nodes are counted").1
}

/// `ls -lR` over 200,000 files ended a server with 64 MiB of memory: nodes that were only read left
/// memory with the next commit, and there was none.
#[test]
fn reading_alone_does_not_fill_memory_with_nodes() {
    let options = MountOptions { node_cache_bytes: CACHE_BYTES, ..MountOptions::default() };
    let mut alone = Alone::with(32 << 20, 1 << 20, options);
    let device = alone.device.as_ref().expect("mounted");
    let inode = AttributeKey::new(AttributeKind::INODE, 0);
    let first = device.reserve_ids(OBJECTS).unwrap().0;
    for some in (first..first + OBJECTS).collect::<Vec<_>>().chunks(100) {
        let mut transaction = Transaction::new();
        for &object in some {
            transaction.create(ObjectId(object), Hints::default());
            transaction.set_attribute(ObjectId(object), inode, vec![7; 100]);
        }
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    device.close().unwrap();
    alone.device = None;
    let device = TierDevice::mount(Box::new(alone.big.clone()), None, &alone.options).unwrap();
    let mut most = 0;
    for object in first..first + OBJECTS {
        assert_eq!(device.attribute(ObjectId(object), inode).unwrap().as_deref(), Some(&[7; 100][..]));
        device.stat(ObjectId(object)).unwrap();
        most = most.max(node_bytes(&device));
    }
    // A walk adds a node of each level before the next look.
    let allowed = CACHE_BYTES + CACHE_BYTES / 8 + (16 << 12);
    assert!(most <= allowed, "{most} bytes of nodes are in memory, and {CACHE_BYTES} are meant to be");
    assert!(most > CACHE_BYTES / 2, "the cache holds {most} bytes, so this shows nothing");
}
