//! The rules one by one, against a state in which only objects 2 and 70 exist.

use super::*;
use crate::hints::Hints;
use crate::id::AttributeKind;
use alloc::vec;

const KEY: AttributeKey = AttributeKey::new(AttributeKind::INODE, 7);

const fn admission(next_id: u64) -> Admission {
    Admission { next_id: ObjectId(next_id), move_unit: Some(512) }
}

fn kind_of(transaction: &Transaction) -> Option<ErrorKind> {
    let mut exists = |object: ObjectId| Ok(object.0 == 2 || object.0 == 70);
    validate(transaction, admission(100), &mut exists).err().map(|error| error.kind)
}

#[test]
fn new_ids() {
    let cases = [
        (0, Some(ErrorKind::Invalid)),
        (1, None),
        (2, Some(ErrorKind::Exists)),
        (63, None),
        (64, None),
        (70, Some(ErrorKind::Exists)),
        (99, None),
        (100, Some(ErrorKind::Invalid)),
        (ObjectId::FIRST_OF_DEVICE.0, Some(ErrorKind::Invalid)),
        (u64::MAX, Some(ErrorKind::Invalid)),
    ];
    for (id, expected) in cases {
        assert_eq!(kind_of(Transaction::new().create(ObjectId(id), Hints::default())), expected, "id {id}");
    }
}

