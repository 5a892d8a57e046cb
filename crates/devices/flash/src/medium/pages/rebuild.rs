//! Pages that are read wrong, found again from the parity of their row (paper 1, section III.C).
//!
//! It keeps true: what comes from parity is verified like what was read, against checksum, place
//! and sequence number of its page, so a wrong page of parity leads to nothing. Only a row whose
//! parity says that it has the page is asked: where a segment ends early nothing is invented.

use super::{Pages, ReadRun, ReadRuns, State, VerifiedPage, read_alone};
use crate::medium::format::{PageKind, PageTrailer};
use crate::medium::layout::{Layout, Row, SegmentPage};
use crate::medium::page::{self, Examined, PageFault, PageInfo};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_codec::parity::{RowParity, RowSignature, Signature, recover};
use onode_media::{MediaErrorKind, PageAddress, PageRun};

/// More pages are not noted down to be moved: the segments of those known are, and a scrub finds
/// the others.
const NOTED_MAX: usize = 4096;

impl State {
    fn note_to_move(&mut self, at: SegmentPage) {
        if self.to_move.len() < NOTED_MAX {
            self.to_move.insert(at);
        }
    }
}

/// A page as it stands on the medium.
struct RawPage {
    payload: Vec<u8>,
    /// Trailer, and what follows it.
    behind: Vec<u8>,
}

/// A page that was read, and what its trailer says of it if it is what was written.
type Read = (RawPage, Result<PageInfo, PageFault>);

/// What the parity of a row knows.
struct KnownRow {
    /// Pages that it covers.
    columns: u32,
    /// The sequence number of its segment.
    sequence: u32,
    /// The pages of parity that are sound.
    parities: Vec<Option<Vec<u8>>>,
}

impl RawPage {
    /// The parts that parity covers, for a page that says this of itself.
    fn covered<'a>(&'a self, info: &PageInfo, records: &'a mut Vec<u8>, layout: &Layout) -> [&'a [u8]; 3] {
        let (trailer, rest) = self.behind.split_at(size_of::<PageTrailer>());
        records.clear();
        records.extend_from_slice(&rest[..info.spare_bytes]);
        records.resize(layout.spare_record_bytes as usize, 0);
        [&self.payload, trailer, records]
    }

    /// The signature that stands behind the records.
    fn signature(&self, layout: &Layout) -> Option<Signature> {
        let from = size_of::<PageTrailer>() + layout.spare_record_bytes as usize;
        let bytes = self.behind.get(from..)?.first_chunk()?;
        Some(Signature::from_bytes(*bytes))
    }
}

impl Pages {
    /// The pages that something is wrong with, so that what lies on their segments is to be moved.
    pub fn to_move(&self) -> Vec<SegmentPage> {
        self.state.lock().to_move.iter().copied().collect()
    }

    /// How many pages were found again from parity since the mount.
    pub fn rebuilt_pages(&self) -> u64 {
        self.state.lock().rebuilt_pages
    }

    /// Nothing of `segment` is to be moved any more.
    pub fn forget_to_move(&self, segment: u32) {
        self.state.lock().to_move.retain(|at| at.segment != segment);
    }

    /// What lies on the segment of `row` is to be moved: the row's parity is not what it should be.
    pub fn note_row_to_move(&self, row: Row) {
        self.state.lock().note_to_move(self.layout.content_page(row, 0));
    }

    /// Reads and verifies a page.
    ///
    /// # Errors
    /// Of the medium, if it is not the page alone that cannot be read.
    fn read_one(
        &self,
        address: PageAddress,
        sequence: Option<u32>,
        medium: &mut ReadRun<'_>,
    ) -> onode_media::Result<Read> {
        let [mut data, mut spare] = self.buffers();
        let read = medium(address, &mut data, &mut spare);
        self.judge(address, sequence, [data, spare], read)
    }

    /// Reads and verifies pages, all of which are asked for together.
    ///
    /// # Errors
    /// Of the medium, if it is not single pages that cannot be read.
    fn read_all(
        &self,
        addresses: &[PageAddress],
        sequence: Option<u32>,
        medium: &mut ReadRuns<'_>,
    ) -> onode_media::Result<Vec<Read>> {
        let mut pages: Vec<[Vec<u8>; 2]> = addresses.iter().map(|_| self.buffers()).collect();
        let asked = pages.iter_mut().zip(addresses);
        let mut asked: Vec<_> = asked.map(|([data, spare], address)| PageRun::new(*address, data, spare)).collect();
        medium(&mut asked);
        let results: Vec<_> = asked.into_iter().map(|run| run.result).collect();
        let read = results.into_iter().zip(pages).zip(addresses);
        read.map(|((result, page), address)| self.judge(*address, sequence, page, result)).collect()
    }

