use onode_base::Prng;
use onode_object::powers::Share;
use onode_object::validate::{Stored, never_needs_space};
use onode_object::*;
use onode_services::Compressed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

struct Spy {
    ram: RamDevice,
    full: AtomicBool,
    damaged: AtomicBool,
    most: AtomicU64,
    shared: bool,
    turn: Mutex<Option<std::thread::ThreadId>>,
    free: Condvar,
}
struct Look<'a>(&'a RamDevice);
impl Stored for Look<'_> {
    fn attribute_bytes(&mut self, o: ObjectId, k: AttributeKey) -> Result<Option<usize>> {
        Ok(self.0.attribute(o, k)?.map(|v| v.len()))
    }
    fn solid_bytes(&mut self, o: ObjectId) -> Result<Option<u64>> {
        let size = self.0.stat(o)?.size;
        let data: u64 = self.0.extents(o, 0, 1000)?.iter().map(|e| e.1).sum();
        Ok((data == size).then_some(size))
    }
}
impl Spy {
    fn new(shared: bool) -> Arc<Self> {
        Arc::new(Self { ram: RamDevice::new(1 << 40), full: false.into(), damaged: false.into(), most: 0.into(), shared,
            turn: Mutex::new(None), free: Condvar::new() })
    }
    fn turn<T>(&self, f: impl FnOnce() -> T) -> T {
        if !self.shared || *self.turn.lock().unwrap() == Some(std::thread::current().id()) { return f(); }
        self.begin();
        let r = f();
        self.end();
        r
    }
}
impl Share for Spy {
    fn has_others(&self) -> bool { false }
    fn begin(&self) -> u64 {
        let mut t = self.turn.lock().unwrap();
        while t.is_some() { t = self.free.wait(t).unwrap(); }
        *t = Some(std::thread::current().id());
        0
    }
    fn end(&self) { *self.turn.lock().unwrap() = None; self.free.notify_one(); }
}
impl ObjectDevice for Spy {
    fn info(&self) -> DeviceInfo { self.ram.info() }
    fn reserve_ids(&self, c: u64) -> Result<ObjectId> { self.ram.reserve_ids(c) }
    fn commit(&self, t: Transaction, d: Durability) -> Result<()> {
        let bytes: usize = t.mutations.iter().map(|m| if let Mutation::Write { data, .. } = m { data.len() } else { 0 }).sum();
        self.most.fetch_max(bytes as u64, SeqCst);
        if self.full.load(SeqCst) && !never_needs_space(&t, &mut Look(&self.ram))? {
            return Err(Error::new(ErrorKind::NoSpace, "full"));
        }
        self.turn(|| self.ram.commit(t, d))
    }
    fn sync(&self, s: SyncScope) -> Result<()> { self.ram.sync(s) }
    fn read(&self, o: ObjectId, at: u64, b: &mut [u8]) -> Result<usize> {
        if self.damaged.load(SeqCst) && at < 4096 { return Err(Error::corrupt(o, 0..4096, "bad page".to_string())); }
        self.turn(|| self.ram.read(o, at, b))
    }
    fn attribute(&self, o: ObjectId, k: AttributeKey) -> Result<Option<Vec<u8>>> { self.turn(|| self.ram.attribute(o, k)) }
    fn attributes(&self, o: ObjectId, k: AttributeKey, l: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> { self.turn(|| self.ram.attributes(o, k, l)) }
    fn stat(&self, o: ObjectId) -> Result<ObjectStat> { self.turn(|| self.ram.stat(o)) }
    fn list(&self, o: ObjectId, l: usize) -> Result<Vec<ObjectId>> { self.ram.list(o, l) }
    fn extents(&self, o: ObjectId, at: u64, l: usize) -> Result<Vec<(u64, u64)>> { self.turn(|| self.ram.extents(o, at, l)) }
    fn space(&self) -> Space { self.ram.space() }
    fn maintain(&self, b: u32) -> Result<Maintenance> { self.ram.maintain(b) }
    fn close(&self) -> Result<()> { self.ram.close() }
    fn share(&self) -> Option<&dyn Share> { self.shared.then_some(self as &dyn Share) }
}
const O: ObjectId = ObjectId(9);
fn made(spy: &Arc<Spy>, bytes: usize) -> Compressed<Spy> {
    let d = Compressed::new(Arc::clone(spy), mode());
    let mut t = Transaction::new();
    t.create(O, Hints { kind: ObjectKind::Data, ..Hints::default() });
    t.write(O, 0, vec![7; bytes]);
    d.commit(t, Durability::Durable).unwrap();
    d
}
#[test]
fn full_many_punches() {
    let spy = Spy::new(false);
    let d = made(&spy, 65536);
    spy.full.store(true, SeqCst);
    for n in 0..300 {
        let mut t = Transaction::new();
        t.punch(O, n * 100, 50);
        d.commit(t, Durability::Durable).unwrap_or_else(|e| panic!("punch {n} refused: {e}"));
    }
}
#[test]
fn full_small_replaced() {
    let spy = Spy::new(false);
    let d = made(&spy, 65536);
    spy.full.store(true, SeqCst);
    let mut t = Transaction::new();
    t.truncate(O, 100);
    d.commit(t, Durability::Durable).unwrap();
    let mut t = Transaction::new();
    t.write(O, 0, vec![9; 100]);
    d.commit(t, Durability::Durable).unwrap();
}
#[test]
fn append_beside_damage() {
    let spy = Spy::new(false);
    let d = Compressed::new(Arc::clone(&spy), mode());
    let mut t = Transaction::new();
    t.create(O, Hints { kind: ObjectKind::Data, ..Hints::default() });
    d.commit(t, Durability::Durable).unwrap();
    for n in 0..15 { let mut t = Transaction::new(); t.write(O, n * 4096, vec![7; 4096]); d.commit(t, Durability::Durable).unwrap(); }
    spy.damaged.store(true, SeqCst);
    let mut t = Transaction::new();
    t.write(O, 15 * 4096, vec![7; 4096]);
    d.commit(t, Durability::Durable).unwrap();
}
#[test]
fn size_of_transactions() {
    let spy = Spy::new(false);
    let d = made(&spy, 16 << 20);
    spy.most.store(0, SeqCst);
    let mut t = Transaction::new();
    for n in 0..256 { let mut noise = vec![0; 4096]; Prng::new(n).fill(&mut noise); t.write(O, n * 65536 + 4096, noise); }
    d.commit(t, Durability::Durable).unwrap();
    println!("frames: 1 MiB became {} bytes", spy.most.load(SeqCst));
    // Half noise: chunks of noise that only just shrink, then do not.
    let mut t = Transaction::new();
    let o2 = ObjectId(10);
    t.create(o2, Hints { kind: ObjectKind::Data, ..Hints::default() });
    let mut all = vec![0; 16 << 20];
    Prng::new(5).fill(&mut all);
    for c in all.chunks_mut(65536) { c[4096..4096 + 6000].fill(0); }
    t.write(o2, 0, all);
    d.commit(t, Durability::Durable).unwrap();
    spy.most.store(0, SeqCst);
    let mut t = Transaction::new();
    for n in 0..256 { let mut noise = vec![0; 4096]; Prng::new(n).fill(&mut noise); t.write(o2, n * 65536 + 4096, noise); }
    d.commit(t, Durability::Durable).unwrap();
    let most = spy.most.load(SeqCst);
    assert!(most <= 2 << 20, "1 MiB of writes became one transaction of {most} bytes");
}
#[test]
fn no_deadlock_with_turns() {
    let spy = Spy::new(true);
    let d = Arc::new(made(&spy, 1 << 20));
    let (done, rx) = std::sync::mpsc::channel();
    for who in 0..3 {
        let (d, done) = (Arc::clone(&d), done.clone());
        std::thread::spawn(move || {
            for n in 0..3000_u64 {
                if who == 0 {
                    let s = d.share().unwrap();
                    s.begin();
                    let mut t = Transaction::new();
                    t.write(O, n % 16 * 65536, vec![n as u8; 65536]);
                    d.commit(t, Durability::Buffered).unwrap();
                    s.end();
                } else {
                    let mut b = vec![0; 1000];
                    d.read(O, n % 16 * 65536, &mut b).unwrap();
                }
            }
            done.send(who).unwrap();
        });
    }
    for _ in 0..3 { rx.recv_timeout(std::time::Duration::from_secs(60)).expect("deadlock: nobody went on for 60 s"); }
}
fn mode() -> Compression { if std::env::var("CONTROL").is_ok() { Compression::Never } else { Compression::Fast } }
fn walk(p: &std::path::Path, out: &mut Vec<Vec<u8>>) {
    for e in std::fs::read_dir(p).unwrap().flatten() {
        let t = e.file_type().unwrap();
        if t.is_dir() { walk(&e.path(), out) } else if t.is_file() { out.push(std::fs::read(e.path()).unwrap()) }
    }
}
#[test]
fn figure() {
    let mut files = Vec::new();
    for top in std::env::var("TREE").unwrap_or_default().split(':').filter(|t| !t.is_empty()) { walk(std::path::Path::new(top), &mut files); }
    let spy = Spy::new(false);
    let d = Compressed::new(Arc::clone(&spy), Compression::Small);
    let first = d.reserve_ids(files.len() as u64 + 1).unwrap().0;
    let mut ext = 0u64; let (mut big, mut big_z) = (0usize, 0usize);
    let (mut plain, mut z, mut stored, mut small_plain, mut small_z) = (0, 0, 0, 0, 0);
    for (n, f) in files.iter().enumerate() {
        let o = ObjectId(first + n as u64);
        let mut t = Transaction::new();
        t.create(o, Hints { kind: ObjectKind::Data, ..Hints::default() });
        t.write(o, 0, f.clone());
        d.commit(t, Durability::Buffered).unwrap();
        let zf: usize = f.chunks(128 << 10).map(|c| zstd::bulk::compress(c, 3).unwrap().len().min(c.len())).sum();
        plain += f.len();
        z += zf;
        let s = spy.most.swap(0, SeqCst);
        ext += spy.ram.extents(o, 0, 100000).unwrap().iter().map(|e| e.1).sum::<u64>();
        if f.len() > 4096 { big += s as usize; big_z += zf; }
        stored += s as usize;
        if f.len() <= 8192 { small_plain += s as usize; small_z += zf; }
    }
    println!("files {} plain {plain} zstd3-128K {z} stored {stored} ratio {:.3}; by extents {ext}; files > 4 KiB: {big} of {big_z}; files <= 8 KiB: stored {small_plain}, zstd {small_z}", files.len(), stored as f64 / z as f64);
}
