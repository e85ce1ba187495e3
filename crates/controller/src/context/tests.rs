use fivespot_api::HostPool;
use fivespot_capi::Contract;
use fivespot_plan::Freshness;
use fivespot_runtime::cache::{InformerSink, Object};
use fivespot_runtime::queue::ReconcileResult;
use fivespot_runtime::watch::Sink as _;
use serde_json::{Value, json};

use super::*;
use crate::host_pool::{Turn, Wish};
use crate::kind::{cluster_api, spot_schedule};
use crate::observe::live_reads::LiveReads;
use crate::observe::name_conflict::NameConflict;
use crate::observe::projection::{Target, spot_schedule_term};
use crate::observe::taken_name::watch_names;
use crate::observe::{Incomplete, Observation, observe};
use crate::run::{next_due, reconcile_other};

/// A context with a server that never responds.
fn context() -> Arc<Context> {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<
            Result<http::Response<kube::client::Body>, std::convert::Infallible>,
        >()
    });
    let client = kube::Client::new(silent, "default");
    let clock = Clock::stopped_at(jiff::Timestamp::UNIX_EPOCH);
    let (tasks, _) = tokio::sync::mpsc::unbounded_channel();
    Arc::new(Context::new(Options::new(client, clock), tasks))
}

#[tokio::test]
async fn after_an_upgrade_only_the_newer_version_is_watched() {
    let context = context();
    let [old, new] = [Contract::V1Beta1, Contract::V1Beta2]
        .map(|contract| cluster_api(contract, "Machine"));
    for resource in [&old, &new] {
        context.informer(resource, CachedKind::Machine);
    }
    context.use_version(&new.group, &new.version);
    assert!(context.cache(&cache_name(&old)).is_none());
    assert!(context.cache(&cache_name(&new)).is_some());
    assert!(context.cache(&context.scheduled_machines.name).is_some());
}

/// The caches of ScheduledMachines and of overrides are filled: with this object, and with none.
fn fill_own_caches(context: &Arc<Context>, own: &Key, object: Value) {
    let overrides = context.override_cache();
    let machines = &context.scheduled_machines.store;
    let part = None;
    for store in [machines, &overrides.store] {
        store.begin(&part);
    }
    machines.list(
        &part,
        own.clone(),
        Object::new(object, Vec::new(), Vec::new()),
    );
    for store in [machines, &overrides.store] {
        store.end(&part);
    }
}

/// Ten thousand ScheduledMachines that were each parsed to find that another cache is not filled
/// yet would delay everything at a start.
#[tokio::test]
async fn a_scheduled_machine_is_parsed_when_the_caches_that_all_need_are_filled() {
    let context = context();
    let own = Key::new("default", "worker");
    let meta = json!({"name": "worker", "namespace": "default", "resourceVersion": "1"});
    let object = json!({"metadata": meta, "spec": "cannot be parsed"});
    fill_own_caches(&context, &own, object);
    let observed =
        async || observe(&context, &own, Freshness::Cached, &LiveReads::default()).await;
    assert!(matches!(observed().await, Observation::Unreadable { .. }));
    let machine = cluster_api(Contract::V1Beta2, "Machine");
    let machines = context.informer(&machine, CachedKind::Machine);
    assert!(matches!(
        observed().await,
        Observation::Incomplete(Incomplete::NotYet)
    ));
    // It is enqueued when the cache is filled.
    assert_eq!(machines.record_success(), BTreeSet::from([own]));
}

/// A tenant's kind whose list takes long delays that tenant alone.
#[tokio::test]
async fn a_first_list_of_provider_objects_is_awaited_where_one_waits_for_it() {
    let context = context();
    let own = Key::new("default", "worker");
    fill_own_caches(&context, &own, json!({"metadata": {}}));
    let resource = cluster_api(Contract::V1Beta2, "RemoteMachine");
    let provider = context.informer(&resource, CachedKind::Provider);
    let loading = |namespace| context.loading(namespace).map(|of| of.name.clone());
    assert_eq!(loading("default"), None);
    provider.add_waiting(&own);
    assert_eq!(loading("default"), Some(provider.name.clone()));
    assert_eq!(loading("another"), None);
    assert_eq!(loading("defaul"), None);
}

