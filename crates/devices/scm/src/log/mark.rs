//! The mark: how far the log was durable, told after each fence.
//!
//! Nothing behind the last record says that it was durable, should it be damaged later. So whoever
//! has fenced stores the number of the next record in a line of its own. It is not flushed: after a
//! power cut it may be an older one, or none, but never more than was durable; a process that dies
//! leaves it as it is.

use onode_media::Pmem;

/// Where it stands, in the page of the first superblock.
const MARK: u64 = 512;
const WORDS: u64 = 3;

/// What says that the other words belong together.
const fn seal_of(salt: u64, session: u64, sequence: u64) -> u64 {
    let mixed = (sequence ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ session;
    mixed.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Records of the session below this number are durable.
pub(crate) fn store<P: Pmem + ?Sized>(memory: &P, salt: u64, session: u64, sequence: u64) {
    memory.store(MARK, sequence);
    memory.store(MARK + 8, session);
    memory.store(MARK + 16, seal_of(salt, session, sequence));
}

/// The number that a session, or a later one, has left; 0 if there is none.
pub(crate) fn load<P: Pmem + ?Sized>(memory: &P, salt: u64, session: u64) -> u64 {
    let [sequence, of, seal] = [0, 8, 16].map(|word| memory.load(MARK + word));
    if of >= session && seal == seal_of(salt, of, sequence) { sequence } else { 0 }
}

/// Makes it say nothing.
pub(crate) fn clear<P: Pmem + ?Sized>(memory: &P) {
    (0..WORDS).for_each(|word| memory.store(MARK + word * 8, 0));
    memory.flush(MARK, WORDS * 8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_media::sim::SimPmem;

    #[test]
    fn a_mark_counts_for_its_session_and_whole() {
        let memory = SimPmem::new(4096, Default::default());
        clear(&memory);
        assert_eq!(load(&memory, 7, 0), 0);
        store(&memory, 7, 3, 100);
        assert_eq!([load(&memory, 7, 3), load(&memory, 7, 2)], [100, 100]);
        assert_eq!([load(&memory, 7, 4), load(&memory, 8, 3)], [0, 0]);
        memory.store(MARK, 101);
        assert_eq!(load(&memory, 7, 3), 0);
    }
}
