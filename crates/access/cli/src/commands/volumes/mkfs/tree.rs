//! `onode mkfs --from`: what a directory of the host holds becomes the content of a new volume, the
//! same bytes each time if that is wished.

use crate::commands::files::copy::exclude::Excludes;
use crate::commands::files::copy::manner::Owner;
use crate::commands::files::copy::{CopyManner, Copying, End, Host, InVolume, Measure, Wanted};
use crate::commands::files::copy::{progress_without_end, shows_progress};
use crate::commands::volumes::key::first::FirstKey;
use indicatif::ProgressBar;
use onode::keys::Encryption;
use onode::{Class, CreateOptions, Error, FileSystem, Flash, Medium, Result, Spec, Volume};
use onode_base::Timestamp;
use onode_console::Output;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that build systems say the time in.
const EPOCH: &str = "SOURCE_DATE_EPOCH";
/// What a volume needs beside its files, and each file beside its content.
const BASE_BYTES: u64 = 4 << 20;
/// As [`BASE_BYTES`].
const FILE_BYTES: u64 = 512;
/// Sizes of images that nobody chose are whole numbers of that.
const SIZE_UNIT_BYTES: u64 = 1 << 20;
/// How often an image is made larger if it turns out too small.
const TRIES: u32 = 8;

/// What a new volume holds, and what its bytes depend on.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TreeArguments {
    /// Fill the volume with what the directory DIR holds, and give its root what DIR has.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Whose all files of --from are: root, a user by number, or USER:GROUP. Default: as in DIR.
    #[arg(long, value_name = "OWNER", requires = "from")]
    owner: Option<String>,
    /// The same as --owner root.
    #[arg(long, requires = "from", conflicts_with = "owner")]
    squash_uids: bool,
    /// Leave out of --from what matches: a name ('*.o') or a path below DIR ('/var/cache').
    #[arg(long, value_name = "GLOB", requires = "from")]
    exclude: Vec<OsString>,
    /// The unique number of the volume, 32 hexadecimal digits. Default: a random one.
    #[arg(long, value_name = "UUID")]
    uuid: Option<String>,
    /// When the volume was made, in seconds since 1970. Default: SOURCE_DATE_EPOCH if that is set,
    /// else now.
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    time: Option<i64>,
}

/// A directory that a volume is filled from.
pub struct FirstTree<'a> {
    directory: PathBuf,
    manner: CopyManner,
    output: &'a Output,
}

fn wrong(option: &str, said: &str, why: &str, hint: &str) -> Error {
    Error::new(Class::Usage, format!("cannot use {option} `{said}`"), why).hint(hint)
}

impl TreeArguments {
    /// The number that was chosen for the volume.
    ///
    /// # Errors
    /// `Usage` if it is none.
    pub fn uuid(&self) -> Result<Option<[u8; 16]>> {
        let Some(said) = &self.uuid else { return Ok(None) };
        let digits: Vec<u8> = said.bytes().filter(|byte| *byte != b'-').collect();
        let mut bytes = [0; 16];
        let is_right = digits.len() == 32
            && bytes.iter_mut().zip(digits.chunks(2)).all(|(byte, pair)| {
                let value = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
                *byte = value.unwrap_or_default();
                value.is_some() && pair.iter().all(u8::is_ascii_hexdigit)
            });
        let hint = "for example 6b8f1c4e-0a3d-4f6e-9f5a-2d1c7b9e8a10; `uuidgen` draws one";
        if is_right { Ok(Some(bytes)) } else { Err(wrong("--uuid", said, "it is not 32 hexadecimal digits", hint)) }
    }

    /// The time that was chosen for the volume.
    ///
    /// # Errors
    /// `Usage` if the environment says what is none.
    pub fn time(&self) -> Result<Option<Timestamp>> {
        let of_variable = || {
            let said = std::env::var_os(EPOCH).filter(|said| !said.is_empty());
            let parsed = said.map(|said| match said.to_str().and_then(|text| text.parse().ok()) {
                Some(seconds) => Ok(seconds),
                None => {
                    let what = format!("cannot use the variable {EPOCH}");
                    Err(Error::new(Class::Usage, what, format!("`{}` is no number of seconds", said.display()))
                        .hint("set it to seconds since 1970, or unset it"))
                }
            });
            parsed.transpose()
        };
        let seconds = match self.time {
            Some(seconds) => Some(seconds),
            None => of_variable()?,
        };
        Ok(seconds.map(|seconds| Timestamp { seconds, nanoseconds: 0 }))
    }

