//! Invariants for every input, including those that no real cluster produces.

mod input;

use std::collections::BTreeSet;
use std::slice;

use fivespot_api::status::MAX_MONTHS;
use fivespot_api::{
    AccountedState, Enforcement, MAX_APPLIED_TAINTS, Phase, ScheduledMachineStatus,
    Usage, UsageMonth, name, rules,
};
use fivespot_capi::{Contract, key};
use fivespot_plan::{
    Call, Fact, Freshness, Locations, Memory, Observed, Step, plan, usage_until,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::simulation::{NAME, at, scheduled_machine};
use input::{machine, memory, now, object, observed};

pub(crate) const SOME_NOON: &str = "2026-03-06T12:00:00Z";

fn is_ours(labels: &std::collections::BTreeMap<String, String>) -> bool {
    name::owner_name(labels) == Some(NAME)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_input_gives_one_plan_that_requeues_in_the_future(
        object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        let next = plan(&object, &observed, &memory, now);
        prop_assert_eq!(&next, &plan(&object, &observed, &memory, now));
        prop_assert!(next.requeue_at.is_none_or(|due| due > now));
        prop_assert!(!next.confirm);
        prop_assert!(next.status.as_ref().is_none_or(|status| object.status.as_ref() != Some(status)));
    }

    #[test]
    fn a_drain_is_reported_as_ended_only_with_a_step_that_ends_it(
        object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        let next = plan(&object, &observed, &memory, now);
        let is_reported = next.events.iter().any(|event| event.reason == "DrainIncomplete");
        let ends = [Step::ExcludeDrain, Step::DeleteMachine];
        prop_assert!(!is_reported || next.steps().iter().any(|step| ends.contains(step)));
    }

    #[test]
    fn a_plan_from_caches_is_the_live_plan_or_empty_and_sends_only_guarded_writes(
        object in object(), observed in observed(Freshness::Cached), memory in memory(), now in now(),
    ) {
        let next = plan(&object, &observed, &memory, now);
        let live = plan(&object, &Observed { freshness: Freshness::Live, ..observed }, &memory, now);
        let creates = [Step::CreateBootstrap, Step::CreateInfrastructure, Step::CreateMachine];
        if next.confirm {
            prop_assert!(next.actions.is_empty() && next.status.is_none());
            prop_assert!(next.events.is_empty() && !live.is_idle());
        } else if let Some(precondition) = &next.precondition {
            let status = object.status.clone().unwrap_or_default();
            prop_assert_eq!(next.steps(), creates);
            prop_assert_eq!(&next.actions, &live.actions);
            prop_assert!(status.spec_hash.is_some() && status.machine_ref.is_none());
            prop_assert!(next.status.is_none() && precondition.holds(&object));
        } else {
            prop_assert!(next.steps().iter().all(|step| *step == Step::AddFinalizer));
            prop_assert_eq!(&next, &live);
        }
    }

    #[test]
    fn nothing_begins_or_ends_based_on_a_cache(
        object in object(), observed in observed(Freshness::Cached), memory in memory(), now in now(),
    ) {
        let before = object.status.clone().unwrap_or_default();
        if let Some(after) = plan(&object, &observed, &memory, now).status {
            prop_assert_eq!(&before.shutdown, &after.shutdown);
            let is_first = before.spec_hash.is_none()
                && before.bootstrap_ref.is_none() && before.infrastructure_ref.is_none();
            prop_assert!(is_first || before.spec_hash == after.spec_hash);
            prop_assert!(before.machine_ref.is_none() || after.machine_ref.is_some());
            prop_assert!(before.bootstrap_ref.is_none() || after.bootstrap_ref.is_some());
        }
    }

    #[test]
    fn no_record_on_a_node_results_in_a_status_that_the_server_rejects(
        object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        let status = plan(&object, &observed, &memory, now).status.unwrap_or_default();
        let applied = &status.applied_node_taints;
        prop_assert!(applied.len() <= MAX_APPLIED_TAINTS);
        prop_assert!(applied.iter().all(rules::is_acceptable_taint));
        let keys: BTreeSet<_> = applied.iter().map(|of| (&of.key, of.effect)).collect();
        prop_assert_eq!(keys.len(), applied.len());
    }

    #[test]
    fn no_decision_depends_on_the_phase(
        object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
        phase in option::of(select(Phase::ALL.to_vec())),
    ) {
        let mut other = object.clone();
        if let Some(status) = &mut other.status {
            status.phase = phase;
        }
        let (one, two) = (plan(&object, &observed, &memory, now), plan(&other, &observed, &memory, now));
        prop_assert_eq!((one.actions, one.requeue_at), (two.actions, two.requeue_at));
    }

    #[test]
    fn a_status_is_settled_once_it_is_written(
        mut object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        for _ in 0..3 {
            let next = plan(&object, &observed, &memory, now);
            if let Some(status) = next.status {
                object.status = Some(status);
            }
        }
        prop_assert_eq!(plan(&object, &observed, &memory, now).status, None);
    }

    #[test]
    fn nothing_is_written_for_an_audited_machine_but_its_status_and_a_finalizer_removed(
        mut object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        object.spec.enforcement = Enforcement::Audit;
        let next = plan(&object, &observed, &memory, now);
        let is_released = |step: &Step| *step == Step::RemoveFinalizer;
        prop_assert!(next.steps().iter().all(is_released), "{:?}", next.steps());
        let before = object.status.clone().unwrap_or_default();
        let after = next.status.unwrap_or_else(|| before.clone());
        prop_assert!(after.shutdown.is_none() || after.shutdown == before.shutdown);
    }

    #[test]
    fn nothing_is_removed_without_ownership_and_a_shutdown_record(
        object in object(), observed in observed(Freshness::Live), memory in memory(), now in now(),
    ) {
        let next = plan(&object, &observed, &memory, now);
        let machine = observed.machine.known().and_then(Option::as_ref);
        let stored = object.status.as_ref().and_then(|status| status.shutdown.as_ref());
        let is_paused = object.metadata.annotations.as_ref().is_some_and(|all| {
            all.contains_key(key::PAUSED)
        });
        prop_assert!(!is_paused || next.actions.is_empty());
        for action in &next.actions {
            match action.step {
                Step::CordonNode | Step::EvictPod | Step::DeletePod | Step::ExcludeDrain | Step::DeleteMachine => {
                    let machine = machine.expect("a Machine that is shut down");
                    prop_assert!(is_ours(&machine.meta.labels));
                    prop_assert_eq!(&stored.expect("a shutdown record").machine_uid, &machine.meta.uid);
                }
                Step::DeleteBootstrap | Step::DeleteInfrastructure => {
                    // An object that Cluster API has not adopted in time is deleted while its
                    // Machine still exists.
                    let is_free = machine.is_none_or(|machine| {
                        !is_ours(&machine.meta.labels) || machine.meta.uid.is_empty()
                            || name::owner_uid(&machine.meta.labels) != Some("sm-1")
                            || machine.meta.is_deleting && !machine.had_infrastructure
                    });
                    prop_assert!(is_free);
                    let is_guarded = matches!(action.request.call, Call::Delete { .. });
                    prop_assert!(is_guarded);
                }
                Step::CreateBootstrap | Step::CreateInfrastructure => {
                    prop_assert!(!object.spec.kill_switch);
                    prop_assert!(object.metadata.deletion_timestamp.is_none());
                }
                Step::AddFinalizer | Step::RemoveFinalizer => prop_assert_eq!(next.actions.len(), 1),
                Step::RelabelMachine | Step::RecordReclaim | Step::RecordDisabled => {
                    prop_assert!(is_ours(&machine.expect("there is one").meta.labels));
                }
                Step::ClaimHost | Step::ReleaseHost
                | Step::CreateMachine | Step::UpdateMachine | Step::UncordonNode | Step::TaintNode
                | Step::LabelNode | Step::CreateAgentConfig | Step::UpdateAgentConfig
                | Step::DeleteAgentConfig | Step::DisableSchedule | Step::CreateOverride | Step::EndOverride | Step::ClearRequest => {}
            }
        }
        let evictions = next.actions.iter().filter(|action| action.step == Step::EvictPod);
        prop_assert!(evictions.count() <= 10);
    }

    #[test]
    fn locations_contain_no_object_twice(object in object(), machine in option::of(machine())) {
        let locations = Locations::of(&object, machine.as_ref());
        for list in [&locations.bootstrap, &locations.infrastructure] {
            for (index, place) in list.iter().enumerate() {
                prop_assert!(list[..index].iter().all(|other| !other.is_same_object(place)));
            }
            prop_assert!(!list.is_empty());
        }
    }
}

/// A live observation in which neither the Cluster nor the Machine exists.
fn without_cluster() -> Observed {
    Observed {
        freshness: Freshness::Live,
        contract: Fact::Known(Contract::V1Beta2),
        cluster: Fact::Known(None),
        machine: Fact::Known(None),
        ..Observed::default()
    }
}

#[test]
fn a_message_of_any_length_fits_into_an_event() {
    let mut object = scheduled_machine();
    object.spec.schedule.timezone = "é".repeat(4_000);
    object.metadata.finalizers = Some(vec![name::FINALIZER.to_owned()]);
    let next = plan(
        &object,
        &without_cluster(),
        &Memory::default(),
        at(SOME_NOON),
    );
    assert!(next.events.iter().all(|event| event.note.len() <= 1_024));
    assert_eq!(next.events.len(), 1, "that of Stalled: {:?}", next.events);
    assert_eq!(next.status.unwrap().phase, Some(Phase::Error));
}

#[test]
fn an_account_at_the_highest_number_stays_there_and_does_not_stop_the_planner() {
    let full = UsageMonth {
        month: "2026-03".to_owned(),
        active_seconds: i64::MAX,
        wanted_seconds: i64::MAX,
        provisioning_seconds: i64::MAX,
        late_seconds: i64::MAX,
        audited_seconds: i64::MAX,
        reclaims: i64::MAX,
    };
    for accounted_state in AccountedState::ALL {
        let mut object = scheduled_machine();
        object.metadata.finalizers = Some(vec![name::FINALIZER.to_owned()]);
        object.status = Some(ScheduledMachineStatus {
            in_schedule: true,
            usage: Some(Usage {
                months: vec![full.clone()],
                accounted_time: Some(at("2026-03-06T11:59:00Z")),
                accounted_state: Some(accounted_state),
                ..Usage::default()
            }),
            ..ScheduledMachineStatus::default()
        });
        let next = plan(
            &object,
            &without_cluster(),
            &Memory::default(),
            at(SOME_NOON),
        );
        let usage = next.status.unwrap().usage.unwrap();
        assert_eq!(usage.months, slice::from_ref(&full), "{accounted_state:?}");
        assert_eq!(usage.accounted_time, Some(at(SOME_NOON)));
    }
}

#[test]
fn an_account_that_begins_two_thousand_years_ago_has_the_newest_months() {
    let status = ScheduledMachineStatus {
        usage: Some(Usage {
            accounted_time: Some(at("0001-01-01T00:00:00Z")),
            accounted_state: Some(AccountedState::Active),
            ..Usage::default()
        }),
        ..ScheduledMachineStatus::default()
    };
    let months = usage_until(&status, None, at(SOME_NOON)).months;
    assert_eq!(months.len(), MAX_MONTHS);
    assert_eq!(months[0].month, "2025-02");
    assert_eq!(months[0].active_seconds, 28 * 86_400);
    assert_eq!(months[MAX_MONTHS - 1].month, "2026-03");
    assert_eq!(months[MAX_MONTHS - 1].active_seconds, (5 * 24 + 12) * 3_600);
}
