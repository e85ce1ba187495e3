//! Lint warnings about several objects together.

use fivespot_api::lint::{self, LintWarning};
use fivespot_api::resource::{
    SCHEDULED_CAPACITY, SCHEDULED_MACHINE, SCHEDULED_MACHINE_CLASS,
};
use fivespot_api::{
    ScheduledCapacity, ScheduledMachine, ScheduledMachineClass, name, older,
};
use kube::ResourceExt;
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

/// The ScheduledCapacity in an object. `None` if it is another kind or cannot be decoded.
pub(super) fn scheduled_capacity(object: &Value) -> Option<ScheduledCapacity> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let is_ours =
        object["kind"] == name::CAPACITY_KIND && SCHEDULED_CAPACITY.is_served_as(version);
    let read = is_ours.then(|| ScheduledCapacity::deserialize(object));
    read.and_then(Result::ok)
}

/// The ScheduledMachineClass in an object. `None` if it is another kind or cannot be decoded.
fn scheduled_machine_class(object: &Value) -> Option<ScheduledMachineClass> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let is_ours = object["kind"] == name::CLASS_KIND
        && SCHEDULED_MACHINE_CLASS.is_served_as(version);
    let read = is_ours.then(|| ScheduledMachineClass::deserialize(object));
    read.and_then(Result::ok)
}

/// Hosts that several of the documents refer to, hosts that a class does not have, and fields that
/// several write, each with the index of its document.
pub(super) fn warnings(
    documents: &[Document],
    namespace: &str,
) -> Vec<(usize, LintWarning)> {
    let machines = all(documents, namespace, |object| {
        let mut object = object.clone();
        older::to_current_group(&mut object);
        scheduled_machine(&object)
    });
    let capacities = all(documents, namespace, scheduled_capacity);
    let hosts = found(&machines, lint::shared_hosts);
    let fields = found(&capacities, lint::shared_fields);
    let classes: Vec<ScheduledMachineClass> = documents
        .iter()
        .filter_map(|document| scheduled_machine_class(&document.object))
        .collect();
    let classes: Vec<&ScheduledMachineClass> = classes.iter().collect();
    let pools = found(&machines, |machines| {
        lint::hosts_of_classes(machines, &classes)
    });
    let all = hosts.into_iter().chain(fields).chain(pools);
    let mut warnings: Vec<_> = all.collect();
    warnings.sort_by_key(|(place, _)| *place);
    warnings
}

/// The objects of a kind among the documents, each with the index of its document and in its
/// namespace.
fn all<K: ResourceExt>(
    documents: &[Document],
    namespace: &str,
    read: impl Fn(&Value) -> Option<K>,
) -> Vec<(usize, K)> {
    let read = |(place, document): (usize, &Document)| {
        let mut object = read(&document.object)?;
        let own = &mut object.meta_mut().namespace;
        own.get_or_insert_with(|| namespace.to_owned());
        Some((place, object))
    };
    documents.iter().enumerate().filter_map(read).collect()
}

/// What a lint finds among objects, each with the index of its document.
fn found<K>(
    objects: &[(usize, K)],
    lint: impl Fn(&[&K]) -> Vec<(usize, LintWarning)>,
) -> Vec<(usize, LintWarning)> {
    let all: Vec<&K> = objects.iter().map(|(_, object)| object).collect();
    let found = lint(&all).into_iter();
    found
        .filter_map(|(at, warning)| Some((objects.get(at)?.0, warning)))
        .collect()
}
