//! Checks that `5spot` prints what the README shows.

use std::fs;

use super::{ROOT, run};

/// Represents any number of lines that are not shown.
const ELLIPSIS: &str = "…";

/// A command of the README as one line, and its output in the README.
struct ReadmeCommand {
    command: String,
    lines: Vec<String>,
}

/// All commands of the README, in order.
fn readme_commands() -> Vec<ReadmeCommand> {
    let page = fs::read_to_string(format!("{ROOT}/README.md")).unwrap();
    // Joins a command with its continuation lines.
    let page = page.replace(" \\\n   ", "");
    let mut all: Vec<ReadmeCommand> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let (true, Some(command)) = (is_console, line.strip_prefix("$ ")) {
            let command = command.split("  #").next().unwrap_or(command);
            all.push(ReadmeCommand {
                command: command.trim().to_owned(),
                lines: Vec::new(),
            });
        } else if let (true, Some(last)) = (is_console, all.last_mut()) {
            last.lines.push(line.to_owned());
        }
    }
    all
}

/// The only command of the README that begins with this text.
fn only_command(start: &str) -> ReadmeCommand {
    let mut found = readme_commands()
        .into_iter()
        .filter(|it| it.command.starts_with(start));
    let one = found.next().unwrap_or_else(|| panic!("no {start}"));
    assert!(found.next().is_none(), "{start} is there twice");
    one
}

/// Asserts that the output has the shown lines in order, with other lines only at gaps.
fn assert_shows(printed: &str, shown: &ReadmeCommand) {
    let mut rest = printed.lines();
    let mut may_skip = false;
    for line in &shown.lines {
        if line == ELLIPSIS {
            may_skip = true;
            continue;
        }
        let is_there = if may_skip {
            rest.any(|it| it == line)
        } else {
            rest.next() == Some(line)
        };
        assert!(
            is_there,
            "{}: `{line}` is not where it should be in\n{printed}",
            shown.command
        );
        may_skip = false;
    }
    assert!(
        may_skip || rest.next().is_none(),
        "more is printed:\n{printed}"
    );
}

#[test]
fn the_evening_runs_as_shown() {
    let evening = only_command("cargo run -- dev --start");
    let (_, words) = evening.command.split_once("-- ").unwrap();
    let directory =
        std::env::temp_dir().join(format!("5spot-readme-{}", std::process::id()));
    let kubeconfig = directory.join("kubeconfig");
    // The transitions do not depend on the speed.
    let words = words.replace("--speed 600", "--speed 100000");
    let words = format!("{words} --kubeconfig {}", kubeconfig.display());
    let (printed, code) = run(&words);
    let _ = fs::remove_dir_all(directory);
    assert_eq!(code, Some(0), "{printed}");
    assert_shows(&printed, &evening);
}

#[test]
fn the_preview_looks_as_shown() {
    let preview = only_command("5spot preview");
    let words = preview.command.strip_prefix("5spot ").unwrap();
    let (printed, code) = run(words);
    assert_eq!(code, Some(0), "{printed}");
    assert_shows(&printed, &preview);
}

#[test]
fn the_refusal_is_the_one_that_validate_prints_too() {
    let refused = only_command("kubectl apply -f examples/");
    let file = refused.command.strip_prefix("kubectl apply").unwrap();
    let (printed, code) = run(&format!("validate{file}"));
    assert_eq!(code, Some(1), "{printed}");
    let (_, why) = refused.lines[0].split_once("is invalid: ").unwrap();
    assert!(printed.contains(why), "{why} is not in\n{printed}");
}
