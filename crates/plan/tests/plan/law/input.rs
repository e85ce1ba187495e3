//! Random facts, most of them plausible.

use fivespot_api::reclaim::agent_config;
use fivespot_api::{
    AccountedState, NodeRef, NodeTaint, Phase, ScheduledMachine, ScheduledMachineStatus,
    Shutdown, ShutdownReason, TaintEffect, Usage, UsageMonth, name,
};
use fivespot_capi::{
    Condition, ConditionState, Contract, Machine, Meta, NodeLink, Owner, Provider,
    Reference, key,
};
use fivespot_plan::{
    Access, AgentConfig, Cause, Fact, Failure, Freshness, Lookup, Memory, Node,
    NodeClaim, Observed, Pod, Specs, Step, Taint, Unknown, Workload,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::array::uniform5;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::SOME_NOON;
use crate::simulation::{NAME, at, cluster, pod, scheduled_machine};

fn unknown() -> impl Strategy<Value = Unknown> {
    let message = "why".to_owned();
    select(vec![
        Unknown::NotRequested,
        Unknown::NotServed {
            message: message.clone(),
        },
        Unknown::Forbidden {
            message: message.clone(),
        },
        Unknown::Failed { message },
    ])
}

fn fact<T: Clone + std::fmt::Debug>(
    known: impl Strategy<Value = T>,
) -> impl Strategy<Value = Fact<T>> {
    prop_oneof![
        8 => known.prop_map(Fact::Known),
        1 => unknown().prop_map(Fact::Unknown),
    ]
}

fn meta(uid: &'static str) -> impl Strategy<Value = Meta> {
    (
        any::<[bool; 6]>(),
        option::of(select(vec!["machine-1", "machine-2"])),
    )
        .prop_map(
            move |(
                [
                    is_labelled,
                    has_uid,
                    is_owned,
                    is_deleting,
                    is_paused,
                    is_hashed,
                ],
                controller,
            )| {
                let mut meta = Meta {
                    name: NAME.to_owned(),
                    namespace: "default".to_owned(),
                    uid: uid.to_owned(),
                    resource_version: "7".to_owned(),
                    is_deleting,
                    ..Meta::default()
                };
                if is_labelled {
                    meta.labels
                        .insert(name::SCHEDULED_MACHINE_LABEL.into(), NAME.into());
                }
                if has_uid {
                    meta.labels
                        .insert(name::SCHEDULED_MACHINE_UID_LABEL.into(), "sm-1".into());
                }
                if is_hashed {
                    meta.annotations
                        .insert(name::SPEC_HASH_ANNOTATION.into(), "other".into());
                }
                if is_paused && is_hashed && is_deleting {
                    meta.annotations.insert(key::PAUSED.into(), String::new());
                }
                if is_paused && !is_hashed {
                    meta.annotations
                        .insert(name::RECLAIM_ANNOTATION.into(), "now game".into());
                }
                if is_paused && is_deleting {
                    meta.annotations
                        .insert(name::RECLAIM_DISABLED_ANNOTATION.into(), "true".into());
                }
                let owner = |uid: &str, is_controller| Owner {
                    api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
                    kind: "Machine".to_owned(),
                    name: NAME.to_owned(),
                    uid: uid.to_owned(),
                    is_controller,
                };
                if is_owned {
                    meta.owners.push(owner("sm-1", false));
                }
                meta.owners.extend(controller.map(|uid| owner(uid, true)));
                meta
            },
        )
}

pub(super) fn machine() -> impl Strategy<Value = Machine> {
    let contract = select(vec![Contract::V1Beta1, Contract::V1Beta2]);
    let node = option::of(option::of(Just("node-1".to_owned())));
    let ready = option::of(select(vec![
        ConditionState::True,
        ConditionState::False,
        ConditionState::Unknown,
    ]));
    (contract, meta("machine-1"), node, any::<[bool; 5]>(), ready).prop_map(
        |(
            contract,
            meta,
            node,
            [
                had_bootstrap,
                had_infrastructure,
                is_sick,
                is_known,
                is_bounded,
            ],
            ready,
        )| {
            let condition = |kind: &str, status| Condition {
                kind: kind.to_owned(),
                status,
                reason: String::new(),
                message: String::new(),
            };
            let ready = ready.into_iter().flat_map(|status| {
                ["Ready", "NodeReady", "NodeHealthy"].map(|kind| condition(kind, status))
            });
            let sick =
                is_sick.then(|| condition("OwnerRemediated", ConditionState::False));
            Machine {
                contract,
                meta,
                cluster_name: "prod".to_owned(),
                phase: None,
                node: node.map(|uid| NodeLink {
                    name: NAME.to_owned(),
                    uid,
                }),
                provider_id: is_known.then(|| "provider://1".to_owned()),
                bootstrap: Some(Reference {
                    group: "bootstrap.cluster.x-k8s.io".to_owned(),
                    version: None,
                    kind: "K0sWorkerConfig".to_owned(),
                    name: NAME.to_owned(),
                }),
                infrastructure: None,
                had_bootstrap,
                had_infrastructure,
                drain_timeout: is_bounded.then(|| std::time::Duration::from_mins(5)),
                volume_detach_timeout: None,
                conditions: ready.chain(sick).collect(),
            }
        },
    )
}

fn provider(kind: &'static str, group: &'static str) -> impl Strategy<Value = Provider> {
    let problem = proptest::option::of(Just("ProvisionFailed: no answer".to_owned()));
    (meta("provider-1"), problem).prop_map(move |(meta, problem)| Provider {
        api_version: format!("{group}/v1beta1"),
        kind: kind.to_owned(),
        meta,
        is_ready: false,
        problem,
    })
}

/// Records of taints as the operator writes them, and as other clients may.
fn records() -> Vec<String> {
    let many: Vec<_> = (0..100)
        .map(|number| json!({"key": format!("k{number}"), "effect": "NoSchedule"}))
        .collect();
    let taint =
        |value: &str, effect: &str| json!({"key": "a", "value": value, "effect": effect});
    let split = json!([
        taint("1", "NoExecute"),
        taint("2", "NoSchedule"),
        taint("3", "NoExecute"),
    ]);
    let records = [
        json!([]),
        json!([taint("1", "NoSchedule"), {"key": "b", "effect": "NoSchedule"}]),
        json!(many),
        split,
        json!([taint(&"v".repeat(64), "NoSchedule")]),
        json!([{"key": "k".repeat(254), "effect": "NoSchedule"}]),
        json!("nonsense"),
    ];
    records.iter().map(ToString::to_string).collect()
}

fn workload() -> impl Strategy<Value = Workload> {
    let message = "why".to_owned();
    let access = select(vec![
        Access::NotRequested,
        Access::Connected,
        Access::Connected,
        Access::KubeconfigMissing {
            message: message.clone(),
        },
        Access::Unreachable {
            message: message.clone(),
        },
        Access::Unauthorized { message },
    ]);
    let taint = select(vec![("a", "1"), ("a", "2"), ("b", ""), ("c", "")]);
    let taint = taint.prop_map(|(key, value)| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    });
    let record = option::of(select(records()));
    let node = (any::<[bool; 6]>(), vec(taint, 0..3), record).prop_map(
        |(
            [
                is_ours,
                is_unschedulable,
                is_ready,
                is_marked,
                is_asked_back,
                is_labelled,
            ],
            taints,
            record,
        )| Node {
            name: NAME.to_owned(),
            uid: "node-1".to_owned(),
            resource_version: "9".to_owned(),
            provider_id: is_ours.then(|| "provider://1".to_owned()),
            is_unschedulable,
            is_ready,
            cordon_marker: is_marked.then(|| "sm-1".to_owned()),
            taints,
            applied_taints: record,
            leaves_at: is_marked.then(|| "2026-03-06T18:00:00Z".to_owned()),
            reclaim: is_asked_back.then(|| "process-match: game".to_owned()),
            machine: NodeClaim::default(),
            is_control_plane: false,
            has_reclaim_annotations: is_asked_back || is_marked,
            agent_label: is_labelled.then(|| "enabled".to_owned()),
            agent_report: None,
        },
    );
    let pod = (0..30_u8, any::<[bool; 4]>()).prop_map(|(number, flags)| Pod {
        is_of_daemon_set: flags[0] && flags[1],
        is_mirror: flags[1] && flags[2],
        is_finished: flags[2] && flags[3],
        is_deleting: flags[3],
        ..pod(&number.to_string())
    });
    let config =
        any::<[bool; 3]>().prop_map(|[is_ours, is_right, is_here]| AgentConfig {
            uid: "config-1".to_owned(),
            resource_version: "11".to_owned(),
            is_ours,
            text: is_right.then(|| agent_config(&["game".to_owned()])),
            node_uid: is_here.then(|| "node-1".to_owned()),
        });
    (
        access,
        fact(option::of(node)),
        fact(vec(pod, 0..20)),
        fact(option::of(config)),
    )
        .prop_map(|(access, node, pods, agent_config)| Workload {
            access,
            node,
            conflicting_machine: None,
            pods,
            agent_config,
        })
}

