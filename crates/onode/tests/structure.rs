//! Rules of structure that no compiler checks: folders that a reader can take in, no circles of
//! files, comments that fit a page.
//!
//! What does not keep a rule yet stands in a list here, with a bound that may only shrink: who
//! mends something lowers it, and who makes it worse fails.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tree::{crate_folders, files, root, rust_files};

/// Files and folders that one folder holds at most; a file and the folder of its children count
/// once.
const FOLDER_ENTRIES: usize = 14;
/// Columns of a line of a comment.
const COMMENT_COLUMNS: usize = 100;

/// Folders of `crates` that hold more.
const LARGE_FOLDERS: [(&str, usize); 0] = [];

/// Crates with files that import one another in a circle, and how many files are in circles.
const CIRCLES: [(&str, usize); 0] = [];

/// Parameters that a function takes at most, beside `self`.
const PARAMETERS: usize = 5;
/// Crates with functions that take more, or a tuple in the place of some, and how many.
const LARGE_SIGNATURES: [(&str, usize); 0] = [];

/// Crates with a result within a result, and how many.
const NESTED_RESULTS: [(&str, usize); 0] = [];

/// Types that several verbs of the command have, each in a module of its own that names it:
/// `umount::Arguments`, `umount::Report`.
const OF_EACH_VERB: [&str; 2] = ["Arguments", "Report"];

fn crates() -> PathBuf {
    root().join("crates")
}

/// The sources of every crate, by the crate's folder below `crates`.
fn sources() -> BTreeMap<String, Vec<PathBuf>> {
    let mut found = BTreeMap::new();
    for folder in crate_folders() {
        let name = folder.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files);
        found.insert(name, files);
    }
    assert!(found.len() >= 15, "only {} crates were found", found.len());
    found
}

/// Compares what was found with the list of what is known, both ways.
fn judge(what: &str, known: &[(&str, usize)], found: &BTreeMap<String, usize>) {
    let known: BTreeMap<String, usize> = known.iter().map(|&(name, bound)| (name.to_string(), bound)).collect();
    let new: Vec<_> = found.iter().filter(|&(name, count)| known.get(name) != Some(count)).collect();
    let gone: Vec<_> = known.keys().filter(|&name| !found.contains_key(name)).collect();
    assert!(new.is_empty(), "{what}: mend it, or lower the bound if it is better now: {new:#?}");
    assert!(gone.is_empty(), "no {what} any more: take off the list {gone:#?}");
}

#[test]
fn a_folder_holds_what_a_reader_can_take_in() {
    let mut entries: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for path in sources().into_values().flatten() {
        let mut child = path.with_extension("");
        while let Some(folder) = child.parent().map(Path::to_path_buf) {
            let name = child.file_name().unwrap().to_string_lossy().into_owned();
            entries.entry(folder.clone()).or_default().insert(name);
            if folder.ends_with("src") {
                break;
            }
            child = folder;
        }
    }
    let large = entries.iter().filter(|(_, names)| names.len() > FOLDER_ENTRIES);
    let large = large
        .map(|(folder, names)| (folder.strip_prefix(crates()).unwrap().to_string_lossy().into_owned(), names.len()));
    judge("entries", &LARGE_FOLDERS, &large.collect());
}

/// What of a file is code of the product: without comments and without tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_string();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The module of this path in a crate, as far as there is a file for it.
fn file_of<'m>(path: &str, modules: &'m BTreeMap<String, String>) -> Option<&'m str> {
    let mut path = path;
    loop {
        if let Some((name, _)) = modules.get_key_value(path) {
            return Some(name);
        }
        path = path.rsplit_once("::")?.0;
    }
}

/// The modules that a file names by their whole path.
fn imports<'m>(own: &str, text: &str, modules: &'m BTreeMap<String, String>) -> BTreeSet<&'m str> {
    let is_kin =
        |other: &str| own == other || own.starts_with(&format!("{other}::")) || other.starts_with(&format!("{own}::"));
    let after = text.split("crate::").skip(1);
    let paths = after.map(|rest| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        rest[..end].trim_end_matches(':')
    });
    paths.filter_map(|path| file_of(path, modules)).filter(|other| !is_kin(other)).collect()
}

/// Everything that can be reached from a module.
fn reach<'m>(from: &'m str, edges: &BTreeMap<&'m str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(one) = next.pop() {
        for &other in edges.get(one).into_iter().flatten() {
            if seen.insert(other) {
                next.push(other);
            }
        }
    }
    seen
}

