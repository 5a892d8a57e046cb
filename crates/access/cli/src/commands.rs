//! The commands: one per file, in folders by subject, and this list, from which help, completions,
//! man pages and dispatch all come.

mod files;
pub mod helpers;
mod mounts;
mod quota;
mod shell;
mod state;
mod tiers;
mod volumes;

use crate::NAME;
use crate::keys::{self, KeyArguments};
use clap::{CommandFactory, Parser, Subcommand};
use files::change::{chmod, ln, mv};
use files::look::{cat, df, du, find, tree};
use files::{compress, cp, get, get_hints, ls, mkdir, put, rm, set};
use mounts::{attach, mount, tx, umount, up};
use onode::{Class, Result};
use onode_console::Output;
use shell::{completions, lab, man};
use state::{health, list, map, stat, top};
use std::ffi::OsString;
use tiers::{divide, place, promote, replace};
use volumes::snapshot::{receive, send};
use volumes::{check, clone, dump, info, key, label, mkfs, pool, repair, resize, scrub, snapshot, spaces, tune};

/// Onode: an object-based file system for every class of storage memory.
///
/// An image file holds a whole volume. `onode up DIR` makes one if there is none and mounts it.
#[derive(Debug, Parser)]
#[command(name = "onode", version, arg_required_else_help = true, subcommand_required = true)]
#[command(max_term_width = 100, propagate_version = true)]
pub struct Command {
    /// Print reports as JSON, and errors as one line of JSON on standard error.
    #[arg(long, global = true)]
    pub json: bool,

    #[command(flatten)]
    keys: KeyArguments,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make an image if there is none, mount it and stay in the foreground until Ctrl-C.
    Up(up::Arguments),
    /// Make a volume in a new image, empty or with the files of a directory.
    Mkfs(Box<mkfs::Arguments>),
    /// Mount an image.
    Mount(mount::Arguments),
    /// Unmount a directory and wait until everything is saved.
    Umount(umount::Arguments),
    /// Show what an image is.
    Info(info::Arguments),
    /// List the volumes of this computer: what is mounted, and what block devices hold.
    List(list::Arguments),
    /// Show or change the name that a volume has for people.
    Label(label::Arguments),
    /// Show the settings that a volume keeps, or change them: label, number, mount options.
    Tune(tune::Arguments),
    /// Have a volume take up more of its device, also while it is mounted.
    Resize(resize::Arguments),
    /// Show space, counters and segments of an image or a mount, or the details of one file.
    Stat(stat::Arguments),
    /// Tell whether volumes are well: mounts, or an image. The exit code says it, too.
    Health(health::Arguments),
    /// Draw the segments of an image or a mount: what each holds and how full it is.
    Map(map::Arguments),
    /// Watch an image or a mount: throughput, write amplification, wear, memory, segments.
    Top(top::Arguments),
    /// List a directory of an image without mounting it.
    Ls(ls::Arguments),
    /// Write what files of an image hold to standard output.
    Cat(cat::Arguments),
    /// Find files of an image by name, type, size or time.
    Find(find::Arguments),
    /// Show the directories of an image and what they hold, indented.
    Tree(tree::Arguments),
    /// Show what directories of an image take on the medium and what their files hold.
    Du(du::Arguments),
    /// Show how full volumes are: images, or mounts.
    Df(df::Arguments),
    /// Copy files out of an image.
    Get(get::Arguments),
    /// Copy files into an image.
    Put(put::Arguments),
    /// Remove files from an image.
    Rm(rm::Arguments),
    /// Make directories in an image.
    Mkdir(mkdir::Arguments),
    /// Copy files within an image or between two images.
    Cp(cp::Arguments),
    /// Rename files of an image or move them to another directory of it.
    Mv(mv::Arguments),
    /// Give a file of an image another name, or make a symbolic link.
    Ln(ln::Arguments),
    /// Change permissions of files in an image.
    Chmod(chmod::Arguments),
    /// Show or say how files and what is made in directories is compressed from now on.
    Compress(compress::Arguments),
    /// Give files hints, and what is made in directories: how long it stays, how hot it is.
    Set(set::Arguments),
    /// Show the hints that files and directories have.
    GetHints(get_hints::Arguments),
    /// Verify an image without changing it (exit codes as fsck).
    #[command(visible_alias = "fsck")]
    Check(check::Arguments),
    /// Verify an image and repair what can be repaired (exit codes as fsck).
    Repair(repair::Arguments),
    /// Verify everything in a volume, mounted or not, repair what can be, and name damaged files.
    Scrub(scrub::Arguments),
    /// Map files and directories of a volume on two disks to a section of the fast one, or past it.
    Place(place::Arguments),
    /// Copy content to the fast disk now.
    Promote(promote::PromoteArguments),
    /// Give up what the fast disk has of files; the big disk has it all.
    Demote(promote::DemoteArguments),
    /// Show the sections of the fast disk and their sizes, or divide it anew.
    Divide(divide::Arguments),
    /// Let the fast disk of a mounted volume take part again, after it was detached or failed.
    Attach(attach::AttachArguments),
    /// Bring everything to the big disk of a mounted volume and go on without the fast one.
    Detach(attach::DetachArguments),
    /// Give the place of a disk to another one, also while the volume is mounted.
    Replace(replace::Arguments),
    /// Show, add, change and remove the keys of an encrypted volume.
    Key(key::Arguments),
    /// Show, rebuild, add and remove the members of a pool, each of which has every file.
    Pool(pool::Arguments),
    /// Have changes of many files of a mounted volume happen together, or not at all.
    Tx(tx::Arguments),
    /// Take, list and delete snapshots: all files as they were at one moment; go back to one.
    Snapshot(snapshot::Arguments),
    /// Make, list and delete clones: snapshots that can be changed, each on its own.
    Clone(clone::Arguments),
    /// Write a snapshot, or what changed since an earlier one, as a stream for `onode receive`.
    Send(send::Arguments),
    /// Give a volume the files of a stream that `onode send` wrote.
    Receive(receive::Arguments),
    /// Limit the bytes and the number of files of directories, users and groups.
    Quota(quota::Arguments),
    /// Divide storage-class memory into spaces: list, create, resize, remove.
    Spaces(spaces::Arguments),
    /// Run `onode-lab`, the command that measures what workloads cost on simulated devices.
    #[command(hide = true)]
    Lab(lab::Arguments),
    /// Show structures of the medium.
    Dump(dump::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Print the manual page, or write all of them.
    Man(man::Arguments),
}

impl Command {
    /// Reads the command line. Help and mistakes are printed here; the error is the exit code.
    pub fn parse(arguments: Vec<OsString>) -> std::result::Result<Self, u8> {
        let is_check = arguments.get(1).is_some_and(|verb| ["check", "fsck", "repair"].iter().any(|name| verb == name));
        let usage = if is_check { check::USAGE } else { Class::Usage.exit_code() };
        onode_console::parse(NAME, Self::definition(), arguments, usage)
    }

