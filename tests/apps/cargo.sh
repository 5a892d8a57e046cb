#!/usr/bin/env bash
# cargo build of a small crate on the mount, and the program it makes; changed, built again.
. "$(dirname "$0")/common.sh"
command -v cargo >/dev/null || skip "there is no cargo"

work_on() {
    mkdir -p "$1/greet/src"
    cat >"$1/greet/Cargo.toml" <<'T'
[package]
name = "greet"
version = "1.0.0"
edition = "2021"
[workspace]
T
    cat >"$1/greet/src/lib.rs" <<'R'
pub fn primes(limit: usize) -> Vec<usize> {
    (2..limit).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).collect()
}
#[test]
fn there_are_25_below_100() {
    assert_eq!(primes(100).len(), 25);
}
R
    echo 'fn main() { println!("{:?}", greet::primes(100)); }' >"$1/greet/src/main.rs"
    (cd "$1/greet" && CARGO_TARGET_DIR=target cargo build --offline --quiet && ./target/debug/greet) >"$1/first"
    sleep 1
    sed -i 's/100)/200)/' "$1/greet/src/main.rs"
    (cd "$1/greet" && CARGO_TARGET_DIR=target cargo build --offline --quiet && ./target/debug/greet) >"$1/second"
    (cd "$1/greet" && CARGO_TARGET_DIR=target cargo test --offline --quiet) >/dev/null 2>&1 || fail "cargo test on $1"
}

onode_up 1G
ext4_up 1024
work_on "$MNT"
work_on "$EXT"
cmp "$MNT/first" "$EXT/first" && cmp "$MNT/second" "$EXT/second" || fail "the programs say different things"
grep -q 199 "$MNT/second" || fail "the change was not built"
onode_down
onode_up
(cd "$MNT/greet" && CARGO_TARGET_DIR=target cargo build --offline 2>&1) | grep -q Compiling && fail "it is built again after a new mount"
"$MNT/greet/target/debug/greet" | cmp - "$EXT/second" || fail "the program changed"
onode_down
did "built, changed, built, tested and run; same output as on $EXT_KIND"
