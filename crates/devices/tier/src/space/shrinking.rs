//! Free space of a volume that shrinks: nothing is handed out behind its new end.
//!
//! What it keeps true: what counts as free has room for everything behind the end, too, so that
//! nobody is promised a block that something has yet to move to.

use super::Space;
use crate::medium::layout::Layout;

impl Space {
    /// The volume becomes one of `layout`, which is smaller.
    pub fn plan_end(&mut self, layout: &Layout) {
        self.bitmap.set_bound(layout.blocks);
        self.planned = Some(*layout);
    }

    /// The volume stays as large as it is.
    pub fn forget_plan(&mut self) {
        self.bitmap.set_bound(self.layout.blocks);
        self.planned = None;
    }

    /// The division of the volume that this one is becoming, or its own.
    #[must_use]
    pub fn target(&self) -> &Layout {
        self.planned.as_ref().unwrap_or(&self.layout)
    }

    /// Blocks behind the end that have to become free, and blocks that became free there and are
    /// held or being read yet.
    #[must_use]
    pub fn behind(&self) -> u64 {
        let goes = |planned: &Layout| 2 * (self.layout.areas.pages() - planned.areas.pages());
        self.bitmap.behind() - self.planned.as_ref().map_or(0, goes)
    }

    /// Whether something behind the end is not in use any more, but held until the next
    /// checkpoint, or being read, or the disk is being told of it.
    #[must_use]
    pub fn holds_behind(&self) -> bool {
        let end = self.target().blocks;
        let mut held = self.held.iter().chain(&self.leaving).chain(&self.lingering).chain(&self.discarding);
        held.any(|(first, count)| first + count > end)
    }

    /// Blocks of nodes and content, in front of the end and behind it.
    #[must_use]
    pub fn used(&self) -> u64 {
        let taken = self.bitmap.taken() - self.held_blocks;
        taken - (self.layout.blocks - self.layout.usable_blocks())
    }

    /// Has the blocks of the division that was planned; nothing behind them is in use.
    pub fn shrink(&mut self) {
        let Some(planned) = self.planned.take() else { return };
        self.layout = planned;
        self.bitmap.shrink(&planned);
        self.discards.forget_from(planned.blocks);
        self.node_goal = planned.first_free();
        self.cursors.clear();
    }
}