pub(super) fn observed(freshness: Freshness) -> impl Strategy<Value = Observed> {
    let contract = select(vec![Contract::V1Beta1, Contract::V1Beta2]);
    let cluster = any::<[bool; 3]>().prop_map(|[is_paused, is_deleting, is_ready]| {
        let mut found =
            fivespot_capi::Cluster::read(&cluster(Contract::V1Beta2)).unwrap();
        found.is_paused = is_paused && is_deleting;
        found.meta.is_deleting = is_deleting;
        found.is_control_plane_initialized = is_ready;
        found
    });
    let part = |kind, group: &'static str| {
        let place = Reference::new(&format!("{group}/v1beta1"), kind, NAME);
        let lookup =
            fact(option::of(provider(kind, group))).prop_map(move |found| Lookup {
                reference: place.clone(),
                found,
            });
        vec(lookup, 0..3)
    };
    (
        fact(contract),
        fact(option::of(cluster)),
        fact(option::of(machine())),
        part("K0sWorkerConfig", "bootstrap.cluster.x-k8s.io"),
        part("RemoteMachine", "infrastructure.cluster.x-k8s.io"),
        workload(),
    )
        .prop_map(
            move |(contract, cluster, machine, bootstrap, infrastructure, workload)| {
                Observed {
                    freshness,
                    specs: Specs::Included,
                    schedule: fivespot_plan::ScheduleInputs::default(),
                    contract,
                    cluster,
                    machine,
                    bootstrap,
                    infrastructure,
                    workload,
                    ..Observed::default()
                }
            },
        )
}

