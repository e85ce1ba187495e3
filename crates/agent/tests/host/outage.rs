//! Tests an agent whose API server does not answer.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fivespot_agent::hold::{HoldSettings, PodGroups};
use http::Method;
use kubemu_apiserver::Delete;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api_server::{Fixture, NODE, accepted, config_text};
use crate::line::Fate;
use crate::program::unique;

/// A file that is a signal, removed when this is dropped.
struct Signal(PathBuf);

impl Drop for Signal {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Signal {
    /// One that does not stand yet.
    fn of(fixture: &mut Fixture) -> Self {
        let path = std::env::temp_dir().join(unique("5spot-agent-signal-"));
        fixture.signal_file = Some(path.clone());
        Self(path)
    }

    fn end(&self) {
        fs::remove_file(&self.0).unwrap();
    }

    fn begin(&self) {
        fs::write(&self.0, "").unwrap();
    }
}

/// The longest time between two of these, and from the last one until now.
fn longest_pause(sent: &[Instant]) -> Duration {
    let pairs = sent.windows(2).map(|pair| pair[1] - pair[0]);
    let last = sent.last().unwrap().elapsed();
    pairs.chain([last]).max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_within_a_second_of_the_return_of_the_server() {
    for is_running_before in [true, false] {
        let mut fixture = Fixture::new().await;
        let signal = Signal::of(&mut fixture);
        let text = config_text(&["steam"]);
        fixture.configure(&text).await;
        if is_running_before {
            fixture.start_agent();
            fixture.wait_for_report(&accepted(&text)).await;
        }
        fixture.line.set(Fate::Refused);
        if !is_running_before {
            fixture.start_agent();
            // Long enough for long pauses between attempts.
            sleep(Duration::from_mins(5)).await;
        }
        signal.begin();
        sleep(Duration::from_secs(6)).await;
        let began = Instant::now();
        sleep(Duration::from_mins(2)).await;
        let attempts = fixture.line.sent(|_, uri| uri.starts_with("/api/v1/nodes"));
        let since: Vec<Instant> = attempts.into_iter().filter(|at| *at > began).collect();
        assert!(longest_pause(&since) <= Duration::from_millis(1100));
        assert!(since.len() < 500, "{}", since.len());
        let back = Instant::now();
        fixture.line.set(Fate::Answered);
        fixture.wait_for_request().await;
        let took = back.elapsed();
        assert!(took <= Duration::from_millis(1100), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_ends_right_after_its_list_is_tried_with_growing_pauses() {
    let mut fixture = Fixture::new().await;
    fixture.line.set(Fate::WithoutWatches);
    fixture.start_agent();
    sleep(Duration::from_mins(10)).await;
    let is_list = |method: &Method, uri: &str| {
        *method == Method::GET && uri.contains("fieldSelector") && uri.contains("nodes")
    };
    let lists = fixture.line.sent(is_list).len();
    // Half a minute between two, after some that are sooner. Two requests each.
    assert!((20..120).contains(&lists), "{lists}");
    // What happens meanwhile is still seen.
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.wait_for_report(&accepted(&text)).await;
    assert!(fixture.client().get(NODE).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_is_lost_is_sent_again_after_a_second() {
    let mut fixture = Fixture::new().await;
    let signal = Signal::of(&mut fixture);
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.line.set(Fate::Lost);
    let began = Instant::now();
    signal.begin();
    let tries = || {
        let sent = fixture
            .line
            .sent(|_, uri| uri.starts_with("/api/v1/nodes/"));
        sent.into_iter().filter(|at| *at >= began).count()
    };
    while tries() < 1 {
        sleep(Duration::from_millis(10)).await;
        assert!(began.elapsed() < Duration::from_mins(1), "no try");
    }
    // The connection is dead, and the server is not.
    fixture.line.set(Fate::Answered);
    let lost = Instant::now();
    fixture.wait_for_request().await;
    let took = lost.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

/// The played control group of the pods of a host, and a signal that does not stand yet.
pub(crate) struct Pods {
    root: PathBuf,
    signal: Signal,
}

impl Drop for Pods {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Pods {
    /// Those of a host whose agent ends them after a minute.
    pub(crate) fn of(fixture: &mut Fixture) -> Self {
        let root = std::env::temp_dir().join(unique("5spot-agent-pods-"));
        let pods = Self {
            signal: Signal::of(fixture),
            root,
        };
        fs::create_dir_all(pods.root.join("groups/kubepods.slice")).unwrap();
        pods.write("cgroup.freeze", "0");
        pods.write("cgroup.kill", "");
        fixture.hold = Some(HoldSettings {
            pods: PodGroups::new(pods.root.join("groups")),
            grace: Duration::from_mins(1),
            state: Some(pods.root.join("state")),
        });
        pods
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root.join("groups/kubepods.slice").join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        let path = self.root.join("groups/kubepods.slice").join(file);
        fs::read_to_string(path).unwrap()
    }

    fn are_frozen(&self) -> bool {
        self.read("cgroup.freeze") == "1"
    }

    pub(crate) fn are_ended(&self) -> bool {
        self.read("cgroup.kill") == "1"
    }

    /// Waits until they are frozen, or are not.
    pub(crate) async fn wait(&self, are_frozen: bool) {
        let began = Instant::now();
        while self.are_frozen() != are_frozen {
            assert!(began.elapsed() < Duration::from_mins(5));
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// An agent that has reported, and the pods of its host.
async fn running() -> (Fixture, Pods) {
    let mut fixture = Fixture::new().await;
    let pods = Pods::of(&mut fixture);
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    (fixture, pods)
}

fn reason(found: &Value) -> &str {
    found["reclaim-reason"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn pods_are_frozen_while_the_server_refuses_or_hangs_and_ended_after_the_grace() {
    for fate in [Fate::Refused, Fate::Lost] {
        let (fixture, pods) = running().await;
        fixture.line.set(fate);
        // Nobody asks for the host.
        sleep(Duration::from_mins(5)).await;
        assert!(!pods.are_frozen());
        pods.signal.begin();
        pods.wait(true).await;
        sleep(Duration::from_secs(58)).await;
        assert!(!pods.are_ended());
        sleep(Duration::from_secs(3)).await;
        assert!(pods.are_ended());
        assert!(pods.are_frozen());
        let back = Instant::now();
        fixture.line.set(Fate::Answered);
        let found = fixture.wait_for_request().await;
        assert!(back.elapsed() < Duration::from_secs(7));
        let reason = reason(&found);
        let account = "(no API server answered: pods frozen at 2026-03-06T22:50:00.000Z, \
                       ended at 2026-03-06T22:50:00.000Z)";
        assert!(reason.starts_with("signal-file: "), "{reason}");
        assert!(reason.ends_with(account), "{reason}");
        pods.wait(false).await;
        assert!(!pods.root.join("state/held.json").exists());
    }
}

/// Whether pods are frozen at any time in the next minute.
async fn are_frozen_within_a_minute(pods: &Pods) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_mins(1) {
        if pods.are_frozen() {
            return true;
        }
        sleep(Duration::from_millis(1)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn pods_are_not_held_while_a_server_answers_after_a_moment() {
    let (fixture, pods) = running().await;
    let writes = fixture.writes();
    fixture.line.set(Fate::Slow(Duration::from_millis(200)));
    pods.signal.begin();
    assert!(!are_frozen_within_a_minute(&pods).await);
    let found = fixture.wait_for_request().await;
    assert!(!reason(&found).contains("no API server"), "{found}");
    assert_eq!(fixture.writes(), writes + 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_server_that_is_slow_nobody_says_that_it_did_not_answer() {
    let (fixture, pods) = running().await;
    let writes = fixture.writes();
    fixture.line.set(Fate::Slow(Duration::from_secs(2)));
    pods.signal.begin();
    // Whether it answers at all is not known yet.
    pods.wait(true).await;
    let found = fixture.wait_for_request().await;
    assert!(!reason(&found).contains("no API server"), "{found}");
    pods.wait(false).await;
    // From then on it is known how long it takes.
    assert!(!are_frozen_within_a_minute(&pods).await);
    assert_eq!(fixture.writes(), writes + 1);
    let node = fixture.client().get(NODE).await.unwrap();
    let now = &node["metadata"]["annotations"]["5spot.finos.org/reclaim-reason"];
    assert_eq!(now, &found["reclaim-reason"]);
    assert!(!pods.root.join("state/held.json").exists());
}

#[tokio::test(start_paused = true)]
async fn pods_go_on_if_an_agent_ends_because_it_cannot_watch_processes() {
    let mut fixture = Fixture::new().await;
    let pods = Pods::of(&mut fixture);
    // Nothing but time leads to a retry.
    fixture.signal_file = None;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    // An earlier agent froze them, and this one may not let them go on yet.
    pods.write("cgroup.freeze", "1");
    let other = pods.root.join("groups/kubepods");
    fs::create_dir_all(other.join("cgroup.freeze")).unwrap();
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    // A retry has just been made.
    pods.wait(false).await;
    pods.write("cgroup.freeze", "1");
    pods.wait(false).await;
    fs::remove_dir(other.join("cgroup.freeze")).unwrap();
    fs::write(other.join("cgroup.freeze"), "1").unwrap();
    fixture.fake.vanish();
    fixture.wait_for_end().await;
    let text = fs::read_to_string(other.join("cgroup.freeze")).unwrap();
    assert_eq!(text, "0");
}

#[tokio::test(start_paused = true)]
async fn pods_go_on_and_nothing_is_requested_if_the_signal_ends_before_the_server_is_back()
 {
    let (fixture, pods) = running().await;
    fixture.line.set(Fate::Refused);
    pods.signal.begin();
    pods.wait(true).await;
    pods.signal.end();
    pods.wait(false).await;
    sleep(Duration::from_mins(5)).await;
    assert!(!pods.are_frozen() && !pods.are_ended());
    fixture.line.set(Fate::Answered);
    sleep(Duration::from_mins(5)).await;
    let node = fixture.client().get(NODE).await.unwrap();
    let annotations = &node["metadata"]["annotations"];
    assert_eq!(
        annotations["5spot.finos.org/reclaim-requested"],
        Value::Null
    );
    // The next process is seen as before.
    fixture.fake.start(7, "steam");
    let found = fixture.wait_for_request().await;
    assert_eq!(reason(&found), "process-match: steam");
}

#[tokio::test(start_paused = true)]
async fn a_process_holds_pods_as_long_as_it_runs() {
    let (fixture, pods) = running().await;
    fixture.line.set(Fate::Lost);
    fixture.fake.start(7, "steam");
    pods.wait(true).await;
    sleep(Duration::from_secs(30)).await;
    assert!(pods.are_frozen());
    fixture.fake.end(7);
    pods.wait(false).await;
    assert!(!pods.are_ended());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_server_accepted_just_before_it_died_holds_pods_too() {
    let (fixture, pods) = running().await;
    fixture.line.set(Fate::UntilChanged);
    pods.signal.begin();
    fixture.wait_for_request().await;
    pods.wait(true).await;
    fixture.line.set(Fate::Answered);
    pods.wait(false).await;
    let found = fixture
        .wait_for(|found| reason(found).contains("pods frozen at"))
        .await;
    assert!(reason(&found).starts_with("signal-file: "));
    // The operator acts, and the machine leaves.
    let client = fixture.client();
    client.delete(NODE, &Delete::default()).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    fixture.line.set(Fate::Refused);
    sleep(Duration::from_mins(5)).await;
    assert!(!pods.are_frozen());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_while_the_server_is_dead_holds_pods_for_a_signal() {
    let mut fixture = Fixture::new().await;
    let pods = Pods::of(&mut fixture);
    fixture.line.set(Fate::Refused);
    pods.signal.begin();
    fixture.start_agent();
    pods.wait(true).await;
    fixture.line.set(Fate::Answered);
    fixture.wait_for_request().await;
    pods.wait(false).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_not_held_while_the_server_answers() {
    let (fixture, pods) = running().await;
    pods.signal.begin();
    fixture.wait_for_request().await;
    sleep(Duration::from_mins(5)).await;
    assert!(!pods.are_ended());
    assert!(!pods.are_frozen());
    assert_eq!(pods.read("cgroup.freeze"), "0");
}
