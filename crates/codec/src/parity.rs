//! Parity pages of rows of pages, and signatures of pages that keep them company: the Reed-Solomon
//! code and the algebraic signature of paper 1, section IV.
//!
//! A *row* has `n` data pages, its *columns* `c` in `0..n` in the order in which they came, and up
//! to [`PARITY_PAGES_MAX`] parity pages `j`. A page is a sequence of little-endian 16-bit symbols,
//! elements of the field GF(2^16) with the polynomial x^16 + x^12 + x^3 + x + 1, whose root is
//! alpha = 2; addition is XOR. Symbol for symbol:
//!
//! ```text
//! P_j = sum over c of alpha^(j (n - 1 - c)) D_c         j in 0..3, P_0 is plain XOR
//! S_j = sum over k of gamma^(j k) d_k                   j in 0..4, gamma^16 = alpha
//! ```
//!
//! `P_j` is a parity page ([`RowParity`]), `S_j` one of the four symbols of the [`Signature`] of a
//! page with the symbols `d_k`. Both are sums in the same field, so a sum of pages has the sum of
//! their signatures: the parity of the signatures of the data pages is the signature of the parity
//! page ([`RowSignature`]). A scan that compares the two sees pages that are sound each on its own
//! and do not belong together, such as two that changed places or one of an older row, and reads
//! nothing but signatures for it.
//!
//! ```
//! use onode_codec::parity::{RowParity, RowSignature, Signature, recover};
//!
//! let pages = [[1u8; 2048], [2; 2048], [3; 2048]];
//! let (mut row, mut signatures) = (RowParity::new(2, 2048), RowSignature::default());
//! for page in &pages {
//!     row.push(page);
//!     signatures.push(Signature::of(page));
//! }
//! assert_eq!(Signature::of(row.parity(1)), signatures.parity(1));
//!
//! // Page 1 and parity page 0 are lost.
//! let mut found = RowParity::new(2, 2048);
//! found.push(&pages[0]);
//! found.push_missing();
//! found.push(&pages[2]);
//! assert_eq!(recover(&found, &[1], &[None, Some(row.parity(1))]), Some(vec![pages[1].to_vec()]));
//! ```
//!
//! What it keeps true: any choice of lost columns is recovered from as many parity pages, whichever
//! these are; a page in parts is the same as in one piece; a shorter page is the same as one that
//! zeros follow.
//!
//! What it does not do: find out which pages are lost (that is what checksums and signatures are
//! for), or resist someone who changes pages so that their signatures stay the same.

mod field;
mod recover;
mod row;
mod signature;
#[cfg(test)]
mod tests;

pub use recover::recover;
pub use row::{PARITY_PAGES_MAX, RowParity};
pub use signature::{RowSignature, SIGNATURE_BYTES, Signature};
