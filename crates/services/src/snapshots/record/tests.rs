//! What is read of records is what was written, and names follow the rules.

use super::*;

fn taken(records: &Records, name: &str) -> Records {
    with(records, name, 70).expect("a good name")
}

fn with(records: &Records, name: &str, next_id: u64) -> Result<Records> {
    let new = NewSnapshot { name: name.to_owned(), created: Timestamp::default(), id: None };
    Ok(records.with(&new, ObjectId(next_id))?.0)
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let created = Timestamp { seconds: -5, nanoseconds: 999_999_999 };
    let name = "next week".to_owned();
    let id = Some(SnapshotId([9; 16]));
    let with = Snapshot { generation: 7, name, created, id, next_id: ObjectId(1 << 40), is_deleted: true };
    let without = Snapshot { id: None, is_deleted: false, ..with.clone() };
    for (one, least) in [(with, 36), (without, 20)] {
        assert_eq!(Snapshot::decode(7, &one.encode()), Some(one.clone()));
        for length in 0..least {
            assert_eq!(Snapshot::decode(7, &one.encode()[..length]), None, "{length} bytes");
        }
    }
}

#[test]
fn a_number_is_written_as_text_and_back() {
    let id = SnapshotId([0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
    assert_eq!(id.to_string(), "0f0102030405060708090a0b0c0d0eff");
    assert_eq!(SnapshotId::parse(&id.to_string()), Some(id));
    for bad in ["", "+f0102030405060708090a0b0c0d0eff", "0f0102030405060708090a0b0c0d0ef"] {
        assert_eq!(SnapshotId::parse(bad), None, "{bad}");
    }
}

#[test]
fn names_are_those_of_directories() {
    for bad in ["", ".", "..", "a/b", "a\nb", "a\0", &"x".repeat(256)] {
        assert_eq!(check_name(bad).map_err(|error| error.kind), Err(ErrorKind::Invalid), "{bad:?}");
    }
    for good in ["a", "...", "before upgrade", &"x".repeat(255)] {
        assert_eq!(check_name(good), Ok(()));
    }
}

#[test]
fn ids_that_come_again_are_looked_after_for_earlier_snapshots() {
    let records = taken(&Records::default(), "a");
    let later = with(&records, "b", 68).expect("a good name");
    assert_eq!(later.latest().map(|one| one.next_id), Some(ObjectId(70)));
}

#[test]
fn a_name_is_free_again_when_its_snapshot_is_deleted() {
    let records = taken(&taken(&Records::default(), "a"), "b");
    let again = with(&records, "a", 1);
    assert_eq!(again.map(drop).map_err(|error| error.kind), Err(ErrorKind::Exists));
    let records = taken(&records.deleting("a").expect("it is there").0, "a");
    let generations: Vec<_> = records.shown().map(|one| one.generation).collect();
    assert_eq!(generations, [2, 3]);
    assert_eq!(records.next_removed().map(|one| one.generation), Some(1));
    assert_eq!(records.before(3).map(|one| one.generation), Some(2));
    assert_eq!(records.without(1).0.latest().map(|one| one.generation), Some(3));
}
