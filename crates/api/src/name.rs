//! Every name that one component writes and another one reads: groups, labels, annotations,
//! children.
//!
//! This module both builds and parses a name, so that a later reconcile finds what an earlier
//! one wrote.

use std::collections::BTreeMap;

use fivespot_capi::key;

/// The API groups in which a bootstrap object may be; rule SM009.
pub const BOOTSTRAP_GROUPS: [&str; 2] = ["bootstrap.cluster.x-k8s.io", "k0smotron.io"];

/// The API groups in which an infrastructure object may be; rule SM012.
pub const INFRASTRUCTURE_GROUPS: [&str; 2] =
    ["infrastructure.cluster.x-k8s.io", "k0smotron.io"];

/// Whether objects of this API group may be created for a machine.
pub fn is_provider_group(group: &str) -> bool {
    BOOTSTRAP_GROUPS.contains(&group) || INFRASTRUCTURE_GROUPS.contains(&group)
}

/// The API group of ScheduledMachine.
pub const GROUP: &str = "5spot.finos.org";
/// The stored API version of ScheduledMachine, without its group.
pub const VERSION: &str = "v1alpha1";
/// A further version in which ScheduledMachine is served, with the same schema.
pub const BETA_VERSION: &str = "v1beta1";
/// The versions of ScheduledMachine; the first one is stored.
pub const MACHINE_VERSIONS: &[&str] = &[VERSION, BETA_VERSION];
/// Group and version as in `apiVersion`.
pub const API_VERSION: &str = "5spot.finos.org/v1alpha1";
/// The kind of the resource.
pub const KIND: &str = "ScheduledMachine";
/// The kind of a list of them.
pub const LIST_KIND: &str = "ScheduledMachineList";
/// The plural, as in URLs.
pub const PLURAL: &str = "scheduledmachines";
/// The singular, as `kubectl` accepts it.
pub const SINGULAR: &str = "scheduledmachine";
/// The kind of an object that changes schedules for a limited time.
pub const OVERRIDE_KIND: &str = "ScheduleOverride";
/// Its plural, as in URLs.
pub const OVERRIDE_PLURAL: &str = "scheduleoverrides";
/// The kind of a list of dates for the exceptions of schedules.
pub const CALENDAR_KIND: &str = "ScheduleCalendar";
/// Its plural, as in URLs.
pub const CALENDAR_PLURAL: &str = "schedulecalendars";

