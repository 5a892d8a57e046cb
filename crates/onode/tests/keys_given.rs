//! When a directory gets its key: not while a transaction is open, which may have made a name in
//! it.

use crate::common::Folder;
use crate::directory_keys::{flash, key, keys, make_directory, number, open, secret};
use onode::{Class, InodeNumber, TransactionOptions, Volume};
use onode_fs::{Caller, ErrorKind, Hint, check};

/// That nothing is wrong with a volume, with its keys and without.
fn is_sound(volume: Volume, spec: &onode::Spec) {
    volume.close().unwrap();
    drop(volume);
    let device = onode::open_device(spec, true, false).unwrap().0;
    let report = check::check(device.as_ref()).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_directory_gets_a_key_only_while_no_transaction_is_open() {
    let folder = Folder::new("keys-given-tx");
    let spec = flash(&folder);
    let volume = open(&spec);
    let given = keys(&volume).create(&key(&secret(3))).unwrap();
    let d = make_directory(&volume, "/", "d");
    let set = |volume: &Volume, directory: InodeNumber| {
        volume.files().set_hint(directory, Hint::Key, &given.to_string()).map_err(|error| error.kind)
    };
    // A file is made in it by the transaction, or by somebody else.
    let transaction = volume.begin(TransactionOptions::default()).unwrap();
    transaction.volume().write("/d/in", "in").unwrap();
    assert_eq!(set(&volume, d), Err(ErrorKind::Busy));
    let refused = keys(&volume).give(d, given).unwrap_err();
    assert!(refused.class == Class::InUse && refused.why.contains("transaction"), "{refused}");
    let count = keys(&volume).list().unwrap().len();
    assert_eq!(keys(&volume).create_for(d, &key(&secret(4))).unwrap_err().class, Class::InUse);
    assert_eq!(keys(&volume).list().unwrap().len(), count, "no key is left of it");
    transaction.commit().unwrap();
    assert_eq!(volume.read("/d/in").unwrap(), b"in");
    volume.remove_all("/d/in").unwrap();
    let transaction = volume.begin(TransactionOptions::default()).unwrap();
    assert_eq!(set(transaction.volume(), d), Err(ErrorKind::NotSupported));
    volume.write("/d/out", "out").unwrap();
    // What it makes itself nobody else can use yet.
    let new = make_directory(transaction.volume(), "/", "new");
    set(transaction.volume(), new).unwrap();
    transaction.volume().write("/new/secret", "secret").unwrap();
    transaction.commit().unwrap();
    assert_eq!(volume.read("/d/out").unwrap(), b"out");
    assert_eq!(volume.read("/new/secret").unwrap(), b"secret");
    volume.remove_all("/d/out").unwrap();
    keys(&volume).give(d, given).unwrap();
    let file = number(volume.files(), "/new/secret");
    assert_eq!(keys(&volume).number_of(file).unwrap(), given);
    volume.files().write_file(&Caller::root(), b"/d/late", b"late", 0o600).unwrap();
    keys(&volume).lock(given).unwrap();
    assert_eq!(volume.read("/new/secret").unwrap_err().class, Class::Key);
    assert_eq!(volume.read("/d/late").unwrap_err().class, Class::Key);
    is_sound(volume, &spec);
}
