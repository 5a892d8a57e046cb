//! The experiments of the lab as a command line: one per file, and this list.

mod codec;
mod policy;
mod replay;
mod scm;
mod tier;

use crate::NAME;
use clap::{CommandFactory, Parser};
use onode::{Class, Result};
use onode_console::Output;
use std::ffi::OsString;

/// What workloads cost on simulated devices of Onode, in page operations and virtual time.
#[derive(Debug, Parser)]
#[command(name = NAME, version, arg_required_else_help = true, subcommand_required = true)]
#[command(max_term_width = 100, propagate_version = true)]
#[command(after_help = "Examples:\n  \
    onode-lab replay postmark:seed=1 --device flash:sim,size=128M,page=2K,spare=64\n  \
    onode-lab --json replay trace.txt.zst --durability op\n  \
    onode-lab replay --figures --traces DIR\n  \
    onode-lab policy --stream zipf --all\n  \
    onode-lab scm --figures\n  \
    onode-lab codec --figures\n  \
    onode-lab tier --figures")]
pub struct Command {
    /// Print reports as JSON, and errors as one line of JSON on standard error.
    #[arg(long, global = true)]
    pub json: bool,

    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, clap::Subcommand)]
enum Experiment {
    /// Run a stream of file operations and count what the device does.
    Replay(replay::Replay),
    /// Compare placement, victim and wear policies on streams of page writes.
    Policy(policy::Policy),
    /// Time memory blocks of storage-class memory beside other allocators.
    Scm(scm::Scm),
    /// Count what metadata takes in a small persistent RAM, codec by codec.
    Codec(codec::Codec),
    /// Run files on a fast and a big disk beside ext2 and xfs, in virtual time.
    Tier(tier::Tier),
}

impl Command {
    /// Reads the command line. Help and mistakes are printed here; the error is the exit code.
    pub fn parse(arguments: Vec<OsString>) -> std::result::Result<Self, u8> {
        onode_console::parse(NAME, Self::command(), arguments, Class::Usage.exit_code())
    }

    /// Does it and returns the exit code.
    pub fn run(&self, output: &Output) -> Result<u8> {
        match &self.experiment {
            Experiment::Replay(replay) => replay.run(output),
            Experiment::Policy(policy) => policy.run(output),
            Experiment::Scm(scm) => scm.run(output),
            Experiment::Codec(codec) => codec.run(output),
            Experiment::Tier(tier) => tier.run(output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Command::command().debug_assert();
    }

    #[test]
    fn every_experiment_has_examples() {
        for command in Command::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} has no examples", command.get_name());
        }
    }
}
