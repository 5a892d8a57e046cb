//! The path calls.

use crate::common::*;
use onode_fs::*;

#[test]
fn paths_follow_links_and_know_their_limits() {
    let (_volume, fs) = mounted();
    let deep = fs.make_directories(&root(), b"/a/b/c", 0o755).unwrap();
    assert_eq!(fs.make_directories(&root(), b"a//b/c/", 0o755).unwrap(), deep);
    fs.make_symbolic_link(&root(), deep, b"up", b"../../x").unwrap();
    fs.make_symbolic_link(&root(), ROOT, b"loop", b"loop").unwrap();
    let file = fs.write_file(&root(), b"/a/x", b"first", 0o600).unwrap();
    assert_eq!(fs.resolve(b"/a/b/c/up", Follow::Yes).unwrap(), file);
    assert_ne!(fs.resolve(b"/a/b/c/up", Follow::No).unwrap(), file);
    fs.write_file(&root(), b"/a/b/c/up", b"2nd", 0o600).unwrap();
    assert_eq!(fs.read_file(b"a/x").unwrap(), b"2nd");
    assert_eq!(kind(fs.resolve(b"/loop", Follow::Yes)), ErrorKind::Invalid);
    assert_eq!(kind(fs.resolve(b"/a/x/y", Follow::Yes)), ErrorKind::NotDirectory);
    assert_eq!(kind(fs.resolve_parent(b"//")), ErrorKind::Invalid);
    assert_eq!(kind(fs.make_directories(&root(), b"/a/x", 0o755)), ErrorKind::NotDirectory);
    let mut seen = Vec::new();
    fs.walk(b"/", &mut |path, attributes| {
        seen.push((String::from_utf8(path.to_vec()).unwrap(), attributes.inode));
        Ok(path != b"/a/b/c")
    })
    .unwrap();
    let mut paths: Vec<&str> = seen.iter().map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/", "/a", "/a/b", "/a/b/c", "/a/x", "/loop"]);
}

#[test]
fn removing_a_tree_leaves_nothing() {
    let (volume, fs) = mounted();
    for i in 0..700 {
        fs.make_directories(&root(), format!("/t/{}/{}", i % 7, i % 5).as_bytes(), 0o755).unwrap();
        fs.write_file(&root(), format!("/t/{}/{}/{i}", i % 7, i % 5).as_bytes(), b"x", 0o600).unwrap();
    }
    assert_eq!(fs.remove_all(b"/t").unwrap(), 1 + 7 + 35 + 700);
    assert_eq!(names(&fs, ROOT), [""; 0]);
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(1, 0));
}