/// The kind of classes.
pub const CLASS_KIND: &str = "ScheduledMachineClass";
/// The plural of classes.
pub const CLASS_PLURAL: &str = "scheduledmachineclasses";
/// The kind of a number of machines that are alike.
pub const SET_KIND: &str = "ScheduledMachineSet";
/// Its plural, as in URLs.
pub const SET_PLURAL: &str = "scheduledmachinesets";
/// The longest name of a set: with `-` and an index it is the name of a machine.
pub const MAX_SET_NAME: usize = 63 - "-1999".len();
/// Label on the ScheduledMachines of a set: the name of the set.
pub const SET_LABEL: &str = "5spot.finos.org/scheduled-machine-set";
/// Annotation on the ScheduledMachines of a set: the template that they were last given, as JSON.
pub const SET_TEMPLATE_ANNOTATION: &str = "5spot.finos.org/set-template";
/// The label of namespaces in which machines are made from classes only.
pub const CLASS_ONLY_LABEL: &str = "5spot.finos.org/class-only";
/// The label of the Leases with which ScheduledMachines claim hosts of a class.
pub const HOST_CLAIM_LABEL: &str = "5spot.finos.org/host-claim";
/// The API group of the schedules that many objects share.
pub const SPOT_GROUP: &str = "spotschedules.5spot.finos.org";
/// That group and the version of its kinds.
pub const SPOT_API_VERSION: &str = "spotschedules.5spot.finos.org/v1alpha1";
/// The kind of a shared schedule in the form of `spec.schedule`.
pub const TIME_BASED_KIND: &str = "TimeBasedSpotSchedule";
/// Its plural, as in URLs.
pub const TIME_BASED_PLURAL: &str = "timebasedspotschedules";
/// The kind of the sessions of a market.
pub const CAPITAL_MARKETS_KIND: &str = "CapitalMarketsSchedule";
/// Its plural, as in URLs.
pub const CAPITAL_MARKETS_PLURAL: &str = "capitalmarketsschedules";
/// The kinds of schedules that are evaluated here and that many objects share.
pub const SPOT_KINDS: [&str; 2] = [TIME_BASED_KIND, CAPITAL_MARKETS_KIND];
/// The kind of a value of another object that follows a schedule.
pub const CAPACITY_KIND: &str = "ScheduledCapacity";
/// Its plural, as in URLs.
pub const CAPACITY_PLURAL: &str = "scheduledcapacities";
/// Annotation on a ScheduleOverride that is kept after its end; only the value `true` has an
/// effect.
pub const KEEP_ANNOTATION: &str = "5spot.finos.org/keep";
/// The ClusterRole for users who may override schedules.
pub const OVERRIDE_EDITOR: &str = "5spot-override-editor";
/// The key of the taint of a Node that leaves soon.
pub const LAST_CALL_TAINT: &str = "5spot.finos.org/last-call";
/// Annotation on such a Node: when it leaves, RFC 3339.
pub const LEAVES_AT_ANNOTATION: &str = "5spot.finos.org/leaves-at";
/// The short name, as in `kubectl get sm`.
pub const SHORT_NAME: &str = "sm";
/// The category, as in `kubectl get fivespot`. A category must start with a letter (a DNS-1035
/// label), so that it cannot be `5spot`.
pub const CATEGORY: &str = "fivespot";
/// The older groups that some manifests still use.
pub const OLDER_GROUPS: [&str; 2] = ["capi.5spot.io", "5spot.io"];
/// The name of the finalizer under the older groups.
pub const OLDER_FINALIZER: &str = "5spot.io/scheduledmachine";

/// The name of the ValidatingAdmissionPolicy that is rendered from the rules.
pub const POLICY: &str = "scheduledmachine-validation";
/// The name of its binding, in the denying and in the auditing form.
pub const POLICY_BINDING: &str = "scheduledmachine-validation-binding";

/// The name of the ConfigMap with the providers that the policy with parameters allows.
pub const PROVIDERS: &str = "5spot-providers";
/// The namespace of that ConfigMap. It is separate from the agents' configurations, which the
/// operator may write, so that the operator cannot change what its own policy allows.
pub const PARAMETER_NAMESPACE: &str = "5spot-admission";

/// The name of the operator's ServiceAccount, Deployment and roles.
pub const CONTROLLER: &str = "5spot-controller";
/// The beginning of the names of all Leases of the operator.
pub const LEASE_PREFIX: &str = "5spot-";
/// The name of the Lease for the operator's leader election.
pub const LEADER_LEASE: &str = "5spot-leader";
/// The name of the ServiceAccount, the Deployment and the roles of the controller of
/// ScheduledCapacities, where it runs apart from that of machines; and of its policy.
pub const CAPACITY_CONTROLLER: &str = "5spot-controller-capacity";
/// The name of its Lease.
pub const CAPACITY_LEASE: &str = "5spot-capacity";
/// The name of the webhook's ServiceAccount, Deployment, roles and Secret.
pub const WEBHOOK: &str = "5spot-webhook";
/// The name of the webhook's Service. Older Kubernetes versions reject one that starts with a
/// digit.
pub const WEBHOOK_SERVICE: &str = "webhook";
/// The name of the ValidatingWebhookConfiguration.
pub const WEBHOOK_CONFIGURATION: &str = POLICY;
/// The name of the policy that restricts the webhook to the CA bundle of its own configuration,
/// and of its binding.
pub const WEBHOOK_POLICY: &str = "5spot-webhook-bundle";
/// The name of the webhook in the configuration; rejections show it.
pub const WEBHOOK_NAME: &str = "scheduledmachine-validation.5spot.finos.org";
/// The path to which API servers send admission requests.
pub const WEBHOOK_PATH: &str = "/validate";

