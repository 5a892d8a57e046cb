//! The coders of bytes that paper 3 compares: Huffman, Shannon-Fano, Rice and run-length coding as
//! the Basic Compression Library describes them, and LZO1X by the description of its format.
//!
//! Each is a pair of pure functions. As in that library the decoder is told how long the outcome
//! is; it fails on anything else, and on all else that the encoder would not write or could not
//! have meant.

mod huffman;
mod lzo;
mod prefix;
mod rice;
mod run_length;
mod shannon_fano;

/// A coder of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteCoder {
    /// Prefix codes from the bottom up.
    Huffman,
    /// Prefix codes from the top down.
    ShannonFano,
    /// Rice codes of 16-bit words.
    Rice,
    /// Repeated bytes.
    RunLength,
    /// LZO1X.
    Lzo,
}

impl ByteCoder {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Huffman, Self::ShannonFano, Self::Rice, Self::RunLength, Self::Lzo];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Huffman => "Huffman",
            Self::ShannonFano => "Shannon-Fano",
            Self::Rice => "Rice",
            Self::RunLength => "RLE",
            Self::Lzo => "LZO",
        }
    }

    /// `bytes`, coded.
    pub fn encode(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Huffman => huffman::encode(bytes),
            Self::ShannonFano => shannon_fano::encode(bytes),
            Self::Rice => rice::encode(bytes),
            Self::RunLength => run_length::encode(bytes),
            Self::Lzo => lzo::encode(bytes),
        }
    }

    /// The `length` bytes that `coded` stands for.
    pub fn decode(self, coded: &[u8], length: usize) -> Option<Vec<u8>> {
        let decoded = match self {
            Self::Huffman | Self::ShannonFano => prefix::decode(coded, length),
            Self::Rice => rice::decode(coded, length),
            Self::RunLength => run_length::decode(coded, length),
            Self::Lzo => lzo::decode(coded, length),
        };
        decoded.filter(|bytes| bytes.len() == length)
    }
}