/// Five thousand machines that follow one schedule are not planned again because it has published
/// that it is closed.
#[tokio::test]
async fn a_machine_is_planned_again_for_the_spec_of_its_schedule_and_not_for_its_status()
{
    let context = context();
    let [follower, schedule] = ["worker", "office"].map(|it| Key::new("default", it));
    let kind = name::TIME_BASED_KIND;
    let informer = context.informer(
        &spot_schedule(kind),
        CachedKind::SpotSchedule(kind.to_owned()),
    );
    let term = spot_schedule_term(kind, &schedule);
    let machine = Object::new(json!({"metadata": {}}), Vec::new(), vec![term]);
    let machines = &context.scheduled_machines.store;
    machines.begin(&None);
    machines.list(&None, follower.clone(), machine);
    machines.end(&None);
    let rows = [
        ("a", 1, true, "it was not known"),
        ("a", 1, false, "its status is written"),
        ("a", 2, true, "its spec is edited"),
        ("b", 2, true, "another of the same name is created"),
    ];
    for (uid, generation, is_planned, why) in rows {
        let meta = json!({"uid": uid, "generation": generation});
        let shown = Object::new(json!({"metadata": meta}), Vec::new(), Vec::new());
        informer.store.begin(&None);
        informer.store.list(&None, schedule.clone(), shown);
        informer.store.end(&None);
        context.spot_schedule_changed(&informer, kind, &schedule);
        assert_eq!(context.queue.due() == 1, is_planned, "{why}");
        if is_planned {
            let (key, _busy) = context.queue.next().await;
            let requeue_at = None;
            let done = ReconcileResult::Succeeded { requeue_at };
            context.queue.finish(&key, done);
        }
    }
}

/// A tenant who creates and deletes capacities of kinds that are not served costs no memory for ever.
#[tokio::test]
async fn a_deleted_capacity_waits_for_no_kind() {
    let context = context();
    let own = Key::new("default", "web");
    let capacities = context.capacity_cache();
    capacities.store.begin(&None);
    capacities.store.end(&None);
    context.record_unserved("example.com", &own);
    assert_eq!(context.unserved_groups(), ["example.com"]);
    context.capacities.enqueue([own]);
    let due = next_due(&context).await;
    reconcile_other(context.clone(), due, 1).await;
    assert_eq!(context.unserved_groups(), [""; 0]);
}

/// It might be a holiday: nothing is published, so that what was published stays.
#[tokio::test]
async fn a_schedule_is_not_published_while_its_calendars_cannot_be_read() {
    let context = context();
    let own = Key::new("default", "office");
    let kind = name::TIME_BASED_KIND;
    let cached = CachedKind::SpotSchedule(kind.to_owned());
    let informer = context.informer(&spot_schedule(kind), cached);
    let object = json!({
        "metadata": {"name": "office", "namespace": "default", "uid": "a", "generation": 1},
        "spec": {
            "daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"],
            "exceptions": [{"name": "holidays", "action": "Stop",
                            "calendarRef": {"name": "holidays"}}],
        },
    });
    informer.store.begin(&None);
    let object = Object::new(object, Vec::new(), Vec::new());
    informer.store.list(&None, own.clone(), object);
    informer.store.end(&None);
    let calendars = context.informer(&kind::schedule_calendar(), CachedKind::Calendar);
    let refusal = kube::Error::Api(Box::new(kube::core::Status {
        code: 403,
        ..kube::core::Status::failure("forbidden", "Forbidden")
    }));
    calendars.record_failure(&refusal);
    context.enqueue_spot_schedules(kind, [&own]);
    let due = next_due(&context).await;
    // The server never responds: a write would not end.
    let reconciled = reconcile_other(context.clone(), due, 1).now_or_never();
    assert_eq!(reconciled, Some(()));
    // It is enqueued when they can be read.
    context.enqueue_waiting(calendars.record_success());
    let again = next_due(&context).now_or_never();
    assert!(again.is_some());
}

