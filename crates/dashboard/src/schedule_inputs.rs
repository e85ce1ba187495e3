//! What machines and schedules depend on besides their objects: classes, overrides, calendars and
//! shared schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{
    FollowedSchedule, PreparedClass, Provided, Resolved, ScheduleOverride, ScheduleSpec,
    ScheduledMachine, ScheduledMachineClassSpec, ScheduledMachineSpec, SharedSchedule,
    SpotScheduleRef,
};
use fivespot_plan::overrides::is_longer;
use fivespot_schedule::{Dates, Override, Schedule};

/// The classes, and the overrides, calendars and shared schedules of all namespaces.
#[derive(Clone, Debug, Default)]
pub struct ScheduleInputs {
    /// By name.
    pub(crate) classes: BTreeMap<String, Arc<Class>>,
    /// The labels of namespaces, by name.
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Those that the operator considers, by namespace.
    pub(crate) considered: BTreeMap<String, ConsideredOverrides<Arc<ScheduleOverride>>>,
    /// By namespace and name.
    pub(crate) calendars: BTreeMap<String, BTreeMap<String, Dates>>,
    /// By namespace, kind and name.
    pub(crate) shared: BTreeMap<[String; 3], Arc<SharedSchedule>>,
}

/// A class of machines, without the specs of its provider objects, which may be large and decide
/// nothing about when machines run.
#[derive(Debug)]
pub(crate) struct Class {
    prepared: PreparedClass,
    /// The same for a namespace whose labels are not known: they are taken to be right.
    anywhere: PreparedClass,
}

impl From<ScheduledMachineClassSpec> for Class {
    fn from(mut spec: ScheduledMachineClassSpec) -> Self {
        spec.bootstrap_spec.spec.clear();
        spec.infrastructure_spec.spec.clear();
        let prepared = PreparedClass::from(spec);
        let mut anywhere = prepared.clone();
        anywhere.spec.namespace_selector = None;
        Self { prepared, anywhere }
    }
}

/// Why a machine has no schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum NoSchedule {
    /// The schedule that it follows is not known; why.
    Unresolved(String),
    /// Its schedule is invalid.
    Invalid(fivespot_schedule::Error),
}

impl ScheduleInputs {
    /// Sets a class, which machines of all namespaces may name.
    pub fn set_class(&mut self, name: &str, spec: ScheduledMachineClassSpec) {
        self.classes.insert(name.to_owned(), Arc::new(spec.into()));
    }

    /// Sets the labels of a namespace. Every class is taken to select one without labels here.
    pub fn set_namespace(&mut self, name: &str, labels: BTreeMap<String, String>) {
        self.namespaces.insert(name.to_owned(), labels);
    }

    /// Reads what the class of a machine in `namespace` sets into its spec, as the operator does.
    /// Nothing changes if it has no class, or if that was read before. A class that is not here is
    /// unknown ([`ScheduledMachineSpec::is_class_unknown`]).
    pub fn resolve_class(&self, spec: &mut ScheduledMachineSpec, namespace: &str) {
        let named = spec.class_ref.as_ref().map(|of| &of.name);
        let class = named.and_then(|name| self.classes.get(name));
        match self.namespaces.get(namespace) {
            Some(labels) => spec.resolve(class.map(|of| &of.prepared), labels),
            None => spec.resolve(class.map(|of| &of.anywhere), &BTreeMap::new()),
        }
    }

    /// Reads the class of a machine in `namespace` and the schedule that it follows into it, and
    /// returns the schedule in force, with calendars and overrides.
    ///
    /// # Errors
    /// The schedule that it follows is not known, or its schedule is invalid. The class has been
    /// read then too.
    pub fn schedule(
        &self,
        machine: &mut ScheduledMachine,
        namespace: &str,
    ) -> Result<Schedule, NoSchedule> {
        self.resolve_machine(machine, namespace)?;
        self.schedule_of(machine, namespace)
    }

    /// The part of [`Self::schedule`] that changes the machine.
    pub(crate) fn resolve_machine(
        &self,
        machine: &mut ScheduledMachine,
        namespace: &str,
    ) -> Result<(), NoSchedule> {
        self.resolve_class(&mut machine.spec, namespace);
        let observed = machine.status.as_ref();
        let observed = observed.and_then(|status| status.spot_schedule.as_ref());
        self.resolve(&mut machine.spec.schedule, namespace, observed)
            .map_err(NoSchedule::Unresolved)
    }

    /// The schedule in force of a machine that has been resolved, or has nothing to resolve.
    pub(crate) fn schedule_of(
        &self,
        machine: &ScheduledMachine,
        namespace: &str,
    ) -> Result<Schedule, NoSchedule> {
        let schedule = machine.spec.schedule(self.calendars(namespace));
        let schedule = schedule.map_err(NoSchedule::Invalid)?;
        Ok(schedule.with_overrides(self.overrides(machine, namespace)))
    }

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
    /// that are longer than its class allows, which has been read into it.
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
