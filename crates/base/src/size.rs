//! Sizes as people write them: `4096`, `4K`, `1G`. Powers of 1,024, whole numbers only.

use alloc::format;
use alloc::string::{String, ToString as _};

/// Reads a size. The error says what is wrong with the text, quoting it.
///
/// # Errors
/// A sentence that quotes `text`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() {
        return Err(format!("`{text}` is not a size; write for example 4096, 4K, 512M or 1G"));
    }
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(format!("`{unit}` in `{text}` is not a unit; use K, M, G or T")),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| format!("`{text}` is larger than any storage"))
}

/// Writes a size the way [`parse_size`] reads it, exactly: `1G`, `4K`, `1000`.
#[must_use]
pub fn exact_size(bytes: u64) -> String {
    [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')]
        .into_iter()
        .find(|(shift, _)| bytes != 0 && bytes.trailing_zeros() >= *shift)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Writes a size for people, rounded: `1.0 GiB`, `12.3 MiB`, `17 B`.
#[must_use]
pub fn human_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> shift != 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip() {
        for (text, bytes) in [("0", 0), ("512", 512), ("4K", 4096), ("3M", 3 << 20), ("1G", 1 << 30), ("2T", 2 << 40)] {
            assert_eq!(parse_size(text), Ok(bytes));
            assert_eq!(exact_size(bytes), text);
        }
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1k"), Ok(1024));
    }

    #[test]
    fn wrong_sizes_are_quoted() {
        for text in ["", "K", "-1", "1X", "1.5G", "99999999999999999999", "16777216T"] {
            let message = parse_size(text).expect_err(text);
            assert!(message.contains(text), "{message}");
        }
    }

    #[test]
    fn human_sizes_are_short() {
        assert_eq!(human_size(17), "17 B");
        assert_eq!(human_size(1536), "1.5 KiB");
        assert_eq!(human_size(1 << 30), "1.0 GiB");
        assert_eq!(human_size(u64::MAX), "16777215.9 TiB");
    }
}
