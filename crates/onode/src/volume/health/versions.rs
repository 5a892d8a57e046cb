//! What snapshots keep of files, in words for people: damage of it is told by the number of a
//! version, which says nothing to anybody.

use crate::volume::Volume;
use onode_fs::ErrorKind;
use onode_object::ObjectId;
use onode_services::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// The folders below which a mount shows its snapshots and its clones.
const FOLDER: &str = "/.snapshots";
const CLONES: &str = "/.clones";

impl Volume {
    /// Where a mount shows what these versions keep: `/.snapshots/NAME/PATH`, or `/.snapshots/NAME`
    /// for what no name leads to there, or that damage hides; `/.clones/NAME` for what a clone has.
    /// Of a version that several snapshots see the last one is told. Other numbers are left out.
    #[must_use]
    pub fn version_paths(&self, numbers: &[u64]) -> BTreeMap<u64, String> {
        let mut paths = BTreeMap::new();
        let all = self.snapshots().map(|all| all.list()).unwrap_or_default();
        for snapshot in &all {
            let is_of =
                |number: &u64| of_version(&all, *number).is_some_and(|one| one.generation == snapshot.generation);
            let versions: Vec<u64> = numbers.iter().copied().filter(is_of).collect();
            if !versions.is_empty() {
                self.find_in(snapshot, &versions, &mut paths);
            }
        }
        for clone in self.clones().map(|all| all.list()).unwrap_or_default() {
            let is_of =
                |number: &&u64| ObjectId(**number).in_clone_of().is_some_and(|(_, one)| one == clone.generation);
            let found = numbers.iter().filter(is_of);
            paths.extend(found.map(|number| (*number, format!("{CLONES}/{}", clone.name))));
        }
        paths
    }

    /// Adds where these versions are in a snapshot.
    fn find_in(&self, snapshot: &Snapshot, versions: &[u64], paths: &mut BTreeMap<u64, String>) {
        let top = format!("{FOLDER}/{}", snapshot.name);
        paths.extend(versions.iter().map(|version| (*version, top.clone())));
        let Some(Ok(files)) = self.snapshots().map(|all| all.files(snapshot.generation)) else { return };
        let mut wanted: BTreeSet<u64> = versions.iter().copied().collect();
        // Damage may hide some. Only an error ends the walk.
        let _ = files.walk(b"/", &mut |path, attributes| {
            wanted.retain(|version| {
                let is_it = ObjectId(*version).origin() == attributes.inode.object();
                if is_it {
                    let path = String::from_utf8_lossy(path);
                    paths.insert(*version, format!("{top}{}", path.trim_end_matches('/')));
                }
                !is_it
            });
            if wanted.is_empty() { Err(ErrorKind::Busy.into()) } else { Ok(true) }
        });
    }
}

/// The last snapshot that sees a version.
fn of_version(all: &[Snapshot], number: u64) -> Option<&Snapshot> {
    let (_, generation) = ObjectId(number).version_of().filter(|_| ObjectId(number).in_clone_of().is_none())?;
    all.iter().rev().find(|one| one.generation <= generation)
}