    /// Room for a page and its spare bytes.
    fn buffers(&self) -> [Vec<u8>; 2] {
        let shape = &self.layout.geometry;
        [vec![0; shape.page_bytes as usize], vec![0; Layout::spare_bytes_read(shape)]]
    }

    /// What became of a read of the page at `address`, which filled `page`: data and spare bytes.
    fn judge(
        &self,
        address: PageAddress,
        sequence: Option<u32>,
        page: [Vec<u8>; 2],
        read: onode_media::Result<()>,
    ) -> onode_media::Result<Read> {
        let [mut payload, spare] = page;
        let rest = payload.split_off(self.layout.payload_bytes as usize);
        let raw = RawPage { payload, behind: if spare.is_empty() { rest } else { spare } };
        let info = match read {
            Ok(()) => page::verify(self.seed, address, sequence, &raw.behind, &raw.payload),
            Err(error) if error.kind == MediaErrorKind::Uncorrectable => Err(PageFault::Checksum),
            Err(error) => return Err(error),
        };
        Ok((raw, info))
    }

    /// Reads and verifies a page, past the cache.
    ///
    /// # Errors
    /// Of the medium.
    pub fn examine(
        &self,
        address: PageAddress,
        sequence: Option<u32>,
        medium: &mut ReadRun<'_>,
    ) -> onode_media::Result<Examined<VerifiedPage>> {
        let (raw, info) = self.read_one(address, sequence, medium)?;
        Ok(info.map(|info| VerifiedPage::of(info, &raw.payload, &raw.behind)).into())
    }

    /// What the parity of `row` knows; nothing if it has none that is sound.
    fn known_row(
        &self,
        row: Row,
        sequence: Option<u32>,
        medium: &mut ReadRun<'_>,
    ) -> onode_media::Result<Option<KnownRow>> {
        let read = self.parity_addresses(row).map(|address| self.read_one(address, sequence, medium));
        let read: Vec<Read> = read.collect::<onode_media::Result<_>>()?;
        Ok(self.known_of(row, read))
    }

    /// Where the parity of `row` lies.
    fn parity_addresses(&self, row: Row) -> impl Iterator<Item = PageAddress> {
        (0..u32::from(row.parity)).map(move |number| self.layout.address(self.layout.parity_page(row, number)))
    }

    /// What the pages of parity of `row` know.
    fn known_of(&self, row: Row, read: Vec<Read>) -> Option<KnownRow> {
        let mut known: Option<KnownRow> = None;
        let mut parities = vec![None; read.len()];
        for ((raw, info), (number, parity)) in read.into_iter().zip(parities.iter_mut().enumerate()) {
            let Ok(info) = info else { continue };
            let is_parity = info.kind == PageKind::Parity && info.echo_bytes == number;
            let is_of_row = known.as_ref().is_none_or(|known| known.sequence == info.sequence);
            let columns = info.record_bytes as u32;
            if !is_parity || !is_of_row || columns > self.layout.row_pages(row.parity) {
                continue;
            }
            let mut image = raw.payload;
            image.extend_from_slice(&raw.behind[size_of::<PageTrailer>()..][..info.spare_bytes]);
            if image.len() != self.layout.covered_bytes() {
                continue;
            }
            *parity = Some(image);
            known.get_or_insert(KnownRow { columns, sequence: info.sequence, parities: Vec::new() });
        }
        known.map(|known| KnownRow { parities, ..known })
    }

    /// The page `at` from the other pages of its row, which must have `sequence` if that is known;
    /// nothing if its row has no parity or lost more pages than it has of that.
    ///
    /// # Errors
    /// Of the medium.
    pub fn rebuild(
        &self,
        at: SegmentPage,
        sequence: Option<u32>,
        medium: &mut ReadRun<'_>,
    ) -> onode_media::Result<Option<VerifiedPage>> {
        if !self.layout.has_parity() || is_planted(Bug::ParityUnused) {
            return Ok(None);
        }
        let (row, Some(column)) = self.layout.row_of(at) else { return Ok(None) };
        let Some(known) = self.known_row(row, sequence, medium)?.filter(|known| column < known.columns) else {
            return Ok(None);
        };
        let mut found = RowParity::new(usize::from(row.parity), self.layout.covered_bytes());
        let mut lost = Vec::new();
        let mut records = Vec::new();
        for other in 0..known.columns {
            let page = self.layout.address(self.layout.content_page(row, other));
            let read = if other == column { None } else { Some(self.read_one(page, Some(known.sequence), medium)?) };
            match read {
                Some((raw, Ok(info))) => found.push_parts(&raw.covered(&info, &mut records, &self.layout)),
                _ => {
                    found.push_missing();
                    lost.push(other);
                }
            }
        }
        let parities: Vec<Option<&[u8]>> = known.parities.iter().map(Option::as_deref).collect();
        let images = recover(&found, &lost, &parities).unwrap_or_default();
        let mut wanted = None;
        for (&other, image) in lost.iter().zip(&images) {
            let page = self.layout.content_page(row, other);
            let (payload, behind) = image.split_at(self.layout.payload_bytes as usize);
            let address = self.layout.address(page);
            let verified = self.verified(address, Some(known.sequence), payload, behind);
            if let Ok(rebuilt) = verified {
                self.note_rebuilt(page);
                if other == column {
                    wanted = Some(rebuilt);
                }
            }
        }
        Ok(wanted)
    }

