//! The tests of the command: one program, so that what they share is compiled and linked once.

// Before those that use its macro.
#[macro_use]
mod common;

mod atomic;
mod authenticated;
mod beside;
mod clone;
mod copy;
mod damage;
mod devices;
mod directory_keys;
mod encrypted;
mod errors;
mod files;
mod helpers;
mod hints;
mod keys_given;
mod label;
mod mkfs;
mod mount;
mod pool;
mod quota;
mod requests;
mod resize;
mod scrub;
mod send;
mod snapshot;
mod spaces;
mod tar;
mod tier;
mod told;
mod tune;
mod tx;
mod verbs;
