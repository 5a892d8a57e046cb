//! States of volumes: sent as a stream, received on another volume, gone back to.

use crate::arguments::{compression_of, spec_of, words_of};
use crate::error::{Failure, Outcome, answer};
use crate::handle::{OnodeHeap, volume_of};
use crate::volumes::keys::{GivenKey, KeyInUse, secret_of};
use crate::volumes::pipe::Pipe;
use crate::volumes::progress::{CallProgress, Listener};
use crate::volumes::snapshots::snapshots_of;
use onode::keys::VolumeKeys;
use onode::{Class, Error, ReceiveOptions, Spec, SystemClock};
use onode_base::ErrorKind;
use std::ffi::{c_char, c_int};

/// Bytes of a stream that are written at once.
const PIECE_BYTES: usize = 256 << 10;

/// How to receive a stream. All of it 0 or NULL is what is usual.
#[repr(C)]
pub struct ReceivingOptions {
    /// The name of the snapshot that is taken at the end; NULL: that of the one that was sent.
    pub name: *const c_char,
    /// What is compressed of what comes: "none", "fast", "small" or "auto"; NULL is "none".
    pub compress: *const c_char,
    /// The key of a volume that is encrypted; NULL for one that is not.
    pub key: *const GivenKey,
    /// Other than 0: what has changed on the volume since the snapshot on which the stream builds
    /// is given up.
    pub roll_back: c_int,
}

/// Writes a snapshot of an open volume to a descriptor, or what has changed since an earlier one if
/// `from` names that: a stream of which `onode_receive` or the command makes the same state on
/// another volume of any kind. Its content is neither compressed nor encrypted, whatever the volume
/// is. With `snapshot` NULL it is all files as they are, of a volume that is open for reading only;
/// so are volumes sent that have no snapshots. Returns the bytes written, -1 on failure.
///
/// The descriptor is one of the process that blocks, and stays open. What write(2) takes in part is
/// written on. A signal does not end the call: EINTR has `progress` asked, as every piece has,
/// which is told the bytes written. A pipe that nobody reads any more is as with write(2): SIGPIPE,
/// or EPIPE for a program that ignores that signal. Other failures of write(2) keep their numbers,
/// as EAGAIN of a descriptor that does not block. ENOENT if there is no such snapshot or it was
/// deleted meanwhile, EINVAL if `from` is the later one, EBADF. Whoever receives a part shows
/// nothing of it.
///
/// # Safety
/// `volume` came from a function that opens volumes, `snapshot` and `from` are strings or NULL;
/// nobody closes the descriptor meanwhile; `progress` is NULL or one that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_send(
    volume: *mut OnodeHeap,
    snapshot: *const c_char,
    from: *const c_char,
    descriptor: c_int,
    progress: *const CallProgress,
) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (volume, listener) = unsafe { (volume_of(volume)?, Listener::of(progress)) };
        // SAFETY: the caller's promise.
        let (snapshot, from) = unsafe { (or_null(snapshot)?, or_null(from)?) };
        // SAFETY: the caller's promise.
        let mut pipe = unsafe { Pipe::of(descriptor, &listener) }?;
        let mut stream = match (snapshot, from) {
            (Some(snapshot), from) => snapshots_of(volume)?.send(snapshot, from)?,
            (None, None) => volume.send_as_it_is(&SystemClock)?,
            (None, Some(_)) => {
                return Err(Failure::new(ErrorKind::Invalid, "what changed since a snapshot, up to no other one"));
            }
        };
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = stream.fill(&mut piece)?;
            if count == 0 {
                break;
            }
            pipe.put(piece.get(..count).unwrap_or_default())?;
        }
        Ok(i64::try_from(pipe.moved()).unwrap_or(i64::MAX))
    })
}

