//! Programs in C: compiled against the header, linked with the library, run on a heap in memory.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo put the library that C programs link with.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().expect("it lies in a folder");
    let candidates = [folder.join("libonode_c.so"), folder.join("../libonode_c.so")];
    let newest = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    candidates.into_iter().filter(|path| path.exists()).max_by_key(newest).expect("cargo builds the library")
}

/// Compiles a program of this folder; the result lies beside the library.
fn compile(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library();
    let folder = library.parent().expect("a folder");
    let program = folder.join(format!("capi-test-{name}"));
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(home.join(format!("tests/c/{name}.c")))
        .arg("-I")
        .arg(home.join("include"))
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .expect("there is a C compiler: apt-get install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, heap: &Path, step: &str) {
    let spec = format!("scm:{},size=32M", heap.display());
    let output = Command::new(program).arg(spec).arg(step).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{step}: {} {said}", output.status);
}

#[test]
fn table_1_of_paper_2_in_c() {
    let program = compile("table1");
    let heap = PathBuf::from(format!("/dev/shm/onode-capi-test-{}", std::process::id()));
    let _ = std::fs::remove_file(&heap);
    for step in ["save", "load", "files", "misuse"] {
        run(&program, &heap, step);
    }
    std::fs::remove_file(&heap).expect("it was there");
}
