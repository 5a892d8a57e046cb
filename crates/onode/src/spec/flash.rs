//! Specs of flash: `flash:IMAGE`, `flash+scm:IMAGE,MEMORY` and their settings.

pub mod beside;
pub mod parity;
pub mod partition;
pub mod policies;
pub mod shape;

use super::{Said, Spec, figure_of, size_of, unknown_part, whole};
use crate::error::{Class, Error, Result};
pub use beside::Beside;
use onode_base::size::exact_size;
use onode_flash::policy::WearPolicy;
pub use parity::Parity;
pub use policies::{Policies, wear_of};
pub use shape::Shape;
use std::fmt;
use std::path::{Path, PathBuf};

/// A volume on NAND flash, as far as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// Where the NAND is.
    pub medium: Medium,
    /// The shape of a new one; of an existing image, what it must have.
    pub shape: Shape,
    /// The policies of the volume from now on.
    pub policies: Policies,
    /// The memory beside it that holds its index, if there is one.
    pub beside: Option<Beside>,
}

/// Where a NAND is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Medium {
    /// In an image file, or on the device of that name: what it is, is seen when it is opened.
    Image(PathBuf),
    /// In a plain file that is used like a block device.
    Direct(PathBuf),
    /// In memory, simulated.
    Simulator,
}

impl Flash {
    /// Flash there, about which nothing else was said.
    #[must_use]
    pub fn on(medium: Medium) -> Self {
        Self { medium, shape: Shape::default(), policies: Policies::default(), beside: None }
    }
}

impl Spec {
    /// Flash in the image file `path`.
    #[must_use]
    pub fn image(path: impl Into<PathBuf>) -> Self {
        Self::Flash(Flash::on(Medium::Image(path.into())))
    }

    /// The same with wear spread by `policy` from now on.
    ///
    /// # Errors
    /// `Usage` for a device that does not wear.
    pub fn with_wear(mut self, policy: WearPolicy) -> Result<Self> {
        if let Self::Flash(flash) = &mut self {
            flash.policies.wear = Some(policy);
            return Ok(self);
        }
        let why = "only flash has a wear policy: disks see to it themselves, and memory does not wear";
        Err(Error::new(Class::Usage, format!("cannot use {self}"), why))
    }
}

/// Flash in a file that is there.
pub(super) fn in_image(_: &str, path: &Path) -> Result<Spec> {
    Ok(Spec::image(path))
}

/// What stands behind `flash:`.
pub(super) fn parse(what: &str, rest: &str) -> Result<Spec> {
    match (rest.strip_prefix("sim,"), rest.strip_prefix("mtd:")) {
        _ if rest == "sim" => parse_keys(what, Medium::Simulator, "").map(Spec::Flash),
        (Some(keys), _) => parse_keys(what, Medium::Simulator, keys).map(Spec::Flash),
        (None, Some(partition)) => parse_partition(what, partition),
        (None, None) => parse_image(what, rest),
    }
}

/// What stands behind `flash+scm:`: `NAND,MEMORY` or `sim`, then the settings of either.
pub(super) fn parse_beside(what: &str, rest: &str) -> Result<Spec> {
    let beside::Apart { place, memory, of_flash } = beside::parts(what, rest)?;
    let medium = if place == "sim" { Medium::Simulator } else { Medium::Image(partition::path_of(place, what)?) };
    let flash = parse_known(what, medium, &of_flash.join(","), &format!("{}, {KEYS}", beside::KEYS))?;
    Ok(Spec::Flash(Flash { beside: Some(memory), ..flash }))
}

/// An image file or a device, then its settings.
pub(super) fn parse_image(what: &str, rest: &str) -> Result<Spec> {
    match rest.split_once(',').unwrap_or((rest, "")) {
        ("", _) => Err(Error::new(Class::Usage, what, "the name of the image file is missing")
            .hint("write for example `disk.img` or `flash:disk.img,size=4G`")),
        (path, keys) => parse_keys(what, Medium::Image(path.into()), keys).map(Spec::Flash),
    }
}

fn parse_partition(what: &str, rest: &str) -> Result<Spec> {
    let (name, keys) = rest.split_once(',').unwrap_or((rest, ""));
    let device = partition::device_of(Path::new(partition::CLASS), name, what)?;
    parse_keys(what, Medium::Image(device), keys).map(Spec::Flash)
}

fn parity_of(what: &str, value: &str) -> Result<Parity> {
    Parity::parse(value)
        .map_err(|why| Error::new(Class::Usage, what, format!("parity={value}: {why}")).hint(PARITY_HINT))
}

