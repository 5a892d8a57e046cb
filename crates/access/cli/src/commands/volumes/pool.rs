//! `onode pool`: the members of a pool, which nobody has mounted: how they stand, and who comes and
//! goes.

use crate::location::{self, where_mounted};
use crate::signals::Stop;
use indicatif::ProgressBar;
use onode::pool::{self, PoolMemberState, PoolMemberStatus};
use onode::{Class, Error, Result, Spec};
use onode_console::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

/// As `onode health` has it: all data is there, and redundancy is less than it should be.
const DEGRADED: u8 = 4;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A pool keeps every file on each of its members: devices of any kind and size, as many as eight. It
is made by `onode mkfs pool:MEMBER+MEMBER` and used as any volume. When a member is lost it goes on
with the others, and says so: in notes, its log, `onode health` and the exit code of `onode pool
status`, 4. A member that comes back gets what changed, and only that is copied.

Members of mounted pools are shown by `onode health DIR`.

Examples:
  onode mkfs pool:flash:a.img+flash:b.img
  onode pool status pool:flash:a.img+flash:b.img
  onode pool rebuild pool:flash:a.img+flash:b.img     (give b.img what it lacks; a mount does so, too)
  onode pool remove pool:flash:a.img 2                (member 2 is lost for good)
  onode pool add pool:flash:a.img scm:/dev/shm/c,size=1G
  onode mount pool:flash:a.img /mnt                   (a.img alone, while the others are away)

A + in the spec of a member is written twice: pool:flash++scm:a.img,a.mem+flash:b.img")]
pub struct Arguments {
    #[command(subcommand)]
    verb: PoolVerb,
}

#[derive(Debug, clap::Subcommand)]
enum PoolVerb {
    /// Show how the members stand. Nothing is changed.
    Status(NamedPool),
    /// Give members what they lack, and wait until it is done.
    Rebuild(NamedPool),
    /// Make a new member and copy to it what the others have.
    Add(AddedMember),
    /// Take a member out by its number, whether it is there or not.
    Remove(RemovedMember),
}

#[derive(Debug, clap::Args)]
struct NamedPool {
    /// The pool: the members that are there.
    pool: OsString,
}

#[derive(Debug, clap::Args)]
struct AddedMember {
    /// The pool: the members that are there.
    pool: OsString,
    /// The device spec of the new member.
    member: OsString,
    /// Replace what is there already; its content is lost.
    #[arg(short, long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
struct RemovedMember {
    /// The pool: the members that are there.
    pool: OsString,
    /// The member's number, as `onode pool status` shows it.
    number: u8,
}

/// One member.
#[derive(Debug, Serialize)]
struct MemberRow {
    number: u8,
    /// Its spec; nothing if it is not there.
    member: Option<String>,
    /// `whole`, `behind` or `away`.
    state: &'static str,
    /// Objects that are known to be compared still.
    objects: u64,
    /// All objects are compared.
    compares_all: bool,
    /// Objects that it cannot get now.
    stuck: u64,
    /// Why it is not whole.
    why: String,
}

/// The members of a pool.
#[derive(Debug, Serialize)]
struct Report {
    /// The spec with all members that are there.
    pool: String,
    members: Vec<MemberRow>,
    notes: Vec<String>,
}

impl From<PoolMemberStatus> for MemberRow {
    fn from(status: PoolMemberStatus) -> Self {
        let PoolMemberStatus { number, name, state } = status;
        let row = |state, why| Self {
            number,
            member: (!name.is_empty()).then(|| name.clone()),
            state,
            objects: 0,
            compares_all: false,
            stuck: 0,
            why,
        };
        match state {
            PoolMemberState::Whole => row("whole", String::new()),
            PoolMemberState::Away { why } => row("away", why),
            PoolMemberState::Behind { objects, compares_all, stuck, why } => {
                Self { objects, compares_all, stuck, ..row("behind", why) }
            }
        }
    }
}

impl Report {
    fn new(spec: &Spec, members: Vec<PoolMemberStatus>, notes: Vec<String>) -> Self {
        Self { pool: spec.to_string(), members: members.into_iter().map(MemberRow::from).collect(), notes }
    }

    fn code(&self) -> u8 {
        if self.members.iter().all(|member| member.state == "whole") { 0 } else { DEGRADED }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pool        {}", self.pool)?;
        for MemberRow { number, member, state, objects, compares_all, stuck, why } in &self.members {
            write!(f, "member {number}    {state:<7} {}", member.as_deref().unwrap_or("(not there)"))?;
            match (compares_all, objects, stuck) {
                (true, ..) => f.write_str("  all objects are to be compared")?,
                (false, 0, 0) => {}
                (false, objects, stuck) => write!(f, "  {} objects are to be compared", objects + stuck)?,
            }
            writeln!(f, "{}{why}", if why.is_empty() { "" } else { "  " })?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let report = match &arguments.verb {
        PoolVerb::Status(NamedPool { pool }) => {
            let spec = location::spec(pool)?;
            let (members, notes) = pool::status(&spec).map_err(|error| explained(&spec, error))?;
            Report::new(&spec, members, notes)
        }
        PoolVerb::Rebuild(NamedPool { pool }) => {
            let spec = location::spec(pool)?;
            let mut show = shown(output);
            let rebuilt = pool::rebuild(&spec, &mut |members| {
                show(members);
                Ok(())
            });
            let members = rebuilt.map_err(|error| explained(&spec, error))?;
            Report::new(&spec, members, Vec::new())
        }
        PoolVerb::Add(AddedMember { pool, member, force }) => {
            let (spec, member) = (location::spec(pool)?, location::spec(member)?);
            let (stop, mut show) = (Stop::default(), shown(output));
            stop.listen()?;
            let added = pool::add(&spec, &member, *force, &mut |members| {
                show(members);
                match stop.asked() {
                    Some(why) => Err(Error::new(Class::General, "cannot rebuild the pool", why).hint("run it again")),
                    None => Ok(()),
                }
            });
            let (spec, members) = added.map_err(|error| explained(&spec, error))?;
            Report::new(&spec, members, Vec::new())
        }
        PoolVerb::Remove(RemovedMember { pool, number }) => {
            let spec = location::spec(pool)?;
            let members = pool::remove(&spec, *number).map_err(|error| explained(&spec, error))?;
            Report::new(&spec, members, Vec::new())
        }
    };
    // Beside the result of the command, which goes elsewhere.
    report.notes.iter().for_each(|note| output.note(note));
    output.report(&report)?;
    Ok(report.code())
}

fn explained(spec: &Spec, error: Error) -> Error {
    if error.class == Class::InUse { where_mounted(spec, error) } else { error }
}

/// Shows how far a rebuild has come.
fn shown(output: &Output) -> impl FnMut(&[PoolMemberStatus]) {
    let bar = if output.json() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    bar.enable_steady_tick(Duration::from_millis(200));
    move |members| {
        let left = members.iter().find_map(|member| match &member.state {
            PoolMemberState::Behind { compares_all: true, .. } => Some("all objects are compared".to_owned()),
            PoolMemberState::Behind { objects, .. } => Some(format!("{objects} objects are left to compare")),
            _ => None,
        });
        match left {
            Some(left) => bar.set_message(format!("rebuilding, {left}")),
            None => bar.finish_and_clear(),
        }
    }
}