/// Taints in the status, some of which are also in the records.
fn applied() -> Vec<NodeTaint> {
    let taint = |key: &str, value: &str| NodeTaint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    };
    let many = (0..100).map(|number| taint(&format!("k{number}"), ""));
    [taint("a", "1"), taint("b", "2")]
        .into_iter()
        .chain(many)
        .collect()
}

/// Accounts as the operator writes them, and as other clients may.
fn usage() -> impl Strategy<Value = Usage> {
    let number = select(vec![i64::MIN, -1, 0, 60, 2_678_400, i64::MAX]);
    let names = select(vec!["2026-02", "2026-03", "2026-03", "9999-12", ""]);
    let month = (names, uniform5(number)).prop_map(
        |(month, [active, wanted, provisioning, late, reclaims])| UsageMonth {
            month: month.to_owned(),
            active_seconds: active,
            wanted_seconds: wanted,
            provisioning_seconds: provisioning,
            late_seconds: late,
            audited_seconds: late,
            reclaims,
        },
    );
    let times = select(vec![
        Timestamp::MIN,
        at("0001-01-01T00:00:00Z"),
        at("2026-02-20T00:00:00Z"),
        at("2026-03-06T11:59:00Z"),
        at("2026-03-07T00:00:00Z"),
        Timestamp::MAX,
    ]);
    let state = option::of(select(AccountedState::ALL.to_vec()));
    (vec(month, 0..20), option::of(times), state).prop_map(
        |(months, accounted_time, accounted_state)| Usage {
            months,
            start_time: accounted_time,
            accounted_time,
            accounted_state,
        },
    )
}

pub(super) fn status() -> impl Strategy<Value = ScheduledMachineStatus> {
    let offset = -1200_i64..1200;
    let shutdown = (
        select(vec!["machine-1", "machine-2"]),
        offset.clone(),
        select(ShutdownReason::ALL.to_vec()),
    )
        .prop_map(|(uid, offset, reason)| {
            let started_at = at(SOME_NOON) + SignedDuration::from_secs(offset);
            Shutdown {
                machine_uid: uid.to_owned(),
                started_at,
                deadline: started_at + SignedDuration::from_mins(5),
                reason,
                window_end: None,
            }
        });
    let machine_ref = option::of(select(vec!["machine-1", "machine-2"]));
    (
        option::of(shutdown),
        machine_ref,
        option::of(offset),
        (select(Phase::ALL.to_vec()), option::of(usage())),
        any::<[bool; 2]>(),
    )
        .prop_map(
            |(
                shutdown,
                machine_ref,
                scheduled,
                (phase, usage),
                [is_recorded, is_tainted],
            )| {
                let place = |api_version: &str, kind: &str, uid: Option<&str>| {
                    fivespot_api::ObjectRef {
                        api_version: api_version.to_owned(),
                        kind: kind.to_owned(),
                        name: NAME.to_owned(),
                        namespace: Some("default".to_owned()),
                        uid: uid.map(str::to_owned),
                    }
                };
                let bootstrap = place(
                    "bootstrap.cluster.x-k8s.io/v1beta1",
                    "K0sWorkerConfig",
                    None,
                );
                ScheduledMachineStatus {
                    phase: Some(phase),
                    usage,
                    applied_node_taints: is_tainted.then(applied).unwrap_or_default(),
                    shutdown,
                    machine_ref: machine_ref.map(|uid| {
                        place("cluster.x-k8s.io/v1beta2", "Machine", Some(uid))
                    }),
                    last_scheduled_time: scheduled
                        .map(|offset| at(SOME_NOON) + SignedDuration::from_secs(offset)),
                    bootstrap_ref: is_recorded.then_some(bootstrap),
                    provider_id: is_recorded.then(|| "provider://1".to_owned()),
                    node_ref: is_recorded.then(|| NodeRef {
                        api_version: "v1".to_owned(),
                        kind: "Node".to_owned(),
                        name: NAME.to_owned(),
                        uid: Some("node-1".to_owned()),
                    }),
                    ..ScheduledMachineStatus::default()
                }
            },
        )
}

