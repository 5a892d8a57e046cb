//! Patterns for names, as shells have them: `*`, `?`, `[a-z]`, `[!x]`.
//!
//! A pattern is about one name and knows no slash. Names are any bytes: what is text counts by
//! letter, any other byte for itself. A bracket that nothing closes stands for itself.

/// What a byte that is no text counts as: beyond every letter.
const NO_TEXT: u32 = 0x11_0000;

/// A pattern that was read.
#[derive(Clone, Debug)]
pub struct Pattern(Vec<Token>);

/// What one place of a pattern stands for.
#[derive(Clone, Debug)]
enum Token {
    /// This letter.
    Letter(u32),
    /// Any letter.
    Any,
    /// Any number of letters.
    Many,
    /// A letter of these ranges, or of none of them.
    Set { ranges: Vec<[u32; 2]>, negated: bool },
}

fn letters(name: &[u8]) -> Vec<u32> {
    let chunks = name.utf8_chunks();
    let counted = chunks.flat_map(|chunk| {
        let bytes = chunk.invalid().iter().map(|byte| NO_TEXT + u32::from(*byte));
        chunk.valid().chars().map(u32::from).chain(bytes)
    });
    counted.collect()
}

impl Pattern {
    /// Whether a name has a letter that means something in patterns.
    pub fn is_meant(name: &[u8]) -> bool {
        name.iter().any(|byte| b"*?[".contains(byte))
    }

    /// Whether every bracket in it that opens a set is closed.
    pub fn is_closed(text: &[u8]) -> bool {
        let letters = letters(text);
        let mut rest = letters.as_slice();
        while let [letter, after @ ..] = rest {
            rest = after;
            if *letter == u32::from('[') {
                match set(after) {
                    Some((_, behind)) => rest = behind,
                    None => return false,
                }
            }
        }
        true
    }

    /// Reads a pattern; every name is one.
    pub fn new(text: &[u8]) -> Self {
        let text = letters(text);
        let mut tokens = Vec::new();
        let mut rest = text.as_slice();
        while let [letter, after @ ..] = rest {
            rest = after;
            let token = match char::from_u32(*letter) {
                Some('*') => Token::Many,
                Some('?') => Token::Any,
                Some('[') => match set(after) {
                    Some((set, behind)) => {
                        rest = behind;
                        set
                    }
                    None => Token::Letter(*letter),
                },
                _ => Token::Letter(*letter),
            };
            tokens.push(token);
        }
        Self(tokens)
    }

    /// Whether it matches the whole name.
    pub fn matches(&self, name: &[u8]) -> bool {
        let name = letters(name);
        let (mut token, mut letter) = (0, 0);
        // Where to try again: behind the last `*`, which then takes one letter more. An earlier one
        // never has to, so that no name takes longer than its length times that of the pattern.
        let mut again = None;
        loop {
            match (self.0.get(token), name.get(letter)) {
                (None, None) => return true,
                (Some(Token::Many), _) => {
                    again = Some((token + 1, letter));
                    token += 1;
                    continue;
                }
                (Some(one), Some(found)) if one.matches(*found) => {
                    (token, letter) = (token + 1, letter + 1);
                    continue;
                }
                _ => {}
            }
            match again {
                Some((behind, taken)) if taken < name.len() => {
                    again = Some((behind, taken + 1));
                    (token, letter) = (behind, taken + 1);
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn matches(&self, found: u32) -> bool {
        match self {
            Self::Letter(letter) => *letter == found,
            Self::Any => true,
            Self::Many => false,
            Self::Set { ranges, negated } => {
                ranges.iter().any(|[first, last]| (first..=last).contains(&&found)) != *negated
            }
        }
    }
}

/// Reads the set behind a bracket, and what follows it; nothing if no bracket closes it. A closing
/// bracket that comes first is one of the set.
fn set(text: &[u32]) -> Option<(Token, &[u32])> {
    let [closing, dash, marks @ ..] = [']', '-', '!', '^'].map(u32::from);
    let negated = text.first().is_some_and(|letter| marks.contains(letter));
    let mut rest = text.get(usize::from(negated)..)?;
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            [letter, behind @ ..] if *letter == closing && !ranges.is_empty() => {
                return Some((Token::Set { ranges, negated }, behind));
            }
            [first, between, last, behind @ ..] if *between == dash && *last != closing => {
                ranges.push([*first, *last]);
                behind
            }
            [letter, behind @ ..] => {
                ranges.push([*letter, *letter]);
                behind
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(name.as_bytes())
    }

    #[test]
    fn stars_take_any_number_of_letters() {
        for (pattern, name) in [("*", ""), ("*", "abc"), ("*.old", ".old"), ("a*c*e", "abcde"), ("a**", "a")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("*.old", "a.older"), ("a*c", "abcd"), ("*a*b", "bbba")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        // A matcher that tries each star anew would not end.
        assert!(!fits(&"*a".repeat(40), &"a".repeat(39)));
    }

    #[test]
    fn question_marks_take_one_letter_whatever_its_bytes() {
        assert!(fits("?", "a") && fits("?", "\u{e9}") && fits("a?c", "a/c"));
        assert!(!fits("?", "") && !fits("?", "ab"));
        assert!(Pattern::new(b"?").matches(b"\xff"));
        assert!(Pattern::new(b"\xff*").matches(b"\xffabc"));
        assert!(!Pattern::new(b"\xff").matches("\u{ff}".as_bytes()));
    }

    #[test]
    fn sets_take_one_of_their_letters() {
        for (pattern, name) in [("[abc]", "b"), ("[a-c]", "b"), ("[!a-c]", "d"), ("[^a]", "b"), ("x[0-9a-f]", "xe")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("[abc]", "d"), ("[!a-c]", "b"), ("[a-c]", ""), ("[c-a]", "b"), ("[!a]", "")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn brackets_and_dashes_can_be_meant_themselves() {
        assert!(fits("[]]", "]") && fits("[!]]", "a") && !fits("[!]]", "]"));
        assert!(fits("[a-]", "-") && fits("[-a]", "-") && fits("[*]", "*") && !fits("[*]", "a"));
        assert!(fits("[ab", "[ab") && fits("a[", "a[") && fits("[]", "[]"));
        assert!(Pattern::is_meant(b"a[") && Pattern::is_meant(b"*") && !Pattern::is_meant(b"a]b"));
    }
}
