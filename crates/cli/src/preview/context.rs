//! The objects that change schedules: the calendars that exceptions refer to, and overrides.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{
    FollowedSchedule, PreparedClass, Provided, Resolved, ScheduleCalendar,
    ScheduleOverride, ScheduleSpec, ScheduledMachine, ScheduledMachineClass,
    ScheduledMachineClassSpec, ScheduledMachineSpec, SharedSchedule, SpotScheduleRef,
};
use fivespot_plan::overrides::is_longer;
use fivespot_schedule::{Dates, Override};
use serde::de::DeserializeOwned;

use crate::document::Document;

/// Calendars and overrides by namespace.
#[derive(Debug, Default)]
pub(crate) struct Context {
    calendars: BTreeMap<String, BTreeMap<String, Dates>>,
    overrides: BTreeMap<String, ConsideredOverrides>,
    /// The schedules that machines follow, by namespace, kind and name.
    shared: BTreeMap<[String; 3], Resolved>,
    /// The classes of machines, by name.
    classes: BTreeMap<String, Class>,
    /// The labels of namespaces, by name.
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    warnings: Vec<String>,
}

/// A class of machines.
#[derive(Debug)]
struct Class {
    prepared: PreparedClass,
    /// The same for a namespace whose labels are not known: they are taken to be right.
    anywhere: PreparedClass,
}

impl From<ScheduledMachineClassSpec> for Class {
    fn from(spec: ScheduledMachineClassSpec) -> Self {
        let prepared = PreparedClass::from(spec);
        let mut anywhere = prepared.clone();
        anywhere.spec.namespace_selector = None;
        Self { prepared, anywhere }
    }
}

