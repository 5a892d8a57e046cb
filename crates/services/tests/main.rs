//! The tests of services: one program, so that what they share, and what the devices below them
//! bring, is compiled and linked once. What plants bugs in the whole process has its own.

mod authenticated;
mod clones;
mod common;
mod conformance;
mod cuts;
mod damage;
mod devices;
mod directories;
mod encrypted;
#[allow(dead_code, reason = "tests of services use a part of it")]
#[path = "../../devices/flash/tests/common/mod.rs"]
mod flash;
mod histories;
mod hostile;
mod pool_members;
mod pools;
#[allow(dead_code, reason = "tests of services use a part of it")]
#[path = "../../devices/scm/tests/common/mod.rs"]
mod scm;
mod snapshots;
mod spied;
mod staged;
mod staged_cuts;
mod staged_faults;
mod staged_history;
mod streams;
mod threads;
#[allow(dead_code, reason = "tests of services use a part of it")]
#[path = "../../devices/tier/tests/common/mod.rs"]
mod tier;
