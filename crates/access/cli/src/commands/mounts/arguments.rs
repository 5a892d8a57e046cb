//! What the commands that mount a volume are told alike: options, policies, who is told.

use crate::keys::{self, KeyArguments};
use crate::location;
use crate::watch::settings::{Settings, TellingArguments};
use onode::{Result, Spec};
use std::ffi::OsStr;

/// How a volume is mounted.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MountArguments {
    /// Mount options, separated by commas; `onode mount --help` lists them.
    #[arg(short, long, value_name = "OPTIONS")]
    options: Vec<String>,
    /// How wear is spread from now on, as -o wear=POLICY: dynamic, static, off.
    #[arg(long, value_name = "POLICY")]
    wear: Option<String>,
    /// Of a volume on two disks, use the big one alone: the fast one is dead or away.
    #[arg(long)]
    pub without_fast: bool,
    #[command(flatten)]
    telling: TellingArguments,
}

impl MountArguments {
    /// All settings of the mount. The key of the volume that an option names is used unless a flag
    /// names one.
    ///
    /// # Errors
    /// `Usage`.
    pub fn settings(&self, keys: &KeyArguments) -> Result<Settings> {
        let mut settings = Settings::of(&self.options, self.wear.as_ref(), &self.telling)?;
        settings.keys = settings.keys.with_flags(keys);
        keys::provide(&settings.keys);
        Ok(settings)
    }

    /// The volume to mount, of these disks.
    ///
    /// # Errors
    /// `Usage`.
    pub fn disks_of(&self, spec: Spec) -> Result<Spec> {
        if self.without_fast { spec.without_fast() } else { Ok(spec) }
    }

    /// What concerns the volume as one list for `-o`, for a process that mounts it.
    #[must_use]
    pub fn list(&self) -> String {
        let wear = self.wear.iter().map(|wear| format!("wear={wear}"));
        let consent = self.telling.accept_loss.then(|| "accept-loss".to_owned());
        self.options.iter().cloned().chain(wear).chain(consent).collect::<Vec<_>>().join(",")
    }

    /// The volume that `image` names, of these disks.
    ///
    /// # Errors
    /// `Usage`.
    pub fn spec(&self, image: &OsStr) -> Result<Spec> {
        self.disks_of(location::spec(image)?)
    }
}
