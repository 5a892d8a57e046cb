//! `onode up`: from nothing to a mounted volume in one command.

use crate::commands::mounts::arguments::MountArguments;
use crate::commands::mounts::session::{Event, Manner, Session};
use crate::commands::volumes::key::first::{CostArguments, EncryptArguments, FirstKey};
use crate::keys::KeyArguments;
use crate::location;
use crate::watch::settings::Settings;
use onode::{Class, CreateOptions, Error, Result, Spec, human_size};
use onode_console::Output;
use onode_fuse::Ending;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode up ./mnt                    image ./mnt.onode, made if it is not there\n  \
    onode up ./mnt disk.img           a certain image\n  \
    onode up ./mnt disk.img,size=8G   the size if it must be made (default 1G; it grows as it fills)\n  \
    onode up ./mnt ram:size=256M      in memory, gone at the end\n  \
    onode up --encrypt ./mnt secret.img   encrypted; asks for a passphrase\n  \
    onode up ./mnt tier:ssd.img,hdd.img,size=8G,fast-size=1G   a fast disk in front of a big one\n  \
    onode up ./mnt --without-fast tier:ssd.img,hdd.img         the big disk alone\n\n\
    Ctrl-C unmounts and saves everything. When root mounts, all users reach the files (allow_other)\n\
    and the usual permissions decide; -o noallow_other keeps others out.")]
pub struct Arguments {
    /// Where to mount; made if it is not there.
    directory: PathBuf,
    /// The image or device spec. Default: DIRECTORY with `.onode` appended.
    #[arg(value_name = "IMAGE")]
    image: Option<OsString>,
    #[command(flatten)]
    how: MountArguments,
    #[command(flatten)]
    encryption: EncryptArguments,
}

pub fn run(arguments: &Arguments, keys: &KeyArguments, output: &Output) -> Result<u8> {
    let settings = arguments.how.settings(keys)?;
    let directory = arguments.directory.as_path();
    let spec = match &arguments.image {
        Some(image) => {
            let other = format!("the directory comes first: onode up {} {}", image.display(), directory.display());
            refuse_directory(image, other)?;
            location::spec(image)?
        }
        None => Spec::image(default_image(directory)?),
    };
    let spec = arguments.how.disks_of(spec)?;
    let made_directory = make_directory(directory)?;
    let outcome = serve(&spec, directory, &settings, arguments.encryption, output);
    if outcome.is_err() && made_directory {
        // It was empty and made for a mount that never came or has ended.
        let _ = std::fs::remove_dir(directory);
    }
    outcome
}

fn serve(
    spec: &Spec,
    directory: &Path,
    settings: &Settings,
    encryption: EncryptArguments,
    output: &Output,
) -> Result<u8> {
    if onode_fuse::prepare(directory)? {
        output.note(&format!("took away the dead mount at {}; its files are recovered now", directory.display()));
    }
    let is_there = spec.image_path().is_none_or(Path::exists);
    if is_there {
        // Who asks for it must not go on with a volume that is not.
        encryption.check(spec)?;
    }
    if !is_there {
        let (arguments, cost) = (&settings.keys, &CostArguments::default());
        let key = FirstKey { encrypts: encryption.encrypts(), arguments, label: "", cost };
        key.create(spec, &owned_by_caller())?;
        output.note(&format!("made {spec}"));
    }
    let session = Session::start(spec, directory, settings, Manner::Foreground(*output))?;
    session.notes().iter().for_each(|note| output.note(note));
    let space = session.volume().device().space();
    output.note(&format!(
        "{spec} is mounted at {} with {} free; Ctrl-C unmounts",
        directory.display(),
        human_size(space.available)
    ));
    if let Event::Asked(why) = session.wait(output) {
        output.note(&format!("{why}: saving and unmounting"));
    }
    match session.finish()? {
        Ending::Clean => output.note("unmounted, everything is saved"),
        Ending::Busy => output.note("unmounted, everything is saved; some files were still open"),
    }
    Ok(0)
}

/// Refuses a directory in the place of an image, with a hint: `up` and `mount` have their arguments
/// in different orders.
pub fn refuse_directory(image: &OsStr, hint: String) -> Result<()> {
    if Path::new(image).is_dir() {
        let what = format!("cannot use {} as an image", image.display());
        return Err(Error::new(Class::Usage, what, "it is a directory").hint(hint));
    }
    Ok(())
}

/// New volumes belong to who makes them.
pub fn owned_by_caller() -> CreateOptions {
    CreateOptions {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        ..CreateOptions::default()
    }
}

/// `./mnt` -> `./mnt.onode`.
fn default_image(directory: &Path) -> Result<PathBuf> {
    let Some(name) = directory.file_name() else {
        let what = format!("cannot name an image after {}", directory.display());
        return Err(Error::new(Class::Usage, what, "it has no name of its own")
            .hint(format!("name the image: onode up {} disk.img", directory.display())));
    };
    let mut name = name.to_owned();
    name.push(".onode");
    Ok(directory.with_file_name(name))
}

/// Makes the directory if it is missing; returns whether it was.
fn make_directory(directory: &Path) -> Result<bool> {
    match std::fs::create_dir(directory) {
        Ok(()) => Ok(true),
        // Whatever stands there, the mount itself tells whether it will do.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            let what = format!("cannot make the mount point {}", directory.display());
            let (class, hint) = match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    (Class::Permission, "choose a directory of your own, or run it as root")
                }
                _ => (Class::MountPoint, "make its parent directory first"),
            };
            Err(Error::new(class, what, error.to_string()).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_lies_next_to_the_mount_point() {
        assert_eq!(default_image(Path::new("./mnt")), Ok(PathBuf::from("./mnt.onode")));
        assert_eq!(default_image(Path::new("/a/b.c/")), Ok(PathBuf::from("/a/b.c.onode")));
        assert!(default_image(Path::new("/")).is_err());
    }
}
