//! A mount from its start to its end.
//!
//! The order at the end is what keeps data safe: everything is synced, then the mount is taken
//! away, then the requests on their way are served, then the volume is closed. Files that are still
//! open then lose their connection, not their data.

use crate::keeper::Keeper;
use crate::mountpoint;
use crate::options::{Atime, IoUring, Options};
use crate::request::counts::Requests;
use crate::scrubber::Scrubber;
use crate::serving::{Adaptor, Views};
use crate::transport::Transport;
use crate::transport::classic::Classic;
use crate::transport::late::Late;
use crate::transport::rings::{Rings, has_ended};
use fuser::{Config, MountOption, Session, SessionACL};
use onode::{Class, Error, Result, Volume};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the end waits for programs to close their files.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A volume that is mounted now.
#[derive(Debug)]
pub struct Mount {
    directory: PathBuf,
    volume: Arc<Volume>,
    keeper: Keeper,
    scrubber: Option<Scrubber>,
    server: JoinHandle<io::Result<()>>,
    /// The server has ended but for its last steps: what is at the directory is not ours any more.
    has_ended: Arc<AtomicBool>,
    transport: Transport,
    requests: Arc<Requests>,
}

/// How a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything is saved and nobody used it any more.
    Clean,
    /// Everything is saved; some files were still open.
    Busy,
}

impl Mount {
    /// Mounts `volume` at `directory`, which is live on return. `views` makes what
    /// attributes under [`VIEW_PREFIX`](crate::VIEW_PREFIX) show; `on_end` is called when
    /// somebody else unmounts it or the server fails.
    ///
    /// # Errors
    /// `MountPoint`, `NoFuse` (or no io_uring, if it is wanted in any case), `Permission`.
    pub fn start(
        volume: Arc<Volume>,
        directory: &Path,
        options: &Options,
        views: Views,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        mountpoint::prepare(directory)?;
        let directory = directory.canonicalize().map_err(|error| Error::host_file("use", directory, &error))?;
        let late = Late::new(options.device_threads());
        let adaptor = Arc::new(Adaptor::new(&volume, options, views, late.clone())?);
        let (session, rings) = connect(&adaptor, &directory, &volume, options)?;
        adaptor.requests.are_served_by(rings.as_ref().map_or_else(|| options.device_threads(), Rings::count));
        let transport = if rings.is_some() { Transport::IoUring } else { Transport::Device };
        let requests = Arc::clone(&adaptor.requests);
        late.come(&session, &directory);
        let keeper = Keeper::start(&volume)?;
        let can_scrub = !options.read_only && volume.device().scrub().is_some();
        let period = options.scrub.filter(|_| can_scrub);
        let scrubber = period.map(|period| Scrubber::start(Arc::clone(volume.files()), period)).transpose()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let server = serve(session, rings, &directory, move || {
            // Whoever hears of the end may come here before this thread is over.
            ended.store(true, Ordering::SeqCst);
            on_end();
        })?;
        mountpoint::set_read_ahead(&directory, options.read_ahead);
        if options.atime == Atime::Strict {
            mountpoint::show_strict_access_times(&directory, options);
        }
        Ok(Self { directory, volume, keeper, scrubber, server, has_ended, transport, requests })
    }

    /// How requests come.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// What is asked of it.
    #[must_use]
    pub fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.requests)
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Ends the mount: saves everything, unmounts if that has not happened yet, closes the volume.
    ///
    /// # Errors
    /// What could not be saved; `Bug` if the server broke down.
    pub fn finish(self) -> Result<Ending> {
        let Self { directory, volume, keeper, scrubber, server, has_ended, transport: _, requests: _ } = self;
        let mut ending = Ending::Clean;
        let mut saved = Ok(());
        if !has_ended.load(Ordering::SeqCst) && !server.is_finished() {
            let what = format!("cannot save everything in {}", volume.spec());
            saved = volume.files().sync().map_err(|error| Volume::error(what, &error));
            match mountpoint::release(&directory) {
                Ok(()) => {}
                Err(error) if error.class == Class::InUse => {
                    ending = Ending::Busy;
                    mountpoint::detach(&directory)?;
                }
                // Somebody else was faster.
                Err(error) if error.class == Class::MountPoint => {}
                Err(error) => return Err(error),
            }
        }
        let mut waited = Duration::ZERO;
        while !server.is_finished() && waited < PATIENCE {
            std::thread::sleep(POLL);
            waited += POLL;
        }
        drop(scrubber);
        drop(keeper);
        if server.is_finished() {
            ending = Ending::Clean;
            served(&directory, server)?;
        }
        volume.close()?;
        saved.map(|()| ending)
    }
}

