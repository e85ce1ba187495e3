//! The Node that this host is: who it is, and what is written on it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fivespot_api::name::{
    AGENT_FIELD_MANAGER, RECLAIM_AGENT_KEY, RECLAIM_REASON_ANNOTATION,
    RECLAIM_REQUESTED_ANNOTATION, RECLAIM_REQUESTED_AT_ANNOTATION,
};
use fivespot_api::reclaim::{REQUESTED, Report};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{
    Api, GetParams, ListParams, PartialObjectMeta, Patch, PatchParams, Request,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long a request may take; another is sent after that.
const REQUEST: Duration = Duration::from_secs(5);

/// The HTTP status of what roles or a policy refuse.
const FORBIDDEN: u16 = 403;

/// What the agent tries to write where it must not.
const TRIED_KEY: &str = "5spot.finos.org/reclaim-agent-tried";

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// Whether the annotations ask for reclaim.
pub fn is_requested(annotations: &Annotations) -> bool {
    annotations
        .get(RECLAIM_REQUESTED_ANNOTATION)
        .is_some_and(|value| value == REQUESTED)
}

/// What the agent wants to stand on its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The report on its configuration.
    pub report: Told,
    /// A request for reclaim.
    pub request: Option<Asked>,
}

/// What the agent has to say of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// It does not know yet whether it has one.
    #[default]
    NotYet,
    /// It has none.
    Nothing,
    /// This report.
    Report(Report),
}

/// A request for reclaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The pattern that a process matched.
    pub pattern: String,
    /// When that was seen.
    pub at: Timestamp,
}

impl Wanted {
    /// The annotations to write over `found`, null for one to take away; empty if all is as it
    /// should be. A request that stands already is left as it is, with its first reason.
    ///
    /// # Example
    /// ```
    /// use fivespot_agent::node::{Told, Wanted};
    /// let report = fivespot_api::reclaim::Report::accepted("c0ffee");
    /// let wanted = Wanted { report: Told::Report(report), request: None };
    /// let mut found = std::collections::BTreeMap::new();
    /// assert_eq!(wanted.changes(&found).len(), 1);
    /// found.insert("5spot.finos.org/reclaim-agent".into(), "c0ffee ok".into());
    /// assert!(wanted.changes(&found).is_empty());
    /// ```
    pub fn changes(&self, found: &Annotations) -> BTreeMap<&'static str, Value> {
        let mut changes = BTreeMap::new();
        let reported = found.get(RECLAIM_AGENT_KEY);
        match &self.report {
            Told::Report(report) if reported != Some(&report.to_string()) => {
                changes.insert(RECLAIM_AGENT_KEY, json!(report.to_string()));
            }
            Told::Nothing if reported.is_some() => {
                changes.insert(RECLAIM_AGENT_KEY, Value::Null);
            }
            Told::NotYet | Told::Nothing | Told::Report(_) => {}
        }
        if let Some(asked) = &self.request
            && !is_requested(found)
        {
            let reason = format!("process-match: {}", asked.pattern);
            changes.insert(RECLAIM_REQUESTED_ANNOTATION, json!(REQUESTED));
            changes.insert(RECLAIM_REASON_ANNOTATION, json!(reason));
            let at = format!("{:.3}", asked.at);
            changes.insert(RECLAIM_REQUESTED_AT_ANNOTATION, json!(at));
        }
        changes
    }
}

/// Why the Node was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("asking the API server")]
    Api(#[from] Box<kube::Error>),
    /// No answer in time.
    #[error("the API server did not answer within {} s", REQUEST.as_secs())]
    Slow,
    /// The host does not tell who it is.
    #[error("reading the machine id from {path}")]
    NoIdentity {
        /// The file.
        path: String,
        /// Why it could not be read.
        #[source]
        source: std::io::Error,
    },
    /// This host is not the one that the Node stands for.
    #[error(
        "the machine id of this host is not the Node's status.nodeInfo.machineID: nothing is \
         written to a Node of another machine"
    )]
    AnotherMachine,
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

/// What came of an attempt to write where the agent must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It was refused.
    Refused,
    /// It would have been written.
    Allowed,
}

/// How this host proves to be its Node.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The file that holds the machine id, `/etc/machine-id`.
    File(PathBuf),
    /// It need not.
    Unchecked,
}

/// The Node of this host.
#[derive(Clone)]
pub struct OwnNode {
    /// How the API server is reached.
    pub client: Client,
    /// The Node's name.
    pub name: String,
    /// How this host proves to be that Node.
    pub identity: Identity,
}

impl fmt::Debug for OwnNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut node = f.debug_struct("OwnNode");
        node.field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// What is read of the Node before something is written to it.
#[derive(Debug, Deserialize)]
struct Document {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    uid: String,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default, rename = "nodeInfo")]
    node_info: NodeInfo,
}

#[derive(Debug, Default, Deserialize)]
struct NodeInfo {
    #[serde(default, rename = "machineID")]
    machine_id: String,
}

impl OwnNode {
    /// Where the Node is, its metadata alone.
    pub(crate) fn api(&self) -> Api<PartialObjectMeta<Node>> {
        Api::all(self.client.clone())
    }

