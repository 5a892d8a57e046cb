//! `onode mount`: mounts an image, by default in a process of its own in the background.
//!
//! The background process is this program again, started with a pipe on its standard output. It
//! says there that the mount is live, or why it is not, and then lets go of it.

use crate::commands::mounts::arguments::MountArguments;
use crate::commands::mounts::session::{Manner, Session};
use crate::commands::mounts::up::refuse_directory;
use crate::keys::{self, KeyArguments, STANDARD_INPUT};
use crate::location;
use crate::signals;
use crate::watch::settings::Settings;
use onode::keys::VolumeKeys;
use onode::{Class, Error, Result, Spec};
use onode_console::Output;
use rustix::stdio::dup2_stdout;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode mount disk.img /mnt\n  \
    onode mount -o ro,noatime disk.img /mnt\n  \
    onode mount --foreground disk.img /mnt\n\n\
    Options for -o:\n  \
    ro, rw                           nothing may change; default rw\n  \
    noatime, relatime, strictatime   when reading sets the access time; default noatime;\n  \
    \x20                                atime=never, relative and strict are the same\n  \
    nosuid, suid, nodev, dev         set-user-id bits, device nodes; default nosuid,nodev\n  \
    noexec, exec                     programs cannot be started; default exec\n  \
    sync, async                      every change is on the medium when its call returns; default async\n  \
    allow_other, noallow_other       all users reach the files; default for root, not for others\n  \
    writeback                        the kernel gathers writes first: faster for small writes\n  \
    flush, noflush                   each close of a file is heard of, costs a request, and tells of a failed\n  \
    \x20                                write-back; else fsync alone tells of it; default flush for scm that is shared\n  \
    threads=N                        threads that serve requests; default 16 by io_uring, else one for each\n  \
    \x20                                processor, 2 to 8\n  \
    io-uring=auto|on|off             requests by io_uring, which takes half the time: where the kernel offers it\n  \
    \x20                                (root's mount switches it on), or no mount without it, or never; default auto\n  \
    write-cache=SIZE, name-cache=SIZE, node-cache=SIZE, page-cache=SIZE, inode-cache=COUNT\n  \
    \x20                                memory; what is not said suits the computer (onode stat shows it)\n  \
    checkpoint=SIZE                  flash: a checkpoint after so much of the log: less to replay after a crash\n  \
    clean-ahead=SEGMENTS             flash: cleaning begins so many segments before writes have to wait\n  \
    fast-daily=SIZE                  tier: so much may be copied to the fast disk a day; default no limit\n  \
    fast-sequential=SIZE             tier: what is read in a row beyond it comes there later; default 4M\n  \
    fast-collect=SECONDS             tier: how long copies wait to fill an erase block; default 5\n  \
    fast-admit=REQUESTS              tier: reads copy content at that request for it, 1 to 9; 0: never; default 2\n  \
    read-ahead=SIZE                  how far the kernel reads ahead; default 1M (root's mounts)\n  \
    write-back=SECONDS               how long written data may wait for more; default 5\n  \
    spin=MICROSECONDS                how long a busy server looks for more before it sleeps; default 0, 50 is usual\n  \
    compress=none|fast|small|auto    how what is written from now on is compressed; default none\n  \
    wear=dynamic, static, off        how a flash device spreads wear from now on; default as it was made\n  \
    scrub=PERIOD                     verify everything in the background, so that it takes 30d, 12h, ...; default off\n  \
    snapshot=NAME, clone=NAME        mount that snapshot, read-only, or clone, and not the volume itself\n  \
    accept-loss                      open a volume although acknowledged data is missing (exit code 23 without it)\n  \
    key-file=FILE, passphrase-file=FILE, keyring=NAME\n  \
    \x20                                the key of an encrypted volume, as the flags of these names\n  \
    unlock=FILE                      opens keys of directories, as the flag of that name; may be given several times\n  \
    expect-anchor=ANCHOR             refuse an authenticated volume that is older (`onode key anchor`)\n  \
    log=FILE, log-level=LEVEL        also log to a file; error, warn, info (default) or debug\n  \
    metrics=FILE, hook=PROGRAM       figures for Prometheus; what is run when something is wrong (`onode health --help`)\n\n\
    What a volume keeps (`onode tune DIR mount-options=...`) holds where none of these is said.\n\n\
    In the background it logs to the journal, or to syslog where there is no journal.\n\n\
    A line for /etc/fstab (mount(8) finds the link /usr/sbin/mount.onode of an installation):\n  \
    /var/lib/disk.img  /mnt  onode  noatime,nofail  0  0")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// Where to mount: an empty directory.
    directory: PathBuf,
    #[command(flatten)]
    how: MountArguments,
    /// Stay in the foreground until unmounted.
    #[arg(short, long)]
    foreground: bool,
    /// Serve for a parent that reads the outcome from standard output.
    #[arg(long, hide = true)]
    serve: bool,
}

