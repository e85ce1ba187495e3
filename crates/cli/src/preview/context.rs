//! What machines and capacities depend on, among documents.

use fivespot_api::{ScheduleCalendar, ScheduledMachineClass, SharedSchedule};
use fivespot_dashboard::ScheduleInputs;
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::preview::namespace_of;

/// What machines and capacities depend on besides their objects.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) inputs: ScheduleInputs,
    warnings: Vec<String>,
}

/// The label of each namespace with its name, which the API server sets.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl Context {
    /// The calendars and overrides among `documents`, without those that cannot be decoded.
    /// `namespace` is that of objects without one.
    pub(crate) fn of(documents: &[Document], namespace: Option<&str>) -> Self {
        let mut context = Self::default();
        for document in documents {
            let namespace = namespace_of(document, namespace);
            match document.text("/kind") {
                fivespot_api::name::CALENDAR_KIND => {
                    if let Some(calendar) = context.read::<ScheduleCalendar>(document) {
                        let name = document.text("/metadata/name");
                        let dates = calendar.spec.dates();
                        context.inputs.set_calendar(namespace, name, dates);
                    }
                }
                fivespot_api::name::TIME_BASED_KIND
                | fivespot_api::name::CAPITAL_MARKETS_KIND => {
                    context.add_shared(namespace, document);
                }
                fivespot_api::name::CLASS_KIND => {
                    let class = context.read::<ScheduledMachineClass>(document);
                    if let Some(class) = class {
                        let name = document.text("/metadata/name");
                        context.inputs.set_class(name, class.spec);
                    }
                }
                "Namespace" if document.text("/apiVersion") == "v1" => {
                    context.add_namespace(document);
                }
                fivespot_api::name::OVERRIDE_KIND => {
                    if let Some(it) = context.read(document) {
                        context.inputs.add_override(namespace, it);
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
        read.map_err(|error| self.warn(document, &error)).ok()
    }

    fn warn(&mut self, document: &Document, error: &serde_json::Error) {
        self.warnings.push(format!(
            "{} is left out: {error}; correct it (`5spot validate` reports everything that a server \
             would reject)",
            document.origin
        ));
    }

    fn add_namespace(&mut self, document: &Document) {
        let labels = document.object["metadata"]["labels"].as_object();
        let labels = labels.into_iter().flatten();
        let labels =
            labels.filter_map(|(key, of)| Some((key.clone(), of.as_str()?.to_owned())));
        let name = document.text("/metadata/name");
        let named = (NAME_LABEL.to_owned(), name.to_owned());
        self.inputs
            .set_namespace(name, labels.chain([named]).collect());
    }

    fn add_shared(&mut self, namespace: &str, document: &Document) {
        let (kind, name) = (document.text("/kind"), document.text("/metadata/name"));
        match SharedSchedule::of_spec(kind, &document.object["spec"]) {
            Ok(schedule) => self.inputs.set_shared([namespace, kind, name], schedule),
            Err(error) => self.warn(document, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use fivespot_api::{FollowedSchedule, ScheduleSpec};
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
            context.inputs.resolve(&mut schedule, "team-b", None),
            Err(
                "there is no TimeBasedSpotSchedule office in namespace team-b".to_owned()
            )
        );
        assert_eq!(schedule.resolved, None);
        assert_eq!(
            context.inputs.resolve(&mut schedule, "team-a", None),
            Ok(())
        );
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
        let calendars = context.inputs.calendars("default");
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
            context
                .inputs
                .add_override("default", serde_json::from_value(it).unwrap());
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
        let all = context.inputs.overrides(&machine, "default");
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
        let why = context
            .inputs
            .resolve(&mut schedule, "team-a", None)
            .unwrap_err();
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
                .inputs
                .resolve(&mut schedule, "team-a", Some(&observed))
                .is_err()
        );
        "office".clone_into(&mut observed.name);
        assert_eq!(
            context
                .inputs
                .resolve(&mut schedule, "team-a", Some(&observed)),
            Ok(())
        );
        let at = "2026-03-06T12:00:00Z".parse().unwrap();
        let evaluated = schedule.schedule().unwrap();
        assert!(evaluated.at(at).is_open());
    }
}
