//! syslog(3) without the C library: one datagram for each line, at the socket that every syslog
//! daemon listens at.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

const SOCKET: &str = "/dev/log";
/// The facility of system daemons.
const DAEMON: u8 = 3 << 3;

/// A connection to the daemon.
#[derive(Debug)]
pub struct Syslog {
    socket: UnixDatagram,
}

impl Syslog {
    /// # Errors
    /// If nobody listens.
    pub fn connect() -> io::Result<Self> {
        Self::connect_to(Path::new(SOCKET))
    }

    fn connect_to(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // A daemon that does not read must not hold up what it is told of.
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }
}

/// One line on its way.
#[derive(Debug)]
pub struct SyslogLine<'a> {
    socket: &'a UnixDatagram,
    severity: u8,
}

impl Write for SyslogLine<'_> {
    /// The formatter writes each line whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut datagram = format!("<{}>onode[{}]: ", DAEMON | self.severity, std::process::id()).into_bytes();
        datagram.extend_from_slice(line.trim_ascii_end());
        // A log that is lost is nobody's error.
        let _ = self.socket.send(&datagram);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Syslog {
    type Writer = SyslogLine<'a>;

    fn make_writer(&'a self) -> SyslogLine<'a> {
        SyslogLine { socket: &self.socket, severity: 6 }
    }

    fn make_writer_for(&'a self, of: &Metadata<'_>) -> SyslogLine<'a> {
        let severity = match *of.level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        SyslogLine { socket: &self.socket, severity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn each_line_is_a_datagram_with_its_severity() {
        let path = std::env::temp_dir().join(format!("onode-syslog-{}", std::process::id()));
        let daemon = UnixDatagram::bind(&path).expect("bound");
        let syslog = Syslog::connect_to(&path).expect("connected");
        std::fs::remove_file(&path).expect("cleaned");
        let lines =
            tracing_subscriber::fmt::layer().with_ansi(false).with_target(false).with_level(false).without_time();
        let subscriber = tracing_subscriber::registry().with(lines.with_writer(syslog));
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("it is lost");
            tracing::info!("it is saved");
        });
        let heard = || {
            let mut line = [0; 100];
            let length = daemon.recv(&mut line).expect("a line");
            String::from_utf8_lossy(&line[..length]).into_owned()
        };
        let process = std::process::id();
        assert_eq!(heard(), format!("<27>onode[{process}]: it is lost"));
        assert_eq!(heard(), format!("<30>onode[{process}]: it is saved"));
    }
}
