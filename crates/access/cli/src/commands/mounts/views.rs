//! What a mount tells of itself through read-only attributes of its root directory that no listing
//! shows.
//!
//! `onode.report` is [`Figures`] as JSON, `onode.info` and `onode.health` what the verbs of these
//! names show, `onode.keys` the keys of directories, `onode.anchor` the state of an authenticated
//! volume, `onode.segments.N` a piece of the segment map
//! from segment N on (an attribute holds 64 KiB at most). Between two pieces the volume goes on
//! working. `onode.version.N` is where below the mount is what the version N keeps for a snapshot.
//! What begins with `onode.send.` is a piece of a stream ([`Sends`]), for the super-user alone.

use crate::commands::mounts::sends::Sends;
use crate::commands::volumes::info;
use crate::commands::volumes::key::report::{AnchorReport, DirectoryKeyReport};
use crate::figures::{Figures, Segment};
use crate::watch::Watched;
use crate::watch::health::HealthReport;
use onode_fuse::{Options, Requests, SEND_VIEW};

/// Segments of one piece of the map; more might not fit an attribute.
const PIECE: usize = 256;

/// What the mount of a volume with these options answers when asked for the view `name`.
pub fn view(watched: &Watched, options: &Options, sends: &Sends, requests: &Requests, name: &str) -> Option<Vec<u8>> {
    if let Some(asked) = name.strip_prefix(SEND_VIEW) {
        return sends.piece(watched.volume(), asked);
    }
    match name {
        "report" => {
            let mut figures = watched.figures();
            let of_mount = [
                ("io_uring", u64::from(requests.come_by_io_uring())),
                ("threads", requests.threads() as u64),
                ("read_ahead_bytes", options.read_ahead),
            ];
            figures.settings.extend(of_mount.map(|(name, value)| (name.to_owned(), value)));
            let requests = requests.asked().map(|(kind, count)| (kind.to_owned(), count)).collect();
            return serde_json::to_vec(&Figures { requests, ..figures }).ok();
        }
        "info" => {
            let mut report = info::Report::of(watched.volume());
            report.health = watched.health().into();
            return serde_json::to_vec(&report).ok();
        }
        "keys" => {
            let keys = watched.volume().directory_keys().map_or_else(|| Ok(Vec::new()), |keys| keys.list()).ok()?;
            return serde_json::to_vec(&keys.iter().map(DirectoryKeyReport::from).collect::<Vec<_>>()).ok();
        }
        "anchor" => {
            let anchor = watched.volume().note_anchor().ok()??;
            return serde_json::to_vec(&AnchorReport::of(watched.volume().spec(), &anchor)).ok();
        }
        "health" => return serde_json::to_vec(&HealthReport::from(watched.health())).ok(),
        _ => {}
    }
    if let Some(number) = name.strip_prefix("version.") {
        let number = number.parse().ok()?;
        return serde_json::to_vec(&watched.volume().version_paths(&[number]).remove(&number)).ok();
    }
    let from: usize = name.strip_prefix("segments.")?.parse().ok()?;
    let all = watched.volume().device().inspect()?.segments();
    let piece: Vec<Segment> = all.into_iter().skip(from).take(PIECE).map(Segment::from).collect();
    serde_json::to_vec(&piece).ok()
}
