//! The product's promises, one file per subject, tested only through the Kubernetes API.
//!
//! Every promise is tested on two backends. `cargo test --test promises` runs all of them on the
//! embedded server with a simulated Cluster API. With `E2E_BACKEND=kubernetes`, they run on the
//! real ones that `cargo xtask cluster up` has started. On both, the operator is in this process,
//! with a clock that the promise controls. How the two differ:
//! `internals/decisions/0030-one-suite-two-backends.md`.
//!
//! # Adding a promise
//!
//! A promise is an async function without arguments in the file of its subject, with a sentence as
//! its name, and a row in the file's `PROMISES`: `promise!(its_name)`. A new file is a `mod` and a
//! row in `ALL`, both below. A promise starts a [`Cluster`](fivespot_testkit::Cluster), uses it
//! through paths and objects, and panics if it is broken. To hold on both backends, it follows
//! these rules:
//!
//! - It uses namespace `default`, Cluster `production-cluster` and Node `worker` on every backend,
//!   and the cluster translates them. Names in *responses* are compared with
//!   `cluster.node_name("worker")` and `cluster.namespace("default")`.
//! - It waits for expected changes with `wait_for`, up to a limit on the operator's clock. It
//!   checks that there are no unexpected changes after `advance_to` or `settle`.
//! - Only the embedded backend has exact instants for Cluster API's actions, `sim`'s annotations,
//!   and the requests of clients other than the operator. A promise that needs them has
//!   `.on_embedded_alone("why")` in its row. The reason is printed and recorded. A promise about
//!   features that the embedded server does not have has `.on_kubernetes_alone("why")`.
//! - It uses the kinds of k0smotron. On a cluster with real providers, those of kubeadm and the
//!   in-memory provider replace them in applied objects. Kinds in *responses* are compared with
//!   `cluster.kind("RemoteMachine")`, and patches contain such kinds. A promise about k0smotron has
//!   `.with_stand_ins_alone("why")`, one about real providers `.with_real_providers_alone("why")`.
//! - A promise that changes the CRDs or the policy, which all promises share, is `.disruptive()`.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod admits_exactly_the_table;
mod agent_keeps_to_its_node;
mod alerts;
mod audits;
mod bounds_its_requests;
mod breakages;
mod cancels_when_it_reopens;
mod changes_wait_for_the_next_window;
mod classes;
mod comes_back_from_a_backup;
mod deletes_unfinished_objects;
mod disabled_stays;
mod drains_before_delete;
mod examples;
mod fails_over;
mod faults;
mod finalizes_when_deleted;
mod folder;
mod follows_other_providers;
mod follows_shared_schedules;
mod foreign_objects_survive;
mod health;
mod host_keeps_to_its_machine;
mod idle_sends_no_requests;
mod ignores_forged_status;
mod images;
mod installs;
mod keeps_class_limits;
mod keeps_class_rates;
mod keeps_fields_of_others;
mod keeps_to_its_windows;
mod kill_switch_wins;
mod kubectl;
mod moved_by_clusterctl;
mod moves_with_its_cluster;
mod needs_no_more_than_its_roles;
mod obeys_overrides;
mod opens_on_time;
mod pauses;
mod program;
mod promise;
mod reaches_another_cluster;
mod reacts_after_idle_hours;
mod reads_what_it_wrote;
mod reclaims_on_match;
mod reclaims_the_host;
mod recovers_from_every_phase;
mod refuses_by_webhook;
mod refuses_hostile_objects;
mod reports_errors;
mod reports_readiness;
mod reports_what_blocks_it;
mod returns_to_service;
mod run;
mod scales_on_schedule;
mod scales_targets_of_others;
mod serves_two_versions;
mod sets;
mod shares_hosts_of_a_class;
mod shuts_down_in_time;
mod starts_in_order;
mod supports_both_contracts;
mod survives_a_crash_anywhere;
mod survives_every_fault;
mod survives_restart_at_every_write;
mod taints_before_the_end;
mod taints_the_node;
mod waits_for_its_cluster;
mod works_with_other_versions;
mod writes_nothing_when_settled;

use std::process::ExitCode;

use promise::Promise;

/// Every promise.
const ALL: &[&[Promise]] = &[
    admits_exactly_the_table::PROMISES,
    agent_keeps_to_its_node::PROMISES,
    alerts::PROMISES,
    audits::PROMISES,
    ignores_forged_status::PROMISES,
    breakages::PROMISES,
    cancels_when_it_reopens::PROMISES,
    changes_wait_for_the_next_window::PROMISES,
    classes::PROMISES,
    comes_back_from_a_backup::PROMISES,
    deletes_unfinished_objects::PROMISES,
    disabled_stays::PROMISES,
    follows_other_providers::PROMISES,
    follows_shared_schedules::PROMISES,
    scales_on_schedule::PROMISES,
    scales_targets_of_others::PROMISES,
    serves_two_versions::PROMISES,
    sets::PROMISES,
    drains_before_delete::PROMISES,
    examples::PROMISES,
    faults::PROMISES,
    foreign_objects_survive::PROMISES,
    fails_over::PROMISES,
    health::PROMISES,
    host_keeps_to_its_machine::PROMISES,
    reacts_after_idle_hours::PROMISES,
    idle_sends_no_requests::PROMISES,
    images::PROMISES,
    images::installed::PROMISES,
    installs::PROMISES,
    keeps_class_limits::PROMISES,
    keeps_class_rates::PROMISES,
    keeps_fields_of_others::PROMISES,
    keeps_to_its_windows::PROMISES,
    kill_switch_wins::PROMISES,
    kubectl::PROMISES,
    kubectl::creates::PROMISES,
    kubectl::page::PROMISES,
    kubectl::policies::PROMISES,
    kubectl::shows::PROMISES,
    shares_hosts_of_a_class::PROMISES,
    shuts_down_in_time::PROMISES,
    finalizes_when_deleted::PROMISES,
    moved_by_clusterctl::PROMISES,
    moves_with_its_cluster::PROMISES,
    needs_no_more_than_its_roles::PROMISES,
    returns_to_service::PROMISES,
    obeys_overrides::PROMISES,
    opens_on_time::PROMISES,
    pauses::PROMISES,
    reaches_another_cluster::PROMISES,
    reads_what_it_wrote::PROMISES,
    reclaims_on_match::PROMISES,
    reclaims_the_host::PROMISES,
    recovers_from_every_phase::PROMISES,
    refuses_by_webhook::PROMISES,
    refuses_hostile_objects::PROMISES,
    writes_nothing_when_settled::PROMISES,
    reports_what_blocks_it::PROMISES,
    supports_both_contracts::PROMISES,
    bounds_its_requests::PROMISES,
    survives_a_crash_anywhere::PROMISES,
    survives_every_fault::PROMISES,
    starts_in_order::PROMISES,
    survives_restart_at_every_write::PROMISES,
    taints_before_the_end::PROMISES,
    taints_the_node::PROMISES,
    reports_errors::PROMISES,
    reports_readiness::PROMISES,
    waits_for_its_cluster::PROMISES,
    works_with_other_versions::PROMISES,
];

fn main() -> ExitCode {
    run::all(ALL.concat())
}
