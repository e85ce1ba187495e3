//! Mutants of code that the model does not run, or whose faults break no law of it: each is
//! detected by a test, which is named with it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::{Mutant, SourceCopy};

/// A deliberate fault, and the test that detects it.
pub(crate) struct TestedMutant {
    pub(crate) mutant: Mutant,
    /// The full name of the test in its binary.
    pub(crate) test: &'static str,
}

/// Builds the binaries that contain the named tests. With other features than those of the
/// workspace, all dependencies would be built again.
const BUILD: [&str; 14] = [
    "test",
    "--no-run",
    "--message-format=json",
    "--offline",
    "--quiet",
    "--workspace",
    "--lib",
    "--test=long",
    "--test=plan",
    "--test=steps",
    "--test=overrides",
    "--test=spot_schedules",
    "--test=windows",
    "--test=in_process",
];

/// How long a test may take. A mutant for which it takes longer is detected: it does not end.
const LIMIT: Duration = Duration::from_mins(10);

const ENDED: &str = "crates/controller/src/schedule_override/ended.rs";
const INDEX: &str = "crates/controller/src/schedule_override/index.rs";
const PROVIDED: &str = "crates/controller/src/observe/provided.rs";
const SPEC: &str = "crates/api/src/scheduled_machine.rs";
const API_SPOT_SCHEDULE: &str = "crates/api/src/spot_schedule.rs";
const SPOT_SCHEDULE: &str = "crates/controller/src/spot_schedule/spot_schedules.rs";
const OVERRIDE: &str = "crates/controller/src/schedule_override/overrides.rs";
const OBSERVE: &str = "crates/controller/src/observe.rs";
const OWN_CRD: &str = "crates/controller/src/observe/own_crd.rs";
const REPORT: &str = "crates/controller/src/report.rs";
const BACKOFF: &str = "crates/runtime/src/queue/backoff.rs";
const MONOTONIC: &str = "crates/runtime/src/queue/monotonic.rs";
const START_LIMIT: &str = "crates/runtime/src/queue/start_limit.rs";
const SPAN_SEARCH: &str = "crates/schedule/src/span_search.rs";
const EXCEPTION: &str = "crates/schedule/src/exception.rs";
const OVERRIDING: &str = "crates/schedule/src/overriding.rs";
const WINDOW: &str = "crates/schedule/src/window.rs";
const CASE: &str = "crates/plan/src/decide/case.rs";
const OVERRIDES: &str = "crates/plan/src/overrides.rs";
const PLAN_SPOT_SCHEDULE: &str = "crates/plan/src/spot_schedule.rs";
const PRECEDENCE: &str = "crates/plan/src/decide/precedence.rs";
const PACE: &str = "crates/plan/src/decide/pace.rs";
const RATES: &str = "crates/plan/src/rates.rs";
const CLASS_RATES: &str = "crates/controller/src/class_rates.rs";
const SERVE: &str = "crates/plan/src/decide/serve.rs";
const SHUTDOWN: &str = "crates/plan/src/decide/shutdown.rs";
const CAPACITY: &str = "crates/plan/src/capacity.rs";
const CAPACITY_WANTED: &str = "crates/plan/src/capacity/wanted.rs";
const CAPACITY_WRITE: &str = "crates/plan/src/capacity/write.rs";
const EVENT: &str = "crates/plan/src/status/event.rs";
const SET: &str = "crates/plan/src/set.rs";
const HOST_POOL: &str = "crates/controller/src/host_pool.rs";
const HOST_RETURN: &str = "crates/plan/src/decide/host_return.rs";
const USAGE: &str = "crates/plan/src/status/usage.rs";

macro_rules! mutants {
    ($($id:literal, $fault:literal, $file:expr, $find:literal => $replace:literal, $test:literal;)*) => {
        /// Every mutant.
        pub(crate) const TESTED: &[TestedMutant] = &[$(TestedMutant {
            mutant: Mutant {
                id: $id,
                fault: $fault,
                file: $file,
                find: $find,
                replace: $replace,
            },
            test: $test,
        }),*];
    };
}

