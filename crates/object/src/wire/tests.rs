//! Every request and every reply there and back, damage, and hostile bytes.

use super::*;
use crate::device::{DeviceInfo, Maintenance, ObjectDevice, ObjectStat, Space};
use crate::durability::{Durability, SyncScope};
use crate::error::{Error, ErrorKind};
use crate::id::{AttributeKey, AttributeKind};
use crate::ram::RamDevice;
use crate::transaction::Transaction;
use crate::wire::mutation::tests::{random_hints, random_mutation};
use alloc::string::String;
use alloc::vec;
use onode_base::Prng;

fn number(prng: &mut Prng) -> u64 {
    prng.next_u64() >> prng.below(64)
}

fn bytes(prng: &mut Prng, bound: u64) -> Vec<u8> {
    let mut bytes = vec![0; prng.below(bound) as usize];
    prng.fill(&mut bytes);
    bytes
}

fn key(prng: &mut Prng) -> AttributeKey {
    AttributeKey::new(AttributeKind(prng.next_u64() as u8), number(prng))
}

fn words(prng: &mut Prng) -> String {
    (0..prng.below(9)).map(|_| ['a', ' ', '\u{e9}', '\u{1f600}'][prng.below(4) as usize]).collect()
}

fn random_request(prng: &mut Prng, command: u8) -> Request {
    let (object, offset, limit) = (ObjectId(number(prng)), number(prng), number(prng));
    match command {
        1 => Request::Info,
        2 => Request::ReserveIds { count: limit },
        3 => {
            let durability = if prng.chance(1, 2) { Durability::Durable } else { Durability::Buffered };
            let mutations = (0..prng.below(7)).map(|_| random_mutation(prng)).collect();
            Request::Commit { transaction: Transaction { mutations }, durability }
        }
        4 if prng.chance(1, 2) => Request::Sync { scope: SyncScope::All },
        4 => Request::Sync { scope: SyncScope::Object(object) },
        5 => Request::Read { object, offset, length: limit },
        6 => Request::Attribute { object, key: key(prng) },
        7 => Request::Attributes { object, from: key(prng), limit },
        8 => Request::Stat { object },
        9 => Request::List { from: object, limit },
        10 => Request::Extents { object, offset, limit },
        11 => Request::Space,
        12 => Request::Maintain { budget: prng.next_u64() as u32 },
        _ => Request::Close,
    }
}

fn random_reply(prng: &mut Prng, command: u8) -> Reply {
    match command {
        1 => Reply::Info(DeviceInfo {
            kind: ["remote", "ram", "flash", "flash+scm", "scm", "tier", "pool", "rados"][prng.below(8) as usize],
            uuid: [prng.next_u64() as u8; 16],
            summary: words(prng),
            read_only: prng.chance(1, 2).then(|| words(prng)),
            transaction_bytes: prng.below(1 << 30) as usize,
        }),
        2 => Reply::ReserveIds(ObjectId(number(prng))),
        3 => Reply::Commit,
        4 => Reply::Sync,
        5 => Reply::Read(bytes(prng, 3000)),
        6 => Reply::Attribute(prng.chance(1, 2).then(|| bytes(prng, 601))),
        7 => Reply::Attributes((0..prng.below(9)).map(|_| (key(prng), bytes(prng, 90))).collect()),
        8 => {
            let (size, allocated, accessed) = (number(prng), number(prng), number(prng));
            Reply::Stat(ObjectStat { size, allocated, hints: random_hints(prng), accessed })
        }
        9 => Reply::List((0..prng.below(200)).map(|_| ObjectId(number(prng))).collect()),
        10 => Reply::Extents((0..prng.below(200)).map(|_| (number(prng), number(prng))).collect()),
        11 => Reply::Space(Space { total: number(prng), available: number(prng), objects: number(prng) }),
        12 => Reply::Maintain(Maintenance { done: prng.next_u64() as u32, more: prng.chance(1, 2) }),
        13 => Reply::Close,
        _ => Reply::Failed(Error {
            kind: ErrorKind::ALL[prng.below(ErrorKind::ALL.len() as u64) as usize],
            object: prng.chance(1, 2).then(|| ObjectId(number(prng))),
            range: prng.chance(1, 2).then(|| number(prng)..number(prng)),
            detail: words(prng),
        }),
    }
}

#[test]
fn every_request_there_and_back() {
    let mut prng = Prng::new(21);
    for round in 0..3_900u32 {
        let request = random_request(&mut prng, (round % 13 + 1) as u8);
        let frame = request.encode(round).unwrap();
        assert_eq!(Request::decode(&frame), Ok((round, Some(request.clone()))));
        assert_eq!(u32::from(request.command()), round % 13 + 1);
        assert!(matches!(Reply::decode(&frame), Ok((_, None))), "a request is no reply");
    }
}

#[test]
fn every_reply_there_and_back() {
    let mut prng = Prng::new(22);
    for round in 0..4_200u32 {
        let reply = random_reply(&mut prng, (round % 14 + 1) as u8);
        let frame = reply.encode(round).unwrap();
        assert_eq!(Reply::decode(&frame), Ok((round, Some(reply))));
        assert!(matches!(Request::decode(&frame), Ok((_, None))), "a reply is no request");
    }
}

