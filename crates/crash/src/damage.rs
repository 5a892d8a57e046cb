//! Damaged media: volumes that were closed, or killed after syncs, with every structure hurt in
//! turn.
//!
//! What was promised - everything in a volume that was closed, what was synced in one that was
//! killed - is read back right, or some call says that it is not: the opening, the read of that
//! file, a condition of the device's health, a note, or the check. Bytes are never wrong, and an
//! older state is never passed off as the present one. Nothing panics, hangs or takes memory
//! without bound. A repair that may drop ends clean, or changes nothing and says that the volume
//! cannot be gone on from: those are counted.
//!
//! It goes through the facade, on files: what people have is opened, checked and repaired as their
//! commands do it. Left out: the content of files on byte-addressable memory, which has no
//! checksums by design. There is no judging of bytes that the damage itself put there.

pub mod faults;
pub mod hurt;
pub mod judge;
pub mod media;
pub mod volume;

use hurt::Hurt;
use media::Scratch;
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use volume::Made;

/// Images made of one volume.
const IMAGES_OF_ONE: u64 = 150;
/// Nothing takes so long.
const LONGEST: Duration = Duration::from_secs(60);
/// Memory of the process after which an image counts as one that takes too much.
const MOST_MEMORY_KIB: u64 = 1 << 20;

/// What to do.
#[derive(Clone, Debug)]
pub struct DamagePlan {
    /// `nand`, `beside`, `scm` or `tier`.
    pub medium: String,
    /// From which everything follows.
    pub seed: u64,
    /// Number of the first image.
    pub first: u64,
    /// How many.
    pub images: u64,
    /// Threads.
    pub jobs: usize,
    /// Violations after which it ends.
    pub most_violations: usize,
    /// A folder that gets the images that violate a promise, each in one named by its number.
    pub keep: Option<PathBuf>,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct DamageOutcome {
    /// Images judged.
    pub images: u64,
    /// Of them, where some call said that something is lost or damaged.
    pub told: u64,
    /// Of them, opened for writing without consent.
    pub opened: u64,
    /// Of them, repaired and clean.
    pub repaired: u64,
    /// Of them, refused by a repair because what it would go on from is lost.
    pub beyond_repair: u64,
    /// Number of the image, what was done to it, what is wrong.
    pub violations: Vec<(u64, String, String)>,
}

/// Judges images by number; each follows from the seed and its number alone.
///
/// # Errors
/// If a sound volume cannot be made, or is not what was put there.
pub fn run(plan: &DamagePlan) -> Result<DamageOutcome, String> {
    let volumes = plan.first / IMAGES_OF_ONE..=(plan.first + plan.images.saturating_sub(1)) / IMAGES_OF_ONE;
    let next = AtomicU64::new(*volumes.start());
    let total = Mutex::<_, rank::Free>::new((DamageOutcome::default(), None));
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let volume = next.fetch_add(1, Ordering::Relaxed);
                    let done = total.lock().0.violations.len() >= plan.most_violations;
                    if done || volume > *volumes.end() {
                        return;
                    }
                    let result = of_one_volume(plan, volume);
                    let mut total = total.lock();
                    match result {
                        Ok(outcome) => add(&mut total.0, outcome),
                        Err(why) => total.1 = Some(why),
                    }
                }
            });
        }
    });
    let (outcome, error) = total.into_inner();
    error.map_or(Ok(outcome), Err)
}

fn add(total: &mut DamageOutcome, one: DamageOutcome) {
    total.images += one.images;
    total.told += one.told;
    total.opened += one.opened;
    total.repaired += one.repaired;
    total.beyond_repair += one.beyond_repair;
    total.violations.extend(one.violations);
}

fn of_one_volume(plan: &DamagePlan, number: u64) -> Result<DamageOutcome, String> {
    let scratch = Scratch::new(&plan.medium, number).map_err(|error| format!("no place for images: {error}"))?;
    let seed = plan.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number);
    let made = Made::new(&plan.medium, seed, &scratch)?;
    let mut outcome = DamageOutcome::default();
    let begin = number * IMAGES_OF_ONE;
    let wanted = plan.first..plan.first + plan.images;
    for image in (begin..begin + IMAGES_OF_ONE).filter(|image| wanted.contains(image)) {
        if outcome.violations.len() >= plan.most_violations {
            break;
        }
        let violations = outcome.violations.len();
        let mut prng = Prng::new(seed ^ (image + 1).wrapping_mul(0xda3e_39cb_94b9_5bdb));
        let mut images = made.now.clone();
        let hurt = Hurt::draw(&made, &mut images, &mut prng);
        let what = format!("{}: {}", made.what, hurt.what);
        let guard = Watch::new(plan, image, &what);
        let judged = catch_unwind(AssertUnwindSafe(|| judge::judge(&made, &images, &hurt, &scratch)));
        let judged = judged.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        });
        drop(guard);
        outcome.images += 1;
        match judged {
            Ok(verdict) => {
                outcome.told += u64::from(verdict.told);
                outcome.opened += u64::from(verdict.opened);
                outcome.repaired += u64::from(verdict.repaired);
                outcome.beyond_repair += u64::from(verdict.is_beyond_repair);
            }
            Err(why) => outcome.violations.push((image, what.clone(), why)),
        }
        if let Some(folder) = plan.keep.as_ref().filter(|_| outcome.violations.len() > violations) {
            let kept = media::write_to(&folder.join(image.to_string()), &images);
            kept.map_err(|error| format!("cannot keep images in {}: {error}", folder.display()))?;
        }
        if memory_kib() > MOST_MEMORY_KIB {
            outcome.violations.push((image, what, format!("{} KiB of memory are in use", memory_kib())));
        }
    }
    Ok(outcome)
}

/// Memory of this process now.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Ends the process with the line of the image if judging it takes too long.
struct Watch(#[allow(dead_code, reason = "its end is the message")] std::sync::mpsc::Sender<()>);

impl Watch {
    fn new(plan: &DamagePlan, image: u64, what: &str) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let text = format!("HANG: {}\n    {what}", line(plan, image));
        std::thread::spawn(move || {
            if receiver.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                println!("{text}");
                std::process::exit(1);
            }
        });
        Self(sender)
    }
}

/// The command that judges one image again.
#[must_use]
pub fn line(plan: &DamagePlan, image: u64) -> String {
    format!("onode-crash damage --medium {} --seed {} --first {image} --images 1", plan.medium, plan.seed)
}