/// Gives a volume that nobody has open the state of which a stream tells, which a descriptor gives;
/// what follows the stream there is not read. Returns the bytes of the stream, -1 on failure. At
/// the end a snapshot of the volume is taken, on which the next stream can build.
///
/// A stream of all files makes the volume if its image is missing and no key is given, else it has
/// to be empty: make an encrypted one with `onode_open_encrypted` and O_CREAT first. One of what
/// has changed needs a volume that has the earlier snapshot, and is as that (EBUSY if not, unless
/// `roll_back` is set; ENOENT without the snapshot). EEXIST if the volume is not empty, or has that
/// state or that name already. EIO for a stream that is damaged or ends before its end. ENOKEY,
/// ENOSPC, EBUSY for a volume that is open.
///
/// What is no stream, or does not fit the volume, changes nothing. Stopped in the middle, by
/// `progress` (ECANCELED, it is told the bytes read), by damage or by a crash, nobody can use the
/// volume until the same stream is received again, from its beginning; one that had an earlier
/// snapshot goes back to that when it is opened for writing. The descriptor is as for `onode_send`.
///
/// # Safety
/// `spec` is a string, `options` NULL or options whose strings and key are as they say; nobody
/// closes the descriptor meanwhile; `progress` is NULL or one that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_receive(
    spec: *const c_char,
    descriptor: c_int,
    options: *const ReceivingOptions,
    progress: *const CallProgress,
) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, options, listener) = unsafe { (spec_of(spec)?, options.as_ref(), Listener::of(progress)) };
        // SAFETY: the caller's promise.
        let mut pipe = unsafe { Pipe::of(descriptor, &listener) }?;
        // SAFETY: the caller's promise.
        let how = unsafe { options.map_or_else(|| Ok(ReceiveOptions::default()), |all| as_said(all)) }?;
        // SAFETY: the caller's promise.
        let mut key = unsafe { key_in_use(&spec, options.map_or(std::ptr::null(), |all| all.key)) }?;
        let received = long(&listener, |tell| {
            onode::receive(&spec, &mut pipe, &how, &mut |bytes| {
                // The volume is open by now.
                key = None;
                tell(bytes)
            })
        });
        let received = received.map_err(|failure| pipe.failure().unwrap_or(failure))?;
        Ok(i64::try_from(received.bytes).unwrap_or(i64::MAX))
    })
}

/// Gives a volume that nobody has open the state of one of its snapshots again: what has changed
/// since is given up. Snapshots stay, those that were taken later, too; one that is taken right
/// before keeps what is given up. Clones stay. Returns how many changes of objects that took, 0 if
/// nothing had changed, -1 on failure; `progress` is told how many there were so far. Stopped by it
/// (ECANCELED) or by a crash it is brought to its end when the volume is opened for writing next.
/// `key` is NULL for a volume that is not encrypted. ENOENT if there is no such snapshot, EBUSY for
/// a volume that is open, ENOKEY; EINVAL on storage-class memory that processes share.
///
/// # Safety
/// `spec` and `name` are strings, `key` is NULL or a key whose `bytes` are `length` bytes;
/// `progress` is NULL or one that can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onode_roll_back(
    spec: *const c_char,
    name: *const c_char,
    key: *const GivenKey,
    progress: *const CallProgress,
) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let (spec, name, listener) = unsafe { (spec_of(spec)?, words_of(name)?, Listener::of(progress)) };
        // SAFETY: the caller's promise.
        let mut key = unsafe { key_in_use(&spec, key) }?;
        let done = long(&listener, |tell| {
            onode::roll_back(&spec, name, &mut |changes| {
                key = None;
                tell(changes)
            })
        })?;
        Ok(i64::try_from(done.changes).unwrap_or(i64::MAX))
    })
}

/// A string, or none.
unsafe fn or_null<'a>(text: *const c_char) -> Outcome<Option<&'a str>> {
    // SAFETY: the caller's promise.
    if text.is_null() { Ok(None) } else { unsafe { words_of(text) }.map(Some) }
}

unsafe fn as_said(options: &ReceivingOptions) -> Outcome<ReceiveOptions> {
    // SAFETY: the caller's promise.
    let (name, compression) = unsafe { (or_null(options.name)?, compression_of(options.compress)?) };
    Ok(ReceiveOptions { name: name.map(str::to_owned), roll_back: options.roll_back != 0, compression })
}

/// The key of a volume that changes as a whole, which has to be one that it opens: what comes onto
/// a volume that is not encrypted would lie open.
unsafe fn key_in_use(spec: &Spec, key: *const GivenKey) -> Outcome<Option<KeyInUse>> {
    if key.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let in_use = KeyInUse::begin(unsafe { secret_of(key) }?)?;
    VolumeKeys::open(spec, true)?.close()?;
    Ok(Some(in_use))
}

/// Makes a call that tells how far it is, and that the program may stop.
fn long<T>(
    listener: &Listener<'_>,
    call: impl FnOnce(&mut dyn FnMut(u64) -> onode::Result<()>) -> onode::Result<T>,
) -> Outcome<T> {
    let mut is_stopped = false;
    let done = call(&mut |done| {
        is_stopped = !listener.goes_on(done, 0);
        if is_stopped { Err(Error::new(Class::General, "in part", "the program stopped it")) } else { Ok(()) }
    });
    match done {
        Err(_) if is_stopped => Err(Failure::stopped("the program stopped it before its end")),
        done => Ok(done?),
    }
}
