//! Steps that change the size of the volume or what users may have of it.

use super::model::{Id, Limited, TOP};
use super::whole::Storm;
use onode::QuotaLimits;
use onode_base::ErrorKind;
use onode_fs::Error;
use onode_object::Severity;
use onode_object::powers::Extent;

impl Storm {
    /// Begins to shrink, or becomes larger at once.
    pub fn resize(&mut self) {
        let Some(first) = self.first_bytes.filter(|_| self.shrinks_to.is_none()) else { return };
        let fs = self.fs();
        let Extent { bytes, least, unit, fewest, .. } = self.luck.must("size", fs.extent());
        if self.luck.one_in(2) {
            let wanted = (bytes + unit * (1 + self.luck.draw.below(8))).min(first + first / 4) / unit * unit;
            if wanted > bytes && wanted >= least {
                let grown = fs.grow(wanted);
                if !self.is_rebuilding(&grown) {
                    _ = self.luck.admits("grow", grown);
                    self.tree.note();
                }
            }
            return;
        }
        let wanted = bytes.saturating_sub(unit * (1 + self.luck.draw.below(8))) / unit * unit;
        if wanted < fewest.max(first * 3 / 4) || fewest == bytes {
            return;
        }
        let begun = fs.begin_shrinking(wanted);
        if self.is_rebuilding(&begun) {
            return;
        }
        // It may be too little for a segment less.
        if begun.as_ref().is_err_and(|error| error.kind == ErrorKind::Invalid) && wanted + 16 * unit > bytes {
            return;
        }
        if self.luck.admits("shrink", begun).is_some() {
            self.shrinks_to = Some(wanted);
        }
    }

    /// Whether it was refused because a member of a pool lacks something, which health tells: a
    /// full one may refuse what another one has done already.
    fn is_rebuilding<T>(&self, resized: &Result<T, Error>) -> bool {
        let is_degraded = || self.volume().health().worst() >= Some(Severity::Degraded);
        resized.as_ref().is_err_and(|error| error.kind == ErrorKind::Invalid) && is_degraded()
    }

    /// Shrinks further, if it is about to.
    pub fn shrink_some(&mut self) {
        let Some(wanted) = self.shrinks_to.filter(|_| !self.luck.one_in(3)) else { return };
        let fs = self.fs();
        if self.luck.one_in(40) {
            self.luck.must("staying as large", fs.stop_shrinking());
            self.shrinks_to = None;
            return;
        }
        let done = fs.shrink_some();
        let done = if self.is_rebuilding(&done) { None } else { self.luck.admits("shrinking further", done) };
        match done {
            Some(false) => {}
            Some(true) => {
                let bytes = self.luck.must("size", fs.extent()).bytes;
                assert!(bytes <= wanted, "{}: it has {bytes} and not {wanted}", self.luck.what);
                self.shrinks_to = None;
            }
            None => {
                self.luck.must("staying as large", fs.stop_shrinking());
                self.shrinks_to = None;
            }
        }
    }

    /// As large as in the beginning: nothing is in it.
    pub fn resize_back(&mut self) {
        let Some(first) = self.first_bytes else { return };
        let fs = self.fs();
        if self.shrinks_to.take().is_some() {
            self.luck.must("staying as large", fs.stop_shrinking());
        }
        let Extent { bytes, least, unit, .. } = self.luck.must("size", fs.extent());
        if bytes < first {
            self.luck.must("grow", fs.grow(first.max(least)));
        } else if bytes > first {
            let begun = fs.begin_shrinking(first);
            if begun.as_ref().is_err_and(|error| error.kind == ErrorKind::Invalid) && first + 16 * unit > bytes {
                return;
            }
            self.luck.must("shrink", begun);
            let done = (0..100_000).any(|_| self.luck.must("shrinking an empty volume", fs.shrink_some()));
            assert!(done, "{}: an empty volume does not become smaller", self.luck.what);
        }
    }

    /// Limits a user, or the only tree with a limit.
    pub fn set_limit(&mut self) {
        let fs = self.fs();
        if !fs.offers_quotas() {
            return;
        }
        let has_tree = self.tree.model.limits.iter().find(|one| matches!(one, Limited::Tree(_))).copied();
        let limited = match has_tree {
            _ if self.luck.one_in(2) => Limited::User(super::luck::USER),
            Some(tree) => tree,
            None => {
                let all: Vec<Id> = self.tree.model.directories().into_iter().filter(|id| *id != TOP).collect();
                self.luck.any(&all).map_or(Limited::Tree(TOP), Limited::Tree)
            }
        };
        let limits =
            QuotaLimits { bytes: Some(self.luck.draw.below(self.first_free)), files: Some(self.luck.draw.below(60)) };
        let done = fs.set_quota(self.tree.subject(limited), limits);
        if self.luck.admits("setting a limit", done).is_some() {
            self.tree.model.limits.insert(limited);
            self.tree.note();
            self.tree.is_durable(None);
        }
    }

    pub fn remove_limit(&mut self) {
        let all: Vec<Limited> = self.tree.model.limits.iter().copied().collect();
        let Some(limited) = self.luck.any(&all) else { return };
        let done = self.fs().remove_quota(self.tree.subject(limited));
        if done.as_ref().is_err_and(|error| error.kind == ErrorKind::NoSpace) {
            return;
        }
        self.luck.must("removing a limit", done);
        self.tree.model.limits.remove(&limited);
        self.tree.is_durable(None);
    }
}
