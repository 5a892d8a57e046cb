//! The conformance suite on memories of several chunk sizes.

use crate::common::Scm;
use onode_scm::Mode;

onode_object::conformance!(chunks_of_4_kib, |bytes| Scm::holding(4 << 10, bytes));
onode_object::conformance!(chunks_of_16_kib, |bytes| Scm::holding(16 << 10, bytes));
onode_object::conformance!(chunks_of_64_kib, |bytes| Scm::holding(64 << 10, bytes));
onode_object::conformance!(mode_mem, |bytes| Scm::holding_in_mode(4 << 10, bytes, Mode::Mem));
onode_object::conformance!(mode_meta, |bytes| Scm::holding_in_mode(16 << 10, bytes, Mode::Meta));
onode_object::conformance!(mode_sync, |bytes| Scm::holding_in_mode(4 << 10, bytes, Mode::Sync));
