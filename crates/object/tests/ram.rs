//! The conformance suite on the memory device, with and without its crash model.

use onode_object::conformance::{Generator, Harness, Outcome, cases, run};
use onode_object::{Durability, ObjectDevice, ObjectId, RamDevice};

struct Ram {
    device: RamDevice,
    can_crash: bool,
}

impl Harness for Ram {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.device.close().unwrap();
    }

    fn can_crash(&self) -> bool {
        self.can_crash
    }

    fn crash(&mut self) {
        self.device.crash();
    }

    fn extent_bytes(&self) -> u64 {
        4096
    }
}

/// Content is rounded up to 4 KiB, so there is some more room than asked for.
fn capacity(bytes: u64) -> u64 {
    bytes + bytes / 4 + 65_536
}

onode_object::conformance!(ram_with_crash_model, |bytes| Ram {
    device: RamDevice::with_crash_model(capacity(bytes)),
    can_crash: true
});

#[test]
fn without_crash_model_the_crash_cases_are_skipped() {
    let make = |bytes| Box::new(Ram { device: RamDevice::new(capacity(bytes)), can_crash: false }) as Box<dyn Harness>;
    let report = run("durable", &make);
    report.assert_passed("ram");
    let skipped = report.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Skipped(_))).count();
    assert_eq!(skipped, 13);
    assert_eq!(report.summary(), "1 passed, 0 failed, 13 skipped");
}

#[test]
fn the_suite_is_large_and_its_names_are_unique() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    let count = names.len();
    assert!(count >= 100, "{count} cases");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The generator must reach every mutation, or the histories prove little.
#[test]
fn generated_histories_are_varied() {
    let device = RamDevice::new(1 << 30);
    let mut generator = Generator::new(1);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..2_000 {
        let transaction = generator.transaction(&device);
        for mutation in &transaction.mutations {
            *seen.entry(format!("{mutation:?}").chars().take(8).collect::<String>()).or_insert(0) += 1;
        }
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
    assert!(seen.values().all(|count| *count > 100), "{seen:?}");
    assert!(device.list(ObjectId(0), 100).unwrap().len() > 5);
}
