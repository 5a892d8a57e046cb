//! The flash device with its index in a memory beside it.

use crate::kind::flash::Flash;
use crate::kind::geometry::Shape;
use crate::kind::{Begun, Failures, Kind};
use crate::medium::Medium;
use crate::medium::beside::{BesideImage, BesideMedium};
use crate::medium::memory::{Memory, MemoryImage};
use crate::object::clients::Standing;
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_base::ErrorKind;
use onode_base::checksum::crc32c_append;
use onode_flash::{FindMemory, FlashDevice, MemoryOptions, MountOptions, MountPath, superblock_of};
use onode_fs::Inodes;
use onode_media::sim::RecordedNand;
use onode_media::{Domain, Pmem, SimNand};
use onode_object::powers::Attach;
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ObjectDevice, ObjectId, ObjectStat, Result as ObjectResult,
    Transaction,
};
use std::sync::Arc;

/// The device on one shape, with a memory that suits it.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    flash: Flash,
    memory_bytes: u64,
    spills: bool,
    buffers: bool,
    /// The memory is detached and attached again in the run: then a mount may find it wiped.
    comes_and_goes: bool,
}

/// Where a memory says that it holds anything: one anchor or the other.
const ANCHORS: usize = 2;
const ANCHOR_BYTES: usize = 64;

/// Names of shapes begin with this.
pub const PREFIX: &str = "beside-";

impl Beside {
    /// As runs of `workload` on `shape` with `seed` use it: every third memory is too small for all
    /// that there is, and in every second run it is a write buffer, too.
    #[must_use]
    pub fn new(shape: Shape, workload: &str, seed: u64) -> Self {
        let is_small = seed % 3 == 2;
        let memory_bytes = if is_small { 10 << 10 } else { 32 << 10 };
        let turn = workload.bytes().map(u64::from).sum::<u64>().wrapping_add(seed / 3);
        let buffers = turn.is_multiple_of(2);
        // Room for the buffer beside all that.
        let more = if buffers { 8 * (u64::from(shape.geometry.page_bytes) + 512) } else { 0 };
        Self {
            flash: Flash::new(shape, workload, seed),
            memory_bytes: memory_bytes + more,
            spills: is_small,
            buffers,
            comes_and_goes: seed % 2 == 1,
        }
    }

    const fn options(&self, rebuild: bool) -> MemoryOptions {
        MemoryOptions { rebuild, spill: self.spills, buffer: self.buffers, log_bytes: None }
    }

    fn blank(&self) -> MemoryImage {
        MemoryImage { bytes: vec![0; self.memory_bytes as usize], domain: Domain::Flush }
    }

    fn mount_any(
        &self,
        medium: &BesideMedium,
        read_only: bool,
        rebuild: bool,
    ) -> ObjectResult<(FlashDevice, MountPath)> {
        self.mount_with(medium, &self.flash.mount_options(read_only), rebuild)
    }

    fn mount_with(
        &self,
        medium: &BesideMedium,
        options: &MountOptions,
        rebuild: bool,
    ) -> ObjectResult<(FlashDevice, MountPath)> {
        let memory: Memory = medium.memory.clone();
        let mounted = FlashDevice::mount_beside(medium.clone(), memory, options, &self.options(rebuild), &mut |_| {});
        // As the facade does: of a volume that was closed only the first access looks at the flash.
        mounted.and_then(|(device, path)| device.confirm().map(|()| (device, path)))
    }

    /// What the volume on `nand` looks like to who has no memory beside it.
    fn without_memory(&self, nand: SimNand) -> ObjectResult<Vec<Look>> {
        let medium = BesideMedium::new(BesideImage { nand, memory: self.blank() }, false);
        // With a write buffer less was found there than was promised, and whoever lost the memory
        // has to consent.
        let options = MountOptions { accept_loss: self.buffers, ..self.flash.mount_options(false) };
        let (device, _) = self.mount_with(&medium, &options, false)?;
        agrees(&device)?;
        look(&device)
    }
}

/// The memory is where it was.
struct There {
    memory: Memory,
    options: MemoryOptions,
}

impl FindMemory for There {
    fn find(&self) -> ObjectResult<(Box<dyn Pmem>, MemoryOptions)> {
        Ok((Box::new(self.memory.clone()), self.options))
    }
}

/// An object as it is seen: size and attributes, and the checksum of what it holds.
type Look = (ObjectId, ObjectStat, Vec<(AttributeKey, Vec<u8>)>, u32);

fn look(device: &FlashDevice) -> ObjectResult<Vec<Look>> {
    let first = AttributeKey::new(AttributeKind(0), 0);
    let mut all = Vec::new();
    for object in device.list(ObjectId(0), usize::MAX)? {
        // A page of the log of access times is read at every mount, and no cut promises that it
        // reads well twice.
        let stat = ObjectStat { accessed: 0, ..device.stat(object)? };
        let (mut sum, mut end) = (0, 0);
        for (offset, length) in device.extents(object, 0, usize::MAX)? {
            let mut bytes = vec![0; length as usize];
            device.read(object, offset, &mut bytes)?;
            // How content is divided is nobody's business, where it is missing is.
            let gap = if offset == end { &[][..] } else { &offset.to_le_bytes()[..] };
            sum = crc32c_append(crc32c_append(sum, gap), &bytes);
            end = offset + length;
        }
        all.push((object, stat, device.attributes(object, first, usize::MAX)?, sum));
    }
    Ok(all)
}

