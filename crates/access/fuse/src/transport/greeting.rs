//! What is agreed with the kernel when a mount begins: what it may do by itself, and how large a
//! request may be.
//!
//! An older kernel is asked for what it offers; what it does not know it does not need.

use fuser::{InitFlags, KernelConfig};

/// The largest request; more pages than the kernel's usual limit bring nothing.
pub(crate) const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Agrees on what every mount wants and on `wanted`, which this one wants beside that.
pub(crate) fn agree(wanted: InitFlags, config: &mut KernelConfig) {
    let always = InitFlags::FUSE_ASYNC_READ
        | InitFlags::FUSE_BIG_WRITES
        | InitFlags::FUSE_MAX_PAGES
        | InitFlags::FUSE_DONT_MASK
        | InitFlags::FUSE_DO_READDIRPLUS
        | InitFlags::FUSE_READDIRPLUS_AUTO
        | InitFlags::FUSE_PARALLEL_DIROPS
        | InitFlags::FUSE_EXPORT_SUPPORT
        | InitFlags::FUSE_POSIX_ACL
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    let offered = (always | wanted) & config.capabilities();
    let _ = config.add_capabilities(offered);
    let _ = config.set_max_write(REQUEST_BYTES_MAX);
    if let Err(most) = config.set_max_readahead(REQUEST_BYTES_MAX) {
        let _ = config.set_max_readahead(most);
    }
}