/// What is mounted where.
#[derive(Debug, Serialize)]
struct Report {
    mounted: String,
    directory: String,
}

/// What the background process tells its parent.
#[derive(Debug, Serialize, Deserialize)]
enum Outcome {
    Live {
        notes: Vec<String>,
    },
    Failed {
        exit_code: u8,
        what: String,
        why: String,
        hint: Option<String>,
    },
    /// It told nothing.
    Silent,
}

pub fn run(arguments: &Arguments, keys: &KeyArguments, output: &Output) -> Result<u8> {
    if arguments.serve {
        return serve(arguments, keys, output);
    }
    let (image, directory) = (arguments.image.display(), arguments.directory.display());
    refuse_directory(&arguments.image, format!("the image comes first: onode mount {directory} {image}"))?;
    let (settings, spec) = (arguments.how.settings(keys)?, arguments.how.spec(&arguments.image)?);
    if !arguments.foreground {
        let text = spec.to_string();
        let image = if arguments.how.without_fast { OsStr::new(&text) } else { &arguments.image };
        in_background(image, &arguments.directory, &arguments.how.list(), &settings, output)?;
        if output.json() {
            let directory = arguments.directory.display().to_string();
            output.report(&Report { mounted: text, directory })?;
        }
        return Ok(0);
    }
    let session = Session::start(&spec, &arguments.directory, &settings, Manner::Foreground(*output))?;
    session.notes().iter().for_each(|note| output.note(note));
    output.note(&format!("{spec} is mounted at {}", arguments.directory.display()));
    session.wait(output);
    session.finish()?;
    output.note("unmounted, everything is saved");
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is mounted at {}", self.mounted, self.directory)
    }
}

