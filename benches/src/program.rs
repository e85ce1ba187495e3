//! A benchmark as a program, and the programs that it measures.

use std::process::ExitCode;
use std::time::Duration;

/// An error that ends a benchmark.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a benchmark on this thread: exit code 0 if it returns true, 1 if it returns false because a
/// bound is exceeded, 2 with a message if it fails.
pub fn run(measure: impl Future<Output = Result<bool, BoxError>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let measured = match runtime {
        Ok(runtime) => runtime.block_on(measure),
        Err(error) => Err(error.into()),
    };
    match measured {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The CPU time that a process has used, to a hundredth of a second. Zero if it has ended.
pub fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let stat = stat.unwrap_or_default();
    // The second field, the name in parentheses, may contain blanks: user and system time are
    // the 12th and 13th after it, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let hundredths: u64 = ticks.filter_map(|of| of.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * hundredths)
}

/// The peak of the memory of a process in bytes. `None` if it has ended.
pub fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1_024)
}