    fn owner(&self) -> Result<Option<Owner>> {
        let said = match &self.owner {
            Some(said) => said.as_str(),
            None if self.squash_uids => "root",
            None => return Ok(None),
        };
        let number = |text: &str| if text == "root" { Some(0) } else { text.parse().ok() };
        let (user, group) = said.split_once(':').unwrap_or((said, said));
        match (number(user), number(group)) {
            (Some(uid), Some(gid)) => Ok(Some(Owner { uid, gid })),
            _ => Err(wrong("--owner", said, "it is neither root nor a number", "for example 1000 or 1000:100")),
        }
    }

    /// The directory that the volume is to be filled from; nothing for an empty one.
    ///
    /// # Errors
    /// `Usage` for options that cannot be meant; if the directory is not there, or is none.
    pub fn source<'a>(&self, spec: &Spec, output: &'a Output) -> Result<Option<FirstTree<'a>>> {
        let Some(from) = &self.from else { return Ok(None) };
        let directory = from.canonicalize().map_err(|error| Error::host_file("read", from, &error))?;
        let what = || format!("cannot fill a volume from {}", from.display());
        if !directory.is_dir() {
            return Err(
                Error::new(Class::Usage, what(), "it is no directory").hint("name the directory that it lies in")
            );
        }
        let beside = spec.image_path().and_then(Path::parent).map(|parent| match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        });
        if beside.and_then(|parent| parent.canonicalize().ok()).is_some_and(|parent| parent.starts_with(&directory)) {
            return Err(Error::new(Class::Usage, what(), "the image would lie in it, and hold itself")
                .hint("make the image in another directory"));
        }
        let manner = CopyManner {
            recursive: true,
            keeps_all: true,
            excludes: Excludes::new(&self.exclude)?,
            owner: self.owner()?,
            ..CopyManner::default()
        };
        Ok(Some(FirstTree { directory, manner, output }))
    }
}

impl FirstTree<'_> {
    /// Makes the volume. The size of flash in a file of which nobody said it is chosen.
    ///
    /// # Errors
    /// Those of the directory and of the volume. No image is left then.
    pub fn fill(&self, spec: &Spec, options: &CreateOptions, key: &FirstKey<'_>) -> Result<()> {
        self.filled(spec, options, key).map_err(|error| match self.manner.stop.asked() {
            Some(why) => {
                let why = format!("{why}; no image is left");
                Error::new(error.class, format!("cannot make {spec}"), why).hint("run it again")
            }
            None => error,
        })
    }

    fn filled(&self, spec: &Spec, options: &CreateOptions, key: &FirstKey<'_>) -> Result<()> {
        let sized = |size: u64| {
            let mut spec = spec.clone();
            if let Spec::Flash(flash) = &mut spec {
                flash.shape.size = Some(size);
            }
            spec
        };
        key.hand(spec, &|key| {
            self.manner.stop.listen()?;
            let Some(mut size) = self.size_for(spec)? else { return self.make(spec, options, key) };
            for _ in 1..TRIES {
                match self.make(&sized(size), options, key) {
                    // What metadata takes can only be tried.
                    Err(error) if error.class == Class::VolumeFull => {
                        size = (size + size / 4).next_multiple_of(SIZE_UNIT_BYTES);
                    }
                    made => return made,
                }
            }
            self.make(&sized(size), options, key)
        })
    }

    /// The size for a volume that nobody said the size of.
    fn size_for(&self, spec: &Spec) -> Result<Option<u64>> {
        let Spec::Flash(Flash { medium: Medium::Image(path) | Medium::Direct(path), shape, .. }) = spec else {
            return Ok(None);
        };
        // A device has the size that it has.
        if shape.size.is_some() || std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Ok(None);
        }
        let wanted = Wanted { side: &Host, top: &self.directory, manner: &self.manner };
        let bar = match shows_progress(&self.manner, self.output) {
            true => progress_without_end(self.output).with_message("reading how much there is"),
            false => ProgressBar::hidden(),
        };
        let mut measure = Measure::shown(bar.clone());
        let measured = measure.add(&wanted, &self.directory, &wanted.entry()?);
        bar.finish_and_clear();
        measured?;
        let bytes = measure.bytes.saturating_add(measure.files.saturating_mul(FILE_BYTES));
        Ok(Some((bytes + bytes / 4 + BASE_BYTES).next_multiple_of(SIZE_UNIT_BYTES)))
    }

    fn make(&self, spec: &Spec, options: &CreateOptions, how: Option<&Encryption<'_>>) -> Result<()> {
        let fill = |files: &FileSystem| {
            let side = InVolume { spec, files };
            let mut copying = Copying::new(&self.manner, self.output);
            copying.exactly(End { side: &Host, path: &self.directory }, End { side: &side, path: Path::new("/") })
        };
        match how {
            None => Volume::create_filled(spec, options, &fill),
            Some(how) => Volume::create_encrypted_filled(spec, options, how, &fill),
        }
    }
}
