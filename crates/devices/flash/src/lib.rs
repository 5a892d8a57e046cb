//! The log-structured flash device (paper 1).
#![no_std]
#![forbid(unsafe_code)]
