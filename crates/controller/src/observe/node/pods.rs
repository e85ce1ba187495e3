//! The pods on a Node, as far as a reconcile needs them.

use fivespot_plan::{Fact, Pod, Unknown};
use fivespot_runtime::cache::{
    MAX_OBJECTS, MAX_PAGES, Reservation, TooLarge, check_identifiers,
};
use fivespot_runtime::http::{Address, ApiClient};
use k8s_openapi::api::core::v1 as core;
use serde_json::Value;

use super::deserialize;
use crate::kind;
use crate::observe::projection::CachedKind;
use crate::observe::workload::{FIELDS, Workload, on_node};
use fivespot_runtime::Key;

/// The page size of the list.
const PAGE: &str = "500";

/// Pods that were listed, and their share of the memory budget of their cluster.
#[derive(Debug, Default)]
pub(in crate::observe) struct ListedPods {
    pods: Vec<Pod>,
    /// Why they are unknown, if one of them could not be parsed.
    unreadable: Option<Unknown>,
    shares: Vec<Reservation>,
}

impl ListedPods {
    /// The pods.
    pub(in crate::observe) fn fact(&self) -> Fact<Vec<Pod>> {
        match &self.unreadable {
            Some(unknown) => Fact::Unknown(unknown.clone()),
            None => Fact::Known(self.pods.clone()),
        }
    }

    /// Keeps what is needed of a pod. Its text is dropped: a Node may have thousands of pods, and
    /// each may be as large as an object can be.
    fn add(&mut self, workload: &Workload, item: Value) -> Result<(), TooLarge> {
        check_identifiers(&item)?;
        match parse_pod(item) {
            Ok(pod) => {
                let Pod {
                    namespace,
                    name,
                    uid,
                    ..
                } = &pod;
                let bytes = namespace.len() + name.len() + uid.len();
                self.shares.push(workload.reserve(bytes)?);
                self.pods.push(pod);
            }
            Err(unknown) => self.unreadable = Some(unknown),
        }
        Ok(())
    }
}

/// What is needed of a pod.
pub(super) fn parse_pod(item: Value) -> Result<Pod, Unknown> {
    deserialize::<core::Pod>(item).map(|pod| Pod::from(&pod))
}

/// Lists all pods that are bound to the Node, for the ScheduledMachine `key`.
///
/// # Errors
/// Includes [`TooLarge`].
pub(super) async fn list(
    workload: &Workload,
    api: &ApiClient,
    key: &Key,
    node: &str,
) -> kube::Result<ListedPods> {
    let (pods, projection) = (kind::pod(), CachedKind::Pod(key.clone()));
    let all = Address {
        resource: &pods,
        namespace: None,
        name: "",
        projection: Some(&projection),
    };
    let (selector, mut next) = (on_node(node), String::new());
    let mut found = ListedPods::default();
    let (mut objects, mut pages) = (0, 0);
    loop {
        let mut query = vec![(FIELDS, selector.as_str()), ("limit", PAGE)];
        if !next.is_empty() {
            query.push(("continue", next.as_str()));
        }
        pages += 1;
        let each = |pod| {
            objects += 1;
            if objects + pages > MAX_OBJECTS {
                return Err(TooLarge::Objects.into());
            }
            Ok(found.add(workload, pod)?)
        };
        next = api.page(&all, &query, each).await?.next;
        if next.is_empty() {
            return Ok(found);
        }
        if pages >= MAX_PAGES {
            return Err(TooLarge::Pages.into());
        }
    }
}
