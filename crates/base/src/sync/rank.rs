//! The one order of locks: who holds a lock takes only locks that come later in this table.
//!
//! Locks of one rank are taken together only by a number, the lowest first. Whoever tries a lock
//! and does not wait is free to.

/// Where a lock stands.
pub trait Rank {
    /// Its number in the table; `None` if any lock may be held while any other is taken.
    const ORDER: Option<u16>;
    /// What people call it.
    const NAME: &'static str;
}

macro_rules! ranks {
    ($($(#[$doc:meta])* $rank:ident = $name:literal,)*) => {
        enum Order {
            $($rank,)*
        }

        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $rank;

            impl Rank for $rank {
                const ORDER: Option<u16> = Some(Order::$rank as u16);
                const NAME: &'static str = $name;
            }
        )*
    };
}

ranks! {
    /// The heap that the calls of paper 2 use.
    CHeap = "c-heap",
    /// Open files of a program in C.
    CFiles = "c-files",
    /// Mapped files of a program in C.
    CMappings = "c-mappings",
    /// The image of an arena that a program in C froze.
    CFrozen = "c-frozen",
    /// What an arena knows of its checkpoints.
    ArenaState = "arena-state",
    /// The tables of an arena's blocks.
    ArenaBlocks = "arena-blocks",
    /// Arenas that are open.
    HeapArenas = "heap-arenas",
    /// Files that are looked at as memory.
    HeapLooks = "heap-looks",
    /// Whether a heap is open.
    HeapGate = "heap-gate",
    /// Programs whose requests come to one processor.
    RingPrograms = "ring-programs",
    /// Scheduling of threads that serve a mount.
    RingPolicies = "ring-policies",
    /// Late answers for a ring.
    RingLetters = "ring-letters",
    /// Files whose capabilities the kernel took away.
    MountDisarmed = "mount-disarmed",
    /// Files of which the kernel keeps content.
    MountFilled = "mount-filled",
    /// What hangs in the server of a mount.
    WatchHanging = "watch-hanging",
    /// What came of commands for transactions.
    MountAnswers = "mount-answers",
    /// Streams that a mount sends.
    MountSends = "mount-sends",
    /// One stream that a mount sends.
    MountSend = "mount-send",
    /// Transactions of users that are open on a volume.
    TransactionsOpen = "transactions-open",
    /// Who uses a transaction of a user.
    TransactionUse = "transaction-use",
    /// Snapshots of a volume that are looked at.
    SnapshotsOpen = "snapshots-open",
    /// Clones of a volume that are used.
    ClonesOpen = "clones-open",
    /// How far a scrub of a volume has come.
    FileSystemScrub = "fs-scrub",
    /// All that a file system knows.
    FileSystemState = "fs-state",
    /// What a transaction of a user has changed.
    StagedView = "staged-view",
    /// Who changes a device of which there are transactions.
    StagedChanging = "staged-changing",
    /// Objects that only transactions see.
    StagedListed = "staged-listed",
    /// What was changed while transactions are open.
    StagedWatch = "staged-watch",
    /// Who changes objects of a shard.
    ServiceChanging = "service-changing",
    /// Compressed content of a shard's objects.
    ServiceContent = "service-content",
    /// What is known of compressed content.
    ServiceKnown = "service-known",
    /// Who changes the slots of keys of directories.
    SealSlots = "seal-slots",
    /// Who changes sealed objects of a shard.
    SealChanging = "seal-changing",
    /// Sealed content of a shard's objects.
    SealContent = "seal-content",
    /// What is known of sealed content.
    SealKnown = "seal-known",
    /// Keys of directories that are unlocked.
    SealKeys = "seal-keys",
    /// Snapshots of a device, and who uses it meanwhile.
    SnapshotRecords = "snapshot-records",
    /// Who changes objects of a shard of which there are snapshots.
    SnapshotChanging = "snapshot-changing",
    /// Content of a shard's objects that goes to versions.
    SnapshotContent = "snapshot-content",
    /// What is known of versions.
    SnapshotKnown = "snapshot-known",
    /// Numbers of objects that are made in a clone.
    CloneIds = "clone-ids",
    /// Who changes authenticated objects, or looks at those of which nothing is known.
    SumChanging = "sum-changing",
    /// What is known of sums over objects.
    SumKnown = "sum-known",
    /// Who changes what a pool holds.
    PoolRecord = "pool-record",
    /// Content of some objects of a pool.
    PoolContent = "pool-content",
    /// Which members of a pool have what.
    PoolStandings = "pool-standings",
    /// The device in working memory.
    RamState = "ram-state",
    /// How far flushes of flash have come.
    FlashSyncs = "flash-syncs",
    /// The state of flash.
    FlashState = "flash-state",
    /// One read of flash that goes on.
    FlashReading = "flash-reading",
    /// Reads of flash that go on.
    FlashPins = "flash-pins",
    /// Pages of flash that were read.
    FlashPages = "flash-pages",
    /// Who takes a step of a disk that is replaced.
    TierReplacing = "tier-replacing",
    /// How two disks find a fast one.
    TierFinder = "tier-finder",
    /// The right to write to the big disk.
    TierHome = "tier-home",
    /// The log of two disks.
    TierLog = "tier-log",
    /// The state of two disks.
    TierState = "tier-state",
    /// Who brings waiting content to the big disk.
    TierWriting = "tier-writing",
    /// Content that waits for the big disk.
    TierWaiting = "tier-waiting",
    /// The big disk.
    TierBig = "tier-big",
    /// The fast disk.
    TierFast = "tier-fast",
    /// What became of a disk that was replaced.
    TierReplaced = "tier-replaced",
    /// The state of memory, after the lock between processes.
    MemoryState = "scm-state",
    /// Named spaces of a memory.
    Spaces = "spaces",
    /// Which disks are used as one.
    MediumJoined = "medium-joined",
    /// Flushes of a medium, and whether one failed.
    MediumFlushes = "medium-flushes",
    /// Who makes stores to a medium durable, or makes it longer.
    MediumWork = "medium-work",
    /// Content of a medium in working memory.
    MediumContent = "medium-content",
    /// What a medium keeps in mind for a moment: counters, buffers, recordings, planned faults.
    MediumNotes = "medium-notes",
    /// A clock that is set by hand.
    Clock = "clock",
}

/// Of a lock that may be taken whatever is held, and held whatever is taken: for tests and the
/// benches around a device, which know what they call.
#[derive(Debug)]
pub struct Free;

impl Rank for Free {
    const ORDER: Option<u16> = None;
    const NAME: &'static str = "free";
}
