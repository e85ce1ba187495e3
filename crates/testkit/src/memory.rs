//! The memory of processes.

use std::fs;

/// The resident memory of this process, in KiB; 0 if the system has no `/proc`.
pub fn resident_kib() -> u64 {
    field("self", "VmRSS:")
}

/// The peak of the resident memory of a process, in KiB; 0 if it has ended or the system has no
/// `/proc`.
pub(crate) fn peak_kib(process: u32) -> u64 {
    field(&process.to_string(), "VmHWM:")
}

fn field(process: &str, name: &str) -> u64 {
    let status =
        fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}
