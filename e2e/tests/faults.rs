//! Every fault that operators of this kind are known to have, and the promise that shows that
//! this one has it not. The table is complete if every row names promises that exist.

use crate::promise::{Promise, promise};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] = &[promise!(every_fault_has_a_promise_against_it)];

/// The fault, and the promises against it.
const FAULTS: &[(&str, &[&str])] = &[
    (
        "the Machine is looked for under another name than it was created under",
        &["opens_on_time::a_window_that_is_open_makes_a_machine_that_becomes_active"],
    ),
    (
        "Machines and Nodes are watched by a label that they do not bear",
        &[
            "taints_the_node::a_taint_that_somebody_removes_comes_back_by_the_nodes_own_event",
            "tells_what_is_wrong::a_node_that_is_not_ready_any_more_is_told_and_stays",
        ],
    ),
    (
        "a new leader leaves alone what was there before it",
        &["hands_over::the_second_of_two_acts_on_every_machine_when_the_leader_crashes"],
    ),
    (
        "the Lease is not released on SIGTERM",
        &["hands_over::a_leader_that_is_told_to_stop_hands_over_at_once"],
    ),
    (
        "a partitioned leader goes on writing",
        &[
            "hands_over::a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can",
        ],
    ),
    (
        "shards leave objects to nobody, or to two",
        &["hands_over::shards_divide_the_machines_and_take_over_from_one_that_crashes"],
    ),
    (
        "an error is for ever",
        &[
            "tells_what_is_wrong::an_invalid_schedule_that_got_past_admission_moves_nothing",
            "foreign_objects_survive::once_the_name_is_free_the_machine_comes",
            "tells_what_is_wrong::an_object_that_makes_no_sense_is_told_so_and_moves_nothing",
        ],
    ),
    (
        "a create that is repeated after a crash is an error",
        &["survives_restart_at_every_write::while_a_window_opens"],
    ),
    (
        "a crash half-way through leaves orphans",
        &[
            "clears_up_what_was_half_made::though_the_window_has_closed",
            "clears_up_what_was_half_made::though_the_scheduled_machine_was_deleted",
            "survives_restart_at_every_write::while_a_machine_is_deleted",
        ],
    ),
    (
        "the kill switch writes without end",
        &[
            "kill_switch_wins::an_active_machine_goes_at_once_and_comes_back_when_the_switch_is_released",
        ],
    ),
    (
        "the kill switch cannot be released",
        &[
            "kill_switch_wins::an_active_machine_goes_at_once_and_comes_back_when_the_switch_is_released",
        ],
    ),
    (
        "the kill switch removes nothing in some phases",
        &[
            "kill_switch_wins::a_disabled_machine_and_a_deleted_one_go_at_once_too",
            "kill_switch_wins::a_machine_that_is_leaving_goes_at_once",
            "clears_up_what_was_half_made::though_the_kill_switch_was_set",
        ],
    ),
    (
        "infrastructure is torn down while Cluster API still drains",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "a machine is told as gone while it is there",
        &[
            "tells_what_is_wrong::a_removal_that_hangs_is_told_after_ten_minutes_and_waited_for",
        ],
    ),
    (
        "pods are deleted in spite of disruption budgets",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "a drain is over while pods are still ending",
        &["drains_before_delete::a_pod_that_takes_its_time_to_end_is_waited_for"],
    ),
    (
        "DaemonSet and mirror pods hold up a drain",
        &["drains_before_delete::pods_that_nobody_can_move_are_not_waited_for"],
    ),
    (
        "taints are written as a whole list and lose those of others",
        &[
            "taints_the_node::taints_of_the_node_lifecycle_that_change_at_the_same_time_are_never_lost",
        ],
    ),
    (
        "an admin's taint is adopted and removed",
        &["taints_the_node::an_admins_taint_of_the_same_key_is_never_touched"],
    ),
    (
        "switching a schedule off takes the machine away without grace",
        &[
            "disabled_stays::a_machine_that_is_there_stays_beyond_its_window_and_leaves_when_enabled",
        ],
    ),
    (
        "leaving cannot be cancelled",
        &[
            "cancels_when_it_reopens::a_window_that_opens_again_ends_the_drain_on_the_second",
            "cancels_when_it_reopens::an_edited_schedule_ends_the_drain",
        ],
    ),
    (
        "a window that opens while the old machine leaves ends in an error",
        &[
            "cancels_when_it_reopens::a_machine_that_is_being_deleted_goes_and_another_comes",
        ],
    ),
    (
        "after an edit, what the new spec names is deleted instead of what was created",
        &[
            "changes_wait_for_the_next_window::another_kind_of_infrastructure_leaves_the_old_one_to_be_removed",
        ],
    ),
    (
        "somebody else's object of the same name is deleted",
        &[
            "foreign_objects_survive::a_foreign_bootstrap_object",
            "foreign_objects_survive::a_foreign_infrastructure_object",
            "foreign_objects_survive::a_foreign_machine",
            "foreign_objects_survive::a_label_of_ours_alone_makes_nothing_ours",
        ],
    ),
    (
        "edits of a running machine go unnoticed",
        &[
            "changes_wait_for_the_next_window::an_edited_machine_runs_on_as_it_is_and_its_successor_is_made_anew",
        ],
    ),
    (
        "a Machine that was deleted by hand does not come back",
        &[
            "disabled_stays::a_machine_deleted_by_hand_comes_back_only_where_the_schedule_is_enabled",
        ],
    ),
    (
        "only one contract version of Cluster API is spoken",
        &[
            "speaks_both_contracts::the_older_one_is_told_timeouts_as_text_and_versions_in_references",
            "speaks_both_contracts::the_newer_one_is_told_timeouts_in_seconds_and_groups_in_references",
        ],
    ),
    (
        "an invalid schedule is only logged",
        &[
            "tells_what_is_wrong::an_invalid_schedule_that_got_past_admission_moves_nothing",
        ],
    ),
    (
        "edges are noticed by the minute",
        &[
            "opens_on_time::a_window_opens_on_the_second_across_a_change_to_daylight_saving",
            "cancels_when_it_reopens::a_window_that_opens_again_ends_the_drain_on_the_second",
        ],
    ),
    (
        "an idle operator polls",
        &[
            "idle_costs_nothing::a_machine_in_service_causes_no_request_until_its_window_closes",
            "idle_costs_nothing::a_day_of_a_thousand_machines_causes_requests_at_the_edges_alone",
        ],
    ),
    (
        "events do not show in kubectl describe",
        &[
            "tells_what_is_wrong::each_change_of_phase_is_told_once_as_an_event",
            "kubectl/shows::describe_tells_the_whole_story",
        ],
    ),
    (
        "a reclaim that dies half-way is forgotten",
        &[
            "reclaims_the_host::a_crash_after_any_write_of_a_reclaim_ends_in_the_same_state",
        ],
    ),
    (
        "the agent's configuration is never written, or without end",
        &[
            "reclaims_the_host::the_agents_label_and_configuration_come_with_the_commands_and_go_with_them",
        ],
    ),
    (
        "a rule that is tightened locks up old objects",
        &["admits_exactly_the_table::an_object_from_before_the_rules_stays_manageable"],
    ),
    (
        "the documented texts of refusals are not those of the product",
        &[
            "admits_exactly_the_table::a_malformed_duration_is_refused_with_its_field_and_value",
        ],
    ),
    (
        "the finalizer is given up early, or although nobody asked for that",
        &[
            "leaves_when_deleted::a_day_later_the_finalizer_goes_where_that_is_asked_for_and_nowhere_else",
        ],
    ),
    (
        "a namespace or an orphaning deletion leaves machines behind",
        &[
            "leaves_when_deleted::a_namespace_that_is_deleted_takes_its_machine_along",
            "leaves_when_deleted::even_where_orphans_were_asked_for",
        ],
    ),
    (
        "a Secret that somebody edits makes the operator run or reach what it should not",
        &[
            "refuses_hostile_objects::every_hostile_kubeconfig_is_refused_and_nothing_is_reached",
        ],
    ),
    (
        "deletion out of an error or half-way through a creation leaves objects to nobody",
        &[
            "recovers_from_every_phase::deletion_leaves_nothing_behind_in_any_phase",
            "recovers_from_every_phase::a_machine_half_made_does_not_outlive_its_window",
        ],
    ),
    (
        "the kill switch is told as done while the machine runs",
        &[
            "recovers_from_every_phase::the_kill_switch_works_in_every_phase_and_can_be_released",
        ],
    ),
    (
        "a spec that is put right changes nothing",
        &["recovers_from_every_phase::a_kind_that_was_misspelt_is_put_right"],
    ),
    (
        "a refusal of the API server is shown to nobody, or tried once",
        &[
            "recovers_from_every_phase::what_the_server_refuses_is_told_in_its_words_and_comes_once_it_is_allowed",
        ],
    ),
    (
        "every pass writes, and wakes itself by what it has written",
        &[
            "rests_in_every_state::without_its_cluster",
            "rests_in_every_state::without_the_kind_that_it_names",
            "rests_in_every_state::in_service_with_taints_and_the_agent",
            "rests_in_every_state::while_a_budget_holds_up_its_leaving",
            "rests_in_every_state::outside_its_window",
            "rests_in_every_state::switched_off",
            "rests_in_every_state::killed",
            "rests_in_every_state::with_its_name_taken",
            "rests_in_every_state::paused",
            "rests_in_every_state::with_an_invalid_schedule",
        ],
    ),
    (
        "watches die of silence, and changes are heard minutes later",
        &[
            "hears_after_silence::a_change_after_hours_is_acted_on_with_no_time_passing",
            "hears_after_silence::what_the_node_tells_after_hours_is_heard_with_no_time_passing",
            "hears_after_silence::a_machine_that_is_new_after_hours_is_made_with_no_time_passing",
            "hears_after_silence::an_edge_after_a_weekend_is_met_on_the_second",
        ],
    ),
    (
        "what is read was written under another name, label or plural",
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
        "a long name ends in an error",
        &["reads_what_it_wrote::a_name_of_sixty_three_characters_is_served"],
    ),
    (
        "a status that somebody forged leads to another's Node or objects",
        &[
            "believes_no_forgery::a_forged_status_of_a_machine_in_service_leads_nowhere",
            "believes_no_forgery::a_forged_status_of_a_machine_that_is_gone_leads_nowhere",
        ],
    ),
    (
        "a decoy Machine has another's Node drained",
        &[
            "believes_no_forgery::a_decoy_machine_leads_to_no_node",
            "refuses_hostile_objects::every_hostile_object_is_refused_by_schema_policy_and_operator",
        ],
    ),
    (
        "Nodes of the management cluster are taken for those of the workload cluster",
        &["reaches_another_cluster::a_node_is_drained_where_it_is"],
    ),
    (
        "the drain goes on before the pods are gone",
        &[
            "drains_before_delete::the_second_eviction_waits_for_the_replacement_and_the_machine_for_both",
        ],
    ),
    (
        "finalizers and conditions of others are lost",
        &["keeps_what_others_wrote::finalizers_and_conditions_of_others_stay"],
    ),
    (
        "every write of a condition changes its time",
        &["keeps_what_others_wrote::a_condition_that_stays_as_it_was_keeps_its_time"],
    ),
    (
        "references of an old machine survive into the next",
        &[
            "keeps_what_others_wrote::references_go_with_the_machine_and_come_anew_with_the_next",
        ],
    ),
    (
        "readiness is what it was at the start",
        &[
            "tells_whether_it_is_ready::nobody_is_ready_before_all_is_listed",
            "tells_whether_it_is_ready::nobody_is_ready_without_the_definition",
            "hands_over::a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can",
        ],
    ),
    (
        "a watch that broke off goes on with a cache that is empty",
        &["tells_whether_it_is_ready::nobody_is_ready_without_the_definition"],
    ),
    (
        "metrics are declared and never set, or labelled by what tenants write",
        &[
            "tells_whether_it_is_ready::the_metrics_that_dashboards_know_are_there_and_bounded",
        ],
    ),
    (
        "a grace is rounded to the next poll",
        &[
            "leaves_in_its_time::a_grace_of_a_minute_and_a_half_ends_on_the_second",
            "drains_before_delete::a_grace_of_nothing_waits_for_nobody",
        ],
    ),
    (
        "a grace that nobody can serve keeps the machine for ever",
        &[
            "leaves_in_its_time::a_grace_beyond_a_day_that_got_past_admission_is_a_day",
            "leaves_in_its_time::a_grace_that_nobody_can_read_is_the_usual_one",
        ],
    ),
    (
        "a disabled machine goes after its grace, or at once",
        &["leaves_in_its_time::a_disabled_machine_with_an_hour_of_grace_stays_beyond_it"],
    ),
    (
        "a window over midnight is on at other hours than are told",
        &["leaves_in_its_time::a_night_that_begins_on_a_friday_is_the_fridays_hours"],
    ),
    (
        "the shipped examples end in errors",
        &[
            "leaves_in_its_time::every_shipped_example_keeps_its_word",
            "admits_exactly_the_table::the_valid_example_is_created",
        ],
    ),
    (
        "the next opening and the next clearing up are declared and never told",
        &[
            "leaves_in_its_time::a_night_that_begins_on_a_friday_is_the_fridays_hours",
            "opens_on_time::a_window_opens_on_the_second_across_a_change_to_daylight_saving",
        ],
    ),
    (
        "a Machine of another cluster is left without a word after an edit",
        &[
            "refuses_hostile_objects::every_hostile_object_is_refused_by_schema_policy_and_operator",
        ],
    ),
    (
        "the operator may do more than it does, or does more than it may",
        &["needs_no_more_than_its_roles::in_a_whole_life"],
    ),
    (
        "the agent may write to any Node",
        &[
            "agent_keeps_to_its_node::another_node_is_refused_whoever_the_agent_says_that_it_is",
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
