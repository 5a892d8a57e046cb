//! Progress bars on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use onode_console::Output;

/// A bar up to `length`, as far as somebody knows it, drawn by a template of indicatif.
pub fn bar(length: Option<u64>, template: &str, output: &Output) -> ProgressBar {
    if output.json() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
