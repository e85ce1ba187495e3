use std::fs;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{Ended, Hold, HoldSettings, Holder, PATIENCE, PodGroups, Reach};
use crate::test_host::TestHost;

const GRACE: Duration = Duration::from_mins(1);
const FREEZE: &str = "groups/kubepods.slice/cgroup.freeze";
const KILL: &str = "groups/kubepods.slice/cgroup.kill";

/// A played control group of pods, and the holder of its agent.
struct Desk {
    host: TestHost,
    holder: Holder,
    start: Instant,
}

fn settings(host: &TestHost) -> HoldSettings {
    HoldSettings {
        pods: PodGroups::new(host.join("groups")),
        grace: GRACE,
        state: Some(host.join("state")),
    }
}

fn at(passed: Duration) -> Timestamp {
    let start: Timestamp = "2026-03-06T22:50:00Z".parse().unwrap();
    start + SignedDuration::try_from(passed).unwrap()
}

impl Desk {
    fn new(name: &str) -> Self {
        let host = TestHost::new(&format!("hold-{name}"));
        host.write(FREEZE, "0\n");
        host.write(KILL, "");
        Self {
            holder: Holder::start(settings(&host), at(Duration::ZERO)),
            host,
            start: Instant::now(),
        }
    }

    /// Decides so long after the start; the first failure was then.
    fn update(&mut self, asks: Option<&str>, has_failed: bool, passed: Duration) {
        let mut reach = Reach::default();
        let ended = if has_failed {
            Ended::Failed
        } else {
            Ended::Answered
        };
        reach.end(self.start, ended);
        let instant = self.start + passed;
        self.holder.update(asks, reach, instant, at(passed));
    }

    /// What is written to the two files.
    fn written(&self) -> (String, String) {
        let read = |path: &str| fs::read_to_string(self.host.join(path)).unwrap();
        let freeze = read(FREEZE).trim().to_owned();
        (freeze, read(KILL))
    }

