use std::fs;

use clap::CommandFactory as _;

use super::argument::Args;
use super::{Outcome, perform};
use crate::test_host::TestHost;

/// A directory with the layout of `/proc`, and a configuration next to it.
struct FakeHost(TestHost);

impl FakeHost {
    fn new(name: &str, config: &str) -> Self {
        let fake = Self(TestHost::new(&format!("command-{name}")));
        let processes: [(u32, &str, &str, u32); 4] = [
            (2, "kthreadd", "", 2_129_984),
            (40, "steam", "/usr/games/steam\0--token=secret\0", 4_194_560),
            (
                41,
                "java",
                "/usr/bin/java\0-jar\0/opt/idea.jar\0",
                4_194_560,
            ),
            (42, "bash", "-bash\0", 4_194_560),
        ];
        for (pid, comm, cmdline, flags) in processes {
            let directory = fake.0.join("proc").join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("comm"), format!("{comm}\n")).unwrap();
            fs::write(directory.join("cmdline"), cmdline).unwrap();
            let stat = format!(
                "{pid} ({comm}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"
            );
            fs::write(directory.join("stat"), stat).unwrap();
        }
        fs::write(fake.0.join("reclaim.toml"), config).unwrap();
        fake
    }

    /// The output of a command line, or its error, with the directory replaced by DIR.
    fn run(&self, words: &[&str]) -> String {
        let root = self.0.join("proc");
        let config = self.0.join("reclaim.toml");
        let given = words.iter().map(|word| match *word {
            "reclaim.toml" => config.display().to_string(),
            word => word.to_owned(),
        });
        let own = ["--proc-root".to_owned(), root.display().to_string()];
        let root = (!words.contains(&"--proc-root")).then_some(own);
        let words = ["5spot-reclaim-agent".to_owned()]
            .into_iter()
            .chain(root.into_iter().flatten())
            .chain(given);
        let args = Args::read(words).unwrap();
        let mut out = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let outcome = runtime.block_on(perform(&args, &mut out));
        let text = match outcome {
            Ok(Outcome::Yes) => String::from_utf8(out).unwrap(),
            Ok(_) => {
                format!("{}exit code 1\n", String::from_utf8(out).unwrap())
            }
            Err(failure) => format!("error: {failure}\n"),
        };
        text.replace(&self.0.display().to_string(), "DIR")
    }
}

#[test]
fn the_help_says_what_the_agent_does_and_every_flag() {
    insta::assert_snapshot!(Args::command().term_width(90).render_long_help());
}

#[test]
fn a_dry_run_prints_matching_processes_without_their_arguments() {
    let config = "match_commands = [\"steam\", \"idea.jar\"]\n\
                  match_argv_substrings = [\"steam\", \"idea.jar\"]\n";
    let fake = FakeHost::new("dry-run", config);
    let printed = fake.run(&["--dry-run", "--config", "reclaim.toml"]);
    // The lines are in the order of the directory.
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @r#"
         40  steam  matches "steam" by comm
         41  java  matches "idea.jar" by command line
    2 processes match 2 patterns; nothing was written
    "#);
}

