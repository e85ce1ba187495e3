//! Lint warnings about several objects together.

use fivespot_api::lint::{self, LintWarning};
use fivespot_api::resource::SCHEDULED_MACHINE;
use fivespot_api::{ScheduledMachine, name, older};
use serde::Deserialize as _;
use serde_json::Value;

use crate::document::Document;

/// The ScheduledMachine in an object. `None` if it is another kind or cannot be decoded.
pub(super) fn scheduled_machine(object: &Value) -> Option<ScheduledMachine> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let is_ours = object["kind"] == name::KIND && SCHEDULED_MACHINE.is_served_as(version);
    let read = is_ours.then(|| ScheduledMachine::deserialize(object));
    read.and_then(Result::ok)
}

/// Hosts that several of the documents refer to, each with the index of its document.
pub(super) fn hosts(
    documents: &[Document],
    namespace: &str,
) -> Vec<(usize, LintWarning)> {
    let read = |document: &Document| {
        let mut object = document.object.clone();
        older::to_current_group(&mut object);
        let mut machine = scheduled_machine(&object)?;
        let own = &mut machine.metadata.namespace;
        own.get_or_insert_with(|| namespace.to_owned());
        Some(machine)
    };
    let (places, machines): (Vec<usize>, Vec<ScheduledMachine>) = documents
        .iter()
        .enumerate()
        .filter_map(|(place, document)| Some((place, read(document)?)))
        .unzip();
    let machines: Vec<&ScheduledMachine> = machines.iter().collect();
    let found = lint::shared_hosts(&machines).into_iter();
    found
        .filter_map(|(at, lint_warning)| Some((*places.get(at)?, lint_warning)))
        .collect()
}
