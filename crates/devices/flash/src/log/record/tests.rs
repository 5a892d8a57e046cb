//! Records and frames: what is written is read, and nonsense is refused.

use super::*;
use onode_object::{AttributeKind, Hints};

#[test]
fn records_round_trip_through_frames_of_any_size() {
    let records = [
        Record::Chain { segment: 7, sequence: 900 },
        Record::Opened { segment: 8, sequence: 901, erases: 3, stream: Stream::Data },
        Record::Opened { segment: 8, sequence: 901, erases: 3, stream: Stream::Parity2 },
        Record::Opened { segment: 9, sequence: 902, erases: 4, stream: Stream::Atime },
        Record::Waiting { location: 1 << 33, bytes: alloc::vec![7; 90] },
        Record::Flushed { before: 1 << 34 },
        Record::Commit {
            transaction: 55,
            changes: alloc::vec![
                Change::Mutation(Mutation::Create { object: ObjectId(99), hints: Hints::default() }),
                Change::Place {
                    object: ObjectId(99),
                    offset: 4096,
                    pieces: alloc::vec![Piece { location: 1 << 40, length: 4096 }, Piece { location: 5, length: 1 }],
                },
                Change::Patch {
                    object: ObjectId(99),
                    key: AttributeKey::new(AttributeKind::INODE, 3),
                    patch: Patch { prefix: 9, suffix: 200, middle: alloc::vec![1, 2, 3] },
                },
            ],
        },
    ];
    for room in 5..80 {
        let mut pages = alloc::vec![Vec::new()];
        for record in &records {
            let bytes = record.encode();
            let (mut rest, mut first) = (&bytes[..], true);
            while first || !rest.is_empty() {
                let page = pages.last_mut().unwrap();
                match put_frame(page, rest, first, room - page.len()) {
                    Some(taken) => {
                        rest = &rest[taken..];
                        first = false;
                    }
                    None => pages.push(Vec::new()),
                }
            }
        }
        let mut found = Vec::new();
        let mut assembler = Assembler::default();
        for page in &pages {
            assembler
                .page(page, &mut |record| {
                    found.push(record);
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(found, records, "room {room}");
    }
}

#[test]
fn nonsense_is_refused() {
    let mut prng = onode_base::Prng::new(1);
    for _ in 0..50_000 {
        let mut bytes = alloc::vec![0; prng.below(40) as usize];
        prng.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first %= 6;
        }
        if let Ok(record) = Record::decode(&bytes) {
            assert_eq!(record.encode(), bytes);
        }
        let _ = Assembler::default().page(&bytes, &mut |_| Ok(()));
    }
}
