//! A boot image in a space of mapped memory is executed where it lies (paper 2).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "code is executed where it lies")]

use onode_media::real::pmem::{MappedOptions, MappedPmem, Opening};
use onode_media::{MediaErrorKind, Pmem};
use onode_spaces::{Kind, Region};

fn options(opening: Opening) -> MappedOptions {
    MappedOptions { opening, ..MappedOptions::default() }
}

#[test]
fn code_is_executed_where_it_lies() {
    // mov eax, 42; ret
    const FUNCTION: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
    let path = std::env::temp_dir().join(format!("onode-spaces-test-{}", std::process::id()));
    let memory = MappedPmem::open(&path, &options(Opening::New(65_536))).unwrap();
    let region = Region::format(memory, [1; 16], true).unwrap();
    region.create_image("boot", Kind::Boot, &FUNCTION).unwrap();
    drop(region);
    let region = Region::open(MappedPmem::open(&path, &options(Opening::Existing)).unwrap()).unwrap();
    let (boot, memory) = (region.space("boot").unwrap(), region.pmem());
    assert_eq!(memory.executable(boot.start(), 100).map(|_| ()).unwrap_err().kind, MediaErrorKind::OutOfRange);
    let code = memory.executable(boot.start(), boot.length()).unwrap();
    assert_eq!(code.length(), 4096);
    // SAFETY: the bytes at the address are the function above, which is mapped for execution until
    // `code` is dropped.
    let function = unsafe { std::mem::transmute::<*mut u8, extern "C" fn() -> i32>(code.address().as_ptr()) };
    assert_eq!(function(), 42);
    std::fs::remove_file(&path).unwrap();
}
