//! Bugs planted on purpose, to prove that the crash explorer finds such bugs.
//!
//! With the feature `mutants` one of them can be switched on for the whole process; without it
//! [`is_planted`] is a constant `false` and the code behind it is not compiled in. A line that asks
//! for a bug stands right where a programmer would have made it.

/// Declares the bugs once: the enum, and the list of all of them.
macro_rules! bugs {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// The bugs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Bug {
            $($(#[$about])* $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

bugs! {
    /// snapshots: nothing is kept of what changes.
    SnapshotKeepsNothing,
    /// snapshots: what is kept is committed before the change that it is kept for.
    SnapshotKeptBefore,
    /// snapshots: what a deleted one kept is removed, though the one before it needs it.
    SnapshotBeforeForgotten,
    /// clones: a block of which a part is written is not filled with what was there.
    CloneBlockNotFilled,
    /// clones: nothing says that content of the snapshot was taken away.
    CloneHoleForgotten,
    /// clones: nothing says that an attribute of the snapshot was removed.
    CloneAbsenceForgotten,
    /// clones: numbers of objects that are handed out are not kept.
    CloneNumbersForgotten,
    /// clones: what a clone has is listed by a transaction of its own.
    CloneListedLater,
    /// streams: what came behind the end that an object had is not looked at.
    StreamTailForgotten,
    /// streams: attributes that an object did not have are not looked at.
    StreamAbsenceForgotten,
    /// flash: a sync returns before the journal page is programmed.
    AckBeforeProgram,
    /// flash: the journal page is programmed, the content it refers to later.
    RecordBeforeData,
    /// flash: a checkpoint does not wait for content.
    CheckpointBeforeContent,
    /// flash: the superblock is programmed before the tree and the table it refers to.
    SuperblockBeforeIndex,
    /// flash: page checksums are not verified.
    ChecksumIgnored,
    /// flash: pages of an earlier life of a segment are believed.
    SequenceIgnored,
    /// flash: a block that reads as erased is not erased before use.
    ErasedTrusted,
    /// flash: content in the last page before a cut stays there.
    SuspectStays,
    /// flash: what the newest checkpoint no longer needs is reused before that checkpoint is
    /// written.
    HeldReused,
    /// flash: the block with the newest superblock is the next to be erased.
    NewestErased,
    /// flash: a volume that grows tells its new size before its segment table has it.
    GrownTooEarly,
    /// flash: a volume that has grown says so at its next checkpoint.
    GrownUnrecorded,
    /// flash: a volume that shrinks leaves what lies behind its new end where it is.
    ShrunkUnmoved,
    /// flash: a volume that shrinks tells its new size before its segment table ends there.
    ShrunkTooEarly,
    /// flash: a session begins without sequence numbers of its own.
    SessionUnnumbered,
    /// flash: a data segment is opened without a word in the journal.
    OpenedUnlogged,
    /// flash: a transaction becomes two records.
    TransactionSplit,
    /// flash: a replay leaves the last record out.
    LastRecordDropped,
    /// flash: a mount begins to hand out object ids from the start.
    IdsForgotten,
    /// flash: what a truncation cuts off comes back when the file grows.
    TruncateKeepsBytes,
    /// flash: the cleaner frees a segment without moving what is on it.
    CleanerMovesNothing,
    /// flash: the cleaner looks for content only where it was written, and frees what a version has
    /// of it.
    CleanerForgetsVersions,
    /// flash: a failed program is taken for a good one.
    FailedProgramIgnored,
    /// flash: content of a failed program is not moved; memory still has it.
    StrandedForgotten,
    /// flash: records are programmed after the content that they place could not be.
    RecordsOutliveContent,
    /// flash: after a failure the journal goes on where the chain on the medium says it goes on.
    ReservationKept,
    /// flash: a segment in which a program failed is free at once.
    FailedSegmentReused,
    /// flash: a journal page without room for an echo is not counted among the pages to be
    /// repeated.
    EchoSkipped,
    /// flash: a mount takes the repeated records of a page for those of the page at the other end.
    EchoReversed,
    /// flash: a journal page without records ends a replay.
    MixedPageEnds,
    /// flash: a page with a record in its spare area is not moved, though the cut may have hit it.
    SuspectRunStays,
    /// flash: a patch leaves out what the new value has more than the old one.
    PatchKeepsLength,
    /// flash: an object that is gone takes over its last access time, and is there again.
    AccessTimeOfRemoved,
    /// flash: a sync does not wait for access times.
    AccessTimesUnsynced,
    /// flash: entries move to the node before, its parent still names the old border.
    PackedKeyKept,
    /// flash: content that waits for its page to fill is not copied to the journal.
    WaitingNotCopied,
    /// flash: a replay leaves content to a page that may never have been programmed.
    WaitingForgotten,
    /// flash: a mount leaves out what the newest checkpoint took over of the journal without
    /// applying it.
    DeferredForgotten,
    /// flash: what waits for the new life of an object is applied before the end of the old one.
    DeferredLivesMixed,
    /// flash: an object that is made again takes over when the one before was read.
    AccessTimeOfRemade,
    /// flash: rows of pages get no parity.
    ParityOmitted,
    /// flash: a row begins with the parity of the row before.
    ParityRowMixed,
    /// flash: the last row of a segment gets no parity.
    ParityLastRowOmitted,
    /// flash: parity is computed without the trailers of pages.
    ParityWithoutTrailers,
    /// flash: content goes where it usually does, whatever parity its object wishes.
    WishIgnored,
    /// flash: what was written before its object wished another parity stays where it is.
    WishForgotten,
    /// flash: a crash forgets that content is to move for another parity.
    WishUnstored,
    /// flash: the record of an opened segment says nothing of its parity.
    WishOpenedUnlogged,
    /// flash: a damaged page is not looked for in its row.
    ParityUnused,
    /// flash: what was found again from parity stays where it was.
    RebuiltNotMoved,
    /// scm: a durable commit does not wait for its record.
    ScmRecordNotFenced,
    /// scm: a record says nothing of the content that was written before it, and nobody waits for
    /// that.
    ScmContentNotChecked,
    /// scm: a recovery leaves out what the last records were to put in place.
    ScmPutsForgotten,
    /// scm: a superblock names the log's new tail before what was repeated is durable.
    ScmTailBeforeRepeat,
    /// scm: blocks that a transaction gives up are free before its record is durable.
    ScmHeldReused,
    /// scm: a mount does not count up the session.
    ScmSessionNotCounted,
    /// scm: bytes are put in place before the record that has them is durable.
    ScmPutBeforeFence,
    /// scm: a recovery does not check what was written for the last records.
    ScmChecksSkipped,
    /// scm: the record of a transaction that removes an object does not say so.
    ScmRemovedDropped,
    /// scm: the cleaner of the log does not repeat where the bytes of objects lie.
    ScmCleanerForgetsExtents,
    /// scm: the checksum of a record does not name its session.
    ScmOldSessionAccepted,
    /// scm: bytes that a recovery would still check are changed.
    ScmDoubtIgnored,
    /// scm: a recovery takes the first records of a transaction without its last.
    ScmIncompleteKept,
    /// scm: content is written and not flushed.
    ScmContentNotFlushed,
    /// scm: a recovery leaves out zeros that the last records were to put in place.
    ScmZerosForgotten,
    /// flash+scm: a sync does not wait for the write buffer.
    BesideUnfenced,
    /// flash+scm: a mount leaves out the page that the write buffer has.
    BesideHeldForgotten,
    /// flash+scm: an anchor may be durable before what it names.
    BesideAnchorFirst,
    /// transactions: the word that one is committed comes before what it consists of.
    StagedPointFirst,
    /// transactions: one that is too large for the device goes there in parts.
    StagedInParts,
    /// transactions: how far one is put in place is noted before it is there.
    StagedProgressAhead,
    /// transactions: hidden objects that a cut left behind stay.
    StagedLeftoversStay,
    /// transactions: a mount leaves out the last step of what it puts in place.
    StagedLastStepDropped,
    /// transactions: hidden objects are not listed.
    StagedHiddenUnlisted,
    /// transactions: who reads does not wait while one is put in place.
    StagedGateOpen,
    /// transactions: changes of others are not looked for.
    StagedConflictIgnored,
    /// tier: a superblock may be durable before what it refers to.
    TierSuperblockFirst,
    /// tier: blocks given up are handed out before the checkpoint.
    TierHeldReused,
    /// tier: both superblocks are written without a flush between them.
    TierSuperblocksAtOnce,
    /// tier: what the fast log has counts as durable before it was flushed.
    TierFastNotFlushed,
    /// tier: what the big log has counts as durable before it was flushed.
    TierBigNotFlushed,
    /// tier: a mount leaves out what only the fast log has.
    TierSurplusDropped,
    /// tier: a copy is believed by the place of its original alone.
    TierCopyBelieved,
    /// tier: a record names content that may still be in the disk's cache.
    TierRecordBeforeContent,
    /// tier: the same, if the fast disk alone has to have the record.
    TierFastRecordBeforeContent,
    /// tier: the big disk is told that blocks hold nothing of value before the checkpoint that does
    /// without them is durable.
    TierDiscardEarly,
    /// tier: memory lets go of a block that was changed since the record that has it.
    TierSpilledStale,
    /// tier: a change of a part of a block that only the log has takes the rest for zeros.
    TierSpilledBlank,
    /// tier: a volume that shrinks leaves what lies behind its new end where it is.
    TierShrunkUnmoved,
    /// tier: the places of content that changes its object are given up.
    TierMovedGivenUp,
    /// tier: content without a place does not change its object.
    TierMovedPendingStays,
    /// flash: a segment that is read without the lock is erased and opened anew.
    ManyPinIgnored,
    /// flash: a read lets go of its segments before it has read them.
    ManyPinDropped,
    /// flash: a read pins the first of its segments only.
    ManyPinOfOne,
    /// flash: when a read is over, others lose the same segments.
    ManyPinsTogether,
    /// flash: a flush counts for who came while it went on.
    ManySyncCoversLater,
    /// tier: a checkpoint counts for what was committed while it went on.
    ManyTierCheckpointCovers,
    /// tier: a sync forgets what was committed while it waited for the disks.
    ManyTierSyncForgets,
    /// tier: blocks are handed out while the disk is told that they hold nothing of value.
    ManyTierDiscardHandedOut,
    /// tier: a read looks for what is in memory when it has read the disks.
    ManyTierMemoryLater,
    /// tier: what was read from the fast disk beside others counts although they moved it.
    ManyTierCopyBelieved,
    /// tier: what was read for a walk counts although the tree is another one meanwhile.
    ManyTierNodeBelieved,
    /// fs: fsync does not wait for the device.
    FsyncWithoutSync,
    /// fs: a change of names is two transactions.
    NamesInTwo,
    /// fs: files without a name stay after a cut.
    OrphansStay,
    /// fs: a rename over another file does not write the new content first.
    RenameBeforeData,
    /// fs: a close after a rewrite does not write the new content.
    RewriteNotWritten,
    /// fs: write-through does not wait for the device.
    WriteThroughBuffered,
    /// scm: in the mode `meta` a sync does not flush the content that waits for it.
    ScmMetaNotFlushed,
    /// scm: in the mode `meta` what a file system knows of its files waits to be flushed as content
    /// does.
    ScmMetaNamesBuffered,
    /// scm: in the mode `sync` an overwrite returns before it is durable.
    ScmOverwriteNotFenced,
    /// scm: content is overwritten where a recovery may put older bytes once more.
    ScmOverwritePutAgain,
    /// scm: the content of a block that becomes a file is not flushed.
    ScmPublishNotFlushed,
    /// scm: nobody waits for that content before the record.
    ScmPublishNotFenced,
    /// scm: a block that became a file stays with the lease of its process.
    ScmPublishLeased,
    /// scm: a file's block is memory before the record of that is durable.
    ScmWithdrawBuffered,
    /// scm: a sweep of a dead process's lease frees what became files.
    ScmSweepPublished,
    /// scm: the word of a slot is stored and not flushed.
    ScmSlotNotFlushed,
    /// scm: a recovery does not look at what slots hold.
    ScmSlotsForgotten,
    /// flash: on a full volume what only frees is refused like anything else.
    FullFlashUnlinkRefused,
    /// flash: what is removed gives back half of its space.
    FullFlashSpaceLeaked,
    /// scm: on a full volume what only frees is refused like anything else.
    FullScmUnlinkRefused,
    /// scm: blocks that an object gave up stay in use.
    FullScmSpaceLeaked,
    /// scm: nothing is kept back for what frees and for the cleaner of the log.
    FullScmReserveIgnored,
    /// tier: on a full volume what only frees is refused like anything else.
    FullTierUnlinkRefused,
    /// tier: nothing is kept back for the checkpoint that frees.
    FullTierReserveIgnored,
    /// tier: blocks that are not needed any more are never free again.
    FullTierSpaceLeaked,
    /// flash: the checksums of pages with content are not compared.
    DamagedFlashDataBelieved,
    /// flash: the checksums of journal pages are not compared.
    DamagedFlashJournalBelieved,
    /// flash: the checksums of pages of the tree are not compared.
    DamagedFlashIndexBelieved,
    /// flash: the check does not tell of content that cannot be read.
    DamagedFlashCheckSkips,
    /// flash+scm: the checksums of parts of the index in the memory are not compared.
    DamagedBesideBlobBelieved,
    /// flash+scm: the checksums of entries of the write buffer are not compared.
    DamagedBesideBufferBelieved,
    /// scm: the checksums of records are not compared.
    DamagedScmRecordBelieved,
    /// scm: the end of the log that is found is not compared with what was promised.
    DamagedScmEndNotCompared,
    /// tier: the checksums of blocks with content are not compared.
    DamagedTierBlockBelieved,
    /// tier: the checksums of nodes of the tree are not compared.
    DamagedTierNodeBelieved,
    /// tier: the checksums of records of both logs are not compared.
    DamagedTierRecordBelieved,
    /// tier: a sound header of a torn record proves nothing.
    DamagedTierHeaderIgnored,
    /// services: in the mode `meta` of a memory what a service keeps in place of content may be
    /// durable late.
    ServicesFramesLate,
    /// services: the checksum of a compressed chunk is not compared.
    ServicesChecksumIgnored,
    /// services: what a truncation cuts off a compressed chunk comes back when the object grows.
    ServicesCutForgotten,
    /// services: the attribute that says what is compressed is a transaction of its own.
    ServicesMapInTwo,
    /// services: a change of a part of a compressed chunk takes the rest for zeros.
    ServicesRestForgotten,
    /// services: a hole in a compressed chunk reads as what was there.
    ServicesHoleForgotten,
    /// services: a reader does not wait for who compresses what it reads.
    ServicesReadBeside,
    /// services: a sealed block is taken for what was sealed, whatever its tag says.
    EncryptedTagIgnored,
    /// services: what a truncation cuts off a sealed block comes back when the object grows.
    EncryptedCutForgotten,
    /// services: a hole in a sealed block reads as what was there.
    EncryptedHoleForgotten,
    /// services: a change of a part of a sealed block takes the rest for zeros.
    EncryptedRestForgotten,
    /// services: the sums of an authenticated volume are a transaction of their own.
    AuthenticatedInTwo,
    /// services: an older attribute of an authenticated object is taken for the last one.
    AuthenticatedOldTaken,
    /// services: names in a directory with a key are sealed with that of the volume.
    DirectoryNamesOpen,
    /// services: what a key of a directory opened once can be read after it was locked.
    DirectoryKeyRemembered,
    /// services: data keys of objects in a directory with a key are not wrapped by it.
    DirectoryKeyUnwrapped,
    /// services: the attributes that tell how to open content are a transaction of their own.
    EncryptedMapInTwo,
    /// services: a mount seals before its number is on the medium.
    EncryptedEpochLate,
    /// services: the nonce of a block is used for the next one, too.
    EncryptedNonceTwice,
    /// services: a sealed block is bound to no place of its object.
    EncryptedPlaceIgnored,
    /// services: a reader does not wait for who seals what it reads.
    EncryptedReadBeside,
    /// services: the second part of a long attribute stays when the attribute is shorter.
    EncryptedPartStays,
    /// services: an attribute that is longer when it is sealed is not paid for on a full device.
    EncryptedDebtForgotten,
    /// services: what a transaction changed is recorded by a transaction of its own.
    PoolRecordInTwo,
    /// services: a member of a pool that lacks changes of an object is read all the same.
    PoolLagBelieved,
    /// services: what changes while a member of a pool is away is not recorded.
    PoolChangesForgotten,
    /// services: damage on one member of a pool is told although another member has the bytes.
    PoolDamageTold,
    /// services: two members of a pool that both went on alone are taken for one history.
    PoolSplitMerged,
    /// services: a member of a pool that failed is left out and nobody records it.
    PoolFailureUnrecorded,
    /// services: a member of a pool that had no room for a change is taken to have it.
    PoolRefusalForgotten,
    /// services: a stream does not look at content whose holes only a service below knows.
    StreamServiceForgotten,
    /// services: members of a pool that may be full are not asked before another one has done a
    /// change.
    PoolFullNotAsked,
    /// services: a sync of a pool is one of its first member.
    PoolSyncOfOne,
    /// services: a member of a pool that lags by more than is recorded gets only what is recorded.
    PoolRecordTooShort,
}

#[cfg(feature = "mutants")]
static PLANTED: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(0);

/// What is planted: 0 for nothing.
#[cfg(feature = "mutants")]
const fn number(bug: Bug) -> u8 {
    bug as u8 + 1
}

/// Plants one bug, or none.
#[cfg(feature = "mutants")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, number), core::sync::atomic::Ordering::SeqCst);
}

/// Whether this bug is planted.
#[cfg(feature = "mutants")]
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(core::sync::atomic::Ordering::Relaxed) == number(bug)
}

/// Whether this bug is planted: never in this build.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}