/// Label on a ClusterRole whose rules are aggregated into the operator's role: for providers
/// that `5spot generate rbac` does not support. The value is `true`.
pub const AGGREGATE_LABEL: &str = "5spot.finos.org/aggregate-to-controller";

/// The finalizer on a ScheduledMachine: removed when all objects that it created are gone.
pub const FINALIZER: &str = "5spot.finos.org/scheduledmachine";

/// Label on all three created objects: the name of their ScheduledMachine.
pub const SCHEDULED_MACHINE_LABEL: &str = "5spot.finos.org/scheduled-machine";

/// The prefix of the names of the Leases of shards and of their holders.
pub const SHARD_PREFIX: &str = "5spot";

/// The label of those Leases; its value is the number of shards.
pub const SHARD_LABEL: &str = "5spot.finos.org/shards";
/// Label on all three created objects: the uid of their ScheduledMachine.
pub const SCHEDULED_MACHINE_UID_LABEL: &str = "5spot.finos.org/scheduled-machine-uid";

/// Annotation on all three created objects: the hash of the spec that they were created from,
/// see [`crate::spec_hash::SpecHash`].
pub const SPEC_HASH_ANNOTATION: &str = "5spot.finos.org/spec-hash";
/// The host of its class that a created object is for. Read where the status is lost, as after a
/// restore.
pub const HOST_ANNOTATION: &str = "5spot.finos.org/host";
/// Annotation on a Node that the operator cordoned; it uncordons only such a Node. The value is
/// the uid of the ScheduledMachine.
pub const CORDONED_ANNOTATION: &str = "5spot.finos.org/cordoned";
/// Annotation on a Node: the taints that the operator set, as a JSON list.
pub const APPLIED_TAINTS_ANNOTATION: &str = "5spot.finos.org/applied-taints";

/// Annotation on a Node by which the agent requests a reclaim; only the value `true` has an
/// effect.
pub const RECLAIM_REQUESTED_ANNOTATION: &str = "5spot.finos.org/reclaim-requested";
/// Annotation on a Node: why the agent requests a reclaim.
pub const RECLAIM_REASON_ANNOTATION: &str = "5spot.finos.org/reclaim-reason";
/// Annotation on a Node: when the agent requested the reclaim, RFC 3339.
pub const RECLAIM_REQUESTED_AT_ANNOTATION: &str = "5spot.finos.org/reclaim-requested-at";
/// The annotations on a Node that form a request for reclaim.
pub const RECLAIM_REQUEST: [&str; 3] = [
    RECLAIM_REQUESTED_ANNOTATION,
    RECLAIM_REASON_ANNOTATION,
    RECLAIM_REQUESTED_AT_ANNOTATION,
];
/// Annotation on a Machine: the record of a reclaim, `<time> <reason>`.
pub const RECLAIM_ANNOTATION: &str = "5spot.finos.org/reclaim";
/// Annotation on the ScheduleOverride of a reclaim: when the reclaim began, RFC 3339.
pub const RECLAIMED_AT_ANNOTATION: &str = "5spot.finos.org/reclaimed-at";
/// Annotation on a ScheduledMachine whose host is free, see [`crate::reclaim::FreeHost`].
pub const HOST_FREE_ANNOTATION: &str = "5spot.finos.org/host-free";
/// Annotation on a Machine: the schedule has been disabled for this reclaim.
pub const RECLAIM_DISABLED_ANNOTATION: &str = "5spot.finos.org/reclaim-disabled";
/// Label on a Node that the agent's DaemonSet selects, and annotation with the agent's report.
pub const RECLAIM_AGENT_KEY: &str = "5spot.finos.org/reclaim-agent";
/// The value of [`RECLAIM_AGENT_KEY`] as a label.
pub const RECLAIM_AGENT_ENABLED: &str = "enabled";
/// The namespace of the operator, and of the agent's ConfigMaps in a workload cluster.
pub const SYSTEM_NAMESPACE: &str = "5spot-system";

