//! The verdict on one damaged volume: looked at, checked, opened for changes, opened with consent,
//! repaired.

use crate::damage::hurt::Hurt;
use crate::damage::media::Scratch;
use crate::damage::volume::{Images, Made, Promised};
use onode::medium::{check_medium, repair_medium};
use onode::{Class, Error, MountOptions, Severity, Spec, Volume, open_device, repair_files};
use onode_fs::{ErrorKind, FileSystem, FileType, InodeNumber};
use std::collections::BTreeMap;

/// What became of an image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    /// Some call said that something is wrong.
    pub told: bool,
    /// It was opened for changes without consent.
    pub opened: bool,
    /// It was repaired and clean after that.
    pub repaired: bool,
    /// A repair refused it, because what it would go on from is lost; nothing was changed.
    pub is_beyond_repair: bool,
}

/// What is not as it was promised.
#[derive(Clone, Debug, Default)]
struct Looked {
    /// Reads that failed, which says so for that file.
    failed: Vec<String>,
    /// Files that are gone, or as they once were.
    lost: Vec<String>,
    /// Bytes that no version of the file ever had.
    wrong: Vec<String>,
}

/// Damage of so many bytes is one that a repair must come to an end with.
const SMALL_BYTES: u64 = 4096;

/// Judges `images`, which are those of `made` with damage.
///
/// # Errors
/// The promise that is broken, in words.
pub fn judge(made: &Made, images: &Images, hurt: &Hurt, scratch: &Scratch) -> Result<Verdict, String> {
    let judge = Judge { made, images, hurt, scratch };
    let mut verdict = Verdict::default();
    let checked = judge.check(&mut verdict)?;
    for (read_only, accept_loss) in [(true, false), (false, false), (false, true)] {
        judge.open(read_only, accept_loss, checked, &mut verdict)?;
    }
    judge.repair(checked, &mut verdict)?;
    Ok(verdict)
}

struct Judge<'a> {
    made: &'a Made,
    images: &'a Images,
    hurt: &'a Hurt,
    scratch: &'a Scratch,
}

/// What the check said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    Sound,
    Unsound,
    Refused,
}

