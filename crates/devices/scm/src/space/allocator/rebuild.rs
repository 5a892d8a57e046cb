//! Lists and counts made anew from the chunk table and the bitmaps, and the proof that they agree.
//!
//! After the death of a process in the middle of a change the table says what each chunk is;
//! everything else is derived from it. Table words that no allocator wrote make a piece free:
//! nothing here can panic or loop.

use super::class::CLASSES_MAX;
use super::entry::{Entry, State};
use super::layout::ORDERS;
use super::table::Table;
use onode_media::Pmem;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

/// What a walk over the pieces found a block or a piece to be.
enum Found {
    Free(u64, u32),
    Small(u64, Entry),
    Block(u64),
}

impl<P: Pmem> Table<P> {
    /// The order that a piece at `at` can have at most.
    fn order_limit(&self, at: u64) -> u32 {
        (self.layout.chunks - at).ilog2().min(at.trailing_zeros()).min(ORDERS as u32 - 1)
    }

    /// Makes lists and counts anew, and pieces that no block reaches free. Interrupted, it begins
    /// again.
    pub(super) fn rebuild(&self) {
        for order in 0..ORDERS as u32 {
            self.pmem.store(self.layout.order_head(order), 0);
        }
        for lease in 0..self.layout.leases as u16 {
            for class in 0..CLASSES_MAX {
                self.pmem.store(self.layout.class_head(lease, class), 0);
            }
        }
        self.pmem.store(self.layout.free_bytes(), 0);
        let mut free = Vec::new();
        // The block that pieces are counted to: its head, what it says to reach, and where its
        // pieces end.
        let mut block: Option<(u64, u64)> = None;
        let mut at = 0;
        while at < self.layout.chunks {
            let entry = self.entry(at);
            let order = entry.order().min(self.order_limit(at));
            let next = at + (1 << order);
            let reached = block.filter(|(_, end)| at < *end);
            match entry.state() {
                Some(State::Head) => {
                    self.cut_short(block, at);
                    block = Some((at, at + entry.value().min(self.layout.chunks - at)));
                }
                Some(State::Further) if let Some((owner, _)) = reached => {
                    self.set_entry(at, Entry::further(at - owner).with_order(order));
                }
                Some(State::Small) if self.recount(at, entry) => {
                    self.cut_short(block, at);
                    block = None;
                }
                _ => {
                    self.cut_short(block, at);
                    block = None;
                    free.push((at, order));
                }
            }
            for inner in at + 1..next {
                if !self.entry(inner).is(State::Free) {
                    self.set_entry(inner, Entry::free());
                }
            }
            at = next;
        }
        self.cut_short(block, self.layout.chunks);
        // Merging begins when no other piece is in the table as free that is not in a list.
        for (first, order) in &free {
            self.set_entry(*first, Entry::further(0).with_order(*order));
        }
        for (first, order) in free {
            self.free_piece(first, order);
        }
    }

    /// A block ends where its pieces end, whatever its head says.
    fn cut_short(&self, block: Option<(u64, u64)>, at: u64) {
        if let Some((owner, end)) = block
            && at < end
        {
            self.set_entry(owner, self.entry(owner).with_value(at - owner));
        }
    }

    /// Counts the free blocks of a small chunk; `false` if it has no allocated ones or is no such
    /// chunk.
    fn recount(&self, chunk: u64, entry: Entry) -> bool {
        let class = entry.value() as usize;
        let size = if class < CLASSES_MAX { *self.classes.get(class) } else { return false };
        let blocks = u64::from(size.blocks);
        let mut used = 0;
        for word in 0..self.layout.bitmap_words {
            let valid = match blocks.saturating_sub(word * 64) {
                left @ 0..64 => (1 << left) - 1,
                _ => u64::MAX,
            };
            let allocated = self.pmem.load(self.layout.allocated(chunk, word)) & valid;
            let published = self.pmem.load(self.layout.published(chunk, word)) & allocated;
            self.pmem.store(self.layout.allocated(chunk, word), allocated);
            self.pmem.store(self.layout.published(chunk, word), published);
            used += u64::from(allocated.count_ones());
        }
        if used == 0 {
            return false;
        }
        let lease = if u64::from(entry.lease()) < self.layout.leases { entry.lease() } else { 0 };
        self.set_entry(chunk, Entry::small(class, lease));
        self.set_count(chunk, blocks - used, 0);
        if used < blocks {
            self.push(self.layout.class_head(lease, class), chunk);
        }
        self.count_free((blocks - used) * u64::from(size.bytes), 0);
        true
    }