    /// A page was found again: what lies there is to be moved.
    fn note_rebuilt(&self, at: SegmentPage) {
        let mut state = self.state.lock();
        state.rebuilt_pages += 1;
        state.note_to_move(at);
    }

    /// The page `at`, as it was read or as parity has it.
    ///
    /// # Errors
    /// Of the medium.
    pub fn examine_or_rebuild(
        &self,
        at: SegmentPage,
        sequence: Option<u32>,
        medium: &mut ReadRun<'_>,
    ) -> onode_media::Result<Examined<VerifiedPage>> {
        match self.examine(self.layout.address(at), sequence, medium)? {
            Examined::Unsound(fault) => {
                Ok(self.rebuild(at, sequence, medium)?.map_or(Examined::Unsound(fault), Examined::Sound))
            }
            sound => Ok(sound),
        }
    }
}

/// How the pages of a row agree with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowState {
    /// Pages of content that cannot be read, and cannot be found again.
    pub lost: Vec<SegmentPage>,
    /// Pages that cannot be read and were found again.
    pub rebuilt: Vec<SegmentPage>,
    /// Pages of parity that cannot be read, or do not agree with what they cover.
    pub wrong_parity: u32,
    /// Pages of content whose signature is not that of what was read, in a row that does not agree:
    /// their checksum lies.
    pub doubtful: Vec<SegmentPage>,
    /// Pages of content that have no parity yet.
    pub unprotected: u32,
}

impl RowState {
    /// Whether what lies in the row has to get another parity.
    pub const fn lacks_parity(&self) -> bool {
        self.wrong_parity > 0 || self.unprotected > 0
    }
}

impl Pages {
    /// Looks at every page of `row`, all of which are asked for together, and at whether their
    /// signatures agree: the parity of the signatures of the pages is the signature of the page of
    /// parity, so nothing is decoded.
    ///
    /// # Errors
    /// Of the medium.
    pub fn examine_row(&self, row: Row, sequence: u32, medium: &mut ReadRuns<'_>) -> onode_media::Result<RowState> {
        let mut state = RowState::default();
        if row.parity == 0 {
            // Nothing can be wrong with a row that is to have none.
            return Ok(state);
        }
        let places: Vec<SegmentPage> = self.layout.content_pages(row).collect();
        let content = places.iter().map(|at| self.layout.address(*at));
        let addresses: Vec<PageAddress> = self.parity_addresses(row).chain(content).collect();
        let mut parity = self.read_all(&addresses, Some(sequence), medium)?;
        let content = parity.split_off(usize::from(row.parity));
        let known = self.known_of(row, parity);
        let columns = known.as_ref().map_or(self.layout.row_pages(row.parity), |known| known.columns);
        let mut signatures = RowSignature::default();
        let mut records = Vec::new();
        let (mut is_whole, mut doubtful) = (true, Vec::new());
        for ((column, at), (raw, info)) in (0..).zip(places).zip(content) {
            let is_covered = known.is_some() && column < columns;
            match info {
                Ok(info) => {
                    state.unprotected += u32::from(!is_covered);
                    let signature = Signature::of_parts(&raw.covered(&info, &mut records, &self.layout));
                    if is_covered {
                        if raw.signature(&self.layout) != Some(signature) {
                            doubtful.push(at);
                        }
                        signatures.push(signature);
                    }
                }
                Err(_) if is_covered => {
                    is_whole = false;
                    let alone: &mut ReadRun<'_> = &mut |first, data, spare| read_alone(medium, first, data, spare);
                    let found = self.rebuild(at, Some(sequence), alone)?.is_some();
                    if found { &mut state.rebuilt } else { &mut state.lost }.push(at);
                }
                // It was never programmed, or cannot be told from one that was not.
                Err(_) => {}
            }
        }
        let Some(known) = known else { return Ok(state) };
        for (number, image) in known.parities.iter().enumerate() {
            let agrees = |image: &Vec<u8>| !is_whole || Signature::of(image) == signatures.parity(number);
            match image {
                Some(image) if agrees(image) => {}
                Some(_) if !doubtful.is_empty() => state.doubtful.clone_from(&doubtful),
                _ => state.wrong_parity += 1,
            }
        }
        Ok(state)
    }
}
