//! Names and messages for terminals: a name that somebody else chose must not do what control
//! characters do.

use std::borrow::Cow;
use std::fmt::Write;

/// How names are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As they are; one with control characters or bytes that are no text in quotes that a shell
    /// understands.
    #[default]
    Shell,
    /// With escapes as in C, and without quotes.
    Escape,
    /// In double quotes, with escapes as in C.
    Quoted,
}

/// A name, which is any bytes.
pub fn name(bytes: &[u8], style: Style) -> String {
    match style {
        Style::Shell => in_shell(bytes),
        Style::Escape => escaped(bytes, b' '),
        Style::Quoted => format!("\"{}\"", escaped(bytes, b'"')),
    }
}

/// A message without control characters; ends of lines and tabs stay.
pub fn message(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for letter in text.chars() {
        match is_harmful(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// A piece of a name: text that can be shown, or bytes that cannot.
enum Piece<'a> {
    Shown(char),
    Bytes(&'a [u8]),
}

fn pieces(bytes: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let text = valid.char_indices().map(move |(at, letter)| {
            if letter.is_control() {
                Piece::Bytes(&valid.as_bytes()[at..at + letter.len_utf8()])
            } else {
                Piece::Shown(letter)
            }
        });
        text.chain((!chunk.invalid().is_empty()).then_some(Piece::Bytes(chunk.invalid())))
    })
}

/// `e'$'\033'[31m`: quotes around what can be shown, and the rest in quotes of its own.
fn in_shell(bytes: &[u8]) -> String {
    if pieces(bytes).all(|piece| matches!(piece, Piece::Shown(_))) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut out = "'".to_owned();
    let mut is_escaping = false;
    for piece in pieces(bytes) {
        if is_escaping != matches!(piece, Piece::Bytes(_)) {
            is_escaping = !is_escaping;
            out.push_str(if is_escaping { "'$'" } else { "''" });
        }
        match piece {
            Piece::Shown('\'') => out.push_str("'\\''"),
            Piece::Shown(letter) => out.push(letter),
            Piece::Bytes(bytes) => bytes.iter().for_each(|byte| escape(&mut out, *byte)),
        }
    }
    out.push('\'');
    out
}

/// Backslashes and `special` are escaped as well.
fn escaped(bytes: &[u8], special: u8) -> String {
    let mut out = String::new();
    for piece in pieces(bytes) {
        match piece {
            Piece::Shown(letter) => {
                if letter == '\\' || letter == char::from(special) {
                    out.push('\\');
                }
                out.push(letter);
            }
            Piece::Bytes(bytes) => bytes.iter().for_each(|byte| escape(&mut out, *byte)),
        }
    }
    out
}

fn escape(out: &mut String, byte: u8) {
    let letter = match byte {
        7 => 'a',
        8 => 'b',
        9 => 't',
        10 => 'n',
        11 => 'v',
        12 => 'f',
        13 => 'r',
        _ => {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\{byte:03o}");
            return;
        }
    };
    out.extend(['\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_ls_does() {
        let all = |bytes: &[u8]| [Style::Shell, Style::Escape, Style::Quoted].map(|style| name(bytes, style));
        assert_eq!(all(b"plain"), ["plain", "plain", "\"plain\""]);
        assert_eq!(all(b"a b"), ["a b", "a\\ b", "\"a b\""]);
        assert_eq!(all("\u{e9}t\u{e9}".as_bytes())[0], "\u{e9}t\u{e9}");
        assert_eq!(all(b"e\x1b[31mred"), ["'e'$'\\033''[31mred'", "e\\033[31mred", "\"e\\033[31mred\""]);
        assert_eq!(all(b"a\nb'c"), ["'a'$'\\n''b'\\''c'", "a\\nb'c", "\"a\\nb'c\""]);
        assert_eq!(all(b"\xff\"\\"), ["''$'\\377''\"\\'", "\\377\"\\\\", "\"\\377\\\"\\\\\""]);
        // Controls of more than one byte.
        assert_eq!(all("\u{9b}31m".as_bytes())[1], "\\302\\23331m");
    }

    #[test]
    fn messages_keep_lines_and_lose_controls() {
        assert_eq!(message("one\n\ttwo"), "one\n\ttwo");
        assert_eq!(message("a\x1b[2Jb\r"), "a\\u{1b}[2Jb\\r");
    }
}
