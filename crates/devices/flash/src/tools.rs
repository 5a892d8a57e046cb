//! A look at a volume for people and tests: check, repair, dumps, figures, health.

pub mod check;
pub mod decide;
pub mod dump;
pub mod health;
pub mod inspect;
pub mod repair;
