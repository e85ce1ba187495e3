//! `5spot run`, `skip` and `overrides` at a server, and what `status` and `explain` show of the same
//! machine. Monday noon: its next window is from 19:00 in Zurich until 07:30.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::server::Server;

const DEV: &str = "5spot dev --start 2026-12-21T12:00:00Z --speed 1 \
                   --apply examples/nights-and-weekends.yaml";

fn run(server: &Server, command: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(command.split_whitespace())
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .output()
        .unwrap()
}

/// What a command prints that succeeds.
fn printed(server: &Server, command: &str) -> String {
    let output = run(server, command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code of a command that fails, and its one line about that, without `error: `.
fn refused(server: &Server, command: &str) -> (Option<i32>, String) {
    let output = run(server, command);
    let line = String::from_utf8(output.stderr).unwrap();
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    (output.status.code(), line.trim_end().to_owned())
}

fn json(server: &Server, command: &str) -> Value {
    serde_json::from_str(&printed(server, command)).unwrap()
}

#[test]
fn a_window_is_skipped_until_its_override_is_ended() {
    let server = Server::named(DEV).unwrap();
    let skipped = printed(&server, "skip desk-017");
    let begin = "desk-017 is stopped from 2026-12-21T18:00:00Z until 2026-12-22T06:30:00Z \
                 (ScheduleOverride desk-017-stop-";
    assert!(skipped.starts_with(begin), "{skipped}");

    // The next window is the one after that which is skipped already.
    let next = json(&server, "skip desk-017 --reason inventory -o json");
    assert_eq!(
        next["spec"],
        json!({
            "targetRef": {"name": "desk-017"}, "mode": "Stop", "reason": "inventory",
            "startTime": "2026-12-22T18:00:00Z", "endTime": "2026-12-23T06:30:00Z",
        })
    );
    let listed = json(&server, "overrides -A -o json");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
    let table = printed(&server, "overrides");
    assert!(table.contains("  waiting  inventory\n"), "{table}");

    for of in listed["items"].as_array().into_iter().flatten() {
        let name = of["metadata"]["name"].as_str().unwrap();
        let ended = printed(&server, &format!("overrides --end {name}"));
        assert_eq!(ended, format!("ScheduleOverride {name} has ended\n"));
    }
    let left = printed(&server, "overrides -o yaml");
    assert_eq!(left, "items: []\n");
    // Nothing is skipped any more.
    let again = printed(&server, "skip desk-017");
    assert!(again.starts_with(begin), "{again}");
}

#[test]
fn a_command_that_can_have_no_effect_says_why_and_what_to_do() {
    let server = Server::named(DEV).unwrap();
    for (command, why) in [
        (
            "skip nobody",
            "reading ScheduledMachine default/nobody: not found; give its namespace with -n; \
             `5spot status -A` lists all",
        ),
        (
            "run nobody --for 1h",
            "reading ScheduledMachine default/nobody: not found; give its namespace with -n; \
             `5spot status -A` lists all",
        ),
        (
            "overrides --end none",
            "deleting ScheduleOverride none: scheduleoverrides.5spot.finos.org \"none\" not found; \
             `5spot overrides` lists them",
        ),
        (
            "stop desk-017 --until 2027-01-07T04:00:00Z",
            "--until: 2027-01-07T04:00:00Z is more than 14 days from now; give an earlier end, and \
             another override later",
        ),
    ] {
        assert_eq!(refused(&server, command), (Some(2), why.to_owned()));
    }
    let timeline = run(&server, "explain desk-017 --timeline");
    assert_eq!(timeline.status.code(), Some(1));
    let note = String::from_utf8(timeline.stderr).unwrap();
    assert!(
        note.starts_with("note: no shutdown of desk-017 is recorded"),
        "{note}"
    );
}
