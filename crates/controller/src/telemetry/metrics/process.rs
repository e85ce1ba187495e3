//! The metrics of this process from the kernel, under the names of the Prometheus client
//! libraries. Empty without `/proc`.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Row, row};

pub(super) const CPU: Row = row(
    "process_cpu_seconds_total",
    "counter",
    &[],
    "Total user and system CPU time",
);
pub(super) const RESIDENT: Row = row(
    "process_resident_memory_bytes",
    "gauge",
    &[],
    "Resident memory size",
);
pub(super) const VIRTUAL: Row = row(
    "process_virtual_memory_bytes",
    "gauge",
    &[],
    "Virtual memory size",
);
pub(super) const THREADS: Row =
    row("process_threads", "gauge", &[], "Number of OS threads");
pub(super) const START: Row = row(
    "process_start_time_seconds",
    "gauge",
    &[],
    "Start time of the process, in seconds since the Unix epoch",
);
pub(super) const OPEN_FDS: Row = row(
    "process_open_fds",
    "gauge",
    &[],
    "Number of open file descriptors",
);
pub(super) const MAX_FDS: Row = row(
    "process_max_fds",
    "gauge",
    &[],
    "Maximum number of open file descriptors",
);

/// Reads `/proc` at each scrape.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (row, value) in readings() {
            // The library adds the suffix of counters.
            let name = row.name.strip_suffix("_total").unwrap_or(row.name);
            if row.kind == "counter" {
                let metric = ConstCounter::new(value);
                let kind = metric_type(&metric);
                metric.encode(encoder.encode_descriptor(name, row.help, None, kind)?)?;
            } else {
                let metric = ConstGauge::new(value);
                let kind = metric_type(&metric);
                metric.encode(encoder.encode_descriptor(name, row.help, None, kind)?)?;
            }
        }
        Ok(())
    }
}

fn metric_type(metric: &impl EncodeMetric) -> prometheus_client::metrics::MetricType {
    metric.metric_type()
}

/// The values that can be read.
fn readings() -> Vec<(Row, f64)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let units = Units {
        ticks_per_second: widened(rustix::param::clock_ticks_per_second()),
        page_bytes: widened(u64::try_from(rustix::param::page_size()).unwrap_or(0)),
    };
    let mut all = of_stat(&read("/proc/self/stat"), &read("/proc/stat"), units);
    // The directory is open while it is counted.
    let open = fs::read_dir("/proc/self/fd").map(Iterator::count);
    if let Ok(open) = open {
        let open = u64::try_from(open.saturating_sub(1)).unwrap_or(0);
        all.push((OPEN_FDS, widened(open)));
    }
    all.extend(most_open(&read("/proc/self/limits")).map(|most| (MAX_FDS, most)));
    all
}

/// A count as `f64`; beyond 2^32, the largest exact value.
fn widened(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The units of the kernel's values.
#[derive(Clone, Copy, Debug)]
struct Units {
    ticks_per_second: f64,
    page_bytes: f64,
}

/// The readings of `/proc/self/stat`, with the start of the host from `/proc/stat`.
fn of_stat(stat: &str, host: &str, units: Units) -> Vec<(Row, f64)> {
    // The program's name is in parentheses, and may contain parentheses.
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return Vec::new();
    };
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // Numbered as in proc(5), where the first field after the name is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let seconds = |ticks: f64| ticks / units.ticks_per_second;
    let booted = host.lines().find_map(|line| line.strip_prefix("btime "));
    let booted = booted.and_then(|seconds| seconds.trim().parse::<f64>().ok());
    let cpu = field(14).zip(field(15));
    let started = field(22).zip(booted);
    [
        (CPU, cpu.map(|(user, system)| seconds(user + system))),
        (RESIDENT, field(24).map(|pages| pages * units.page_bytes)),
        (VIRTUAL, field(23)),
        (THREADS, field(20)),
        (
            START,
            started.map(|(ticks, booted)| booted + seconds(ticks)),
        ),
    ]
    .into_iter()
    .filter_map(|(row, value)| Some((row, value?)))
    .collect()
}

/// How many file descriptors `/proc/self/limits` allows. `None` if there is no limit.
fn most_open(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    line?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (5spot (a) b) S 1 42 42 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 3 0 \
         1000 268435456 2048 18446744073709551615";

    #[test]
    fn the_kernels_units_become_seconds_and_bytes() {
        let units = Units {
            ticks_per_second: 100.0,
            page_bytes: 4096.0,
        };
        let found = of_stat(STAT, "cpu 1 2\nbtime 1700000000\n", units);
        let found: Vec<(&str, f64)> = found
            .into_iter()
            .map(|(row, value)| (row.name, value))
            .collect();
        assert_eq!(
            found,
            [
                ("process_cpu_seconds_total", 3.0),
                ("process_resident_memory_bytes", 8_388_608.0),
                ("process_virtual_memory_bytes", 268_435_456.0),
                ("process_threads", 3.0),
                ("process_start_time_seconds", 1_700_000_010.0),
            ]
        );
    }

    #[test]
    fn values_that_cannot_be_read_are_omitted() {
        let units = Units {
            ticks_per_second: 100.0,
            page_bytes: 4096.0,
        };
        assert_eq!(of_stat("", "", units), []);
        assert_eq!(of_stat("42 (x) S 1", "btime soon", units), []);
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n";
        assert_eq!(most_open(limits), Some(1024.0));
        assert_eq!(
            most_open("Max open files  unlimited  unlimited  files"),
            None
        );
        assert_eq!(most_open(""), None);
    }
}
