//! Who asks. A request tells the user and the group; what else the process may do stands in its
//! folder of `/proc`, which is looked at only where that decides.

use onode_fs::Caller;

const CAP_FSETID: u32 = 4;
const CAP_SYS_ADMIN: u32 = 21;
/// Attributes of administrators.
const TRUSTED: &[u8] = b"trusted.";

/// User, group and process of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pid: u32,
}

/// Who asks, for what the kernel has checked already.
pub(crate) const fn caller(who: Who, umask: u32) -> Caller {
    Caller { uid: who.uid, gid: who.gid, umask, groups: None, is_held: false }
}

/// Who asks, for what depends on all groups and on whether set-id bits may stay: the super-user, or
/// a user with groups.
pub(crate) fn caller_with_groups(who: Who) -> Caller {
    let found = Credentials::of(who);
    if who.uid == 0 && found.as_ref().is_none_or(|found| found.can(CAP_FSETID)) {
        return Caller::root();
    }
    // Who is not known to be in a group is not.
    let groups = found.map_or_else(Vec::new, |found| found.groups);
    // The super-user without that capability is not the super-user of limits either.
    Caller { uid: who.uid.max(1), gid: who.gid, umask: 0, groups: Some(groups), is_held: false }
}

/// Whether who asks may know of the attributes of administrators. A capability of other users is
/// one of a name space of theirs.
fn is_administrator(who: Who) -> bool {
    who.uid == 0 && Credentials::of(who).is_none_or(|found| found.can(CAP_SYS_ADMIN))
}

/// The names of a list, each ended by a zero byte, that whoever asks may see.
pub(crate) fn names_shown(who: Who, names: Vec<u8>) -> Vec<u8> {
    let is_hidden = |name: &[u8]| name.starts_with(TRUSTED);
    let each = || names.split_inclusive(|byte| *byte == 0);
    if !each().any(is_hidden) || is_administrator(who) {
        return names;
    }
    each().filter(|name| !is_hidden(name)).flatten().copied().collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Credentials {
    groups: Vec<u32>,
    effective: u64,
}

impl Credentials {
    /// Those of the thread that asks; `None` if it cannot be seen from here.
    fn of(who: Who) -> Option<Self> {
        let status = match who.pid {
            0 => return None,
            id => std::fs::read_to_string(format!("/proc/{id}/status")).ok()?,
        };
        Self::parse(&status)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let groups = field("Groups:")?.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let effective = u64::from_str_radix(field("CapEff:")?.trim(), 16).ok()?;
        Some(Self { groups, effective })
    }

    const fn can(&self, capability: u32) -> bool {
        self.effective & 1 << capability != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_tells_is_understood() {
        let status = "Name:\tcat\nUid:\t1\t1\t1\t1\nGroups:\t4 24 1000 \nCapEff:\t0000000000200000\n";
        let found = Credentials::parse(status).unwrap();
        assert_eq!(found, Credentials { groups: vec![4, 24, 1000], effective: 1 << 21 });
        assert!(found.can(CAP_SYS_ADMIN) && !found.can(CAP_FSETID));
        assert_eq!(Credentials::parse("Groups:\t\nCapEff:\t0\n"), Some(Credentials::default()));
        assert_eq!((Credentials::parse(""), Credentials::parse("Groups:\tx\nCapEff:\t0\n")), (None, None));
    }
}
