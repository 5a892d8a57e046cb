//! Specs of pools: `pool:` and the specs of the members, joined by `+`.
//!
//! ```text
//! pool:flash:a.img+flash:b.img             every object on both
//! pool:flash:a.img+scm:/dev/shm/c,size=1G  settings belong to their member
//! pool:flash++scm:a.img,a.mem+flash:b.img  a + that belongs to a member is written twice
//! pool:flash:a.img                         one member alone, while the others are away
//! pool:ram:size=64M+ram:size=64M           in memory of this process, gone at the end
//! ```
//! Every member names its kind, so that a forgotten second `+` is no file name by accident.

use super::{Said, Spec};
use crate::error::{Class, Error, Result};
use onode_services::MEMBERS_MAX;
use std::fmt;
use std::path::{Path, PathBuf};

/// The members of a pool, in the order in which they were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Their specs; none is a pool itself.
    pub members: Vec<Spec>,
}

/// What stands behind `pool:`.
pub(super) fn parse(what: &str, rest: &str) -> Result<Spec> {
    let mut members = Vec::new();
    for part in split(rest) {
        members.push(member(what, &part)?);
    }
    if members.len() > MEMBERS_MAX {
        let why = format!("a pool has at most {MEMBERS_MAX} members, not {}", members.len());
        return Err(Error::new(Class::Usage, what, why));
    }
    let in_memory = members.iter().filter(|member| member.image_path().is_none()).count();
    if in_memory != 0 && in_memory != members.len() {
        let why = "some members live in memory only: they would be missing with the next mount";
        return Err(Error::new(Class::Usage, what, why).hint("name files or devices for all members"));
    }
    Ok(Spec::Pool(PoolSpec { members }))
}

fn member(what: &str, part: &str) -> Result<Spec> {
    const KINDS: [&str; 5] = ["flash", "flash+scm", "scm", "tier", "ram"];
    let hint = "write for example `pool:flash:a.img+flash:b.img`; a + that belongs to a member is written twice: \
                `pool:flash++scm:a.img,a.mem+flash:b.img`";
    match part.split_once(':') {
        Some(("pool", _)) => Err(Error::new(Class::Usage, what, "a member is a pool itself").hint(hint)),
        Some((kind, _)) if KINDS.contains(&kind) => Spec::parse(part),
        _ => {
            let why = match part {
                "" => "a member is missing".to_owned(),
                _ => format!("the member `{part}` names no kind of device"),
            };
            Err(Error::new(Class::Usage, what, why).hint(hint))
        }
    }
}

/// The parts between single `+`; two are one that belongs to a part.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(one) = rest.next() {
        if one == '+' && rest.next_if_eq(&'+').is_none() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(one);
        }
    }
    parts
}

impl Said for PoolSpec {
    /// That of the first member.
    fn image_path(&self) -> Option<&Path> {
        self.members.first()?.image_path()
    }

    fn all_paths(&self) -> Vec<&Path> {
        self.members.iter().flat_map(|member| member.said().all_paths()).collect()
    }

    fn paths_beside(&mut self) -> Vec<&mut PathBuf> {
        self.members.iter_mut().flat_map(|member| member.said_mut().own_paths()).collect()
    }

    fn own_paths(&mut self) -> Vec<&mut PathBuf> {
        self.paths_beside()
    }

    fn again(&self) -> Spec {
        Spec::Pool(Self { members: self.members.iter().cloned().map(Spec::again).collect() })
    }
}

impl fmt::Display for PoolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.members.iter().enumerate() {
            f.write_str(if index == 0 { "pool:" } else { "+" })?;
            f.write_str(&member.to_string().replace('+', "++"))?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "flash", feature = "scm", feature = "tier"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (text, count) in [
            ("pool:flash:a.img+flash:b.img", 2),
            ("pool:flash++scm:a.img,a.mem+flash:b.img,placement=split++atime+scm:/x/c,size=1G", 3),
            ("pool:tier:/x/s,/x/h,sections=small:64K:1++large:1M:3+flash:/x/c++d.img", 2),
            ("pool:flash:a.img", 1),
            ("pool:ram:size=16M+ram:size=32M", 2),
        ] {
            let spec = Spec::parse(text).unwrap();
            let Spec::Pool(pool) = &spec else { panic!("{text}") };
            assert_eq!((pool.members.len(), spec.to_string().as_str()), (count, text));
        }
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        for text in [
            "pool:",
            "pool:a.img+b.img",
            "pool:flash:a.img+",
            "pool:+flash:a.img",
            "pool:flash+scm:a.img,a.mem",
            "pool:flash:a.img+pool:flash:b.img",
            "pool:flash:a.img+ram:",
            "pool:flash:a.img+drum:b",
            "pool:ram:+ram:+ram:+ram:+ram:+ram:+ram:+ram:+ram:",
        ] {
            assert_eq!(Spec::parse(text).map(|_| ()).unwrap_err().class, Class::Usage, "{text}");
        }
    }

    #[test]
    fn every_path_becomes_a_whole_one() {
        let spec = Spec::parse("pool:flash:a.img+tier:s,h+scm:c").unwrap().with_absolute_paths();
        let Spec::Pool(pool) = &spec else { panic!("{spec}") };
        let paths = pool.all_paths();
        assert_eq!((paths.len(), paths.iter().all(|path| path.is_absolute())), (4, true), "{spec}");
    }
}
