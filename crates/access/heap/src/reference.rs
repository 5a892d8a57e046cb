//! Pointers that can be stored: they count from the start of the memory and hold wherever it is mapped.

use crate::heap::Heap;
use std::marker::PhantomData;

/// Values that can lie in memory that another program, or another run, looks at.
///
/// # Safety
/// Every bit pattern is a value, the layout is fixed (`repr(C)` or transparent), and there is no pointer, reference or
/// drop in it other than [`Ref`].
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: a number.
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

// SAFETY: an array of plain values is one.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: a number, whatever it points to.
unsafe impl<T: 'static> Plain for Ref<T> {}

/// A pointer to a `T` in the memory of a heap, or to nothing. It is 8 bytes and may be stored in the memory itself.
#[repr(transparent)]
pub struct Ref<T> {
    address: u64,
    target: PhantomData<fn() -> T>,
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Ref<T> {}

impl<T> std::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ref({:#x})", self.address)
    }
}

impl<T> Default for Ref<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> Ref<T> {
    /// Points to nothing.
    pub const NULL: Self = Self { address: 0, target: PhantomData };

    /// Points to the `T` at an address of the memory; address 0 holds nothing.
    #[must_use]
    pub const fn at(address: u64) -> Self {
        Self { address, target: PhantomData }
    }

    /// Where it points, in bytes from the start of the memory.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Whether it points to nothing.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }
}

impl<T: Plain> Ref<T> {
    fn checked(self, heap: &Heap) -> Option<*mut T> {
        let fits = heap
            .block_of(self.address)
            .is_some_and(|(start, bytes)| self.address - start + size_of::<T>() as u64 <= bytes);
        let aligned = self.address.is_multiple_of(align_of::<T>() as u64);
        (!self.is_null() && fits && aligned).then(|| heap.pointer(self.address).cast().as_ptr())
    }

    /// The value pointed to; `None` if it points to nothing, or not into a block.
    #[must_use]
    pub fn get(self, heap: &Heap) -> Option<T> {
        let pointer = self.checked(heap)?;
        // SAFETY: the bytes lie within a live block and are aligned, and every bit pattern is a `T`.
        Some(unsafe { pointer.read_volatile() })
    }

    /// Replaces the value pointed to; false if it points to nothing, or not into a block.
    pub fn set(self, heap: &Heap, value: T) -> bool {
        let pointer = self.checked(heap);
        if let Some(pointer) = pointer {
            // SAFETY: as in `get`.
            unsafe { pointer.write_volatile(value) };
        }
        pointer.is_some()
    }
}
