//! The Node of this host: its identity, and the annotations on it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fivespot_api::name::{
    AGENT_FIELD_MANAGER, AGENT_POLICY, HOST_POLICY, RECLAIM_AGENT_KEY,
    RECLAIM_REASON_ANNOTATION, RECLAIM_REQUESTED_ANNOTATION,
    RECLAIM_REQUESTED_AT_ANNOTATION,
};
use fivespot_api::reclaim::{REQUESTED, Report};
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{
    Api, GetParams, ListParams, PartialObjectMeta, Patch, PatchParams, Request,
};
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::hold::ACCOUNT;

/// How long a request may take; then it is sent again.
pub(crate) const REQUEST: Duration = Duration::from_secs(5);

/// The HTTP status of requests that RBAC or a policy rejects.
const FORBIDDEN: u16 = 403;

/// The HTTP status of requests about an object that does not exist.
const NOT_FOUND: u16 = 404;

/// The first HTTP status of answers of a server that fails itself.
const FAILED: u16 = 500;

/// The key of the test write to an object that the agent must not write.
const TRIED_KEY: &str = "5spot.finos.org/reclaim-agent-tried";

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// Whether the annotations request a reclaim.
pub fn is_requested(annotations: &Annotations) -> bool {
    annotations
        .get(RECLAIM_REQUESTED_ANNOTATION)
        .is_some_and(|value| value == REQUESTED)
}

/// The annotations that the agent wants on its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredAnnotations {
    /// The report on its configuration.
    pub report: ReportState,
    /// A reclaim request.
    pub request: Option<ReclaimRequest>,
    /// What was done with pods while no API server answered: the end of the reason of a request.
    pub account: Option<String>,
}

/// The agent's report on its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReportState {
    /// It is not known yet whether there is a configuration.
    #[default]
    NotYet,
    /// There is no configuration.
    Nothing,
    /// This report.
    Report(Report),
}

/// A reclaim request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimRequest {
    /// Why: the pattern that a process matched, or another signal. One line.
    pub reason: String,
    /// When it was detected.
    pub at: Timestamp,
}

impl DesiredAnnotations {
    /// The changes to the annotations `found`, with null for one to remove; empty if they are
    /// equal. An existing request keeps its time and its reason, to which only the account is added.
    ///
    /// # Example
    /// ```
    /// use fivespot_agent::node::{ReportState, DesiredAnnotations};
    /// let report = fivespot_api::reclaim::Report::accepted("c0ffee");
    /// let desired = DesiredAnnotations {
    ///     report: ReportState::Report(report),
    ///     ..DesiredAnnotations::default()
    /// };
    /// let mut found = std::collections::BTreeMap::new();
    /// assert_eq!(desired.changes(&found).len(), 1);
    /// found.insert("5spot.finos.org/reclaim-agent".into(), "c0ffee ok".into());
    /// assert!(desired.changes(&found).is_empty());
    /// ```
    pub fn changes(&self, found: &Annotations) -> BTreeMap<&'static str, Value> {
        let mut changes = BTreeMap::new();
        let reported = found.get(RECLAIM_AGENT_KEY);
        match &self.report {
            ReportState::Report(report) if reported != Some(&report.to_string()) => {
                changes.insert(RECLAIM_AGENT_KEY, json!(report.to_string()));
            }
            ReportState::Nothing if reported.is_some() => {
                changes.insert(RECLAIM_AGENT_KEY, Value::Null);
            }
            ReportState::NotYet | ReportState::Nothing | ReportState::Report(_) => {}
        }
        if let Some(request) = &self.request
            && !is_requested(found)
        {
            changes.insert(RECLAIM_REQUESTED_ANNOTATION, json!(REQUESTED));
            let reason = self.with_account(&request.reason);
            changes.insert(RECLAIM_REASON_ANNOTATION, json!(reason));
            let at = format!("{:.3}", request.at);
            changes.insert(RECLAIM_REQUESTED_AT_ANNOTATION, json!(at));
        } else if is_requested(found) {
            let reason = found.get(RECLAIM_REASON_ANNOTATION);
            let reason = reason.map_or("", String::as_str);
            let told = self.with_account(reason);
            if told != reason {
                changes.insert(RECLAIM_REASON_ANNOTATION, json!(told));
            }
        }
        changes
    }

    /// A reason with the account, in place of an earlier one.
    fn with_account(&self, reason: &str) -> String {
        match &self.account {
            None => reason.to_owned(),
            Some(account) => {
                let before = reason.find(ACCOUNT).and_then(|start| reason.get(..start));
                let reason = before.unwrap_or(reason).trim_end();
                format!("{reason} {account}").trim_start().to_owned()
            }
        }
    }
}

/// Why patching the Node failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server rejected the request, or could not be reached.
    #[error("calling the API server")]
    Api(#[from] Box<kube::Error>),
    /// No response in time.
    #[error("the API server did not respond in time")]
    Slow,
    /// The host has no machine ID.
    #[error("reading the machine ID from {path}")]
    NoIdentity {
        /// The file.
        path: String,
        /// Why it could not be read.
        #[source]
        source: std::io::Error,
    },
    /// This host is not the machine of the Node.
    #[error(
        "the machine ID of this host differs from the Node's status.nodeInfo.machineID: the Node \
         of another machine is not changed"
    )]
    AnotherMachine,
}

