//! The conformance suite on memories of several chunk sizes.

mod common;

use common::Scm;

onode_object::conformance!(chunks_of_4_kib, |bytes| Scm::holding(4 << 10, bytes));
onode_object::conformance!(chunks_of_16_kib, |bytes| Scm::holding(16 << 10, bytes));
onode_object::conformance!(chunks_of_64_kib, |bytes| Scm::holding(64 << 10, bytes));
