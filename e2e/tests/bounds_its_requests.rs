//! A machine's day costs the API server few requests. Values that are only reported come from
//! watches. Objects are read again only before something begins or ends.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use fivespot_testkit::{
    AuditEvent, Cluster, Delivery, ProxiedRequest, Proxy, condition, instant,
    machine_path, pod, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::Value;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(everything_is_read_anew_four_times_a_day_and_two_objects_once)
        .on_embedded_alone("counts every read of a whole day"),
    promise!(a_day_costs_at_most_thirteen_writes_beside_what_cluster_api_reports)
        .on_embedded_alone("counts every write of a whole day"),
    promise!(a_day_among_many_machines_with_late_events_costs_no_more)
        .on_embedded_alone("delays every event on the operator's clock"),
    promise!(
        a_clock_edge_costs_one_read_and_three_creates_until_the_last_machine_is_made
    )
    .on_embedded_alone("counts every request of an opening"),
    promise!(a_machine_that_is_created_or_enabled_while_it_is_wanted_is_made_as_directly)
        .on_embedded_alone("counts every request of an opening"),
];

async fn everything_is_read_anew_four_times_a_day_and_two_objects_once() {
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T13:00:00Z").await;
    let before = cluster.operator_requests().len();
    cluster.advance_to("2026-03-07T12:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let requests = cluster.operator_requests().split_off(before);
    let reads: Vec<&AuditEvent> = requests
        .iter()
        .filter(|event| event.verb == "get" && !event.name.is_empty())
        .collect();
    let looks = reads.iter().filter(|event| event.resource == "machines");
    // Before the shutdown record, the cordon and the deletion, and at the end.
    assert_eq!(looks.count(), 4, "{reads:#?}");
    // The ScheduledMachine, its Cluster, the three objects, and the Node. One of them when the
    // window opens.
    assert!(reads.len() <= 4 * 6 + 1, "{reads:#?}");
}

/// The requests of an opening except lists and watches, as verb and resource in order, until the
/// last Machine is created.
fn until_created(requests: &[AuditEvent]) -> Vec<String> {
    let is_create =
        |event: &AuditEvent| (&*event.verb, &*event.resource) == ("create", "machines");
    let last = requests.iter().rposition(is_create).unwrap();
    let of_objects = requests[..=last].iter().filter(|event| {
        let is_one = event.verb != "get" || !event.name.is_empty();
        is_one && ["get", "create", "patch", "delete"].contains(&&*event.verb)
    });
    of_objects
        .map(|event| {
            let sub = &event.subresource;
            let slash = if sub.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{sub}", event.verb, event.resource)
        })
        .collect()
}

/// The number of status writes.
fn statuses(requests: &[AuditEvent]) -> usize {
    let is_status =
        |event: &&AuditEvent| event.subresource == "status" && event.is_write();
    requests.iter().filter(is_status).count()
}

/// The creates for one machine.
const CREATES: [&str; 3] = [
    "create k0sworkerconfigs",
    "create remotemachines",
    "create machines",
];

async fn a_clock_edge_costs_one_read_and_three_creates_until_the_last_machine_is_made() {
    const MACHINES: usize = 20;
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    let names: Vec<String> = (0..MACHINES)
        .map(|number| format!("worker-{number}"))
        .collect();
    for name in &names {
        cluster.apply(&scheduled_machine(name)).await;
    }
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T13:59:59Z").await;
    let before = cluster.operator_requests().len();
    cluster.advance_to("2026-03-06T14:30:00Z").await;
    let requests = cluster.operator_requests().split_off(before);
    let opening = until_created(&requests);
    for one in [&["get scheduledmachines"][..], &CREATES].concat() {
        let count = opening.iter().filter(|asked| *asked == one).count();
        assert_eq!(count, MACHINES, "{one}: {opening:#?}");
    }
    assert_eq!(opening.len(), 4 * MACHINES, "{opening:#?}");
    for name in &names {
        assert_eq!(cluster.status(name).await["phase"], "Active", "{name}");
    }
    let statuses = statuses(&requests);
    assert!(statuses <= 5 * MACHINES, "{statuses}: {requests:#?}");
}

async fn a_machine_that_is_created_or_enabled_while_it_is_wanted_is_made_as_directly() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.add_cluster().await;
    let _operator = cluster.operator();
    let mut disabled = scheduled_machine("enabled");
    disabled["spec"]["schedule"]["enabled"] = false.into();
    cluster.apply(&disabled).await;
    cluster.advance_to("2026-03-06T15:05:00Z").await;

    let before = cluster.operator_requests().len();
    let enabled = serde_json::json!({"spec": {"schedule": {"enabled": true}}});
    cluster.patch(&machine_path("enabled"), &enabled).await;
    cluster.advance_to("2026-03-06T15:35:00Z").await;
    let requests = cluster.operator_requests().split_off(before);
    let expected = [&["get scheduledmachines"][..], &CREATES].concat();
    assert_eq!(until_created(&requests), expected);
    assert!(statuses(&requests) <= 5, "{requests:#?}");
    assert_eq!(cluster.status("enabled").await["phase"], "Active");

    let before = cluster.operator_requests().len();
    cluster.apply(&scheduled_machine("created")).await;
    cluster.advance_to("2026-03-06T16:05:00Z").await;
    let requests = cluster.operator_requests().split_off(before);
    // The response to the second request contains what a read would return.
    let first = ["patch scheduledmachines", "patch scheduledmachines/status"];
    assert_eq!(until_created(&requests), [&first[..], &CREATES].concat());
    assert!(statuses(&requests) <= 5, "{requests:#?}");
    assert_eq!(cluster.status("created").await["phase"], "Active");
}