impl Error {
    /// Whether an API server has answered, be it with a refusal. One that fails itself accepts nothing.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Api(error) => {
                matches!(&**error, kube::Error::Api(status) if status.code < FAILED)
            }
            Self::Slow => false,
            Self::NoIdentity { .. } | Self::AnotherMachine => true,
        }
    }

    /// Whether an API server has refused: by its authorization, or by another policy than those about
    /// agents.
    fn is_forbidden(&self) -> bool {
        let Self::Api(error) = self else { return false };
        matches!(&**error, kube::Error::Api(status) if status.code == FORBIDDEN)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

/// The result of a test write that a policy about agents must reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Such a policy has rejected it.
    Rejected,
    /// It was accepted (as a dry run): this policy is not in force.
    Allowed(&'static str),
    /// The object does not exist yet, so the policy was not asked.
    Unknown,
}

/// What the answer to a test write says about the policy that must reject it. A refusal by somebody
/// else is an error: the policy may not have been asked.
pub(crate) fn attempt<T>(
    answer: Result<T, kube::Error>,
    policy: &'static str,
) -> Result<Attempt, Error> {
    let is_by_policy = |message: &str| {
        let names = |policy| message.contains(&format!("AdmissionPolicy '{policy}'"));
        names(AGENT_POLICY) || names(HOST_POLICY)
    };
    match answer {
        Ok(_) => Ok(Attempt::Allowed(policy)),
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(Attempt::Unknown),
        Err(kube::Error::Api(status))
            if status.code == FORBIDDEN && is_by_policy(&status.message) =>
        {
            Ok(Attempt::Rejected)
        }
        Err(error) => Err(error.into()),
    }
}

/// A test write: a label, or an annotation, that nobody needs.
pub(crate) fn test_write(field: &str) -> (PatchParams, Patch<Value>) {
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::apply(AGENT_FIELD_MANAGER)
    };
    let patch = json!({"metadata": {field: {TRIED_KEY: "tried"}}});
    (params, Patch::Merge(patch))
}

/// How the host's identity is compared with the Node.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The file with the machine ID, `/etc/machine-id`.
    File(PathBuf),
    /// It is not compared.
    Unchecked,
}

/// The Node of this host.
#[derive(Clone)]
pub struct OwnNode {
    /// The client of the API server.
    pub client: Client,
    /// The Node's name.
    pub name: String,
    /// How the host's identity is compared with the Node.
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

/// The fields of the Node that are read before it is written.
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
    /// The API of Nodes, metadata only.
    pub(crate) fn api(&self) -> Api<PartialObjectMeta<Node>> {
        Api::all(self.client.clone())
    }

    /// Patches the Node's annotations to the desired ones, if they differ. Returns the annotations
    /// afterwards.
    ///
    /// # Errors
    /// The request was rejected, or this host is not the machine of the Node.
    ///
    /// # Guarantees
    /// The patch contains the uid of the Node whose machine ID was compared: another Node of that
    /// name is not written.
    pub async fn write(
        &self,
        desired: &DesiredAnnotations,
    ) -> Result<Annotations, Error> {
        let found = self.read().await?;
        self.compare(&found.status.node_info.machine_id)?;
        let changes = desired.changes(&found.metadata.annotations);
        if changes.is_empty() {
            return Ok(found.metadata.annotations);
        }
        let patch =
            json!({"metadata": {"uid": found.metadata.uid, "annotations": changes}});
        let params = PatchParams::apply(AGENT_FIELD_MANAGER);
        let api = self.api();
        let patch = Patch::Merge(patch);
        let patched = api.patch_metadata(&self.name, &params, &patch);
        let patched = timeout(REQUEST, patched).await.map_err(|_| Error::Slow)??;
        Ok(patched.metadata.annotations.unwrap_or_default())
    }

    /// Checks that this host is the machine of the Node.
    ///
    /// # Errors
    /// It is not, or it could not be determined.
    pub async fn check(&self) -> Result<(), Error> {
        let found = self.read().await?;
        self.compare(&found.status.node_info.machine_id)
    }

