//! Pointers that can be stored: they count from the start of the memory and hold wherever it is
//! mapped.

use crate::heap::Heap;
use std::marker::PhantomData;
use std::ptr::NonNull;

mod sealed {
    /// Only memories of this crate keep what references rely on.
    pub trait Sealed {}
    impl Sealed for crate::heap::Heap {}
    impl Sealed for crate::checkpoint::Arena {}
}

/// Memory with blocks in it: a [`Heap`] or an [`Arena`](crate::Arena).
pub trait BlockMemory: sealed::Sealed {
    /// Start and length of the block that holds an address.
    fn block_at(&self, address: u64) -> Option<(u64, u64)>;

    /// Where an address is in this process. It has to lie in a block.
    #[doc(hidden)]
    fn place(&self, address: u64) -> NonNull<u8>;
}

impl BlockMemory for Heap {
    fn block_at(&self, address: u64) -> Option<(u64, u64)> {
        self.block_of(address)
    }

    fn place(&self, address: u64) -> NonNull<u8> {
        self.pointer(address)
    }
}

/// Values that can lie in memory that another program, or another run, looks at. `#[derive(Plain)]`
/// makes a structure one and refuses those that cannot be.
///
/// ```
/// use onode_heap::{Plain, Ref};
///
/// #[derive(Clone, Copy, Plain)]
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     next: Ref<Node>,
/// }
/// ```
///
/// Padding holds whatever was there before:
/// ```compile_fail
/// # use onode_heap::Plain;
/// #[derive(Clone, Copy, Plain)]
/// #[repr(C)]
/// struct Padded {
///     small: u8,
///     large: u64,
/// }
/// ```
///
/// A pointer means nothing elsewhere, and neither does a reference:
/// ```compile_fail
/// # use onode_heap::Plain;
/// #[derive(Clone, Copy, Plain)]
/// #[repr(C)]
/// struct Pointing {
///     at: *const u8,
/// }
/// ```
///
/// Without a fixed layout the compiler orders the fields as it likes:
/// ```compile_fail
/// # use onode_heap::Plain;
/// #[derive(Clone, Copy, Plain)]
/// struct Unordered {
///     value: u64,
/// }
/// ```
///
/// # Safety
/// Every bit pattern is a value, the layout is fixed (`repr(C)` or transparent) and without
/// padding, and there is no pointer, reference or drop in it other than [`Ref`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot lie in memory that others look at",
    label = "this is not `Plain`",
    note = "numbers, arrays of numbers, `Ref<T>` and structures with `#[derive(Clone, Copy, Plain)] #[repr(C)]` are; \
            pointers, references, `bool`, `char`, `String`, `Vec`, `Box` and enums are not"
)]
pub unsafe trait Plain: Copy + 'static {
    /// Tells types of one size apart: from names and layouts of the fields. 0 for one that does not
    /// say.
    const LAYOUT: u64 = 0;
}

/// The number that tells a layout from others: of names and of the layouts of parts (FNV-1a, 64
/// bits).
#[doc(hidden)]
#[must_use]
pub const fn layout_of(names: &[&str], parts: &[u64]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut i = 0;
    while i < names.len() {
        let bytes = names[i].as_bytes();
        let mut j = 0;
        while j < bytes.len() {
            hash = (hash ^ bytes[j] as u64).wrapping_mul(PRIME);
            j += 1;
        }
        hash = (hash ^ 0xff).wrapping_mul(PRIME);
        i += 1;
    }
    i = 0;
    while i < parts.len() {
        let mut shift = 0;
        while shift < 64 {
            hash = (hash ^ (parts[i] >> shift & 0xff)).wrapping_mul(PRIME);
            shift += 8;
        }
        i += 1;
    }
    hash
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: a number.
            unsafe impl Plain for $type {
                const LAYOUT: u64 = layout_of(&[stringify!($type)], &[]);
            }
        )*
    };
}

plain!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

// SAFETY: an array of plain values is one.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {
    const LAYOUT: u64 = layout_of(&["[]"], &[N as u64, T::LAYOUT]);
}
// SAFETY: a number, whatever it points to.
unsafe impl<T: 'static> Plain for Ref<T> {
    // What it points to is not part of it: lists would have no layout.
    const LAYOUT: u64 = layout_of(&["Ref"], &[]);
}

/// A pointer to a `T` in the memory of a heap, or to nothing. It is 8 bytes and may be stored in
/// the memory itself.
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
    fn checked(self, memory: &impl BlockMemory) -> Option<*mut T> {
        // Has the compiler prove what the layout relies on, for types with parameters too.
        let _ = const { T::LAYOUT };
        let fits = memory
            .block_at(self.address)
            .is_some_and(|(start, bytes)| self.address - start + size_of::<T>() as u64 <= bytes);
        let aligned = self.address.is_multiple_of(align_of::<T>() as u64);
        (!self.is_null() && fits && aligned).then(|| memory.place(self.address).cast().as_ptr())
    }

    /// The value pointed to; `None` if it points to nothing, or not into a block.
    #[must_use]
    pub fn get(self, memory: &impl BlockMemory) -> Option<T> {
        let pointer = self.checked(memory)?;
        // SAFETY: the bytes lie within a live block and are aligned, and every bit pattern is a
        // `T`.
        Some(unsafe { pointer.read_volatile() })
    }

    /// Replaces the value pointed to; false if it points to nothing, or not into a block.
    pub fn set(self, memory: &impl BlockMemory, value: T) -> bool {
        let pointer = self.checked(memory);
        if let Some(pointer) = pointer {
            // SAFETY: as in `get`.
            unsafe { pointer.write_volatile(value) };
        }
        pointer.is_some()
    }
}
