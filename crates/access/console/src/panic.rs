//! What happens when Onode itself is wrong: one clear message instead of a backtrace.

use std::io::Write;
use std::panic::PanicHookInfo;

/// Makes every panic, in any thread, say what it is. The exit code follows where the panic ends.
pub fn install_hook(program: &'static str) {
    std::panic::set_hook(Box::new(move |info| {
        let message = message(program, info);
        tracing::error!("{}", message.trim_end().replace('\n', "; "));
        // The message must come out even if standard error is closed: then there is nobody to tell.
        let _ = std::io::stderr().lock().write_all(message.as_bytes());
    }));
}

fn message(program: &str, info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    format!(
        "{program}: internal error: {what}{place}\n\
         hint: this is a bug in Onode {}; what was synced is safe. Please report this message\n",
        env!("CARGO_PKG_VERSION")
    )
}
