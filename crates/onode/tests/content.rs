//! Content of files that can be told again.

/// Bytes that follow from a number and look random.
pub fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    onode_base::Prng::new(seed).fill(&mut content);
    content
}