mutants! {
    "set-one-machine-too-many", "creates one machine more than a set wants", SET,
        "facts.wanted().saturating_sub(facts.staying().len());" => "(facts.wanted() + 1).saturating_sub(facts.staying().len());",
        "sets::whatever_happens_a_set_has_no_machine_too_many_and_comes_to_rest";
    "set-deletes-one-more", "deletes a machine of a set that has no machine too many", SET,
        "staying.len().saturating_sub(facts.wanted());" => "(staying.len() + 1).saturating_sub(facts.wanted());",
        "sets::whatever_happens_a_set_has_no_machine_too_many_and_comes_to_rest";
    "set-counts-what-leaves", "counts the machines of a set that are being deleted as machines that stay", SET,
        "self.machines.iter().filter(|it| !it.is_leaving).collect()" => "self.machines.iter().filter(|it| !it.is_leaving || it.is_leaving).collect()",
        "sets::a_machine_that_is_being_deleted_keeps_its_index";
    "set-waits-for-what-leaves", "creates no machine of a set while another one is being deleted", SET,
        "facts.wanted().saturating_sub(facts.staying().len());" => "facts.wanted().saturating_sub(facts.machines.len());",
        "sets::a_machine_that_is_being_deleted_keeps_its_index";
    "set-index-used-twice", "gives a machine the index of one that is being deleted", SET,
        "let used: BTreeSet<u32> = facts.machines.iter().map(|it| it.index).collect();" => "let used: BTreeSet<u32> = facts.staying().iter().map(|it| it.index).collect();",
        "sets::a_machine_that_is_being_deleted_keeps_its_index";
    "set-index-of-another-used", "uses an index whose name another ScheduledMachine has", SET,
        "&& !facts.taken.contains(index)" => "",
        "sets::the_lowest_free_indexes_are_created_and_each_machine_is_owned_by_the_set";
    "set-creation-forgotten", "creates another machine while a creation is unanswered", SET,
        "let created = again.chain(free)" => "let created = again.filter(|_| false).chain(free)",
        "sets::a_set_has_no_machine_too_many_after_a_response_was_lost";
    "set-creation-doubled", "uses the index of an unanswered creation for a second machine", SET,
        "let open = &facts.unanswered.creations;" => "let none: BTreeSet<u32> = BTreeSet::new();\n    let open = &none;",
        "sets::a_set_has_no_machine_too_many_after_a_response_was_lost";
    "set-deletion-forgotten", "deletes another machine while a deletion is unanswered", SET,
        "(!is_asked, it.is_active, it.priority, last_first)" => "(is_asked && false, it.is_active, it.priority, last_first)",
        "sets::no_second_machine_is_deleted_while_a_deletion_is_unanswered";
    "set-active-leave-first", "deletes machines of a set that are Active before others", SET,
        "(!is_asked, it.is_active, it.priority, last_first)" => "(!is_asked, !it.is_active, it.priority, last_first)",
        "sets::those_that_are_not_active_leave_first_then_those_of_low_priority_then_the_last";
    "set-priority-ignored", "deletes the last machine of a set, whatever its priority", SET,
        "(!is_asked, it.is_active, it.priority, last_first)" => "(!is_asked, it.is_active, last_first)",
        "sets::those_that_are_not_active_leave_first_then_those_of_low_priority_then_the_last";
    "set-deletion-unguarded", "deletes a machine of a set that has changed", SET,
        "version: it.version.clone(),\n    });" => "version: String::new(),\n    });",
        "sets::those_that_are_not_active_leave_first_then_those_of_low_priority_then_the_last";
    "set-label-late", "creates machines while one of the set is not found by its label", SET,
        "if unlabelled.is_empty() {" => "if unlabelled.is_empty() || true {",
        "sets::a_machine_without_the_label_gets_it_before_others_are_created_or_deleted";
    "set-acts-while-deleted", "deletes machines of a set that is being deleted", SET,
        "if set.metadata.deletion_timestamp.is_some() {" => "if false && set.metadata.deletion_timestamp.is_some() {",
        "sets::nothing_is_done_about_an_invalid_set_and_one_that_is_being_deleted";
    "set-template-over-own-fields", "takes back what a person has changed on a machine of a set", SET,
        "difference(&before, applied.clone());" => "difference(if false { &before } else { &Value::Null }, applied.clone());",
        "sets::a_change_of_the_template_reaches_a_machine_and_leaves_its_own_fields";
    "set-plan-unbounded", "changes all machines of a set in one plan", SET,
        "actions.truncate(MAX_ACTIONS);" => "actions.truncate(usize::MAX);",
        "sets::a_thousand_machines_are_created_in_bounded_steps";
    "reclaim-disables-without-class", "disables the schedule of a reclaimed machine whose class is missing", SPEC,
        "self.returning().is_some() || self.is_class_unknown();" => "self.returning().is_some();",
        "scheduled_machine_class::tests::a_reclaim_disables_no_schedule_of_a_machine_that_may_return";
    "host-turn-without-priority", "offers a host to the first by name instead of by priority", HOST_POOL,
        "let place = (Reverse(wish.priority), key.clone());\n        state.forget_expected" => "let place = (Reverse(0), key.clone());\n        state.forget_expected",
        "host_pool::tests::of_machines_that_wait_the_highest_priority_comes_first";
    "host-offered-twice", "offers one host to two machines", HOST_POOL,
        "offer.is_none_or(|offer| offer.is_open_to(key))" => "(offer.is_none() || offer.is_some())",
        "host_pool::tests::each_machine_is_offered_another_host_in_the_order_of_their_names";
    "host-taken-from-those-ahead", "offers a host that one of those ahead could take", HOST_POOL,
        "Some(first) if others == 0 || left.nth(others - 1).is_some()" => "Some(first) if others == 0 || left.nth(others - 1).is_some() || true",
        "host_pool::tests::of_machines_that_wait_the_highest_priority_comes_first";
    "host-named-ahead-ignored", "offers a host that one ahead has named", HOST_POOL,
        "is_free(host) && !named_ahead.contains(*host)" => "is_free(host)",
        "host_pool::tests::a_named_host_waits_for_that_host_alone_and_comes_before_a_lower_priority";
    "host-named-before-those-ahead", "offers a named host that one ahead would take", HOST_POOL,
        "let is_others = others > 0 &&" => "let is_others = false && others > 0 &&",
        "host_pool::tests::one_that_names_a_host_does_not_take_it_from_one_ahead_that_takes_any";
    "host-left-for-ever", "does not ask again for a host that was left to one that never asks", HOST_POOL,
        "let mut due = self.expected.range(..=now);" => "let mut due = self.expected.range(..now);",
        "host_pool::tests::one_that_may_need_a_host_at_the_same_instant_keeps_its_place_until_it_asks";
    "host-offer-outlives-its-machine", "leaves a host alone that was offered to a machine that no longer waits", HOST_POOL,
        "let freed = offers.find(|(_, offer)| offer.is_open_to(key));" => "let freed = offers.find(|(_, offer)| false && offer.is_open_to(key));",
        "host_pool::tests::a_host_that_was_offered_and_never_claimed_wakes_who_waits";
    "host-claim-repeated", "offers a host again and again whose claim the server has refused", HOST_POOL,
        "offer.claimed_at.get_or_insert(now);" => "let _ = offer;",
        "host_pool::tests::a_host_whose_claim_was_refused_is_left_alone_until_its_lease_is_shown";
    "rate-without-priority", "lets the lowest priority of a class begin first", RATES,
        "u8::MAX.saturating_sub(priority)" => "priority",
        "class_rates::tests::at_an_edge_the_order_in_which_machines_are_reconciled_makes_no_difference";
    "rate-grant-forgotten", "lets another machine begin before the one that may has begun", RATES,
        "(!is_used && self.is_recent(grant.at)).then_some(grant)" => "(!is_used && self.is_recent(grant.at) && false).then_some(grant)",
        "class_rates::tests::one_that_may_begin_and_has_not_yet_is_the_one_of_its_minute";
    "rate-deleted-forgotten", "lets a class begin another machine for each that is deleted", CLASS_RATES,
        "self.past.push((key.clone(), entry));" => "let _ = entry;",
        "class_rates::tests::a_machine_that_is_deleted_and_created_again_gains_no_start";
    "rate-minimum-ignored", "lets a machine leave that its class keeps", PRECEDENCE,
        "case.is_wanted() || pace::stop_held(case).is_some()" => "case.is_wanted()",
        "rates::a_machine_that_is_kept_stays_in_service_and_says_why";
    "rate-holds-a-stop", "holds a machine that an override stops", PACE,
        "let is_stopped = is_stopped_by_override(case);" => "let is_stopped = false;",
        "rates::a_stop_override_a_kill_switch_and_a_deletion_are_never_held";
    "rate-start-unheld", "begins a machine before the rate of its class allows it", SERVE,
        "let held = case.owned.is_gone().then(|| pace::start_held(case));" => "let held = case.owned.is_gone().then(|| pace::start_held(case)).filter(|_| false);",
        "rates::a_machine_that_may_not_begin_yet_is_pending_and_says_when_it_may";
    "return-unconfirmed", "returns a host that was free and has not confirmed it since", HOST_RETURN,
        "free.confirmed >= due" => "true",
        "returning::a_machine_returns_once_its_host_has_been_free_for_long_enough";
    "return-by-an-old-report", "returns a host whose report is old", HOST_RETURN,
        "after(free.confirmed, FRESH) <= now" => "false",
        "returning::a_report_from_before_the_reclaim_or_that_is_old_or_ahead_returns_nothing";
    "return-by-a-clock-ahead", "returns a host whose clock is ahead", HOST_RETURN,
        "free.confirmed > after(now, AHEAD)" => "false",
        "returning::a_report_from_before_the_reclaim_or_that_is_old_or_ahead_returns_nothing";
    "return-counts-from-before", "counts the time before the reclaim in which the host was free", HOST_RETURN,
        "free.since.max(stop.begun)" => "free.since",
        "returning::a_report_from_before_the_reclaim_or_that_is_old_or_ahead_returns_nothing";
    "return-once-more", "returns once more than it may in a day", HOST_RETURN,
        "times.len() >= wanted.max_per_day" => "times.len() > wanted.max_per_day",
        "returning::in_no_course_a_machine_returns_while_a_signal_may_stand_or_too_often";
    "return-despite-kill-switch", "ends the override of a reclaim while the kill switch is set", HOST_RETURN,
        "|| case.desired.is_killed\n" => "\n",
        "returning::a_return_undoes_neither_a_kill_switch_nor_a_disable_nor_a_stop_of_another";
    "return-ends-anothers-stop", "returns while a Stop override of another is in force", HOST_RETURN,
        "of.name == in_force.name && in_force.mode" => "in_force.mode",
        "returning::a_return_undoes_neither_a_kill_switch_nor_a_disable_nor_a_stop_of_another";
    "return-not-recorded", "ends the override before the return is recorded", HOST_RETURN,
        "all.any(|of| of.override_uid == stop.uid && after(of.time, FRESH) > case.now)" => "all.len() == usize::MAX || stop.uid.len() < usize::MAX",
        "returning::after_a_crash_at_any_write_a_return_is_counted_once";
    "published-plans-followers", "plans everything that follows a schedule when it has published", SPOT_SCHEDULE,
        "let is_other = shown.get(key) != Some(&now);" => "let is_other = true;",
        "context::tests::a_machine_is_planned_again_for_the_spec_of_its_schedule_and_not_for_its_status";
    "flapping-followed", "follows a provider at once that changes to and fro", PROVIDED,
        "self.changes.len() > MAX_CHANGES\n" => "false\n",
        "observe::provided::tests::what_changes_more_often_is_followed_once_a_minute_until_it_is_quiet";
    "not-ready-followed", "follows a provider that is not ready", API_SPOT_SCHEDULE,
        ".filter(|of| of[\"status\"] != \"True\")" => ".filter(|_| false)",
        "spot_schedule::tests::a_provider_is_not_followed_without_active_or_while_it_is_not_ready";
    "invalid-publishes-closed", "publishes that a schedule is closed which cannot be evaluated", PLAN_SPOT_SCHEDULE,
        "next_transition_time: None,\n        ..before.clone()" => "next_transition_time: None,\n        active: Some(false),\n        ..before.clone()",
        "what_was_published_stays_while_the_schedule_cannot_be_evaluated";
    "ended-override-returns", "obeys an override that has ended after the clock was set back", OVERRIDE,
        ".filter(|of| !is_over(of))" => ".filter(|_| true)",
        "overrides::an_override_that_has_ended_does_not_return_when_the_clock_is_set_back";
    "instant-on-record-ignored", "closes a window that has opened when its clock is earlier than the last one", OBSERVE,
        "not_before(source.context.queue.now(), last_recorded_instant(&object))" => "source.context.queue.now()",
        "timing::a_window_that_has_opened_stays_open_for_an_operator_with_an_earlier_clock";
    "failed-read-is-news", "reconciles every machine after each failed read of the definition", OWN_CRD,
        "reads.error = Some(error);\n            return false;" => "reads.error = Some(error);\n            return true;",
        "outdated::a_definition_that_cannot_be_read_does_not_count_as_current";
    "failed-read-is-current", "takes a definition that could not be read for current", OWN_CRD,
        "let error = reads.error.as_ref()?;" => "let error = reads.error.as_ref().filter(|_| false)?;",
        "outdated::a_definition_that_cannot_be_read_does_not_count_as_current";
    "late-read-wakes-nobody", "creates nothing after the definition could be read at last", OWN_CRD,
        "None => failed," => "None => failed && false,",
        "outdated::a_definition_that_cannot_be_read_does_not_count_as_current";
    "dropped-record-awaited", "waits for a shutdown record that the server drops", REPORT,
        ".filter(|_| stored.is_null())" => ".filter(|_| stored.is_null() && false)",
        "outdated::the_kill_switch_and_a_deletion_need_no_record_that_the_server_keeps";
    "edited-end-ignored", "takes an override whose end was edited for ended", ENDED,
        ".filter(|before| *before == end)" => ".filter(|_| true)",
        "schedule_override::ended::tests::an_ended_override_stays_ended_when_the_clock_is_set_back";
    "relabelled-machine-keeps-overrides", "does not count a machine whose labels have changed", INDEX,
        "affected.extend(self.overrides_of(key));" => "",
        "overrides::an_override_counts_its_machines_when_their_labels_or_schedules_change";
    "override-status-is-news", "reconciles the machines of an override after each write of its status", INDEX,
        "if is_same_in_effect(known, found)" => "if false && is_same_in_effect(known, found)",
        "overrides::only_a_change_of_the_spec_of_an_override_reconciles_its_machines";
    "kept-override-deleted", "deletes an override that is to be kept", OVERRIDES,
        "if deletion <= now && !object.is_kept() {" => "if deletion <= now {",
        "an_override_is_deleted_an_hour_after_its_end_unless_it_is_kept";
    "ended-override-in-force", "says that an override is in force at its end", OVERRIDES,
        "let is_over = until <= now;" => "let is_over = until < now;",
        "an_override_is_active_from_its_start_to_its_end";
    "backoff-does-not-grow", "tries a failing step again every second", BACKOFF,
        ".saturating_sub(1).min(16)" => ".saturating_sub(1).min(0)",
        "queue::tests::the_backoff_grows_with_each_failure_up_to_five_minutes";
    "decision-goes-back", "decides for an earlier instant than before", MONOTONIC,
        "ahead.map_or(now, |then| then.max(now))" => "ahead.map_or(now, |_| now)",
        "queue::monotonic::tests::the_instant_does_not_go_back_while_a_corrected_clock_catches_up";
    "clock-ahead-for-ever", "keeps to the instants of a clock that was far ahead", MONOTONIC,
        "then.duration_since(now) <= CORRECTION" => "true",
        "queue::monotonic::tests::a_clock_that_was_far_ahead_is_accepted_when_it_is_corrected";
    "start-limit-ignored", "starts more machines in a minute than it may", START_LIMIT,
        "limit.saturating_sub(self.started.len())" => "limit",
        "queue::start_limit::tests::no_more_than_the_limit_start_within_a_minute";
    "need-without-lead-time", "makes a machine only when its window opens", SPAN_SEARCH,
        "|opens| opens.saturating_sub(self.lead_time())" => "|opens| opens",
        "a_machine_is_needed_from_the_lead_time_before_a_window_to_its_early_end";
    "need-without-early-end", "needs a machine to the end of a window by which it should be gone", SPAN_SEARCH,
        "closes.saturating_sub(self.timeline.schedule().early_end.as_secs())" => "closes",
        "a_machine_is_needed_from_the_lead_time_before_a_window_to_its_early_end";
    "adjacent-spans-separate", "shuts a machine down between windows that touch", SPAN_SEARCH,
        "next.start <= end =>" => "next.start < end =>",
        "adjacent_spans_are_merged_and_windows_shorter_than_the_early_end_skipped";
    "short-window-served-early", "makes a machine for a window that it never serves", SPAN_SEARCH,
        "span.end.is_none_or(|end| end > since)" => "span.end.is_none_or(|end| end > start)",
        "a_window_that_is_not_longer_than_the_early_end_needs_nothing_whatever_the_lead_time";
    "repeated-hour-ends-first", "closes a window the first time of a repeated hour", WINDOW,
        "clock.last_before(day * DAY + end)?" => "clock.first_reaching(day * DAY + end)?",
        "in_repeated_time_a_window_starts_the_first_time_and_ends_the_second";
    "touching-windows-separate", "closes between windows that touch", WINDOW,
        "Some(until) if start > until => return" => "Some(until) if start >= until => return",
        "a_window_belongs_to_its_starting_day_and_adjacent_windows_are_merged";
    "unready-node-is-active", "counts a Node that is not ready as service", USAGE,
        "machine::is_node_ready(case, machine) == Some(true)" => "machine.node.is_some()",
        "usage::the_time_without_a_ready_node_is_late_and_not_active";
    "half-made-costs-nothing", "does not count the first objects of a machine", USAGE,
        "None if case.owned.providers().is_empty()" => "None if true",
        "usage::provisioning_begins_with_the_first_object_that_exists";
    "unread-is-gone", "counts a machine that cannot be read as gone", USAGE,
        "None if unknown.is_some()" => "None if false && unknown.is_some()",
        "usage::while_the_objects_cannot_be_read_the_time_counts_as_before";
    "killed-is-wanted", "counts the time of the kill switch as wanted", USAGE,
        "        Reason::KillSwitchActivated,\n        Reason::ScheduleDisabled," => "        Reason::ScheduleDisabled,",
        "usage::the_time_of_the_kill_switch_is_not_wanted";
    "held-off-is-wanted", "counts the time of a hold without a machine as wanted", USAGE,
        "is_hold && is_none" => "is_hold && is_none && false",
        "usage::the_time_in_which_an_override_holds_a_machine_off_is_not_wanted";
    "held-is-not-wanted", "does not count the window of a machine that is held", USAGE,
        "is_hold && is_none" => "is_hold",
        "usage::a_machine_that_an_override_keeps_in_its_window_is_wanted";
    "late-start-is-in-time", "says nothing of a shutdown that began after the end of the window", SHUTDOWN,
        "window_end: window_end.or(ended_window)," => "window_end,",
        "stalled::a_machine_whose_shutdown_began_after_the_end_of_its_window_has_left_late";
    "window-of-another-machine", "says that a machine left late for a window that it was not in", CASE,
        "(created? < end).then_some(end)" => "created.map(|_| end)",
        "stalled::a_machine_that_had_no_window_has_not_left_late";
    "end-of-search-is-end", "takes the end of the search for the end of a window", SPAN_SEARCH,
        "if span.end.is_some_and(|end| end > horizon) {" => "if false && span.end.is_some_and(|end| end > horizon) {",
        "windows_that_a_lead_time_joins_for_ten_years_have_no_end";
    "part-of-a-week", "repeats a part of a week as if it were a whole one", SPAN_SEARCH,
        "if at < steady.since + WEEK || weeks <= 0 {" => "if at < steady.since + 2 * DAY || weeks <= 0 {",
        "what_is_needed_follows_from_each_window";
    "last-exception-decides", "follows the last exception of a date instead of the first", EXCEPTION,
        "*day = day.or(Some(place));" => "*day = Some(place);",
        "the_state_of_the_most_expensive_schedules_is_exact_within_the_steps";
    "override-never-ends", "keeps an override in force after its end", OVERRIDING,
        "in_force.remove(&place);" => "in_force.insert(place);",
        "of_several_overrides_the_strongest_mode_counts_then_the_latest_end_then_the_first_name";
    "last-call-missing", "never announces the last call", CASE,
        ".filter(|end| self.last_call_before(*end) <= self.now)" => ".filter(|_| false)",
        "last_call::the_last_call_taints_and_annotates_the_node_that_long_before_the_end";
    "last-call-too-early", "announces the last call from the beginning", CASE,
        ".filter(|end| self.last_call_before(*end) <= self.now)" => ".filter(|_| true)",
        "last_call::the_last_call_taints_and_annotates_the_node_that_long_before_the_end";
    "late-departure-unsaid", "says nothing of a machine that is gone after the end of its window", EVENT,
        ".filter(|end| *end < now)?" => ".filter(|_| false)?",
        "stalled::a_machine_that_is_gone_after_the_end_of_its_window_has_left_late";
    "early-departure-is-late", "says that a machine left late that was gone in time", EVENT,
        ".filter(|end| *end < now)?" => ".filter(|_| true)?",
        "stalled::a_machine_that_is_gone_by_the_end_of_its_window_has_not_left_late";
    "minimum-run-ignored", "makes a machine for less than its minimum run", CASE,
        "left < self.desired.minimum_run" => "left < SignedDuration::ZERO",
        "schedule_inputs::no_machine_is_created_for_less_than_the_minimum_run";
    "created-with-an-older-definition", "makes a machine although the definition drops what it records", SERVE,
        "conditions::outdated(case).or_else(|| conditions::obstacle(case))" => "conditions::obstacle(case)",
        "schedule_inputs::nothing_is_created_while_the_stored_definition_is_outdated";
    "contested-field-fought-for", "writes a field as often as another client changes it", CAPACITY,
        "recent.count() < fivespot_api::scheduled_capacity::MAX_RECENT_WRITES" => "recent.count() < usize::MAX",
        "capacity::tests::a_value_that_is_changed_again_after_three_writes_is_not_fought_for";
    "handback-not-awaited", "does not wait until a target is drained", CAPACITY,
        "if was_active {" => "if was_active && false {",
        "capacity::tests::a_closing_writes_the_inactive_value_and_then_waits_until_the_target_is_drained";
    "created-beside-a-machine", "creates a target on the host of a machine", CAPACITY,
        "if creates && wanted.is_governed {" => "if false && creates && wanted.is_governed {",
        "capacity::tests::on_the_node_of_a_machine_the_inactive_value_is_written_and_nothing_is_created";
    "held-target-written", "writes a target that an override holds", CAPACITY_WANTED,
        ".filter(|it| it.mode == OverrideMode::Hold)" => ".filter(|_| false)",
        "capacity::tests::nothing_is_written_while_the_state_is_unknown_held_or_paused";
    "unread-inputs-are-none", "decides although a calendar could not be read", CAPACITY_WANTED,
        "let Some(unknown) = &facts.schedule.unknown {" => "let Some(unknown) = facts.schedule.unknown.as_ref().filter(|_| false) {",
        "capacity::tests::nothing_is_written_while_the_state_is_unknown_held_or_paused";
    "kill-switch-waits", "waits for the target to be drained under the kill switch", CAPACITY_WANTED,
        "awaits: is_governed," => "awaits: true,",
        "capacity::tests::the_kill_switch_and_enabled_write_the_inactive_value_and_wait_for_nothing";
    "lead-time-of-capacity-ignored", "writes the active value only when the window opens", CAPACITY_WANTED,
        ".with_lead_time(lead))" => ".with_lead_time(Duration::ZERO))",
        "capacity::tests::the_lead_time_writes_the_active_value_before_the_window";
    "paused-target-written", "writes a target that is paused", CAPACITY_WRITE,
        "if meta[\"annotations\"].get(PAUSED_ANNOTATION).is_some() {" => "if false && meta[\"annotations\"].get(PAUSED_ANNOTATION).is_some() {",
        "capacity::tests::nothing_is_written_while_the_state_is_unknown_held_or_paused";
    "target-of-another-owner-written", "takes over an object of another owner", CAPACITY_WRITE,
        "owner[\"controller\"] == true && owner[\"uid\"].as_str() == uid" => "owner[\"controller\"] == true",
        "capacity::tests::an_object_of_a_template_is_created_and_one_of_another_owner_is_left_alone";
    "write-without-a-version", "overwrites a change that it has not seen", CAPACITY_WRITE,
        "let mut operations = vec![guard];" => "let mut operations = vec![guard];\n        operations.clear();",
        "capacity::tests::an_edge_is_one_guarded_patch_and_then_nothing_is_written";
    "stored-form-is-a-difference", "writes again what the server stores in another form", CAPACITY_WRITE,
        "|| ours.and_then(|it| it.stored.as_ref()) == Some(found)" => "|| false && ours.and_then(|it| it.stored.as_ref()) == Some(found)",
        "capacity::tests::what_the_server_stores_instead_of_a_value_is_no_difference";
}

