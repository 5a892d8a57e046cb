//! The instructions of the processor that write a line back and that order stores.
#![allow(unsafe_code, reason = "instructions without a safe face")]

use crate::pmem::LINE_BYTES;

/// How this processor writes a line back to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writeback {
    /// Keeps the line in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Drops the line, in any order.
    #[cfg(target_arch = "x86_64")]
    Clflushopt,
    /// Drops the line, in order.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// Cleans the line to the point of persistence.
    #[cfg(target_arch = "aarch64")]
    DcCvap,
    /// Not at all; only the kernel can.
    #[cfg(not(target_arch = "x86_64"))]
    None,
}

impl Writeback {
    /// The best that this processor has.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_processor() -> Self {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
        match features {
            bits if bits >> 24 & 1 == 1 => Self::Clwb,
            bits if bits >> 23 & 1 == 1 => Self::Clflushopt,
            // Part of the architecture.
            _ => Self::Clflush,
        }
    }

    /// The best that this processor has.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn of_processor() -> Self {
        if std::arch::is_aarch64_feature_detected!("dpb") { Self::DcCvap } else { Self::None }
    }

    /// The best that this processor has.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn of_processor() -> Self {
        Self::None
    }

    /// Whether there is an instruction at all.
    #[allow(clippy::unused_self, reason = "on some architectures there always is one")]
    pub(super) const fn can(self) -> bool {
        #[cfg(not(target_arch = "x86_64"))]
        if matches!(self, Self::None) {
            return false;
        }
        true
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Clwb => "clwb",
            #[cfg(target_arch = "x86_64")]
            Self::Clflushopt => "clflushopt",
            #[cfg(target_arch = "x86_64")]
            Self::Clflush => "clflush",
            #[cfg(target_arch = "aarch64")]
            Self::DcCvap => "dc cvap",
            #[cfg(not(target_arch = "x86_64"))]
            Self::None => "none",
        }
    }

    /// Begins to write back the lines from `line`, the first byte of one, until `end`.
    ///
    /// # Safety
    /// The lines are mapped in this process, and the processor has the instruction.
    pub(super) unsafe fn lines(self, line: *const u8, end: *const u8) {
        let mut line = line;
        while line < end {
            // SAFETY: the caller says that the line is mapped and the instruction there is; none of
            // them changes what the memory holds.
            unsafe {
                match self {
                    #[cfg(target_arch = "x86_64")]
                    Self::Clwb => core::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                    #[cfg(target_arch = "x86_64")]
                    Self::Clflushopt => {
                        core::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                    #[cfg(target_arch = "x86_64")]
                    Self::Clflush => core::arch::x86_64::_mm_clflush(line),
                    // `dc cvap` by its number, which every assembler knows.
                    #[cfg(target_arch = "aarch64")]
                    Self::DcCvap => {
                        core::arch::asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack, preserves_flags));
                    }
                    #[cfg(not(target_arch = "x86_64"))]
                    Self::None => {}
                }
            }
            line = line.wrapping_add(LINE_BYTES as usize);
        }
    }
}

/// Waits until everything written back or streamed so far has arrived, and orders stores around it.
pub(super) fn fence_stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of the architecture, and the instruction only orders stores.
    unsafe {
        core::arch::asm!("sfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier only orders accesses.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}
