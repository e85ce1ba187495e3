//! The program, as its users start it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

fn kubemu(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubemu"));
    command.args(words);
    command
}

#[test]
fn an_expression_that_is_false_is_printed_and_exits_with_1() {
    let output = kubemu(&["cel", "1 == 2"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("false\ntype bool"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_error_has_a_remedy_and_exits_with_2() {
    let output = kubemu(&["serve", "--apply", "/nowhere"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: reading /nowhere: "), "{error}");
    assert!(
        error.contains("; give an existing file or directory"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_server_writes_its_kubeconfig_and_ends_with_the_reader_of_its_output() {
    let directory = std::env::temp_dir().join(format!("kubemu-{}", std::process::id()));
    let kubeconfig = directory.join("kubeconfig");
    let mut serving = kubemu(&["serve", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.strip_prefix("API server at ").unwrap();
    let address = address.split(',').next().unwrap().to_owned();
    assert!(
        lines
            .next()
            .unwrap()
            .unwrap()
            .starts_with("export KUBECONFIG=")
    );
    let written = fs::read_to_string(&kubeconfig).unwrap();
    assert!(written.contains(&address), "{address}: {written}");
    drop(lines);
    assert!(serving.wait().unwrap().success());
    fs::remove_dir_all(directory).unwrap();
}
