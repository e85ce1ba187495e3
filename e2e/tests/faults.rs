//! The known faults of operators of this kind, and the promises that show that this one does not
//! have them. The test checks that every row names promises that exist.

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[promise!(every_fault_has_a_promise_against_it)];

/// Each fault, and the promises that exclude it.
const FAULTS: &[(&str, &[&str])] = &[
    (
        "the Machine is looked up by another name than it was created with",
        &["opens_on_time::a_window_that_is_open_makes_a_machine_that_becomes_active"],
    ),
    (
        "Machines and Nodes are watched by a label that they do not have",
        &[
            "taints_the_node::a_removed_taint_is_restored_by_the_event_of_the_node",
            "reports_errors::a_node_that_is_no_longer_ready_is_reported_and_stays",
        ],
    ),
    (
        "a new leader ignores the objects that existed before it",
        &["fails_over::the_second_of_two_acts_on_every_machine_when_the_leader_crashes"],
    ),
    (
        "the Lease is not released on SIGTERM",
        &["fails_over::a_leader_that_stops_releases_its_lease_at_once"],
    ),
    (
        "a partitioned leader continues to write",
        &[
            "fails_over::a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can",
        ],
    ),
    (
        "an object is reconciled by no shard, or by two",
        &["fails_over::shards_divide_the_machines_and_take_over_from_one_that_crashes"],
    ),
    (
        "the operator does not recover from an error",
        &[
            "reports_errors::an_invalid_schedule_that_got_past_admission_changes_nothing",
            "foreign_objects_survive::the_machine_is_created_once_the_name_is_free",
            "reports_errors::an_invalid_object_is_reported_and_changes_nothing",
        ],
    ),
    (
        "a create that is retried after a crash fails",
        &["survives_restart_at_every_write::while_a_window_opens"],
    ),
    (
        "a crash between two writes leaves orphaned objects",
        &[
            "deletes_unfinished_objects::though_the_window_has_closed",
            "deletes_unfinished_objects::though_the_scheduled_machine_was_deleted",
            "survives_restart_at_every_write::while_a_machine_is_deleted",
        ],
    ),
    (
        "the kill switch causes endless writes",
        &[
            "kill_switch_wins::an_active_machine_is_removed_at_once_and_recreated_when_the_switch_is_released",
        ],
    ),
    (
        "the kill switch cannot be released",
        &[
            "kill_switch_wins::an_active_machine_is_removed_at_once_and_recreated_when_the_switch_is_released",
        ],
    ),
    (
        "the kill switch removes nothing in some phases",
        &[
            "kill_switch_wins::a_disabled_and_a_deleted_machine_are_removed_at_once_too",
            "kill_switch_wins::a_machine_that_is_shutting_down_is_removed_at_once",
            "deletes_unfinished_objects::though_the_kill_switch_was_set",
        ],
    ),
    (
        "infrastructure is deleted while Cluster API still drains the Node",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "a machine is reported as removed while it still exists",
        &[
            "reports_errors::a_removal_that_hangs_is_reported_after_ten_minutes_and_waited_for",
        ],
    ),
    (
        "pods are deleted in spite of disruption budgets",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "a drain is complete while pods are still terminating",
        &["drains_before_delete::a_pod_that_takes_its_time_to_end_is_waited_for"],
    ),
    (
        "DaemonSet and mirror pods block a drain",
        &["drains_before_delete::pods_that_nobody_can_move_are_not_waited_for"],
    ),
    (
        "taints are written as a whole list, and foreign taints are lost",
        &[
            "taints_the_node::taints_of_the_node_lifecycle_that_change_at_the_same_time_are_never_lost",
        ],
    ),
    (
        "an admin's taint is adopted and removed",
        &["taints_the_node::an_admins_taint_of_the_same_key_is_never_touched"],
    ),
    (
        "disabling a schedule removes the machine without a grace period",
        &[
            "disabled_stays::an_existing_machine_stays_beyond_its_window_and_is_removed_when_enabled",
        ],
    ),
    (
        "a shutdown cannot be cancelled",
        &[
            "cancels_when_it_reopens::a_window_that_opens_again_ends_the_drain_on_the_second",
            "cancels_when_it_reopens::an_edited_schedule_ends_the_drain",
        ],
    ),
    (
        "a window that opens during a shutdown leads to an error",
        &["cancels_when_it_reopens::a_machine_that_is_being_deleted_is_replaced"],
    ),
    (
        "after an edit, objects of the new spec are deleted instead of the old ones",
        &[
            "changes_wait_for_the_next_window::another_kind_of_infrastructure_leaves_the_old_one_to_be_removed",
        ],
    ),
    (
        "a foreign object of the same name is deleted",
        &[
            "foreign_objects_survive::a_foreign_bootstrap_object",
            "foreign_objects_survive::a_foreign_infrastructure_object",
            "foreign_objects_survive::a_foreign_machine",
            "foreign_objects_survive::a_label_of_ours_alone_makes_nothing_ours",
        ],
    ),
    (
        "edits of a running machine are ignored",
        &[
            "changes_wait_for_the_next_window::an_edited_machine_runs_on_as_it_is_and_its_successor_is_made_anew",
        ],
    ),
    (
        "a Machine that was deleted by hand is not recreated",
        &[
            "disabled_stays::a_machine_deleted_by_hand_is_recreated_only_where_the_schedule_is_enabled",
        ],
    ),
    (
        "only one contract version of Cluster API is supported",
        &[
            "supports_both_contracts::the_older_one_gets_timeouts_as_text_and_versions_in_references",
            "supports_both_contracts::the_newer_one_gets_timeouts_in_seconds_and_groups_in_references",
        ],
    ),
    (
        "an invalid schedule is only logged",
        &["reports_errors::an_invalid_schedule_that_got_past_admission_changes_nothing"],
    ),
    (
        "window edges are checked only once a minute",
        &[
            "opens_on_time::a_window_opens_on_the_second_across_a_change_to_daylight_saving",
            "cancels_when_it_reopens::a_window_that_opens_again_ends_the_drain_on_the_second",
        ],
    ),
    (
        "an idle operator polls",
        &[
            "idle_sends_no_requests::a_machine_in_service_causes_no_request_until_its_window_closes",
            "idle_sends_no_requests::a_day_of_a_thousand_machines_causes_requests_at_the_edges_alone",
        ],
    ),
    (
        "events do not show in kubectl describe",
        &[
            "reports_errors::each_change_of_phase_is_one_event",
            "kubectl/shows::describe_shows_spec_status_and_events",
        ],
    ),
    (
        "a reclaim that a crash interrupts is not resumed",
        &[
            "reclaims_the_host::a_crash_after_any_write_of_a_reclaim_ends_in_the_same_state",
        ],
    ),
    (
        "the agent's configuration is never written, or endlessly",
        &[
            "reclaims_the_host::the_agents_label_and_configuration_exist_while_commands_are_listed",
        ],
    ),
    (
        "a stricter rule blocks changes of existing objects",
        &["admits_exactly_the_table::an_object_from_before_the_rules_stays_manageable"],
    ),
    (
        "the documented rejection messages differ from those of the product",
        &[
            "admits_exactly_the_table::a_malformed_duration_is_refused_with_its_field_and_value",
        ],
    ),
    (
        "the finalizer is removed early, or without a request to do so",
        &[
            "finalizes_when_deleted::a_day_later_the_finalizer_is_removed_only_where_that_is_requested",
        ],
    ),
    (
        "deleting a namespace, or deleting with orphans, leaves machines behind",
        &[
            "finalizes_when_deleted::deleting_the_namespace_removes_the_machine",
            "finalizes_when_deleted::even_where_orphans_were_asked_for",
        ],
    ),
    (
        "an edited Secret makes the operator run programs or connect to other servers",
        &[
            "refuses_hostile_objects::every_hostile_kubeconfig_is_refused_and_nothing_is_reached",
        ],
    ),
    (
        "deletion in an error or during a creation leaves orphaned objects",
        &[
            "recovers_from_every_phase::deletion_leaves_nothing_behind_in_any_phase",
            "recovers_from_every_phase::a_machine_half_made_does_not_outlive_its_window",
        ],
    ),
    (
        "the kill switch is reported as complete while the machine runs",
        &[
            "recovers_from_every_phase::the_kill_switch_works_in_every_phase_and_can_be_released",
        ],
    ),
    (
        "a corrected spec has no effect",
        &["recovers_from_every_phase::a_kind_that_was_misspelt_is_put_right"],
    ),
    (
        "a rejection by the API server is not reported, or not retried",
        &[
            "recovers_from_every_phase::what_the_server_rejects_is_reported_with_its_message_and_created_once_it_is_allowed",
        ],
    ),
    (
        "every reconcile writes, and its write triggers the next reconcile",
        &[
            "writes_nothing_when_settled::without_its_cluster",
            "writes_nothing_when_settled::without_the_kind_that_it_names",
            "writes_nothing_when_settled::in_service_with_taints_and_the_agent",
            "writes_nothing_when_settled::while_a_disruption_budget_blocks_its_drain",
            "writes_nothing_when_settled::outside_its_window",
            "writes_nothing_when_settled::switched_off",
            "writes_nothing_when_settled::killed",
            "writes_nothing_when_settled::with_its_name_taken",
            "writes_nothing_when_settled::paused",
            "writes_nothing_when_settled::with_an_invalid_schedule",
        ],
    ),
    (
        "idle watches break unnoticed, and changes are received minutes later",
        &[
            "reacts_after_idle_hours::a_change_after_idle_hours_is_reconciled_at_once",
            "reacts_after_idle_hours::a_change_of_the_node_after_idle_hours_is_reconciled_at_once",
            "reacts_after_idle_hours::a_machine_created_after_idle_hours_is_reconciled_at_once",
            "reacts_after_idle_hours::an_edge_after_a_weekend_is_met_on_the_second",
        ],
    ),
    (
        "objects are read with another name, label or plural than they were written",
        &[
            "reads_what_it_wrote::every_name_that_is_read_is_one_that_is_there",
            "reads_what_it_wrote::every_label_that_is_selected_is_one_that_was_written",
        ],
    ),
    (
        "plural names are guessed from the kind",
        &["reads_what_it_wrote::a_kind_is_found_by_the_plural_that_it_has"],
    ),
    (
        "a long name leads to an error",
        &["reads_what_it_wrote::a_name_of_sixty_three_characters_is_served"],
    ),
    (
        "a forged status makes the operator use a foreign Node or foreign objects",
        &[
            "ignores_forged_status::a_forged_status_of_an_active_machine_changes_nothing",
            "ignores_forged_status::a_forged_status_of_a_removed_machine_changes_nothing",
        ],
    ),
    (
        "a forged Machine makes the operator drain a foreign Node",
        &[
            "ignores_forged_status::a_forged_machine_changes_no_node",
            "refuses_hostile_objects::every_hostile_object_is_refused_by_schema_policy_and_operator",
        ],
    ),
    (
        "Nodes of the management cluster are used instead of the workload cluster's",
        &["reaches_another_cluster::a_node_is_drained_where_it_is"],
    ),
    (
        "the shutdown continues before the pods are gone",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "finalizers and conditions of other controllers are lost",
        &["keeps_fields_of_others::finalizers_and_conditions_of_others_stay"],
    ),
    (
        "every write of a condition changes its lastTransitionTime",
        &["keeps_fields_of_others::a_condition_that_stays_as_it_was_keeps_its_time"],
    ),
    (
        "references to an old machine remain with the next one",
        &[
            "keeps_fields_of_others::references_are_removed_with_the_machine_and_set_with_the_next",
        ],
    ),
    (
        "readiness does not change after the start",
        &[
            "reports_readiness::no_replica_is_ready_before_everything_is_listed",
            "reports_readiness::no_replica_is_ready_without_the_definition",
            "fails_over::a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can",
        ],
    ),
    (
        "a watch that ended is resumed with an empty cache",
        &["reports_readiness::no_replica_is_ready_without_the_definition"],
    ),
    (
        "metrics are declared and never set, or have labels with tenants' values",
        &["reports_readiness::the_metrics_of_the_dashboards_exist_and_are_bounded"],
    ),
    (
        "a grace period is rounded to the next poll",
        &[
            "shuts_down_in_time::a_grace_of_a_minute_and_a_half_ends_on_the_second",
            "drains_before_delete::a_grace_of_nothing_waits_for_nobody",
        ],
    ),
    (
        "an invalid or very long grace period keeps the machine forever",
        &[
            "shuts_down_in_time::a_grace_beyond_a_day_that_got_past_admission_is_a_day",
            "shuts_down_in_time::a_grace_that_cannot_be_parsed_is_the_default",
        ],
    ),
    (
        "a disabled machine is removed after its grace period, or at once",
        &["shuts_down_in_time::a_disabled_machine_with_an_hour_of_grace_stays_beyond_it"],
    ),
    (
        "a window across midnight is open at other hours than reported",
        &["shuts_down_in_time::a_night_that_begins_on_a_friday_is_the_fridays_hours"],
    ),
    (
        "the shipped examples lead to errors",
        &[
            "shuts_down_in_time::every_shipped_example_keeps_its_word",
            "admits_exactly_the_table::the_valid_example_is_created",
        ],
    ),
    (
        "the times of the next activation and cleanup are declared and never written",
        &[
            "shuts_down_in_time::a_night_that_begins_on_a_friday_is_the_fridays_hours",
            "opens_on_time::a_window_opens_on_the_second_across_a_change_to_daylight_saving",
        ],
    ),
    (
        "after an edit, a Machine of another cluster is left without a report",
        &[
            "refuses_hostile_objects::every_hostile_object_is_refused_by_schema_policy_and_operator",
        ],
    ),
    (
        "the operator has permissions that it does not use, or lacks some that it needs",
        &["needs_no_more_than_its_roles::in_a_whole_life"],
    ),
    (
        "the agent may write to any Node",
        &[
            "agent_keeps_to_its_node::another_node_is_rejected_whatever_identity_the_agent_claims",
        ],
    ),
    (
        "the agent cannot write to its own Node, or matches nothing",
        &[
            "reclaims_on_match::a_listed_program_takes_the_machine_out_each_time_it_is_put_back",
        ],
    ),
];

async fn every_fault_has_a_promise_against_it() {
    let all: Vec<String> = crate::ALL
        .concat()
        .iter()
        .map(|promise| promise.name().replace("::", "/"))
        .collect();
    for (fault, promises) in FAULTS {
        assert!(!promises.is_empty(), "{fault}");
        for promise in *promises {
            let name = promise.replace("::", "/");
            assert!(all.contains(&name), "{fault}: no promise {promise}");
        }
    }
}
