//! The content that runs write.

use onode_base::Prng;

/// Shorter content saves nothing when it is compressed.
const LEAST_BYTES: usize = 512;

/// Bytes that occur nowhere else. Every second content that is not short has four bits of chance a
/// byte, so that it can be compressed to about half of its length.
#[must_use]
pub fn content(prng: &mut Prng, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    prng.fill(&mut data);
    if length >= LEAST_BYTES && data[0].is_multiple_of(2) {
        data.iter_mut().for_each(|byte| *byte = b'a' + (*byte & 15));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_every_second_content_has_few_letters() {
        let count =
            (0..100).filter(|&seed| content(&mut Prng::new(seed), 600).iter().all(u8::is_ascii_lowercase)).count();
        assert!((30..70).contains(&count), "{count} of 100");
    }
}