pub(super) fn object() -> impl Strategy<Value = ScheduledMachine> {
    let timeouts = select(vec!["5m", "0s", "24h", "99999h", "soon", ""]);
    let zones = select(vec![
        "UTC",
        "UTC",
        "UTC",
        "America/New_York",
        "Mars/Olympus",
        "",
    ]);
    let hours = select(vec![vec!["9-17"], vec!["0"], vec!["25"], vec![]]);
    let taint = select(vec![("a", "1"), ("b", "2"), ("kubernetes.io/x", "")]);
    let taints = taint.prop_map(|(key, value)| NodeTaint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    });
    let taints = vec(taints, 0..3);
    let labels = select(vec![
        None,
        Some("team"),
        Some("cluster.x-k8s.io/control-plane"),
    ]);
    let taints = (taints, labels);
    (
        any::<[bool; 5]>(),
        timeouts,
        zones,
        hours,
        option::of(status()),
        taints,
    )
        .prop_map(
            |(
                [is_held, is_deleting, is_killed, is_off, is_paused],
                timeout,
                zone,
                hours,
                status,
                (taints, label),
            )| {
                let mut object = scheduled_machine();
                object.metadata.finalizers =
                    is_held.then(|| vec![name::FINALIZER.to_owned()]);
                object.metadata.deletion_timestamp =
                    (is_deleting && is_off).then(|| Time(at(SOME_NOON)));
                if is_paused && is_off {
                    object.metadata.annotations =
                        Some([(key::PAUSED.to_owned(), String::new())].into());
                }
                object.spec.kill_switch = is_killed && is_paused;
                object.spec.schedule.enabled = !is_off || is_held;
                object.spec.schedule.timezone = zone.into();
                object.spec.schedule.hours_of_day =
                    hours.into_iter().map(str::to_owned).collect();
                object.spec.node_drain_timeout = timeout.into();
                object.spec.node_taints = taints;
                let labels = label.into_iter().map(|key| (key.to_owned(), String::new()));
                object.spec.machine_template.labels = labels.collect();
                object.spec.kill_if_commands =
                    (is_killed != is_off).then(|| vec!["game".to_owned()]);
                object.status = status;
                object
            },
        )
}

pub(super) fn memory() -> impl Strategy<Value = Memory> {
    let step = select(vec![
        Step::AddFinalizer,
        Step::CreateBootstrap,
        Step::CreateMachine,
        Step::CordonNode,
        Step::TaintNode,
        Step::DisableSchedule,
        Step::ClearRequest,
        Step::EvictPod,
        Step::RecordReclaim,
        Step::ExcludeDrain,
        Step::DeleteMachine,
        Step::RemoveFinalizer,
    ]);
    let cause = select(vec![
        Cause::Forbidden,
        Cause::NamespaceTerminating,
        Cause::Rejected,
        Cause::NotServed,
        Cause::Unavailable,
    ]);
    let failure = (step, cause, -60_i64..60).prop_map(|(step, cause, offset)| Failure {
        step,
        cause,
        message: "why".to_owned(),
        attempts: 1,
        retry_at: at(SOME_NOON) + SignedDuration::from_secs(offset),
    });
    (option::of(failure), vec(0..30_u8, 0..5)).prop_map(|(failure, refused)| {
        let mut memory = Memory::default();
        if let Some(failure) = failure {
            memory.failed(failure);
        }
        for number in refused {
            memory.refused(&pod(&number.to_string()).uid, "no", at(SOME_NOON));
        }
        memory
    })
}

pub(super) fn now() -> impl Strategy<Value = Timestamp> {
    (-1000_i64..1000)
        .prop_map(|offset| at(SOME_NOON) + SignedDuration::from_secs(offset * 60))
}
