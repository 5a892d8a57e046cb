//! The end of a sequence: everything is as it should be, the checker finds nothing, and once all is
//! removed there is as much room as in the beginning.

use super::model::{Model, Place, TOP};
use super::whole::Storm;
use onode::medium::check_medium;
use onode::{MountOptions, Volume, open_device};
use onode_fs::check::{Finding, Severity, check};
use std::collections::BTreeSet;

/// Steps of background work at most.
const WORK: usize = 20_000;

impl Storm {
    pub fn end(&mut self) {
        self.luck.what.push_str(", at the end");
        self.sync_all();
        self.verify("synced");
        self.open_again();
        self.verify("opened again");
        self.must("close", self.volume().close());
        self.drop_volume();
        self.check("closed");
        self.open();
        self.remove_all();
        self.must("close", self.volume().close());
        self.drop_volume();
        self.check("emptied and closed");
    }

    /// What `onode check` does: nobody has the volume open.
    pub fn check(&self, when: &str) {
        let when = format!("{}, {when}: check", self.luck.what);
        let medium = check_medium(&self.spec, &mut |_, _| {}).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert!(medium.is_sound && medium.is_mountable, "{when}: {:#?}", medium.findings);
        let device = open_device(&self.spec, true, false).unwrap_or_else(|error| panic!("{when}: {error}")).0;
        let report = check(device.as_ref()).unwrap_or_else(|error| panic!("{when}: {error}"));
        is_nothing(&report.findings, &when);
        drop(device);
        for clone in &self.clones {
            let options = MountOptions { read_only: true, ..MountOptions::default() };
            let volume = Volume::open_state(&self.spec, &clone.name, options);
            let volume = volume.unwrap_or_else(|error| panic!("{when}: {}: {error}", clone.name));
            let report = check(volume.device()).unwrap_or_else(|error| panic!("{when}: {}: {error}", clone.name));
            is_nothing(&report.findings, &format!("{when}, {}", clone.name));
        }
    }

    /// Nothing is left, and all the space is free.
    fn remove_all(&mut self) {
        if let Some((snapshots, clones)) = self.states() {
            for one in std::mem::take(&mut self.clones) {
                self.must("deleting a clone", clones.delete(&one.name));
            }
            for one in std::mem::take(&mut self.snapshots) {
                self.must("deleting a snapshot", snapshots.delete(&one.name));
            }
            assert!(snapshots.list().is_empty(), "{}: {:?}", self.luck.what, snapshots.list());
        }
        self.tree.reopened(&self.fs(), &self.luck.what);
        self.work();
        let fs = self.fs();
        for Place { directory, name, file } in self.tree.model.places().into_iter().rev() {
            let at = self.tree.numbers[&directory];
            let is_directory = self.tree.model.is_directory(file);
            let name = name.as_bytes();
            let removed = if is_directory { fs.remove_directory(at, name) } else { fs.unlink(at, name) };
            self.luck.must("removing everything", removed);
        }
        let ids: BTreeSet<_> = self.tree.numbers.keys().copied().filter(|id| *id != TOP).collect();
        ids.into_iter().for_each(|id| self.tree.forget(&fs, id));
        for quota in self.luck.must("limits", fs.quotas()) {
            self.luck.must("removing a limit", fs.remove_quota(quota.subject));
        }
        self.tree.model = Model::new();
        self.luck.must("sync", fs.sync());
        drop(fs);
        self.work();
        self.resize_back();
        self.work();
        let (free, first) = (self.free(), self.first_free);
        // Cleaning and checkpoints have their own share of what is written meanwhile.
        let bytes = self.fs().extent().ok().map(|extent| extent.bytes);
        let all = format!("{free} bytes of {first} are free, the volume has {bytes:?} of {:?}", self.first_bytes);
        assert!(free + first / 50 >= first, "{}: {all}", self.luck.what);
    }

    fn work(&self) {
        let upkeep = self.volume().upkeep();
        let done = (0..WORK).any(|_| !self.luck.must("background work", upkeep.work(64)));
        // What could not be removed when there was no room.
        upkeep.tick();
        assert!(done, "{}: the background work does not end", self.luck.what);
    }
}

/// The next mount may have something to do, and that is all.
fn is_nothing(findings: &[Finding], when: &str) {
    let wrong: Vec<_> = findings.iter().filter(|one| one.kind.severity() != Severity::Note).collect();
    assert!(wrong.is_empty(), "{when}: {wrong:#?}");
}