/// The tests of a copy of the workspace in which each of [`TESTED`] can be selected at run time.
pub(crate) struct TestedCopy {
    binaries: Vec<TestBinary>,
}

/// A binary with tests.
struct TestBinary {
    path: PathBuf,
    /// The folder of its package, in which its tests expect to run.
    folder: PathBuf,
    /// The names of its tests.
    tests: BTreeSet<String>,
}

impl TestedCopy {
    /// Copies the workspace under `root` into the build directory and builds its tests.
    ///
    /// # Errors
    /// If the source of a mutant no longer exists, the copy does not compile, or a named test does
    /// not exist or does not succeed without a mutant.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let mutants = TESTED.iter().map(|of| &of.mutant);
        let binaries = build(&SourceCopy::of(root, "tested", mutants)?)?;
        let copy = Self { binaries };
        let names: BTreeSet<&str> = TESTED.iter().map(|of| of.test).collect();
        for name in names {
            if copy.fails(0, name)? {
                let error = format!("{name} fails without a mutant");
                return Err(io::Error::other(error));
            }
        }
        Ok(copy)
    }

    /// Whether the named test detects the mutant of this number, counted from 1.
    pub(crate) fn is_detected(&self, number: usize) -> io::Result<bool> {
        let Some(tested) = TESTED.get(number.wrapping_sub(1)) else {
            return Ok(false);
        };
        self.fails(number, tested.test)
    }

    /// Whether a test of this name fails with the mutant of this number; 0 for none.
    fn fails(&self, number: usize, test: &str) -> io::Result<bool> {
        let mut binaries = self.binaries.iter().filter(|of| of.tests.contains(test));
        let Some(first) = binaries.next() else {
            return Err(io::Error::other(format!("there is no test {test}")));
        };
        for binary in std::iter::once(first).chain(binaries) {
            if binary.fails(number, test)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl TestBinary {
    fn new(path: &str, folder: PathBuf) -> io::Result<Self> {
        let list = ["--list", "--format=terse"];
        let output = Command::new(path)
            .args(list)
            .current_dir(&folder)
            .output()?;
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(Self {
            path: PathBuf::from(path),
            tests: names.map(str::to_owned).collect(),
            folder,
        })
    }

    fn fails(&self, number: usize, test: &str) -> io::Result<bool> {
        let mut child = Command::new(&self.path)
            .args(["--exact", test])
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("MUTANT", number.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take();
        let (ended, is_over) = mpsc::channel();
        std::thread::spawn(move || {
            // What is printed does not matter, nor that nobody waits for it any more.
            let _ = stdout.map(io::read_to_string);
            let _ = ended.send(());
        });
        if is_over.recv_timeout(LIMIT).is_err() {
            child.kill()?;
        }
        Ok(!child.wait()?.success())
    }
}

/// Builds the tests of a copy.
fn build(copy: &SourceCopy) -> io::Result<Vec<TestBinary>> {
    let output = copy.cargo().args(BUILD).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            "the tests do not compile with the mutants",
        ));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let binaries = messages.filter_map(|message| {
        let path = message["executable"].as_str()?.to_owned();
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        let folder = manifest.parent()?.to_owned();
        let is_test = message["profile"]["test"] == true;
        is_test.then(|| TestBinary::new(&path, folder))
    });
    binaries.collect()
}
