//! Judging: what was collected must add up.

use super::usage;
use super::walk::{Seen, Walk};
use super::{Finding, FindingKind, Report};
use crate::types::FileType;
use onode_object::ObjectKind;
use std::collections::BTreeMap;

const ROOT: u64 = 1;

pub(super) fn judge(mut walk: Walk<'_>) -> Report {
    if walk.seen.get(&ROOT).is_none_or(|root| root.file_type != Some(FileType::Directory)) {
        walk.find(Finding::new(FindingKind::RootMissing, ROOT));
    }
    let seen: Vec<(u64, Seen)> = walk.seen.iter().map(|(number, seen)| (*number, *seen)).collect();
    let is_hiding = walk.has_locked_directory();
    for (number, seen) in &seen {
        // What leads to it, or is in it, cannot be read.
        if walk.locked.contains(&seen.key) {
            walk.report.locked += 1;
            continue;
        }
        match seen.file_type {
            // In a directory whose key is locked there may be names that nobody can read.
            Some(_) if is_hiding && may_be_named(&walk, *number, seen) => walk.report.locked += 1,
            Some(FileType::Directory) => directory(&mut walk, *number, seen),
            Some(_) => file(&mut walk, *number, seen),
            None => no_file(&mut walk, *number, seen),
        }
    }
    cycles(&mut walk);
    // What was not looked at is not counted either.
    if !walk.has_unknown() {
        usage::judge(&mut walk);
    }
    walk.report.findings.sort_by_key(|finding| (finding.kind, finding.object, finding.slot));
    walk.report
}

fn directory(walk: &mut Walk<'_>, number: u64, seen: &Seen) {
    let links = 2 + seen.directories_in;
    if seen.links != links {
        walk.find(Finding::new(FindingKind::WrongLinkCount, number).counts(links, seen.links));
    }
    if seen.entries != seen.names_in {
        walk.find(Finding::new(FindingKind::WrongEntryCount, number).counts(seen.names_in, seen.entries));
    }
    let parent = match walk.named_in.get(&number) {
        _ if number == ROOT => Some(ROOT),
        Some(named) => Some(named.directory),
        None => None,
    };
    match parent {
        Some(parent) if parent != seen.parent => {
            walk.find(Finding::new(FindingKind::WrongParent, number).counts(parent, seen.parent));
        }
        Some(_) => {}
        None => walk.find(Finding::new(FindingKind::Unreachable, number)),
    }
}

/// Whether there are fewer names of a file or directory than it should have.
fn may_be_named(walk: &Walk<'_>, number: u64, seen: &Seen) -> bool {
    match seen.file_type {
        Some(FileType::Directory) => number != ROOT && !walk.named_in.contains_key(&number),
        _ => !seen.orphan && seen.names < seen.links.max(1),
    }
}

fn file(walk: &mut Walk<'_>, number: u64, seen: &Seen) {
    match (seen.orphan, seen.names) {
        (true, 0) => walk.find(Finding::new(FindingKind::Orphan, number)),
        (true, _) => walk.find(Finding::new(FindingKind::OrphanNamed, number)),
        (false, 0) => walk.find(Finding::new(FindingKind::Unreachable, number)),
        (false, names) if names != seen.links => {
            walk.find(Finding::new(FindingKind::WrongLinkCount, number).counts(names, seen.links));
        }
        (false, _) => {}
    }
}

/// An object without an inode.
fn no_file(walk: &mut Walk<'_>, number: u64, seen: &Seen) {
    // A damaged inode is a finding of its own; a block of memory needs none (paper 2).
    if seen.damaged || seen.is_value || (seen.kind == ObjectKind::Memory && seen.names == 0) {
        return;
    }
    let was_file = match seen.kind {
        ObjectKind::Data | ObjectKind::Directory | ObjectKind::SymbolicLink | ObjectKind::Special => true,
        ObjectKind::Unknown | ObjectKind::Volume | ObjectKind::Memory => false,
    };
    let kind = if was_file || seen.names > 0 { FindingKind::InodeMissing } else { FindingKind::LostObject };
    walk.find(Finding::new(kind, number));
}

/// Directories that have names but hang on each other.
fn cycles(walk: &mut Walk<'_>) {
    // Each directory is given the number of the walk that first met it.
    let mut met: BTreeMap<u64, u64> = BTreeMap::new();
    let starts: Vec<u64> = walk.named_in.keys().copied().collect();
    for start in starts {
        let mut at = start;
        loop {
            if at == ROOT {
                break;
            }
            match met.get(&at) {
                Some(walked) if *walked == start => {
                    walk.find(Finding::new(FindingKind::DirectoryCycle, at));
                    break;
                }
                Some(_) => break,
                None => {}
            }
            met.insert(at, start);
            match walk.named_in.get(&at) {
                Some(named) => at = named.directory,
                None => break,
            }
        }
    }
}
