//! The one line that names a state: `object.churn.tiny.7:233:4` and, after a second cut,
//! `object.churn.tiny.7:233:4:12:3`.
//!
//! Level, workload, shape and seed name a run; the first number after it the media operation that
//! is cut, the second the variant of its damage; two more the same for the operations of the
//! recovery.

use crate::explore::Place;
use std::fmt;
use std::str::FromStr;

/// A run by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName {
    /// `object`, `through` or `back`.
    pub level: String,
    /// The workload.
    pub workload: String,
    /// The shape of the medium.
    pub shape: String,
    /// The seed.
    pub seed: u64,
}

/// A state by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The run.
    pub run: RunName,
    /// Where it is cut; the run itself if nowhere.
    pub place: Option<Place>,
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.level, self.workload, self.shape, self.seed)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.run)?;
        let Some(place) = self.place else { return Ok(()) };
        write!(f, ":{}:{}", place.first.0, place.first.1)?;
        place.second.map_or(Ok(()), |(cut, variant)| write!(f, ":{cut}:{variant}"))
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no LEVEL.WORKLOAD.SHAPE.SEED[:K:V[:K:V]]");
        let mut parts = text.split(':');
        let names: Vec<&str> = parts.next().unwrap_or_default().split('.').collect();
        let [level, workload, shape, seed] = names[..] else { return Err(wrong()) };
        let seed = seed.parse().map_err(|_| wrong())?;
        let run = RunName { level: level.into(), workload: workload.into(), shape: shape.into(), seed };
        let numbers: Vec<usize> = parts.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let place = match numbers[..] {
            [] => None,
            [cut, variant] => Some(Place { first: (cut, variant), second: None }),
            [cut, variant, cut2, variant2] => Some(Place { first: (cut, variant), second: Some((cut2, variant2)) }),
            _ => return Err(wrong()),
        };
        Ok(Self { run, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["object.mix.tiny.7", "object.mix.tiny.7:233:4", "back.pair.wide.1:2:3:4:5"] {
            assert_eq!(text.parse::<Spec>().map(|spec| spec.to_string()), Ok(text.to_string()));
        }
        for text in ["", "object.mix.tiny", "object.mix.tiny.x", "object.mix.tiny.7:1", "object.mix.tiny.7:1:2:3:4:5"] {
            assert!(text.parse::<Spec>().is_err(), "{text}");
        }
    }
}