    fn is(&self, freeze: &str, kill: &str) {
        assert_eq!(self.written(), (freeze.to_owned(), kill.to_owned()));
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_server_is_silent_at_once_if_it_refuses_and_after_a_moment_if_it_hangs() {
    let now = Instant::now();
    let mut reach = Reach::default();
    assert_eq!(reach.silent_from(), None);
    reach.send(now, false);
    assert_eq!(reach.silent_from(), Some(now + PATIENCE));
    reach.end(now, Ended::Failed);
    assert_eq!(reach.silent_from(), Some(now));
    // A further attempt does not let pods run for a moment.
    reach.send(now + seconds(1), true);
    assert_eq!(reach.silent_from(), Some(now));
    reach.end(now + PATIENCE, Ended::Answered);
    assert_eq!(reach.silent_from(), None);
    // A failure that nobody has waited for is forgotten.
    reach.end(now, Ended::Failed);
    reach.send(now + seconds(9), false);
    assert_eq!(reach.silent_from(), Some(now + seconds(9) + PATIENCE));
}

#[test]
fn a_server_that_took_long_may_take_long_again_up_to_the_time_of_a_request() {
    let now = Instant::now();
    for (took, patience) in [(0, 1000), (400, 1000), (1500, 3000), (9000, 5000)] {
        let mut reach = Reach::default();
        reach.send(now, false);
        let answered = now + Duration::from_millis(took);
        reach.end(answered, Ended::Answered);
        reach.send(answered, false);
        let silent = answered + Duration::from_millis(patience);
        assert_eq!(reach.silent_from(), Some(silent), "{took} ms");
    }
}

#[test]
fn what_was_done_is_told_only_if_a_request_has_failed_or_pods_were_ended() {
    let mut desk = Desk::new("unsure");
    let mut reach = Reach::default();
    reach.send(desk.start, false);
    let update = |desk: &mut Desk, reach, passed| {
        let instant = desk.start + passed;
        desk.holder
            .update(Some("owner"), reach, instant, at(passed));
    };
    update(&mut desk, reach, PATIENCE);
    desk.is("1", "");
    // The request was not waited for any longer, and the next one is.
    reach.end(desk.start + PATIENCE, Ended::GivenUp);
    reach.send(desk.start + PATIENCE, true);
    update(&mut desk, reach, seconds(2));
    desk.is("1", "");
    assert_eq!(desk.holder.account(), None);
    let mut answered = reach;
    answered.end(desk.start + seconds(3), Ended::Answered);
    update(&mut desk, answered, seconds(3));
    desk.is("0", "");
    assert_eq!(desk.holder.account(), None);
    let frozen = "(no API server answered: pods frozen at 2026-03-06T22:50:04.000Z";
    // Another time it fails.
    update(&mut desk, reach, seconds(4));
    desk.is("1", "");
    let mut failed = reach;
    failed.end(desk.start + seconds(5), Ended::Failed);
    update(&mut desk, failed, seconds(5));
    assert_eq!(desk.holder.account(), Some(format!("{frozen})")));
    assert!(desk.host.join("state/held.json").exists());
    let account = desk.holder.account().unwrap();
    update(&mut desk, answered, seconds(6));
    desk.holder.reported(&account);
    assert_eq!(desk.holder.account(), None);
    // Or it ends too late.
    update(&mut desk, reach, seconds(7));
    update(&mut desk, reach, seconds(67));
    desk.is("1", "1");
    update(&mut desk, answered, seconds(68));
    let account = desk.holder.account().unwrap();
    assert!(
        account.contains("ended at 2026-03-06T22:51:07"),
        "{account}"
    );
}

#[test]
fn frozen_pods_of_which_no_record_was_kept_go_on_or_are_frozen_since_the_start() {
    let mut desk = Desk::new("no-record");
    desk.host.write(FREEZE, "1\n");
    let restart = |desk: &mut Desk| {
        desk.holder = Holder::start(settings(&desk.host), at(seconds(0)));
        desk.start = Instant::now();
        assert!(desk.holder.is_holding());
        assert_eq!(desk.holder.account(), None);
    };
    restart(&mut desk);
    desk.update(None, false, seconds(0));
    desk.is("0", "");
    desk.host.write(FREEZE, "1\n");
    restart(&mut desk);
    desk.update(Some("owner"), true, seconds(1));
    desk.update(Some("owner"), true, seconds(58));
    desk.is("1", "");
    let account = desk.holder.account().unwrap();
    assert!(
        account.ends_with("frozen at 2026-03-06T22:50:00.000Z)"),
        "{account}"
    );
    desk.update(Some("owner"), true, seconds(61));
    desk.is("1", "1");
}

#[test]
fn of_two_groups_of_pods_none_stays_frozen_if_one_cannot_be() {
    const OTHER: &str = "groups/kubepods/cgroup.freeze";
    let mut desk = Desk::new("two-groups");
    fs::create_dir_all(desk.host.join(OTHER)).unwrap();
    desk.update(Some("owner"), true, seconds(0));
    desk.is("0", "");
    assert_eq!(desk.holder.hold, Hold::Free);
    assert_eq!(desk.holder.account(), None);
    let error = desk.holder.error.clone().unwrap();
    assert!(error.contains("kubepods/cgroup.freeze"), "{error}");
    // Now both can be, and only the second one can go on.
    fs::remove_dir(desk.host.join(OTHER)).unwrap();
    desk.host.write(OTHER, "0");
    desk.update(Some("owner"), true, seconds(1));
    desk.is("1", "");
    desk.host.remove(FREEZE);
    fs::create_dir(desk.host.join(FREEZE)).unwrap();
    desk.update(None, true, seconds(2));
    assert_eq!(fs::read_to_string(desk.host.join(OTHER)).unwrap(), "0");
    assert!(desk.holder.is_holding());
    fs::remove_dir(desk.host.join(FREEZE)).unwrap();
    desk.host.write(FREEZE, "1");
    desk.update(None, true, seconds(3));
    desk.is("0", "");
    assert!(!desk.holder.is_holding());
}

#[test]
fn pods_are_frozen_at_once_and_ended_after_the_grace() {
    let mut desk = Desk::new("grace");
    desk.update(None, true, seconds(0));
    desk.is("0", "");
    desk.update(Some("owner"), false, seconds(1));
    desk.is("0", "");
    desk.update(Some("owner"), true, seconds(2));
    desk.is("1", "");
    desk.update(Some("owner"), true, seconds(61));
    desk.is("1", "");
    assert_eq!(desk.holder.due(), Some(desk.start + seconds(62)));
    desk.update(Some("owner"), true, seconds(62));
    desk.is("1", "1");
    // What the kubelet starts again is ended too, and is frozen meanwhile.
    desk.host.write(KILL, "");
    desk.update(Some("owner"), true, seconds(63));
    desk.is("1", "1");
    assert_eq!(
        desk.holder.account().unwrap(),
        "(no API server answered: pods frozen at 2026-03-06T22:50:02.000Z, ended at \
         2026-03-06T22:51:02.000Z)"
    );
    // The server has accepted the request.
    desk.update(Some("owner"), false, seconds(70));
    desk.is("0", "1");
    let account = desk.holder.account().unwrap();
    desk.holder.reported(&format!("owner {account}"));
    assert_eq!(desk.holder.account(), None);
    assert!(!desk.host.join("state/held.json").exists());
}

#[test]
fn pods_go_on_if_the_signal_ends_before_the_grace() {
    let mut desk = Desk::new("thaw");
    desk.update(Some("owner"), true, seconds(0));
    desk.is("1", "");
    desk.update(None, true, seconds(30));
    desk.is("0", "");
    assert_eq!(desk.holder.account(), None);
    assert_eq!(desk.holder.due(), None);
}

#[test]
fn a_restarted_agent_goes_on_with_what_it_has_done() {
    let mut desk = Desk::new("restart");
    desk.update(Some("owner"), true, seconds(1));
    desk.holder = Holder::start(settings(&desk.host), at(seconds(31)));
    assert!(desk.holder.is_holding());
    desk.start = Instant::now();
    desk.update(Some("owner"), true, seconds(29));
    desk.is("1", "");
    desk.update(Some("owner"), true, seconds(31));
    desk.is("1", "1");
    // The host was started again: no pod is frozen, and the account is still to be given.
    desk.host.write(FREEZE, "0\n");
    desk.holder = Holder::start(settings(&desk.host), at(seconds(90)));
    assert_eq!(desk.holder.hold, Hold::Free);
    assert!(desk.holder.account().is_some());
}

#[test]
fn an_agent_that_stops_lets_pods_go_on() {
    let mut desk = Desk::new("stop");
    desk.update(Some("owner"), true, seconds(0));
    desk.holder.stop();
    desk.is("0", "");
}

#[test]
fn without_pods_or_the_right_to_hold_them_nothing_is_done_and_nothing_reported() {
    let mut desk = Desk::new("none");
    desk.host.remove(FREEZE);
    // Version 1 has no such file: none is created.
    desk.update(Some("owner"), true, seconds(0));
    assert!(!desk.host.join(FREEZE).exists());
    assert_eq!(desk.holder.account(), None);
    assert!(
        desk.holder
            .error
            .as_ref()
            .unwrap()
            .contains("cgroup.freeze")
    );
    fs::remove_dir_all(desk.host.join("groups")).unwrap();
    desk.update(Some("owner"), true, seconds(1));
    assert_eq!((desk.holder.hold, &desk.holder.error), (Hold::Free, &None));
    // The kubelet has made its group meanwhile.
    desk.host.write(FREEZE, "0\n");
    assert_eq!(desk.holder.due(), Some(desk.start + seconds(2)));
    desk.update(Some("owner"), true, seconds(2));
    assert!(desk.holder.is_holding());
}
