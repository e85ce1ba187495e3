//! What changes schedules from outside: the calendars that exceptions name, and overrides.

use std::collections::BTreeMap;

use fivespot_api::{ScheduleCalendar, ScheduleOverride, ScheduledMachine};
use fivespot_schedule::{Dates, Override};
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::document::Document;

/// Calendars and overrides, each with its namespace.
#[derive(Debug, Default)]
pub(crate) struct Context {
    calendars: BTreeMap<String, BTreeMap<String, Dates>>,
    overrides: Vec<(String, ScheduleOverride)>,
}

impl Context {
    /// Those among `documents`; `namespace` stands in for a missing one.
    ///
    /// # Errors
    /// A calendar or an override cannot be read; names the document.
    pub(crate) fn of(
        documents: &[Document],
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut context = Self::default();
        let namespace = namespace.unwrap_or("default");
        for document in documents {
            let of_object = document.object["metadata"]["namespace"].as_str();
            let namespace = of_object.unwrap_or(namespace).to_owned();
            match document.text("/kind") {
                fivespot_api::name::CALENDAR_KIND => {
                    let calendar: ScheduleCalendar = read(document)?;
                    context.add_calendar(namespace, &calendar);
                }
                fivespot_api::name::OVERRIDE_KIND => {
                    context.overrides.push((namespace, read(document)?));
                }
                _ => {}
            }
        }
        Ok(context)
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

    pub(crate) fn add_override(&mut self, namespace: String, it: ScheduleOverride) {
        self.overrides.push((namespace, it));
    }

    /// The calendars of a namespace by name.
    pub(crate) fn calendars(&self, namespace: &str) -> BTreeMap<String, Dates> {
        self.calendars.get(namespace).cloned().unwrap_or_default()
    }

    /// The overrides of a machine in its namespace, as its schedule takes them.
    pub(crate) fn overrides(
        &self,
        machine: &ScheduledMachine,
        namespace: &str,
    ) -> Vec<Override> {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&none);
        let own = self
            .overrides
            .iter()
            .filter(|(of, it)| of == namespace && it.is_about(name, labels));
        own.filter_map(|(_, it)| it.in_schedule()).collect()
    }
}

fn read<T: DeserializeOwned>(document: &Document) -> Result<T, Failure> {
    serde_json::from_value(document.object.clone()).map_err(|error| {
        Failure::new(document.origin.as_str(), error).remedy(
            "correct it; `5spot validate` reports everything that a server would reject",
        )
    })
}
