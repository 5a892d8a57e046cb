//! Files made until the volume is full, overwritten, taken away after an orderly unmount and a
//! mount.

use crate::files::calls::Call;
use crate::files::state::FileState;
use onode_base::Prng;

/// The name of the workload.
pub const NAME: &str = "brim";

/// Calls of the parts. A file is made by two of them, unless one is refused.
const FILL: usize = 560;
const OVERWRITE: usize = 20;
const EMPTY: usize = 330;
/// Steps that make so many calls, and some to fill it again.
pub const STEPS: u32 = 700;
/// Files that fill a volume, about, and what one takes besides its bytes.
const FILES: u64 = 200;
const FILE_BYTES: u64 = 400;

/// What is done next.
pub enum Step {
    /// These calls.
    Calls(Vec<Call>),
    /// An orderly unmount and a mount.
    Reopen,
}

/// What a run on a volume of `total` bytes does next, after so many calls.
#[must_use]
pub fn step(state: &FileState, calls: usize, total: u64, seed: u64, prng: &mut Prng) -> Step {
    let at = calls % (FILL + OVERWRITE + 2 + EMPTY);
    let made = state.find("B").and_then(|number| state.entries(number));
    let names: Vec<&String> = made.into_iter().flat_map(|names| names.keys()).collect();
    let one = |index: u64| names.get(index as usize).map(|name| format!("B/{name}"));
    let drawn = one(prng.below(names.len() as u64));
    let calls = match (at, drawn) {
        (_, Some(path)) if prng.chance(1, 20) => {
            vec![[Call::Fsync(path), Call::Sync, Call::Tick][prng.below(3) as usize].clone()]
        }
        (0..FILL, _) => {
            // Names that a directory lists in another order than they were made in.
            let path = format!("B/{:x}-{calls}", prng.below(1 << 16));
            let least = (total / FILES).saturating_sub(FILE_BYTES);
            let small = [0, 0, 100, 300, 1000, 4000][prng.below(6) as usize];
            let length = if prng.chance(1, 3) { small } else { small.max(least) } as usize;
            let write = (length > 0).then(|| Call::Append(path.clone(), length));
            [Some(Call::Create(path)), write].into_iter().flatten().collect()
        }
        (_, Some(path)) if at < FILL + OVERWRITE => {
            let length = state.find(&path).and_then(|number| state.content(number)).map_or(0, |one| one.newest().len());
            vec![Call::Write(path, 0, length)]
        }
        _ if at == FILL + OVERWRITE => return Step::Reopen,
        (_, Some(path)) if at > FILL + OVERWRITE => {
            let path = match seed % 3 {
                0 => one(0).unwrap_or(path),
                1 => path,
                _ => one(names.len() as u64 - 1).unwrap_or(path),
            };
            vec![Call::Unlink(path)]
        }
        _ => vec![Call::Tick],
    };
    Step::Calls(calls)
}
