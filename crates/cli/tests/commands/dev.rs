//! `5spot dev` as a script uses it: its output, the order of the output, and its exit codes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/business-hours.yaml"
);
const WORKER: &str = "ScheduledMachine/business-hours-worker";

/// A temporary directory for each test; removed when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("5spot-dev-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn dev(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
        command
            .current_dir(&self.0)
            .arg("dev")
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs the example from `start` at `speed` until its worker is in `phase`.
    fn run_example(
        &self,
        start: &str,
        speed: &str,
        phase: &str,
        timeout: &str,
    ) -> Output {
        let until = format!("{WORKER}={phase}");
        self.run(&[
            "--start",
            start,
            "--speed",
            speed,
            "--apply",
            EXAMPLE,
            "--until",
            &until,
            "--timeout",
            timeout,
        ])
    }

    fn run(&self, args: &[&str]) -> Output {
        self.dev(args).output().unwrap()
    }

    /// Starts the server, waits until all manifests are applied, and returns it with its
    /// kubeconfig.
    fn start(&self, args: &[&str]) -> (Child, PathBuf) {
        let mut dev = self.dev(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(dev.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with("applied ")), "it ended");
        // The process ends if its output is not read.
        std::thread::spawn(move || lines.for_each(drop));
        (dev, self.0.join(".5spot/kubeconfig"))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The output of `5spot check` for a server.
fn check(kubeconfig: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
    command.arg("check").arg("--kubeconfig").arg(kubeconfig);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Asserts that the output has lines with these texts in this order.
fn assert_order(out: &str, wanted: &[&str]) {
    let mut lines = out.lines();
    for part in wanted {
        assert!(
            lines.any(|line| line.contains(part)),
            "`{part}` is not where it should be in\n{out}"
        );
    }
}

#[test]
fn an_evening_runs_in_order_and_ends_before_its_deadline() {
    let dir = TempDir::new();
    let ended = dir.run_example("2026-03-06T21:30:00Z", "100000", "Inactive", "120s");
    let out = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{out}{}", text(&ended.stderr));
    assert_order(
        out,
        &[
            "Pending -> Active",
            "2026-03-06T23:00:00Z  default/business-hours-worker  Active -> ShuttingDown",
            "cordoned Node/business-hours-worker",
            "evicted Pod/shop-",
            "was refused: Cannot evict pod as it would violate the pod's disruption budget.",
            "evicted Pod/shop-",
            "deleted Machine/business-hours-worker",
            "ShuttingDown -> Inactive",
            "reached",
        ],
    );
    let deleted = out
        .lines()
        .find(|line| line.contains("deleted Machine/"))
        .unwrap();
    assert!(deleted < "2026-03-06T23:05:00Z", "{deleted}");
}

/// The path of an example.
fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_market_is_left_at_its_early_close_and_not_joined_on_its_holiday() {
    let dir = TempDir::new();
    // Thursday is a holiday; on Friday it closes at 13:00.
    let ended = dir.run(&[
        "--start",
        "2026-11-26T13:00:00Z",
        "--speed",
        "100000",
        "--apply",
        &example("shared-schedules"),
        "--until",
        "ScheduledMachine/market-worker=ShuttingDown",
        "--timeout",
        "120s",
    ]);
    let out = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{out}{}", text(&ended.stderr));
    assert_order(
        out,
        &[
            "2026-11-27T14:00:00Z  default/market-worker  Inactive -> Pending",
            "default/market-worker  Pending -> Active",
            "2026-11-27T18:00:00Z  default/market-worker  Active -> ShuttingDown",
        ],
    );
    let on_holiday =
        |line: &&str| line.starts_with("2026-11-26") && line.contains("market");
    let joined = out.lines().filter(on_holiday);
    assert!(
        joined.into_iter().all(|line| !line.contains("Pending")),
        "{out}"
    );
}

#[test]
fn the_phases_of_a_capacity_are_printed_at_the_instants_of_its_schedule() {
    let dir = TempDir::new();
    let ended = dir.run(&[
        "--start",
        "2026-03-06T16:30:00Z",
        "--speed",
        "100000",
        "--apply",
        &example("capacity/web.yaml"),
        "--until",
        "ScheduledCapacity/web=Inactive",
        "--timeout",
        "60s",
    ]);
    let out = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{out}{}", text(&ended.stderr));
    assert_order(
        out,
        &[
            "default/scap/web  -> Active  Deployment web has the active values until 2026-03-06T17:00:00Z",
            "2026-03-06T17:00:00Z  default/scap/web  Active -> Inactive  Deployment web has the inactive",
            "2026-03-06T17:00:00Z  reached",
        ],
    );
}

#[test]
fn a_window_opens_on_the_second_after_the_clocks_have_changed() {
    let dir = TempDir::new();
    let ended = dir.run_example("2026-03-08T12:00:00Z", "100000", "Active", "60s");
    let out = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{out}");
    assert_order(
        out,
        &[
            "2026-03-09T13:00:00Z  default/business-hours-worker  Inactive -> Pending",
            "-> Active",
        ],
    );
}

#[test]
fn a_goal_that_holds_from_the_start_ends_the_run_at_once() {
    let dir = TempDir::new();
    let ended = dir.run_example("2026-03-08T12:00:00Z", "1", "Inactive", "60s");
    assert_eq!(ended.status.code(), Some(0));
    assert_order(text(&ended.stdout), &["2026-03-08T12:00:00Z  reached"]);
}

#[test]
fn a_goal_that_is_not_reached_in_time_is_exit_code_1_with_the_goal() {
    let dir = TempDir::new();
    let ended = dir.run_example("2026-03-08T12:00:00Z", "1", "Active", "1s");
    assert_eq!(ended.status.code(), Some(1));
    let out = text(&ended.stdout);
    let last = out.lines().last().unwrap();
    assert!(
        last.ends_with(
            "not reached in time: ScheduledMachine/business-hours-worker=Active (is Inactive)"
        ),
        "{out}"
    );
}

#[test]
fn invalid_arguments_are_exit_code_2_with_a_remedy() {
    let dir = TempDir::new();
    for (args, wanted) in [
        (&["--listen", "0.0.0.0:0"][..], "loopback"),
        (
            &["--apply", "nowhere.yaml"],
            "error: reading nowhere.yaml: ",
        ),
        (
            &["--until", "Nonsense/a=b", "--timeout", "1s"],
            "does not serve the kind Nonsense",
        ),
        (&["--until", "Nonsense"], "KIND/NAME=PHASE"),
        (
            &["--disable-admission-plugins", "Nonsense"],
            "NamespaceLifecycle",
        ),
        (&["--speed", "0"], "1..=100000"),
        (&["--timeout", "1s"], "--until"),
    ] {
        let ended = dir.run(args);
        let error = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(wanted), "{args:?}: {error}");
    }
}

#[test]
fn errors_at_start_have_a_remedy() {
    let dir = TempDir::new();
    let machine = "apiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\n";
    for (file, text) in [
        (
            "refused.yaml",
            format!("{machine}metadata: {{name: a}}\nspec: {{}}\n"),
        ),
        ("nameless.yaml", machine.to_owned()),
        ("misspelt.yaml", machine.replace("Machine", "Machin")),
    ] {
        fs::write(dir.0.join(file), text).unwrap();
    }
    for args in [
        ["--apply", "nowhere.yaml"],
        ["--apply", "refused.yaml"],
        ["--apply", "nameless.yaml"],
        ["--apply", "misspelt.yaml"],
        ["--data-dir", "refused.yaml"],
        ["--until", "SubjectAccessReview/a=b"],
        ["--disable-admission-plugins", "Nonsense"],
        ["--kubeconfig", "/proc/kubeconfig"],
        ["--audit-log", "/proc/audit"],
    ] {
        let ended = dir.run(&args);
        let error = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {error}");
        let line = error.lines().find(|line| line.starts_with("error: "));
        assert!(
            line.is_some_and(|line| line.contains("; ")),
            "{args:?}: {error}"
        );
    }
}

#[test]
fn without_the_simulator_only_served_kinds_of_the_examples_are_applied() {
    let dir = TempDir::new();
    let mut running = dir
        .dev(&["--no-simulator", "--no-controller"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let printed: Vec<String> = lines
        .map(Result::unwrap)
        .skip_while(|line| !line.starts_with("not applied"))
        .take(2)
        .collect();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(
        printed,
        [
            "not applied, because their kinds are not served: Cluster/production-cluster, \
             Cluster/demo-cluster",
            "applied Secret/business-hours-worker-ssh, ScheduledMachine/business-hours-worker, \
             Pod/shop-0, Pod/shop-1, PodDisruptionBudget/shop, Secret/every-other-minute-ssh, \
             ScheduledMachine/every-other-minute",
        ]
    );
}

/// Sends SIGTERM after all manifests are applied. Returns the exit code and the last line of
/// output.
fn terminated(dir: &TempDir, args: &[&str]) -> (Option<i32>, String) {
    let mut running = dir.dev(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(running.stdout.take().unwrap()).lines();
    let applied = out
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.starts_with("applied "));
    assert!(applied.is_some());
    let killed = Command::new("kill")
        .arg(running.id().to_string())
        .status()
        .expect("kill is on every system");
    assert!(killed.success());
    let code = running.wait().unwrap().code();
    (code, out.map(Result::unwrap).last().unwrap())
}

#[test]
fn a_termination_signal_is_a_clean_exit() {
    let dir = TempDir::new();
    let (code, last) = terminated(&dir, &["--apply", EXAMPLE]);
    assert_eq!(code, Some(0), "{last}");
    assert!(last.ends_with("stopped"), "{last}");
    // It would refer to a server that has ended.
    assert!(!dir.0.join(".5spot/kubeconfig").exists());
}

#[test]
fn a_termination_signal_before_the_goal_is_exit_code_1_with_the_goal() {
    let dir = TempDir::new();
    let goal = "ScheduledMachine/missing=Active";
    let (code, last) = terminated(&dir, &["--apply", EXAMPLE, "--until", goal]);
    assert_eq!(code, Some(1), "{last}");
    let missing = format!("stopped before: {goal} (has no phase)");
    assert!(last.ends_with(&missing), "{last}");
}

#[test]
fn explain_preview_and_plan_count_from_the_time_of_the_server() {
    let dir = TempDir::new();
    let mut running = dir
        .dev(&["--start", "2026-03-06T15:00:00Z", "--speed", "1"])
        .args(["--apply", EXAMPLE])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let applied = lines.find(|line| line.as_ref().unwrap().starts_with("applied "));
    let run_command = |command: [&str; 2]| {
        let output = Command::new(env!("CARGO_BIN_EXE_5spot"))
            .current_dir(&dir.0)
            .args(command)
            .args(["--kubeconfig", ".5spot/kubeconfig"])
            .output()
            .unwrap();
        text(&output.stdout).to_owned() + text(&output.stderr)
    };
    let outputs = [
        run_command(["explain", "business-hours-worker"]),
        run_command(["preview", "business-hours-worker"]),
        run_command(["plan", "-A"]),
    ];
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(applied.is_some());
    let begin = "default/business-hours-worker: ";
    assert!(outputs[0].starts_with(begin), "{}", outputs[0]);
    let window = "the window is open until 2026-03-06T23:00:00Z";
    assert!(outputs[0].contains(window), "{}", outputs[0]);
    assert!(
        !outputs[0].contains("with the objects read at"),
        "{}",
        outputs[0]
    );
    let from = "From 2026-03-06T15:0";
    assert!(outputs[1].contains(from), "{}", outputs[1]);
    let week = "All 5 openings from 2026-03-06T15:0";
    assert!(outputs[2].starts_with(week), "{}", outputs[2]);
}

#[test]
fn check_reports_no_problem_of_a_dev_server() {
    let dir = TempDir::new();
    let (mut dev, kubeconfig) = dir.start(&[]);
    let checked = check(&kubeconfig);
    dev.kill().unwrap();
    dev.wait().unwrap();
    let out = text(&checked.stdout);
    assert!(out.ends_with("No problems found.\n"), "{out}");
    assert_eq!(checked.status.code(), Some(0));
}

#[test]
fn a_dev_server_has_the_roles_that_people_are_given() {
    let dir = TempDir::new();
    let (mut dev, kubeconfig) = dir.start(&[]);
    let mut uninstall = Command::new(env!("CARGO_BIN_EXE_5spot"));
    uninstall.args(["uninstall", "--dry-run", "--kubeconfig"]);
    let listed = uninstall.arg(kubeconfig).output().unwrap();
    dev.kill().unwrap();
    dev.wait().unwrap();
    let out = text(&listed.stdout);
    for role in ["5spot-view", "5spot-edit", "5spot-override-editor"] {
        assert!(out.contains(&format!("ClusterRole {role}\n")), "{out}");
    }
}

#[test]
fn check_reports_a_dev_server_without_an_operator() {
    let dir = TempDir::new();
    let data = dir.0.join("data");
    let data = ["--data-dir", data.to_str().unwrap()];
    // The Lease of an operator of an earlier run does not count.
    for (more, wanted) in [
        (&[][..], "an operator holds a Lease"),
        (&["--no-controller"], "no operator holds a Lease"),
    ] {
        let (mut dev, kubeconfig) = dir.start(&[&data[..], more].concat());
        let checked = check(&kubeconfig);
        dev.kill().unwrap();
        dev.wait().unwrap();
        let out = text(&checked.stdout);
        assert!(out.contains(wanted), "{more:?}: {out}");
    }
}

/// Starts a command, reads its output up to a line that begins with `last`, and closes the output.
/// Returns its exit code. Panics if it has not ended after a minute.
fn exit_code_after(mut command: Command, last: &str) -> i32 {
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let is_printed = lines.any(|line| line.is_ok_and(|line| line.starts_with(last)));
    drop(lines);
    assert!(is_printed, "{command:?} ended before {last}");
    let id = running.id().to_string();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(running.wait()));
    let status = end.recv_timeout(Duration::from_mins(1));
    if status.is_err() {
        Command::new("kill").arg(id).status().unwrap();
    }
    status.unwrap().unwrap().code().unwrap()
}

#[test]
fn a_command_that_has_nothing_to_print_ends_when_its_output_is_closed() {
    let dir = TempDir::new();
    // After the last of these lines, dev prints nothing more.
    let quiet = ["--no-controller"];
    assert_eq!(exit_code_after(dir.dev(&quiet), "applied "), 0);
    let (mut dev, kubeconfig) = dir.start(&quiet);
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
        command.args(args).stdin(Stdio::null());
        command
    };
    let server = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let own = dir.0.join("own");
    for (args, last) in [
        (
            &["status", "-A", "--watch", server[0], server[1]][..],
            "default ",
        ),
        (&["dashboard", "-A", server[0], server[1]], "dashboard at "),
        (
            &["apiserver", server[0], own.to_str().unwrap()],
            "export KUBECONFIG=",
        ),
    ] {
        assert_eq!(exit_code_after(command(args), last), 0, "{args:?}");
    }
    dev.kill().unwrap();
    dev.wait().unwrap();
}

#[test]
fn versions_without_admission_policies_are_started_with_their_own_manifests() {
    for version in ["1.26", "1.27", "1.28", "1.29"] {
        let dir = TempDir::new();
        let ended = dir.run(&[
            "--kube-version",
            version,
            "--start",
            "2026-03-06T21:30:00Z",
            "--speed",
            "100000",
            "--apply",
            EXAMPLE,
            "--until",
            "ScheduledMachine/business-hours-worker=Active",
            "--timeout",
            "120s",
        ]);
        let out = text(&ended.stdout);
        assert_eq!(ended.status.code(), Some(0), "{out}{}", text(&ended.stderr));
        let note = format!("Kubernetes {version} has no admission policies by default");
        assert_eq!(out.matches(&note).count(), 1, "{out}");
    }
}