/// The namespace of the emergency reclaim agents, whose pods have access to their hosts.
pub const AGENT_NAMESPACE: &str = "5spot-reclaim-agent";
/// The key of the agent's ConfigMap that contains its configuration.
pub const RECLAIM_CONFIG_KEY: &str = "reclaim.toml";

/// The field manager of every write of the controller; also its name in events.
pub const FIELD_MANAGER: &str = "5spot-controller";
/// The field manager of the agent.
pub const AGENT_FIELD_MANAGER: &str = "5spot-reclaim-agent";

/// The name of the policy that restricts the agent to its own Node, and of its binding.
pub const AGENT_POLICY: &str = "5spot-reclaim-agent-own-node";

/// The name of the policy that restricts the agents that are services of their hosts, and of its
/// binding.
pub const HOST_POLICY: &str = "5spot-host";

/// The prefix of the name of such an agent's ServiceAccount; the name of its ScheduledMachine
/// follows. The account is in the namespace of that ScheduledMachine.
pub const HOST_ACCOUNT_PREFIX: &str = "5spot-host-";

/// The name of the policy that restricts who may write annotations of 5-Spot on Nodes, and of
/// its binding.
pub const NODE_ANNOTATION_POLICY: &str = "5spot-node-annotations";

/// The prefix of every annotation of 5-Spot.
pub const ANNOTATION_PREFIX: &str = "5spot.finos.org/";

/// The key of Cluster API's kubeconfig Secret that contains the kubeconfig.
pub const KUBECONFIG_SECRET_KEY: &str = "value";

