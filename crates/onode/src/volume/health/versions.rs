//! What snapshots keep of files and what clones have, in words for people: damage of it is told by
//! the number of a version, which says nothing to anybody.

use crate::volume::Volume;
use onode_fs::{ErrorKind, FileSystem};
use onode_object::ObjectId;
use onode_services::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The folders below which a mount shows its snapshots and its clones.
const FOLDER: &str = "/.snapshots";
const CLONES: &str = "/.clones";

impl Volume {
    /// Where a mount shows what these versions keep: `/.snapshots/NAME/PATH`, and
    /// `/.clones/NAME/PATH` for what a clone has; only `/.snapshots/NAME` or `/.clones/NAME` for
    /// what no name leads to there, or that damage hides. Of a version that several snapshots see
    /// the last one is told. Other numbers are left out.
    #[must_use]
    pub fn version_paths(&self, numbers: &[u64]) -> BTreeMap<u64, String> {
        let mut paths = BTreeMap::new();
        let all = self.snapshots().map(|all| all.list()).unwrap_or_default();
        for snapshot in &all {
            let is_of =
                |number: &u64| of_version(&all, *number).is_some_and(|one| one.generation == snapshot.generation);
            let versions = numbers.iter().copied().filter(is_of);
            let wanted: Wanted = versions.map(|version| (version, ObjectId(version).origin())).collect();
            let files = || self.snapshots()?.files(snapshot.generation).ok();
            wanted_in(&format!("{FOLDER}/{}", snapshot.name), wanted, files, &mut paths);
        }
        for clone in self.clones().map(|all| all.list()).unwrap_or_default() {
            let of_clone = |number: &u64| {
                let (object, _) = ObjectId(*number).in_clone_of().filter(|(_, one)| *one == clone.generation)?;
                Some((*number, object))
            };
            let wanted: Wanted = numbers.iter().filter_map(of_clone).collect();
            let files = || self.clones()?.files(clone.generation).ok();
            wanted_in(&format!("{CLONES}/{}", clone.name), wanted, files, &mut paths);
        }
        paths
    }
}

/// Numbers of versions, with the files that they are of.
type Wanted = BTreeMap<u64, ObjectId>;

/// Adds where these versions are in the files that a mount shows at `top`.
fn wanted_in(
    top: &str,
    mut wanted: Wanted,
    files: impl FnOnce() -> Option<Arc<FileSystem>>,
    paths: &mut BTreeMap<u64, String>,
) {
    if wanted.is_empty() {
        return;
    }
    paths.extend(wanted.keys().map(|version| (*version, top.to_owned())));
    let Some(files) = files() else { return };
    // Damage may hide some. Only an error ends the walk.
    let _ = files.walk(b"/", &mut |path, attributes| {
        wanted.retain(|version, object| {
            let is_it = *object == attributes.inode.object();
            if is_it {
                let path = String::from_utf8_lossy(path);
                paths.insert(*version, format!("{top}{}", path.trim_end_matches('/')));
            }
            !is_it
        });
        if wanted.is_empty() { Err(ErrorKind::Busy.into()) } else { Ok(true) }
    });
}

/// The last snapshot that sees a version.
fn of_version(all: &[Snapshot], number: u64) -> Option<&Snapshot> {
    let (_, generation) = ObjectId(number).version_of().filter(|_| ObjectId(number).in_clone_of().is_none())?;
    all.iter().rev().find(|one| one.generation <= generation)
}
