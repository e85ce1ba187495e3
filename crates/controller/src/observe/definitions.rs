//! Watches CustomResourceDefinitions, by their metadata, to notice kinds that appear and change.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::name;
use fivespot_runtime::cache::MetadataOnly;
use fivespot_runtime::watch::{Sink, Watch, follow};
use jiff::SignedDuration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::observe::watch::retry;

/// Discovery lists a kind a little later than its definition is established. A key whose kind was
/// not served tries again after these waits, and then only when the definition changes again.
const SECOND_LOOKS: [SignedDuration; 3] = [
    SignedDuration::from_secs(1),
    SignedDuration::from_secs(4),
    SignedDuration::from_secs(25),
];

/// Notifies the controller of every definition that is created, changed or deleted. Never ends.
///
/// Without the permission to watch definitions, keys whose kind was not served are enqueued at
/// each retry of the watch.
pub(crate) async fn follow_definitions(context: Arc<Context>) {
    let watch = Watch {
        client: context.api.clone(),
        resource: ApiResource::erase::<CustomResourceDefinition>(&()),
        namespace: None,
        selector: None,
        projection: Arc::new(MetadataOnly),
    };
    let retry = retry(&context, "definitions");
    let definitions = Definitions {
        context,
        known: Versions::default(),
        listed: Versions::default(),
    };
    follow(watch, retry, definitions).await;
}

struct Definitions {
    context: Arc<Context>,
    known: Versions,
    /// The definitions of the list under way.
    listed: Versions,
}

impl Sink for Definitions {
    fn list_begins(&mut self) {
        self.listed = Versions::default();
    }

    fn listed(&mut self, definition: Value) -> kube::Result<()> {
        self.listed.note(&definition);
        Ok(())
    }

    fn list_ends(&mut self) {
        let changed = self.known.difference(&self.listed);
        self.known = std::mem::take(&mut self.listed);
        for group in changed {
            change(&self.context, &group);
        }
    }

    fn modified(&mut self, definition: Value) -> kube::Result<()> {
        self.known.note(&definition);
        change(&self.context, group_of(&definition));
        Ok(())
    }

    fn deleted(&mut self, definition: Value) {
        self.known.forget(&definition);
        change(&self.context, group_of(&definition));
    }

    fn failed(&mut self, error: &kube::Error) {
        let error = failure::message(error);
        self.context
            .outage
            .warn(format_args!("watch of definitions failed"), &error);
        for group in self.context.unserved_groups() {
            self.context.group_changed(&group);
        }
    }
}

fn change(context: &Arc<Context>, group: &str) {
    let is_awaited = context.group_changed(group);
    if group == name::GROUP {
        let own = context.clone();
        context.spawn_detached(async move { own.own_group_changed().await });
    }
    if !is_awaited {
        return;
    }
    let (own, group) = (context.clone(), group.to_owned());
    context.spawn_detached(async move {
        for wait in SECOND_LOOKS {
            own.clock.sleep(wait).await;
            if own.unserved_groups().contains(&group) {
                own.group_changed(&group);
            }
        }
    });
}

fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

/// The name of a definition is `<plural>.<group>`.
fn group_of(definition: &Value) -> &str {
    name_of(definition)
        .split_once('.')
        .map_or("", |(_, group)| group)
}

/// The resourceVersion in which each definition was last seen, by name.
#[derive(Debug, Default)]
struct Versions(BTreeMap<String, String>);

impl Versions {
    fn note(&mut self, definition: &Value) {
        let version = definition["metadata"]["resourceVersion"].as_str();
        self.0.insert(
            name_of(definition).to_owned(),
            version.unwrap_or_default().to_owned(),
        );
    }

    fn forget(&mut self, definition: &Value) {
        self.0.remove(name_of(definition));
    }

    /// The groups of the definitions that differ, each once.
    fn difference(&self, other: &Self) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys());
        let changed = names.filter(|name| self.0.get(*name) != other.0.get(*name));
        let mut groups: Vec<String> = changed
            .filter_map(|name| name.split_once('.'))
            .map(|(_, group)| group.to_owned())
            .collect();
        groups.sort();
        groups.dedup();
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(pairs: &[(&str, &str)]) -> Versions {
        let pairs = pairs.iter();
        Versions(
            pairs
                .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn groups_of_added_changed_and_deleted_definitions_differ() {
        let before =
            versions(&[("as.a", "1"), ("bs.b", "1"), ("cs.c", "1"), ("ds.d", "1")]);
        let after =
            versions(&[("as.a", "1"), ("bs.b", "2"), ("cs.c", "1"), ("es.e", "1")]);
        assert_eq!(before.difference(&after), ["b", "d", "e"]);
    }
}
