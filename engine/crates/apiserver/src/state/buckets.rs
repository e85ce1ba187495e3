//! The buckets that the server itself uses.

use crate::authorization::rule_index::GROUP;
use crate::resource::GroupResource;
use crate::store::{Bucket, Store};

/// The buckets that the server itself uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    pub(crate) namespaces: Bucket,
    pub(crate) pods: Bucket,
    pub(crate) budgets: Bucket,
    pub(crate) definitions: Bucket,
    pub(crate) policies: Bucket,
    pub(crate) bindings: Bucket,
    pub(crate) mutating_policies: Bucket,
    pub(crate) mutating_bindings: Bucket,
    /// Webhook configurations, mutating and validating.
    pub(crate) webhooks: [Bucket; 2],
    pub(crate) nodes: Bucket,
    pub(crate) quotas: Bucket,
    pub(crate) claims: Bucket,
    pub(crate) volumes: Bucket,
    pub(crate) events: Bucket,
    pub(crate) accounts: Bucket,
    pub(crate) maps: Bucket,
    pub(crate) secrets: Bucket,
    pub(crate) services: Bucket,
    pub(crate) cluster_roles: Bucket,
    /// Roles and bindings, cluster-wide and namespaced.
    pub(crate) rbac: [Bucket; 4],
}

impl Buckets {
    pub(super) fn of(store: &mut Store) -> Self {
        let mut bucket = |group, plural| store.bucket(&GroupResource::new(group, plural));
        let admission = "admissionregistration.k8s.io";
        let rbac = GROUP;
        Self {
            namespaces: bucket("", "namespaces"),
            pods: bucket("", "pods"),
            budgets: bucket("policy", "poddisruptionbudgets"),
            definitions: bucket("apiextensions.k8s.io", "customresourcedefinitions"),
            policies: bucket(admission, "validatingadmissionpolicies"),
            bindings: bucket(admission, "validatingadmissionpolicybindings"),
            mutating_policies: bucket(admission, "mutatingadmissionpolicies"),
            mutating_bindings: bucket(admission, "mutatingadmissionpolicybindings"),
            webhooks: [
                bucket(admission, "mutatingwebhookconfigurations"),
                bucket(admission, "validatingwebhookconfigurations"),
            ],
            nodes: bucket("", "nodes"),
            quotas: bucket("", "resourcequotas"),
            claims: bucket("", "persistentvolumeclaims"),
            volumes: bucket("", "persistentvolumes"),
            events: bucket("", "events"),
            accounts: bucket("", "serviceaccounts"),
            maps: bucket("", "configmaps"),
            secrets: bucket("", "secrets"),
            services: bucket("", "services"),
            cluster_roles: bucket(rbac, "clusterroles"),
            rbac: [
                bucket(rbac, "clusterroles"),
                bucket(rbac, "clusterrolebindings"),
                bucket(rbac, "roles"),
                bucket(rbac, "rolebindings"),
            ],
        }
    }
}
