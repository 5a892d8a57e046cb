//! Tests of the facade with all its features: one program, so that what they share is compiled and
//! linked once. What needs fewer features, or a process for itself, has a program of its own.

mod agent;
mod authenticated;
mod beside;
mod clones;
mod common;
#[path = "common/compressed.rs"]
mod compressed;
mod content;
mod directory_keys;
mod exclusive;
mod file;
mod fill;
mod flush_budgets;
mod full;
mod full_parity;
mod full_streams;
mod full_tier;
mod full_volumes;
mod hints;
mod idle;
mod keys_given;
mod last_sync;
mod mapped;
mod pages;
mod quotas;
mod rewrite;
mod services;
mod settings;
mod small_volumes;
mod snapshots;
mod storm;
mod tier_disks;
mod transactions;
