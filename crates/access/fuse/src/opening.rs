//! How the kernel gets at the content of the files of a mount, and whether it tells when they are
//! closed.

use crate::options::{Atime, Options};
use fuser::{FopenFlags, InitFlags};

/// What the kernel may keep of content, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Nobody else changes the files: the kernel keeps content as long as it likes, and files are
    /// not opened at all.
    Kept,
    /// Every read and write of a program comes here; the kernel keeps content for mappings, and
    /// forgets it when the file is opened or mapped.
    Direct,
    /// The kernel asks for size and times before each read and keeps content while they stay. For
    /// kernels that cannot map a file that is read directly.
    Asked,
}

impl Opening {
    /// What a mount needs, if the kernel can do everything. Where others change the files, what
    /// they store through a pointer into them changes neither size nor time, so nothing but the
    /// bytes themselves tells. And a time of access that every read renews needs every read to come
    /// here.
    pub(crate) fn wanted(is_shared: bool, options: &Options) -> Self {
        let renews = options.atime == Atime::Strict && !options.read_only;
        if is_shared || renews { Self::Direct } else { Self::Kept }
    }

    /// The same with what the kernel can do.
    pub(crate) fn with(self, capabilities: InitFlags, is_shared: bool) -> Self {
        match self {
            Self::Direct if !capabilities.contains(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP) => {
                if is_shared {
                    Self::Asked
                } else {
                    Self::Kept
                }
            }
            other => other,
        }
    }

    /// What the kernel is told at the start.
    pub(crate) const fn flags(self) -> InitFlags {
        match self {
            Self::Kept => InitFlags::FUSE_NO_OPEN_SUPPORT
                .union(InitFlags::FUSE_ASYNC_DIO)
                .union(InitFlags::FUSE_EXPLICIT_INVAL_DATA),
            Self::Direct => InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP.union(InitFlags::FUSE_AUTO_INVAL_DATA),
            Self::Asked => InitFlags::FUSE_AUTO_INVAL_DATA,
        }
    }

    /// What the kernel is told of a file that it opened; `None` if it shall not ask.
    pub(crate) const fn of_file(self) -> Option<FopenFlags> {
        match self {
            Self::Kept => None,
            Self::Direct => Some(FopenFlags::FOPEN_DIRECT_IO),
            Self::Asked => Some(FopenFlags::empty()),
        }
    }
}

/// Whether the kernel is to tell of closes. Memories that are shared keep times back for a close,
/// even with `sync`. A kernel that was told once that there is nothing to do at a close never asks
/// again, for no file.
pub(crate) const fn closing_tells(is_shared: bool, options: &Options) -> bool {
    options.hears_closes() || (is_shared && !matches!(options.flush, Some(false)) && !options.read_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_where_nothing_but_this_mount_changes_or_counts_it() {
        let with = |list: &str| {
            let mut options = Options::new();
            options.apply(list).unwrap();
            options
        };
        assert_eq!(Opening::wanted(false, &with("relatime")), Opening::Kept);
        assert_eq!(Opening::wanted(false, &with("ro,strictatime")), Opening::Kept);
        assert_eq!(Opening::wanted(false, &with("strictatime")), Opening::Direct);
        assert_eq!(Opening::wanted(true, &with("noatime")), Opening::Direct);
        for (list, tells) in
            [("rw", false), ("flush", true), ("flush,ro", false), ("flush,noflush", false), ("flush,sync", false)]
        {
            assert_eq!(closing_tells(false, &with(list)), tells, "{list}");
        }
        assert!(closing_tells(true, &with("sync")) && !closing_tells(true, &with("noflush")));
        let (old, new) = (InitFlags::FUSE_ASYNC_READ, InitFlags::all());
        assert_eq!(Opening::Direct.with(new, true), Opening::Direct);
        assert_eq!(
            (Opening::Direct.with(old, true), Opening::Direct.with(old, false)),
            (Opening::Asked, Opening::Kept)
        );
    }
}
