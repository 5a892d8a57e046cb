//! The tests of the device of two disks: one program, so that what they share is compiled and
//! linked once. What measures memory has a program of its own.

mod attach;
mod beside_log;
mod common;
mod conformance;
mod corruption;
mod counts;
mod cuts;
mod damaged_media;
mod discard;
mod failures;
mod fast;
mod fast_cuts;
mod fast_device;
mod fast_figures;
mod first_home;
mod golden;
mod growing;
mod hot_set;
mod lending;
mod named_cases;
mod node_cache;
mod nodes_on_fast;
mod pair_cuts;
mod record_order;
mod repair;
mod replacing;
mod salvage;
mod scrub_order;
mod sections;
mod shrinking;
mod silent_loss;
mod thread_cuts;
mod threads;
