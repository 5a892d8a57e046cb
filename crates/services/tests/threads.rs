//! Readers beside a writer.

mod common;

use common::readers::run;
use common::vault::Vault;
use onode_object::Compression;
use onode_services::Compressed;

#[test]
fn nobody_reads_a_mixture_of_compressed_content() {
    run(|ram| Box::new(Compressed::new(ram, Compression::Fast)), 2000).unwrap();
}

#[test]
fn nobody_reads_a_mixture_of_encrypted_content() {
    run(|ram| Box::new(Vault::new().open(&ram)), 500).unwrap();
}
