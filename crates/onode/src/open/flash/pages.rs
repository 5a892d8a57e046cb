//! All pages of a medium one after another, each with its spare area: what flash programmers write
//! to a chip, and `nanddump --oob` reads from one.

use crate::error::{Class, Error, Result};
use crate::open::failure::medium_error;
use crate::open::flash::dump::open;
use crate::spec::Spec;
use onode_media::{BlockAddress, Geometry, IoTag, Nand};
use std::path::Path;

/// How large the spare area of a page is on a chip, and where in it the bytes lie that its driver
/// leaves to others (on Linux `oobavail` of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareArea {
    /// Bytes of the whole area.
    pub bytes: u32,
    /// Where the spare bytes of the volume begin in it. What is before and behind them is written
    /// as erased.
    pub at: u32,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesDump {
    /// Bytes of a page without its spare area.
    pub page_bytes: u32,
    /// Bytes of the spare area.
    pub spare_bytes: u32,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Erase blocks.
    pub blocks: u32,
    /// Erase blocks in which something is programmed.
    pub programmed_blocks: u32,
    /// Bytes written.
    pub bytes: u64,
}

/// Hands all pages of a medium to `put`, in order: data, then spare area. Erased pages are 0xff.
/// Without `area`, spare areas have the bytes that the volume uses of them. `progress` is told how
/// many blocks are done, of how many. It ends early when `put` says that nobody wants more.
///
/// # Errors
/// `Usage` if the volume is not on flash, `BadSize` for an area that its spare bytes do not fit
/// into, `Damaged` for a page that cannot be read; those of opening it and of `put`.
pub fn dump_pages(
    spec: &Spec,
    area: Option<SpareArea>,
    put: &mut dyn FnMut(&[u8]) -> Result<bool>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PagesDump> {
    let what = || format!("cannot write the pages of {spec}");
    let mut nand = open(spec)?;
    let shape = nand.geometry();
    let area = area.unwrap_or(SpareArea { bytes: shape.spare_bytes, at: 0 });
    if area.at.checked_add(shape.spare_bytes).is_none_or(|end| end > area.bytes) {
        let SpareArea { bytes, at } = area;
        let why = format!("{} spare bytes do not fit into {bytes} from byte {at} on", shape.spare_bytes);
        return Err(Error::new(Class::BadSize, what(), why)
            .hint("make the volume with as many as the chip leaves: `onode mkfs flash:FILE,spare=N,...`"));
    }
    let path = spec.image_path().unwrap_or_else(|| Path::new(""));
    let (page_bytes, spare_bytes) = (shape.page_bytes as usize, shape.spare_bytes as usize);
    let pages = shape.pages_per_block as usize;
    let (mut data, mut spare) = (vec![0; pages * page_bytes], vec![0; pages * spare_bytes]);
    let mut all = Vec::new();
    let mut written = PagesDump {
        page_bytes: shape.page_bytes,
        spare_bytes: area.bytes,
        pages_per_block: shape.pages_per_block,
        blocks: shape.blocks,
        programmed_blocks: 0,
        bytes: 0,
    };
    for block in 0..shape.blocks {
        progress(u64::from(block), u64::from(shape.blocks));
        read_block(&mut *nand, &shape, BlockAddress(block), &mut data, &mut spare)
            .map_err(|error| medium_error(what(), path, &error))?;
        written.programmed_blocks += u32::from(data.iter().chain(&spare).any(|byte| *byte != 0xff));
        all.clear();
        for (number, page) in data.chunks_exact(page_bytes).enumerate() {
            all.extend_from_slice(page);
            all.resize(all.len() + area.at as usize, 0xff);
            all.extend(spare.iter().skip(number * spare_bytes).take(spare_bytes));
            all.resize((number + 1) * (page_bytes + area.bytes as usize), 0xff);
        }
        written.bytes += all.len() as u64;
        if !put(&all)? {
            break;
        }
    }
    Ok(written)
}

/// Reads a block; one that is bad holds nothing.
fn read_block(
    nand: &mut dyn Nand,
    shape: &Geometry,
    block: BlockAddress,
    data: &mut [u8],
    spare: &mut [u8],
) -> onode_media::Result<()> {
    if nand.is_bad(block)? {
        data.fill(0xff);
        spare.fill(0xff);
        return Ok(());
    }
    nand.read_run(shape.first_page(block), data, spare, IoTag::Check)
}
