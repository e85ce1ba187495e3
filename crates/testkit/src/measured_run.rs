//! A run of a program, and what it took.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory::peak_kib;

/// How often the memory of the program is read. The system keeps the peak, so only one in the last
/// moments of the run is missed.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a program printed until it ended, and what it took.
#[derive(Debug)]
pub struct MeasuredRun {
    /// What it printed, and its exit code.
    pub output: Output,
    /// From its start to its end.
    pub duration: Duration,
    /// The peak of its resident memory.
    pub peak_kib: u64,
}

impl MeasuredRun {
    /// Runs a program to its end.
    ///
    /// # Errors
    /// The program cannot be started, or its output cannot be read.
    pub fn of(command: &mut Command) -> io::Result<Self> {
        let begun = Instant::now();
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = piped.spawn()?;
        let id = program.id();
        let (end, is_ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let watching = scope.spawn(move || {
                let mut peak = 0;
                while is_ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    peak = peak.max(peak_kib(id));
                }
                peak
            });
            let output = program.wait_with_output();
            let duration = begun.elapsed();
            drop(end);
            Ok(Self {
                output: output?,
                duration,
                peak_kib: watching.join().unwrap_or_default(),
            })
        })
    }
}
