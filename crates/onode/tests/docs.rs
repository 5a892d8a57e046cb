//! What the documents name is there: paths, links, verbs of the command.

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tree::root;

/// The documents of the project, each with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut all = vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CHANGELOG.md")];
    all.extend(pages_below(&root().join("docs")));
    all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
    pages
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    // Fences of code blocks come in pairs of three and keep the order.
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_front_page_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 120, "README.md has {lines} lines");
}

/// The site has every page once, in the order of `docs/SUMMARY.md`.
#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let links: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let once: BTreeSet<&str> = links.iter().copied().collect();
    assert_eq!(once.len(), links.len(), "a page is twice in SUMMARY.md: {links:#?}");
    let gone: Vec<&&str> = once.iter().filter(|link| !docs.join(link).is_file()).collect();
    assert!(gone.is_empty(), "SUMMARY.md names what is not there: {gone:#?}");
    let mut pages: Vec<String> =
        pages_below(&docs).iter().map(|page| page.strip_prefix(&docs).unwrap().display().to_string()).collect();
    pages.retain(|page| page != "SUMMARY.md" && !once.contains(page.as_str()));
    assert!(pages.is_empty(), "SUMMARY.md lacks {pages:#?}");
}

/// Tables have the width that they need, and the front page has few lines instead.
#[test]
fn prose_fits_a_page() {
    let mut wide = Vec::new();
    for (document, text) in documents().into_iter().filter(|(path, _)| !path.ends_with("README.md")) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('|')) {
            if line.chars().count() > 100 {
                wide.push(format!("{}:{}", document.display(), number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "lines wider than 100 columns: {wide:#?}");
}

#[test]
fn every_path_named_in_a_document_is_there() {
    let folders = ["crates/", "docs/", "tests/", "scripts/", "examples/"];
    let (mut count, mut missing) = (0, Vec::new());
    for (document, text) in documents() {
        for path in quoted(&text).filter(|path| folders.iter().any(|folder| path.starts_with(folder))) {
            let path = path.split([' ', ':', '#']).next().unwrap();
            // Tests of a crate are named by the crate's folder or without it; patterns are no
            // paths.
            if path.contains(['*', '{', '<']) {
                continue;
            }
            let is_there = root().join(path).exists()
                || ["crates", "crates/devices", "crates/access"].iter().any(|folder| {
                    let crates = fs::read_dir(root().join(folder)).unwrap();
                    crates.into_iter().any(|one| one.unwrap().path().join(path).exists())
                });
            missing.extend((!is_there).then(|| format!("{} names {path}", document.display())));
            count += 1;
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let path = document.parent().unwrap().join(target);
                missing.extend((!path.exists()).then(|| format!("{} links to {target}", document.display())));
                count += 1;
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(count > 60, "only {count} paths were found");
}

/// The verb of a variant: `get-hints` of `GetHints`.
fn as_typed(name: &str) -> String {
    let dash = |at: usize, letter: char| if at > 0 && letter.is_uppercase() { "-" } else { "" };
    let letters = name.chars().enumerate().map(|(at, letter)| format!("{}{}", dash(at, letter), letter.to_lowercase()));
    letters.collect()
}

#[test]
fn the_page_has_the_order_of_locks() {
    let source = fs::read_to_string(root().join("crates/base/src/sync/rank.rs")).unwrap();
    let ranks = source.split("\nranks! {").nth(1).unwrap().split("\n}").next().unwrap();
    let ranks: Vec<&str> = ranks.lines().filter_map(|line| line.split_once(" = \"")?.1.strip_suffix("\",")).collect();
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = page.split("\n## Locks").nth(1).unwrap().lines().filter(|line| line.starts_with("| "));
    let named: Vec<&str> = table.flat_map(quoted).collect();
    assert!(ranks.len() > 20, "only {} ranks were found", ranks.len());
    assert_eq!(named, ranks);
}

#[test]
fn every_verb_named_in_a_document_is_one() {
    let commands = fs::read_to_string(root().join("crates/access/cli/src/commands.rs")).unwrap();
    let verbs = commands.split("enum Verb {").nth(1).unwrap().split("\n}").next().unwrap();
    let mut verbs: BTreeSet<String> = verbs
        .lines()
        .filter_map(|line| line.trim().split_once('('))
        .filter(|(name, _)| name.chars().all(char::is_alphabetic))
        .map(|(name, _)| as_typed(name))
        .collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    verbs.extend(["fsck", "help", "VERB"].map(str::to_owned));
    let mut count = 0;
    for (document, text) in documents() {
        for command in text.split('`').flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("onode ")) {
            let mut words = command.split_whitespace().filter(|word| !word.starts_with('-'));
            let verb = words.next().unwrap_or_default().trim_end_matches([',', '.', ';', ':']);
            let is_verb = verb.split(['|', '/']).all(|verb| verbs.contains(verb)) || verb.is_empty();
            assert!(is_verb, "{}: `onode {command}`", document.display());
            count += 1;
        }
    }
    assert!(count > 60, "only {count} commands were found");
}

/// What people wrote on the page of benchmarks stays when the figures are written anew.
#[test]
fn the_writer_of_figures_changes_only_its_tables() {
    let folder = std::env::temp_dir().join(format!("onode-front-{}", std::process::id()));
    let (docs, bench) = (folder.join("docs"), folder.join("tests/bench"));
    fs::create_dir_all(docs.join("benchmarks")).unwrap();
    fs::create_dir_all(&bench).unwrap();
    for page in fs::read_dir(root().join("docs/benchmarks")).unwrap() {
        let page = page.unwrap();
        fs::copy(page.path(), docs.join("benchmarks").join(page.file_name())).unwrap();
    }
    fs::copy(root().join("tests/bench/front.py"), bench.join("front.py")).unwrap();
    let expected = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap() + "A line of ours.\n";
    // Of the tables one figure is another, and one row is gone.
    let mut lines: Vec<&str> =
        expected.lines().filter(|line| !line.starts_with("| scm | malloc + free of 32 B")).collect();
    let at = lines.iter().position(|line| line.starts_with("| flash | a power cut on 8 GiB")).unwrap();
    lines[at] = "| flash | a power cut on 8 GiB, 90 % full | 1 pages | at most 64 | yes |";
    fs::write(docs.join("benchmarks.md"), lines.join("\n") + "\n").unwrap();
    let written = std::process::Command::new("python3").arg(bench.join("front.py")).status().unwrap();
    let found = fs::read_to_string(docs.join("benchmarks.md")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(written.success());
    assert_eq!(found, expected);
}
