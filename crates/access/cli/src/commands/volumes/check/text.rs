//! What a check saw, in words for people.

use super::{Found, Report};
use onode::human_size;
use onode_console::quote;
use std::fmt;

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.layer)?;
        if let Some(name) = &self.state {
            write!(f, " of `{}`", quote::message(name))?;
        }
        write!(f, ": {}", self.message)?;
        match &self.path {
            Some(path) => write!(f, "; the file is {path}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let verdict = if self.clean { "clean" } else { "DAMAGED" };
        write!(f, "{}: {verdict}; {} objects, ", self.spec, self.objects)?;
        write!(f, "{} files, {} directories, {} names, ", self.files, self.directories, self.names)?;
        write!(f, "{} of content verified", human_size(self.verified_bytes))?;
        match self.clones {
            0 => {}
            1 => write!(f, ", the files of 1 clone")?,
            clones => write!(f, ", the files of {clones} clones")?,
        }
        for what in &self.unverified {
            write!(f, "\nnot verified: {what}")?;
        }
        for note in &self.notes {
            write!(f, "\n{note}")?;
        }
        if !self.closed_in_order {
            write!(f, "\nit was not closed in order; the next mount recovers it")?;
        }
        if self.findings.iter().any(|found| found.state.is_some() && !found.harmless) {
            write!(
                f,
                "\nthe files of clones and snapshots are not repaired: copy what can be read out of it with `onode get`, \
                 and delete it"
            )?;
        } else if !self.clean {
            write!(
                f,
                "\n`onode repair` repairs what can be repaired; lost bytes stay lost: restore those files from a backup, \
                 or have `onode repair --drop-damaged` make zeros of what is lost"
            )?;
        }
        Ok(())
    }
}
