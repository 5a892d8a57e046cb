//! Settings of a mount that a person may choose: how much memory the device may take.
//!
//! They decide what things cost and never what they mean or whether there is room: any volume opens
//! with any of them.

/// The settings; what is `None` is left to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of memory for nodes of the index that could be read again.
    pub node_cache_bytes: Option<u64>,
    /// Bytes of memory for pages of content that were read.
    pub page_cache_bytes: Option<u64>,
}

/// A setting by its name, as mount options have it.
pub type Setting = (&'static str, Option<u64>);

impl Settings {
    /// Nothing was said.
    pub const NONE: Self = Self { node_cache_bytes: None, page_cache_bytes: None };

    /// All of them by name.
    #[must_use]
    pub const fn all(&self) -> [Setting; 2] {
        [("node-cache", self.node_cache_bytes), ("page-cache", self.page_cache_bytes)]
    }
}
