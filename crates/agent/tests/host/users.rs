//! The owner's switch, used by several users of one host through the program.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use fivespot_agent::run_directory::RunDirectory;

use crate::program::{Program, unique};

const OWNER: u32 = 61_001;
const OTHER: u32 = 61_002;

/// The exit code and the output of the agent's program as a user. `None` without root.
fn run_as(
    uid: u32,
    agent: &Path,
    directory: &Path,
    words: &[&str],
) -> Option<(i32, String)> {
    let mut command = Command::new(agent);
    command.args(words).arg("--run-directory").arg(directory);
    match command.uid(uid).gid(uid).output() {
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            Some((output.status.code()?, String::from_utf8(printed).unwrap()))
        }
        Err(error) => {
            eprintln!("NOT TESTED, needs root to be several users: {error}");
            None
        }
    }
}

#[test]
fn each_user_asks_for_the_host_and_takes_back_only_what_they_asked() {
    let program =
        Program::copy(env!("CARGO_BIN_EXE_5spot-reclaim-agent"), &unique("agent"));
    let directory = std::env::temp_dir().join(unique("5spot-agent-run-"));
    RunDirectory::new(directory.clone()).prepare().unwrap();
    let run = |uid, words: &[&str]| run_as(uid, &program.path, &directory, words);
    let file = |uid: u32| directory.join(format!("owner/reclaim-{uid}"));
    let Some((code, printed)) = run(OWNER, &["reclaim", "--for", "4h"]) else {
        return;
    };
    // No agent runs.
    assert_eq!(code, 1, "{printed}");
    assert!(file(OWNER).exists());
    let (code, printed) = run(OTHER, &["return"]).unwrap();
    assert_eq!(code, 1, "{printed}");
    assert!(file(OWNER).exists());
    let (code, printed) = run(OTHER, &["status"]).unwrap();
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.contains("owner's switch  stands since "),
        "{printed}"
    );
    // Users are not named.
    assert!(!printed.contains(&OWNER.to_string()), "{printed}");
    let (code, printed) = run(OWNER, &["return"]).unwrap();
    assert_eq!(code, 0, "{printed}");
    assert!(!file(OWNER).exists());
    // Somebody else has taken the name: the owner is told, and nothing is left behind.
    fs::write(file(OWNER), "").unwrap();
    std::os::unix::fs::chown(file(OWNER), Some(OTHER), None).unwrap();
    let (code, printed) = run(OWNER, &["reclaim"]).unwrap();
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("may belong to another user"), "{printed}");
    let entries = fs::read_dir(directory.join("owner")).unwrap().count();
    assert_eq!(entries, 1);
    fs::remove_dir_all(&directory).unwrap();
}
