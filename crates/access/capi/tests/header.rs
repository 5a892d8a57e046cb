//! The header that C programs include is the one that the code makes.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(home.join("cbindgen.toml")).expect("the settings");
    let sources = [
        "src/handle.rs",
        "src/memory.rs",
        "src/roots.rs",
        "src/slots.rs",
        "src/arena.rs",
        "src/files.rs",
        "src/files/hints.rs",
        "src/transactions.rs",
        "src/volumes.rs",
        "src/volumes/snapshots.rs",
        "src/volumes/clones.rs",
        "src/volumes/keys.rs",
        "src/volumes/encrypted.rs",
        "src/volumes/authenticated.rs",
        "src/volumes/key_slots.rs",
        "src/volumes/directory_keys.rs",
        "src/volumes/compressed.rs",
        "src/volumes/progress.rs",
        "src/volumes/resize.rs",
        "src/volumes/quotas.rs",
        "src/volumes/streams.rs",
        "src/volumes/scrub.rs",
        "src/error.rs",
    ];
    let builder = sources.iter().fold(cbindgen::Builder::new(), |builder, source| builder.with_src(home.join(source)));
    let mut made = Vec::new();
    builder.with_config(config).generate().expect("a header").write(&mut made);
    let path = home.join("include/onode.h");
    if std::env::var_os("ONODE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let there = std::fs::read(&path).expect("the header is there");
    assert!(there == made, "ONODE_WRITE_HEADER=1 cargo test -p onode-capi --test header makes it anew");
}
