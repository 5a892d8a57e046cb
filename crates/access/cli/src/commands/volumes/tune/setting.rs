//! `NAME=VALUE` of `onode tune`: what it takes, and what a shell completes.

use crate::commands::mounts::kept;
use clap::builder::{OsStringValueParser, PossibleValue, TypedValueParser};
use onode::devices::uuid_text;
use onode::{Class, Error, Result, Spec, random_bytes};
use onode_fs::{KEPT_OPTIONS_BYTES_MAX, NewTuning, check_label};
use std::ffi::{OsStr, OsString};

const NAMES: [&str; 4] = ["label", "uuid", "mount-options", "exclusive"];

/// What is wanted of a volume, before it is known of which kind it is.
#[derive(Debug, Default)]
pub struct TuneLine {
    label: Option<String>,
    uuid: Option<[u8; 16]>,
    mount_options: Option<String>,
    exclusive: Option<bool>,
}

impl TuneLine {
    /// What words ask for.
    ///
    /// # Errors
    /// `Usage` for a name or a value that means nothing, and for a name that comes twice.
    pub fn of(what: &str, words: &[OsString]) -> Result<Self> {
        let mut wanted = Self::default();
        for word in words {
            let usage = |why: String| Error::new(Class::Usage, what, why);
            let hint = format!("the settings are {}; for example: onode tune disk.img label=photos", NAMES.join(", "));
            let Some((name, value)) = word.to_str().and_then(|word| word.split_once('=')) else {
                return Err(usage(format!("`{}` is no NAME=VALUE", word.display())).hint(hint));
            };
            if wanted.names().contains(&name) {
                return Err(usage(format!("{name} is set twice")).hint("say it once"));
            }
            match name {
                "label" => {
                    check_label(value).map_err(|error| usage(error.detail))?;
                    wanted.label = Some(value.to_owned());
                }
                "uuid" => wanted.uuid = Some(uuid_from(value).map_err(|error| error.what(what))?),
                "mount-options" if value.len() > KEPT_OPTIONS_BYTES_MAX => {
                    return Err(usage(format!(
                        "a volume keeps at most {KEPT_OPTIONS_BYTES_MAX} bytes of mount options"
                    )));
                }
                "mount-options" => wanted.mount_options = Some(value.to_owned()),
                "exclusive" => wanted.exclusive = Some(on_or_off(value).map_err(usage)?),
                _ => return Err(usage(format!("no setting is called `{name}`")).hint(hint)),
            }
        }
        if wanted.exclusive.is_some() && words.len() > 1 {
            let why = "exclusive is set alone: it changes how the volume is opened for all else".to_owned();
            return Err(Error::new(Class::Usage, what, why).hint("call `onode tune` once more for the others"));
        }
        Ok(wanted)
    }

    /// Whether one process at a time is to use the volume, if that is wanted.
    pub const fn exclusive(&self) -> Option<bool> {
        self.exclusive
    }

    /// The settings that are said.
    pub fn names(&self) -> Vec<&'static str> {
        let said = [self.label.is_some(), self.uuid.is_some(), self.mount_options.is_some(), self.exclusive.is_some()];
        NAMES.into_iter().zip(said).filter(|(_, said)| *said).map(|(name, _)| name).collect()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    /// The same for a volume that lies on `spec`.
    ///
    /// # Errors
    /// `Usage` for mount options that it cannot keep.
    pub fn of_volume(&self, what: &str, spec: &Spec) -> Result<NewTuning> {
        self.mount_options.as_deref().map_or(Ok(()), |options| kept::check(what, spec, options))?;
        let (label, uuid, mount_options) = (self.label.clone(), self.uuid, self.mount_options.clone());
        Ok(NewTuning { label, uuid, mount_options })
    }
}

fn on_or_off(value: &str) -> std::result::Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{value}` is neither `on` nor `off`")),
    }
}

/// `random`, or 32 hexadecimal digits with or without dashes.
fn uuid_from(value: &str) -> Result<[u8; 16]> {
    if value == "random" {
        return random_bytes();
    }
    let digits: String = value.chars().filter(|digit| *digit != '-').collect();
    let is_right = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|number| is_right && *number != 0);
    number.map(u128::to_be_bytes).ok_or_else(|| {
        Error::new(Class::Usage, "", format!("`{value}` is no unique number"))
            .hint("say uuid=random, or 32 hexadecimal digits as `uuidgen` draws them")
    })
}

/// A number in the usual form.
pub fn uuid_of(uuid: &[u8; 16]) -> String {
    uuid_text(*uuid)
}

/// Takes any word, and tells a shell how those begin that mean something.
#[derive(Clone, Debug)]
pub struct Names;

impl TypedValueParser for Names {
    type Value = OsString;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<OsString, clap::Error> {
        OsStringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = ["label=", "uuid=random", "uuid=", "mount-options=", "exclusive=on", "exclusive=off"];
        Some(Box::new(values.into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> Result<TuneLine> {
        TuneLine::of("cannot tune it", &words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_names_and_values() {
        let all = wanted(&["uuid=00112233-4455-6677-8899-aabbccddeeff", "label=a=b", "mount-options=compress=fast"]);
        let all = all.expect("valid");
        assert_eq!(all.names(), NAMES[..3]);
        assert_eq!(all.label.as_deref(), Some("a=b"));
        assert_eq!(uuid_of(&all.uuid.expect("set")), "00112233-4455-6677-8899-aabbccddeeff");
        assert!(wanted(&[]).expect("valid").is_empty());
        assert_eq!(wanted(&["exclusive=on"]).expect("valid").exclusive(), Some(true));
        let [one, other] = [wanted(&["uuid=random"]), wanted(&["uuid=random"])].map(|drawn| drawn.expect("valid").uuid);
        assert_ne!(one, other);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let long = format!("mount-options={}", "x".repeat(600));
        for (words, why) in [
            (&["label"][..], "no NAME=VALUE"),
            (&["lable=x"], "no setting is called `lable`"),
            (&["label=a/b"], "slashes"),
            (&["label=a", "label=b"], "twice"),
            (&["uuid=12"], "no unique number"),
            (&["uuid=+0112233-4455-6677-8899-aabbccddeeff"], "no unique number"),
            (&["uuid=00000000-0000-0000-0000-000000000000"], "no unique number"),
            (&[&long], "512 bytes"),
            (&["exclusive=yes"], "neither"),
            (&["exclusive=on", "label=a"], "alone"),
        ] {
            let refused = wanted(words).expect_err(why);
            assert!(refused.class == Class::Usage && refused.why.contains(why), "{refused}");
        }
    }
}