fn agrees(device: &FlashDevice) -> ObjectResult<()> {
    match device.compare_memory()?.into_iter().next() {
        None => Ok(()),
        Some(wrong) => Err(Error::new(ErrorKind::Corrupt, wrong)),
    }
}

impl Kind for Beside {
    type Medium = BesideMedium;
    type Device = FlashDevice;

    fn format(&self, failures: Failures) -> Result<BesideImage, Violation> {
        let nand = self.flash.blank()?;
        let medium = BesideMedium::new(BesideImage { nand, memory: self.blank() }, false);
        let (options, mount) = (self.flash.format_options(), self.flash.mount_options(false));
        let memory: Memory = medium.memory.clone();
        let device = FlashDevice::format_beside(medium.clone(), memory, &options, &mount, &self.options(false));
        let device = device.map_err(unexpected("format"))?;
        device.close().map_err(unexpected("close after format"))?;
        drop(device);
        let mut image = medium.image();
        self.flash.plan_failures(&mut image.nand, failures);
        Ok(image)
    }

    /// Both ways must show the same: with the memory as the cut left it, which is never one that
    /// cannot be believed, and without it. Only where the memory is one superblock ahead and a page
    /// could be read just once, by the mount that wrote that superblock, the flash alone may have
    /// to do without what stood there: nothing of it was shown.
    fn mount(&self, medium: &BesideMedium, read_only: bool) -> ObjectResult<FlashDevice> {
        let BesideImage { nand, memory } = medium.image();
        // The first anchor of a memory that was blank may be torn.
        let is_zero = |anchor: &[u8]| anchor.iter().all(|byte| *byte == 0);
        let is_blank = memory.bytes.chunks(ANCHOR_BYTES).take(ANCHORS).any(is_zero);
        let of_memory = superblock_of(&Memory::new(memory, false));
        let mounted = self.mount_any(medium, read_only, false);
        // Two superblocks of which one was never programmed and the other read well just once: the
        // memory is two ahead. It is refused and, as the facade does, filled from the flash.
        let is_refused = mounted.as_ref().is_err_and(|error| error.kind == ErrorKind::Stale);
        let (device, path) = if is_refused { self.mount_any(medium, read_only, true)? } else { mounted? };
        device.set_finder(Arc::new(There { memory: medium.memory.clone(), options: self.options(false) }));
        // One that is too small for a full volume is given up, which its health tells. The next
        // mount fills it anew, as it does with one that was refused, and a cut leaves it with no
        // superblock at all: it is blank first of all.
        let is_being_filled = of_memory.is_none() && (self.spills || is_blank);
        if let MountPath::Rebuilt(why) = path
            && !(is_refused || is_being_filled || self.comes_and_goes || self.grows())
        {
            return Err(Error::new(ErrorKind::Corrupt, format!("the memory was not believed: {why}")));
        }
        let newest = onode_flash::dump::superblocks(&mut RecordedNand::new(nand.clone(), false))?;
        let newest = newest.into_iter().filter_map(|one| one.content).map(|one| one.generation).max();
        let told = |how: &str, mut error: Error| {
            error.detail = format!("{how} the memory: {}", error.detail);
            error
        };
        let with = look(&device).map_err(|error| told("with", error))?;
        let without = self.without_memory(nand).map_err(|error| told("without", error))?;
        // With a write buffer the flash alone is an earlier volume, which is whole: more than that
        // nobody promised.
        if with != without && newest >= of_memory && !self.buffers {
            let differs = |(one, other): &(&Look, &Look)| one != other;
            let first = with.iter().zip(&without).find(differs);
            let what = format!("{} objects with the memory, {} without; {first:?}", with.len(), without.len());
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("without the memory the volume is another one: {what}"),
            ));
        }
        Ok(device)
    }

    fn verify(&self, device: &FlashDevice) -> Result<(), Violation> {
        agrees(device).map_err(|error| Violation::new("N5", format!("flash and memory: {error}")))?;
        self.flash.verify(device)
    }

    fn note(&self, _device: &FlashDevice, _medium: &BesideMedium) -> Result<(), Violation> {
        Ok(())
    }

    fn slack_bytes(&self) -> u64 {
        self.flash.slack_bytes()
    }

    fn part<'a>(&self, device: &'a FlashDevice) -> Option<&'a dyn Attach> {
        self.comes_and_goes.then_some(device)
    }

    fn inodes(&self) -> Inodes {
        self.flash.inodes()
    }

    fn grows(&self) -> bool {
        self.flash.grows()
    }

    fn standing(&self, device: &FlashDevice) -> Option<Standing> {
        self.flash.standing(device)
    }

    fn begin(
        &self,
        device: &FlashDevice,
        transaction: &Transaction,
        durability: Durability,
    ) -> Option<Begun<FlashDevice>> {
        self.flash.begin(device, transaction, durability)
    }
}
