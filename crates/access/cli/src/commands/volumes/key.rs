//! `onode key`: the key slots of an encrypted volume, and keys of its directories.

mod directory;
mod face;
pub mod first;
pub mod report;

use crate::commands::state::ask;
use crate::commands::volumes::key::directory::{Directory, Inside};
use crate::commands::volumes::key::first::CostArguments;
use crate::commands::volumes::key::report::{AnchorReport, Done, Report};
use crate::keys::KeyArguments;
use crate::location;
use onode::keys::{NewKey, VolumeKeys};
use onode::{Class, Error, MountOptions, Result, Volume};
use onode_console::Output;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A volume is encrypted when it is made (`onode mkfs --encrypt`). Each of its key slots opens it: with
a passphrase, or with a key file. Slots can be added and removed any time; files are not written
anew for it. Nobody can open a volume without any of its keys, so keep two.

A directory of an encrypted volume can have a key of its own: what is made in it can be read and
named only while that is unlocked, whoever has the key of the volume. It must have no files yet.
Who made the volume with `onode mkfs --encrypt-directories` needs no key for the rest of it.

Examples:
  onode key list disk.img
  onode key add disk.img --label spare                  (asks for a passphrase of now and a new one)
  onode key add disk.img --new-key-file disk.key        (a key file for mounts at boot)
  onode --key-file disk.key key remove disk.img 0       (the key that is given must stay)
  onode key change disk.img                             (a new passphrase in the place of one)
  onode --key-file disk.key key test disk.img
  onode key anchor disk.img > noted                     (of a volume made with --authenticate)
  onode --expect-anchor \"$(cat noted)\" mount disk.img /mnt

  mkdir /mnt/alice && onode key new /mnt/alice          (a directory of a mounted volume)
  onode key lock /mnt/alice
  onode key unlock /mnt/alice                           (asks for the passphrase)
  onode key add /mnt/alice --new-key-file alice.key     (asks for what opens it now, but not root)
  onode key new disk.img alice --new-key-file alice.key (a directory of an image)
  onode --unlock alice.key get disk.img alice .
  onode mount -o unlock=alice.key disk.img /mnt")]
