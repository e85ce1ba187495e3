//! The kinds that the management cluster serves, and their URLs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_capi::{Contract, Reference, version};
use kube::api::ApiResource;
use serde_json::Value;
use tokio::sync::OnceCell;

use fivespot_runtime::http::{ApiClient, is_segment};

/// The results of discovery. Each document is requested once, and again after a
/// CustomResourceDefinition of the group has changed.
pub(crate) struct Discovery {
    api: ApiClient,
    groups: Mutex<BTreeMap<String, Group>>,
}

/// One discovery document, once it has been read. Concurrent readers share one request, and
/// readers of other documents do not wait for it.
type Document<T> = Arc<OnceCell<T>>;

/// The kinds of one version, by name.
type Kinds = BTreeMap<String, ServedKind>;

/// A kind that is served.
#[derive(Clone, Debug)]
pub(crate) struct ServedKind {
    pub(crate) resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub(crate) is_namespaced: bool,
}

#[derive(Default)]
struct Group {
    /// In the server's order of preference.
    versions: Document<Vec<String>>,
    /// By version.
    kinds: BTreeMap<String, Document<Kinds>>,
}

impl Discovery {
    /// Discovery of the server behind `api`, with no document read yet.
    pub(crate) fn new(api: ApiClient) -> Self {
        Self {
            api,
            groups: Mutex::new(BTreeMap::new()),
        }
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<String, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version in which Clusters and Machines are read and written. `None` if Cluster API is
    /// not installed.
    pub(crate) async fn contract(&self) -> kube::Result<Option<Contract>> {
        let versions = self.versions(version::GROUP).await?;
        Ok(Contract::choose(versions.iter().map(String::as_str)))
    }

    /// The kind of that group and version, namespaced or not; the group of the core is empty.
    /// `None` if it is not served.
    pub(crate) async fn served(
        &self,
        api_version: &str,
        kind: &str,
    ) -> kube::Result<Option<ServedKind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if !(group.is_empty() || is_segment(group)) || !is_segment(version) {
            return Ok(None);
        }
        self.kind(group, version, kind).await
    }

    /// The namespaced kind that `place` names; without a version, in the most preferred version
    /// that has it. `None` if it is not served.
    pub(crate) async fn resource(
        &self,
        place: &Reference,
    ) -> kube::Result<Option<ApiResource>> {
        let version = place.version.as_deref();
        if !is_segment(&place.group) || !version.is_none_or(is_segment) {
            return Ok(None);
        }
        let versions = match &place.version {
            Some(version) => vec![version.clone()],
            None => self.versions(&place.group).await?,
        };
        for version in versions {
            let found = self.kind(&place.group, &version, &place.kind).await?;
            let found = found.filter(|found| found.is_namespaced);
            if let Some(found) = found {
                return Ok(Some(found.resource));
            }
        }
        Ok(None)
    }

    /// Forgets a group that has changed, so that it is requested again. Callers that already wait
    /// get the response that is under way.
    pub(crate) fn forget(&self, group: &str) {
        self.groups().remove(group);
    }

    async fn versions(&self, group: &str) -> kube::Result<Vec<String>> {
        let document = {
            let mut groups = self.groups();
            groups.entry(group.to_owned()).or_default().versions.clone()
        };
        let versions = document.get_or_try_init(|| async {
            let answer = self.api.document(&format!("/apis/{group}")).await?;
            Ok::<_, kube::Error>(versions(&answer.unwrap_or_default()))
        });
        Ok(versions.await?.clone())
    }

    async fn kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> kube::Result<Option<ServedKind>> {
        let document = {
            let mut groups = self.groups();
            let group = groups.entry(group.to_owned()).or_default();
            group.kinds.entry(version.to_owned()).or_default().clone()
        };
        let kinds = document.get_or_try_init(|| async {
            let path = match group {
                "" => format!("/api/{version}"),
                group => format!("/apis/{group}/{version}"),
            };
            let answer = self.api.document(&path).await?;
            Ok::<_, kube::Error>(kinds(&answer.unwrap_or_default(), group, version))
        });
        Ok(kinds.await?.get(kind).cloned())
    }
}

/// The versions of an APIGroup document, the preferred one first.
fn versions(group: &Value) -> Vec<String> {
    let preferred = &group["preferredVersion"]["version"];
    let listed = group["versions"].as_array().into_iter().flatten();
    let mut versions: Vec<String> =
        preferred.as_str().map(str::to_owned).into_iter().collect();
    for version in listed.filter_map(|version| version["version"].as_str()) {
        if !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// The kinds of an APIResourceList document.
fn kinds(list: &Value, group: &str, version: &str) -> Kinds {
    let resources = list["resources"].as_array().into_iter().flatten();
    let mut kinds = BTreeMap::new();
    for resource in resources {
        let (Some(plural), Some(kind)) =
            (resource["name"].as_str(), resource["kind"].as_str())
        else {
            continue;
        };
        // Subresources are listed next to their kinds.
        if plural.contains('/') {
            continue;
        }
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let served = ServedKind {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version,
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            },
            is_namespaced: resource["namespaced"] == true,
        };
        kinds.insert(kind.to_owned(), served);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tower::{BoxError, service_fn};

    use super::*;

    /// A server that never responds for one group.
    async fn answer(request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if request.uri().path().contains("slow.example.com") {
            return std::future::pending().await;
        }
        let group = json!({"versions": [{"version": "v1beta2"}]});
        Ok(Response::new(Body::from(group.to_string().into_bytes())))
    }

    #[tokio::test]
    async fn a_slow_group_does_not_delay_the_discovery_of_another() {
        let client = kube::Client::new(service_fn(answer), "default");
        let discovery = Discovery::new(ApiClient::new(client, "5spot"));
        let slow = Reference::new("slow.example.com/v1", "Host", "");
        let mut slow = pin!(discovery.resource(&slow));
        let mut contract = pin!(discovery.contract());
        for _ in 0..100 {
            assert!(slow.as_mut().now_or_never().is_none());
            if let Some(found) = contract.as_mut().now_or_never() {
                assert!(found.unwrap().is_some());
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the contract waits for the other group");
    }

    #[test]
    fn the_preferred_version_comes_first_and_once() {
        let group = json!({
            "versions": [{"version": "v1beta1"}, {"version": "v1beta2"}],
            "preferredVersion": {"version": "v1beta2"},
        });
        assert_eq!(versions(&group), ["v1beta2", "v1beta1"]);
        assert!(versions(&Value::Null).is_empty());
    }

    #[test]
    fn plurals_are_taken_from_the_server() {
        let list = json!({"resources": [
            {"name": "metal3machines", "kind": "Metal3Machine", "namespaced": true},
            {"name": "metal3machines/status", "kind": "Metal3Machine", "namespaced": true},
            {"name": "proxies", "kind": "Proxy", "namespaced": true},
            {"name": "regions", "kind": "Region", "namespaced": false},
            {"kind": "Nameless", "namespaced": true},
        ]});
        let found = kinds(&list, "g", "v1");
        let found: Vec<_> = found
            .values()
            .map(|found| (found.resource.plural.as_str(), found.is_namespaced))
            .collect();
        let expected = [
            ("metal3machines", true),
            ("proxies", true),
            ("regions", false),
        ];
        assert_eq!(found, expected);
    }
}
