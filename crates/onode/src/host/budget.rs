//! How much memory a process may use for what it keeps: a share of what there is, or of what its
//! control group allows.
//!
//! A process that takes more than its group allows is killed, with all that was not written yet. So
//! caches are chosen by that limit and not by what would be good to have.

use std::path::Path;

const GROUPS: &str = "/sys/fs/cgroup";
/// With that much caches are what they are meant to be.
const MEMORY_ENOUGH: u64 = 256 << 20;
/// What was written may wait in that part of a larger memory, and in no more than that: a sync
/// writes all of it.
const WRITTEN_PART: u64 = 64;
const WRITTEN_MOST: u64 = 512 << 20;

/// Bytes of memory that this process can have, as far as can be seen: the least of what the
/// computer has and of the limits of its control groups.
#[must_use]
pub fn memory_limit() -> u64 {
    let of_computer = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let of_groups = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        text.lines()
            .filter_map(memory_group)
            .filter_map(|(folder, file, path)| limit_of(&Path::new(GROUPS).join(folder), file, path))
            .min()
    });
    of_computer.into_iter().chain(of_groups).min().unwrap_or(MEMORY_ENOUGH)
}

/// What a cache may take that is meant to have `bytes`: so many where memory is enough, in
/// proportion where it is not.
#[must_use]
pub fn cache_bytes(bytes: u64) -> u64 {
    share(bytes, memory_limit())
}

/// What may be taken by what was written and waits for more, where `bytes` are the least that is
/// good to have: files that soon go away are then never written.
#[must_use]
pub fn write_cache_bytes(bytes: u64) -> u64 {
    written(bytes, memory_limit())
}

fn written(bytes: u64, limit: u64) -> u64 {
    share(bytes, limit).max((limit / WRITTEN_PART).min(WRITTEN_MOST))
}

fn share(bytes: u64, limit: u64) -> u64 {
    let part = u128::from(bytes) * u128::from(limit.min(MEMORY_ENOUGH)) / u128::from(MEMORY_ENOUGH);
    // It is not more than `bytes`.
    part as u64
}

/// `MemTotal:       24576000 kB`
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Where the limits of a group are: `0::/a/b` in the one hierarchy, `9:memory:/a/b` in that of
/// memory.
fn memory_group(line: &str) -> Option<(&'static str, &'static str, &str)> {
    let (_, line) = line.split_once(':')?;
    match line.split_once(':')? {
        ("", path) => Some((".", "memory.max", path)),
        (controllers, path) if controllers.split(',').any(|one| one == "memory") => {
            Some(("memory", "memory.limit_in_bytes", path))
        }
        _ => None,
    }
}

/// The least limit of a group and those around it.
fn limit_of(root: &Path, file: &str, path: &str) -> Option<u64> {
    let group = root.join(path.trim_start_matches('/'));
    let around = group.ancestors().take_while(|folder| folder.starts_with(root));
    // Without a limit there is a word or a number beyond any memory.
    around.filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found() {
        assert_eq!(total("MemTotal:       1024 kB\nMemFree: 1 kB\n"), Some(1 << 20));
        assert_eq!(memory_group("0::/user/x"), Some((".", "memory.max", "/user/x")));
        assert_eq!(memory_group("9:cpu,memory:/x"), Some(("memory", "memory.limit_in_bytes", "/x")));
        assert_eq!((memory_group("8:cpuset:/x"), memory_group("")), (None, None));
        let root = std::env::temp_dir().join(format!("onode-groups-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name).join("memory.max"), text).unwrap();
        write("a", "67108864\n");
        write("a/b", "max\n");
        assert_eq!(limit_of(&root, "memory.max", "/a/b"), Some(64 << 20));
        assert_eq!(limit_of(&root, "memory.max", "/"), None);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(memory_limit() > 0);
    }

    #[test]
    fn caches_are_what_was_asked_for_unless_memory_is_short() {
        assert_eq!(share(16 << 20, 24 << 30), 16 << 20);
        assert_eq!(share(16 << 20, 256 << 20), 16 << 20);
        assert_eq!(share(16 << 20, 64 << 20), 4 << 20);
        assert_eq!(share(32 << 20, 64 << 20), 8 << 20);
        let most = [(64 << 20, 4 << 20), (1 << 30, 16 << 20), (24 << 30, 384 << 20), (1 << 40, 512 << 20)];
        assert!(most.into_iter().all(|(limit, bytes)| written(16 << 20, limit) == bytes));
    }
}
