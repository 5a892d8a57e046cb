//! CRC-32C (Castagnoli), the checksum of every structure on every medium.
//!
//! With `std` the processor's own instruction computes it; firmware gets a table. Both give equal
//! values, which a test holds them to.

#[cfg(any(not(feature = "std"), test))]
const TABLE: crc::Crc<u32, crc::Table<1>> = crc::Crc::<u32, crc::Table<1>>::new(&crc::CRC_32_ISCSI);

/// CRC-32C of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// CRC-32C of what `crc` already covers followed by `bytes`.
#[must_use]
#[cfg(feature = "std")]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// CRC-32C of what `crc` already covers followed by `bytes`.
#[must_use]
#[cfg(not(feature = "std"))]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    table_append(crc, bytes)
}

#[cfg(any(not(feature = "std"), test))]
fn table_append(crc: u32, bytes: &[u8]) -> u32 {
    // The algorithm reflects its input, so the running register is the bit-reversed start value.
    let mut digest = TABLE.digest_with_initial((crc ^ 0xffff_ffff).reverse_bits());
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vector() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn table_and_instruction_agree_in_pieces() {
        let bytes: alloc::vec::Vec<u8> = (0..999u32).map(|i| (i * 7 + i / 13) as u8).collect();
        for cut in [0, 1, 7, 64, 500, 999] {
            let whole = crc32c(&bytes);
            assert_eq!(crc32c_append(crc32c(&bytes[..cut]), &bytes[cut..]), whole);
            assert_eq!(table_append(table_append(0, &bytes[..cut]), &bytes[cut..]), whole);
        }
    }
}
