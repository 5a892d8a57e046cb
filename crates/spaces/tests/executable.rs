//! A boot image in a space of mapped memory can be executed where it lies (paper 2): the space is
//! whole pages that can be mapped for it. That what is mapped so runs, the tests of media show.

use onode_media::real::pmem::{MappedOptions, MappedPmem, Opening};
use onode_media::{MediaErrorKind, Pmem};
use onode_spaces::{Kind, Region};

fn options(opening: Opening) -> MappedOptions {
    MappedOptions { opening, ..MappedOptions::default() }
}

#[test]
fn a_boot_image_is_mapped_for_execution_where_it_lies() {
    const IMAGE: [u8; 6] = *b"image!";
    let path = std::env::temp_dir().join(format!("onode-spaces-test-{}", std::process::id()));
    let memory = MappedPmem::open(&path, &options(Opening::New(65_536))).unwrap();
    let region = Region::format(memory, [1; 16], true).unwrap();
    region.create_image("boot", Kind::Boot, &IMAGE).unwrap();
    drop(region);
    let region = Region::open(MappedPmem::open(&path, &options(Opening::Existing)).unwrap()).unwrap();
    let (boot, memory) = (region.space("boot").unwrap(), region.pmem());
    assert_eq!(memory.executable(boot.start(), 100).map(|_| ()).unwrap_err().kind, MediaErrorKind::OutOfRange);
    let code = memory.executable(boot.start(), boot.length()).unwrap();
    assert_eq!(code.length(), 4096);
    let mut there = [0; IMAGE.len()];
    memory.read(boot.start(), &mut there);
    assert_eq!(there, IMAGE, "the image begins where the code is mapped from");
    std::fs::remove_file(&path).unwrap();
}
