//! Equal runs give equal reports, the report has its keys, and its figures are those of the run.

use onode::Spec;
use onode_fs::AccessTimes;
use onode_lab::{Caches, Durability, Report, Settings, operations_of, replay};
use serde_json::Value;

const SMALL: &str = "postmark:seed=7,files=60,transactions=400,reads=5";

fn run(trace: &str, device: &str, durability: Durability) -> Report {
    let device = Spec::parse(device).expect("a spec");
    let operations = operations_of(trace, &device).expect("a workload");
    let settings = Settings {
        trace: trace.to_owned(),
        device,
        durability,
        caches: Caches::small(),
        access_times: AccessTimes::Never,
    };
    replay(&settings, &operations).expect("a run")
}

const FLASH: &str = "flash:sim,size=16M,page=2K,spare=64";

#[test]
fn equal_runs_give_equal_reports() {
    for durability in [Durability::Operation, Durability::Natural, Durability::Lazy] {
        let [one, two] = [0, 1].map(|_| Report { cpu_s: 0.0, ..run(SMALL, FLASH, durability) });
        assert_eq!(serde_json::to_string(&one).expect("text"), serde_json::to_string(&two).expect("text"));
    }
    assert_ne!(
        run(SMALL, FLASH, Durability::Operation).nand,
        run("postmark:seed=8,files=60,transactions=400,reads=5", "flash:sim,size=64M,page=2K", Durability::Operation)
            .nand
    );
}

#[test]
fn generators_that_fill_the_volume_make_the_cleaner_work() {
    for name in ["aging", "zipf", "hot-cold", "moving-hot"] {
        let trace = format!("{name}:fill=70,operations=5000");
        let [one, two] = [0, 1].map(|_| Report { cpu_s: 0.0, ..run(&trace, FLASH, Durability::Natural) });
        assert_eq!(serde_json::to_string(&one).expect("text"), serde_json::to_string(&two).expect("text"));
        assert!(one.segments_cleaned > 0 && one.write_amplification > 0.5, "{one}");
        assert!(one.stall_us.max > 0 && one.stall_us.p50 <= one.stall_us.max, "{one}");
    }
}

#[test]
fn the_report_has_its_keys() {
    let report = serde_json::to_value(run(SMALL, FLASH, Durability::Natural)).expect("json");
    let keys = |value: &Value| -> Vec<String> { value.as_object().expect("an object").keys().cloned().collect() };
    let mut wanted = [
        "trace",
        "device",
        "durability",
        "ops",
        "user_bytes_written",
        "nand",
        "by_tag",
        "segment_wear",
        "segments_cleaned",
        "bytes_moved",
        "node_bytes_moved",
        "virtual_s",
        "write_amplification",
        "wear",
        "ram_peak_bytes",
        "cpu_s",
        "latency_us",
        "stall_us",
    ];
    wanted.sort_unstable();
    assert_eq!(keys(&report), wanted);
    assert_eq!(keys(&report["nand"]), ["erases", "programs", "reads"]);
    assert_eq!(keys(&report["wear"]), ["max", "mean", "min"]);
    assert_eq!(keys(&report["latency_us"]), ["max", "p50", "p99", "p999"]);
    assert_eq!(keys(&report["stall_us"]), ["max", "p50", "p99"]);
}

#[test]
fn tags_add_up_and_bytes_are_those_of_the_stream() {
    let report = run(SMALL, FLASH, Durability::Operation);
    let sum = |field: fn(&onode_lab::Nand) -> u64| report.by_tag.values().map(field).sum::<u64>();
    assert_eq!(sum(|nand| nand.reads), report.nand.reads);
    assert_eq!(sum(|nand| nand.programs), report.nand.programs);
    assert_eq!(sum(|nand| nand.erases), report.nand.erases);
    let written: u64 = operations_of(SMALL, &Spec::parse(FLASH).expect("a spec"))
        .expect("a workload")
        .iter()
        .map(|operation| match operation {
            onode_lab::stream::Operation::Create(_, bytes) | onode_lab::stream::Operation::Append(_, bytes) => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(report.user_bytes_written, written);
    let amplification = (report.nand.programs * 2048) as f64 / written as f64;
    assert!((report.write_amplification - amplification).abs() < 1e-9);
}

#[test]
fn what_is_durable_at_once_costs_more_than_what_may_wait() {
    let [each, natural, lazy] = [Durability::Operation, Durability::Natural, Durability::Lazy]
        .map(|durability| run(SMALL, FLASH, durability).nand.programs);
    assert!(each > natural && natural >= lazy, "{each} {natural} {lazy}");
}

#[test]
fn only_the_measured_part_of_a_large_file_counts() {
    let write = run("largefile:write,size=4M", FLASH, Durability::Natural);
    assert_eq!((write.ops, write.user_bytes_written), (1024, 4 << 20));
    assert!(write.nand.programs >= 2048 && write.nand.reads == 0, "{:?}", write.nand);
    let read = run("largefile:read,size=4M", FLASH, Durability::Natural);
    assert_eq!((read.ops, read.user_bytes_written, read.nand.programs), (1024, 0, 0));
    assert!(read.nand.reads >= 2048, "{:?}", read.nand);
}

#[test]
fn a_trace_file_is_read_plain_and_packed() {
    let folder = std::env::temp_dir().join(format!("onode-lab-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = b"create a 5000\nappend a 100\nread a\ndelete a\n";
    let plain = folder.join("trace.txt");
    std::fs::write(&plain, text).expect("a file");
    let packed = folder.join("trace.txt.zst");
    // One frame with one raw block: magic, single segment with a content size of one byte, block
    // header.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
    frame.extend_from_slice(&(((text.len() as u32) << 3) | 1).to_le_bytes()[..3]);
    frame.extend_from_slice(text);
    std::fs::write(&packed, frame).expect("a file");
    let device = Spec::parse(FLASH).expect("a spec");
    let operations = operations_of(plain.to_str().expect("a name"), &device);
    assert_eq!(operations.as_ref().map(Vec::len), Ok(4));
    assert_eq!(operations_of(packed.to_str().expect("a name"), &device), operations);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn an_image_cannot_be_measured() {
    let device = Spec::parse("flash:disk.img").expect("a spec");
    let operations = operations_of(SMALL, &device).expect("a workload");
    let settings = Settings {
        trace: SMALL.to_owned(),
        device,
        durability: Durability::Natural,
        caches: Caches::default(),
        access_times: AccessTimes::Never,
    };
    let error = replay(&settings, &operations).expect_err("no virtual time");
    assert!(error.to_string().contains("no virtual time"), "{error}");
}
