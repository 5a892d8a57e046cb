//! What programs ask of the server of a mount itself, by attributes that no listing shows: a value
//! says what is to be done, and what came of it is read from another attribute, by a word that
//! whoever asks has chosen. The errors of the kernel say less.

mod answers;
mod forgetting;
pub mod keys;
pub mod transactions;