    /// Makes the Node's annotations what is wanted, with at most one patch, and none where they
    /// are so already. Returns the annotations then.
    ///
    /// # Errors
    /// The API server's refusal, or that this host is not the machine that the Node stands for.
    ///
    /// # Guarantees
    /// The patch bears the uid of the Node whose machine id was compared: another Node of that
    /// name is not written.
    pub async fn write(&self, wanted: &Wanted) -> Result<Annotations, Error> {
        let found = self.read().await?;
        self.compare(&found.status.node_info.machine_id)?;
        let changes = wanted.changes(&found.metadata.annotations);
        if changes.is_empty() {
            return Ok(found.metadata.annotations);
        }
        let patch =
            json!({"metadata": {"uid": found.metadata.uid, "annotations": changes}});
        let params = PatchParams {
            field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api();
        let patch = Patch::Merge(patch);
        let patched = api.patch_metadata(&self.name, &params, &patch);
        let patched = timeout(REQUEST, patched).await.map_err(|_| Error::Slow)??;
        Ok(patched.metadata.annotations.unwrap_or_default())
    }

    /// Whether this host is the machine that the Node stands for.
    ///
    /// # Errors
    /// It is not, or that cannot be told.
    pub async fn check(&self) -> Result<(), Error> {
        let found = self.read().await?;
        self.compare(&found.status.node_info.machine_id)
    }

    /// Tries to write, without effect, to a Node that is not this host's; or, where there is none,
    /// what the agent must not write to its own.
    ///
    /// # Errors
    /// The API server could not be reached, or did something else than allow or refuse it.
    pub async fn try_another(&self) -> Result<Attempt, Error> {
        let api = self.api();
        let some = ListParams::default().limit(2);
        let listed = timeout(REQUEST, api.list_metadata(&some)).await;
        let listed = listed.map_err(|_| Error::Slow)??;
        let mut names = listed.items.into_iter().filter_map(|it| it.metadata.name);
        let (name, key) = match names.find(|name| *name != self.name) {
            Some(other) => (other, "annotations"),
            None => (self.name.clone(), "labels"),
        };
        let patch = json!({"metadata": {key: {TRIED_KEY: "tried"}}});
        let params = PatchParams {
            dry_run: true,
            field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let patched = timeout(REQUEST, api.patch_metadata(&name, &params, &patch)).await;
        match patched.map_err(|_| Error::Slow)? {
            Ok(_) => Ok(Attempt::Allowed),
            Err(kube::Error::Api(status)) if status.code == FORBIDDEN => {
                Ok(Attempt::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn read(&self) -> Result<Document, Error> {
        let request =
            Request::new("/api/v1/nodes").get(&self.name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = timeout(REQUEST, self.client.request(request)).await;
        Ok(answer.map_err(|_| Error::Slow)??)
    }

    fn compare(&self, machine_id: &str) -> Result<(), Error> {
        let Identity::File(path) = &self.identity else {
            return Ok(());
        };
        let own = std::fs::read_to_string(path).map_err(|source| Error::NoIdentity {
            path: path.display().to_string(),
            source,
        })?;
        match own.trim() {
            "" => Err(Error::AnotherMachine),
            own if own == machine_id.trim() => Ok(()),
            _ => Err(Error::AnotherMachine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Annotations, Asked, Report, Told, Wanted};

    fn wanted(report: Told) -> Wanted {
        Wanted {
            report,
            request: Some(Asked {
                pattern: "steam".to_owned(),
                at: "2026-03-06T22:50:00.123456Z".parse().unwrap(),
            }),
        }
    }

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        let owned = pairs
            .iter()
            .map(|(key, value)| (format!("5spot.finos.org/{key}"), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn a_request_is_three_annotations() {
        let wanted = wanted(Told::NotYet);
        let changes = wanted.changes(&Annotations::new());
        let changes: Vec<String> = changes
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        assert_eq!(
            changes,
            [
                "5spot.finos.org/reclaim-reason: \"process-match: steam\"",
                "5spot.finos.org/reclaim-requested: \"true\"",
                "5spot.finos.org/reclaim-requested-at: \"2026-03-06T22:50:00.123Z\"",
            ]
        );
    }

    #[test]
    fn a_request_that_stands_is_not_made_again() {
        let found =
            annotations(&[("reclaim-requested", "true"), ("reclaim-agent", "a ok")]);
        assert!(wanted(Told::NotYet).changes(&found).is_empty());
        assert!(
            wanted(Told::Report(Report::accepted("a")))
                .changes(&found)
                .is_empty()
        );
        // Only the literal asks.
        let found = annotations(&[("reclaim-requested", "True")]);
        assert_eq!(wanted(Told::NotYet).changes(&found).len(), 3);
    }

    #[test]
    fn a_report_is_taken_away_when_there_is_nothing_to_report_on() {
        let found =
            annotations(&[("reclaim-agent", "a ok"), ("reclaim-requested", "true")]);
        let wanted = wanted(Told::Nothing);
        let changes = wanted.changes(&found);
        assert_eq!(changes.len(), 1);
        assert!(changes["5spot.finos.org/reclaim-agent"].is_null());
    }
}
