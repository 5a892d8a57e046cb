//! A look at a volume for people and tests: health, figures, scrubs, whether the state agrees with
//! itself.

pub mod health;
pub mod inspect;
pub mod scrub;
pub mod verify;
