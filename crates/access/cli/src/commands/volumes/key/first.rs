//! The first key of a volume that is to be made.

use crate::keys::{self, KeyArguments};
use crate::watch::record::Left;
use onode::keys::{Encryption, KeyCost, NewKey, VolumeKeys};
use onode::{Class, CreateOptions, Error, Result, Spec, Volume, parse_size};

/// What it costs to try a passphrase.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CostArguments {
    /// Memory that it takes to try a passphrase (Argon2id). Default: 64M.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    kdf_memory: Option<u64>,
    /// How often that memory is gone over. Default: 3.
    #[arg(long, value_name = "COUNT")]
    kdf_passes: Option<u32>,
}

impl CostArguments {
    /// The cost that they say.
    ///
    /// # Errors
    /// `Usage` for more memory than can be said.
    pub fn cost(&self) -> Result<KeyCost> {
        let memory_kib = match self.kdf_memory {
            None => KeyCost::DEFAULT.memory_kib,
            Some(bytes) => u32::try_from(bytes / 1024)
                .map_err(|_| Error::new(Class::Usage, "cannot use --kdf-memory", "it is more than 4 TiB"))?,
        };
        let passes = self.kdf_passes.unwrap_or(KeyCost::DEFAULT.passes);
        Ok(KeyCost { memory_kib, passes, ..KeyCost::DEFAULT })
    }

    /// Whether nothing is said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kdf_memory.is_none() && self.kdf_passes.is_none()
    }
}

/// What is to be encrypted of a volume that is made.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct EncryptArguments {
    /// Encrypt everything: content, names, and sizes up to blocks of 4 KiB. The key is what
    /// --key-file, --passphrase-file or --keyring name, or a passphrase that is asked for.
    #[arg(long)]
    encrypt: bool,
    /// With --encrypt: also find out if somebody puts anything older, or of another place, on the
    /// medium while it is not mounted; an older copy of it all by `onode key anchor`.
    #[arg(long, requires = "encrypt")]
    authenticate: bool,
    /// Encrypt only what is made in directories that get a key of their own (`onode key new`); the
    /// rest needs no key, and takes as long as if it were encrypted.
    #[arg(long, conflicts_with_all = ["encrypt", "authenticate"])]
    encrypt_directories: bool,
}

impl EncryptArguments {
    /// What they say.
    #[must_use]
    pub const fn encrypts(self) -> Encrypts {
        match (self.encrypt, self.authenticate, self.encrypt_directories) {
            (true, true, _) => Encrypts::Authenticated,
            (true, false, _) => Encrypts::All,
            (false, _, true) => Encrypts::Directories,
            (false, _, false) => Encrypts::Nothing,
        }
    }

    /// That a volume which is there is what they ask for.
    ///
    /// # Errors
    /// `Usage` if it is not; those of opening it.
    pub fn check(self, spec: &Spec) -> Result<()> {
        if self.encrypts() == Encrypts::Nothing {
            return Ok(());
        }
        let keys = VolumeKeys::open(spec, true)?;
        let wrong = |why: &str| Err(Error::new(Class::Usage, format!("cannot use {spec} as asked"), why));
        match self.encrypts() {
            Encrypts::Authenticated if !keys.is_authenticated() => wrong("it is encrypted, and not authenticated"),
            Encrypts::Directories if !keys.is_open() => wrong("all of it is encrypted, not only directories"),
            Encrypts::All | Encrypts::Authenticated if keys.is_open() => wrong("only directories of it are encrypted"),
            _ => Ok(()),
        }
    }
}

/// What of a volume is to be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encrypts {
    /// Nothing.
    Nothing,
    /// What is made in directories with keys.
    Directories,
    /// Everything.
    All,
    /// Everything, and it is authenticated.
    Authenticated,
}

/// The key of a volume that is to be made, if it is to be encrypted.
#[derive(Debug)]
pub struct FirstKey<'a> {
    /// What is.
    pub encrypts: Encrypts,
    /// Where the key is.
    pub arguments: &'a KeyArguments,
    /// What people call it.
    pub label: &'a str,
    /// What it costs to try it.
    pub cost: &'a CostArguments,
}

impl FirstKey<'_> {
    /// Makes a volume. If it is encrypted this process remembers its key.
    ///
    /// # Errors
    /// Those of the key and of the volume; `Usage` for a key of a volume that needs none.
    pub fn create(&self, spec: &Spec, options: &CreateOptions) -> Result<()> {
        self.hand(spec, &|how| match how {
            None => Volume::create(spec, options),
            Some(how) => Volume::create_encrypted(spec, options, how),
        })
    }

    /// Hands the key to what makes a volume; nothing if it is not to be encrypted.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn hand(&self, spec: &Spec, make: &dyn Fn(Option<&Encryption<'_>>) -> Result<()>) -> Result<()> {
        self.hand_key(spec, make)?;
        // How mounts ended of what was there before is not to be told of the new volume.
        Left::of(spec.image_path()).iter().for_each(Left::forget);
        Ok(())
    }

    fn hand_key(&self, spec: &Spec, make: &dyn Fn(Option<&Encryption<'_>>) -> Result<()>) -> Result<()> {
        if matches!(self.encrypts, Encrypts::Nothing | Encrypts::Directories) {
            if !self.arguments.is_empty() || !self.label.is_empty() || !self.cost.is_empty() {
                let what = format!("cannot make {spec}");
                return Err(Error::new(Class::Usage, what, "a key was given, and --encrypt was not")
                    .hint("add --encrypt, or leave out the options of keys"));
            }
            return make((self.encrypts == Encrypts::Directories).then_some(&Encryption::Directories));
        }
        let secret = self.arguments.first_secret()?;
        let key = NewKey { secret: &secret, label: self.label, cost: self.cost.cost()? };
        make(Some(&match self.encrypts {
            Encrypts::Authenticated => Encryption::Authenticated(key),
            _ => Encryption::All(key),
        }))?;
        keys::remember(secret);
        Ok(())
    }
}
