//! How often what is asked for is on the fast disk: the policies of replacement, beside that of
//! paper 4.

use super::Measuring;
use crate::tier::replacement::PolicyKind;
use crate::tier::replacement::measure::measure as hits_of;
use crate::tier::replacement::streams::Stream;
use onode::Result;

pub(super) fn measure(measuring: &mut Measuring<'_>) -> Result<()> {
    for stream in Stream::ALL {
        measuring.say(&format!("policies on {}", stream.name()));
        let ratio = |kind: PolicyKind| hits_of(kind, stream).per_ten_thousand() as f64 / 100.0;
        for kind in PolicyKind::ALL {
            measuring.shown(format!("hit ratio on {}: {}", stream.name(), kind.name()), ratio(kind), "%");
        }
        let (ours, theirs) = (ratio(PolicyKind::default()), ratio(PolicyKind::MultiQueue));
        let row = format!("hit ratio on {}: {} over multi-queue", stream.name(), PolicyKind::default().name());
        match stream {
            // A tenth more, as a ratio: the others may be zero.
            Stream::ScanAndHot => measuring.at_least(row, (ours / theirs.max(0.01) - 1.0) * 100.0, "%", 10.0),
            Stream::Zipf | Stream::Loop => measuring.at_least(row, ours - theirs, "points", 0.0),
            Stream::Moving => measuring.shown(row, ours - theirs, "points"),
        }
    }
    Ok(())
}
