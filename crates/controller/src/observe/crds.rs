//! Watches CustomResourceDefinitions, by their metadata, to notice kinds that appear and change, and
//! reads our own.

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

/// Discovery lists a kind a little later than its CRD is established. A key whose kind was
/// not served tries again after these waits, and then only when the CRD changes again.
const SECOND_LOOKS: [SignedDuration; 3] = [
    SignedDuration::from_secs(1),
    SignedDuration::from_secs(4),
    SignedDuration::from_secs(25),
];

/// Notifies the controller of every CRD that is created, changed or deleted. Never ends.
///
/// Without the permission to watch CRDs, keys whose kind was not served are enqueued at
/// each retry of the watch.
pub(crate) async fn follow_crds(context: Arc<Context>) {
    let watch = Watch {
        client: context.api.clone(),
        resource: ApiResource::erase::<CustomResourceDefinition>(&()),
        namespace: None,
        selector: None,
        projection: Arc::new(MetadataOnly),
    };
    let retry = retry(&context, "definitions");
    let sink = CrdSink {
        context,
        known: Versions::default(),
        listed: Versions::default(),
    };
    follow(watch, retry, sink).await;
}

struct CrdSink {
    context: Arc<Context>,
    known: Versions,
    /// The CRDs of the list under way.
    listed: Versions,
}

impl Sink for CrdSink {
    fn list_begins(&mut self) {
        self.listed = Versions::default();
    }

    fn listed(&mut self, crd: Value) -> kube::Result<()> {
        self.listed.note(&crd);
        Ok(())
    }

    fn list_ends(&mut self) {
        let changed = self.known.difference(&self.listed);
        self.known = std::mem::take(&mut self.listed);
        for group in changed {
            change(&self.context, &group);
        }
    }

    fn modified(&mut self, crd: Value) -> kube::Result<()> {
        self.known.note(&crd);
        change(&self.context, group_of(&crd));
        Ok(())
    }

    fn deleted(&mut self, crd: Value) {
        self.known.forget(&crd);
        change(&self.context, group_of(&crd));
    }

    fn failed(&mut self, error: &kube::Error) {
        let error = failure::message(error);
        self.context.outage.warn(
            format_args!("watch of CustomResourceDefinitions failed"),
            &error,
        );
        for group in self.context.unserved_groups() {
            self.context.group_changed(&group);
        }
    }
}

fn change(context: &Arc<Context>, group: &str) {
    let is_awaited = context.group_changed(group);
    if group == name::GROUP {
        let own = context.clone();
        context.spawn_detached(async move { own_group_changed(&own).await });
    }
    if group == name::SPOT_GROUP {
        context.watch_spot_schedules();
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

/// A CustomResourceDefinition of 5-Spot has changed: starts the watches that failed again, and
/// enqueues every ScheduledMachine if its own definition has other fields than before.
async fn own_group_changed(context: &Arc<Context>) {
    let informer = context.scheduled_machines.clone();
    if informer.is_failing() {
        informer.stop();
        context.watch(&informer, None);
    }
    context.watch_own_kinds();
    refresh(context).await;
}

/// A message about the fields that the CRD lacks, or that it was never read. `None` if it
/// lacks none. The first call reads it.
pub(crate) async fn outdated(context: &Arc<Context>) -> Option<String> {
    let own = &context.own_crd;
    own.is_read.get_or_init(|| refresh(context)).await;
    own.problem()
}

/// Reads the CRD, and enqueues every ScheduledMachine if it has other fields than before. If it
/// cannot be read, tries again until it can.
async fn refresh(context: &Arc<Context>) {
    if context.own_crd.read(&context.api).await {
        context.enqueue_owned();
    }
    if context.own_crd.begins_retrying() {
        context.spawn_detached(read_again(context.clone()));
    }
}

async fn read_again(context: Arc<Context>) {
    let mut attempts: u32 = 0;
    while context.own_crd.retries() {
        attempts = attempts.saturating_add(1);
        let wait = context.backoff.wait(&"definition", attempts);
        context.clock.sleep(wait).await;
        if context.own_crd.read(&context.api).await {
            context.enqueue_owned();
        }
    }
}

fn name_of(crd: &Value) -> &str {
    crd["metadata"]["name"].as_str().unwrap_or_default()
}

/// The name of a CRD is `<plural>.<group>`.
fn group_of(crd: &Value) -> &str {
    name_of(crd).split_once('.').map_or("", |(_, group)| group)
}

/// The resourceVersion in which each CRD was last seen, by name.
#[derive(Debug, Default)]
struct Versions(BTreeMap<String, String>);

impl Versions {
    fn note(&mut self, crd: &Value) {
        let version = crd["metadata"]["resourceVersion"].as_str();
        self.0.insert(
            name_of(crd).to_owned(),
            version.unwrap_or_default().to_owned(),
        );
    }

    fn forget(&mut self, crd: &Value) {
        self.0.remove(name_of(crd));
    }

    /// The groups of the CRDs that differ, each once.
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
    fn groups_of_added_changed_and_deleted_crds_differ() {
        let before =
            versions(&[("as.a", "1"), ("bs.b", "1"), ("cs.c", "1"), ("ds.d", "1")]);
        let after =
            versions(&[("as.a", "1"), ("bs.b", "2"), ("cs.c", "1"), ("es.e", "1")]);
        assert_eq!(before.difference(&after), ["b", "d", "e"]);
    }
}
