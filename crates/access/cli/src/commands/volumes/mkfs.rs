//! `onode mkfs`: makes a volume, empty or with the files of a directory.

mod tree;

use crate::commands::mounts::up::owned_by_caller;
use crate::commands::volumes::info;
use crate::commands::volumes::key::first::{CostArguments, EncryptArguments, FirstKey};
use crate::keys::KeyArguments;
use crate::location;
use onode::{
    Class, CreateOptions, Error, Flash, Inodes, MountOptions, Parity, Policies, Result, Shape, Spec, Volume,
    parse_size, wear_of,
};
use onode_console::Output;
use std::ffi::OsString;
use tree::TreeArguments;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    onode mkfs disk.img\n  \
    onode mkfs --size 16G --label photos disk.img\n  \
    onode mkfs --wear static /dev/mtd3\n  \
    onode mkfs flash:mtd:rootfs\n  \
    onode mkfs --parity 1 disk.img                        (a lost page of 16 loses nothing)\n  \
    onode mkfs --page 2K --spare 0 --pages-per-block 128 disk.img\n  \
    onode mkfs flash:disk.img,placement=split+atime\n  \
    onode mkfs pool:flash:a.img,size=4G+flash:b.img,size=4G   (every file on both; see onode pool)\n  \
    onode mkfs --encrypt disk.img                         (asks for a passphrase; see onode key)\n  \
    onode mkfs --encrypt --key-file disk.key disk.img\n  \
    onode mkfs --encrypt --authenticate disk.img          (tells who puts older things back)\n  \
    onode mkfs --encrypt-directories disk.img             (keys for directories; see onode key)\n  \
    onode mkfs --from ./rootfs --owner root root.img      (as large as it needs)\n  \
    onode mkfs --from ./rootfs --uuid \"$UUID\" --time \"$(git log -1 --format=%ct)\" root.img\n\n\
    --from keeps content with its holes, owners, permissions, times, symbolic and hard links,\n\
    extended attributes with ACLs, devices, FIFOs and sockets. Without --size an image of flash gets a\n\
    quarter more than the files take, and 4 MiB; they are read twice then. With --uuid and --time (or\n\
    SOURCE_DATE_EPOCH) the same files and options make the same bytes, on any computer; not with\n\
    --encrypt, whose keys are drawn, nor with map= in the spec. Whoever knows the number can choose\n\
    names that are slow to look up. If it fails or is interrupted no image is left.\n\n\
    Placements: combined, split, split+atime, user-cleaner, age-chain, sepbit, lifespan, hints.\n\
    Sizes are written as 4096, 4K, 512M, 8G. The image file is sparse: it grows as it fills.")]
pub struct Arguments {
    /// The image to make, or a flash device spec.
    image: OsString,
    /// Size of the volume. Default: 1G.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Data bytes of a flash page. Default: 4K.
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// Spare bytes of a flash page. Default: 32, with parity 64.
    #[arg(long, value_name = "BYTES")]
    spare: Option<String>,
    /// Pages of an erase block. Default: 64.
    #[arg(long, value_name = "COUNT")]
    pages_per_block: Option<String>,
    /// Erase blocks of a segment. Default: what suits the size.
    #[arg(long, value_name = "COUNT")]
    blocks_per_segment: Option<String>,
    /// Chips that work at the same time. Default: 1.
    #[arg(long, value_name = "COUNT")]
    chips: Option<String>,
    /// Pages of parity in each row of flash pages, 0 to 3: so many pages of a row, or whole erase
    /// blocks of a segment, can be lost without losing anything. 1 costs a 16th of the space and
    /// of the programs. With 0-2 files choose up to 2 (`onode set PATH parity=2`) and have none
    /// otherwise; names and small files always have 2. Default: 0.
    #[arg(long, value_name = "COUNT|USUAL-MOST")]
    parity: Option<String>,
    /// Keep each inode in the onode of its file, or off: in an object of its own, which costs
    /// space, reads and writes and is there to be measured.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = ["on", "off"])]
    embed_inodes: String,
    /// How wear is spread, unless a mount says otherwise: dynamic (by the choice of free segments),
    /// static (cold content is moved too), off (segments in turn). Default: dynamic.
    #[arg(long, value_name = "POLICY")]
    wear: Option<String>,
    /// A name for people, at most 255 bytes.
    #[arg(short = 'L', long, default_value = "")]
    label: String,
    /// Replace an image that is there already; its content is lost.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    encryption: EncryptArguments,
    /// What people call the first key slot, at most 64 bytes.
    #[arg(long, value_name = "LABEL", default_value = "")]
    key_label: String,
    #[command(flatten)]
    cost: CostArguments,
    #[command(flatten)]
    tree: TreeArguments,
}

