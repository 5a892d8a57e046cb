//! `onode dump`: structures as they lie on the medium, for those who look for the cause of
//! something.
//!
//! Nothing is mounted and nothing is changed; damage does not end a dump but is part of what is
//! shown.

use crate::bar::bar;
use crate::location;
use crate::whole::write_whole;
use onode::medium::{
    AttributeDump, ExtentDump, NodeDump, OnodeDump, PagesDump, ReferenceDump, SegmentDump, SpareArea, SuperblockDump,
};
use onode::{Class, Error, Result, Spec, medium};
use onode_console::Output;
use serde::Serialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode dump disk.img superblock\n  onode dump disk.img segment 5\n  \
    onode dump disk.img onode 64      the number is the file's inode number (`ls -i`)\n  \
    onode dump disk.img tree --object 64\n  \
    onode dump rootfs.img pages rootfs.bin --spare 64 --at 2    for a flash programmer")]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Every superblock that can be read.
    Superblock,
    /// One segment: its pages, the records in them and its summary.
    Segment {
        /// Its number.
        number: u32,
    },
    /// One object: its onode, attributes, extents and what the journal says of it.
    Onode {
        /// Its number: a file's inode number.
        id: u64,
    },
    /// The nodes of the tree.
    Tree {
        /// Only those that may hold entries of this object.
        #[arg(long, value_name = "ID")]
        object: Option<u64>,
    },
    /// All pages with their spare areas, as a flash programmer writes them to a chip.
    #[command(
        after_help = "Blocks keep their numbers, so those that are bad on the chip must be ones that hold nothing here.\n\
        A chip that has others gets its files when it is mounted: `onode mkfs /dev/mtdN --from DIR`, `onode receive`."
    )]
    Pages {
        /// The file to write; - for standard output.
        file: PathBuf,
        /// Bytes of the spare area of a page on the chip. Default: those that the volume uses.
        #[arg(long, value_name = "BYTES", requires = "at")]
        spare: Option<u32>,
        /// Where in the spare area the bytes begin that the chip's driver leaves to others.
        #[arg(long, value_name = "BYTE", requires = "spare")]
        at: Option<u32>,
        /// Replace the file if there is one.
        #[arg(short, long)]
        force: bool,
    },
}

/// A dump as text and as a value.
struct Dump {
    text: String,
    value: Value,
}

impl Serialize for Dump {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let spec = location::spec(&arguments.image)?;
    let dump = match &arguments.what {
        What::Superblock => {
            let all = medium::dump_superblocks(&spec)?;
            let text: Vec<String> = all.iter().map(ToString::to_string).collect();
            Dump { text: text.join("\n"), value: all.iter().map(superblock).collect() }
        }
        What::Segment { number } => {
            let one = medium::dump_segment(&spec, *number)?;
            Dump { text: one.to_string(), value: segment(&one) }
        }
        What::Onode { id } => {
            let one = medium::dump_onode(&spec, *id)?;
            Dump { text: one.to_string(), value: onode(&one) }
        }
        What::Tree { object } => {
            let tree = medium::dump_tree(&spec, *object)?;
            Dump { text: tree.to_string(), value: tree.nodes.iter().map(node).collect() }
        }
        What::Pages { file, spare, at, force } => {
            let area = spare.zip(*at).map(|(bytes, at)| SpareArea { bytes, at });
            return write_pages(&spec, file, area, *force, output);
        }
    };
    output.report(&dump)?;
    Ok(0)
}

