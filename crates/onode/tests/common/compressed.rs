//! What tests of compressed volumes share.

use onode::{Compression, CreateOptions, MountOptions, Spec, Volume};

/// Makes empty volumes, each from one spec, and returns the specs to open them.
pub fn make(specs: &[(String, String)]) -> Vec<Spec> {
    specs
        .iter()
        .map(|(make, open)| {
            Volume::create(&Spec::parse(make).unwrap(), &CreateOptions::default()).unwrap();
            Spec::parse(open).unwrap()
        })
        .collect()
}

pub fn open(spec: &Spec, compression: Compression) -> Volume {
    Volume::open(spec, MountOptions { compression, ..MountOptions::default() }).unwrap()
}

/// The image can be opened again.
pub fn close(volume: Volume) {
    volume.close().unwrap();
}

/// Bytes that can be compressed.
pub fn text(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| b"lorem ipsum dolor sit amet "[at % 27] ^ (at / 900) as u8 ^ seed).collect()
}
