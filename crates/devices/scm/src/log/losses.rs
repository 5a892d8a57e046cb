//! What was promised and is not there: told to whoever opens the device, who has to consent to it.

use crate::log::item::{Item, Objects};
use crate::medium::format::{RECORD_HEADER, RecordHead};
use onode_base::ErrorKind;
use onode_object::{Error, ObjectId};
use std::collections::BTreeSet;
use std::ops::Range;

/// So many objects are named in a message.
const MOST_NAMED: usize = 8;

/// What a recovery found missing.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    records: Vec<(Range<u64>, String)>,
    others: Vec<String>,
    /// Objects that the damage is known to concern.
    objects: BTreeSet<u64>,
    /// What was damaged and is made good without a loss.
    mended: Vec<String>,
}

impl Losses {
    /// Records are missing. `bytes` is what is left of them.
    pub(crate) fn note_records(&mut self, numbers: Range<u64>, bytes: &[u8], why: &str) {
        self.objects.extend(objects_in(bytes));
        self.records.push((numbers, why.to_owned()));
    }

    /// The first segment is not where it should be; the first one that there is lies at `address`.
    pub(crate) fn note_first(&mut self, address: u64) {
        self.others.push(format!("the first segments of the log are not there; it is read from byte {address} on"));
    }

    /// Something else is missing.
    pub(crate) fn note(&mut self, what: String) {
        self.others.push(what);
    }

    /// An object is not what it was.
    pub(crate) fn note_object(&mut self, object: ObjectId) {
        self.objects.insert(object.0);
    }

    /// Something was damaged of which nothing is missing.
    pub(crate) fn note_mended(&mut self, what: String) {
        self.mended.push(what);
    }

    /// Superblocks at these places are damaged; another one has all that they had.
    pub(crate) fn note_all_mended(&mut self, superblocks: impl Iterator<Item = u64>) {
        self.mended
            .extend(superblocks.map(|at| format!("the superblock at byte {at} is damaged; another one is used")));
    }

    /// Records below a number are not part of the log.
    pub(crate) fn forget_records_below(&mut self, number: u64) {
        self.records.retain(|(numbers, _)| numbers.end > number);
    }

    /// Whether nothing was damaged at all.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_loss() && self.mended.is_empty()
    }

    /// Whether anything is missing.
    pub(crate) fn is_loss(&self) -> bool {
        !self.records.is_empty() || !self.others.is_empty()
    }

    /// Objects that the damage is known to concern.
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.objects.iter().copied().map(ObjectId)
    }

    /// What was damaged without a loss, one sentence each.
    pub(crate) fn mended(&self) -> &[String] {
        &self.mended
    }

    /// What is missing, one sentence each.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let records = self.records.iter().map(|(numbers, why)| {
            let count = numbers.end - numbers.start;
            let (first, last) = (numbers.start, numbers.end - 1);
            if count == 1 {
                format!("record {first} of the log, which was durable, is lost: {why}")
            } else {
                format!("{count} records of the log ({first} to {last}), which were durable, are lost: {why}")
            }
        });
        records.chain(self.others.iter().cloned()).collect()
    }

    /// All of it in one line.
    pub(crate) fn summary(&self) -> String {
        let mut text = self.sentences().join("; ");
        if !self.objects.is_empty() {
            let named: Vec<String> = self.objects().take(MOST_NAMED).map(|object| object.to_string()).collect();
            let more = if self.objects.len() > MOST_NAMED { " and others" } else { "" };
            text.push_str(&format!("; it concerns {}{more}", named.join(", ")));
        }
        text
    }

    /// The refusal to open it without consent.
    pub(crate) fn error(&self) -> Error {
        Error::new(ErrorKind::Loss, self.summary())
    }
}

/// The objects that bytes of damaged records name, as far as they can be told.
fn objects_in(bytes: &[u8]) -> Vec<u64> {
    let mut objects = Vec::new();
    let Some(head) = RecordHead::peek(bytes, 0) else { return objects };
    let end = (head.bytes as usize).min(bytes.len());
    let mut input = bytes.get(RECORD_HEADER as usize..end).unwrap_or_default();
    let mut named = Objects::default();
    while let Some(item) = Item::decode(&mut input, &mut named) {
        objects.extend(item.object().map(|object| object.0));
    }
    objects
}