/// Parent and child may know each other; any other circle is a wall in the wrong place.
#[test]
fn files_import_one_another_in_no_circle() {
    let mut found = BTreeMap::new();
    for (name, files) in sources() {
        let source = crates().join(&name).join("src");
        let modules: BTreeMap<String, String> = files
            .iter()
            .map(|path| {
                let module = path.strip_prefix(&source).unwrap().with_extension("");
                (module.to_string_lossy().replace('/', "::"), code(path))
            })
            .filter(|(module, _)| module != "lib" && !module.split("::").any(|part| part == "tests"))
            .collect();
        let edges: BTreeMap<&str, BTreeSet<&str>> =
            modules.iter().map(|(module, text)| (module.as_str(), imports(module, text, &modules))).collect();
        let in_circle = edges.keys().filter(|module| reach(module, &edges).contains(*module)).count();
        if in_circle > 0 {
            found.insert(name, in_circle);
        }
    }
    judge("files in circles", &CIRCLES, &found);
}

/// What stands between the bracket that `text` begins with and the one that closes it.
fn in_brackets(text: &str) -> &str {
    let (mut depth, mut before) = (0, ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            // The arrow of a function's outcome closes nothing.
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..at];
        }
        before = letter;
    }
    ""
}

/// The parts of a list that commas separate, those within brackets left alone.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found, mut before) = (0, 0, Vec::new(), ' ');
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                found.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    found.push(list[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// The lists of parameters of all functions in a text, each without `self`.
fn signatures(text: &str) -> Vec<Vec<&str>> {
    let begins = text.match_indices("fn ").filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric()));
    let lists = begins.filter_map(|(at, _)| {
        let rest = &text[at + 3..];
        let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|&end| end > 0)?;
        let mut rest = &rest[name..];
        if rest.starts_with('<') {
            rest = &rest[in_brackets(rest).len() + 2..];
        }
        rest.starts_with('(').then(|| in_brackets(rest))
    });
    let is_self = |part: &&str| part.trim_start_matches(['&', ' ']).split([':', ' ', '\'']).any(|word| word == "self");
    lists.map(|list| parts(list).into_iter().filter(|part| !is_self(part)).collect()).collect()
}

#[test]
fn signatures_are_read_as_they_are() {
    let text =
        "fn one(&self, a: u8) {} pub fn two<T: Fn(u8) -> u8>(&'a mut self, (b, c): (u8, u8), d: Vec<(u8, u8)>) {}";
    assert_eq!(signatures(text), [vec!["a: u8"], vec!["(b, c): (u8, u8)", "d: Vec<(u8, u8)>"]]);
}

/// What goes together is one type. The requests of the kernel have the parameters that they have.
#[test]
fn a_function_takes_few_parameters_and_no_tuple_for_some_of_them() {
    let mut found = BTreeMap::new();
    for (name, files) in sources() {
        let texts = files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests"));
        let texts: Vec<String> =
            texts.map(|path| code(path)).filter(|text| !text.contains("impl Filesystem for")).collect();
        let large = texts.iter().flat_map(|text| signatures(text)).filter(|parameters| {
            parameters.len() > PARAMETERS || parameters.iter().any(|parameter| parameter.starts_with('('))
        });
        match large.count() {
            0 => {}
            count => drop(found.insert(name, count)),
        }
    }
    judge("large signatures", &LARGE_SIGNATURES, &found);
}

/// An outcome that has three ways to end has a type that names them.
#[test]
fn no_result_is_within_a_result() {
    let mut found = BTreeMap::new();
    for (name, files) in sources() {
        let texts: Vec<String> = files.iter().map(|path| code(path)).collect();
        let nested = |text: &String| {
            ["Result<Result", "Ok(Err(", "Ok(Ok("].map(|form| text.matches(form).count()).iter().sum::<usize>()
        };
        match texts.iter().map(nested).sum::<usize>() {
            0 => {}
            count => drop(found.insert(name, count)),
        }
    }
    judge("results within results", &NESTED_RESULTS, &found);
}

/// What a language begins a comment with.
#[derive(Clone, Copy)]
enum Language {
    Rust,
    C,
    Script,
}

