//! One segment: its entry in the table, its pages, the records in them and its summary.

use super::{open, words};
use crate::log::record::Assembler;
use crate::medium::format::{NO_SUMMARY, PageKind};
use crate::medium::layout::SegmentPage;
use crate::medium::page::PageFault;
use crate::tools::check::medium::Fault;
use crate::tools::check::summary;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use onode_base::ErrorKind;
use onode_media::Nand;
use onode_object::{Error, Result};

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentDump {
    /// Its number.
    pub segment: u32,
    /// Its state at the newest checkpoint.
    pub state: &'static str,
    /// Its stream.
    pub stream: &'static str,
    /// Bytes that are referred to.
    pub live_bytes: u32,
    /// Times erased.
    pub erases: u32,
    /// Sequence number of its life.
    pub sequence: u32,
    /// Page at which its summary starts.
    pub summary_page: Option<u16>,
    /// Its pages; those after the last programmed one are left out.
    pub pages: Vec<PageDump>,
    /// What the summary names; empty without a readable summary.
    pub items: Vec<ItemDump>,
    /// Why the summary cannot be read, if it should be there.
    pub summary_fault: Option<String>,
}

/// A page of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageDump {
    /// Its number in writing order.
    pub page: u32,
    /// What it holds, or `erased` or `damaged`.
    pub kind: &'static str,
    /// Sequence number; another than the segment's is of an earlier life.
    pub sequence: Option<u32>,
    /// Bytes of records.
    pub record_bytes: usize,
    /// The records that end in the page, in words.
    pub records: Vec<String>,
}

/// A run of bytes that a summary names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemDump {
    /// First byte, counted from the start of the segment.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
    /// Whose it was when it was written.
    pub owner: String,
}

/// Dumps segment `number`.
///
/// # Errors
/// `Invalid` if there is no such segment or no volume, `Corrupt` if the segment table cannot be
/// read, `Media` if the medium fails.
pub fn segment(nand: &mut dyn Nand, number: u32) -> Result<SegmentDump> {
    let (mut medium, _, table) = open(nand)?;
    let Some(one) = table.segments.get(number as usize).copied() else {
        let detail = format!("there is no segment {number}, the last is {}", table.segments.len() - 1);
        return Err(Error::new(ErrorKind::Invalid, detail));
    };
    let mut pages = Vec::new();
    let mut assembler = Assembler::default();
    let first = medium.layout().page(one.stream, number, 0);
    for page in 0..medium.layout().pages_with(first.parity) {
        let mut dump = PageDump { page, kind: "erased", sequence: None, record_bytes: 0, records: Vec::new() };
        match medium.page(SegmentPage { page, ..first }, None) {
            Ok(found) => {
                dump.kind = kind_name(found.info.kind);
                dump.sequence = Some(found.info.sequence);
                dump.record_bytes = found.info.record_bytes;
                let bytes = &found.payload[found.payload.len() - found.info.record_bytes..];
                let taken = assembler.page(bytes, &mut |record| {
                    dump.records.push(words::record(&record, None));
                    Ok(())
                });
                if let Err(error) = taken {
                    dump.records.push(format!("(not readable: {})", error.detail));
                    assembler = Assembler::default();
                }
            }
            Err(Fault::Page(_, PageFault::Erased)) => {}
            Err(Fault::Medium(why)) => return Err(Error::new(ErrorKind::Media, why)),
            Err(_) => dump.kind = "damaged",
        }
        pages.push(dump);
    }
    while pages.last().is_some_and(|page| page.kind == "erased") {
        pages.pop();
    }
    let mut dump = SegmentDump {
        segment: number,
        state: one.state.name(),
        stream: one.stream.name(),
        live_bytes: one.live_bytes,
        erases: one.erases,
        sequence: one.sequence,
        summary_page: (one.summary_page != NO_SUMMARY).then_some(one.summary_page),
        pages,
        items: Vec::new(),
        summary_fault: None,
    };
    if dump.summary_page.is_some() {
        match summary::read(&mut medium, number, &one) {
            Ok(summary) => {
                dump.items = summary
                    .items
                    .iter()
                    .map(|item| ItemDump { start: item.start, length: item.length, owner: words::owner(&item.owner) })
                    .collect();
            }
            Err(summary::Lost::Fault(fault)) => dump.summary_fault = Some(fault.to_string()),
            Err(summary::Lost::Malformed(why)) => dump.summary_fault = Some(why),
        }
    }
    Ok(dump)
}

const fn kind_name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Superblock => "superblock",
        PageKind::Journal => "journal",
        PageKind::Data => "data",
        PageKind::Cold => "cold",
        PageKind::Index => "index",
        PageKind::Summary => "summary",
        PageKind::Atime => "atime",
        PageKind::Saved => "saved",
        PageKind::Parity => "parity",
    }
}

impl fmt::Display for SegmentDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "segment {}: {} {}, {} live bytes, erased {} times, sequence {}",
            self.segment, self.state, self.stream, self.live_bytes, self.erases, self.sequence
        )?;
        for page in &self.pages {
            write!(f, "\n  page {}: {}", page.page, page.kind)?;
            if let Some(sequence) = page.sequence.filter(|&sequence| sequence != self.sequence) {
                write!(f, " of an earlier life, sequence {sequence}")?;
            }
            for record in &page.records {
                write!(f, "\n    {record}")?;
            }
        }
        if let Some(fault) = &self.summary_fault {
            write!(f, "\n  summary: {fault}")?;
        }
        for item in &self.items {
            write!(f, "\n  bytes {}..{}: {}", item.start, item.start.saturating_add(item.length), item.owner)?;
        }
        Ok(())
    }
}
