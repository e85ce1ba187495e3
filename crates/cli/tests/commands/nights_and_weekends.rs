//! The example of nights and weekends on `5spot dev`: all transitions around Christmas, and the
//! effects of `5spot hold` and `5spot run` while it runs.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/nights-and-weekends.yaml"
);

/// A running `5spot dev` in a temporary directory; both are removed when dropped.
struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    directory: PathBuf,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Dev {
    fn start(name: &str, start: &str, speed: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("5spot-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_5spot"))
            .current_dir(&directory)
            .args([
                "dev", "--start", start, "--speed", speed, "--apply", EXAMPLE,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            directory,
        }
    }

    /// The time and the text of the next phase transition.
    fn transition(&mut self) -> (Timestamp, String) {
        let lines = self.lines.by_ref().map(Result::unwrap);
        let mut changes = lines.filter_map(|line| {
            let (at, rest) = line.split_once("  default/desk-017  ")?;
            let (change, _) = rest.split_once("  ").unwrap_or((rest, ""));
            let change = change.contains("->").then(|| change.to_owned())?;
            Some((at.parse().unwrap(), change))
        });
        changes.next().unwrap()
    }

    /// The time of the next phase transition with this text.
    fn next(&mut self, change: &str) -> Timestamp {
        loop {
            let (at, observed) = self.transition();
            if observed == change {
                return at;
            }
        }
    }

    /// Asserts that the preview closes at `end` because of the override that `run` has created.
    fn previews_the_run(&self, run: &str, end: Timestamp) {
        let (_, rest) = run.split_once("(ScheduleOverride ").unwrap();
        let (name, _) = rest.split_once(';').unwrap();
        // Both days of Christmas, independent of the current time of the virtual clock.
        let range = "--from 2026-12-25 --to 2026-12-27";
        let shown = self.type_in(&format!("preview desk-017 {range} -o json"));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let changes = shown["items"][0]["transitions"].as_array().unwrap();
        let close = changes.iter().find(|it| it["time"] == end.to_string());
        let expected = json!({
            "time": end.to_string(), "wanted": false, "cause": "Override", "name": name,
        });
        assert_eq!(close, Some(&expected), "{shown}");
    }

    /// Runs a command as in a second terminal, and returns its output.
    fn type_in(&self, command: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_5spot"))
            .current_dir(&self.directory)
            .args(command.split_whitespace())
            .args(["--kubeconfig", ".5spot/kubeconfig"])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_machine_is_created_before_each_window_and_not_at_christmas() {
    let mut dev = Dev::start("christmas", "2026-12-18T16:00:00Z", "100000");
    // The times include lead time and the time for the shutdown: Ready at 19:00, gone by 07:30.
    for (comes, leaves) in [
        // Friday evening to Monday morning.
        ("2026-12-18T17:50:00Z", "2026-12-21T06:25:00Z"),
        ("2026-12-21T17:50:00Z", "2026-12-22T06:25:00Z"),
        ("2026-12-22T17:50:00Z", "2026-12-23T06:25:00Z"),
        ("2026-12-23T17:50:00Z", "2026-12-24T06:25:00Z"),
        // Christmas begins at midnight and ends with St. Stephen's Day.
        ("2026-12-24T17:50:00Z", "2026-12-24T22:55:00Z"),
        ("2026-12-26T22:50:00Z", "2026-12-28T06:25:00Z"),
    ] {
        assert_eq!(dev.next("Inactive -> Pending"), at(comes));
        let opens = at(comes) + SignedDuration::from_mins(10);
        assert!(dev.next("Pending -> Active") <= opens, "{comes}");
        assert_eq!(dev.next("Active -> ShuttingDown"), at(leaves));
        let closes = at(leaves) + SignedDuration::from_mins(5);
        assert!(dev.next("ShuttingDown -> Inactive") <= closes, "{leaves}");
    }
}

#[test]
fn a_hold_and_a_run_at_runtime_end_at_the_exact_second() {
    let mut dev = Dev::start("typed", "2026-12-24T20:30:00Z", "1000");
    dev.next("Pending -> Active");
    // Without the hold, the machine is removed at 22:55 because of Christmas.
    let held = dev.type_in("hold desk-017 --until 2026-12-24T23:30:00Z --reason racks");
    let begin = "desk-017 is held as it is until 2026-12-24T23:30:00Z (ScheduleOverride ";
    assert!(held.starts_with(begin), "{held}");
    assert_eq!(
        dev.transition(),
        (
            at("2026-12-24T23:30:00Z"),
            "Active -> ShuttingDown".to_owned()
        )
    );
    dev.next("ShuttingDown -> Inactive");
    let run = dev.type_in("run desk-017 --for 1h");
    let (_, rest) = run.split_once("desk-017 runs until ").unwrap();
    let (end, _) = rest.split_once(" (").unwrap();
    let end = at(end);
    dev.previews_the_run(&run, end);
    let (came, change) = dev.transition();
    assert_eq!(change, "Inactive -> Pending");
    let asked = end - SignedDuration::from_hours(1);
    // The override was created shortly before the operator received it.
    let late = came.duration_since(asked);
    assert!((0..=900).contains(&late.as_secs()), "{asked} and {came}");
    dev.next("Pending -> Active");
    // The machine must be gone at the end.
    assert_eq!(
        dev.next("Active -> ShuttingDown"),
        end - SignedDuration::from_mins(5)
    );
    assert!(dev.next("ShuttingDown -> Inactive") <= end);
}
