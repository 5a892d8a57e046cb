//! `.onode/tx/ID`: the tree as an open transaction sees it, and how transactions are begun,
//! committed and aborted on a mount.
//!
//! A file within a transaction has a number of its own: that of the transaction stands above that
//! of the file. The kernel is to believe nothing of such a file for longer than a request. What is
//! to be done is said by an attribute of the folder; what came of it is read from another one, by a
//! word that whoever asks has chosen.

use crate::options::Options;
use crate::request::answer::{Entry, Listed};
use crate::request::commands::answers::Answers;
use crate::request::commands::forgetting::{Forgotten, forget};
use crate::request::convert::{attributes, errno, no_attributes, system_time};
use crate::request::credentials::Who;
use crate::request::place::numbers::transaction;
use crate::request::place::{Place, errno_of};
use crate::transport::late::LateNotifier;
use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use onode::{ChangedFile, SystemClock, TransactionOptions, Transactions, Volume};
use onode_base::Clock;
use onode_fs::InodeNumber;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The name in `.onode`.
pub(crate) const NAME: &[u8] = b"tx";
/// The attribute of the folder by which commands come, and, with a dot and a word behind it, the
/// answers go.
const COMMAND: &[u8] = b"user.onode.tx";

/// What the kernel has to forget, and the words that wait.
pub(crate) struct Transacted {
    all: Option<Arc<Transactions>>,
    notifier: LateNotifier,
    answers: Answers,
    since: SystemTime,
}

impl Transacted {
    /// A kernel that writes back itself goes by the sizes that it knows, whatever it is told: there
    /// are none on such a mount, nor on one for reading.
    pub(crate) fn new(volume: &Volume, options: &Options, notifier: LateNotifier) -> Self {
        let all = volume.transactions().filter(|_| !options.read_only && !options.writeback).cloned();
        Self { all, notifier, answers: Answers::default(), since: system_time(SystemClock.now()) }
    }

    /// Whether there can be any.
    pub(crate) const fn is_offered(&self) -> bool {
        self.all.is_some()
    }

    fn all(&self) -> Result<&Arc<Transactions>, Errno> {
        self.all.as_ref().ok_or(Errno::ENOENT)
    }

    /// The file system of a number that is ours.
    pub(crate) fn place(&self, number: INodeNo) -> Result<Place<'_>, Errno> {
        let tag = transaction::tag_in(number);
        let all = self.all()?;
        let id = all.open_ids().into_iter().find(|id| transaction::tag_of(*id) == tag).ok_or(Errno::ESTALE)?;
        // Whose it is was asked on the way there.
        let transaction = all.enter(id, 0).map_err(|_| Errno::ESTALE)?;
        Ok(Place::Within(transaction, tag))
    }

    /// The tree of a transaction.
    pub(crate) fn lookup(&self, who: Who, name: &[u8]) -> Result<Entry, Errno> {
        let id = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()).filter(|id| *id > 0);
        let id: u64 = id.ok_or(Errno::ENOENT)?;
        let transaction = self.all()?.enter(id, who.uid).map_err(|error| errno_of(&error))?;
        let place = Place::Within(transaction, transaction::tag_of(id));
        let root = place.attributes(InodeNumber::ROOT).map_err(|error| errno(&error))?;
        Ok(place.entry(&root))
    }

    /// Those of the folder.
    pub(crate) fn folder(&self) -> FileAttr {
        let at = self.since;
        // Whose a transaction is, is looked at where it is entered.
        let (kind, perm) = (FileType::Directory, 0o777);
        FileAttr {
            ino: transaction::FOLDER,
            atime: at,
            mtime: at,
            ctime: at,
            crtime: at,
            kind,
            perm,
            nlink: 2,
            ..no_attributes()
        }
    }

    /// Hands the open transactions on to `take` from `offset` on.
    pub(crate) fn list(&self, above: INodeNo, offset: u64, take: &mut dyn FnMut(&Listed<'_>) -> bool) {
        let ids = self.all.as_ref().map_or_else(Vec::new, |all| all.open_ids());
        // Whoever only lists them uses none: what the tree of each shows is asked for when it is.
        let root = self.all.as_ref().and_then(|all| all.root().ok());
        let of_root = |id: u64| {
            let root = root.as_ref().map_or_else(no_attributes, attributes);
            FileAttr { ino: INodeNo(transaction::tag_of(id) | InodeNumber::ROOT.0), kind: FileType::Directory, ..root }
        };
        let named = ids.iter().map(|id| (of_root(*id), id.to_string()));
        let above = FileAttr { ino: above, kind: FileType::Directory, ..no_attributes() };
        let dots = [(self.folder(), ".".to_owned()), (above, "..".to_owned())];
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for ((attributes, name), cursor) in dots.into_iter().chain(named).zip(1..).skip(from) {
            let entry = Entry { attributes, generation: Generation(0) };
            if !take(&Listed { entry, cursor, name: name.as_bytes(), ttl: Duration::ZERO }) {
                break;
            }
        }
    }

    /// Does what an attribute of the folder asks for: `begin [SECONDS] [WORD]`, `commit ID [WORD]`,
    /// `abort ID [WORD]`.
    pub(crate) fn command(&self, who: Who, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let all = self.all()?;
        let text = std::str::from_utf8(value).map_err(|_| Errno::EINVAL)?;
        let mut words = text.split_ascii_whitespace();
        let (verb, number, word) = (words.next(), words.next(), words.next());
        let number: u64 = number.map_or(Ok(0), str::parse).map_err(|_| Errno::EINVAL)?;
        if name != COMMAND {
            return Err(Errno::EPERM);
        }
        let done = match verb {
            Some("begin") => all.begin(TransactionOptions { uid: who.uid, expiry_seconds: number }),
            Some("commit") => all.commit(number, who.uid).map(|changed| {
                self.forget(changed);
                number
            }),
            Some("abort") => all.abort(number, who.uid).map(|()| number),
            _ => return Err(Errno::EINVAL),
        };
        let done = done.map(|id| id.to_string());
        if let Some(word) = word {
            self.answers.put(word, &done);
        }
        done.map(drop).map_err(|error| errno_of(&error))
    }

    /// What an attribute of the folder says: the open transactions, a line each, or what came of a
    /// command.
    pub(crate) fn told(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let rest = name.strip_prefix(COMMAND).ok_or(Errno::ENODATA)?;
        if let Some(word) = rest.strip_prefix(b".") {
            return self.answers.of(word).ok_or(Errno::ENODATA);
        }
        if !rest.is_empty() {
            return Err(Errno::ENODATA);
        }
        let line = |one: onode::TransactionInfo| {
            let (id, uid, age, idle) = (one.id, one.uid, one.age_seconds, one.idle_seconds);
            format!("{id} {uid} {age} {idle} {} {}\n", one.expiry_seconds, one.bytes)
        };
        Ok(self.all()?.list().into_iter().map(line).collect::<String>().into_bytes())
    }

    /// Has the kernel forget what it knows of files that changed.
    fn forget(&self, changed: Vec<ChangedFile>) {
        let of_one = |ChangedFile { inode, names }| Forgotten { number: INodeNo(inode.0), names };
        forget(&self.notifier, changed.into_iter().map(of_one).collect());
    }
}
