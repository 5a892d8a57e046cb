//! How a volume on flash is made and mounted, whatever holds its index.

use crate::error::{Class, Error, Result};
use crate::open::access::Access;
use crate::spec::{Policies, Shape};

/// How a volume on flash with these policies is mounted.
pub(crate) fn flash_options(policies: &Policies, access: Access) -> onode_flash::MountOptions {
    let Access { read_only, accept_loss, .. } = access;
    onode_flash::MountOptions { read_only, accept_loss, policies: *policies, ..Default::default() }
}

/// How a volume on flash of this shape, with these policies, is made; `what` is what cannot be done
/// otherwise.
pub(crate) fn format_options(
    shape: &Shape,
    policies: &Policies,
    uuid: [u8; 16],
    what: &str,
) -> Result<onode_flash::FormatOptions> {
    let blocks_per_segment = u16::try_from(shape.segment_blocks()).map_err(|_| {
        Error::new(Class::BadSize, what, format!("blocks-per-segment={} is too large", shape.segment_blocks()))
    })?;
    Ok(onode_flash::FormatOptions { uuid, blocks_per_segment: Some(blocks_per_segment), policies: *policies })
}
