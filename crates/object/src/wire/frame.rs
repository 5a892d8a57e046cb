//! The frame around every request and every reply.
//!
//! A frame that opens has the length, magic and version it should have and its checksum is right;
//! what its body says is for [`Request`](super::Request) and [`Reply`](super::Reply) to check.

use alloc::vec::Vec;
use onode_base::checksum::crc32c_append;

/// The first word of every frame after its length: `ONWR`.
pub const MAGIC: [u8; 4] = *b"ONWR";
/// The version of the protocol. Both sides must speak the same.
pub const VERSION: u8 = 1;
/// Bytes before the body.
pub const HEADER_BYTES: usize = 20;
/// Where the checksum stands; it covers everything else.
const CHECKSUM_AT: usize = 16;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the body is.
    pub command: u8,
    /// A reply has the number of its request.
    pub sequence: u32,
    /// The fields.
    pub body: &'a [u8],
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than a header, or not as long as it says.
    Length,
    /// Something else than this protocol.
    Magic,
    /// A version that this side does not speak.
    Version(u8),
    /// The reserved bytes are not zero.
    Reserved,
    /// The checksum is wrong.
    Checksum,
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length => f.write_str("the frame has not the length it says"),
            Self::Magic => f.write_str("the frame is not one of this protocol"),
            Self::Version(version) => write!(f, "protocol version {version} instead of {VERSION}"),
            Self::Reserved => f.write_str("reserved bytes of the frame are set"),
            Self::Checksum => f.write_str("the checksum of the frame is wrong"),
        }
    }
}

/// Starts a frame; the body is appended to what is returned.
#[must_use]
pub fn start(command: u8, sequence: u32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_BYTES + 64);
    frame.extend([0; 4]);
    frame.extend(MAGIC);
    frame.extend([VERSION, command, 0, 0]);
    frame.extend(sequence.to_le_bytes());
    frame.extend([0; 4]);
    frame
}

/// Fills in the length and the checksum. `None` if the body is too long for a frame.
#[must_use]
pub fn finish(mut frame: Vec<u8>) -> Option<Vec<u8>> {
    let length = u32::try_from(frame.len()).ok()?;
    frame.get_mut(..4)?.copy_from_slice(&length.to_le_bytes());
    let checksum = checksum(&frame)?;
    frame.get_mut(CHECKSUM_AT..HEADER_BYTES)?.copy_from_slice(&checksum.to_le_bytes());
    Some(frame)
}

/// Checks a frame and takes it apart.
///
/// # Errors
/// What is wrong with it.
pub fn open(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(FrameError::Length)?;
    let [l0, l1, l2, l3, m0, m1, m2, m3, version, command, r0, r1, s0, s1, s2, s3, c0, c1, c2, c3] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(FrameError::Magic);
    }
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    if u32::from_le_bytes([l0, l1, l2, l3]) as usize != bytes.len() {
        return Err(FrameError::Length);
    }
    if [r0, r1] != [0, 0] {
        return Err(FrameError::Reserved);
    }
    if checksum(bytes) != Some(u32::from_le_bytes([c0, c1, c2, c3])) {
        return Err(FrameError::Checksum);
    }
    Ok(Frame { command, sequence: u32::from_le_bytes([s0, s1, s2, s3]), body })
}

fn checksum(frame: &[u8]) -> Option<u32> {
    Some(crc32c_append(crc32c_append(0, frame.get(..CHECKSUM_AT)?), frame.get(HEADER_BYTES..)?))
}
