//! The signals that stop a long-running command.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Failure;

/// The signals SIGINT (Ctrl-C) and SIGTERM.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to listen for the signals.
    ///
    /// # Errors
    /// The system refuses to register a handler.
    pub fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::at_start);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