/// The label of each namespace with its name, which the API server sets.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl Context {
    /// The calendars and overrides among `documents`, without those that cannot be decoded.
    /// `namespace` is that of objects without one.
    pub(crate) fn of(documents: &[Document], namespace: Option<&str>) -> Self {
        let mut context = Self::default();
        let namespace = namespace.unwrap_or("default");
        for document in documents {
            let of_object = document.object["metadata"]["namespace"].as_str();
            let namespace = of_object.unwrap_or(namespace).to_owned();
            match document.text("/kind") {
                fivespot_api::name::CALENDAR_KIND => {
                    if let Some(calendar) = context.read::<ScheduleCalendar>(document) {
                        context.add_calendar(namespace, &calendar);
                    }
                }
                fivespot_api::name::TIME_BASED_KIND
                | fivespot_api::name::CAPITAL_MARKETS_KIND => {
                    context.add_shared(&namespace, document);
                }
                fivespot_api::name::CLASS_KIND => {
                    let class = context.read::<ScheduledMachineClass>(document);
                    context.classes.extend(class.map(|class| {
                        let name = class.metadata.name.unwrap_or_default();
                        (name, class.spec.into())
                    }));
                }
                "Namespace" if document.text("/apiVersion") == "v1" => {
                    context.add_namespace(document);
                }
                fivespot_api::name::OVERRIDE_KIND => {
                    if let Some(it) = context.read(document) {
                        context.add_override(namespace, it);
                    }
                }
                _ => {}
            }
        }
        context
    }

    /// A sentence for each calendar and override that cannot be decoded.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn read<T: DeserializeOwned>(&mut self, document: &Document) -> Option<T> {
        let read = serde_json::from_value(document.object.clone());
        read.map_err(|error| {
            self.warnings.push(format!(
                "{} is left out: {error}; correct it (`5spot validate` reports everything that a \
                 server would reject)",
                document.origin
            ));
        })
        .ok()
    }

    pub(crate) fn add_calendar(
        &mut self,
        namespace: String,
        calendar: &ScheduleCalendar,
    ) {
        let name = calendar.metadata.name.clone().unwrap_or_default();
        let of_namespace = self.calendars.entry(namespace).or_default();
        of_namespace.insert(name, calendar.spec.dates());
    }

    fn add_namespace(&mut self, document: &Document) {
        let labels = document.object["metadata"]["labels"].as_object();
        let labels = labels.into_iter().flatten();
        let labels =
            labels.filter_map(|(key, of)| Some((key.clone(), of.as_str()?.to_owned())));
        let name = document.text("/metadata/name").to_owned();
        let named = (NAME_LABEL.to_owned(), name.clone());
        self.namespaces
            .insert(name, labels.chain([named]).collect());
    }

    fn add_shared(&mut self, namespace: &str, document: &Document) {
        let (kind, name) = (document.text("/kind"), document.text("/metadata/name"));
        let key = [namespace, kind, name].map(ToOwned::to_owned);
        match SharedSchedule::of_spec(kind, &document.object["spec"]) {
            Ok(schedule) => self.set_shared(key, schedule),
            Err(error) => self.warnings.push(format!(
                "{} is left out: {error}; correct it (`5spot validate` reports everything that a \
                 server would reject)",
                document.origin
            )),
        }
    }

    /// Takes what the class of a machine in a namespace sets. Returns the name of a class that is not
    /// known.
    pub(crate) fn take_class(
        &self,
        spec: &mut ScheduledMachineSpec,
        namespace: &str,
    ) -> Option<String> {
        let name = spec.class_ref.as_ref()?.name.clone();
        let class = self.classes.get(&name);
        match self.namespaces.get(namespace) {
            Some(labels) => spec.resolve(class.map(|of| &of.prepared), labels),
            None => spec.resolve(class.map(|of| &of.anywhere), &BTreeMap::new()),
        }
        class.is_none().then_some(name)
    }

    /// Adds a schedule that machines follow, by its namespace, kind and name.
    pub(crate) fn set_shared(
        &mut self,
        key: [String; 3],
        schedule: impl Into<SharedSchedule>,
    ) {
        let resolved = Resolved::Shared {
            schedule: Arc::new(schedule.into()),
            generation: None,
        };
        self.shared.insert(key, resolved);
    }

    /// Resolves the reference of a schedule, if it is one. That of another provider counts as what
    /// the operator has `observed` of it last, if that is of the same object.
    ///
    /// # Errors
    /// The object that it names is not here. The error says which.
    pub(crate) fn resolve(
        &self,
        schedule: &mut ScheduleSpec,
        namespace: &str,
        observed: Option<&FollowedSchedule>,
    ) -> Result<(), String> {
        let Some(reference) = schedule.reference() else {
            return Ok(());
        };
        let SpotScheduleRef { kind, name, .. } = &reference;
        if !reference.is_known() {
            let observed = observed.filter(|observed| observed.is_of(&reference));
            schedule.resolved = observed.map(|observed| Resolved::Provided {
                published: Ok(Provided {
                    active: observed.active,
                    until: observed.next_transition_time,
                    generation: observed.observed_generation,
                }),
                is_flapping: false,
            });
            return match observed {
                Some(_) => Ok(()),
                None => Err(format!(
                    "{kind} {name} is of another provider: only the operator in a cluster knows \
                     whether it is open"
                )),
            };
        }
        let found = self
            .shared
            .get(&[namespace, kind, name].map(ToOwned::to_owned));
        schedule.resolved = found.cloned();
        match found {
            Some(_) => Ok(()),
            None => Err(format!(
                "there is no {kind} {name} in namespace {namespace}"
            )),
        }
    }

    pub(crate) fn add_override(&mut self, namespace: String, it: ScheduleOverride) {
        self.overrides.entry(namespace).or_default().add(it);
    }

    /// The calendars of a namespace, by name.
    pub(crate) fn calendars(&self, namespace: &str) -> &BTreeMap<String, Dates> {
        static NONE: BTreeMap<String, Dates> = BTreeMap::new();
        self.calendars.get(namespace).unwrap_or(&NONE)
    }

    /// The overrides of a machine in its namespace, in the form that its schedule uses, without those
    /// that are longer than its class allows.
    pub(crate) fn overrides(
        &self,
        machine: &ScheduledMachine,
        namespace: &str,
    ) -> Vec<Override> {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&none);
        let all = self.overrides.get(namespace).into_iter();
        let own = all.flat_map(|all| all.of_machine(name, labels));
        let limits = machine
            .spec
            .class
            .as_ref()
            .and_then(|of| of.limits.as_ref());
        let most = limits.and_then(|limits| limits.max_override);
        let is_allowed = |of: &Override| most.is_none_or(|most| !is_longer(of, most));
        own.filter_map(ScheduleOverride::in_schedule)
            .filter(is_allowed)
            .collect()
    }

    /// The overrides of the ScheduledCapacity of that name in its namespace.
    pub(crate) fn overrides_of_capacity(
        &self,
        name: &str,
        namespace: &str,
    ) -> Vec<Override> {
        let all = self.overrides.get(namespace).into_iter();
        let all = all.flat_map(ConsideredOverrides::iter);
        let own = all.filter(|it| it.capacity() == Some(name));
        own.filter_map(ScheduleOverride::in_schedule).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_resolved_among_the_objects_of_its_namespace() {
        let text = "\
apiVersion: spotschedules.5spot.finos.org/v1alpha1
kind: TimeBasedSpotSchedule
metadata: {name: office, namespace: team-a}
spec: {daysOfWeek: [mon], hoursOfDay: ['9']}
";
        let documents = crate::document::parse("office.yaml", text).unwrap();
        let context = Context::of(&documents, None);
        let mut schedule: ScheduleSpec = serde_json::from_value(json!({
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": "TimeBasedSpotSchedule", "name": "office",
        }))
        .unwrap();
        assert_eq!(
            context.resolve(&mut schedule, "team-b", None),
            Err(
                "there is no TimeBasedSpotSchedule office in namespace team-b".to_owned()
            )
        );
        assert_eq!(schedule.resolved, None);
        assert_eq!(context.resolve(&mut schedule, "team-a", None), Ok(()));
        let monday = "2026-03-09T09:30:00Z".parse().unwrap();
        assert!(schedule.schedule().unwrap().at(monday).is_open());
    }

    #[test]
    fn an_object_that_cannot_be_decoded_is_left_out_and_named() {
        let text = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata: {name: holidays}
spec: {dates: [{name: carnival, date: 2026-03-09}]}
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleCalendar
metadata: {name: broken}
spec: {dates: carnival}
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: forever}
spec: {targetRef: {name: worker}, mode: Party, endTime: 2026-03-07T12:00:00Z}
";
        let documents = crate::document::parse("a.yaml", text).unwrap();
        let context = Context::of(&documents, None);
        let calendars = context.calendars("default");
        assert_eq!(calendars.keys().collect::<Vec<_>>(), ["holidays"]);
        let named = context.warnings().iter().map(|it| &it[..30]);
        assert_eq!(
            named.collect::<Vec<_>>(),
            [
                "a.yaml, document 2 is left out",
                "a.yaml, document 3 is left out"
            ]
        );
    }

    #[test]
    fn an_override_that_the_operator_does_not_consider_changes_nothing() {
        let begin: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
        let mut context = Context::default();
        // The newest one is added first, as a server may list them.
        for minute in (0..=256).rev() {
            let created = begin + SignedDuration::from_mins(minute);
            let it = json!({
                "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
                "metadata": {"name": format!("o-{minute}"), "creationTimestamp": created},
                "spec": {
                    "targetRef": {"name": "worker"}, "mode": "Stop",
                    "endTime": "2026-03-07T12:00:00Z",
                },
            });
            context.add_override("default".into(), serde_json::from_value(it).unwrap());
        }
        let machine = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": "worker"},
            "spec": {
                "schedule": {"cron": "0 8 * * *", "duration": "8h"}, "clusterName": "production",
                "bootstrapSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
                "infrastructureSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
            },
        });
        let machine = serde_json::from_value(machine).unwrap();
        let all = context.overrides(&machine, "default");
        assert_eq!(all.len(), 256);
        assert!(!all.iter().any(|of| of.name == "o-256"), "the youngest");
    }

    #[test]
    fn the_schedule_of_another_provider_is_what_the_operator_has_observed_of_it() {
        let mut schedule: ScheduleSpec = serde_json::from_value(serde_json::json!({
            "apiVersion": "spotschedules.5spot.finos.org/v1",
            "kind": "ManualSchedule", "name": "office",
        }))
        .unwrap();
        let context = Context::default();
        let why = context.resolve(&mut schedule, "team-a", None).unwrap_err();
        assert!(
            why.starts_with("ManualSchedule office is of another provider"),
            "{why}"
        );
        let mut observed = FollowedSchedule {
            api_version: "spotschedules.5spot.finos.org/v1".to_owned(),
            kind: "ManualSchedule".to_owned(),
            name: "another".to_owned(),
            active: true,
            next_transition_time: None,
            observed_generation: None,
        };
        assert!(
            context
                .resolve(&mut schedule, "team-a", Some(&observed))
                .is_err()
        );
        "office".clone_into(&mut observed.name);
        assert_eq!(
            context.resolve(&mut schedule, "team-a", Some(&observed)),
            Ok(())
        );
        let at = "2026-03-06T12:00:00Z".parse().unwrap();
        let evaluated = schedule.schedule().unwrap();
        assert!(evaluated.at(at).is_open());
    }
}
