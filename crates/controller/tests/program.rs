//! The operator as a process.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::process::{Command, Output};

fn run(argument: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_5spot-controller"))
        .arg(argument)
        .output()
        .unwrap()
}

#[test]
fn the_program_prints_its_version_and_refuses_a_flag_that_it_does_not_know() {
    let version = run("--version");
    let printed = String::from_utf8(version.stdout).unwrap();
    assert!(printed.starts_with("5spot-controller "), "{printed}");
    assert!(version.status.success());
    let refused = run("--no-such-flag");
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("--no-such-flag"), "{error}");
}