/// A status without the conditions that only repeat other reports: Cluster API's about the Machine,
/// and whether the workload cluster responds.
fn own_words(mut status: Value) -> Value {
    if let Some(all) = status["conditions"].as_array_mut() {
        all.retain(|condition| {
            condition["type"] != "MachineReady" && condition["type"] != "NodeAccess"
        });
    }
    status
}

async fn a_day_costs_at_most_thirteen_writes_beside_what_cluster_api_reports() {
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T13:58:59Z").await;
    let before = cluster.operator_writes().len();
    cluster.advance_to("2026-03-06T13:59:59Z").await;
    // The minute of the opening, second by second. No second has two reports.
    let (mut reports, mut last) = (0, cluster.status("worker").await);
    for _ in 0..60 {
        let next = cluster.deadline_in(SignedDuration::from_secs(1));
        cluster.advance_until(next).await;
        let status = cluster.status("worker").await;
        let is_report = status != last && own_words(status.clone()) == own_words(last);
        reports += usize::from(is_report);
        last = status;
    }
    assert_eq!(last["phase"], "Active");
    cluster.advance_to("2026-03-07T12:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let writes = cluster.operator_writes().split_off(before);
    let of = |resource: &str| {
        let those = writes.iter().filter(|event| event.resource == resource);
        those.count()
    };
    let (events, on_node) = (of("events"), of("nodes"));
    assert!(events <= 5, "{writes:#?}");
    assert!(on_node <= 3, "{writes:#?}");
    let others = writes.len() - events - on_node;
    assert!(others <= 13 + reports, "{reports}: {writes:#?}");
}

/// A proxy like a slow server: each watch event takes so long that, with many machines, two steps
/// of a machine are rarely seen together. Records the writes in the management cluster except
/// Events: the name, and the change of a status.
#[derive(Default)]
struct SlowWatches {
    writes: Mutex<Vec<(String, Option<Value>)>>,
}

impl Proxy for SlowWatches {
    fn served<'a>(
        &'a self,
        request: &'a ProxiedRequest,
        code: u16,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let event = &request.event;
        let is_aside = ["events", "nodes", "pods"].contains(&event.resource.as_str());
        if event.is_write() && code < 300 && !is_aside {
            let mut body: Value = serde_json::from_slice(&request.body).unwrap();
            let named = body["metadata"]["name"].as_str();
            let name = named.unwrap_or(&event.name).to_owned();
            let status = (event.subresource == "status").then(|| body["status"].take());
            self.writes.lock().unwrap().push((name, status));
        }
        Box::pin(std::future::ready(()))
    }

    fn event(&self, _: &ProxiedRequest, _: &[u8]) -> Delivery {
        Delivery::Late(SignedDuration::from_millis(250))
    }
}

