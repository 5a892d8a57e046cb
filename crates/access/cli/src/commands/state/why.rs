//! What `onode stat --why` tells of a file: the hints that it has, who gave them, what was made of
//! them, and on two disks where the content lies.

use onode_fs::Origin;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// What was said of a file, and what comes of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Why {
    pub path: String,
    pub hints: Vec<HintRow>,
    pub decisions: Vec<DecisionRow>,
    #[serde(flatten)]
    pub whereabouts: Option<FileWhereabouts>,
}

/// A hint and who gave it: `nobody`, the `directory` or the file's `own`.
#[derive(Clone, Debug, Serialize)]
pub struct HintRow {
    pub name: String,
    pub value: String,
    pub origin: String,
}

/// What was decided in a matter, and why.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionRow {
    pub matter: String,
    pub choice: String,
    pub why: String,
}

/// Where two disks have the content of a file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileWhereabouts {
    pub placement: String,
    pub section: Option<String>,
    pub fast_bytes: u64,
    pub big_bytes: u64,
    pub log_bytes: u64,
    pub reasons: Vec<String>,
}

impl Why {
    /// What the attribute of a file tells. Lines that make no sense are of a newer version.
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut why = Self { path: path.display().to_string(), ..Self::default() };
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "hint" => why.hints.extend(HintRow::parse(value)),
                "decision" => why.decisions.extend(DecisionRow::parse(value)),
                "big" | "fast" | "log" | "section" | "reason" => {
                    why.whereabouts.get_or_insert_default().take(key, value);
                }
                _ => {}
            }
        }
        if let Some(whereabouts) = &mut why.whereabouts {
            let placement = why.hints.iter().find(|row| row.name == onode_fs::Hint::Placement.name());
            whereabouts.placement = placement.map(|row| row.value.clone()).unwrap_or_default();
        }
        why
    }
}

impl HintRow {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(' ')?;
        let (value, origin) = rest.rsplit_once(' ')?;
        Some(Self { name: name.into(), value: value.into(), origin: origin.into() })
    }

    /// Who gave it, in words.
    fn origin_told(&self) -> &'static str {
        match Origin::from_name(&self.origin) {
            Some(Origin::Directory) => "as its directory says",
            Some(Origin::Own) => "its own",
            Some(Origin::Nobody) | None => "",
        }
    }
}

impl DecisionRow {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '\t').map(String::from);
        Some(Self { matter: parts.next()?, choice: parts.next()?, why: parts.next()? })
    }
}

impl FileWhereabouts {
    fn take(&mut self, key: &str, value: &str) {
        let bytes = || value.parse().unwrap_or(0);
        match key {
            "big" => self.big_bytes = bytes(),
            "fast" => self.fast_bytes = bytes(),
            "log" => self.log_bytes = bytes(),
            "section" => self.section = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "reason" => self.reasons.push(value.to_owned()),
            _ => {}
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12} {}", "file", self.path)?;
        for row in &self.hints {
            let told = format!("{:<12} {:<14} {}", row.name, row.value, row.origin_told());
            writeln!(f, "{}", told.trim_end())?;
        }
        for DecisionRow { matter, choice, why } in &self.decisions {
            writeln!(f, "{matter:<12} {choice}: {why}")?;
        }
        self.whereabouts.as_ref().map_or(Ok(()), |whereabouts| write!(f, "{whereabouts}"))
    }
}

impl fmt::Display for FileWhereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.section.as_deref() {
            Some("any") => "any, by size and use",
            Some(name) => name,
            None => "none: it bypasses the fast device",
        };
        writeln!(f, "{:<12} {section}", "section")?;
        for (disk, bytes) in [("fast", self.fast_bytes), ("big", self.big_bytes), ("log", self.log_bytes)] {
            writeln!(f, "{disk:<12} {bytes} bytes")?;
        }
        self.reasons.iter().try_for_each(|reason| writeln!(f, "{:<12} {reason}", "because"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_attribute_tells_comes_out_whole() {
        let text = "hint=lifetime short own\nhint=placement my section,pin directory\n\
            decision=log\tclass-1\tit is said: a=b\nnew=thing\nbig=5\nfast=4\nlog=0\nsection=small\nreason=read once\n";
        let why = Why::parse(Path::new("/f"), text);
        assert_eq!((why.hints.len(), why.decisions.len()), (2, 1));
        assert_eq!(why.decisions[0].why, "it is said: a=b");
        let whereabouts = why.whereabouts.clone().unwrap();
        assert_eq!((whereabouts.placement.as_str(), whereabouts.big_bytes), ("my section,pin", 5));
        let told = why.to_string();
        assert!(told.contains("its own") && told.contains("as its directory says"), "{told}");
        assert!(Why::parse(Path::new("/f"), "hint=size unknown nobody\nhint=broken\nnew=1\n").whereabouts.is_none());
    }
}