#[test]
fn a_dry_run_prints_the_signals_of_flags_and_configuration() {
    let fake = FakeHost::new("signals", "login_sessions = \"local\"\nload_above = 2.5\n");
    fs::create_dir_all(fake.0.join("run")).unwrap();
    fs::write(fake.0.join("run/in-use"), "").unwrap();
    fs::write(fake.0.join("proc/stat"), "").unwrap();
    let file = |name: &str| fake.0.join("run").join(name).display().to_string();
    let printed = fake.run(&[
        "--dry-run",
        "--config",
        "reclaim.toml",
        "--signal-file",
        &file("in-use"),
        "--signal-file",
        &file("locked"),
    ]);
    // The sessions are those of the machine that runs the test.
    let lines = printed
        .lines()
        .filter(|line| !line.starts_with("login-sessions"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    signal-file DIR/run/in-use: signal (signal-file: DIR/run/in-use)
    signal-file DIR/run/locked: no signal
    load: cannot be read: DIR/proc/stat: has no line `cpu`
    0 processes match 0 patterns; nothing was written
    ");
}

#[test]
fn a_flag_says_what_it_accepts() {
    let rows = [
        (
            ["--load-above", "none"],
            "must be a number of processors from 0.1 to 4096, not none",
        ),
        (
            ["--graphics-above=0", "--dry-run"],
            "must be a share of an engine from 0.01 to 16, not 0",
        ),
        (
            ["--load-above", "0"],
            "must be a number of processors from 0.1 to 4096, not 0",
        ),
        (
            ["--load-for", "2d"],
            "expected digits and a unit of s, m or h, such as '5m', found '2d'",
        ),
        (["--load-for", "1s"], "must be from 10s to 24h, not 1s"),
        (["--session-away", "locked"], "--login-sessions"),
        (
            ["notify", "--before=31m"],
            "must be from 1m to 30m, not 31m",
        ),
        (["notify", "--before=0s"], "must be from 1m to 30m, not 0s"),
        (
            ["--login-sessions", "remote"],
            "[possible values: off, local, all]",
        ),
    ];
    for (words, why) in rows {
        let words = ["5spot-reclaim-agent"].into_iter().chain(words);
        let refused = Args::read(words).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn the_unit_of_a_service_has_the_arguments_that_differ_from_their_defaults() {
    let fake = FakeHost::new("install", "");
    let given = [
        "install",
        "--dry-run",
        "--program",
        "/usr/local/bin/5spot-reclaim-agent",
        "--kubeconfig",
        "/etc/5spot/kubeconfig",
        "--node-name",
        "worker-1",
        "--proc-root",
        "/proc",
    ];
    let command = |more: &[&str]| {
        let printed = fake.run(&[&given[..], more].concat());
        let line = printed.lines().find(|line| line.starts_with("ExecStart="));
        line.map_or(printed.clone(), str::to_owned)
    };
    insta::assert_snapshot!(command(&[]), @"ExecStart=/usr/local/bin/5spot-reclaim-agent --kubeconfig %d/kubeconfig --run-directory /run/5spot --state-directory %S/5spot-reclaim-agent --node-name=worker-1");
    let all = [
        "--machine-id-path=/var/lib/machine-id",
        "--outside-containers",
        "--skip-host-id-check",
        "--skip-policy-check=true",
        "--signal-file=/run/a",
        "--signal-file=/run/b c",
        "--machine=team-a/desk",
        "--machine-kubeconfig=/etc/5spot/management",
        "--login-sessions=all",
        "--session-away=locked",
        "--load-above=2.5",
        "--load-for=10m",
        "--graphics-above",
        "--freeze-pods=false",
        "--cgroup-root=/host/cgroup",
        "--detection=scan",
        "--log-format=text",
        "-v",
    ];
    let unit = command(&all);
    insta::assert_snapshot!(unit, @r#"ExecStart=/usr/local/bin/5spot-reclaim-agent --kubeconfig %d/kubeconfig --run-directory /run/5spot --machine-kubeconfig %d/machine-kubeconfig --node-name=worker-1 --machine-id-path=/var/lib/machine-id --skip-host-id-check=true --skip-policy-check=true --outside-containers=true --signal-file=/run/a "--signal-file=/run/b c" --login-sessions=all --session-away=locked --load-above=2.5 --load-for=10m --graphics-above=0.3 --freeze-pods=false --cgroup-root=/host/cgroup --machine=team-a/desk --detection=scan --log-format=text --verbose"#);
    assert!(command(&["--freeze-for=5m"]).ends_with(" --freeze-for=5m"));
    let printed = fake.run(&[&given[..], &all].concat());
    let credentials = printed.lines().filter(|line| line.starts_with("LoadCred"));
    let credentials: Vec<&str> = credentials.collect();
    insta::assert_snapshot!(credentials.join("\n"), @r"
    LoadCredential=kubeconfig:/etc/5spot/kubeconfig
    LoadCredential=machine-kubeconfig:/etc/5spot/management
    ");
    insta::assert_snapshot!(command(&["--state-directory=/var/lib/x"]), @"error: --state-directory: is that of the service; leave it out");
    insta::assert_snapshot!(command(&["--run-directory=/run/other"]), @"error: --run-directory: is /run/5spot for a service; leave it out");
    insta::assert_snapshot!(command(&["--desktop"]), @"error: --desktop: needs --machine: it says when the host is lent; give the ScheduledMachine of this host");
    let printed = fake.run(&[&given[..], &all, &["--desktop"]].concat());
    let entry = "\n# /etc/xdg/autostart/5spot-reclaim-agent.desktop\n# Written by ";
    assert!(printed.contains(entry), "{printed}");
    insta::assert_snapshot!(
        fake.run(&["install", "--dry-run", "--node-name", "worker-1"]),
        @"error: --kubeconfig: is missing; give the file with which the agent reaches the cluster of its Node"
    );
}

#[test]
fn the_daemon_set_starts_the_agent_with_valid_arguments() {
    use fivespot_install::agent::{Detection, Matching, Settings, Signal};
    let settings = Settings {
        detection: Detection::Scan,
        matching: Matching::OutsideContainers,
        signals: [
            Signal::LoginSessions("local".to_owned()),
            Signal::SessionAway("locked".to_owned()),
            Signal::Load {
                above: "2.5".to_owned(),
                time: "10m".to_owned(),
            },
        ]
        .into(),
        ..Settings::default()
    };
    let pod = &settings.daemon_set()["spec"]["template"]["spec"];
    let words = pod["containers"][0]["args"].as_array().unwrap();
    let words = words.iter().map(|word| word.as_str().unwrap());
    let args = Args::read(["5spot-reclaim-agent"].into_iter().chain(words));
    let signals = args.unwrap().signals();
    assert_eq!(signals.sessions, crate::signal::Counted::Local);
    assert_eq!(signals.away, Some(crate::signal::Away::Locked));
    let load = signals.load.unwrap();
    assert_eq!((load.above, load.time.to_string().as_str()), (2.5, "10m"));
}

#[test]
fn a_dry_run_without_a_match_is_reported() {
    let fake = FakeHost::new("no-match", "match_commands = [\"chess\"]");
    insta::assert_snapshot!(
        fake.run(&["--dry-run", "--config", "reclaim.toml"]),
        @"0 processes match 1 pattern; nothing was written"
    );
}

#[test]
fn a_failure_is_reported_with_its_reason_and_remedy() {
    let fake = FakeHost::new("refused", "match_commands = [\"\"]");
    insta::assert_snapshot!(
        fake.run(&["--dry-run", "--config", "reclaim.toml"]),
        @"error: reading the configuration: match_commands[0]: must not be empty; correct it"
    );
    insta::assert_snapshot!(
        fake.run(&["--dry-run", "--config", "/nowhere/reclaim.toml"]),
        @"error: reading /nowhere/reclaim.toml: No such file or directory (os error 2); give a reclaim.toml with --config"
    );
    insta::assert_snapshot!(
        fake.run(&["--proc-root", "/nowhere/proc"]),
        @"error: reading /nowhere/proc: No such file or directory (os error 2); give the host's /proc with --proc-root"
    );
    insta::assert_snapshot!(
        fake.run(&["--node-name", ""]),
        @"error: --node-name: is missing; give the name of the Node of this host, or set NODE_NAME"
    );
    insta::assert_snapshot!(
        fake.run(&["--node-name", "worker-1", "--kubeconfig", "/nowhere/kubeconfig"]),
        @r#"error: reading the kubeconfig /nowhere/kubeconfig: No such file or directory (os error 2); set $KUBECONFIG or --kubeconfig; without a cluster, run `5spot dev`, which writes one"#
    );
}

#[test]
fn a_malformed_kubeconfig_is_an_error_that_shows_nothing_of_it() {
    let fake = FakeHost::new("malformed", "");
    let path = fake.0.join("kubeconfig");
    let user = "users:\n- name: desk\n  user:\n    token:";
    for (text, place) in [
        (
            format!("{user} s3cret\n   - s3cret: ["),
            " at line 5, column 4",
        ),
        (format!("{user} [s3cret]\n"), " at line 4, column 12"),
        (format!("{user} \"s3cret\n"), ""),
        ("s3cret".to_owned(), ""),
        ("users: s3cret".to_owned(), ""),
    ] {
        fs::write(&path, &text).unwrap();
        let path = path.display().to_string();
        let given = ["--node-name", "worker-1", "--kubeconfig", &path];
        let printed = fake.run(&given);
        assert!(!printed.contains("s3cret"), "{text}: {printed}");
        let wanted = format!("error: loading the kubeconfig: it is malformed{place}");
        assert!(printed.starts_with(&wanted), "{text}: {printed}");
    }
}

#[test]
fn the_machine_id_check_is_controlled_by_a_flag_with_or_without_value() {
    let check = |words: &[&str]| {
        let words = ["5spot-reclaim-agent"].iter().chain(words);
        Args::read(words).unwrap().skip_host_id_check
    };
    assert!(!check(&[]));
    assert!(check(&["--skip-host-id-check"]));
    assert!(check(&["--skip-host-id-check=true"]));
    assert!(!check(&["--skip-host-id-check=false"]));
    assert!(!check(&["--skip-host-id-check=false", "doctor"]));
}

#[test]
fn the_doctor_rejects_a_proc_without_kernel_threads() {
    let fake = FakeHost::new("doctor", "");
    fs::remove_dir_all(fake.0.join("proc/2")).unwrap();
    let printed = fake.run(&["doctor"]);
    // The first line depends on the kernel that runs the test.
    let lines: Vec<&str> = printed.lines().skip(1).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    /proc           no  3 processes and no kernel threads: this is not the host's /proc; set hostPID: true, or give it with --proc-root
    detection: none: the host's /proc is required
    exit code 1
    ");
}

#[test]
fn the_doctor_says_that_the_kernel_hides_processes_of_other_users() {
    let fake = FakeHost::new("hidepid", "");
    let root = fake.0.join("proc").display().to_string();
    fs::create_dir_all(fake.0.join("proc/self")).unwrap();
    let printed = |lines: &str| {
        let lines = lines.replace("ROOT", &root);
        fs::write(fake.0.join("proc/self/mountinfo"), lines).unwrap();
        let printed = fake.run(&["doctor"]);
        let mut lines = printed.lines().map(str::to_owned);
        let line = lines.find(|line| line.starts_with("other users"));
        (line, printed.ends_with("exit code 1\n"))
    };
    let mount = "22 28 0:21 / ROOT rw,relatime shared:5 - proc proc rw";
    for is_seen in [
        "",
        "no mount",
        mount,
        &format!("{mount},hidepid=0"),
        &format!("{mount},hidepid=off"),
        "22 28 0:21 / /elsewhere rw - proc proc rw,hidepid=2",
        // What is mounted last is what is seen.
        &format!("{mount},hidepid=2\n{mount}"),
    ] {
        assert_eq!(printed(is_seen), (None, false), "{is_seen}");
    }
    let (line, is_no) = printed(&format!("{mount}\n{mount},hidepid=invisible,gid=4\n"));
    assert!(is_no);
    insta::assert_snapshot!(line.unwrap(), @"other users     no  DIR/proc is mounted with hidepid=invisible: an agent that is not root does not see the processes of other users, and they never match; mount it without hidepid");
}