pub fn run(arguments: &Arguments, keys: &KeyArguments, output: &Output) -> Result<u8> {
    let mut spec = location::spec(&arguments.image)?;
    match &mut spec {
        Spec::Flash(Flash { shape, policies, .. }) => arguments.apply(shape, policies)?,
        Spec::Scm(memory) => {
            if let Some(size) = &arguments.size {
                memory.size = Some(figure("--size", size)?);
            }
        }
        Spec::Tier(disks) => {
            if let Some(size) = &arguments.size {
                disks.size = Some(figure("--size", size)?);
            }
        }
        Spec::Pool(_) if arguments.size.is_some() => {
            let what = format!("cannot make {spec}");
            return Err(Error::new(Class::Usage, what, "each member has its own size")
                .hint("say it with the member: pool:flash:a.img,size=4G+flash:b.img,size=4G"));
        }
        Spec::Ram(_) | Spec::Pool(_) => {}
        // What was said of a size must not be passed over.
        _ => {
            let what = format!("cannot make {spec}");
            return Err(Error::new(Class::Usage, what, "this command does not know this kind of device"));
        }
    }
    let (uuid, time) = (arguments.tree.uuid()?, arguments.tree.time()?);
    let inodes = if arguments.embed_inodes == "off" { Inodes::Separate } else { Inodes::Embedded };
    let options = CreateOptions {
        label: arguments.label.clone(),
        replace: arguments.force,
        inodes,
        uuid,
        time,
        ..owned_by_caller()
    };
    let Arguments { key_label, cost, .. } = arguments;
    let key = FirstKey { encrypts: arguments.encryption.encrypts(), arguments: keys, label: key_label, cost };
    match arguments.tree.source(&spec, output)? {
        None => key.create(&spec, &options)?,
        Some(source) => source.fill(&spec, &options, &key)?,
    }
    let volume = Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() })?;
    output.report(&info::Report::of(&volume))?;
    Ok(0)
}

impl Arguments {
    fn apply(&self, shape: &mut Shape, policies: &mut Policies) -> Result<()> {
        if let Some(size) = &self.size {
            shape.size = Some(figure("--size", size)?);
        }
        if let Some(parity) = &self.parity {
            shape.parity =
                Some(Parity::parse(parity).map_err(|why| Error::new(Class::Usage, "cannot use --parity", why))?);
        }
        if let Some(wear) = &self.wear {
            policies.wear = Some(wear_of("cannot use --wear", wear)?);
        }
        for (option, said, field) in [
            ("--page", &self.page, &mut shape.page),
            ("--spare", &self.spare, &mut shape.spare),
            ("--pages-per-block", &self.pages_per_block, &mut shape.pages_per_block),
            ("--blocks-per-segment", &self.blocks_per_segment, &mut shape.blocks_per_segment),
            ("--chips", &self.chips, &mut shape.chips),
        ] {
            if let Some(said) = said {
                let value = figure(option, said)?;
                *field = Some(u32::try_from(value).map_err(|_| wrong(option, format!("`{said}` is too large")))?);
            }
        }
        Ok(())
    }
}

fn figure(option: &str, said: &str) -> Result<u64> {
    parse_size(said).map_err(|why| wrong(option, why))
}

fn wrong(option: &str, why: String) -> Error {
    Error::new(Class::BadSize, format!("cannot use {option}"), why)
}
