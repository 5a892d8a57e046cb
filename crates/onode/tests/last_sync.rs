//! The last sync before a crash of the process, on flash in an image: each page of it damaged
//! afterwards.

use crate::common::Folder;
use onode::medium::{check_medium, repair_medium};
use onode::{Class, CreateOptions, MountOptions, Severity, Spec, Volume};
use onode_fs::{Caller, Follow};
use std::path::{Path, PathBuf};

/// The folder of a volume.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Self {
        Self(Folder::new(&format!("last-sync-{name}")))
    }

    fn spec(&self, more: &str) -> Spec {
        Spec::parse(&format!("flash:{}{more}", self.image().display())).unwrap()
    }

    fn image(&self) -> PathBuf {
        self.0.path().join("disk")
    }
}

fn open(spec: &Spec, accept_loss: bool) -> onode::Result<Volume> {
    Volume::open(spec, MountOptions { accept_loss, ..MountOptions::default() })
}

/// A new volume in `place` on which `/file` held `first`, then `last`, each synced: the images of
/// either moment.
fn synced(place: &Place, first: &[u8], last: &[u8]) -> (Vec<u8>, Vec<u8>) {
    Volume::create(&place.spec(",size=4M,page=2K,pages-per-block=16"), &CreateOptions::default()).unwrap();
    let volume = open(&place.spec(""), false).unwrap();
    let put = |bytes: &[u8]| {
        let number = volume.files().write_file(&Caller::root(), b"/file", bytes, 0o644).unwrap();
        volume.files().fsync(number, None, false).unwrap();
        std::fs::read(place.image()).unwrap()
    };
    let images = (put(first), put(last));
    let _ = volume.close();
    images
}

fn content(volume: &Volume, path: &[u8]) -> onode_fs::Result<Vec<u8>> {
    let files = volume.files();
    let number = files.resolve(path, Follow::No)?;
    let mut bytes = vec![0; files.attributes(number)?.size as usize];
    files.read(number, 0, &mut bytes)?;
    Ok(bytes)
}

/// Pages of 2,048 bytes in which the images differ.
fn changed(before: &[u8], after: &[u8]) -> Vec<usize> {
    let pages = before.chunks(2048).zip(after.chunks(2048)).enumerate();
    pages.filter(|(_, (one, other))| one != other).map(|(page, _)| page * 2048).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

/// A damaged page of the last sync was taken for one that the crash kept from the medium: the file
/// was as before, and mount and check said nothing.
#[test]
fn the_last_sync_is_known() {
    let place = Place::new("known");
    let spec = place.spec("");
    let (first, last) = (vec![b'a'; 5000], vec![b'z'; 9000]);
    let (before, after) = synced(&place, &first, &last);
    // But for the last one, which has nothing else than what is known of the last sync.
    let mut places = changed(&before, &after);
    places.pop();
    assert!(places.len() > 5, "{places:?}");
    let (mut refused, mut failed) = (0, 0);
    // One page, and from it all that follow.
    let all = places.iter().enumerate().flat_map(|(index, _)| [&places[index..=index], &places[index..]]);
    for damaged in all {
        let mut image = after.clone();
        for place in damaged {
            image[place + 100..place + 600].fill(0x5a);
        }
        write(&place.image(), &image);
        let is_sound = check_medium(&spec, &mut |_, _| {}).is_ok_and(|report| report.is_sound);
        match open(&spec, false) {
            Ok(volume) => match content(&volume, b"/file") {
                Ok(bytes) => assert_eq!(bytes, last, "at {damaged:?}"),
                Err(_) => {
                    failed += 1;
                    assert!(!is_sound, "the check says sound at {damaged:?}");
                }
            },
            Err(error) => {
                refused += 1;
                assert!([Class::Loss, Class::Damaged].contains(&error.class), "{error}");
                assert!(!is_sound, "the check says sound at {damaged:?}");
            }
        }
        if is_sound {
            continue;
        }
        // With consent, and by a repair, it goes on without, and nobody asks again.
        write(&place.image(), &image);
        if let Ok(volume) = open(&spec, true) {
            let is_told = volume.device().health().worst().is_some_and(|worst| worst >= Severity::Failed);
            assert!(is_told || content(&volume, b"/file").is_err(), "at {damaged:?}");
            volume.close().unwrap();
        }
        write(&place.image(), &image);
        let repaired = repair_medium(&spec, true, true).unwrap();
        assert!(repaired.lost, "at {damaged:?}: {repaired:?}");
        assert!(check_medium(&spec, &mut |_, _| {}).unwrap().is_sound, "at {damaged:?}");
        open(&spec, false).unwrap().close().unwrap();
    }
    assert!(refused > 0 && failed > 0, "{refused} refused, {failed} failed");
}

/// With the newer of the two notes of what was durable damaged the older one counted as the last,
/// and damage of the last sync was taken for a torn tail without a word (`onode-crash damage
/// --medium nand --seed 51`).
#[test]
fn a_damaged_note_beside_a_damaged_last_sync_is_told() {
    let place = Place::new("note");
    let spec = place.spec("");
    let (before, after) = synced(&place, b"first", b"second");
    let differing = |page: &usize| (*page..after.len().min(page + 2048)).filter(|&at| before[at] != after[at]).count();
    let journal = changed(&before, &after).into_iter().max_by_key(differing).unwrap();
    let mut notes = (after.len() - 64..after.len()).step_by(32);
    let newer = notes.find(|&at| before[at..at + 32] != after[at..at + 32]).unwrap();
    let mut told = 0;
    for at in newer..newer + 32 {
        let mut image = after.clone();
        image[at] ^= 1;
        image[journal + 100..journal + 600].fill(0x5a);
        write(&place.image(), &image);
        let check = check_medium(&spec, &mut |_, _| {}).unwrap();
        assert!(!check.findings.is_empty(), "the check says nothing with byte {at} damaged");
        let volume = open(&spec, false).unwrap();
        assert!(content(&volume, b"/file").is_ok_and(|bytes| bytes == b"first"));
        told += usize::from(volume.device().health().worst().is_some_and(|worst| worst >= Severity::Degraded));
    }
    assert_eq!(told, 32);
}
