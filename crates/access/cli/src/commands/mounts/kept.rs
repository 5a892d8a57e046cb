//! Mount options that a volume keeps: what holds at its mounts where the command line and fstab say
//! nothing else on an option.
//!
//! Only what belongs to the volume can be kept. Who may do what, who is told, keys and consent are
//! the business of who mounts, so that a volume of a stranger decides none of it; and how requests
//! come is that of the computer.

use crate::watch::settings::Settings;
use onode::{Class, Error, Result, Spec};
use onode_fuse::Options;

/// Options that every volume can keep, with a value or without.
const EVERYWHERE: [&str; 18] = [
    "noatime",
    "relatime",
    "strictatime",
    "atime",
    "sync",
    "async",
    "writeback",
    "nowriteback",
    "flush",
    "noflush",
    "compress",
    "scrub",
    "write-cache",
    "write-back",
    "name-cache",
    "inode-cache",
    "node-cache",
    "read-ahead",
];
const OF_FLASH: [&str; 4] = ["page-cache", "checkpoint", "clean-ahead", "wear"];
const OF_TIERS: [&str; 4] = ["fast-daily", "fast-sequential", "fast-collect", "fast-admit"];

/// That a volume can keep all options of a list, which stands in `what`.
///
/// # Errors
/// `Usage`, quoting the first that it cannot.
pub fn check(what: &str, spec: &Spec, list: &str) -> Result<()> {
    for option in options_of(list) {
        let refused = |why: String| Error::new(Class::Usage, what, why).hint(names_of(spec));
        let name = name_of(option);
        if !is_keepable(name) {
            return Err(refused(format!("`{option}` is no option that a volume keeps")));
        }
        if !is_of(spec, name) {
            return Err(refused(format!("the device of this volume has no {name}")));
        }
        Options::new().apply(option).map_err(|error| refused(error.why))?;
    }
    Ok(())
}

/// The options of a mount: those that the volume keeps, and over them what was said. What this
/// program or the device does not know is ignored, and told.
pub fn merged(spec: &Spec, kept: &str, said: &Settings) -> (Options, Vec<String>) {
    let (mut options, mut ignored) = (Options::new(), Vec::new());
    for option in options_of(kept) {
        let name = name_of(option);
        if !is_keepable(name) || !is_of(spec, name) || options.apply(option).is_err() {
            ignored.push(format!(
                "the volume keeps the mount option `{}`, of which this program knows nothing; it is ignored",
                option.escape_debug()
            ));
        }
    }
    for option in &said.said {
        // It was understood before.
        let _ = options.apply(option);
    }
    options.accept_loss = said.options.accept_loss;
    (options, ignored)
}

fn options_of(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|option| !option.is_empty())
}

fn name_of(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

fn is_keepable(name: &str) -> bool {
    EVERYWHERE.iter().chain(&OF_FLASH).chain(&OF_TIERS).any(|one| *one == name)
}

/// Whether the device of a volume heeds an option that can be kept.
fn is_of(spec: &Spec, name: &str) -> bool {
    match spec {
        Spec::Flash(_) => !OF_TIERS.contains(&name),
        Spec::Tier(_) => !OF_FLASH.contains(&name),
        _ => name != "node-cache" && !OF_FLASH.contains(&name) && !OF_TIERS.contains(&name),
    }
}

/// What such a volume can keep, in words.
fn names_of(spec: &Spec) -> String {
    let all = EVERYWHERE.iter().chain(&OF_FLASH).chain(&OF_TIERS);
    let names: Vec<&str> = all.copied().filter(|name| is_of(spec, name)).collect();
    format!("it can keep {}; `onode mount --help` says what they do", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_fuse::Atime;

    fn spec(text: &str) -> Spec {
        Spec::parse(text).expect("a spec")
    }

    #[test]
    fn what_was_said_wins_and_what_is_unknown_is_told() {
        let mut said = Settings::default();
        said.apply("strictatime,nodev,log=/l").expect("valid");
        let kept = "compress=fast,noatime,colour=red,suid,fast-daily=1G,write-back=30,scrub=never";
        let (options, ignored) = merged(&spec("flash:disk.img"), kept, &said);
        assert_eq!((options.compression.name(), options.atime), ("fast", Atime::Strict));
        assert_eq!((options.memory.write_back_seconds, options.suid), (Some(30), false));
        assert_eq!(ignored.len(), 4, "{ignored:?}");
        assert!(ignored[0].contains("colour=red") && ignored[1].contains("suid"), "{ignored:?}");
        let usual = merged(&spec("flash:disk.img"), "", &Settings::default());
        assert_eq!(usual, (Options::new(), Vec::new()));
    }

    #[test]
    fn who_mounts_decides_what_is_no_matter_of_the_volume() {
        let flash = spec("flash:disk.img");
        check("cannot", &flash, "compress=small,atime=relative,wear=static,,checkpoint=1M").expect("valid");
        check("cannot", &spec("tier:a,b"), "node-cache=32M,fast-daily=1G").expect("valid");
        for list in ["ro", "suid", "hook=/bin/sh", "key-file=/k", "accept-loss", "io-uring=on", "colour", "x-a"] {
            let error = check("cannot", &flash, list).expect_err(list);
            assert!(error.class == Class::Usage && error.why.contains(list), "{error}");
            assert!(error.hint.is_some_and(|hint| hint.contains("compress") && !hint.contains("fast-daily")));
        }
        for (device, list) in
            [("flash:a", "fast-daily=1G"), ("tier:a,b", "wear=off"), ("scm:/dev/shm/a", "node-cache=1M")]
        {
            assert!(check("cannot", &spec(device), list).expect_err(list).why.contains("has no"));
        }
        for list in ["compress=zip", "scrub=1", "noatime=1", "atime=often"] {
            assert!(check("cannot", &flash, list).expect_err(list).why.contains(list));
        }
    }
}