    /// The whole definition, with the table of exit codes at the end of its help.
    pub fn definition() -> clap::Command {
        Self::command().after_help(onode_console::exit_codes(OTHER_CODES))
    }

    /// Does it and returns the exit code.
    pub fn run(&self, output: &Output) -> Result<u8> {
        // A list of whatever there is asks nobody for the passphrase of each.
        if !matches!(self.verb, Verb::List(_)) || !self.keys.is_empty() {
            keys::provide(&self.keys);
        }
        let code = self.done(output)?;
        keys::warn_of_unused(&self.keys, output);
        Ok(code)
    }

    fn done(&self, output: &Output) -> Result<u8> {
        match &self.verb {
            Verb::Up(arguments) => up::run(arguments, &self.keys, output),
            Verb::Mkfs(arguments) => mkfs::run(arguments, &self.keys, output),
            Verb::Mount(arguments) => mount::run(arguments, &self.keys, output),
            Verb::Umount(arguments) => umount::run(arguments, output),
            Verb::Info(arguments) => info::run(arguments, output),
            Verb::List(arguments) => list::run(arguments, output),
            Verb::Label(arguments) => label::run(arguments, output),
            Verb::Tune(arguments) => tune::run(arguments, output),
            Verb::Replace(arguments) => replace::run(arguments, output),
            Verb::Resize(arguments) => resize::run(arguments, output),
            Verb::Stat(arguments) => stat::run(arguments, output),
            Verb::Health(arguments) => health::run(arguments, output),
            Verb::Map(arguments) => map::run(arguments, output),
            Verb::Top(arguments) => top::run(arguments, output),
            Verb::Ls(arguments) => ls::run(arguments, output),
            Verb::Cat(arguments) => cat::run(arguments, output),
            Verb::Find(arguments) => find::run(arguments, output),
            Verb::Tree(arguments) => tree::run(arguments, output),
            Verb::Du(arguments) => du::run(arguments, output),
            Verb::Df(arguments) => df::run(arguments, output),
            Verb::Get(arguments) => get::run(arguments, output),
            Verb::Put(arguments) => put::run(arguments, output),
            Verb::Rm(arguments) => rm::run(arguments, output),
            Verb::Mkdir(arguments) => mkdir::run(arguments, output),
            Verb::Cp(arguments) => cp::run(arguments, output),
            Verb::Mv(arguments) => mv::run(arguments, output),
            Verb::Ln(arguments) => ln::run(arguments, output),
            Verb::Chmod(arguments) => chmod::run(arguments, output),
            Verb::Compress(arguments) => compress::run(arguments, output),
            Verb::Set(arguments) => set::run(arguments, output),
            Verb::GetHints(arguments) => get_hints::run(arguments, output),
            Verb::Check(arguments) => check::run(arguments, output),
            Verb::Repair(arguments) => repair::run(arguments, output),
            Verb::Scrub(arguments) => scrub::run(arguments, output),
            Verb::Place(arguments) => place::run(arguments, output),
            Verb::Promote(arguments) => promote::promote(arguments, output),
            Verb::Demote(arguments) => promote::demote(arguments, output),
            Verb::Divide(arguments) => divide::run(arguments, output),
            Verb::Attach(arguments) => attach::attach(arguments, output),
            Verb::Detach(arguments) => attach::detach(arguments, output),
            Verb::Key(arguments) => key::run(arguments, &self.keys, output),
            Verb::Pool(arguments) => pool::run(arguments, output),
            Verb::Tx(arguments) => tx::run(arguments, output),
            Verb::Snapshot(arguments) => snapshot::run(arguments, output),
            Verb::Clone(arguments) => clone::run(arguments, output),
            Verb::Send(arguments) => send::run(arguments, output),
            Verb::Receive(arguments) => receive::run(arguments, output),
            Verb::Quota(arguments) => quota::run(arguments, output),
            Verb::Spaces(arguments) => spaces::run(arguments, output),
            Verb::Lab(arguments) => lab::run(arguments, self.json),
            Verb::Dump(arguments) => dump::run(arguments, output),
            Verb::Completions(arguments) => completions::run(arguments, output),
            Verb::Man(arguments) => man::run(arguments, output),
        }
    }
}

const OTHER_CODES: &str = "  `health` uses 3 notice, 4 degraded, 5 failed as well.\n  \
    `check`, `repair` and `fsck.onode` use the codes of fsck(8), `mount.onode` those of mount(8).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Command::definition().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Command::definition().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} has no examples", command.get_name());
        }
    }
}
