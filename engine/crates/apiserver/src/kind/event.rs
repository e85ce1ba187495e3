//! Events in their two API versions, `v1` and `events.k8s.io/v1`, which share one storage.

mod columns;
mod conversion;
mod validation;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::{BuiltinKind, FieldSelector, FinalizerRule, NameRule, Write};
use crate::resource::Resource;

pub use conversion::convert as convert_event;

/// `events` of `v1`.
#[derive(Debug)]
pub(super) struct Core;

/// `events` of `events.k8s.io/v1`, stored as those of `v1`.
#[derive(Debug)]
pub(super) struct Events;

fn resource(group: &str) -> Resource {
    Resource::new(group, "v1", "Event", "events")
        .with_short_names(&["ev"])
        .without_generation()
        .allow_create_on_update()
        .with_columns(columns::columns())
}

/// The selectable fields by their names in `v1`.
const CORE_SELECTORS: &[FieldSelector] = &[
    FieldSelector::new("involvedObject.kind"),
    FieldSelector::new("involvedObject.namespace"),
    FieldSelector::new("involvedObject.name"),
    FieldSelector::new("involvedObject.uid"),
    FieldSelector::new("involvedObject.apiVersion"),
    FieldSelector::new("involvedObject.resourceVersion"),
    FieldSelector::new("involvedObject.fieldPath"),
    FieldSelector::new("reason"),
    FieldSelector::new("reportingComponent"),
    FieldSelector::new("source.component")
        .named("source")
        .or("reportingComponent"),
    FieldSelector::new("type"),
];

/// The selectable fields by their names in `events.k8s.io/v1`.
const EVENTS_SELECTORS: &[FieldSelector] = &[
    FieldSelector::new("involvedObject.kind").named("regarding.kind"),
    FieldSelector::new("involvedObject.namespace").named("regarding.namespace"),
    FieldSelector::new("involvedObject.name").named("regarding.name"),
    FieldSelector::new("involvedObject.uid").named("regarding.uid"),
    FieldSelector::new("involvedObject.apiVersion").named("regarding.apiVersion"),
    FieldSelector::new("involvedObject.resourceVersion")
        .named("regarding.resourceVersion"),
    FieldSelector::new("involvedObject.fieldPath").named("regarding.fieldPath"),
    FieldSelector::new("reason"),
    FieldSelector::new("reportingComponent").named("reportingController"),
    FieldSelector::new("type"),
];

impl BuiltinKind for Core {
    fn resource(&self) -> Resource {
        resource("")
    }

    /// The metadata of this version is not validated (`legacyValidateEvent`).
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn validates_metadata(&self) -> bool {
        false
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        CORE_SELECTORS
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        validation::core_errors(write.object)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(convert_event(object.clone(), api_version))
    }
}

impl BuiltinKind for Events {
    fn resource(&self) -> Resource {
        resource("events.k8s.io").stored_with("", "events", "v1")
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        EVENTS_SELECTORS
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        validation::events_errors(write.object, write.old)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(convert_event(object.clone(), api_version))
    }
}