#[test]
fn every_error_kind_keeps_its_number() {
    for (position, kind) in ErrorKind::ALL.into_iter().enumerate() {
        let mut out = Vec::new();
        error::put(&mut out, &Error::new(kind, ""));
        assert_eq!(out, [position as u8, 0, 0, 0]);
    }
    assert_eq!(error::take(&mut &[ErrorKind::ALL.len() as u8, 0, 0, 0][..]), None);
}

#[test]
fn known_bytes() {
    let frame = Request::Stat { object: ObjectId(300) }.encode(7).unwrap();
    assert_eq!(&frame[..16], [22, 0, 0, 0, b'O', b'N', b'W', b'R', 1, 8, 0, 0, 7, 0, 0, 0]);
    assert_eq!(&frame[20..], [0xac, 2]);
    let mut covered = frame[..16].to_vec();
    covered.extend(&frame[20..]);
    assert_eq!(frame[16..20], onode_base::checksum::crc32c(&covered).to_le_bytes());
}

#[test]
fn every_damaged_bit_is_noticed() {
    let frame = random_request(&mut Prng::new(5), 3).encode(9).unwrap();
    for bit in 0..frame.len() * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Request::decode(&damaged).is_err(), "bit {bit}");
    }
    for length in 0..frame.len() {
        assert!(Request::decode(&frame[..length]).is_err(), "{length} bytes");
    }
    let mut longer = frame;
    longer.push(0);
    assert_eq!(Request::decode(&longer), Err(frame::FrameError::Length));
}

/// Damages bodies and repairs length and checksum, so that the decoders behind the frame see them.
#[test]
fn damaged_bodies_are_refused_or_in_their_one_form() {
    let mut prng = Prng::new(23);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..100_000u32 {
        let command = 1 + prng.below(14) as u8;
        let is_request = prng.chance(1, 2);
        let mut frame = if is_request {
            random_request(&mut prng, command).encode(round).unwrap()
        } else {
            random_reply(&mut prng, command).encode(round).unwrap()
        };
        damage(&mut prng, &mut frame);
        let frame = frame::finish(frame).unwrap();
        let again = if is_request {
            Request::decode(&frame).unwrap().1.map(|request| request.encode(round).unwrap())
        } else {
            Reply::decode(&frame).unwrap().1.map(|reply| reply.encode(round).unwrap())
        };
        match again {
            Some(again) => {
                accepted += 1;
                assert!(again == frame, "a second form was accepted in round {round}: {frame:?}");
            }
            None => refused += 1,
        }
    }
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
}

/// Changes, removes or adds some bytes after the header.
fn damage(prng: &mut Prng, frame: &mut Vec<u8>) {
    for _ in 0..=prng.below(3) {
        let body = frame.len() - frame::HEADER_BYTES;
        let position = frame::HEADER_BYTES + prng.below(body as u64 + 1) as usize;
        let byte = [0, 1, 0x7f, 0x80, 0xff, prng.next_u64() as u8][prng.below(6) as usize];
        match (prng.below(4), frame.get_mut(position)) {
            (0, Some(old)) => *old ^= 1 << prng.below(8),
            (1, Some(old)) => *old = byte,
            (2, Some(_)) => frame.truncate(position),
            _ => frame.insert(position, byte),
        }
    }
}

#[test]
fn a_device_answers_any_bytes() {
    let device = RamDevice::new(1 << 20);
    let mut prng = Prng::new(24);
    for round in 0..30_000u32 {
        let command = 1 + prng.below(13) as u8;
        let mut frame = random_request(&mut prng, command).encode(round).unwrap();
        damage(&mut prng, &mut frame);
        if prng.chance(1, 2) {
            frame = frame::finish(frame).unwrap();
        }
        let reply = serve(&device, &frame);
        assert!(matches!(Reply::decode(&reply), Ok((_, Some(_)))), "{reply:?}");
    }
}

/// A transport that changes what comes back.
struct Liar<F>(RamDevice, F);

impl<F: Fn(Vec<u8>) -> Vec<u8> + Send + Sync> Transport for Liar<F> {
    fn call(&self, request: &[u8]) -> Vec<u8> {
        (self.1)(serve(&self.0, request))
    }
}

#[test]
fn a_host_believes_no_wrong_reply() {
    let wrong: [fn(Vec<u8>) -> Vec<u8>; 5] = [
        |_| Vec::new(),
        |mut reply| {
            reply.pop();
            reply
        },
        |_| Reply::Commit.encode(999).unwrap(),
        |reply| Reply::Commit.encode(Reply::decode(&reply).unwrap().0).unwrap(),
        |reply| Reply::List(vec![ObjectId(1); 50]).encode(Reply::decode(&reply).unwrap().0).unwrap(),
    ];
    for lie in wrong {
        let device = RemoteDevice::new(Liar(RamDevice::new(1 << 20), lie));
        assert_eq!(device.list(ObjectId(0), 5).unwrap_err().kind, ErrorKind::Media);
        assert_eq!(device.stat(ObjectId(1)).unwrap_err().kind, ErrorKind::Media);
        assert!(device.info().read_only.is_some());
    }
    let honest = RemoteDevice::new(Liar(RamDevice::new(1 << 20), |reply| reply));
    assert_eq!(honest.info().kind, "ram");
    assert_eq!(honest.list(ObjectId(0), 5), Ok(vec![]));
}
