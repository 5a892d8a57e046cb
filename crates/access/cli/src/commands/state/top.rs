//! `onode top`: a volume at work, refreshed each second.
//!
//! Each frame takes a fresh look. A volume that is not mounted is opened for a moment only, so that
//! it can be mounted meanwhile; the next frame then shows the mount.

use crate::NAME;
use crate::commands::state::ask;
use crate::signals;
use frame::Frame;
use onode::Result;
use onode_console::Output;
use std::ffi::OsString;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

mod frame;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode top /mnt\n  onode top --interval 5 disk.img\n  \
    onode top --once /mnt            one frame, for scripts\n  onode top --json --once /mnt\n\n\
    Ctrl-C ends it. The letters and colours of segments are those of `onode map`.")]
pub struct Arguments {
    /// The directory where it is mounted, or the image or device spec.
    image: OsString,
    /// Seconds between two frames.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Show one frame and end.
    #[arg(long)]
    once: bool,
}

/// The screen of a terminal that is given back as it was.
struct Screen;

impl Screen {
    fn take(output: &Output) -> Result<Self> {
        // The alternate screen, without a cursor.
        output.bytes(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone there is nothing to give back.
        let _ = Output::new(NAME, false).bytes(b"\x1b[?25h\x1b[?1049l");
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let mut frame = take(arguments, None)?;
    if arguments.once {
        output.report(&frame.drawn(output.size(), output.is_colored()))?;
        return Ok(0);
    }
    let (sender, ended) = channel();
    signals::forward(sender, |_| ())?;
    let screen = if output.is_live() { Some(Screen::take(output)?) } else { None };
    loop {
        let drawn = frame.drawn(output.size(), output.is_colored());
        if screen.is_some() {
            output.bytes(drawn.screen(output.size()).as_bytes())?;
        } else {
            output.report(&drawn)?;
        }
        match ended.recv_timeout(Duration::from_secs(arguments.interval)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(0),
        }
        frame = take(arguments, Some(frame))?;
    }
}

#[expect(clippy::disallowed_methods, reason = "rates are measured over the time that passes here")]
fn take(arguments: &Arguments, before: Option<Frame>) -> Result<Frame> {
    let (figures, segments) = ask::with_segments(&arguments.image)?;
    Ok(Frame::new(figures, segments, Instant::now(), before))
}
