//! Readers beside a writer.

use crate::common::faulty::{Fault, Faulty};
use crate::common::pool::{Device, members};
use crate::common::readers::run;
use crate::common::vault::Vault;
use onode_object::Compression;
use onode_services::{Compressed, Pool};
use std::sync::Arc;

#[test]
fn nobody_reads_a_mixture_of_compressed_content() {
    run(|ram| Box::new(Compressed::new(ram, Compression::Fast)), 2000).unwrap();
}

#[test]
fn nobody_reads_a_mixture_of_encrypted_content() {
    run(|ram| Box::new(Vault::new().open(&ram)), 500).unwrap();
}

/// One member dies meanwhile, and readers go on as if nothing had been.
#[test]
fn nobody_reads_a_mixture_of_a_pool() {
    for place in 0..2 {
        run(
            |ram| {
                let other = Arc::new(onode_object::RamDevice::new(1 << 30));
                let dying = Faulty::new(&other, Fault::Dead, 1500);
                let mut devices: Vec<Device> = vec![ram, dying];
                devices.rotate_left(place);
                Box::new(Pool::create([1; 16], members(&devices)).unwrap())
            },
            2000,
        )
        .unwrap();
    }
}
