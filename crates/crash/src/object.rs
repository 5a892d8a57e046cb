//! The object level: transactions on a flash device, and the states that commits go through.

pub mod brim;
pub mod calls;
pub mod clients;
pub mod profile;
pub mod state;
pub mod workload;

pub use profile::{PROFILES, Profile};
pub use state::{Object, ObjectState};
pub use workload::ObjectWorkload;