    /// Sends a dry-run write to a Node that is not this host's. If there is no other Node, or the role
    /// of the agent does not allow to write it, to a field of its own Node that the agent must not write.
    /// An agent that may not list Nodes tries one that need not exist.
    ///
    /// # Errors
    /// The API server could not be reached, or returned an error other than a rejection by the policy.
    pub async fn try_another(&self) -> Result<Attempt, Error> {
        let some = ListParams::default().limit(2);
        let listed = timeout(REQUEST, self.api().list_metadata(&some)).await;
        let listed = listed.map_err(|_| Error::Slow)?.map_err(Error::from);
        let tried = match listed {
            Ok(listed) => {
                let mut names =
                    listed.items.into_iter().filter_map(|it| it.metadata.name);
                match names.find(|name| *name != self.name) {
                    Some(other) => self.try_annotation(&other, AGENT_POLICY).await,
                    None => return self.try_label(AGENT_POLICY).await,
                }
            }
            Err(error) if error.is_forbidden() => {
                let other = format!("not-{}", self.name);
                match self.try_annotation(&other, HOST_POLICY).await {
                    // It would have been written if it existed.
                    Ok(Attempt::Unknown) => Ok(Attempt::Allowed(HOST_POLICY)),
                    tried => tried,
                }
            }
            Err(error) => return Err(error),
        };
        match tried {
            // By the role, before a policy was asked.
            Err(error) if error.is_forbidden() => self.try_label(HOST_POLICY).await,
            tried => tried,
        }
    }

    async fn try_annotation(
        &self,
        name: &str,
        policy: &'static str,
    ) -> Result<Attempt, Error> {
        self.try_write(name, "annotations", policy).await
    }

    async fn try_label(&self, policy: &'static str) -> Result<Attempt, Error> {
        self.try_write(&self.name, "labels", policy).await
    }

    async fn try_write(
        &self,
        name: &str,
        field: &str,
        policy: &'static str,
    ) -> Result<Attempt, Error> {
        let (params, patch) = test_write(field);
        let api = self.api();
        let patched = timeout(REQUEST, api.patch_metadata(name, &params, &patch)).await;
        attempt(patched.map_err(|_| Error::Slow)?, policy)
    }

    async fn read(&self) -> Result<Document, Error> {
        let request =
            Request::new("/api/v1/nodes").get(&self.name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = timeout(REQUEST, self.client.request(request)).await;
        Ok(answer.map_err(|_| Error::Slow)??)
    }

    /// Whether the API server answers.
    ///
    /// # Errors
    /// It does not, or refuses.
    pub(crate) async fn ask(&self) -> Result<(), Error> {
        self.read().await.map(|_| ())
    }

    /// What the clock of the API server says. `None` if its answers do not say it.
    ///
    /// # Errors
    /// It does not answer soon.
    pub(crate) async fn server_time(&self) -> Result<Option<Timestamp>, Error> {
        let request = http::Request::get("/version").body(Body::empty());
        let request = request.map_err(kube::Error::HttpError)?;
        let answer = timeout(REQUEST, self.client.send(request)).await;
        let answer = answer.map_err(|_| Error::Slow)??;
        let date = answer.headers().get(DATE).and_then(|it| it.to_str().ok());
        let date = date.and_then(|date| rfc2822::parse(date).ok());
        Ok(date.map(|date| date.timestamp()))
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
    use super::{Annotations, DesiredAnnotations, ReclaimRequest, Report, ReportState};

    fn desired(report: ReportState) -> DesiredAnnotations {
        DesiredAnnotations {
            report,
            request: Some(ReclaimRequest {
                reason: "process-match: steam".to_owned(),
                at: "2026-03-06T22:50:00.123456Z".parse().unwrap(),
            }),
            account: None,
        }
    }

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        let owned = pairs
            .iter()
            .map(|(key, value)| (format!("5spot.finos.org/{key}"), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn a_request_consists_of_three_annotations() {
        let desired = desired(ReportState::NotYet);
        let changes = desired.changes(&Annotations::new());
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
    fn an_existing_request_is_not_repeated() {
        let found =
            annotations(&[("reclaim-requested", "true"), ("reclaim-agent", "a ok")]);
        assert!(desired(ReportState::NotYet).changes(&found).is_empty());
        assert!(
            desired(ReportState::Report(Report::accepted("a")))
                .changes(&found)
                .is_empty()
        );
        // Only the exact value counts as a request.
        let found = annotations(&[("reclaim-requested", "True")]);
        assert_eq!(desired(ReportState::NotYet).changes(&found).len(), 3);
    }

    #[test]
    fn what_was_done_without_the_server_is_the_end_of_the_reason() {
        let key = "5spot.finos.org/reclaim-reason";
        let mut desired = desired(ReportState::NotYet);
        let mut found = Annotations::new();
        for account in ["(no API server answered: a)", "(no API server answered: b)"] {
            desired.account = Some(account.to_owned());
            let changes = desired.changes(&found);
            assert_eq!(changes[key], format!("process-match: steam {account}"));
            // In the mean time it is accepted, and told once.
            found.insert("5spot.finos.org/reclaim-requested".into(), "true".into());
            found.insert(key.into(), changes[key].as_str().unwrap().into());
            assert!(desired.changes(&found).is_empty());
        }
        desired.account = None;
        assert!(desired.changes(&found).is_empty());
    }

    #[test]
    fn the_report_is_removed_without_a_configuration() {
        let found =
            annotations(&[("reclaim-agent", "a ok"), ("reclaim-requested", "true")]);
        let desired = desired(ReportState::Nothing);
        let changes = desired.changes(&found);
        assert_eq!(changes.len(), 1);
        assert!(changes["5spot.finos.org/reclaim-agent"].is_null());
    }
}
