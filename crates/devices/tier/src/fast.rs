//! The fast disk: verified copies of what lies on the big one, and a log ring beside that one's.

pub mod extent;
