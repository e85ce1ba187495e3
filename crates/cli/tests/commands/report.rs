//! Compares `5spot report` with a month that is counted second by second while the operator runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fivespot_testkit::{Cluster, instant, machine_path, scheduled_machine};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

const OVERRIDES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";

/// The observed phases of a machine, each with the first instant.
type Phases = Vec<(i64, String)>;

/// When a machine is wanted by its window and by overrides, independent of the schedule engine.
struct Rule {
    zone: TimeZone,
    /// Arguments: the weekday (Monday is 1) and the minute of the day.
    window: fn(i8, i16) -> bool,
    /// Start, end, and whether the machine is wanted.
    overrides: Vec<(Timestamp, Timestamp, bool)>,
}

impl Rule {
    fn wants(&self, at: Timestamp) -> bool {
        let mut overrides = self.overrides.iter();
        if let Some((_, _, runs)) =
            overrides.find(|(from, to, _)| *from <= at && at < *to)
        {
            return *runs;
        }
        let local = self.zone.to_datetime(at);
        let minute = i16::from(local.hour()) * 60 + i16::from(local.minute());
        (self.window)(local.weekday().to_monday_one_offset(), minute)
    }
}

fn office(day: i8, minute: i16) -> bool {
    day <= 5 && (9 * 60..18 * 60).contains(&minute)
}

/// From 19:00 on weekdays to 07:30 on the next day.
fn night(day: i8, minute: i16) -> bool {
    (day <= 5 && minute >= 19 * 60) || ((2..=6).contains(&day) && minute < 7 * 60 + 30)
}

/// The seconds wanted, active, provisioning and late in a month, counted one by one.
fn count(phases: &Phases, rule: &Rule, (from, to): (Timestamp, Timestamp)) -> [i64; 4] {
    let mut counts = [0; 4];
    let mut index = 0;
    let mut minute = from;
    while minute < to {
        let is_wanted = rule.wants(minute);
        for second in minute.as_second()..minute.as_second() + 60 {
            if second >= to.as_second() {
                break;
            }
            while phases.get(index + 1).is_some_and(|(at, _)| *at <= second) {
                index += 1;
            }
            // Nothing is counted before the first observed phase.
            let Some((_, phase)) = phases.get(index).filter(|(at, _)| *at <= second)
            else {
                continue;
            };
            // During a shutdown, a machine counts as in its previous phase until it is gone.
            let used_as = match phase.as_str() {
                "ShuttingDown" => &phases[index - 1].1,
                _ => phase,
            };
            let (is_active, is_pending) = (used_as == "Active", used_as == "Pending");
            counts[0] += i64::from(is_wanted);
            counts[1] += i64::from(is_active);
            counts[2] += i64::from(is_pending);
            counts[3] += i64::from(is_wanted && !is_active);
        }
        minute += 1.minute();
    }
    counts
}

/// Two machines and their observed phases.
struct ObservedCluster {
    cluster: Cluster,
    phases: [Phases; 2],
}

const NAMES: [&str; 2] = ["desk", "night"];

impl ObservedCluster {
    /// Advances the clock to `to`, and observes the phases at each event.
    async fn advance_to(&mut self, to: &str) {
        let to = instant(to);
        loop {
            self.cluster.settle().await;
            self.observe().await;
            if self.cluster.clock().advance_to_next(to).await.is_none() {
                break;
            }
        }
        self.cluster.clock().advance_to(to).await;
        self.cluster.settle().await;
        self.observe().await;
    }

    async fn observe(&mut self) {
        let now = self.cluster.clock().now().as_second();
        for (phases, name) in self.phases.iter_mut().zip(NAMES) {
            let found = self
                .cluster
                .get(&machine_path(name))
                .await
                .unwrap_or_default();
            let Some(phase) = found["status"]["phase"].as_str() else {
                continue;
            };
            match phases.last_mut() {
                Some((_, last)) if *last == phase => {}
                Some((at, last)) if *at == now => phase.clone_into(last),
                _ => phases.push((now, phase.to_owned())),
            }
        }
    }
}

fn schedule_override(name: &str, machine: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleOverride",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    });
    object["spec"]["targetRef"] = json!({"name": machine});
    object
}

