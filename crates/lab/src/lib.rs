//! Placeholder of the first slice.