/// A platform team that edits a class delays no tenant who does not use it.
#[tokio::test]
async fn an_edited_class_enqueues_overrides_of_namespaces_that_use_it_and_no_others() {
    let context = context();
    let overrides = context.override_cache();
    let machines = &context.scheduled_machines;
    let classes = kind::scheduled_machine_class();
    let informer = context.informer(&classes, CachedKind::Class);
    let used = Key::new("used", "worker");
    for store in [&machines.store, &overrides.store] {
        store.begin(&None);
    }
    for (key, class) in [(&used, "desks"), (&Key::new("unused", "worker"), "others")] {
        let meta = json!({"name": key.name, "namespace": key.namespace});
        let object = json!({"metadata": meta, "spec": {
            "schedule": {}, "classRef": {"name": class},
        }});
        let object = Object::new(object, Vec::new(), Vec::new());
        machines.store.list(&None, key.clone(), object);
        let object = json!({"metadata": meta, "spec": {
            "mode": "Run", "endTime": "2026-03-16T15:00:00Z",
            "targetRef": {"name": "worker"},
        }});
        let object = Object::new(object, Vec::new(), Vec::new());
        overrides.store.list(&None, key.clone(), object);
    }
    for store in [&machines.store, &overrides.store] {
        store.end(&None);
    }
    for key in [&used, &Key::new("unused", "worker")] {
        context.overrides.machines_changed(machines, [key]);
        context.overrides.changed(&overrides, [key]);
    }
    let queue = &context.overrides.kind.queue;
    while queue.due() > 0 {
        let (key, _busy) = queue.next().await;
        queue.finish(&key, ReconcileResult::Succeeded { requeue_at: None });
    }
    let link = None;
    let handler = enqueue::Enqueue {
        context: context.clone(),
        informer,
        link,
    };
    let edited = BTreeSet::from([Target::Own(Key::new("", "desks"))]);
    fivespot_runtime::cache::Handler::changed(&handler, edited);
    assert_eq!(queue.due(), 1);
    let (key, _busy) = queue.next().await;
    assert_eq!(key, used);
}

/// A large cluster has many Nodes of its own, and a kind of targets many objects that nobody scales.
#[tokio::test]
async fn only_what_a_machine_or_a_capacity_needs_is_kept_of_others_objects() {
    let context = context();
    let capacities = context.capacity_cache();
    let target = crate::observe::projection::target_group_term("apps");
    let capacity = Object::new(json!({"metadata": {}}), Vec::new(), vec![target.clone()]);
    capacities.store.begin(&None);
    capacities
        .store
        .list(&None, Key::new("default", "web"), capacity);
    capacities.store.end(&None);
    let needs = |kind: CachedKind, affected: Target| {
        let resource = spot_schedule(name::TIME_BASED_KIND);
        let name = format!("{kind:?}");
        let handler = enqueue::Enqueue {
            context: context.clone(),
            informer: Arc::new(KindInformer::new(name, resource, kind)),
            link: None,
        };
        fivespot_runtime::cache::Handler::needs_content(&handler, &[affected])
    };
    let cluster = Key::new("default", "prod");
    let known = || Target::One(Key::new("default", "worker"));
    let foreign = || Target::Machine(vec!["a Node of nobody".to_owned()]);
    assert!(needs(CachedKind::Node(cluster.clone()), known()));
    assert!(!needs(CachedKind::Node(cluster), foreign()));
    let followed = Target::Capacities(target);
    let not_followed = Target::Capacities("another".to_owned());
    assert!(needs(CachedKind::CapacityTarget, followed));
    assert!(!needs(CachedKind::CapacityTarget, not_followed));
    assert!(needs(CachedKind::Machine, foreign()));
}

