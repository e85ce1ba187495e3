use std::fs;
use std::os::unix::fs::MetadataExt as _;

use jiff::Timestamp;

use super::{End, reclaim, status, take_back};
use crate::opening::Opening;
use crate::proc::Proc;
use crate::run_directory::{Requested, RunDirectory, SignalState, State};
use crate::service::Installed;
use crate::signal::{Reading, Signal};
use crate::test_host::TestHost;

/// A run directory and a `/proc` with one process, which may be an agent.
struct Host {
    root: TestHost,
    directory: RunDirectory,
    uid: u32,
}

const AGENT: u32 = 40;

impl Host {
    fn new(name: &str) -> Self {
        let root = TestHost::new(&format!("switch-{name}"));
        let numbers = "S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0";
        root.write(
            &format!("proc/{AGENT}/stat"),
            &format!("{AGENT} (agent) {numbers}\n"),
        );
        Self {
            directory: RunDirectory::new(root.join("run")),
            uid: fs::metadata(&*root).unwrap().uid(),
            root,
        }
    }

    fn proc(&self) -> Proc {
        Proc::open(&self.root.join("proc")).unwrap()
    }

    fn reclaim(&self, end: End) -> String {
        let now = at("2026-11-27T09:00:00.987Z");
        self.root
            .printed(|out| reclaim(&self.directory, &self.proc(), end, now, out))
    }

    fn take_back(&self) -> String {
        self.root.printed(|out| take_back(&self.directory, out))
    }

    fn status(&self, now: &str) -> String {
        self.status_with(Installed::Absent, now)
    }

    fn status_with(&self, service: Installed, now: &str) -> String {
        self.root
            .printed(|out| status(&self.directory, &self.proc(), service, at(now), out))
    }

