//! The records of PAX headers: `LENGTH KEY=VALUE\n`, where a value is any bytes.

use onode_base::Timestamp;

/// What stands before the name of an extended attribute.
pub const XATTR: &[u8] = b"SCHILY.xattr.";

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaxRecord {
    /// What it is about.
    pub key: Vec<u8>,
    /// What it says.
    pub value: Vec<u8>,
}

impl PaxRecord {
    /// One of text.
    pub fn new(key: &str, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), value: value.into() }
    }

    /// The value as a number.
    pub fn number(&self) -> Option<u64> {
        number(&self.value)
    }

    /// The name of the extended attribute that it is about.
    pub fn xattr(&self) -> Option<Vec<u8>> {
        Some(decoded(self.key.strip_prefix(XATTR)?))
    }

    /// One for an extended attribute.
    pub fn of_xattr(name: &[u8], value: &[u8]) -> Self {
        let mut key = XATTR.to_vec();
        for byte in name {
            match byte {
                b'%' => key.extend_from_slice(b"%25"),
                b'=' => key.extend_from_slice(b"%3D"),
                byte => key.push(*byte),
            }
        }
        Self { key, value: value.to_vec() }
    }
}

/// A `=` cannot stand in a key.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        let (letter, behind) = match rest {
            [b'%', b'3', b'D' | b'd', behind @ ..] => (b'=', behind),
            [b'%', b'2', b'5', behind @ ..] => (b'%', behind),
            _ => (*byte, after),
        };
        out.push(letter);
        rest = behind;
    }
    out
}

/// A number in decimal digits.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads the records of a header; nothing if they are not such.
pub fn parse(mut bytes: &[u8]) -> Option<Vec<PaxRecord>> {
    let mut records = Vec::new();
    // Some writers fill the block up with zeros.
    while bytes.first().is_some_and(|byte| *byte != 0) {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let length = usize::try_from(number(bytes.get(..space)?)?).ok()?;
        let [inner @ .., b'\n'] = bytes.get(space + 1..length)? else { return None };
        let equals = inner.iter().position(|byte| *byte == b'=')?;
        records.push(PaxRecord { key: inner.get(..equals)?.to_vec(), value: inner.get(equals + 1..)?.to_vec() });
        bytes = bytes.get(length..)?;
    }
    Some(records)
}

/// Records as a header has them.
pub fn write(records: &[PaxRecord]) -> Vec<u8> {
    let mut out = Vec::new();
    for PaxRecord { key, value } in records {
        // The length counts its own digits.
        let rest = key.len() + value.len() + 3;
        let mut length = rest + rest.to_string().len();
        length = rest + length.to_string().len();
        out.extend_from_slice(length.to_string().as_bytes());
        out.push(b' ');
        out.extend_from_slice(key);
        out.push(b'=');
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out
}

/// Reads a time in seconds with a fraction.
pub fn time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = i64::try_from(number(whole.as_bytes())?).ok()?;
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u32 = fraction.parse().ok()?;
    Some(match (is_negative, nanoseconds) {
        (false, _) => Timestamp { seconds, nanoseconds },
        (true, 0) => Timestamp { seconds: -seconds, nanoseconds },
        (true, _) => Timestamp { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
    })
}

/// A time in seconds with a fraction.
pub fn time_text(time: Timestamp) -> String {
    let Timestamp { seconds, nanoseconds } = time;
    let (sign, seconds, nanoseconds) = match (seconds < 0, nanoseconds) {
        (false, _) => ("", seconds.unsigned_abs(), nanoseconds),
        (true, 0) => ("-", seconds.unsigned_abs(), 0),
        (true, _) => ("-", (seconds + 1).unsigned_abs(), 1_000_000_000 - nanoseconds),
    };
    let text = format!("{sign}{seconds}.{nanoseconds:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let mut records = vec![PaxRecord::new("path", "x".repeat(200)), PaxRecord::new("a", "")];
        records.extend((80..110).map(|length| PaxRecord::new("key", vec![b'\n'; length])));
        records.push(PaxRecord::of_xattr(b"user.a=b%3Dc", b"9 path=x\n\0\xff"));
        assert_eq!(parse(&write(&records)), Some(records.clone()));
        assert_eq!(records.last().and_then(PaxRecord::xattr).as_deref(), Some(&b"user.a=b%3Dc"[..]));
        for wrong in ["5 a=b", "99 a=b\n", "x a=b\n", "6 abc\n", "-1 a=b\n", "0 a=b\n", " "] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(parse(b"6 a=b\n\0\0"), Some(vec![PaxRecord::new("a", "b")]));
    }

    #[test]
    fn times_come_back_as_they_were() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "0"),
            (1_700_000_000, 1, "1700000000.000000001"),
            (5, 500_000_000, "5.5"),
            (-2, 750_000_000, "-1.25"),
            (-1, 500_000_000, "-0.5"),
            (-7, 0, "-7"),
        ] {
            let moment = Timestamp { seconds, nanoseconds };
            assert_eq!((time_text(moment).as_str(), time(text.as_bytes())), (text, Some(moment)));
        }
        for wrong in ["", "-", "1.x", "x", "1e3", "99999999999999999999"] {
            assert_eq!(time(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
