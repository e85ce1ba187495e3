//! What `5spot report -f` forecasts for a month is what the desks then do: the whole operator runs
//! through that month, and the time in which there are Machines and Nodes is counted here, by what is
//! written to the API server.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use fivespot_testkit::{AuditEvent, Cluster};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const DESKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/forty-desks");

/// What is written about a desk for this long after its Machine is deleted is the end of that one.
const CLEAN_UP: SignedDuration = SignedDuration::from_mins(10);

/// What a desk was used for in a month, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    /// While its Machine existed.
    machine: i64,
    /// While its Node existed.
    ready: i64,
}

/// What `5spot report -f` says of the month: the time from the first object to the last, and the time
/// with a Ready Node, for each desk.
fn forecast(month: &str) -> BTreeMap<String, Used> {
    let output = Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(["report", "-f", DESKS, "--month", month, "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let desks = report["items"].as_array().unwrap();
    let of = |desk: &Value| {
        let used = Used {
            machine: desk["usedSeconds"].as_i64().unwrap(),
            ready: desk["activeSeconds"].as_i64().unwrap(),
        };
        (desk["name"].as_str().unwrap().to_owned(), used)
    };
    desks.iter().map(of).collect()
}

/// The Machines and the Nodes of the desks, by what clients write about them: an object exists from
/// the first write that has its name until the Machine is deleted.
#[derive(Default)]
struct Account {
    machines: BTreeMap<String, Timestamp>,
    nodes: BTreeMap<String, Timestamp>,
    deleted: BTreeMap<String, Timestamp>,
    used: BTreeMap<String, Used>,
}

impl Account {
    fn read(&mut self, event: &AuditEvent, from: Timestamp) {
        let (desk, at) = (&event.name, event.at);
        if !event.is_write() || event.code >= 300 || desk.is_empty() {
            return;
        }
        let is_deletion = event.verb == "delete";
        let is_gone = |deleted: &Timestamp| at.duration_since(*deleted) > CLEAN_UP;
        let exists = self.deleted.get(desk).is_none_or(is_gone);
        match event.resource.as_str() {
            "machines" if is_deletion => self.end(desk, (from, at)),
            "machines" if exists => {
                self.machines.entry(desk.clone()).or_insert(at);
            }
            "nodes" if exists && !is_deletion => {
                self.nodes.entry(desk.clone()).or_insert(at);
            }
            _ => {}
        }
    }

    /// Counts what there is of a desk from `from` until `to`, where it ends.
    fn end(&mut self, desk: &str, (from, to): (Timestamp, Timestamp)) {
        let seconds = |since: Option<Timestamp>| {
            since.map_or(0, |since| {
                to.duration_since(since.max(from)).as_secs().max(0)
            })
        };
        let used = self.used.entry(desk.to_owned()).or_default();
        used.machine += seconds(self.machines.remove(desk));
        used.ready += seconds(self.nodes.remove(desk));
        self.deleted.insert(desk.to_owned(), to);
    }
}

/// One of the desks for each schedule that there is.
fn one_of_each_schedule() -> Vec<Value> {
    let mut desks: Vec<Value> = Vec::new();
    for team in ["trading", "research", "graphics"] {
        let text = fs::read_to_string(format!("{DESKS}/{team}.yaml")).unwrap();
        let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for desk in all {
            let schedule = &desk["spec"]["schedule"];
            if desks.iter().all(|it| it["spec"]["schedule"] != *schedule) {
                desks.push(desk);
            }
        }
    }
    desks
}

#[tokio::test(flavor = "current_thread")]
async fn desks_do_in_a_month_what_the_report_forecasts() {
    let instant = |text: &str| text.parse::<Timestamp>().unwrap();
    let (from, to) = (
        instant("2026-12-01T00:00:00Z"),
        instant("2027-01-01T00:00:00Z"),
    );
    let cluster = Cluster::seeded(instant("2026-11-30T12:00:00Z"), 1).await;
    let desks = one_of_each_schedule();
    let shared = fs::read_to_string(format!("{DESKS}/all-desks.yaml")).unwrap();
    cluster.apply_yaml(&shared).await;
    for desk in &desks {
        cluster.apply(desk).await;
    }
    let _operator = cluster.operator();
    let mut account = Account::default();
    let mut day = from;
    while day <= to {
        cluster.advance_until(day).await;
        for event in cluster.take_requests() {
            account.read(&event, from);
        }
        day += SignedDuration::from_hours(24);
    }
    for desk in account.machines.clone().keys() {
        account.end(desk, (from, to));
    }
    let forecast = forecast("2026-12");
    assert_eq!(account.used.len(), desks.len());
    for (desk, used) in &account.used {
        let forecast = forecast[desk];
        assert_eq!(used.machine, forecast.machine, "{desk}");
        // Hosts join within the lead time, so they are Ready when they are wanted, and earlier.
        let early = used.ready - forecast.ready;
        assert!(
            (0..used.machine - forecast.ready).contains(&early),
            "{desk}: {used:?}, {forecast:?}"
        );
    }
}
