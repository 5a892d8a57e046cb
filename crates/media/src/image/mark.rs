//! The marks that images and labels begin with: which others are one that was damaged.

/// So many bits of a mark may be wrong. One that somebody took away, as with zeros, or wrote
/// another one over, differs in more.
const WRONG_BITS_MAX: u32 = 4;

/// Whether `there` is `mark` but for some bits. That it is no mere likeness has to be known from
/// the checksum of what it begins.
pub(crate) fn is_nearly(there: &[u8; 8], mark: &[u8; 8]) -> bool {
    (u64::from_le_bytes(*there) ^ u64::from_le_bytes(*mark)).count_ones() <= WRONG_BITS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wrong_bits_are_damage_and_another_mark_is_none() {
        for mark in [b"ONODNAND", b"ONODBLOC"] {
            let mut there = *mark;
            there[3] ^= 0x40;
            there[7] ^= 0x81;
            assert!(is_nearly(mark, mark) && is_nearly(&there, mark));
            for other in [b"ONODTIER", b"ONODFAST", &[0; 8], &[0xff; 8]] {
                assert!(!is_nearly(other, mark));
            }
        }
    }
}