/// Starts the background process and waits until the mount is live.
pub fn in_background(
    image: &OsStr,
    directory: &Path,
    options: &str,
    settings: &Settings,
    output: &Output,
) -> Result<()> {
    let what = "cannot start the background process";
    // An image is named by a path that holds whatever the working directory is.
    let spec = location::spec(image)?.with_absolute_paths();
    let image = match spec.image_path() {
        // It names several devices, and none alone says what it is.
        Some(_) if matches!(spec, Spec::Tier(_) | Spec::Pool(_)) => OsString::from(spec.to_string()),
        Some(path) => {
            let absolute = std::path::absolute(path).map_err(|error| Error::host_file("open", path, &error))?;
            let text = spec.to_string();
            let kind = text.split_once(':').map_or("flash", |(kind, _)| kind);
            let mut argument = OsString::from(format!("{kind}:"));
            argument.push(&absolute);
            let settings = text.strip_prefix(&format!("{kind}:{}", path.display())).unwrap_or_default().to_owned();
            argument.push(settings);
            argument
        }
        None => image.to_owned(),
    };
    onode_fuse::prepare(directory)?;
    let directory = directory.canonicalize().map_err(|error| Error::host_file("use", directory, &error))?;
    let program = std::env::current_exe().map_err(|error| Error::host(what, &error))?;
    // Paths are given in a form that holds where it works.
    let (options, variable) = (KeyArguments::without_keys(options), keys::variable_elsewhere()?);
    let start = |keys: &KeyArguments, input: Option<&[u8]>| -> Result<Outcome> {
        let mut command = Command::new(&program);
        command.args(["mount", "--serve", "-o", &options]).args(settings.telling.as_flags()).args(keys.as_flags()?);
        command.arg("--").arg(&image).arg(&directory).current_dir("/").envs(variable.clone());
        command.arg0(name_of_root_server().unwrap_or_else(|| program.clone().into()));
        outcome_of(&mut command, input).map_err(|error| Error::host(what, &error))
    };
    let reads_input = settings.keys.passphrase_file.as_ref().is_some_and(|path| path.as_os_str() == STANDARD_INPUT);
    let input = if reads_input { Some(keys::standard_input()?) } else { None };
    let mut outcome = start(&settings.keys, input.as_ref().map(|input| input.as_slice()))?;
    // The background process has no terminal: a passphrase is asked for here, and is never an
    // argument.
    let typed = KeyArguments { passphrase_file: Some(STANDARD_INPUT.into()), ..settings.keys.clone() };
    // What refuses keys of directories is no passphrase of the volume.
    let needs_none = || VolumeKeys::open(&spec, true).is_ok_and(|keys| keys.is_open());
    for attempt in 0..keys::PROMPTS {
        let is_locked = matches!(&outcome, Outcome::Failed { exit_code, .. } if *exit_code == Class::Key.exit_code());
        if !is_locked || !settings.keys.is_empty() || needs_none() {
            break;
        }
        let Some(passphrase) = keys::ask_for(&spec.to_string(), attempt)? else { break };
        outcome = start(&typed, Some(passphrase.as_bytes()))?;
    }
    match outcome {
        Outcome::Live { notes } => {
            notes.iter().for_each(|note| output.warning(note));
            Ok(())
        }
        Outcome::Failed { exit_code, what, why, hint } => Err(Error::told(exit_code, what, why, hint)),
        Outcome::Silent => Err(Error::new(Class::Bug, "cannot mount", "the background process ended without a word")
            .hint("run it with --foreground to see why")),
    }
}

/// The name that this process was called by, if it begins as that of the server of the root does:
/// systemd spares processes of such a name at the end, until the root can go.
fn name_of_root_server() -> Option<OsString> {
    std::env::args_os().next().filter(|name| name.as_encoded_bytes().starts_with(b"@"))
}

/// Starts a background process, gives it what it is to read, and hears what came of it.
fn outcome_of(command: &mut Command, input: Option<&[u8]>) -> std::io::Result<Outcome> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some((mut pipe, input)) = child.stdin.take().zip(input) {
        // One that ended without reading tells why.
        let _ = pipe.write_all(input);
    }
    let mut told = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut told)?;
    }
    Ok(serde_json::from_slice(&told).unwrap_or(Outcome::Silent))
}

/// The background process itself.
fn serve(arguments: &Arguments, keys: &KeyArguments, output: &Output) -> Result<u8> {
    // It must outlive the terminal it was started from. It fails only for the leader of a group,
    // and then there is nothing to leave.
    let _ = rustix::process::setsid();
    let started = (|| {
        if name_of_root_server().is_some() {
            signals::stay_running()?;
        }
        let spec = location::spec(&arguments.image)?;
        Session::start(&spec, &arguments.directory, &arguments.how.settings(keys)?, Manner::Background)
    })();
    match started {
        Ok(session) => {
            tell(&Outcome::Live { notes: session.notes().to_vec() });
            session.wait(output);
            session.finish()?;
            Ok(0)
        }
        Err(error) => {
            let exit_code = error.class.exit_code();
            tell(&Outcome::Failed { exit_code, what: error.what, why: error.why, hint: error.hint });
            Ok(exit_code)
        }
    }
}

/// Writes the outcome and lets go of the pipe, for which the parent waits.
fn tell(outcome: &Outcome) {
    let mut out = std::io::stdout().lock();
    if let Ok(text) = serde_json::to_vec(outcome) {
        // A parent that is gone needs no answer.
        let _ = out.write_all(&text).and_then(|()| out.flush());
    }
    let nowhere: std::io::Result<File> = OpenOptions::new().write(true).open("/dev/null");
    if let Ok(nowhere) = nowhere {
        let _ = dup2_stdout(nowhere);
    }
}
