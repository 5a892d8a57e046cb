//! The volumes that are damaged: some sessions of work, what they promised, and images of their
//! media then and before.

use crate::damage::media::{Image, Scratch};
use onode::{CreateOptions, MountOptions, Spec, Volume};
use onode_base::Prng;
use onode_fs::Caller;
use std::collections::BTreeMap;

const CALLER: Caller = Caller::root();

/// The files of a medium by name; `None` if one is not there.
pub type Images = BTreeMap<&'static str, Option<Image>>;

/// What a path may hold.
#[derive(Clone, Debug, Default)]
pub struct Promised {
    /// What it holds now; `None` if there is no such file.
    pub now: Option<Vec<u8>>,
    /// What it held before.
    pub before: Vec<Vec<u8>>,
    /// It was not synced: a crash may leave anything that it ever held.
    pub is_loose: bool,
}

/// A volume and what it promised.
pub struct Made {
    /// In words.
    pub what: String,
    /// `nand`, `beside`, `scm` or `tier`.
    pub medium: String,
    /// How it is opened, with `DIR` for the folder.
    pub spec: String,
    /// By path.
    pub files: BTreeMap<String, Promised>,
    /// The media at the end.
    pub now: Images,
    /// The media after the session before.
    pub earlier: Images,
    /// The last session was killed.
    pub is_killed: bool,
}

/// How the last session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Closed in order, nothing was synced before.
    Closed,
    /// The same after many syncs.
    SyncedAndClosed,
    /// Killed: what was synced is promised.
    Killed,
}

impl Made {
    /// A volume on this medium.
    ///
    /// # Errors
    /// What failed without any damage.
    pub fn new(medium: &str, seed: u64, scratch: &Scratch) -> Result<Self, String> {
        let mut prng = Prng::new(seed ^ 0xdead_beef);
        let turn = seed / 3;
        let (spec, new, names): (&str, &str, &[&'static str]) = match medium {
            "nand" => ("flash:DIR/disk", ",size=2M,page=2K,pages-per-block=16", &["disk"]),
            "beside" if turn.is_multiple_of(2) => {
                ("flash+scm:DIR/disk,DIR/index", ",size=2M,page=2K,pages-per-block=16", &["disk", "index"])
            }
            "beside" => {
                ("flash+scm:DIR/disk,DIR/index,buffer=on", ",size=2M,page=2K,pages-per-block=16", &["disk", "index"])
            }
            "scm" => ("scm:DIR/disk", ",size=2M", &["disk"]),
            "tier" if turn.is_multiple_of(2) => {
                ("tier:DIR/fast,DIR/disk", ",size=16M,fast-size=8M,log=256K,acknowledge=either", &["disk", "fast"])
            }
            "tier" => ("tier:DIR/fast,DIR/disk", ",size=16M,fast-size=8M,log=256K", &["disk", "fast"]),
            other => return Err(format!("there is no medium '{other}'")),
        };
        let end = match seed % 3 {
            0 => End::Closed,
            1 => End::SyncedAndClosed,
            // A memory names its living users: one that was killed has to be another process.
            _ if medium == "scm" => End::SyncedAndClosed,
            _ => End::Killed,
        };
        let what = format!("{spec} {end:?}");
        let failed = |doing: &str, error: &dyn std::fmt::Display| format!("{what}: {doing}: {error}");
        scratch.lay_out(&BTreeMap::new()).map_err(|error| failed("the folder", &error))?;
        let folder = scratch.folder().display().to_string();
        let parse = |more: &str| {
            Spec::parse(&(spec.replace("DIR", &folder) + more)).map_err(|error| failed("the spec", &error.why))
        };
        // Only the times of its files are other ones when it is made again.
        let mut uuid = [0; 16];
        Prng::new(seed).fill(&mut uuid);
        let options = CreateOptions { uuid: Some(uuid), ..CreateOptions::default() };
        Volume::create(&parse(new)?, &options).map_err(|error| failed("create", &error.why))?;
        let mut files = BTreeMap::new();
        let read = || -> Result<Images, String> {
            let read =
                |name: &&'static str| Image::read(&scratch.folder().join(name)).map(|image| (*name, Some(image)));
            names.iter().map(read).collect::<Result<_, _>>().map_err(|error| failed("reading images", &error))
        };
        let mut earlier = read()?;
        for session in 0..3 {
            earlier = read()?;
            let volume = Volume::open(&parse("")?, MountOptions::default());
            let volume = volume.map_err(|error| failed("open", &error.why))?;
            let is_last = session == 2;
            let syncs = is_last && end != End::Closed;
            work(&volume, &mut files, syncs, (is_last && end == End::Killed).then_some(medium), &mut prng)
                .map_err(|error| failed("work", &error))?;
            if is_last && end == End::Killed {
                let now = read()?;
                // What becomes of these files is no matter any more.
                let _ = volume.close();
                return Ok(Self {
                    what: what.clone(),
                    medium: medium.into(),
                    spec: spec.into(),
                    files,
                    now,
                    earlier,
                    is_killed: true,
                });
            }
            volume.close().map_err(|error| failed("close", &error.why))?;
        }
        Ok(Self {
            now: read()?,
            what: what.clone(),
            medium: medium.into(),
            spec: spec.into(),
            files,
            earlier,
            is_killed: false,
        })
    }
}

/// Files are made, rewritten, renamed and removed; with `syncs` each is synced, and on the medium
/// that it `leaves` some come after that.
fn work(
    volume: &Volume,
    files: &mut BTreeMap<String, Promised>,
    syncs: bool,
    leaves: Option<&str>,
    prng: &mut Prng,
) -> onode_fs::Result<()> {
    let fs = volume.files();
    fs.make_directories(&CALLER, b"/d", 0o755)?;
    let bytes = |prng: &mut Prng| {
        let mut bytes = vec![0; [0, 10, 300, 2000, 9000][prng.below(5) as usize] + prng.below(50) as usize];
        prng.fill(&mut bytes);
        bytes
    };
    let write = |files: &mut BTreeMap<String, Promised>, path: &str, bytes: Vec<u8>, syncs: bool| {
        let number = fs.write_file(&CALLER, path.as_bytes(), &bytes, 0o644)?;
        if syncs {
            fs.fsync(number, None, false)?;
        }
        let one = files.entry(path.to_string()).or_default();
        let before = one.now.replace(bytes);
        one.before.extend(before);
        one.is_loose = false;
        onode_fs::Result::Ok(())
    };
    for _ in 0..25 {
        let path = format!("{}/f{}", ["", "/d"][prng.below(2) as usize], prng.below(60));
        write(files, &path, bytes(prng), syncs)?;
    }
    let there: Vec<String> = files.iter().filter(|(_, one)| one.now.is_some()).map(|(path, _)| path.clone()).collect();
    for path in there.iter().filter(|_| prng.chance(1, 4)) {
        fs.remove_all(path.as_bytes())?;
        if let Some(one) = files.get_mut(path) {
            one.before.extend(one.now.take());
        }
    }
    if syncs {
        fs.sync()?;
    }
    if let Some(medium) = leaves {
        // Of a log on two disks, damage of the very last record looks like one that a crash cut
        // short: nothing before it does. An image of flash knows what was durable.
        write(files, "/last", bytes(prng), true)?;
        if let Some(one) = files.get_mut("/last") {
            one.is_loose = medium == "tier";
        }
        for number in 0..6 {
            let path = format!("/loose{number}");
            write(files, &path, bytes(prng), false)?;
            if let Some(one) = files.get_mut(&path) {
                one.is_loose = true;
            }
        }
    }
    Ok(())
}