    /// All pieces, if they tile the area and each belongs to something.
    fn walk(&self) -> Result<Vec<Found>, String> {
        let mut found = Vec::new();
        let (mut at, mut block_end) = (0, 0);
        while at < self.layout.chunks {
            let entry = self.entry(at);
            if entry.order() > self.order_limit(at) {
                return Err(format!("the piece at chunk {at} has order {}", entry.order()));
            }
            match entry.state() {
                Some(State::Further) => {
                    let owner = at.checked_sub(entry.value()).filter(|_| at < block_end);
                    if !owner.is_some_and(|owner| self.entry(owner).is(State::Head)) {
                        return Err(format!("the piece at chunk {at} belongs to no block"));
                    }
                }
                _ if at < block_end => return Err(format!("the block before chunk {at} reaches past it")),
                Some(State::Free) => found.push(Found::Free(at, entry.order())),
                Some(State::Small) => found.push(Found::Small(at, entry)),
                Some(State::Head) => {
                    block_end = at.saturating_add(entry.value());
                    found.push(Found::Block(entry.value()));
                }
                None => return Err(format!("chunk {at} has an entry that means nothing")),
            }
            for inner in at + 1..at + entry.chunks() {
                if !self.entry(inner).is(State::Free) {
                    return Err(format!("chunk {inner} within the piece at chunk {at} looks like a piece"));
                }
            }
            at += entry.chunks();
        }
        if block_end > self.layout.chunks { Err("the last block reaches past the end".into()) } else { Ok(found) }
    }

    /// The chunks of a list.
    fn listed(&self, head: u64) -> Result<BTreeSet<u64>, String> {
        let mut chunks = BTreeSet::new();
        let mut next = self.first(head);
        while let Some(chunk) = next {
            if chunk >= self.layout.chunks || !chunks.insert(chunk) {
                return Err(format!("a list at {head:#x} leads to chunk {chunk} twice or past the end"));
            }
            next = self.next(chunk);
        }
        Ok(chunks)
    }

    /// Proves that table, bitmaps, lists and counts agree; the first disagreement in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut free, mut live, mut tails) = (0_u64, 0_u64, 0_u64);
        let chunk_bytes = self.layout.chunk_bytes();
        let mut orders = std::vec![BTreeSet::new(); ORDERS as usize];
        let mut classes = std::vec![BTreeSet::new(); self.layout.leases as usize * CLASSES_MAX];
        for found in self.walk()? {
            match found {
                Found::Free(at, order) => {
                    let buddy = at ^ (1 << order);
                    let whole = buddy + (1 << order) <= self.layout.chunks;
                    if whole && self.entry(buddy) == Entry::free().with_order(order) {
                        return Err(format!("the free pieces at chunks {at} and {buddy} are not merged"));
                    }
                    orders[order as usize].insert(at);
                    free += chunk_bytes << order;
                }
                Found::Block(chunks) => live += chunks * chunk_bytes,
                Found::Small(chunk, entry) => {
                    let (used, blocks, bytes) = self.check_small(chunk, entry)?;
                    if used < blocks {
                        classes[entry.lease() as usize * CLASSES_MAX + entry.value() as usize].insert(chunk);
                    }
                    live += used * bytes;
                    free += (blocks - used) * bytes;
                    tails += chunk_bytes - blocks * bytes;
                }
            }
        }
        for (order, pieces) in orders.iter().enumerate() {
            if self.listed(self.layout.order_head(order as u32))? != *pieces {
                return Err(format!("the list of free pieces of order {order} is not what the table says"));
            }
        }
        for (index, chunks) in classes.iter().enumerate() {
            let (lease, class) = (index / CLASSES_MAX, index % CLASSES_MAX);
            if self.listed(self.layout.class_head(lease as u16, class))? != *chunks {
                return Err(format!("the list of chunks of class {class}, lease {lease} is not what the table says"));
            }
        }
        if free != self.free_bytes() {
            return Err(format!("{} bytes are counted free, {free} are", self.free_bytes()));
        }
        let capacity = self.layout.chunks * chunk_bytes;
        if free + live + tails != capacity {
            return Err(format!("{free} free, {live} live and {tails} unusable bytes are not {capacity}"));
        }
        Ok(())
    }

    /// Allocated blocks, blocks and their size of a small chunk.
    fn check_small(&self, chunk: u64, entry: Entry) -> Result<(u64, u64, u64), String> {
        let class = entry.value() as usize;
        if entry.order() != 0 || class >= CLASSES_MAX || u64::from(entry.lease()) >= self.layout.leases {
            return Err(format!("chunk {chunk} has class {class}, lease {}", entry.lease()));
        }
        let size = self.classes.get(class);
        let blocks = u64::from(size.blocks);
        let mut used = 0;
        for word in 0..self.layout.bitmap_words {
            let allocated = self.pmem.load(self.layout.allocated(chunk, word));
            if self.pmem.load(self.layout.published(chunk, word)) & !allocated != 0 {
                return Err(format!("chunk {chunk} has a block that is published and free"));
            }
            if word * 64 + 64 - u64::from(allocated.leading_zeros()) > blocks && allocated != 0 {
                return Err(format!("chunk {chunk} has more blocks than its class"));
            }
            used += u64::from(allocated.count_ones());
        }
        if used == 0 || self.count(chunk).0 != blocks - used {
            return Err(format!("chunk {chunk} has {used} of {blocks} blocks, {} counted free", self.count(chunk).0));
        }
        Ok((used, blocks, u64::from(size.bytes)))
    }
}
