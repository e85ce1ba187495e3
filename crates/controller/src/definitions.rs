//! Noticing that kinds appear and change: CustomResourceDefinitions, by their metadata.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use jiff::SignedDuration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};

use crate::failure;
use crate::shell::Shell;
use crate::watch::rest;

type Definition = PartialObjectMeta<CustomResourceDefinition>;

/// Discovery answers a little later than a definition is established: who found a kind not
/// served asks again after these waits, and then only when the definition changes again.
const SECOND_LOOKS: [SignedDuration; 3] = [
    SignedDuration::from_secs(1),
    SignedDuration::from_secs(4),
    SignedDuration::from_secs(25),
];

/// Tells the shell of every definition that appears, changes or goes, for ever.
///
/// Without the right to watch definitions, whoever found a kind not served asks again as often
/// as the watch is tried.
pub(crate) async fn follow_definitions(shell: Arc<Shell>) {
    let api: Api<Definition> = Api::all(shell.port.client());
    let mut events = pin!(watcher(api, watcher::Config::default()));
    let mut loading = Some(shell.clock.busy());
    let mut failures = 0;
    let mut known = Versions::default();
    let mut listed = Versions::default();
    while let Some(event) = events.next().await {
        let arrived = shell.clock.busy();
        match event {
            Ok(Event::Init) => listed = Versions::default(),
            Ok(Event::InitApply(definition)) => listed.note(&definition),
            Ok(Event::InitDone) => {
                failures = 0;
                loading = None;
                let changed = known.difference(&listed);
                known = std::mem::take(&mut listed);
                for group in changed {
                    change(&shell, &group);
                }
            }
            Ok(Event::Apply(definition)) => {
                failures = 0;
                known.note(&definition);
                change(&shell, group_of(&definition));
            }
            Ok(Event::Delete(definition)) => {
                known.forget(&definition);
                change(&shell, group_of(&definition));
            }
            Err(error) => {
                failures += 1;
                let error = failure::words(&failure::of_watch(error));
                shell
                    .outage
                    .complain(format_args!("watch of definitions failed"), &error);
                for group in shell.unserved_groups() {
                    shell.group_changed(&group);
                }
                // Nobody is held up meanwhile, a virtual clock least of all.
                drop(arrived);
                rest(&shell, "definitions", failures, &mut loading).await;
            }
        }
    }
}

fn change(shell: &Arc<Shell>, group: &str) {
    if !shell.group_changed(group) {
        return;
    }
    let (own, group) = (shell.clone(), group.to_owned());
    shell.spawn_detached(async move {
        for wait in SECOND_LOOKS {
            own.clock.sleep(wait).await;
            if own.unserved_groups().contains(&group) {
                own.group_changed(&group);
            }
        }
    });
}

/// The name of a definition is `<plural>.<group>`.
fn group_of(definition: &Definition) -> &str {
    let name = definition.metadata.name.as_deref().unwrap_or_default();
    name.split_once('.').map_or("", |(_, group)| group)
}

/// The version in which each definition was last seen, by name.
#[derive(Debug, Default)]
struct Versions(BTreeMap<String, String>);

impl Versions {
    fn note(&mut self, definition: &Definition) {
        let meta = &definition.metadata;
        self.0.insert(
            meta.name.clone().unwrap_or_default(),
            meta.resource_version.clone().unwrap_or_default(),
        );
    }

    fn forget(&mut self, definition: &Definition) {
        self.0
            .remove(definition.metadata.name.as_deref().unwrap_or_default());
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
    fn groups_whose_definitions_came_changed_or_went_differ() {
        let before =
            versions(&[("as.a", "1"), ("bs.b", "1"), ("cs.c", "1"), ("ds.d", "1")]);
        let after =
            versions(&[("as.a", "1"), ("bs.b", "2"), ("cs.c", "1"), ("es.e", "1")]);
        assert_eq!(before.difference(&after), ["b", "d", "e"]);
    }
}
