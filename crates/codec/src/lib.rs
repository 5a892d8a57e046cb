//! Codecs of flash metadata that lives in a small byte-addressable persistent RAM (BPRAM, paper 3),
//! and the parity pages and signatures that guard rows of flash pages (paper 1).
//!
//! [`parity`] has the Reed-Solomon code that gives lost pages back and the algebraic signatures
//! that a scan compares with it; it knows nothing of the rest, which codes metadata.
//!
//! What a device keeps is coded by [`exact`], to the byte: objects with their sizes and hints,
//! extents of any length; and by [`encode_rows`] and [`decode_rows`], which code tables whose
//! columns hardly change, such as that of segments.
//!
//! The form before it counts in pages and is kept for the figures of paper 3: one [`Record`] for
//! each object and piece of [`PIECE_PAGES`] pages says where the pages lie, and the first one what
//! belongs to the object once. Sorted runs of records are packed into *buckets* of at most
//! [`BUCKET_BYTES_MAX`] bytes that are written, checked and decoded each on its own:
//!
//! ```
//! use onode_codec::{Head, Record, Run, decode_bucket, encode_bucket, peek_bucket};
//!
//! let file = Record {
//!     object: 257,
//!     page: 0,
//!     head: Some(Head { parent: 1, home: Some(1003), size: Some(5000), ..Head::default() }),
//!     runs: vec![Run { page: 0, pages: 3, at: 1000 }],
//! };
//! let bytes = encode_bucket(core::slice::from_ref(&file), 7)?;
//! let header = peek_bucket(&bytes).unwrap();
//! assert_eq!((header.generation, header.first), (7, file.key()));
//! assert_eq!(decode_bucket(&bytes).unwrap(), [file]);
//! # Ok::<(), onode_codec::EncodeError>(())
//! ```
//!
//! * [`encode_bucket`], [`decode_bucket`], [`peek_bucket`] (header and checksum only, for the
//!   directory at a mount) and [`find_in_bucket`] (a look-up that stops at its record).
//! * [`pack_buckets`] packs any sorted run into the fewest buckets, evenly filled: it is bulk load,
//!   split, merge and re-balance in one, according to how many buckets' records it is given.
//! * [`encode_buckets`] does that and encodes; the quickest way to write a bucket that changed.
//! * [`Record::cut`] divides a record at any page, for pieces that no bucket could hold.
//! * [`bucket_bytes`] is the exact size without the bytes.
//!
//! What it keeps true: everything is a pure function of its arguments; what was encoded decodes to
//! the same; a decoder never panics, and never takes more memory than a fixed multiple of
//! [`BUCKET_BYTES_MAX`], whatever it is given.
//!
//! What it does not do: allocate, log or write BPRAM; know what a page's content means, or a file's
//! name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bits;
mod bucket;
mod coding;
mod columns;
pub mod exact;
mod golomb;
mod pack;
pub mod parity;
mod rans;
mod record;
mod tables;
mod tokens;

pub use bucket::{
    BUCKET_BYTES_MAX, BUCKET_RECORDS_MAX, BucketHeader, DecodeError, EncodeError, SymbolCounts, bucket_bytes,
    count_symbols, decode_bucket, encode_bucket, find_in_bucket, peek_bucket,
};
pub use columns::{decode_rows, encode_rows};
pub use pack::{encode_buckets, pack_buckets};
pub use record::{Head, Key, PIECE_PAGES, Record, Run};
pub use tokens::BUCKET_RUNS_MAX;
