//! Pools: members are opened each as its kind is, and one that is lost is done without, but never
//! without a word.
//!
//! What is lost is a member whose file or device is not there, or whose volume is damaged or holds
//! less than it promised: the others have what it had. Whatever people can put right at once, a
//! member that somebody uses or that may not be read, is refused instead: a mount without it would
//! leave it behind.

use crate::error::{Class, Error, Result};
use crate::host::random_bytes;
use crate::open::access::{Access, NewVolume, Opened, Users, volume_error};
use crate::open::device::{kind_of, refuse_existing};
use crate::open::kind::DeviceKind;
use crate::open::medium::{MediumFinding, MediumRepaired, MediumReport, lives_in_memory};
use crate::spec::Spec;
use crate::spec::pool::PoolSpec;
use onode_object::powers::Scrub;
use onode_object::{ErrorKind, ObjectDevice, ObjectId, Settings};
use onode_services::{Dropped, Pool, PoolLabel, PoolMember, Versioned};
pub use onode_services::{PoolMemberState, PoolMemberStatus};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pool whose members have been opened.
type OpenPool = Pool<Arc<dyn ObjectDevice>>;

/// Members that could be opened.
type OpenMembers = Vec<PoolMember<Arc<dyn ObjectDevice>>>;

/// Objects of one step of a scrub, and steps of a rebuild between two reports of it.
const OBJECTS_A_STEP: usize = 64;
const STEPS_A_REPORT: u32 = 32;

impl DeviceKind for PoolSpec {
    fn open(&self, spec: &Spec, access: Access, _: Users, uuid: [u8; 16]) -> Result<Opened> {
        let (pool, notes) = if spec.image_path().is_none() {
            let (members, notes) = self.opened(spec, access)?;
            (Pool::create(uuid, members).map_err(|error| volume_error(format!("cannot open {spec}"), &error))?, notes)
        } else {
            self.mount(spec, access)?
        };
        Ok(Opened { device: Arc::new(pool), faces: Vec::new(), notes })
    }

    fn create(&self, spec: &Spec, new: NewVolume<'_>) -> Result<()> {
        create_next(spec, &self.members, &[], new)
    }

