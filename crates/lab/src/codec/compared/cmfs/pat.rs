//! The page tree of paper 3 (Figure 2): leaves of sixteen pages under nodes of eight.

use super::Object;
use super::raw::LEAF_PAGES;

/// Bits of a page number that choose the entry of a leaf, and those that choose a child at each
/// level above.
const LEAF_BITS: u32 = 4;
const NODE_BITS: u32 = 3;
const CHILDREN: usize = 1 << NODE_BITS;

#[derive(Clone, Debug)]
enum Node {
    Leaf([u32; LEAF_PAGES]),
    Inner([Option<Box<Node>>; CHILDREN]),
}

/// Translates pages of one object to pages of the medium. Page numbers of the object count from 1,
/// as the paper's do.
#[derive(Clone, Debug, Default)]
pub struct PageTree {
    levels: u32,
    root: Option<Box<Node>>,
}

impl Node {
    fn empty(level: u32) -> Box<Self> {
        Box::new(if level == 0 { Self::Leaf([0; LEAF_PAGES]) } else { Self::Inner([const { None }; CHILDREN]) })
    }
}

impl PageTree {
    /// The tree of an object's pages.
    pub fn of(object: &Object) -> Self {
        let mut tree = Self::default();
        for (page, &at) in (1u32..).zip(&object.pages) {
            if at != 0 {
                tree.set(page, at);
            }
        }
        tree
    }

    /// Levels above the leaves.
    pub const fn levels(&self) -> u32 {
        self.levels
    }

    /// Where `page` lies; `None` if nowhere.
    pub fn get(&self, page: u32) -> Option<u32> {
        if self.levels < levels_for(page) {
            return None;
        }
        let mut node = self.root.as_deref()?;
        let mut level = self.levels;
        loop {
            match node {
                Node::Leaf(pages) => return pages.get(page as usize % LEAF_PAGES).copied().filter(|&at| at != 0),
                Node::Inner(children) => {
                    level -= 1;
                    node = children.get(child(page, level))?.as_deref()?;
                }
            }
        }
    }

    /// Lets `page` lie at `at`; 0 for nowhere.
    pub fn set(&mut self, page: u32, at: u32) {
        let wanted = levels_for(page);
        if self.root.is_none() {
            self.levels = wanted;
        }
        while self.levels < wanted {
            let mut children = [const { None }; CHILDREN];
            children[0] = self.root.take();
            self.root = Some(Box::new(Node::Inner(children)));
            self.levels += 1;
        }
        let mut level = self.levels;
        let mut node = self.root.get_or_insert_with(|| Node::empty(level));
        loop {
            match &mut **node {
                Node::Leaf(pages) => {
                    pages[page as usize % LEAF_PAGES] = at;
                    return;
                }
                Node::Inner(children) => {
                    level -= 1;
                    node = children[child(page, level)].get_or_insert_with(|| Node::empty(level));
                }
            }
        }
    }

    /// The pages of the object from the first on, as [`Object::pages`] has them.
    pub fn pages(&self) -> Vec<u32> {
        let mut pages = Vec::new();
        let mut waiting: Vec<(&Node, u32, u32)> =
            self.root.as_deref().map(|root| (root, 0, self.levels)).into_iter().collect();
        while let Some((node, first, level)) = waiting.pop() {
            match node {
                Node::Leaf(entries) => {
                    for (page, &at) in (first..).zip(entries).filter(|&(page, &at)| page > 0 && at != 0) {
                        pages.resize(page as usize - 1, 0);
                        pages.push(at);
                    }
                }
                Node::Inner(children) => {
                    let bits = LEAF_BITS + NODE_BITS * (level - 1);
                    let present = children.iter().enumerate().rev();
                    let below = present.filter_map(|(index, child)| Some((index as u32, child.as_deref()?)));
                    waiting.extend(below.map(|(index, child)| (child, first | index << bits, level - 1)));
                }
            }
        }
        pages
    }
}

/// Levels above the leaves that a tree with `page` needs.
const fn levels_for(page: u32) -> u32 {
    let bits = 32 - page.leading_zeros();
    bits.saturating_sub(LEAF_BITS).div_ceil(NODE_BITS)
}

/// The child that holds `page` in a node above `level`.
const fn child(page: u32, level: u32) -> usize {
    let shift = LEAF_BITS + NODE_BITS * level;
    if shift >= u32::BITS { 0 } else { (page >> shift) as usize % CHILDREN }
}