pub struct Arguments {
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum KeyVerb {
    /// Show the key slots, and keys of directories. No key is needed.
    List(Named),
    /// Add a key slot for another passphrase or key file: to a volume that is not mounted, or to
    /// the key of a directory.
    Add(Added),
    /// Put another passphrase or key file in the place of the one that is given.
    Change(Added),
    /// Remove key slots by their numbers. The key that is given must be of a slot that stays.
    Remove(Removed),
    /// Tell which key slot the given key opens.
    Test(Named),
    /// Print what to note of an authenticated volume, so that an older copy in its place is found
    /// out: `--expect-anchor` then refuses whatever is older. A mounted one is synced for it.
    Anchor(Named),
    /// Make a key for a directory without files, of a mounted volume or of an image. What is made
    /// in it from then on needs that key; it is unlocked until the volume is unmounted.
    New(Added),
    /// Unlock the key of a directory of a mounted volume, or, of any other directory, all keys
    /// that the given key opens.
    Unlock(DirectoryArgument),
    /// Forget the key of a directory of a mounted volume. Nobody may have files open there.
    Lock(DirectoryArgument),
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The image or device spec. To list keys, or for an anchor: a mounted volume, too.
    image: OsString,
}

#[derive(Debug, clap::Args)]
struct DirectoryArgument {
    /// The directory.
    directory: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Removed {
    /// The image or device spec, or a directory of a mounted volume.
    image: OsString,
    /// Numbers of key slots, as `onode key list` shows them.
    #[arg(required = true, value_name = "SLOT")]
    slots: Vec<u32>,
    /// Of the key of a directory: also the last slot. Nobody will ever read what is in there.
    #[arg(long)]
    destroy: bool,
}

#[derive(Debug, clap::Args)]
struct Added {
    /// The image or device spec, or a directory of a mounted volume.
    image: OsString,
    /// Of an image: the directory in it whose key it is.
    directory: Option<PathBuf>,
    /// The new key: a file of random bytes, 32 or more. Without any of these a passphrase is asked
    /// for.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new_passphrase_file", "new_keyring"])]
    new_key_file: Option<PathBuf>,
    /// A file whose text is the new passphrase; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "new_keyring")]
    new_passphrase_file: Option<PathBuf>,
    /// The new key is one of the kernel with this name.
    #[arg(long, value_name = "NAME")]
    new_keyring: Option<String>,
    /// What people call the new slot, at most 64 bytes.
    #[arg(long, default_value = "")]
    label: String,
    #[command(flatten)]
    cost: CostArguments,
}

impl Added {
    /// Does something with the new key, which a person may be asked for.
    fn with_new_key<T>(&self, act: impl FnOnce(&NewKey<'_>) -> Result<T>) -> Result<T> {
        let arguments = KeyArguments {
            key_file: self.new_key_file.clone(),
            passphrase_file: self.new_passphrase_file.clone(),
            keyring: self.new_keyring.clone(),
            ..KeyArguments::default()
        };
        let secret = arguments.new_secret()?;
        act(&NewKey { secret: &secret, label: &self.label, cost: self.cost.cost()? })
    }

    /// The directory whose key is meant, if it is not that of the volume.
    fn of_directory(&self) -> Result<Option<Directory<'_>>> {
        Ok(match (Path::new(&self.image), &self.directory) {
            (image, Some(directory)) if image.is_dir() => {
                let what = format!("cannot use {} in {}", directory.display(), image.display());
                return Err(Error::new(Class::Usage, what, "the first is a directory already")
                    .hint("name the directory whose key it is, and nothing more"));
            }
            (image, None) if image.is_dir() => Some(Directory::Mounted(image)),
            (_, Some(directory)) => Some(Directory::OfImage(Inside { image: &self.image, directory })),
            (_, None) => None,
        })
    }
}

pub fn run(arguments: &Arguments, keys: &KeyArguments, output: &Output) -> Result<u8> {
    match &arguments.verb {
        KeyVerb::List(Named { image }) if Path::new(image).is_dir() => directory::list(Path::new(image), output)?,
        KeyVerb::List(Named { image }) => {
            let spec = location::spec(image)?;
            let keys = VolumeKeys::open(&spec, true)?;
            output.report(&Report::of(&spec, &keys)?)?;
        }
        KeyVerb::Test(Named { image }) => {
            let spec = location::spec(image)?;
            let slot = VolumeKeys::open(&spec, true)?.test()?;
            let text = format!("the key opens slot {slot} of {spec}");
            let (spec, slot) = (spec.to_string(), Some(slot));
            output.report(&Done { spec, slot, removed: Vec::new(), keys: Vec::new(), text })?;
        }
        KeyVerb::Anchor(Named { image }) => output.report(&anchor(image)?)?,
        KeyVerb::New(added) => {
            let directory = added.of_directory()?.ok_or_else(|| {
                let what = format!("cannot make a key on {}", added.image.display());
                Error::new(Class::Usage, what, "no directory is named that it is for")
                    .hint("onode key new IMAGE DIRECTORY, or of a mounted volume: onode key new DIRECTORY")
            })?;
            directory.create(added, output)?;
        }
        KeyVerb::Add(added) => match added.of_directory()? {
            Some(directory) => directory.add(added, keys, output)?,
            None => put(added, false, output)?,
        },
        KeyVerb::Change(added) => match added.of_directory()? {
            Some(directory) => {
                let what = format!("cannot change the key of {directory}");
                return Err(Error::new(Class::Usage, what, "a slot is added first, and the old one removed then")
                    .hint("onode key add DIRECTORY; onode key list DIRECTORY; onode key remove DIRECTORY SLOT"));
            }
            None => put(added, true, output)?,
        },
        KeyVerb::Remove(removed) if Path::new(&removed.image).is_dir() => directory::remove(removed, keys, output)?,
        KeyVerb::Remove(Removed { image, destroy: true, .. }) => {
            let what = format!("cannot destroy a key of {}", image.display());
            return Err(Error::new(Class::Usage, what, "only the key of a directory of a mounted volume can be")
                .hint("mount it, and name the directory"));
        }
        KeyVerb::Remove(Removed { image, slots, destroy: false }) => {
            let spec = location::spec(image)?;
            let mut keys = VolumeKeys::open(&spec, false)?;
            keys.remove(slots)?;
            keys.close()?;
            let numbers: Vec<String> = slots.iter().map(u32::to_string).collect();
            let text = format!("removed slot {} of {spec}", numbers.join(", "));
            let spec = spec.to_string();
            output.report(&Done { spec, slot: None, removed: slots.clone(), keys: Vec::new(), text })?;
        }
        KeyVerb::Unlock(DirectoryArgument { directory }) => directory::unlock(directory, keys, output)?,
        KeyVerb::Lock(DirectoryArgument { directory }) => directory::lock(directory, output)?,
    }
    Ok(0)
}

/// The state of an authenticated volume, which may be mounted.
fn anchor(image: &OsStr) -> Result<AnchorReport> {
    let what = || format!("cannot note the state of {}", image.display());
    let lacking = || {
        Error::new(Class::Usage, what(), "it is not authenticated")
            .hint("a volume is authenticated when it is made: onode mkfs --encrypt --authenticate IMAGE")
    };
    let directory = Path::new(image);
    if directory.is_dir() {
        onode_fuse::our_mount_at(directory, what())?;
        return ask::view(directory, "anchor")?.ok_or_else(lacking);
    }
    let spec = location::spec(image)?;
    match Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() }) {
        Ok(volume) => {
            let anchor = volume.anchor();
            volume.close()?;
            anchor.map(|anchor| AnchorReport::of(&spec, &anchor)).ok_or_else(lacking)
        }
        Err(error) if error.class == Class::InUse => match onode_fuse::mount_of(&spec) {
            Some(mounted) => ask::view(&mounted.directory, "anchor")?.ok_or_else(lacking),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn put(added: &Added, is_change: bool, output: &Output) -> Result<()> {
    let spec = location::spec(&added.image)?;
    let mut keys = VolumeKeys::open(&spec, false)?;
    // Who cannot open it is told before a new passphrase has been thought of.
    keys.test()?;
    let (slot, removed, kind) = added.with_new_key(|key| {
        let (slot, removed) = match is_change {
            true => keys.change(key).map(|(slot, old)| (slot, vec![old])),
            false => keys.add(key).map(|slot| (slot, Vec::new())),
        }?;
        Ok((slot, removed, key.secret.kind()))
    })?;
    keys.close()?;
    let instead = removed.first().map_or_else(String::new, |old| format!(" in the place of slot {old}"));
    let text = format!("added slot {slot}{instead}: a {} opens {spec} now", kind.name());
    output.report(&Done { spec: spec.to_string(), slot: Some(slot), removed, keys: Vec::new(), text })
}