    /// That of each member, one after another.
    fn check(&self, spec: &Spec, progress: &mut dyn FnMut(u64, u64)) -> Result<MediumReport> {
        let mut all = MediumReport { is_sound: true, is_closed: true, ..MediumReport::default() };
        let mut failures = Vec::new();
        for member in &self.members {
            match kind_of(member).check(member, progress) {
                Ok(report) => {
                    let named = |finding: MediumFinding| MediumFinding {
                        message: format!("{member}: {}", finding.message),
                        place: format!("{member}: {}", finding.place),
                        ..finding
                    };
                    all.findings.extend(report.findings.into_iter().map(named));
                    all.unverified.extend(report.unverified.into_iter().map(|what| format!("{member}: {what}")));
                    all.is_sound &= report.is_sound;
                    all.is_closed &= report.is_closed;
                    // One is enough.
                    all.is_mountable |= report.is_mountable;
                    all.pages_read += report.pages_read;
                    all.bytes_verified += report.bytes_verified;
                }
                Err(error) if is_lost(error.class) => {
                    all.is_sound = false;
                    all.findings.push(MediumFinding {
                        severity: "error",
                        kind: "member-lost".to_owned(),
                        place: member.to_string(),
                        object: None,
                        range: None,
                        message: format!("{member} is lost: {}", error.why),
                    });
                    failures.push(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failures.into_iter().next() {
            Some(error) if !all.is_mountable => Err(Error { what: format!("cannot look into {spec}"), ..error }),
            _ => Ok(all),
        }
    }

    /// What one member cannot give any more, it gets from the others. What none can give becomes
    /// zeros on all of them, if what is damaged is to be dropped.
    fn repair(&self, spec: &Spec, access: Access, dropped: &mut Dropped) -> Result<MediumRepaired> {
        let (pool, actions) = self.mount(spec, access)?;
        let failed = |error: &onode_object::Error| volume_error(format!("cannot repair {spec}"), error);
        let (mut from, mut repaired, mut whole_nowhere) = (Some(ObjectId(0)), 0, BTreeSet::new());
        while let Some(first) = from {
            let report = Scrub::scrub(&pool, first, OBJECTS_A_STEP).map_err(|error| failed(&error))?;
            repaired += report.repaired;
            whole_nowhere.extend(report.damaged.iter().filter_map(|error| error.object));
            from = report.next;
        }
        finish(&pool, &format!("cannot repair {spec}"), &mut |_| Ok(()))?;
        let mut done = MediumRepaired { actions, ..MediumRepaired::default() };
        for object in whole_nowhere {
            let mended = pool.mend(object, access.drop_damaged).map_err(|error| failed(&error))?;
            repaired += mended.written_bytes;
            for range in mended.dropped {
                done.lost = true;
                done.losers.push(object.0);
                done.actions.push(format!("lost: {object}: bytes {}..{} are zeros now", range.start, range.end));
                dropped.add_content(object, range);
            }
        }
        done.losers.dedup();
        if repaired > 0 {
            done.actions.push(format!("{repaired} bytes were written to members again"));
        }
        pool.close().map_err(|error| failed(&error))?;
        Ok(done)
    }
}

/// Whether a member that cannot be opened like that is done without.
const fn is_lost(class: Class) -> bool {
    matches!(class, Class::NotFound | Class::NotAnImage | Class::Damaged | Class::Loss | Class::General)
}

impl PoolSpec {
    /// The members that can be opened, and what people should hear of the others.
    fn opened(&self, spec: &Spec, access: Access) -> Result<(OpenMembers, Vec<String>)> {
        let (mut members, mut notes, mut failure) = (Vec::new(), Vec::new(), None);
        // What is lost on a member is not given up there: the others have it.
        let access = Access { accept_loss: false, drop_damaged: false, settings: Settings::NONE, ..access };
        for member in &self.members {
            match kind_of(member).open(member, access, Users::Alone, random_bytes()?) {
                Ok(opened) => {
                    notes.extend(opened.notes.into_iter().map(|note| format!("{member}: {note}")));
                    members.push(PoolMember { name: member.to_string(), device: opened.device });
                }
                Err(error) if is_lost(error.class) => {
                    notes.push(format!("the pool is opened without {member}: {}", error.why));
                    failure = failure.or(Some(error));
                }
                Err(error) => return Err(Error { what: format!("cannot open {spec}"), ..error }),
            }
        }
        match failure {
            Some(error) if members.is_empty() => Err(Error { what: format!("cannot open {spec}"), ..error }),
            _ => Ok((members, notes)),
        }
    }

    fn mount(&self, spec: &Spec, access: Access) -> Result<(OpenPool, Vec<String>)> {
        let (members, mut notes) = self.opened(spec, access)?;
        let pool = Pool::open(members, access.read_only).map_err(|error| refused(spec, error))?;
        notes.extend(pool.health().conditions.iter().map(|condition| condition.text.clone()));
        Ok((pool, notes))
    }
}

/// Why a pool is not opened, and what to do.
fn refused(spec: &Spec, error: onode_object::Error) -> Error {
    let what = format!("cannot open {spec}");
    match error.kind {
        ErrorKind::WrongPart => Error::new(Class::Usage, what, error.detail).hint(
            "open the members that are right without the other one (pool:MEMBER+...), take that out with \
             `onode pool remove`, and give the pool another member, or the same one made anew, with `onode pool add`",
        ),
        ErrorKind::Loss => volume_error(what, &error).hint("name the other members, too: one of them has everything"),
        _ => volume_error(what, &error),
    }
}

/// A member of a pool that is to be made, with its own volume.
#[derive(Clone)]
struct Made<'a> {
    spec: &'a Spec,
    device: Arc<dyn ObjectDevice>,
}

/// Makes the volumes of members one after another and the pool over all of them, each member's
/// volume in the hands of the one before: whatever fails, nothing is left of any.
fn create_next(spec: &Spec, specs: &[Spec], made: &[Made<'_>], new: NewVolume<'_>) -> Result<()> {
    let failed = |error: &onode_object::Error| volume_error(format!("cannot make {spec}"), error);
    let Some((first, rest)) = specs.split_first() else {
        let member = |one: &Made<'_>| PoolMember { name: one.spec.to_string(), device: Arc::clone(&one.device) };
        let pool = Pool::create(new.uuid, made.iter().map(member).collect()).map_err(|error| failed(&error))?;
        let pool: Arc<dyn ObjectDevice> = Arc::new(pool);
        (new.fill)(&pool)?;
        return pool.close().map_err(|error| failed(&error));
    };
    let fill = |device: &Arc<dyn ObjectDevice>| {
        let mut all = made.to_vec();
        all.push(Made { spec: first, device: Arc::clone(device) });
        create_next(spec, rest, &all, new)
    };
    let uuid = new.uuid_of_part(made.len() as u8)?;
    kind_of(first).create(first, NewVolume { uuid, fill: &fill, ..new })
}

/// Hears how the members stand; an error ends what is done.
pub type Progress<'a> = dyn FnMut(&[PoolMemberStatus]) -> Result<()> + 'a;

/// Has members get what they lack, as far as that can be done now. `progress` hears how they stand.
fn finish(pool: &OpenPool, what: &str, progress: &mut Progress<'_>) -> Result<()> {
    let failed = |error: onode_object::Error| volume_error(what.to_owned(), &error);
    loop {
        progress(&pool.status())?;
        let maintenance = pool.maintain(STEPS_A_REPORT).map_err(failed)?;
        let is_behind = |one: &PoolMemberStatus| matches!(one.state, PoolMemberState::Behind { .. });
        if maintenance.done == 0 || !pool.status().iter().any(is_behind) {
            return pool.sync(onode_object::SyncScope::All).map_err(failed);
        }
    }
}

fn pool_of(spec: &Spec) -> Result<&PoolSpec> {
    match spec {
        Spec::Pool(pool) if spec.image_path().is_some() => Ok(pool),
        Spec::Pool(_) => Err(lives_in_memory(spec)),
        _ => Err(Error::new(Class::Usage, format!("cannot use {spec}"), "it is no pool")
            .hint("name all its members: pool:flash:a.img+flash:b.img")),
    }
}

/// How the members of a pool stand, which nobody has mounted, and what people should hear of how it
/// was opened.
///
/// # Errors
/// As [`Volume::open`](crate::Volume::open).
pub fn status(spec: &Spec) -> Result<(Vec<PoolMemberStatus>, Vec<String>)> {
    let (pool, notes) = pool_of(spec)?.mount(spec, Access::LOOK)?;
    Ok((pool.status(), notes))
}

/// Has the members of a pool get what they lack; returns how they stand then.
///
/// # Errors
/// As [`Volume::open`](crate::Volume::open), those of the devices and of `progress`.
pub fn rebuild(spec: &Spec, progress: &mut Progress<'_>) -> Result<Vec<PoolMemberStatus>> {
    let (pool, _) = pool_of(spec)?.mount(spec, Access::CHANGE)?;
    let what = format!("cannot rebuild {spec}");
    let finished = finish(&pool, &what, progress);
    let status = pool.status();
    // What was copied stays, whatever came then.
    let closed = pool.close().map_err(|error| volume_error(what, &error));
    finished.and(closed).map(|()| status)
}

/// Makes a volume that becomes a member of a pool and gets what the others have; returns the spec
/// with all of them. With `replace` what is there already goes. If `progress` ends it, the pool has
/// no such member, and a file that was made for it is gone again.
///
/// # Errors
/// As [`Volume::create`](crate::Volume::create) for the member and [`rebuild`] for the pool;
/// `OverLimit` if the pool has as many members as it can.
pub fn add(
    spec: &Spec,
    member: &Spec,
    replace: bool,
    progress: &mut Progress<'_>,
) -> Result<(Spec, Vec<PoolMemberStatus>)> {
    let pool = pool_of(spec)?;
    let mut members = pool.members.clone();
    members.push(member.clone());
    // Whatever the joined line would be refused for is told before anything is changed.
    let joined = Spec::parse(&Spec::Pool(PoolSpec { members }).to_string())?;
    refuse_existing(&joined, member, replace)?;
    let what = format!("cannot add {member} to {spec}");
    let failed = |error: &onode_object::Error| volume_error(what.clone(), error);
    let (opened, _) = pool.mount(spec, Access::CHANGE)?;
    if member.is_memory() && Versioned::relies_on_holes(&opened).map_err(|error| failed(&error))? {
        let why = "a memory cannot hold snapshots or clones that an older version made on members of other kinds";
        return Err(Error::new(Class::Usage, what, why)
            .hint("delete these snapshots and clones first, or add a member of another kind"));
    }
    let label = opened.admit().map_err(|error| not_admitted(what.clone(), &error))?;
    let made = make_member(member, label, replace);
    if made.is_err() {
        // The first error says more than that it is still expected.
        let _ = opened.expel(label.number);
    }
    opened.close().map_err(|error| failed(&error))?;
    drop(opened);
    made?;
    let mut is_ended = false;
    let mut watched = |members: &[PoolMemberStatus]| progress(members).inspect_err(|_| is_ended = true);
    let rebuilt = rebuild(&joined, &mut watched);
    if !is_ended {
        return rebuilt.map(|status| (joined, status));
    }
    let taken = remove(spec, label.number);
    if taken.is_ok() && !replace {
        // Whoever tries again would be told of a file that is there already.
        member
            .said()
            .all_paths()
            .iter()
            .filter(|path| path.is_file())
            .for_each(|path| drop(std::fs::remove_file(path)));
    }
    rebuilt.map(|status| (joined, status)).map_err(|ended| match taken {
        Ok(_) => Error { what, why: format!("{}; the pool is as it was, without that member", ended.why), ..ended },
        Err(error) => Error::new(ended.class, what, format!("{}, and it is a member still: {error}", ended.why))
            .hint(format!("onode pool remove {spec} {}", label.number)),
    })
}

/// Why a pool takes no new member.
fn not_admitted(what: String, error: &onode_object::Error) -> Error {
    match error.kind {
        ErrorKind::Invalid => Error::new(Class::OverLimit, what, error.detail.clone()).hint(
            "`onode pool status` shows all members, also those that are away; `onode pool remove` takes one out that \
             is lost for good",
        ),
        _ => volume_error(what, error),
    }
}

fn make_member(member: &Spec, label: PoolLabel, replace: bool) -> Result<()> {
    let fill = |device: &Arc<dyn ObjectDevice>| {
        Pool::join(device, label).map_err(|error| volume_error(format!("cannot make {member}"), &error))
    };
    kind_of(member).create(member, NewVolume { replace, uuid: random_bytes()?, is_fixed: false, fill: &fill })
}

/// Takes a member out of a pool by its number, whether it is there or not.
///
/// # Errors
/// `NotFound` if there is none of that number, `Usage` if no other member has everything; as
/// [`Volume::open`](crate::Volume::open).
pub fn remove(spec: &Spec, number: u8) -> Result<Vec<PoolMemberStatus>> {
    let (pool, _) = pool_of(spec)?.mount(spec, Access::CHANGE)?;
    let what = || format!("cannot take member {number} out of {spec}");
    let expelled = pool.expel(number);
    let status = pool.status();
    pool.close().map_err(|error| volume_error(what(), &error))?;
    match expelled {
        Ok(()) => Ok(status),
        Err(error) if error.kind == ErrorKind::Invalid => Err(Error::new(Class::Usage, what(), error.detail)
            .hint("`onode pool rebuild` gives the other members what they lack")),
        Err(error) if error.kind == ErrorKind::NotFound => {
            Err(Error::new(Class::NotFound, what(), error.detail).hint("`onode pool status` shows the numbers"))
        }
        Err(error) => Err(volume_error(what(), &error)),
    }
}