/// Writes the pages of a medium to a file, or to standard output.
fn write_pages(spec: &Spec, file: &Path, area: Option<SpareArea>, force: bool, output: &Output) -> Result<u8> {
    if file.as_os_str() == "-" {
        medium::dump_pages(spec, area, &mut |bytes| output.offer(bytes), &mut |_, _| {})?;
        return Ok(0);
    }
    let what = || format!("cannot write {}", file.display());
    let there = file.canonicalize().ok();
    if there.is_some() && there == spec.image_path().and_then(|image| image.canonicalize().ok()) {
        return Err(Error::new(Class::Usage, what(), "it is the image itself"));
    }
    if there.is_some_and(|there| there.is_file()) && !force {
        return Err(Error::new(Class::Exists, what(), "it exists already").hint("--force replaces it"));
    }
    let bar = bar(Some(0), "writing {bar:30} {pos}/{len} blocks {eta}", output);
    let written = write_whole(file, |put| {
        medium::dump_pages(spec, area, put, &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        })
    });
    bar.finish_and_clear();
    let PagesDump { page_bytes, spare_bytes, pages_per_block, blocks, programmed_blocks, bytes } = written?;
    let text = format!(
        "{}: {blocks} blocks of {pages_per_block} pages of {page_bytes} + {spare_bytes} bytes, {programmed_blocks} of them \
         programmed, {bytes} bytes",
        file.display()
    );
    let value = json!({
        "file": file,
        "page_bytes": page_bytes,
        "spare_bytes": spare_bytes,
        "pages_per_block": pages_per_block,
        "blocks": blocks,
        "programmed_blocks": programmed_blocks,
        "bytes": bytes,
    });
    output.report(&Dump { text, value })?;
    Ok(0)
}

fn reference(one: &ReferenceDump) -> Value {
    json!({ "location": one.location, "length": one.length, "checksum": one.checksum })
}

fn superblock(one: &SuperblockDump) -> Value {
    let content = one.content.as_ref().map(|content| {
        json!({
            "format": content.format,
            "features": content.features,
            "uuid": content.uuid,
            "blocks_per_segment": content.blocks_per_segment,
            "generation": content.generation,
            "checkpoint_generation": content.checkpoint_generation,
            "clean": content.clean,
            "root": reference(&content.root),
            "root_level": content.root_level,
            "journal": content.journal,
            "journal_next": content.journal_next,
            "next_sequence": content.next_sequence,
            "next_object": content.next_object,
            "transaction": content.transaction,
            "objects": content.objects,
            "extents": content.extents,
            "table": content.table.iter().map(reference).collect::<Value>(),
        })
    });
    json!({ "block": one.block, "page": one.page, "newest": one.newest, "is_copy": one.is_copy, "content": content })
}

fn segment(one: &SegmentDump) -> Value {
    let pages = one.pages.iter().map(|page| {
        json!({
            "page": page.page,
            "kind": page.kind,
            "sequence": page.sequence,
            "record_bytes": page.record_bytes,
            "records": page.records,
        })
    });
    let items = one.items.iter().map(|item| {
        let (start, length, owner) = (item.start, item.length, &item.owner);
        json!({ "start": start, "length": length, "owner": owner })
    });
    json!({
        "segment": one.segment,
        "state": one.state,
        "stream": one.stream,
        "live_bytes": one.live_bytes,
        "erases": one.erases,
        "sequence": one.sequence,
        "summary_page": one.summary_page,
        "pages": pages.collect::<Value>(),
        "items": items.collect::<Value>(),
        "summary_fault": one.summary_fault,
    })
}

fn onode(one: &OnodeDump) -> Value {
    let attribute = |one: &AttributeDump| json!({ "kind": one.kind, "index": one.index, "length": one.length });
    let extent = |one: &ExtentDump| {
        json!({
            "offset": one.offset,
            "length": one.length,
            "location": one.location,
            "segment": one.segment,
            "page": one.page,
            "byte": one.byte,
        })
    };
    json!({
        "object": one.object.0,
        "size": one.size,
        "allocated": one.allocated,
        "hints": format!("{:?}", one.hints),
        "attributes": one.attributes.iter().map(attribute).collect::<Value>(),
        "extents": one.extents.iter().map(extent).collect::<Value>(),
        "journal": one.journal,
        "faults": one.faults,
    })
}

fn node(one: &NodeDump) -> Value {
    json!({
        "reference": reference(&one.reference),
        "level": one.level,
        "entries": one.entries,
        "keys": one.keys,
        "fault": one.fault,
    })
}
