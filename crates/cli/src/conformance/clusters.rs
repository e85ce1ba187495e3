//! The management and the workload cluster of a run, and the requests to them.

use fivespot_api::name;
use fivespot_api::time::whole_seconds;
use fivespot_controller::kubeconfig::{Access, Allowed};
use fivespot_controller::{Connect as _, NetworkConnect};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::collection::{Collection, RequestResult};
use super::observation::Observation;
use super::promise::{Limits, Part, Promise, Violation};
use crate::Failure;
use crate::cluster::error_message;

/// The label with the name of the run, on all objects that a run creates.
const RUN_LABEL: &str = "5spot.finos.org/conformance";

/// The length of an override; a run is shorter.
const OVERRIDE_LENGTH: SignedDuration = SignedDuration::from_hours(24 * 13);

/// A provider object as the user gave it.
#[derive(Clone, Debug)]
pub(super) struct ProviderObject {
    pub(super) resource: ApiResource,
    /// `apiVersion`, `kind` and `spec`.
    pub(super) object: Value,
}

/// The clusters and the inputs of a run.
pub(super) struct Clusters {
    pub(super) management: Client,
    pub(super) workload: Client,
    /// The namespace of the Cluster.
    pub(super) namespace: String,
    pub(super) cluster: String,
    /// The name of the run, and of its namespace in the workload cluster.
    pub(super) id: String,
    pub(super) bootstrap: ProviderObject,
    pub(super) machine: ApiResource,
    pub(super) version: Option<String>,
    pub(super) image: String,
}

/// One machine of a run, and its last observed state.
pub(super) struct Subject {
    /// The name of the promise.
    pub(super) promise: &'static str,
    /// The violation that must not be observed.
    pub(super) forbidden: Option<Violation>,
    pub(super) name: String,
    pub(super) infrastructure: ProviderObject,
    /// The last observed state.
    pub(super) observation: Observation,
    /// The name of its Node, after it has been observed.
    node: Option<String>,
    first_machine: Option<String>,
}

impl Subject {
    /// The machine of a promise in the run of that name.
    pub(super) fn new(
        promise: &Promise,
        run: &str,
        infrastructure: ProviderObject,
    ) -> Self {
        Self {
            promise: promise.name,
            forbidden: promise.forbidden,
            name: format!("{run}-{}", promise.name),
            infrastructure,
            observation: Observation::default(),
            node: None,
            first_machine: None,
        }
    }
}

impl Clusters {
    /// A client of the workload cluster, from the Secret that Cluster API maintains.
    ///
    /// # Errors
    /// The Secret does not exist, or its kubeconfig is not accepted. The operator would not accept
    /// it either.
    pub(super) async fn workload_of(
        management: &Client,
        namespace: &str,
        cluster: &str,
    ) -> RequestResult<Client> {
        let secrets: Api<Secret> = Api::namespaced(management.clone(), namespace);
        let secret = secrets.get(&format!("{cluster}-kubeconfig")).await;
        let data = secret.map_err(error_message)?.data.unwrap_or_default();
        let value = data.get("value").ok_or("the Secret has no key `value`")?;
        let allowed = Allowed {
            path: true,
            local: true,
        };
        let access =
            Access::parse(&value.0, allowed).map_err(|error| error.to_string())?;
        NetworkConnect.connect(&access).map_err(error_message)
    }

