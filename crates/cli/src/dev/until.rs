//! Waits until the goals of `--until` hold.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::SelectAll;
use kubemu_apiserver::{Client, EventKind, Registry, Resource, Selector, Watch};
use serde_json::Value;

use super::goal::Goals;
use crate::Failure;

/// The phases of all objects of the kinds in the goals.
pub(crate) struct GoalWatch {
    goals: Goals,
    phases: BTreeMap<(String, String), String>,
    events: SelectAll<std::pin::Pin<Box<dyn futures::Stream<Item = PhaseChange>>>>,
}

struct PhaseChange {
    kind: String,
    name: String,
    phase: Option<String>,
}

impl GoalWatch {
    /// Watches the kinds of `goals`.
    ///
    /// # Errors
    /// A kind is not served or cannot be watched.
    pub(crate) fn new(
        client: &Client,
        registry: &Registry,
        goals: Goals,
    ) -> Result<Self, Failure> {
        let mut events = SelectAll::new();
        for kind in goals.kinds() {
            let resource = registry.all().find(|resource| resource.kind == kind);
            let Some(resource) = resource else {
                return Err(Failure::new(
                    "--until",
                    format!("the server does not serve the kind {kind}"),
                )
                .remedy("write the kind as in a manifest, such as ScheduledMachine"));
            };
            let watch = client
                .watch(&collection(resource), &Selector::default(), "")
                .map_err(|status| {
                    Failure::new("--until", status)
                        .remedy("give a kind that can be watched, such as Machine")
                })?;
            events.push(phase_changes(kind.to_owned(), watch));
        }
        Ok(Self {
            goals,
            phases: BTreeMap::new(),
            events,
        })
    }

    /// Waits until all goals hold. Waits forever if all watches end first.
    pub(crate) async fn reached(&mut self) {
        while !self.missed().is_empty() {
            let Some(PhaseChange { kind, name, phase }) = self.events.next().await else {
                return std::future::pending().await;
            };
            match phase {
                Some(phase) => self.phases.insert((kind, name), phase),
                None => self.phases.remove(&(kind, name)),
            };
        }
    }

    /// The goals that do not hold yet, as text.
    pub(crate) fn missed(&self) -> Vec<String> {
        self.goals.missed(&self.phases)
    }
}

fn collection(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("/api/{}/{}", resource.version, resource.plural),
        group => format!("/apis/{group}/{}/{}", resource.version, resource.plural),
    }
}

fn phase_changes(
    kind: String,
    watch: Watch,
) -> std::pin::Pin<Box<dyn futures::Stream<Item = PhaseChange>>> {
    Box::pin(watch.filter_map(move |event| {
        let kind = kind.clone();
        std::future::ready(event.ok().map(|event| {
            let text = |pointer| {
                let value = event.object.pointer(pointer).and_then(Value::as_str);
                value.unwrap_or_default().to_owned()
            };
            let is_there = event.kind != EventKind::Deleted;
            PhaseChange {
                kind,
                name: text("/metadata/name"),
                phase: is_there.then(|| text("/status/phase")),
            }
        }))
    }))
}