/// What stands behind the mark of a line that is a comment.
fn comment_of(line: &str, language: Language) -> Option<&str> {
    let line = line.trim_start();
    match language {
        Language::Rust => line.strip_prefix("//").map(|comment| comment.trim_start_matches(['/', '!'])),
        Language::C => ["//", "/*", "* "].iter().find_map(|mark| line.strip_prefix(mark)),
        Language::Script => line.strip_prefix('#').filter(|rest| rest.starts_with(' ')),
    }
}

/// Everything in the repository that people write and comment, as far as it is in one of these
/// languages. Scripts have a name that ends so, or say in their first line what runs them.
fn commented_files() -> Vec<(PathBuf, Language)> {
    let mut all = Vec::new();
    for folder in ["crates", "examples", "fuzz", "scripts", "tests"] {
        files(&root().join(folder), &mut all);
    }
    let language = |path: &Path| match path.extension().and_then(|it| it.to_str()) {
        Some("rs") => Some(Language::Rust),
        Some("c" | "h") => Some(Language::C),
        Some("sh" | "py") => Some(Language::Script),
        None if fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!")) => Some(Language::Script),
        _ => None,
    };
    all.into_iter().filter_map(|path| language(&path).map(|language| (path, language))).collect()
}

/// Tables, code and addresses have the width that they need.
#[test]
fn comments_fit_a_page() {
    let (mut wide, mut seen) = (Vec::new(), [0; 3]);
    for (path, language) in commented_files() {
        seen[language as usize] += 1;
        let mut is_code = false;
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let Some(comment) = comment_of(line, language) else { continue };
            is_code ^= comment.trim_start().starts_with("```");
            let may_be_wide =
                is_code || comment.starts_with("     ") || comment.contains(" | ") || comment.contains("://");
            if line.chars().count() > COMMENT_COLUMNS && !may_be_wide {
                wide.push(format!("{}:{}", path.strip_prefix(root()).unwrap().display(), number + 1));
            }
        }
    }
    assert!(seen.iter().zip([500, 10, 50]).all(|(seen, least)| *seen >= least), "only {seen:?} files were found");
    assert!(wide.is_empty(), "comments wider than {COMMENT_COLUMNS} columns: {wide:#?}");
}

#[test]
fn comments_are_read_as_they_are() {
    let found = |line, language| comment_of(line, language).map(str::trim);
    assert_eq!(found("    /// One.", Language::Rust), Some("One."));
    assert_eq!(found(" * Two.", Language::C), Some("Two."));
    assert_eq!(found("*place = 3;", Language::C), None);
    assert_eq!(found("  # Four.", Language::Script), Some("Four."));
    assert_eq!(found("#!/usr/bin/env bash", Language::Script), None);
    assert_eq!(found("#include <stdio.h>", Language::Script), None);
}

/// The name of the type that a line declares, if it does.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split([' ', '<', '(', '{', ';', ':']).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if word == "pub" {
        word = words.next()?;
        if matches!(word.trim_end_matches(')'), "crate" | "super" | "in") {
            word = words.find(|word| matches!(*word, "struct" | "enum" | "trait" | "union"))?;
        }
    }
    matches!(word, "struct" | "enum" | "trait" | "union").then(|| words.next()).flatten()
}

#[test]
fn declarations_are_read_as_they_are() {
    assert_eq!(declared("pub struct One<'a> {"), Some("One"));
    assert_eq!(declared("    pub(super) enum Two {"), Some("Two"));
    assert_eq!(declared("pub(in crate::a) trait Three: Copy {"), Some("Three"));
    assert_eq!(declared("struct Four(u8);"), Some("Four"));
    assert_eq!(declared("pub fn enum_of(struct_: u8) {"), None);
    assert_eq!(declared("impl One {"), None);
}

/// Who has met a type need not ask which one of that name is meant. The lab compares what is called
/// alike, and its types are as many as what it measures.
#[test]
fn a_type_has_its_name_for_itself() {
    let mut twice = Vec::new();
    for (name, files) in sources().into_iter().filter(|(name, _)| name != "lab") {
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in files.iter().filter(|path| !path.to_string_lossy().contains("tests")) {
            let text = code(path);
            let types = text.lines().filter_map(declared).collect::<BTreeSet<_>>();
            for one in types.into_iter().filter(|one| !OF_EACH_VERB.contains(one)) {
                if let Some(other) = seen.insert(one.to_string(), path.clone()) {
                    twice.push(format!("{name}: {one} in {} and {}", other.display(), path.display()));
                }
            }
        }
    }
    assert!(twice.is_empty(), "types of one name in a crate: {twice:#?}");
}
