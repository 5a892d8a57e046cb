//! Where an item of the log lies, in one word, as entries of the index hold it.
//!
//! While a transaction is in the making, some of its items have a number in place of an address.

/// Where an item lies: address and bytes in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub u64);

const ADDRESS_BITS: u32 = 47;
const PENDING: u64 = 1 << 63;

impl Place {
    pub(crate) const fn new(address: u64, bytes: u64) -> Self {
        Self(address | bytes << ADDRESS_BITS)
    }

    /// The item of this number in the batch of the running transaction.
    pub(crate) const fn pending(number: usize) -> Self {
        Self(PENDING | number as u64)
    }

    /// The number, if the item is not in the log yet.
    pub(crate) const fn as_pending(self) -> Option<usize> {
        if self.0 & PENDING != 0 { Some((self.0 & !PENDING) as usize) } else { None }
    }

    pub(crate) const fn address(self) -> u64 {
        self.0 & ((1 << ADDRESS_BITS) - 1)
    }

    pub(crate) const fn bytes(self) -> u64 {
        if self.0 & PENDING != 0 { 0 } else { self.0 >> ADDRESS_BITS }
    }
}