/// What parity is said to be.
const PARITY_HINT: &str = "it is the number of lost pages of each row that lose nothing; 0-2 lets files choose up to 2";

/// The settings of flash, for people.
const KEYS: &str = "size, page, spare, pages-per-block, blocks-per-segment, chips, parity, placement, victim, wear; \
                    `direct` has no value";

fn parse_keys(what: &str, medium: Medium, keys: &str) -> Result<Flash> {
    parse_known(what, medium, keys, KEYS)
}

/// The same; `known` are the settings that are told to whoever writes another one.
fn parse_known(what: &str, medium: Medium, keys: &str, known: &str) -> Result<Flash> {
    let (mut shape, mut policies) = (Shape::default(), Policies::default());
    let mut medium = medium;
    for part in keys.split(',').filter(|part| !part.is_empty()) {
        medium = match medium {
            Medium::Image(path) | Medium::Direct(path) if part == "direct" => {
                medium = Medium::Direct(path);
                continue;
            }
            other => other,
        };
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key {
            "size" => shape.size = Some(size_of(what, value)?),
            "page" => shape.page = Some(figure_of(what, value)?),
            "spare" => shape.spare = Some(figure_of(what, value)?),
            "pages-per-block" => shape.pages_per_block = Some(figure_of(what, value)?),
            "blocks-per-segment" => shape.blocks_per_segment = Some(figure_of(what, value)?),
            "chips" => shape.chips = Some(figure_of(what, value)?),
            "parity" => shape.parity = Some(parity_of(what, value)?),
            _ if policies::take(&mut policies, what, key, value)? => {}
            _ => return Err(unknown_part(what, part, known)),
        }
    }
    Ok(Flash { medium, shape, policies, beside: None })
}

impl Said for Flash {
    fn image_path(&self) -> Option<&Path> {
        match &self.medium {
            Medium::Image(path) | Medium::Direct(path) => Some(path),
            Medium::Simulator => None,
        }
    }

    fn second_path(&self) -> Option<&Path> {
        self.beside.as_ref()?.path.as_deref()
    }

    fn paths_beside(&mut self) -> Vec<&mut PathBuf> {
        self.beside.iter_mut().filter_map(|memory| memory.path.as_mut()).collect()
    }

    #[cfg(feature = "pool")]
    fn own_paths(&mut self) -> Vec<&mut PathBuf> {
        let medium = match &mut self.medium {
            Medium::Image(path) | Medium::Direct(path) => Some(path),
            Medium::Simulator => None,
        };
        medium.into_iter().chain(self.beside.as_mut().and_then(|beside| beside.path.as_mut())).collect()
    }

    fn again(&self) -> Spec {
        let medium = match &self.medium {
            Medium::Image(path) => Medium::Image(whole(path)),
            Medium::Direct(path) => Medium::Direct(whole(path)),
            Medium::Simulator => Medium::Simulator,
        };
        let beside = self.beside.as_ref().map(|memory| Beside {
            path: memory.path.as_deref().map(whole),
            refuses: memory.refuses,
            buffer: memory.buffer,
            ..Beside::default()
        });
        Spec::Flash(Flash { beside, ..Flash::on(medium) })
    }
}

impl fmt::Display for Flash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { medium, shape, policies, beside } = self;
        f.write_str(if beside.is_some() { "flash+scm:" } else { "flash:" })?;
        match medium {
            Medium::Image(path) | Medium::Direct(path) => write!(f, "{}", path.display())?,
            Medium::Simulator => f.write_str("sim")?,
        }
        if let Some(path) = beside.as_ref().and_then(|memory| memory.path.as_ref()) {
            write!(f, ",{}", path.display())?;
        }
        if let Medium::Direct(_) = medium {
            f.write_str(",direct")?;
        }
        if let Some(memory) = beside {
            if let Some(size) = memory.size {
                write!(f, ",memory={}", exact_size(size))?;
            }
            if memory.refuses {
                f.write_str(",full=refuse")?;
            }
            if memory.rebuild {
                f.write_str(",rebuild=on")?;
            }
            if memory.buffer {
                f.write_str(",buffer=on")?;
            }
            if let Some(log) = memory.log {
                write!(f, ",log={}", exact_size(log))?;
            }
        }
        for (key, value) in shape.said() {
            if let Some(value) = value {
                write!(f, ",{key}={}", exact_size(value))?;
            }
        }
        if let Some(parity) = shape.parity {
            write!(f, ",parity={parity}")?;
        }
        write!(f, "{}", policies::Parts(policies))
    }
}
