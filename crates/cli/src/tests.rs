use std::fs;
use std::path::PathBuf;

use clap::Parser as _;

use super::{Cli, Command, Failure, Outcome, run};

/// A temporary directory with files; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &[u8])]) -> Self {
        let path =
            std::env::temp_dir().join(format!("5spot-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (file, bytes) in files {
            fs::write(path.join(file), bytes).unwrap();
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(line: &str) -> Command {
    let words = line.split_whitespace();
    let cli = Cli::try_parse_from(["5spot"].into_iter().chain(words)).unwrap();
    cli.command
}

fn run_line(line: &str) -> Result<Outcome, Failure> {
    run(command(line), &mut Vec::new())
}

#[test]
fn every_failure_has_a_remedy() {
    let folder = Folder::with(
        "words",
        &[
            ("open.yaml", b"a: ["),
            ("bytes.yaml", b"\xff\xfe"),
            ("empty.yaml", b""),
            (
                "config.yaml",
                b"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}",
            ),
            (
                "machine.yaml",
                b"{apiVersion: 5spot.finos.org/v1alpha1, kind: ScheduledMachine}",
            ),
        ],
    );
    let lines = "\
        validate -f @/nowhere.yaml
        preview -f @/open.yaml
        preview -f @/bytes.yaml
        validate -f @/empty.yaml
        validate -f @/config.yaml -o github
        validate -f @/machine.yaml --operation update
        validate -f @/machine.yaml --namespace-object @/config.yaml
        convert -f @/nowhere.yaml
        convert -f @/open.yaml
        convert -f @
        cel 1/0
        cel 1+
        cel self.a --data @/nowhere.yaml
        cel self.a --data @/empty.yaml
        cel self.a --schema @/config.yaml
        preview -f @/config.yaml
        preview -f @/machine.yaml
        preview -f @/machine.yaml --from 2026-01-02 --to 2026-01-01
        plan -f @/nowhere.yaml
        plan -f @/config.yaml
        plan -f @/machine.yaml
        preview worker --kubeconfig @/nowhere
        status --kubeconfig @/nowhere
        explain worker --kubeconfig @/nowhere
        explain worker --kubeconfig @/config.yaml
        explain a b
        explain rule SM000
        generate crd -o @/empty.yaml/deploy
        generate crd --check -o @/empty.yaml
        controller --namespaces A
        webhook --validation-actions Nonsense";
    for line in lines.lines() {
        let line = line.trim().replace('@', folder.0.to_str().unwrap());
        let failure = match run_line(&line) {
            Err(failure) => failure.to_string(),
            Ok(outcome) => panic!("{line}: {outcome:?}"),
        };
        let first = failure.lines().next().unwrap();
        assert!(first.contains("; "), "{line}: {failure}");
    }
}

/// A kubeconfig of a server that does not run.
const UNREACHABLE: &[u8] = b"\
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {token: t}}]
";

#[test]
fn every_command_names_the_address_and_the_cause_of_an_unreachable_cluster() {
    let folder = Folder::with("unreachable", &[("kubeconfig", UNREACHABLE)]);
    let lines = "\
        check
        explain a
        explain a --timeline
        hold a --for 2h
        overrides
        overrides --end a
        plan -A
        preview -A
        preview a
        report
        run a --for 2h
        skip a
        status
        status --watch
        stop a --for 2h
        uninstall";
    for line in lines.lines().map(str::trim) {
        let path = folder.0.to_str().unwrap();
        let failure = run_line(&format!("{line} --kubeconfig {path}/kubeconfig"));
        let failure = failure.unwrap_err().to_string();
        let begin = "cannot reach https://127.0.0.1:1 (context x): Connection refused";
        assert!(failure.starts_with(begin), "{line}: {failure}");
        let has_files = failure.ends_with(", or give files with -f");
        let takes_files = line.starts_with("preview") || line.starts_with("plan");
        assert_eq!(has_files, takes_files, "{line}: {failure}");
    }
}

#[test]
fn a_plugin_is_called_as_users_type_it() {
    for (program, name) in [
        ("/usr/bin/kubectl-5spot", "kubectl 5spot"),
        ("kubectl-5spot.exe", "kubectl 5spot"),
        ("target/debug/5spot", "5spot"),
    ] {
        assert_eq!(super::called_as(Some(program.into())), name);
    }
}

#[test]
fn explain_rule_lists_rules_and_is_not_a_machine_name() {
    let mut out = Vec::new();
    let outcome = run(command("explain rule --kubeconfig /nowhere"), &mut out).unwrap();
    assert_eq!(outcome, Outcome::Yes);
    let listed = String::from_utf8(out).unwrap();
    assert!(
        listed.contains("\nSM002  spec.") && listed.contains("\nSL003  lint: "),
        "{listed}"
    );
    for (id, expected) in [("sm2", "SM002"), ("SL003", "SL003"), ("sl003", "SL003")] {
        let mut out = Vec::new();
        run(command(&format!("explain rule {id}")), &mut out).unwrap();
        let printed = String::from_utf8(out).unwrap();
        assert!(printed.starts_with(expected), "{printed}");
    }
    // With a namespace, `rule` is the name of a machine.
    let failure = run_line("explain rule -n default --kubeconfig /nowhere").unwrap_err();
    assert!(
        failure
            .to_string()
            .starts_with("reading the kubeconfig /nowhere: "),
        "{failure}"
    );
}