/// The writes for one machine.
#[derive(Clone, Copy, Debug, Default)]
struct WriteCounts {
    /// Writes that do not only repeat other reports.
    own: usize,
    /// Status writes that only repeat other reports.
    repeated: usize,
}

/// The parts of a status change.
struct Reported {
    /// The operator's own conditions, without the message of Ready.
    own: Value,
    /// Cluster API's report about the Machine.
    machine_ready: Value,
    has_message: bool,
    has_more: bool,
}

impl Reported {
    fn of(change: &Value) -> Self {
        let mut own = own_words(change.clone())["conditions"].take();
        for condition in own.as_array_mut().into_iter().flatten() {
            if condition["type"] == "Ready" {
                condition["message"].take();
            }
        }
        let fields = change.as_object().unwrap();
        Self {
            own,
            machine_ready: condition(change, "MachineReady"),
            has_message: fields.contains_key("message"),
            has_more: fields
                .keys()
                .any(|it| it != "conditions" && it != "message"),
        }
    }

    /// Whether it only repeats other reports. The message contains what Cluster API waits for, and
    /// may change together with the condition of the same content without counting as a change.
    fn repeats(&self, before: Option<&Self>) -> bool {
        before.is_some_and(|before| {
            let is_reported = before.machine_ready != self.machine_ready;
            self.own == before.own && !self.has_more && (!self.has_message || is_reported)
        })
    }
}

impl SlowWatches {
    /// The writes for each machine so far.
    fn costs(&self) -> BTreeMap<String, WriteCounts> {
        let mut costs: BTreeMap<String, WriteCounts> = BTreeMap::new();
        let mut last = BTreeMap::new();
        for (name, status) in self.writes.lock().unwrap().iter() {
            let cost = costs.entry(name.clone()).or_default();
            let is_repeated = status.as_ref().is_some_and(|change| {
                let reported = Reported::of(change);
                let is_repeated = reported.repeats(last.get(name));
                last.insert(name.clone(), reported);
                is_repeated
            });
            if is_repeated {
                cost.repeated += 1;
            } else {
                cost.own += 1;
            }
        }
        costs
    }
}

async fn a_day_among_many_machines_with_late_events_costs_no_more() {
    let names: Vec<String> = (0..20).map(|number| format!("worker-{number}")).collect();
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    for name in &names {
        cluster.apply(&scheduled_machine(name)).await;
    }
    let way = Arc::new(SlowWatches::default());
    let _operator = cluster.operator_behind(way.clone(), |_| {});
    cluster.advance_to("2026-03-06T13:58:59Z").await;
    way.writes.lock().unwrap().clear();
    cluster.advance_to("2026-03-06T14:30:00Z").await;
    for name in &names {
        assert_eq!(cluster.status(name).await["phase"], "Active", "{name}");
        let node = cluster.node_name(name);
        cluster
            .apply(&pod(&format!("shop-{name}"), "shop", &node))
            .await;
    }
    cluster.advance_to("2026-03-07T12:00:00Z").await;
    let costs = way.costs();
    for name in &names {
        assert_eq!(cluster.status(name).await["phase"], "Inactive", "{name}");
        let cost = costs[name];
        assert!((9..=13).contains(&cost.own), "{name}: {cost:?}");
    }
    // Checks that events were so late that they were reported separately.
    let repeated: usize = costs.values().map(|cost| cost.repeated).sum();
    assert!(repeated > names.len() * 3, "{costs:#?}");
}
