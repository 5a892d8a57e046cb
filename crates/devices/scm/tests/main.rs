//! The tests of the device on memory: one program, so that what they share is compiled and linked
//! once. What starts itself again, to be killed, has a program of its own.

mod common;
mod conformance;
mod damage;
mod exclusive;
mod full;
mod gather;
mod growth;
mod modes;
#[path = "common/mortal.rs"]
mod mortal;
mod named_cases;
mod parallel_reads;
mod regressions;
mod slots;
mod two_processes;
mod unverified;
