//! What schedules depend on besides their machines: overrides, calendars and shared schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{
    FollowedSchedule, Provided, Resolved, ScheduleOverride, ScheduleSpec,
    ScheduledMachine, SharedSchedule, SpotScheduleRef,
};
use fivespot_plan::overrides::is_longer;
use fivespot_schedule::{Dates, Override};

/// The overrides, calendars and shared schedules of all namespaces.
#[derive(Clone, Debug, Default)]
pub struct ScheduleInputs {
    /// Those that the operator considers, by namespace.
    pub(crate) considered: BTreeMap<String, ConsideredOverrides<Arc<ScheduleOverride>>>,
    /// By namespace and name.
    pub(crate) calendars: BTreeMap<String, BTreeMap<String, Dates>>,
    /// By namespace, kind and name.
    pub(crate) shared: BTreeMap<[String; 3], Arc<SharedSchedule>>,
}

impl ScheduleInputs {
    /// Adds an override of a namespace.
    pub fn add_override(&mut self, namespace: &str, it: ScheduleOverride) {
        let all = self.considered.entry(namespace.to_owned()).or_default();
        all.add(Arc::new(it));
    }

    /// Sets the dates of a calendar.
    pub fn set_calendar(&mut self, namespace: &str, name: &str, dates: Dates) {
        let all = self.calendars.entry(namespace.to_owned()).or_default();
        all.insert(name.to_owned(), dates);
    }

    /// Sets a schedule that machines follow, by its namespace, kind and name.
    pub fn set_shared(&mut self, key: [&str; 3], schedule: SharedSchedule) {
        self.shared
            .insert(key.map(ToOwned::to_owned), Arc::new(schedule));
    }

    /// Resolves the reference of a schedule, if it is one. That of another provider counts as what
    /// the operator has `observed` of it last, if that is of the same object.
    ///
    /// # Errors
    /// The object that it names is not here. The error says which.
    pub fn resolve(
        &self,
        schedule: &mut ScheduleSpec,
        namespace: &str,
        observed: Option<&FollowedSchedule>,
    ) -> Result<(), String> {
        let Some(reference) = schedule.reference() else {
            return Ok(());
        };
        let SpotScheduleRef { kind, name, .. } = &reference;
        if reference.is_known() {
            let key = [namespace, kind, name].map(ToOwned::to_owned);
            let found = self.shared.get(&key);
            schedule.resolved = found.map(|found| Resolved::Shared {
                schedule: found.clone(),
                generation: None,
            });
            return match found {
                Some(_) => Ok(()),
                None => Err(format!(
                    "there is no {kind} {name} in namespace {namespace}"
                )),
            };
        }
        let observed = observed.filter(|observed| observed.is_of(&reference));
        schedule.resolved = observed.map(|observed| Resolved::Provided {
            published: Ok(Provided {
                active: observed.active,
                until: observed.next_transition_time,
                generation: observed.observed_generation,
            }),
            is_flapping: false,
        });
        match observed {
            Some(_) => Ok(()),
            None => Err(format!(
                "{kind} {name} is of another provider: only the operator in a cluster knows \
                 whether it is open"
            )),
        }
    }

    /// The calendars of a namespace, by name.
    pub fn calendars(&self, namespace: &str) -> &BTreeMap<String, Dates> {
        static NONE: BTreeMap<String, Dates> = BTreeMap::new();
        self.calendars.get(namespace).unwrap_or(&NONE)
    }

    /// The overrides of a machine in its namespace, in the form that its schedule uses, without those
    /// that are longer than its class allows.
    pub fn overrides(
        &self,
        machine: &ScheduledMachine,
        namespace: &str,
    ) -> Vec<Override> {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&none);
        let all = self.considered.get(namespace).into_iter();
        let own = all.flat_map(|all| all.of_machine(name, labels));
        let class = machine.spec.class.as_ref();
        let limits = class.and_then(|class| class.limits.as_ref());
        let most = limits.and_then(|limits| limits.max_override);
        let is_allowed = |of: &Override| most.is_none_or(|most| !is_longer(of, most));
        own.filter_map(ScheduleOverride::in_schedule)
            .filter(is_allowed)
            .collect()
    }

    /// The overrides of the ScheduledCapacity of that name in its namespace.
    pub fn overrides_of_capacity(&self, name: &str, namespace: &str) -> Vec<Override> {
        let all = self.considered.get(namespace).into_iter();
        let all = all.flat_map(ConsideredOverrides::iter);
        let own = all.filter(|it| it.capacity() == Some(name));
        own.filter_map(|it| it.in_schedule()).collect()
    }
}
