//! Permissions as `chmod` has them: `640`, `u+x,go-w`, `a=rX`, `g=u`.

/// The three bits of everybody: owner, group, others.
const READ: u16 = 0o444;
const WRITE: u16 = 0o222;
const EXECUTE: u16 = 0o111;
const OWNER: u16 = 0o700;
const GROUP: u16 = 0o070;
const OTHERS: u16 = 0o007;
const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const STICKY: u16 = 0o1000;
const ALL: u16 = 0o7777;

/// What becomes of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModeChange {
    /// They become these.
    Become(u16),
    /// They are changed bit by bit, in this order.
    Steps(Vec<Step>),
}

/// One change of some bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bits that the step is about.
    whose: u16,
    how: How,
    bits: Bits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Add,
    Remove,
    Replace,
}

/// Which bits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bits {
    /// These; with `search` also that to execute, of directories and of what somebody may execute.
    These { bits: u16, search: bool },
    /// Those that the owner (6), the group (3) or others (0) have, by the place of their bits.
    AsOf(u32),
}

impl ModeChange {
    /// Reads a change. Where it does not say whose permissions it means, all but those of `umask`
    /// are meant. The error says what is wrong, quoting the text.
    pub fn parse(text: &str, umask: u16) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = u16::from_str_radix(text, 8).ok().filter(|number| *number <= ALL);
            return number.map(Self::Become).ok_or_else(|| format!("`{text}` is no octal number up to 7777"));
        }
        let mut steps = Vec::new();
        for clause in text.split(',') {
            let wrong = || format!("`{clause}` is not of the form [ugoa][+-=][rwxXst] or [ugoa][+-=][ugo]");
            let (who, actions) = clause.split_at(clause.find(['+', '-', '=']).ok_or_else(wrong)?);
            let whose = whose(who, umask).ok_or_else(wrong)?;
            let mut rest = actions;
            while let Some(sign) = rest.chars().next() {
                let after = rest.get(1..).unwrap_or_default();
                let (letters, next) = after.split_at(after.find(['+', '-', '=']).unwrap_or(after.len()));
                let how = match sign {
                    '+' => How::Add,
                    '-' => How::Remove,
                    _ => How::Replace,
                };
                steps.push(Step { whose, how, bits: bits(letters).ok_or_else(wrong)? });
                rest = next;
            }
        }
        Ok(Self::Steps(steps))
    }

    /// What permissions become.
    pub fn apply(&self, permissions: u16, is_directory: bool) -> u16 {
        match self {
            Self::Become(permissions) => *permissions,
            Self::Steps(steps) => steps.iter().fold(permissions, |now, step| step.apply(now, is_directory)),
        }
    }
}

impl Step {
    fn apply(&self, now: u16, is_directory: bool) -> u16 {
        let bits = match self.bits {
            Bits::These { bits, search } if search && (is_directory || now & EXECUTE != 0) => bits | EXECUTE,
            Bits::These { bits, .. } => bits,
            Bits::AsOf(place) => (now >> place & 7) * EXECUTE,
        };
        let bits = bits & self.whose;
        match self.how {
            How::Add => now | bits,
            How::Remove => now & !bits,
            How::Replace => now & !self.whose | bits,
        }
    }
}

/// The bits of those who are named; nothing if somebody is named who is not there.
fn whose(who: &str, umask: u16) -> Option<u16> {
    if who.is_empty() {
        return Some(ALL & !(umask & (OWNER | GROUP | OTHERS)));
    }
    who.chars().try_fold(0, |bits, letter| {
        Some(match letter {
            'u' => bits | OWNER | SET_USER,
            'g' => bits | GROUP | SET_GROUP,
            'o' => bits | OTHERS,
            'a' => ALL,
            _ => return None,
        })
    })
}

fn bits(letters: &str) -> Option<Bits> {
    match letters {
        "u" => return Some(Bits::AsOf(6)),
        "g" => return Some(Bits::AsOf(3)),
        "o" => return Some(Bits::AsOf(0)),
        _ => {}
    }
    let mut bits = 0;
    for letter in letters.chars() {
        bits |= match letter {
            'r' => READ,
            'w' => WRITE,
            'x' => EXECUTE,
            's' => SET_USER | SET_GROUP,
            't' => STICKY,
            'X' => 0,
            _ => return None,
        };
    }
    Some(Bits::These { bits, search: letters.contains('X') })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UMASK: u16 = 0o022;

    fn of(text: &str, before: u16) -> u16 {
        ModeChange::parse(text, UMASK).unwrap().apply(before, false)
    }

    #[test]
    fn numbers_replace_everything() {
        assert_eq!(of("640", 0o7777), 0o640);
        assert_eq!(of("4755", 0), 0o4755);
        assert_eq!(of("0", 0o777), 0);
    }

    #[test]
    fn letters_change_bits_of_some() {
        for (text, before, after) in [
            ("u+x", 0o644, 0o744),
            ("go-w", 0o666, 0o644),
            ("u+x,go-w", 0o666, 0o744),
            ("a=r", 0o755, 0o444),
            ("u=rwx,g=rx,o=", 0, 0o750),
            ("ug+w-x", 0o555, 0o665),
            ("g=u", 0o740, 0o770),
            ("o+g", 0o750, 0o755),
            ("u+s", 0o755, 0o4755),
            ("g-s", 0o2755, 0o755),
            ("a+t", 0o777, 0o1777),
            ("u=rx", 0o4755, 0o555),
            ("o+s", 0o755, 0o755),
            ("+w", 0o444, 0o644),
            ("+x", 0o644, 0o755),
            ("a+w", 0o444, 0o666),
        ] {
            assert_eq!(of(text, before), after, "{text} of {before:o}");
        }
    }

    #[test]
    fn a_large_x_is_for_directories_and_programs() {
        let change = ModeChange::parse("a+rX", UMASK).unwrap();
        assert_eq!(
            [change.apply(0o600, false), change.apply(0o700, false), change.apply(0o600, true)],
            [0o644, 0o755, 0o755]
        );
    }

    #[test]
    fn what_is_no_mode_is_quoted() {
        for text in ["", "8", "77777", "u", "u+q", "z+x", "u+x,", "x+u+", "755x", "u+ug"] {
            let message = ModeChange::parse(text, UMASK).expect_err(text);
            assert!(text.is_empty() || message.contains('`'), "{message}");
        }
    }
}
