//! Ways to damage media.

use crate::damage::media::{BLOCK, Image};
use crate::damage::volume::{Images, Made};
use onode_base::Prng;

/// What was done.
#[derive(Clone, Debug)]
pub struct Hurt {
    /// In words.
    pub what: String,
    /// Bytes that are other ones now.
    pub bytes: u64,
    /// A whole medium is gone or an earlier one.
    pub is_whole: bool,
    /// There are two places: both may be copies of one structure.
    pub is_twice: bool,
}

impl Hurt {
    /// Damages `images` in a way that is drawn.
    #[must_use]
    pub fn draw(made: &Made, images: &mut Images, prng: &mut Prng) -> Self {
        let names: Vec<&'static str> = images.keys().copied().collect();
        let name = names[prng.below(names.len() as u64) as usize];
        let has_second = names.len() > 1;
        let Some(Some(image)) = images.get_mut(name) else { return Self::none() };
        let earlier = made.earlier.get(name).cloned().flatten().unwrap_or_default();
        let kind = prng.below(if has_second { 14 } else { 12 });
        let (what, bytes) = match kind {
            0..=3 => flip(image, prng),
            4 => fill(image, [16, 64, 512, 4096][prng.below(4) as usize], Fill::Zeros, prng),
            5 => fill(image, [16, 64, 512, 4096][prng.below(4) as usize], Fill::Rubbish, prng),
            6 => fill(image, [512, 2048, 4096][prng.below(3) as usize], Fill::Ones, prng),
            7 => {
                let length = [512_u64, 4096, 65_536, 1 << 20, 3 << 20][prng.below(5) as usize];
                ("the first {} bytes are zeros".replace("{}", &length.to_string()), start(image, length))
            }
            8 => swap(image, prng),
            // The last write of a medium that was killed may never have been made, for all that it
            // can know.
            9 if !made.is_killed => stale(image, &earlier, prng),
            9 => flip(image, prng),
            10 => flips_in_order(image, prng),
            11 => {
                let (one, first) = flip(image, prng);
                let (other, second) = flip(image, prng);
                (format!("{one}; {other}"), first + second)
            }
            12 => {
                images.insert(name, None);
                return Self { what: format!("{name} is gone"), bytes: u64::MAX, is_whole: true, is_twice: false };
            }
            _ => {
                images.insert(name, Some(earlier));
                return Self {
                    what: format!("{name} is the one of a session ago"),
                    bytes: u64::MAX,
                    is_whole: true,
                    is_twice: false,
                };
            }
        };
        Self { what: format!("{name}: {what}"), bytes, is_whole: false, is_twice: [8, 11].contains(&kind) }
    }

    fn none() -> Self {
        Self { what: "nothing".into(), bytes: 0, is_whole: false, is_twice: false }
    }
}

/// Somewhere in a block that holds anything.
fn place(image: &Image, prng: &mut Prng) -> u64 {
    let index = prng.below(image.blocks.len().max(1) as u64) as usize;
    let Some((number, block)) = image.blocks.iter().nth(index) else { return 0 };
    let used: Vec<usize> = (0..block.len()).filter(|at| block[*at] != 0 && block[*at] != 0xff).collect();
    let at = used.get(prng.below(used.len().max(1) as u64) as usize).copied().unwrap_or(0);
    number * BLOCK as u64 + at as u64
}

fn flip(image: &mut Image, prng: &mut Prng) -> (String, u64) {
    let (at, bit) = (place(image, prng), prng.below(8));
    let byte = image.byte(at) ^ (1 << bit);
    (format!("bit {bit} of byte {at} is flipped"), image.set(at, &[byte]))
}

/// The structures at the start, one after the other, are where damage hurts most.
fn flips_in_order(image: &mut Image, prng: &mut Prng) -> (String, u64) {
    let near = image.blocks.keys().take(8).copied().collect::<Vec<_>>();
    let number = near.get(prng.below(near.len().max(1) as u64) as usize).copied().unwrap_or(0);
    let at = number * BLOCK as u64 + prng.below(BLOCK as u64);
    let byte = image.byte(at) ^ (1 << prng.below(8));
    (format!("a bit of byte {at} is flipped"), image.set(at, &[byte]))
}

#[derive(Clone, Copy, Debug)]
enum Fill {
    Zeros,
    Ones,
    Rubbish,
}

fn fill(image: &mut Image, length: usize, with: Fill, prng: &mut Prng) -> (String, u64) {
    let at = place(image, prng) / length as u64 * length as u64;
    let mut bytes = vec![if matches!(with, Fill::Ones) { 0xff } else { 0 }; length];
    if matches!(with, Fill::Rubbish) {
        prng.fill(&mut bytes);
    }
    (format!("{length} bytes at {at}: {with:?}"), image.set(at, &bytes))
}

fn start(image: &mut Image, length: u64) -> u64 {
    let numbers: Vec<u64> =
        image.blocks.keys().copied().take_while(|number| number * (BLOCK as u64) < length).collect();
    let end = |number: u64| (length - number * BLOCK as u64).min(BLOCK as u64) as usize;
    numbers.iter().map(|number| image.set(number * BLOCK as u64, &vec![0; end(*number)])).sum()
}

/// Two blocks lie where the other one should.
fn swap(image: &mut Image, prng: &mut Prng) -> (String, u64) {
    let unit = [512, 2048, 4096][prng.below(3) as usize];
    let (one, other) = (place(image, prng) / unit * unit, place(image, prng) / unit * unit);
    let bytes = |image: &Image, at: u64| (at..at + unit).map(|at| image.byte(at)).collect::<Vec<u8>>();
    let (first, second) = (bytes(image, one), bytes(image, other));
    let changed = image.set(one, &second) + image.set(other, &first);
    (format!("{unit} bytes at {one} and {other} are swapped"), changed)
}

/// A write that never came to be: a block is as it was a session ago.
fn stale(image: &mut Image, earlier: &Image, prng: &mut Prng) -> (String, u64) {
    let differs: Vec<u64> =
        image.blocks.keys().copied().filter(|number| image.blocks.get(number) != earlier.blocks.get(number)).collect();
    let Some(&number) = differs.get(prng.below(differs.len().max(1) as u64) as usize) else {
        return ("nothing".into(), 0);
    };
    let old = earlier.blocks.get(&number).cloned().unwrap_or_else(|| vec![0; BLOCK]);
    let changed = image.set(number * BLOCK as u64, &old);
    (format!("the block at {} is as it was a session ago", number * BLOCK as u64), changed)
}
