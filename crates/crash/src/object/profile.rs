//! Ways of using an object device, by name.

use crate::object::brim;

/// The name of the profile for devices that move content.
pub const VERSIONS: &str = "versions";

/// The name of the profile for volumes that take up more of their medium.
pub const GROWING: &str = "growing";

/// A way of using the device.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name in replay lines.
    pub name: &'static str,
    /// Calls of the first run.
    pub steps: u32,
    /// Most objects at a time.
    pub objects: u64,
    /// Most bytes of one write.
    pub write_bytes: u64,
    /// Most bytes of an object.
    pub object_bytes: u64,
    /// Most mutations of a transaction.
    pub mutations: u64,
    /// Durable commits, of 100.
    pub durable: u64,
    /// Clean close and mount, of 1,000 calls.
    pub remounts: u64,
    /// Background work, of 1,000 calls.
    pub maintains: u64,
    /// Share of the volume, in percent, that writes aim at; above 100 they go on until it is full.
    pub fill: u64,
    /// Attribute changes, of 100 mutations.
    pub attributes: u64,
    /// Access times rather than anything else, of 100 mutations.
    pub reads: u64,
    /// One mutation of so many removes an object, however few there are.
    pub removals: u64,
    /// Objects that are made again under the id of one that is gone, of 100 mutations.
    pub remakes: u64,
    /// Content that moves to a version of its object or back, of 100 mutations, on devices that can
    /// do that.
    pub moves: u64,
    /// Overwrites of what is there rather than anything else, of 100 mutations.
    pub overwrites: u64,
    /// Programs and erases that fail in the first run and what follows it, for every 100 erase
    /// blocks.
    pub failures: u64,
    /// Variants of damage tried at each operation; 0 for all.
    pub variants: usize,
}

const MIX: Profile = Profile {
    name: "mix",
    steps: 60,
    objects: 8,
    write_bytes: 1500,
    object_bytes: 6000,
    mutations: 4,
    durable: 60,
    remounts: 10,
    maintains: 10,
    fill: 40,
    attributes: 20,
    reads: 0,
    removals: 25,
    remakes: 0,
    moves: 0,
    overwrites: 20,
    failures: 0,
    variants: 0,
};

/// All profiles.
pub const PROFILES: [Profile; 14] = [
    MIX,
    // Few tiny commits: every case of an almost empty volume.
    Profile { name: "first", steps: 6, mutations: 2, write_bytes: 700, ..MIX },
    // Every commit waits; syncs are rare.
    Profile { name: "buffered", durable: 5, steps: 80, ..MIX },
    // Mostly closes and mounts.
    Profile { name: "cycles", remounts: 400, steps: 40, ..MIX },
    // Many attributes: a tree of several levels.
    Profile { name: "attributes", attributes: 90, objects: 5, steps: 200, fill: 60, variants: 4, ..MIX },
    // Objects are mostly read, and go while that is still to be noted down.
    Profile { name: "read", reads: 70, removals: 8, durable: 30, remounts: 20, steps: 120, variants: 4, ..MIX },
    // Objects are removed and made again under the same id, across checkpoints, mounts and the
    // cleaner.
    Profile {
        name: "remade",
        steps: 700,
        objects: 12,
        object_bytes: 4000,
        remakes: 25,
        attributes: 30,
        reads: 10,
        durable: 50,
        maintains: 30,
        fill: 75,
        variants: 2,
        ..MIX
    },
    // Content goes to versions before it is overwritten, and back, while the cleaner goes round.
    Profile {
        name: VERSIONS,
        steps: 700,
        objects: 24,
        write_bytes: 2200,
        object_bytes: 4000,
        mutations: 3,
        moves: 30,
        fill: 75,
        overwrites: 70,
        removals: 20,
        maintains: 30,
        variants: 2,
        ..MIX
    },
    // Contents of many pages.
    Profile { name: "large", write_bytes: 9000, object_bytes: 20_000, steps: 40, fill: 60, variants: 5, ..MIX },
    // Chips on which programs and erases fail.
    Profile { name: "failing", steps: 150, failures: 12, overwrites: 50, remounts: 20, variants: 3, ..MIX },
    // Overwrites until the cleaner has gone round the medium several times.
    Profile {
        name: "churn",
        steps: 1600,
        objects: 30,
        write_bytes: 2200,
        object_bytes: 4000,
        mutations: 2,
        fill: 80,
        overwrites: 80,
        remounts: 2,
        variants: 2,
        ..MIX
    },
    // Full, and again full after removals.
    Profile {
        name: "full",
        steps: 400,
        objects: 60,
        write_bytes: 6000,
        object_bytes: 9000,
        mutations: 2,
        fill: 200,
        overwrites: 30,
        variants: 3,
        ..MIX
    },
    // Full, and then larger, or emptied and smaller, again and again.
    Profile {
        name: GROWING,
        steps: 240,
        objects: 60,
        write_bytes: 9000,
        object_bytes: 20_000,
        mutations: 2,
        durable: 40,
        remounts: 30,
        fill: 200,
        overwrites: 10,
        variants: 4,
        ..MIX
    },
    // Filled with files of a file system and emptied: what is done next is not drawn.
    Profile { name: brim::NAME, steps: 200, fill: 200, durable: 40, variants: 2, ..MIX },
];

/// The profile of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}
