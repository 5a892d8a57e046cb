//! What the tests of the wrapper share.

pub mod absences;
pub mod attacks;
pub mod changes;
pub mod clones;
pub mod cuts;
pub mod damage;
pub mod directories;
pub mod faulty;
pub mod filled;
pub mod full;
pub mod history;
pub mod hostile;
pub mod keyed;
pub mod losses;
pub mod pool;
pub mod readers;
pub mod secrecy;
pub mod snapshots;
pub mod spy;
pub mod staged_gate;
pub mod staged_history;
pub mod streams;
pub mod transacting;
pub mod vault;