/// The watch of Leases may be ahead of that of ScheduledMachines.
#[tokio::test]
async fn a_host_that_no_status_names_any_more_enqueues_who_waits_for_it() {
    let context = context();
    let machines = context.scheduled_machines.clone();
    let mut sink = InformerSink {
        informer: machines.clone(),
        part: None,
        budget: None,
        handler: enqueue::Enqueue {
            context: context.clone(),
            informer: machines,
            link: None,
        },
        listed: 0,
    };
    let mut version = 0;
    let mut show = |status: Value| {
        version += 1;
        let version = version.to_string();
        let meta = json!({"name": "first", "namespace": "default", "uid": "a",
                          "resourceVersion": version});
        let spec = json!({"classRef": {"name": "desks"}});
        let object = json!({"metadata": meta, "spec": spec, "status": status});
        sink.modified(object).unwrap();
    };
    let second = Key::new("default", "second");
    let desk = ("desk-1".to_owned(), serde_json::Map::new());
    let hosts: Arc<HostPool> = Arc::new([desk].into_iter().collect());
    let seek = || {
        let wish = Wish {
            class: "desks".to_owned(),
            hosts: hosts.clone(),
            named: None,
            priority: 50,
        };
        let is_taken = |host: &str| context.is_host_taken("desks", host, &second);
        let now = context.queue.now();
        context.host_pools.seek(&second, wish, now, is_taken)
    };
    let enqueued = || {
        let queue = &context.queue;
        let mut all = Vec::new();
        while let Some((key, _busy)) = queue.next().now_or_never() {
            queue.finish(&key, ReconcileResult::Succeeded { requeue_at: None });
            all.push(key.name.clone());
        }
        all.sort();
        all
    };
    show(json!({"host": "desk-1", "phase": "Active"}));
    assert_eq!(seek(), Turn::Wait(None));
    show(json!({"host": "desk-1", "phase": "ShuttingDown"}));
    assert_eq!(enqueued(), ["first"]);
    context.host_changed(&name::host_claim("desks", "desk-1"));
    assert_eq!(enqueued(), ["second"]);
    assert_eq!(seek(), Turn::Wait(None));
    show(json!({"phase": "Inactive"}));
    assert_eq!(enqueued(), ["first", "second"]);
    assert_eq!(seek(), Turn::Offered("desk-1".to_owned()));
}

/// Its host would be left to it for ever.
#[tokio::test]
async fn a_scheduled_machine_that_cannot_be_parsed_leaves_its_host_to_others() {
    let context = context();
    let [own, other] = ["worker", "other"].map(|name| Key::new("default", name));
    let meta = json!({"name": "worker", "namespace": "default", "uid": "a"});
    let object = json!({"metadata": meta, "spec": "cannot be parsed"});
    fill_own_caches(&context, &own, object);
    let desk = ("desk-1".to_owned(), serde_json::Map::new());
    let hosts: Arc<HostPool> = Arc::new([desk].into_iter().collect());
    let seek = |key: &Key| {
        let wish = Wish {
            class: "desks".to_owned(),
            hosts: hosts.clone(),
            named: None,
            priority: 50,
        };
        let now = context.queue.now();
        context.host_pools.seek(key, wish, now, |_| false)
    };
    let offered = || Turn::Offered("desk-1".to_owned());
    assert_eq!(seek(&own), offered());
    assert_eq!(seek(&other), Turn::Wait(None));
    context.queue.enqueue(&own);
    let (own, busy) = context.queue.next().await;
    // The server never responds: that its status is written does not end.
    let reconciled = crate::reconcile::reconcile(context.clone(), own, busy, 1);
    assert_eq!(reconciled.now_or_never(), None);
    assert_eq!(seek(&other), offered());
}

/// A tenant who takes names away from herself takes none of the watches of others.
#[tokio::test]
async fn a_namespace_with_many_taken_names_leaves_watches_to_others() {
    let context = context();
    let conflict = |number: u32| NameConflict {
        resource: cluster_api(Contract::V1Beta2, "Machine"),
        name: number.to_string(),
    };
    let mut watched = 0;
    for number in 0..100 {
        let key = Key::new("many", format!("worker-{number}"));
        watched += u32::from(watch_names(&context, &key, &[conflict(number)]));
    }
    assert!(watched >= 10, "{watched}");
    let key = Key::new("few", "worker");
    assert!(watch_names(&context, &key, &[conflict(0)]));
}

#[tokio::test]
async fn the_depth_of_the_queues_counts_what_is_due_of_every_kind() {
    let context = context();
    let key = Key::new("default", "a");
    context.queue.enqueue(&key);
    context.overrides.kind.enqueue([key.clone()]);
    context.capacities.enqueue([key.clone()]);
    context.sets.kind.enqueue([key.clone()]);
    for of_kind in &context.spot_schedules {
        of_kind.kind.enqueue([key.clone()]);
    }
    context.options.instruments.attach(&context);
    let metrics = context.options.instruments.metrics();
    assert!(metrics.contains("fivespot_queue_depth 6\n"), "{metrics}");
}