impl Judge<'_> {
    fn lay_out(&self) -> Result<Spec, String> {
        self.scratch.lay_out(self.images).map_err(|error| format!("images cannot be written: {error}"))?;
        self.spec()
    }

    fn spec(&self) -> Result<Spec, String> {
        let text = self.made.spec.replace("DIR", &self.scratch.folder().display().to_string());
        Spec::parse(&text).map_err(|error| error.to_string())
    }

    fn check(&self, verdict: &mut Verdict) -> Result<Checked, String> {
        let spec = self.lay_out()?;
        let checked = match check_medium(&spec, &mut |_, _| {}) {
            Ok(report) if report.is_sound => Checked::Sound,
            Ok(_) => Checked::Unsound,
            Err(error) if [Class::Damaged, Class::Loss].contains(&error.class) => Checked::Unsound,
            Err(error) => {
                no_bug("check", &error)?;
                Checked::Refused
            }
        };
        verdict.told |= checked != Checked::Sound;
        Ok(checked)
    }

    /// Opens it in one way, compares, closes it and opens it once more.
    fn open(&self, read_only: bool, accept_loss: bool, checked: Checked, verdict: &mut Verdict) -> Result<(), String> {
        let how = match (read_only, accept_loss) {
            (true, _) => "read-only",
            (false, false) => "for changes",
            (false, true) => "with consent to loss",
        };
        let spec = self.lay_out()?;
        let options = || MountOptions { read_only, accept_loss, ..MountOptions::default() };
        let volume = match Volume::open(&spec, options()) {
            Ok(volume) => volume,
            Err(error) => {
                no_bug(how, &error)?;
                if accept_loss && error.class == Class::Loss {
                    return Err(format!("opened {how}, it is refused for a loss: {error}"));
                }
                verdict.told = true;
                return Ok(());
            }
        };
        verdict.opened |= !read_only && !accept_loss;
        let looked = self.look(volume.files())?;
        // What the device knows of itself, after everything was read.
        let said = tells(&volume);
        let told = said || checked != Checked::Sound;
        verdict.told |= told || !looked.failed.is_empty();
        self.compare(how, &looked, told, checked)?;
        let closed = volume.close();
        drop(volume);
        if let Err(error) = closed {
            no_bug("close", &error)?;
            return Ok(());
        }
        if read_only {
            return Ok(());
        }
        match Volume::open(&spec, options()) {
            Ok(volume) => {
                let again = self.look(volume.files())?;
                let told = told || tells(&volume);
                self.compare(&format!("{how}, closed and opened again"), &again, told, checked)?;
                volume.close().or_else(|error| no_bug("close", &error))
            }
            Err(error) => no_bug(how, &error),
        }
    }

    fn compare(&self, how: &str, looked: &Looked, told: bool, checked: Checked) -> Result<(), String> {
        if let Some(wrong) = looked.wrong.first() {
            return Err(format!("opened {how}, {} files have wrong bytes: {wrong}", looked.wrong.len()));
        }
        if let (false, Some(lost)) = (told, looked.lost.first()) {
            return Err(format!("opened {how}, {} files are lost and nobody says so: {lost}", looked.lost.len()));
        }
        if let (Checked::Sound, Some(failed)) = (checked, looked.failed.first()) {
            return Err(format!("the check says sound, but opened {how}: {failed}"));
        }
        Ok(())
    }

    /// Repairs with leave to drop, medium and files as `onode repair` does; what is left is sound
    /// and has no wrong bytes.
    fn repair(&self, checked: Checked, verdict: &mut Verdict) -> Result<(), String> {
        if checked != Checked::Unsound {
            return Ok(());
        }
        let spec = self.lay_out()?;
        if let Err(error) = repair_medium(&spec, true, true) {
            no_bug("repair", &error)?;
            // Two places take both copies of a header or of the root of an index: the rest stays as
            // it is for whoever can read more of it.
            if self.hurt.is_twice {
                verdict.is_beyond_repair = true;
                return Ok(());
            }
            let is_small = !self.hurt.is_whole && self.hurt.bytes <= SMALL_BYTES;
            return if is_small && error.class == Class::Damaged {
                Err(format!("a repair that may drop what is damaged says: {error}"))
            } else {
                Ok(())
            };
        }
        let (device, _) = open_device(&spec, false, true).map_err(|error| format!("open after the repair: {error}"))?;
        if let Err(error) = repair_files(&spec, device.as_ref()) {
            no_bug("repair of the files", &error)?;
        }
        device.close().map_err(|error| format!("close after the repair: {error}"))?;
        drop(device);
        let report = check_medium(&spec, &mut |_, _| {}).map_err(|error| format!("check after the repair: {error}"))?;
        if !report.is_sound {
            let worse = report.findings.iter().find(|finding| finding.severity != "warning");
            let first = worse.map(|finding| finding.message.clone()).unwrap_or_default();
            return Err(format!("a repair that may drop leaves damage: {first}"));
        }
        let volume = Volume::open(&spec, MountOptions::default());
        let volume = match volume {
            Ok(volume) => volume,
            // The records of its files may be gone with the rest: then nothing is a volume.
            Err(error) if self.hurt.bytes > SMALL_BYTES => return no_bug("opened after the repair", &error),
            Err(error) => return Err(format!("after the repair it cannot be opened: {error}")),
        };
        let looked = self.look(volume.files())?;
        verdict.repaired = true;
        // What could not be read is zeros now.
        match looked.wrong.iter().find(|text| !text.ends_with(ZEROS)) {
            Some(wrong) => Err(format!("after the repair files have wrong bytes: {wrong}")),
            None => volume.close().or_else(|error| no_bug("close after the repair", &error)),
        }
    }

    /// Reads everything that there is and should be.
    fn look(&self, fs: &FileSystem) -> Result<Looked, String> {
        let mut looked = Looked::default();
        let mut found: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
        let mut is_whole = true;
        for directory in ["", "/d"] {
            let listed = fs.resolve(directory.as_bytes(), onode_fs::Follow::No).and_then(|number| fs.list(number));
            let entries = match listed {
                Ok(entries) => entries,
                Err(error) if error.kind == ErrorKind::NotFound => {
                    looked.lost.push(format!("{directory} is gone"));
                    continue;
                }
                Err(error) => {
                    looked.failed.push(format!("{directory}/: {error}"));
                    is_whole = false;
                    continue;
                }
            };
            for entry in entries.iter().filter(|entry| entry.file_type != FileType::Directory) {
                let path = format!("{directory}/{}", String::from_utf8_lossy(&entry.name));
                let read = read(fs, entry.inode);
                if let Err(error) = &read {
                    looked.failed.push(format!("{path}: {error}"));
                }
                found.insert(path, read.ok());
            }
        }
        for (path, one) in &self.made.files {
            match (found.remove(path), &one.now) {
                (None, None) | (Some(None), _) => {}
                // A directory that cannot be read says so for what is in it.
                (None, Some(_)) if !is_whole => {}
                (None, Some(_)) if one.is_loose => {}
                (None, Some(_)) => looked.lost.push(format!("{path} is gone")),
                (Some(Some(bytes)), _) => self.judge_bytes(path, one, &bytes, &mut looked),
            }
        }
        looked.wrong.extend(found.keys().map(|path| format!("{path} was never there")));
        Ok(looked)
    }

    fn judge_bytes(&self, path: &str, one: &Promised, bytes: &Vec<u8>, looked: &mut Looked) {
        if one.now.as_ref() == Some(bytes) {
            return;
        }
        let held = || one.before.iter().chain(&one.now);
        let differs = |before: &Vec<u8>| before.iter().zip(bytes).filter(|(a, b)| a != b).count() as u64;
        // Content on memory has no checksums: what the damage put there is seen, be it what was
        // there before.
        let like = |before: &&Vec<u8>| before.len() == bytes.len();
        let is_exempt = |before: &Vec<u8>| self.made.medium == "scm" && differs(before) <= self.hurt.bytes;
        if one.now.iter().filter(like).any(is_exempt) {
            return;
        }
        // An empty file is one whose content did not come to be.
        if bytes.is_empty() || held().any(|before| before.starts_with(bytes)) {
            if !one.is_loose {
                looked.lost.push(format!("{path} is as it once was, {} bytes", bytes.len()));
            }
            return;
        }
        if held().filter(like).any(is_exempt) {
            return;
        }
        // Nor has what its blocks were given to since, if an older state comes back.
        if self.made.medium == "scm" {
            looked.lost.push(format!("{path} has {} bytes of something else", bytes.len()));
            return;
        }
        let is_zeroed = held().filter(like).any(|before| before.iter().zip(bytes).all(|(a, b)| a == b || *b == 0));
        let count = one.now.as_ref().map_or(0, Vec::len);
        let zeros = if is_zeroed { ZEROS } else { "" };
        looked.wrong.push(format!("{path} has {} bytes, {count} are promised{zeros}", bytes.len()));
    }
}

/// How a text ends that tells of bytes that are right or zeros.
const ZEROS: &str = ", zeros for some";

fn read(fs: &FileSystem, number: InodeNumber) -> onode_fs::Result<Vec<u8>> {
    let size = fs.attributes(number)?.size;
    let mut bytes = vec![0xa5; size.min(1 << 20) as usize];
    let count = fs.read(number, 0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Whether an open volume says that something is or was wrong with it.
fn tells(volume: &Volume) -> bool {
    !volume.notes().is_empty() || volume.device().health().worst().is_some_and(|worst| worst >= Severity::Notice)
}

/// A mistake in Onode itself is none of the answers to damage.
fn no_bug(doing: &str, error: &Error) -> Result<(), String> {
    if error.class == Class::Bug { Err(format!("{doing}: {error}")) } else { Ok(()) }
}
