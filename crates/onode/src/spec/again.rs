//! What of a spec it takes to open the same volume again: the places, and how it is used. What only
//! making one needs is left out, and so is what is done once.

use super::{Beside, Fast, Medium, Memory, Spec, Tiers};
use std::path::PathBuf;

fn whole(path: PathBuf) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path)
}

impl Spec {
    /// The spec to open the volume with another time, from any directory.
    #[must_use]
    pub fn again(self) -> Self {
        match self {
            Self::Flash { medium, shape: _, policies: _, beside } => {
                let medium = match medium {
                    Medium::Image(path) => Medium::Image(whole(path)),
                    Medium::Direct(path) => Medium::Direct(whole(path)),
                    Medium::Simulator => Medium::Simulator,
                };
                let beside = beside.map(|Beside { path, refuses, buffer, .. }| Beside {
                    path: path.map(whole),
                    refuses,
                    buffer,
                    ..Beside::default()
                });
                let (shape, policies) = (super::Shape::default(), super::Policies::default());
                Self::Flash { medium, shape, policies, beside }
            }
            Self::Scm(Memory { path, flush, mode, .. }) => {
                Self::Scm(Memory { path: path.map(whole), flush, mode, ..Memory::default() })
            }
            Self::Tier(tiers) => Self::Tier(Tiers {
                disks: tiers.disks.map(|(fast, big)| (whole(fast), whole(big))),
                size: None,
                fast_size: None,
                log: None,
                sections: Vec::new(),
                erase_block: None,
                fast: if tiers.fast == Fast::Away { Fast::Away } else { Fast::Used },
                ..tiers
            }),
            Self::Ram { size } => Self::Ram { size },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_again_stays() {
        for (spec, again) in [
            ("/x/disk.img,size=4G,page=2K,placement=sepbit", "flash:/x/disk.img"),
            ("flash:/x/raw,direct,size=4G", "flash:/x/raw,direct"),
            (
                "flash+scm:/x/d,/y/i,buffer=on,full=refuse,rebuild=on,memory=1M,log=64K",
                "flash+scm:/x/d,/y/i,full=refuse,buffer=on",
            ),
            ("scm:/x/heap,size=1G,mode=mem,flush=on", "scm:/x/heap,flush=on,mode=mem"),
            ("tier:/x/ssd,/y/hdd,size=1G,fast-size=256M,acknowledge=either", "tier:/x/ssd,/y/hdd,acknowledge=either"),
            ("tier:/x/ssd,/y/hdd,fast=none", "tier:/x/ssd,/y/hdd,fast=none"),
            ("tier:/x/ssd,/y/hdd,fast=new", "tier:/x/ssd,/y/hdd"),
            ("ram:size=16M", "ram:size=16M"),
        ] {
            let short = Spec::parse(spec).unwrap().again();
            assert_eq!(short.to_string(), again);
            assert_eq!(Spec::parse(again).unwrap(), short, "{again}");
        }
    }
}
