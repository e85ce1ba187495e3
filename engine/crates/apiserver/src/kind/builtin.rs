//! The list of the built-in kinds.

use std::sync::Arc;

use super::{
    BuiltinKind, api_service, binding, certificate_signing_request, cluster_role,
    cluster_role_binding, component_status, config_map, controller_revision, cron_job,
    csi_driver, csi_node, csi_storage_capacity, custom_resource_definition, daemon_set,
    deployment, device_class, endpoint_slice, endpoints, event, flow_schema,
    horizontal_pod_autoscaler, ingress, ingress_class, ip_address, job, lease,
    limit_range, local_subject_access_review, mutating_admission_policy,
    mutating_admission_policy_binding, mutating_webhook_configuration, namespace,
    network_policy, node, persistent_volume, persistent_volume_claim, pod,
    pod_disruption_budget, pod_template, priority_class, priority_level_configuration,
    replica_set, replication_controller, resource_claim, resource_claim_template,
    resource_quota, resource_slice, role, role_binding, runtime_class, secret,
    self_subject_access_review, self_subject_review, self_subject_rules_review, service,
    service_account, service_cidr, stateful_set, storage_class, subject_access_review,
    token_review, validating_admission_policy, validating_admission_policy_binding,
    validating_webhook_configuration, volume_attachment, volume_attributes_class,
};
use crate::openapi::definitions;
use crate::openapi::object_field::add_object_fields;
use crate::openapi::schema::Schema;
use crate::resource::Resource;

/// Every built-in kind.
///
/// A kind is served only if it is listed here, given as [`Options::kinds`](crate::Options::kinds)
/// or registered by a CustomResourceDefinition.
pub fn builtin_kinds() -> Vec<Arc<dyn BuiltinKind>> {
    let mut all = core_kinds();
    all.extend(group_kinds());
    all
}

/// The kinds of the core group.
fn core_kinds() -> Vec<Arc<dyn BuiltinKind>> {
    vec![
        Arc::new(binding::Binding),
        Arc::new(component_status::ComponentStatus),
        Arc::new(config_map::ConfigMap),
        Arc::new(endpoints::Endpoints),
        Arc::new(event::Core),
        Arc::new(limit_range::LimitRange),
        Arc::new(namespace::Namespace),
        Arc::new(node::Node),
        Arc::new(persistent_volume::PersistentVolume),
        Arc::new(persistent_volume_claim::PersistentVolumeClaim),
        Arc::new(pod::Pod),
        Arc::new(pod_template::PodTemplate),
        Arc::new(resource_quota::ResourceQuota),
        Arc::new(replication_controller::ReplicationController),
        Arc::new(secret::Secret),
        Arc::new(service::Service),
        Arc::new(service_account::ServiceAccount),
    ]
}

/// The kinds of the other groups.
fn group_kinds() -> Vec<Arc<dyn BuiltinKind>> {
    vec![
        Arc::new(mutating_admission_policy::MutatingAdmissionPolicy),
        Arc::new(mutating_admission_policy_binding::MutatingAdmissionPolicyBinding),
        Arc::new(mutating_webhook_configuration::MutatingWebhookConfiguration),
        Arc::new(validating_admission_policy::ValidatingAdmissionPolicy),
        Arc::new(validating_admission_policy_binding::ValidatingAdmissionPolicyBinding),
        Arc::new(validating_webhook_configuration::ValidatingWebhookConfiguration),
        Arc::new(custom_resource_definition::CustomResourceDefinition),
        Arc::new(api_service::ApiService),
        Arc::new(controller_revision::ControllerRevision),
        Arc::new(daemon_set::DaemonSet),
        Arc::new(deployment::Deployment),
        Arc::new(replica_set::ReplicaSet),
        Arc::new(stateful_set::StatefulSet),
        Arc::new(horizontal_pod_autoscaler::HorizontalPodAutoscaler),
        Arc::new(horizontal_pod_autoscaler::V1),
        Arc::new(cron_job::CronJob),
        Arc::new(job::Job),
        Arc::new(certificate_signing_request::CertificateSigningRequest),
        Arc::new(self_subject_review::SelfSubjectReview),
        Arc::new(token_review::TokenReview),
        Arc::new(local_subject_access_review::LocalSubjectAccessReview),
        Arc::new(self_subject_access_review::SelfSubjectAccessReview),
        Arc::new(self_subject_rules_review::SelfSubjectRulesReview),
        Arc::new(subject_access_review::SubjectAccessReview),
        Arc::new(lease::Lease),
        Arc::new(endpoint_slice::EndpointSlice),
        Arc::new(event::Events),
        Arc::new(flow_schema::FlowSchema),
        Arc::new(priority_level_configuration::PriorityLevelConfiguration),
        Arc::new(ingress::Ingress),
        Arc::new(ingress_class::IngressClass),
        Arc::new(ip_address::IpAddress),
        Arc::new(network_policy::NetworkPolicy),
        Arc::new(service_cidr::ServiceCidr),
        Arc::new(runtime_class::RuntimeClass),
        Arc::new(pod_disruption_budget::PodDisruptionBudget),
        Arc::new(cluster_role::ClusterRole),
        Arc::new(cluster_role_binding::ClusterRoleBinding),
        Arc::new(role::Role),
        Arc::new(role_binding::RoleBinding),
        Arc::new(device_class::DeviceClass),
        Arc::new(resource_claim::ResourceClaim),
        Arc::new(resource_claim_template::ResourceClaimTemplate),
        Arc::new(resource_slice::ResourceSlice),
        Arc::new(priority_class::PriorityClass),
        Arc::new(csi_driver::CsiDriver),
        Arc::new(csi_node::CsiNode),
        Arc::new(csi_storage_capacity::CsiStorageCapacity),
        Arc::new(storage_class::StorageClass),
        Arc::new(volume_attachment::VolumeAttachment),
        Arc::new(volume_attributes_class::VolumeAttributesClass),
    ]
}

/// The resources of all built-in kinds.
pub(crate) fn resources() -> Vec<Resource> {
    builtin_kinds().into_iter().map(served).collect()
}

/// The resource of a kind, with the kind's behaviour and schema.
pub(crate) fn served(kind: Arc<dyn BuiltinKind>) -> Resource {
    let mut resource = kind.resource();
    resource.schema = match resource.schema.take() {
        Some(own) => {
            let mut own = own.document().clone();
            add_object_fields(&mut own);
            Some(Schema::new(own))
        }
        None => definitions::name_of(&resource.group, &resource.version, &resource.kind)
            .map(Schema::reference),
    };
    resource.builtin = Some(kind);
    resource
}
