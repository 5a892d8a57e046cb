//! Figures as text: counters under the heading of their group, then tables of what the device does.

use super::{Costly, Erases, Figures, Tag, Wear};
use onode::human_size;
use std::collections::BTreeMap;
use std::fmt;

/// The heading of counters that are of no group.
const DEVICE: &str = "device";

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.spec)?;
        if let Some(why) = &self.read_only {
            writeln!(f, "READ-ONLY: {why}")?;
        }
        write!(f, "{}", self.health_lines())?;
        writeln!(f, "{}", self.space_line())?;
        self.counters(f)?;
        self.pages(f)?;
        self.places(f)?;
        self.wear(f)?;
        self.costly(f)
    }
}

impl Figures {
    /// Counters by group; those that are 0 only if all are wanted.
    fn counters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
        // Operations by purpose have a table of their own.
        let has_table = |name: &str| self.tags.iter().any(|one| name.split('.').next() == Some(&one.tag));
        for (name, value) in self.device.iter().filter(|(name, _)| !has_table(name)) {
            let (group, name) = name.rsplit_once('.').unwrap_or((DEVICE, name));
            groups.entry(group).or_default().push((name, *value));
        }
        let device = groups.remove(DEVICE).unwrap_or_default();
        let files = self.files.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut hidden = self.group(f, "file system", files, &[])?;
        let requests = self.requests.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        hidden += self.group(f, "requests of the kernel", requests, &[])?;
        let policies: Vec<(&str, &str)> =
            self.policies.iter().map(|(what, name)| (what.as_str(), name.as_str())).collect();
        hidden += self.group(f, DEVICE, device, &policies)?;
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        hidden += self.group(f, "settings", settings, &[])?;
        for (group, counters) in groups {
            hidden += self.group(f, group, counters, &[])?;
        }
        if hidden > 0 {
            writeln!(f, "\n{hidden} counters are 0 since the volume was opened (--all shows them)")?;
        }
        Ok(())
    }

    /// One group; how many of its counters were not shown.
    fn group(
        &self,
        f: &mut fmt::Formatter<'_>,
        heading: &str,
        counters: Vec<(&str, u64)>,
        policies: &[(&str, &str)],
    ) -> Result<usize, fmt::Error> {
        let is_shown = |(_, value): &&(&str, u64)| self.all || *value > 0;
        let shown = counters.iter().filter(is_shown).count();
        if shown + policies.len() > 0 {
            writeln!(f, "\n{}", spoken(heading))?;
        }
        for (what, name) in policies {
            writeln!(f, "  {what:<28} {name:>16}")?;
        }
        for (name, value) in counters.iter().filter(is_shown) {
            // Names tell units: `bytes_written`, `free_bytes`.
            let is_bytes = name.split('_').any(|word| word == "bytes");
            let value = if is_bytes { human_size(*value) } else { value.to_string() };
            writeln!(f, "  {:<28} {value:>16}", spoken(name))?;
        }
        Ok(counters.len() - shown)
    }

    fn pages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = |one: &&Tag| one.reads + one.programs + one.erases > 0;
        let all = self.all_tags();
        if !did(&&all) {
            return Ok(());
        }
        let cleaning = self.cleaning_line();
        if !cleaning.is_empty() {
            writeln!(f, "\n{cleaning}")?;
        }
        writeln!(f, "\npages for          reads     programs    erases         read   programmed")?;
        for one in self.tags.iter().chain([&all]).filter(did) {
            let Tag { tag, reads, programs, erases, bytes_read, bytes_programmed } = one;
            let (read, programmed) = (human_size(*bytes_read), human_size(*bytes_programmed));
            writeln!(f, "  {tag:<10} {reads:>11} {programs:>12} {erases:>9} {read:>12} {programmed:>12}")?;
        }
        Ok(())
    }

    fn places(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return Ok(());
        }
        let erases = if self.erases.is_some() { "erases" } else { "" };
        writeln!(f, "\n{}", format!("segments             count         live of capacity      {erases}").trim_end())?;
        for (name, sum) in &self.segments {
            let (live, capacity) = (human_size(sum.live_bytes), human_size(sum.capacity_bytes));
            let erases = if self.erases.is_some() { sum.erases.to_string() } else { String::new() };
            let line = format!("  {name:<16} {:>7} {live:>12} of {capacity:<12} {erases:>8}", sum.count);
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn wear(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.wear.is_empty() {
            writeln!(f, "\nwear: erases      segments")?;
        }
        for Wear { from, to, segments } in &self.wear {
            writeln!(f, "  {:<16} {segments:>7}", format!("{from} - {to}"))?;
        }
        if let Some(Erases { min, mean, max, spread }) = &self.erases {
            writeln!(f, "  least {min}, mean {mean:.2}, most {max}, spread {spread}")?;
        }
        Ok(())
    }

    fn costly(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.costliest_objects.is_empty() {
            writeln!(f, "\nobjects with the most programs    pages   of them perhaps others'")?;
        }
        for Costly { object, pages, over } in &self.costliest_objects {
            writeln!(f, "  object {object:<20} {pages:>10} {over:>10}")?;
        }
        Ok(())
    }
}

/// The name of a counter or group as it is spoken.
fn spoken(name: &str) -> String {
    name.replace(['_', '.'], " ")
}

#[cfg(test)]
mod tests;