/// The output of `5spot report` as JSON.
async fn report(kubeconfig: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
    command
        .args(["report", "-n", "default", "-o", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .stdin(Stdio::null());
    // The server needs this thread meanwhile.
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn usage_seconds(report: &Value, index: usize) -> [i64; 4] {
    let item = &report["items"][index];
    [
        "wantedSeconds",
        "activeSeconds",
        "provisioningSeconds",
        "lateSeconds",
    ]
    .map(|name| item[name].as_i64().unwrap())
}

/// The directory of the kubeconfig; removed when dropped.
struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn the_figures_of_a_month_equal_a_count_second_by_second() {
    let cluster = Cluster::start(instant("2026-02-26T12:00:00Z")).await;
    let listening = cluster.listen().await;
    let dir = std::env::temp_dir().join(format!("5spot-report-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let dir = TempDir(dir);
    let kubeconfig = dir.0.join("kubeconfig");
    fs::write(&kubeconfig, listening.kubeconfig()).unwrap();
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let desk = scheduled_machine("desk");
    let mut night_machine = scheduled_machine("night");
    night_machine["metadata"]["labels"] = json!({"team": "b"});
    night_machine["spec"]["schedule"] = json!({
        "windows": [{"name": "night", "days": ["mon-fri"], "start": "19:00", "end": "07:30"}],
        "timezone": "Europe/Zurich",
    });
    night_machine["spec"]["provisioning"] = json!({"leadTime": "10m"});
    night_machine["spec"]["shutdown"] = json!({"endPolicy": "CompleteByWindowEnd"});
    for machine in [&desk, &night_machine] {
        cluster.apply(machine).await;
    }
    let mut observed = ObservedCluster {
        cluster,
        phases: [Vec::new(), Vec::new()],
    };
    let mut rules = [
        Rule {
            zone: TimeZone::get("America/New_York").unwrap(),
            window: office,
            overrides: Vec::new(),
        },
        Rule {
            zone: TimeZone::get("Europe/Zurich").unwrap(),
            window: night,
            overrides: Vec::new(),
        },
    ];

    // A whole window is stopped. The override is deleted long before the next phase transition.
    observed.advance_to("2026-03-09T22:00:00Z").await;
    let stop = json!({
        "mode": "Stop",
        "startTime": "2026-03-10T12:00:00Z", "endTime": "2026-03-10T23:00:00Z",
    });
    observed
        .cluster
        .apply(&schedule_override("stop", "desk", &stop))
        .await;
    rules[0].overrides.push((
        instant("2026-03-10T12:00:00Z"),
        instant("2026-03-10T23:00:00Z"),
        false,
    ));
    // An override that is ended early, by its deletion.
    observed.advance_to("2026-03-14T12:00:00Z").await;
    let run = json!({
        "mode": "Run",
        "startTime": "2026-03-14T13:00:00Z", "endTime": "2026-03-15T13:00:00Z",
    });
    observed
        .cluster
        .apply(&schedule_override("run", "night", &run))
        .await;
    observed.advance_to("2026-03-14T16:30:00Z").await;
    observed.cluster.delete(&format!("{OVERRIDES}/run")).await;
    rules[1].overrides.push((
        instant("2026-03-14T13:00:00Z"),
        instant("2026-03-14T16:30:00Z"),
        true,
    ));

    // In the middle of a window, so that the open span is included.
    observed.advance_to("2026-03-18T17:20:30Z").await;
    let (march, now) = (
        instant("2026-03-01T00:00:00Z"),
        instant("2026-03-18T17:20:30Z"),
    );
    let printed = report(&kubeconfig, &[]).await;
    assert_eq!(printed["month"], "2026-03");
    for (index, rule) in rules.iter().enumerate() {
        let counted = count(&observed.phases[index], rule, (march, now));
        assert_eq!(usage_seconds(&printed, index), counted, "{}", NAMES[index]);
    }

    observed.advance_to("2026-04-02T10:00:00Z").await;
    let printed = report(&kubeconfig, &["--month", "2026-03", "--by", "team"]).await;
    let april = instant("2026-04-01T00:00:00Z");
    for (index, rule) in rules.iter().enumerate() {
        let counted = count(&observed.phases[index], rule, (march, april));
        assert_eq!(usage_seconds(&printed, index), counted, "{}", NAMES[index]);
        assert!(counted.iter().all(|it| *it > 0), "{counted:?}");
        let always_on = &printed["items"][index]["alwaysOnSeconds"];
        assert_eq!(always_on, april.as_second() - march.as_second());
    }
    assert_eq!(printed["byLabel"][0]["value"], "b");
    assert_eq!(printed["byLabel"][1]["machines"], 1);
    assert_eq!(printed["items"][0].get("rate"), None);
}