#[test]
fn sequences_see_what_came_before() {
    let (old, new) = (ObjectId(70), ObjectId(71));
    let hints = Hints::default();
    assert_eq!(kind_of(Transaction::new().write(new, 0, vec![1])), Some(ErrorKind::NotFound));
    assert_eq!(kind_of(Transaction::new().create(new, hints).write(new, 0, vec![1]).remove(new)), None);
    assert_eq!(kind_of(Transaction::new().create(new, hints).create(new, hints)), Some(ErrorKind::Exists));
    assert_eq!(kind_of(Transaction::new().remove(old).punch(old, 0, 1)), Some(ErrorKind::NotFound));
    assert_eq!(kind_of(Transaction::new().remove(old).remove(old)), Some(ErrorKind::NotFound));
    assert_eq!(
        kind_of(Transaction::new().remove(old).truncate(ObjectId(2), 5).truncate(old, 5)),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(kind_of(Transaction::new().remove(old).create(old, hints).write(old, 0, vec![1])), None);
}

#[test]
fn limits() {
    let object = ObjectId(2);
    let max = Transaction::MAX_OBJECT_BYTES;
    assert_eq!(kind_of(Transaction::new().write(object, max - 1, vec![1])), None);
    assert_eq!(kind_of(Transaction::new().write(object, max, vec![1])), Some(ErrorKind::Invalid));
    assert_eq!(kind_of(Transaction::new().write(object, u64::MAX, vec![1])), Some(ErrorKind::Invalid));
    assert_eq!(kind_of(Transaction::new().write(object, max, vec![])), None);
    assert_eq!(kind_of(Transaction::new().truncate(object, max)), None);
    assert_eq!(kind_of(Transaction::new().truncate(object, max + 1)), Some(ErrorKind::Invalid));
    assert_eq!(kind_of(Transaction::new().punch(object, u64::MAX, u64::MAX)), None);
    assert_eq!(kind_of(Transaction::new().set_attribute(object, KEY, vec![0; 600])), None);
    assert_eq!(kind_of(Transaction::new().set_attribute(object, KEY, vec![0; 601])), Some(ErrorKind::Invalid));
}

#[test]
fn asks_once_for_a_run_and_names_the_position() {
    let mut asked = 0;
    let mut exists = |_| {
        asked += 1;
        Ok(true)
    };
    let mut transaction = Transaction::new();
    transaction.truncate(ObjectId(2), 1).truncate(ObjectId(2), 2).truncate(ObjectId(2), u64::MAX);
    let error = validate(&transaction, admission(64), &mut exists).unwrap_err();
    assert!(error.detail.starts_with("mutation 2:"), "{error}");
    assert_eq!(error.object, Some(ObjectId(2)));
    assert_eq!(asked, 1);
}

#[test]
fn what_a_full_device_must_accept() {
    let object = ObjectId(2);
    let mut stored = Holding { attribute: Some(10), content: None };
    let mut free = |transaction: &Transaction| never_needs_space(transaction, &mut stored).unwrap();
    assert!(free(Transaction::new().remove(object).truncate(object, 9).punch(object, 0, 1)));
    assert!(free(Transaction::new().remove_attribute(object, KEY).set_attribute(object, KEY, vec![0; 10])));
    assert!(!free(Transaction::new().set_attribute(object, KEY, vec![0; 11])));
    assert!(!free(Transaction::new().remove(object).write(object, 0, vec![1])));
    // What one attribute gives up another may take, and a little more goes with a cut.
    let other = AttributeKey { index: KEY.index + 1, ..KEY };
    assert!(free(Transaction::new().remove_attribute(object, KEY).set_attribute(object, other, vec![0; 36])));
    assert!(!free(Transaction::new().remove_attribute(object, KEY).set_attribute(object, other, vec![0; 37])));
    assert!(!free(Transaction::new().set_attribute(object, KEY, vec![]).set_attribute(object, KEY, vec![0; 11])));
    assert!(free(Transaction::new().truncate(object, 0).set_attribute(object, KEY, vec![0; 26])));
    assert!(!free(Transaction::new().truncate(object, 0).set_attribute(object, KEY, vec![0; 27])));
    // Removing the same attribute again gives nothing.
    let mut twice = Transaction::new();
    twice.remove_attribute(object, KEY).remove_attribute(object, KEY).set_attribute(object, other, vec![0; 37]);
    assert!(!free(&twice));
    let mut stored = Holding { attribute: None, content: None };
    assert!(!never_needs_space(Transaction::new().set_attribute(object, KEY, vec![]), &mut stored).unwrap());
}

#[test]
fn a_small_content_can_be_replaced_on_a_full_device() {
    let (object, other) = (ObjectId(2), ObjectId(3));
    let mut stored = Holding { attribute: None, content: Some(128) };
    let mut free = |transaction: &Transaction| never_needs_space(transaction, &mut stored).unwrap();
    assert!(free(Transaction::new().write(object, 0, vec![1; 128]).write(other, 0, vec![2; 128]).remove(other)));
    assert!(!free(Transaction::new().write(object, 0, vec![1; 129])));
    assert!(!free(Transaction::new().write(object, 0, vec![1; 127])));
    assert!(!free(Transaction::new().write(object, 1, vec![1; 128])));
    assert!(!free(Transaction::new().write(object, 0, vec![1; 128]).write(other, 128, vec![1])));
    let mut large = Holding { attribute: None, content: Some(257) };
    assert!(!never_needs_space(Transaction::new().write(object, 0, vec![1; 257]), &mut large).unwrap());
    let mut hollow = Holding { attribute: None, content: None };
    assert!(!never_needs_space(Transaction::new().write(object, 0, vec![1; 128]), &mut hollow).unwrap());
}

/// A device on which every attribute and every content has that length.
struct Holding {
    attribute: Option<usize>,
    content: Option<u64>,
}

impl Stored for Holding {
    fn attribute_bytes(&mut self, _: ObjectId, _: AttributeKey) -> Result<Option<usize>> {
        Ok(self.attribute)
    }

    fn solid_bytes(&mut self, _: ObjectId) -> Result<Option<u64>> {
        Ok(self.content)
    }
}

#[test]
fn ids_run_out_at_two_to_the_sixty_three() {
    assert_eq!(reserve(ObjectId(0), 3), Ok((ObjectId(64), ObjectId(67))));
    assert_eq!(reserve(ObjectId((1 << 63) - 1), 1), Ok((ObjectId((1 << 63) - 1), ObjectId(1 << 63))));
    assert_eq!(reserve(ObjectId(1 << 63), 1).unwrap_err().kind, ErrorKind::NoSpace);
    assert_eq!(reserve(ObjectId(64), u64::MAX).unwrap_err().kind, ErrorKind::NoSpace);
}

#[test]
fn content_moves_between_relatives() {
    let object = ObjectId(70);
    let (one, two) = (object.version(1).unwrap(), object.version(2).unwrap());
    let stranger = ObjectId(2).version(1).unwrap();
    let all = [object, one, two, stranger, ObjectId(2)];
    let ask = |object, range: core::ops::Range<u64>, to| {
        let mut exists = |asked: ObjectId| Ok(all.contains(&asked));
        let mut transaction = Transaction::new();
        let result = validate(transaction.move_content(object, range, to), admission(100), &mut exists);
        result.err().map(|error| error.kind)
    };
    for (from, to) in [(object, one), (one, object), (two, one)] {
        assert_eq!(ask(from, 512..700, to), None);
    }
    for (from, to) in [(object, object), (object, stranger), (object, ObjectId(2))] {
        assert_eq!(ask(from, 512..1024, to), Some(ErrorKind::Invalid));
    }
    assert_eq!(ask(object, 0..9, ObjectId(71)), Some(ErrorKind::NotFound));
    assert_eq!(ask(ObjectId(71), 0..9, object), Some(ErrorKind::NotFound));
    assert_eq!(ask(object, 511..1024, one), Some(ErrorKind::Invalid));
    let none = Admission { move_unit: None, ..admission(100) };
    let mut transaction = Transaction::new();
    let refused = validate(transaction.move_content(object, 0..0, one), none, &mut |_| Ok(true)).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
}
