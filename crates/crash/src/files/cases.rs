//! Sequences that broke other file systems for persistent memory, by name (Chipmunk, Vinter).

use crate::files::calls::Call;

/// A sequence by name.
pub type Case = (&'static str, fn() -> Vec<Call>);

/// All of them. The numbers are those of the catalogue that they come from.
pub const CASES: [Case; 13] = [
    // 19: a rename changed the entry of its target in place.
    ("rename-over", || vec![Call::Rename(f(), s("B/h")), Call::Rename(s("A/g"), f()), Call::Rename(s("B/h"), f())]),
    // 20: the log's entry of a rename did not name the parent.
    ("rename-directory", || {
        vec![Call::Rename(s("A"), s("B/A")), Call::Create(s("B/A/n")), Call::Rename(s("E"), s("A"))]
    }),
    // 21: the link count was changed in place.
    ("link-count", || {
        vec![
            Call::HardLink(f(), s("B/l")),
            Call::HardLink(f(), s("A/l")),
            Call::Unlink(s("B/l")),
            Call::Fsync(f()),
            Call::Unlink(f()),
            Call::Unlink(s("A/l")),
        ]
    }),
    // 22: two descriptors wrote in turn, and the size was that of the wrong one.
    ("two-descriptors", || {
        vec![
            Call::Append(f(), 5),
            Call::Write(f(), 3000, 100),
            Call::Append(f(), 7),
            Call::Write(f(), 10, 9),
            Call::Sync,
        ]
    }),
    // 23: blocks given up by a truncation were counted again by an allocation.
    ("truncate-allocate", || {
        vec![Call::Append(f(), 9000), Call::Truncate(f(), 100), Call::Zero(f(), 50, 9000), Call::Append(f(), 200)]
    }),
    // 24, 25, 26: the first change of a fresh volume, and the first after it.
    ("first-change", || vec![Call::Create(s("B/n"))]),
    // 27: the list of truncations was replayed before there was an allocator.
    ("truncate-last", || vec![Call::Append(f(), 9000), Call::Fsync(f()), Call::Truncate(f(), 4097), Call::Fsync(f())]),
    // 28, 29: the last bytes of a write that was no multiple of 8 bytes or of a line were not
    // flushed or not fenced.
    ("unaligned-tail", || {
        let ends = [1, 63, 64, 65, 71, 7, 4095, 4097].map(|length| Call::Append(f(), length));
        ends.into_iter().flat_map(|call| [call, Call::Fsync(f())]).collect()
    }),
    // 31: an overwrite was not all or nothing.
    ("atomic-overwrite", || {
        vec![Call::Write(f(), 0, 700), Call::Write(f(), 60, 70), Call::Append(f(), 5000), Call::Write(f(), 100, 5000)]
    }),
    // What a recovery may put in place once more is overwritten, where that happens without a
    // record.
    ("overwrite-after-zero", || {
        let zero_and_over = [(50, 100), (0, 300), (200, 90)].map(|(from, length)| {
            [Call::Zero(f(), from, length), Call::Write(f(), from + 8, length - 20), Call::Write(f(), from, 16)]
        });
        zero_and_over.into_iter().flatten().collect()
    }),
    // 43: blocks of all kinds of sizes become files and memory again: at the borders of what shares
    // a chunk, split and merged, under one name.
    ("memory-to-file", || {
        let sizes = [32, 33, 4095, 4097, 20_000];
        let there_and_back = |bytes| [Call::Publish(m(), bytes), Call::Withdraw(m())];
        sizes.into_iter().flat_map(there_and_back).chain([Call::Publish(m(), 64), Call::Append(m(), 5000)]).collect()
    }),
    // 43: the pointer to what is a file is kept, and who had it dies.
    ("memory-of-the-dead", || {
        vec![
            Call::Publish(m(), 700),
            Call::Publish(s("B/n"), 9000),
            Call::Die,
            Call::Withdraw(m()),
            Call::Publish(m(), 700),
            Call::Rename(s("B/n"), m()),
            Call::Die,
            Call::Withdraw(m()),
            Call::Withdraw(f()),
        ]
    }),
    WHITEOUT,
];

/// What an overlay mount does to its upper directory: files and directories give way to whiteouts,
/// and whiteouts to files.
pub const WHITEOUT: Case = ("whiteout", || {
    vec![
        Call::RenameLeavingWhiteout(f(), s("B/n")),
        Call::RenameLeavingWhiteout(s("A/g"), s("B/h")),
        Call::Fsync(s("A")),
        Call::Rename(s("B/n"), f()),
        Call::RenameLeavingWhiteout(s("E"), s("A/E")),
        Call::Unlink(s("A/g")),
        Call::RenameLeavingWhiteout(f(), s("A/n")),
        Call::Sync,
    ]
});

fn s(path: &str) -> String {
    path.into()
}

fn m() -> String {
    s("A/m")
}

fn f() -> String {
    s("A/f")
}

/// The sequence of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<Vec<Call>> {
    CASES.iter().find(|(of, _)| *of == name).map(|(_, calls)| calls())
}
