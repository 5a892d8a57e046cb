//! `NAME=VALUE` among the words of a command line.

use onode::{Class, Error, Result};
use onode_fs::Hint;
use std::ffi::OsString;

/// A hint and the value that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub hint: Hint,
    pub value: String,
}

impl Assignment {
    /// Divides words into those that name files and those that set hints. These come in an order in
    /// which the first is refused, if one is: what only the volume can judge comes before what
    /// cannot fail.
    ///
    /// # Errors
    /// `Usage` for a name or a value that means nothing, and for a name that comes twice.
    pub fn split(words: &[OsString]) -> Result<(Vec<OsString>, Vec<Self>)> {
        let (mut others, mut assignments) = (Vec::new(), Vec::<Self>::new());
        for word in words {
            let Some((name, value)) =
                word.to_str().and_then(|word| word.split_once('=')).filter(|(name, _)| is_name(name))
            else {
                others.push(word.clone());
                continue;
            };
            let refused = |why: String| Error::new(Class::Usage, format!("cannot set {name}={value}"), why);
            let hint = Hint::from_name(name).ok_or_else(|| {
                let names: Vec<_> = Hint::ALL.map(Hint::name).into();
                refused(format!("no hint is called {name}")).hint(format!("there are {}", names.join(", ")))
            })?;
            if hint.check(value).is_err() {
                let why = format!("`{value}` is no {name}");
                return Err(refused(why).hint(format!("{name} is {}", hint.values())));
            }
            if assignments.iter().any(|one| one.hint == hint) {
                return Err(refused("it is set twice".into()).hint("say it once"));
            }
            assignments.push(Self { hint, value: value.into() });
        }
        assignments.sort_by_key(|one| std::cmp::Reverse(one.hint));
        Ok((others, assignments))
    }
}

/// Whether that stands before a `=` if a hint is meant: device specs and paths have more.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(words: &[&str]) -> Result<(Vec<OsString>, Vec<Assignment>)> {
        Assignment::split(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn paths_and_specs_are_no_assignments() {
        let words = ["flash:disk,size=16G", "lifetime=short", "./a=b", "/x=y", "size=64K", "placement=hot,pin", "=x"];
        let (paths, assignments) = split(&words).unwrap();
        assert_eq!(paths, ["flash:disk,size=16G", "./a=b", "/x=y", "=x"]);
        // The one that the volume may refuse comes first.
        let order: Vec<Hint> = assignments.iter().map(|one| one.hint).collect();
        assert_eq!(order, [Hint::Placement, Hint::Size, Hint::Lifetime]);
        assert_eq!(assignments[0].value, "hot,pin");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (words, why) in [
            (["liftime=short", "p"], "no hint is called liftime"),
            (["lifetime=hot", "p"], "unknown, short, medium or long"),
            (["size=16777216T", "p"], "a number of bytes"),
            (["compress=", "p"], "none, fast, small or auto"),
            (["size=1", "size=2"], "set twice"),
        ] {
            let refused = split(&words).unwrap_err();
            assert!(refused.class == Class::Usage && format!("{refused:?}").contains(why), "{refused:?}");
        }
    }
}