/// Mounts, with requests by io_uring if they are wanted so and can be had.
fn connect(
    adaptor: &Arc<Adaptor>,
    directory: &Path,
    volume: &Volume,
    options: &Options,
) -> Result<(Session<Classic>, Option<Rings>)> {
    let mount = |threads| {
        let configuration = configuration(volume, options, threads);
        Session::new(Classic(Arc::clone(adaptor)), directory, &configuration)
            .map_err(|error| mount_error(directory, &error))
    };
    let what = || format!("cannot mount at {} with io-uring=on", directory.display());
    let hint = "leave the option out: io_uring is used where it can be had";
    if Transport::choose(options.io_uring).map_err(|why| Error::new(Class::NoFuse, what(), why).hint(hint))?
        == Transport::IoUring
    {
        adaptor.requests.by_io_uring(true);
        // What the kernel does not ask by io_uring, such as forgetting, one thread reads.
        let session = mount(1)?;
        let rings = match adaptor.requests.come_by_io_uring() {
            true => Rings::start(adaptor, &session, options.threads),
            false => Err(io::Error::other("the kernel does not agree")),
        };
        match rings {
            Ok(rings) => return Ok((session, Some(rings))),
            // Somebody has unmounted it meanwhile, and what is there now is not ours. Who serves it
            // finds the end at once.
            Err(_) if has_ended(&session) => return Ok((session, None)),
            Err(error) if options.io_uring == IoUring::On => {
                return Err(Error::new(Class::NoFuse, what(), error.to_string()).hint(hint));
            }
            // Nobody has seen the mount; it is taken away and made in the usual way.
            Err(_) => drop(session),
        }
        adaptor.requests.by_io_uring(false);
    }
    Ok((mount(options.device_threads())?, None))
}

/// Serves a session in threads of its own; `on_end` is called when they end.
fn serve(
    session: Session<Classic>,
    rings: Option<Rings>,
    directory: &Path,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>> {
    let failed = |error: io::Error| Error::new(Class::General, "cannot start a thread", error.to_string());
    let mut session = session.spawn().map_err(failed)?;
    let nothing = std::thread::Builder::new().spawn(|| Ok(())).map_err(failed)?;
    let served = std::mem::replace(&mut session.guard, nothing);
    let directory = directory.to_owned();
    let server = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        if let Some(Err(error)) = rings.map(Rings::join) {
            // Programs that wait get an error, and so does who waits at the device. Without the
            // right to that, it ends with the process.
            mountpoint::abort(&directory);
            drop(session);
            on_end();
            return Err(error);
        }
        let result = served.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")));
        if result.is_ok() {
            // The kernel has ended the mount. A session that is dropped unmounts whatever is at its
            // directory by then: another mount that was made there at once would be gone, and what
            // programs write would land below it.
            std::mem::forget(session);
        } else {
            // Nobody serves it any more, and it is still there.
            drop(session);
        }
        on_end();
        result
    });
    server.map_err(failed)
}

/// What the server's thread came to. After a panic nothing more is written: what memory holds then
/// is not to be trusted, what the medium holds is.
fn served(directory: &Path, server: JoinHandle<io::Result<()>>) -> Result<()> {
    let what = format!("the mount at {} broke down", directory.display());
    let bug = || Error::new(Class::Bug, &what, "an internal error, see above");
    let Ok(served) = server.join() else { return Err(bug()) };
    served.map_err(|error| match error.to_string().contains("panicked") {
        true => {
            let _ = mountpoint::detach(directory);
            bug()
        }
        false => Error::host(&what, &error),
    })
}

fn configuration(volume: &Volume, options: &Options, threads: usize) -> Config {
    let choose = |condition: bool, yes: MountOption, no: MountOption| if condition { yes } else { no };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(mountpoint::source_name(volume.spec())),
        // As a plain option both the kernel and the helper of FUSE understand it.
        MountOption::CUSTOM("subtype=onode".to_owned()),
        MountOption::DefaultPermissions,
        choose(options.read_only, MountOption::RO, MountOption::RW),
        choose(options.suid, MountOption::Suid, MountOption::NoSuid),
        choose(options.dev, MountOption::Dev, MountOption::NoDev),
        choose(options.exec, MountOption::Exec, MountOption::NoExec),
        choose(options.sync, MountOption::Sync, MountOption::Async),
        choose(options.atime == Atime::Never, MountOption::NoAtime, MountOption::Atime),
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(threads);
    // A queue for each thread is better; who has the device from the helper may not open it.
    config.clone_fd = threads > 1 && File::options().read(true).write(true).open("/dev/fuse").is_ok();
    config
}

fn mount_error(directory: &Path, error: &io::Error) -> Error {
    let what = format!("cannot mount at {}", directory.display());
    let text = error.to_string();
    if !Path::new("/dev/fuse").exists() {
        return Error::new(Class::NoFuse, what, "there is no /dev/fuse");
    }
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    if opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        return Error::new(Class::Permission, what, "you may not open /dev/fuse")
            .hint("run it as root, or let root allow it for all: chmod 666 /dev/fuse");
    }
    if text.contains("ENODEV") || error.raw_os_error() == Some(libc::ENODEV) {
        return Error::new(Class::NoFuse, what, "the kernel has no FUSE");
    }
    if error.kind() == io::ErrorKind::NotFound {
        return Error::new(Class::NoFuse, what, "you are not root, and the program fusermount3 is not there")
            .hint("run it as root, or install the package fuse3");
    }
    if text.contains("user_allow_other") {
        return Error::new(Class::Permission, what, "only root may use allow_other")
            .hint("leave it out, or put user_allow_other into /etc/fuse.conf");
    }
    if text.contains("no write access") {
        return Error::new(Class::Permission, what, "you may not write to that directory")
            .hint("choose a directory of your own, or run it as root");
    }
    if error.kind() == io::ErrorKind::PermissionDenied || text.contains("ermission denied") {
        return Error::new(Class::Permission, what, text);
    }
    Error::new(Class::General, what, text.trim().to_owned())
}