    fn publish(&self, state: &State) {
        self.directory.prepare().unwrap();
        self.directory.write(state).unwrap();
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn agent(started: u64) -> State {
    State {
        pid: AGENT,
        started,
        node: "worker-1".to_owned(),
        ..State::default()
    }
}

#[test]
fn a_reclaim_says_until_when_it_holds_and_how_to_end_it() {
    let host = Host::new("reclaim");
    host.publish(&agent(77));
    insta::assert_snapshot!(host.reclaim(End::Never), @"
    asked for this host until 5spot-reclaim-agent return
    exit code 0
    ");
    insta::assert_snapshot!(host.reclaim(End::After("4h".parse().unwrap())), @"
    asked for this host until 2026-11-27T13:00:00Z; 5spot-reclaim-agent return ends it earlier
    exit code 0
    ");
    insta::assert_snapshot!(host.reclaim(End::At(at("2026-11-27T18:00:00Z"))), @"
    asked for this host until 2026-11-27T18:00:00Z; 5spot-reclaim-agent return ends it earlier
    exit code 0
    ");
    let file = host.root.join(format!("run/owner/reclaim-{}", host.uid));
    assert_eq!(fs::read_to_string(file).unwrap(), "2026-11-27T18:00:00Z\n");
    insta::assert_snapshot!(host.take_back(), @"
    taken back; if the machine has left its cluster already, it returns as spec.reclaim.return says, or when its schedule is enabled again
    exit code 0
    ");
    insta::assert_snapshot!(host.take_back(), @"
    nothing to take back: you have not asked for this host
    exit code 1
    ");
}

#[test]
fn a_reclaim_that_nobody_reads_or_that_cannot_be_written_says_so() {
    let host = Host::new("refused");
    insta::assert_snapshot!(host.reclaim(End::Never), @"
    error: writing to DIR/run/owner: No such file or directory (os error 2); the agent creates it: start the agent with --run-directory
    exit code 2
    ");
    host.directory.prepare().unwrap();
    insta::assert_snapshot!(host.reclaim(End::Never), @"
    asked for this host until 5spot-reclaim-agent return
    no agent runs on this host: nothing happens until one starts
    exit code 1
    ");
    insta::assert_snapshot!(host.reclaim(End::At(at("2026-11-27T09:00:00Z"))), @"
    error: --until: 2026-11-27T09:00:00Z is not in the future; give a later time
    exit code 2
    ");
    let length = format!("{}s", i64::MAX).parse().unwrap();
    let refused = host.reclaim(End::After(length));
    assert!(refused.starts_with("error: --for: "), "{refused}");
    // Another process has the number of the agent now.
    host.publish(&agent(76));
    insta::assert_snapshot!(host.reclaim(End::Never), @"
    asked for this host until 5spot-reclaim-agent return
    no agent runs on this host: nothing happens until one starts
    exit code 1
    ");
}

#[test]
fn the_status_shows_every_signal_with_its_beginning_and_end() {
    let host = Host::new("status");
    let signal = |name: &str, reading| SignalState {
        name: name.to_owned(),
        note: (name == "login-sessions").then(|| "local sessions count".to_owned()),
        reading,
    };
    let quiet = State {
        signals: vec![
            signal("owner's switch", Reading::Absent),
            signal("login-sessions", Reading::Absent),
            signal(
                "load",
                Reading::Unreadable {
                    why: "no control group of pods".to_owned(),
                },
            ),
        ],
        ..agent(77)
    };
    host.publish(&quiet);
    insta::assert_snapshot!(host.status("2026-11-27T09:00:00Z"), @"
    agent           runs for Node worker-1
    owner's switch  no signal
    login-sessions  no signal (local sessions count)
    load            cannot be read: no control group of pods
    exit code 0
    ");
    let installed = host.status_with(Installed::AsWritten, "2026-11-27T09:00:00Z");
    assert!(
        installed.contains("\nservice         installed\n"),
        "{installed}"
    );
    let changed = host.status_with(Installed::Changed, "2026-11-27T09:00:00Z");
    assert!(
        changed
            .contains("\nservice         installed; its unit has been changed by hand\n"),
        "{changed}"
    );
    host.publish(&State {
        requested: Some(Requested {
            reason: "process-match: steam".to_owned(),
            at: "2026-11-27T09:00:01.123Z".to_owned(),
        }),
        opening: Some(Opening {
            at: at("2026-11-27T17:00:00Z"),
            until: Some(at("2026-11-28T06:00:00Z")),
        }),
        ..quiet.clone()
    });
    insta::assert_snapshot!(host.status("2026-11-27T09:00:00Z"), @"
    agent           runs for Node worker-1
    reclaim         requested at 2026-11-27T09:00:01.123Z (process-match: steam)
    lent next       from 2026-11-27T17:00:00Z until 2026-11-28T06:00:00Z
    owner's switch  no signal
    login-sessions  no signal (local sessions count)
    load            cannot be read: no control group of pods
    exit code 1
    ");
    host.publish(&State {
        signals: vec![signal(
            "owner's switch",
            Reading::Stands(Signal {
                reason: "owner: until 2026-11-27T13:00:00Z".to_owned(),
                since: Some(at("2026-11-27T09:00:00Z")),
                until: Some(at("2026-11-27T13:00:00Z")),
            }),
        )],
        ..agent(77)
    });
    insta::assert_snapshot!(host.status("2026-11-27T09:00:00Z"), @"
    agent           runs for Node worker-1
    owner's switch  stands since 2026-11-27T09:00:00Z until 2026-11-27T13:00:00Z
    exit code 1
    ");
}

#[test]
fn without_an_agent_the_status_shows_the_switch() {
    let host = Host::new("no-agent");
    insta::assert_snapshot!(host.status("2026-11-27T09:00:00Z"), @"
    agent           does not run with DIR/run
    owner's switch  no signal
    exit code 1
    ");
    host.directory.prepare().unwrap();
    host.reclaim(End::After("4h".parse().unwrap()));
    let status = host.status("2026-11-27T12:59:59Z");
    let line = status
        .lines()
        .find(|line| line.starts_with("owner"))
        .unwrap();
    assert!(line.starts_with("owner's switch  stands since "), "{line}");
    assert!(line.ends_with(" until 2026-11-27T13:00:00Z"), "{line}");
    insta::assert_snapshot!(host.status("2026-11-27T13:00:00Z"), @"
    agent           does not run with DIR/run
    owner's switch  no signal
    exit code 1
    ");
    fs::write(host.root.join("run/agent/state.json"), "{}").unwrap();
    insta::assert_snapshot!(host.status("2026-11-27T13:00:00Z"), @"
    error: reading DIR/run: missing field `pid` at line 1 column 2; use the version of the agent that runs
    exit code 2
    ");
}