    /// Creates the ScheduledMachine, wanted at all times.
    pub(super) async fn create(
        &self,
        subject: &Subject,
        limits: Limits,
    ) -> RequestResult<()> {
        let mut object = json!({
            "apiVersion": name::API_VERSION,
            "kind": name::KIND,
            "metadata": self.metadata(&subject.name),
            "spec": {
                "clusterName": self.cluster,
                "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]},
                "bootstrapSpec": self.bootstrap.object,
                "infrastructureSpec": subject.infrastructure.object,
                "gracefulShutdownTimeout": limits.drain,
                "nodeDrainTimeout": limits.drain,
                "provisioning": {"timeout": limits.provisioning},
            },
        });
        if let Some(version) = &self.version {
            object["spec"]["machineTemplate"] = json!({"version": version});
        }
        self.machines().post(&object).await
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "labels": {RUN_LABEL: self.id}})
    }

    fn machines(&self) -> Collection {
        self.fivespot_collection(name::KIND, name::PLURAL)
    }

    fn overrides(&self) -> Collection {
        self.fivespot_collection(name::OVERRIDE_KIND, name::OVERRIDE_PLURAL)
    }

    fn fivespot_collection(&self, kind: &str, plural: &str) -> Collection {
        let kind = GroupVersionKind::gvk(name::GROUP, name::VERSION, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Collection::new(&self.management, Some(&self.namespace), &resource)
    }

    /// Stops the machine with a ScheduleOverride.
    pub(super) async fn stop(
        &self,
        subject: &Subject,
        now: Timestamp,
    ) -> RequestResult<()> {
        let end = now
            .checked_add(OVERRIDE_LENGTH)
            .map_err(|it| it.to_string())?;
        let end = whole_seconds(end);
        let object = json!({
            "apiVersion": name::API_VERSION,
            "kind": name::OVERRIDE_KIND,
            "metadata": self.metadata(&subject.name),
            "spec": {
                "targetRef": {"name": subject.name},
                "mode": "Stop",
                "endTime": end.to_string(),
            },
        });
        self.overrides().post(&object).await
    }

    /// Deletes that ScheduleOverride.
    pub(super) async fn resume(&self, subject: &Subject) -> RequestResult<()> {
        self.overrides().delete(&subject.name).await
    }

    /// Sends a merge patch to the spec of the ScheduledMachine.
    pub(super) async fn change(
        &self,
        subject: &Subject,
        spec: Value,
    ) -> RequestResult<()> {
        let change = json!({"spec": spec});
        self.machines().merge(&subject.name, &change).await
    }

    /// Deletes the ScheduledMachine and its override. A missing object is not an error.
    pub(super) async fn delete(&self, subject: &Subject) -> RequestResult<()> {
        self.overrides().delete(&subject.name).await?;
        self.machines().delete(&subject.name).await
    }

    /// Deletes all ScheduledMachines of the run, and returns the number that still exist.
    pub(super) async fn delete_all(&self) -> RequestResult<usize> {
        let machines = self.machines();
        let all = machines.list(&format!("{RUN_LABEL}={}", self.id)).await?;
        for each in &all {
            let metadata = &each["metadata"];
            if metadata["deletionTimestamp"].is_null() {
                machines
                    .delete(metadata["name"].as_str().unwrap_or_default())
                    .await?;
            }
        }
        Ok(all.len())
    }

    /// Creates a pod on the Node, with a budget that forbids its eviction if `has_budget`.
    pub(super) async fn add_pod(
        &self,
        subject: &Subject,
        has_budget: bool,
    ) -> RequestResult<()> {
        let node = subject.node.as_deref().ok_or("there is no Node")?;
        if has_budget {
            let budget = json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": self.metadata(&subject.name),
                "spec": {
                    "minAvailable": 1,
                    "selector": {"matchLabels": {"app.kubernetes.io/name": subject.name}},
                },
            });
            let budgets =
                Collection::of::<PodDisruptionBudget>(&self.workload, Some(&self.id));
            budgets.post(&budget).await?;
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": self.metadata(&subject.name),
            "spec": {
                "nodeName": node,
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": "pause",
                    "image": self.image,
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65535,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
            },
        });
        pod["metadata"]["labels"]["app.kubernetes.io/name"] = json!(subject.name);
        self.pods().post(&pod).await
    }

    fn pods(&self) -> Collection {
        Collection::of::<Pod>(&self.workload, Some(&self.id))
    }

    /// Observes all objects of a machine. The Machine is read before the pod, so that a pod that
    /// exists after its Machine was deleted is detected.
    ///
    /// # Errors
    /// A server does not respond, or refuses.
    pub(super) async fn observe(&self, subject: &mut Subject) -> RequestResult<()> {
        let name = subject.name.as_str();
        let collection = |resource: &ApiResource| {
            Collection::new(&self.management, Some(&self.namespace), resource)
        };
        let machine = collection(&self.machine).get(name).await?;
        let read_node = |it: &Value| {
            let name = it.pointer("/status/nodeRef/name")?.as_str()?;
            Some(name.to_owned())
        };
        if let Some(machine) = &machine {
            subject.node = read_node(machine).or(subject.node.take());
            let uid = machine["metadata"]["uid"].as_str().map(str::to_owned);
            subject.first_machine = subject.first_machine.take().or(uid);
        }
        let node = match subject.node.as_deref() {
            Some(node) => {
                Collection::of::<Node>(&self.workload, None)
                    .get(node)
                    .await?
            }
            None => None,
        };
        let mut observation = Observation::default();
        observation.first_machine.clone_from(&subject.first_machine);
        let infrastructure = collection(&subject.infrastructure.resource);
        let bootstrap = collection(&self.bootstrap.resource);
        subject.observation = observation
            .with(Part::Machine, machine)
            .with(Part::Node, node)
            .with(Part::Pod, self.pods().get(name).await?)
            .with(Part::Infrastructure, infrastructure.get(name).await?)
            .with(Part::Bootstrap, bootstrap.get(name).await?)
            .with(Part::ScheduledMachine, self.machines().get(name).await?);
        Ok(())
    }

    /// Deletes the pods and budgets of the run by deleting their namespace.
    pub(super) async fn delete_pods(&self) -> RequestResult<()> {
        let namespaces = Collection::of::<Namespace>(&self.workload, None);
        namespaces.delete(&self.id).await
    }

    /// Deletes the pod of a machine. Its budget is deleted with the namespace.
    pub(super) async fn delete_pod(&self, subject: &Subject) -> RequestResult<()> {
        self.pods().delete(&subject.name).await
    }
}

/// The failure of a request with the given purpose.
pub(super) fn request_failure(what: &str, why: String) -> Failure {
    Failure::new(what, why)
        .remedy("run it with the rights of a cluster administrator, or correct the files")
}