/// The user name of a ServiceAccount.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// let user = name::service_account_user("team-a", "builder");
/// assert_eq!(user, "system:serviceaccount:team-a:builder");
/// ```
pub fn service_account_user(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

/// The labels of all objects that install the operator.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// assert_eq!(name::controller_labels()["app.kubernetes.io/component"], "controller");
/// ```
pub fn controller_labels() -> BTreeMap<String, String> {
    component_labels("controller")
}

/// The labels of the objects with which the controller of ScheduledCapacities runs.
pub fn capacity_labels() -> BTreeMap<String, String> {
    component_labels("capacity")
}

/// The labels of all objects that install the webhook.
pub fn webhook_labels() -> BTreeMap<String, String> {
    component_labels("webhook")
}

/// The labels of all objects that install the dashboard.
pub fn dashboard_labels() -> BTreeMap<String, String> {
    component_labels("dashboard")
}

fn component_labels(component: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "5spot"),
        ("app.kubernetes.io/component", component),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// The name of the bootstrap object, the infrastructure object and the Machine of a
/// ScheduledMachine: the name of the ScheduledMachine.
///
/// Because names are unique per namespace, creating the same object twice is a conflict and
/// does not result in a second machine.
pub fn child(scheduled_machine: &str) -> &str {
    scheduled_machine
}

/// The labels that all three created objects carry.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// let labels = name::child_labels("worker", "uid-1", "prod");
/// assert_eq!(name::owner_name(&labels), Some("worker"));
/// assert_eq!(name::owner_uid(&labels), Some("uid-1"));
/// assert_eq!(name::cluster(&labels), Some("prod"));
/// ```
pub fn child_labels(
    scheduled_machine: &str,
    uid: &str,
    cluster: &str,
) -> BTreeMap<String, String> {
    [
        (SCHEDULED_MACHINE_LABEL, scheduled_machine),
        (SCHEDULED_MACHINE_UID_LABEL, uid),
        (key::CLUSTER_NAME, cluster),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// The ScheduledMachine that an object's labels name, if any.
///
/// The name alone is no proof: every client that may create the object may set the label.
pub fn owner_name(labels: &BTreeMap<String, String>) -> Option<&str> {
    labels.get(SCHEDULED_MACHINE_LABEL).map(String::as_str)
}

/// The uid of the ScheduledMachine that an object's labels name, if any.
pub fn owner_uid(labels: &BTreeMap<String, String>) -> Option<&str> {
    labels.get(SCHEDULED_MACHINE_UID_LABEL).map(String::as_str)
}

/// The cluster that an object's labels name, if any.
pub fn cluster(labels: &BTreeMap<String, String>) -> Option<&str> {
    labels.get(key::CLUSTER_NAME).map(String::as_str)
}

/// The Secret in which Cluster API stores the kubeconfig of a workload cluster.
///
/// # Example
/// ```
/// assert_eq!(fivespot_api::name::kubeconfig_secret("prod"), "prod-kubeconfig");
/// ```
pub fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// The ConfigMap that configures the agent on one node.
///
/// # Example
/// ```
/// assert_eq!(fivespot_api::name::reclaim_config_map("n1"), "reclaim-agent-n1");
/// ```
pub fn reclaim_config_map(node: &str) -> String {
    format!("reclaim-agent-{node}")
}

/// The name of the ScheduleOverride that stops a machine after a reclaim, derived from the uid
/// of the Machine. It is a DNS label if the name of the ScheduledMachine is one.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// let uid = "5d1f1a52-0a6f-4f5e-9d2c-7d2f3c3a1b11";
/// assert_eq!(name::reclaim_override("worker", uid), "worker-5d1f1a52");
/// assert_eq!(name::reclaim_override(&"x".repeat(63), uid).len(), 63);
/// ```
pub fn reclaim_override(scheduled_machine: &str, machine_uid: &str) -> String {
    let uid: String = machine_uid.chars().take(8).collect();
    let uid = uid.trim_end_matches('-');
    let kept: String = scheduled_machine.chars().take(62 - uid.len()).collect();
    format!("{kept}-{uid}")
}

/// The Lease with which a ScheduledMachine claims a host of a class, in the operator's namespace.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// let lease = name::host_claim("desks.zurich", "desk-7");
/// assert_eq!(lease, "5spot-host.desk-7.desks.zurich");
/// assert_eq!(name::claimed_host(&lease), Some(("desks.zurich", "desk-7")));
/// assert_eq!(name::claimed_host("5spot-leader"), None);
/// ```
pub fn host_claim(class: &str, host: &str) -> String {
    format!("{HOST_CLAIM_PREFIX}{host}.{class}")
}

/// The class and the host that such a Lease is about.
pub fn claimed_host(lease: &str) -> Option<(&str, &str)> {
    let (host, class) = lease.strip_prefix(HOST_CLAIM_PREFIX)?.split_once('.')?;
    Some((class, host))
}

/// How the name of such a Lease begins. The name of a host has no dot.
const HOST_CLAIM_PREFIX: &str = "5spot-host.";

/// The labels of such a ConfigMap.
pub fn agent_labels() -> BTreeMap<String, String> {
    component_labels("reclaim-agent")
}

/// The name of the Node that such a ConfigMap configures.
///
/// # Example
/// ```
/// use fivespot_api::name;
/// assert_eq!(name::reclaim_node(&name::reclaim_config_map("n1")), Some("n1"));
/// assert_eq!(name::reclaim_node("kube-root-ca.crt"), None);
/// ```
pub fn reclaim_node(config_map: &str) -> Option<&str> {
    config_map.strip_prefix("reclaim-agent-")
}

/// The name of the CRD: plural and group.
pub fn crd() -> String {
    format!("{PLURAL}.{GROUP}")
}
