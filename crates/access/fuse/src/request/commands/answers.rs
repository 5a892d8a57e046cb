//! What came of commands, until whoever gave them reads it.

use onode::Error;
use onode_base::sync::{Mutex, rank};
use std::collections::VecDeque;

/// Answers that wait to be read.
const ANSWERS_MAX: usize = 256;

/// Answers by the words that were chosen for them.
#[derive(Default)]
pub(super) struct Answers {
    waiting: Mutex<VecDeque<(Vec<u8>, String)>, rank::MountAnswers>,
}

impl Answers {
    /// Keeps what came of a command: 0 and words, or an exit code and an error. The oldest answer
    /// that nobody has read makes room.
    pub(super) fn put(&self, word: &str, done: &Result<String, Error>) {
        let answer = match done {
            Ok(words) => format!("0 {words}"),
            Err(error) => format!("{} {error}", error.class.exit_code()),
        };
        let mut waiting = self.waiting.lock();
        if waiting.len() == ANSWERS_MAX {
            waiting.pop_front();
        }
        waiting.push_back((word.as_bytes().to_vec(), answer));
    }

    /// The answer for a word.
    pub(super) fn of(&self, word: &[u8]) -> Option<Vec<u8>> {
        let waiting = self.waiting.lock();
        let found = waiting.iter().rev().find(|(asked, _)| asked == word);
        found.map(|(_, answer)| answer.clone().into_bytes())
    }
}
