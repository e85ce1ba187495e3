//! The generated manifests, as files.

use fivespot_api::manifest::{self, Error, GeneratedFile, Group};
use fivespot_api::vap::{self, Action};
use fivespot_api::{crd, name};
use serde_json::Value;

use crate::capacity_policy::kinds_in;
use crate::controller::{POLICIES_SINCE, Settings};
use crate::role::{self, NamespaceScope, Rights};
use crate::user::{self, Aggregation};
use crate::{agent, chart, gitops, kustomize, monitoring, permission, webhook};

/// The directory of all manifests in the source tree.
pub const DEPLOY: &str = "deploy";
/// The directory of the roles in the source tree.
pub const ROLES: &str = "deploy/rbac";
/// The directory of the Helm chart in the source tree.
pub const CHART: &str = "deploy/chart";

/// The user that the shipped role for workload clusters is bound to.
pub const WORKLOAD_USER: &str = fivespot_api::name::CONTROLLER;

/// The roles and bindings in the management cluster for `rights`, preceded by the policies that
/// limit them if Kubernetes 1.`kube_minor` supports policies.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn roles(rights: &Rights, kube_minor: u32) -> Result<Vec<GeneratedFile>, Error> {
    let mut documents = Vec::new();
    if kube_minor >= POLICIES_SINCE {
        documents.extend(rights.limits());
        documents.extend(rights.capacity_policy());
    } else {
        documents.push(rights.capacity_kinds());
    }
    documents.extend(rights.management());
    let mut files = vec![roles_in("rbac.yaml", &documents)?];
    let secrets = rights.kubeconfigs();
    if !secrets.is_empty() {
        files.push(roles_in("kubeconfigs.yaml", &secrets)?);
    }
    Ok(files)
}

/// The role and its binding for a workload cluster whose kubeconfig names `user`.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn workload_roles(user: &str) -> Result<Vec<GeneratedFile>, Error> {
    Ok(vec![roles_in("workload/rbac.yaml", &role::workload(user))?])
}

/// The roles in the source tree: the default rights, the optional right to read kubeconfigs in
/// every namespace, and the role for workload clusters.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn shipped_roles() -> Result<Vec<GeneratedFile>, Error> {
    let everywhere = Rights {
        kubeconfigs: NamespaceScope::All,
        ..Rights::default()
    };
    let mut files = roles(&Rights::default(), crd::SHIPPED_MINOR)?;
    files.push(roles_in(
        "cluster-wide-kubeconfigs/rbac.yaml",
        &everywhere.kubeconfigs(),
    )?);
    files.extend(workload_roles(WORKLOAD_USER)?);
    Ok(files)
}

/// All objects of a management cluster, in one file: `kubectl apply -f install.yaml`. A namespace
/// other than the operator's own one must exist. It omits the policy and its binding if the cluster does not support them: [`webhook`] replaces them.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn install(settings: &Settings) -> Result<GeneratedFile, Error> {
    let mut documents: Vec<Value> = settings.namespace().into_iter().collect();
    documents.extend(manifest::definitions(settings.kube_minor));
    if settings.supports_policies() {
        documents.extend(manifest::policies());
        documents.extend(manifest::bindings(Action::Deny));
        documents.extend(settings.rights.limits());
        documents.extend(settings.rights.capacity_policy());
        documents.extend(vap::class::policies());
    } else {
        documents.push(settings.rights.capacity_kinds());
    }
    documents.extend(settings.rights.management());
    documents.extend(settings.rights.kubeconfigs());
    documents.extend(user::roles(Aggregation::View));
    documents.extend(settings.workload());
    GeneratedFile::manifest("install.yaml", "manifests", &documents)
}

/// The files below `deploy/`, except the chart: `install.yaml`, and its parts in folders. The
/// agent is omitted if policies are not supported, because a policy restricts it to its own
/// Node.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn manifests(settings: &Settings) -> Result<Vec<GeneratedFile>, Error> {
    let mut files = vec![install(settings)?];
    let mut groups = vec![Group::Crd];
    groups.extend(settings.supports_policies().then_some(Group::Admission));
    for group in groups {
        files.extend(in_directory(
            group.directory(),
            group.files(settings.kube_minor)?,
        ));
    }
    let roles = if *settings == Settings::default() {
        shipped_roles()?
    } else {
        roles(&settings.rights, settings.kube_minor)?
    };
    files.extend(in_directory(ROLES, roles));
    files.push(roles_in(
        "rbac/users.yaml",
        &user::roles(Aggregation::View),
    )?);
    if let Some(namespace) = settings.namespace() {
        let path = "controller/namespace.yaml";
        files.push(GeneratedFile::manifest(path, "manifests", &[namespace])?);
    }
    let path = "controller/controller.yaml";
    let workload = settings.workload();
    files.push(GeneratedFile::manifest(path, "manifests", &workload)?);
    if settings.supports_policies() {
        files.push(agent(&agent_beside(settings))?);
    }
    files.push(webhook(&webhook::Settings {
        namespace: settings.rights.namespace.clone(),
        image: settings.webhook_image.clone(),
        capacity_targets: settings
            .rights
            .is_capacity_apart()
            .then(|| kinds_in(&settings.rights.namespace)),
        kube_minor: settings.kube_minor.min(webhook::MATCH_CONDITIONS_SINCE),
        network: settings.network.clone(),
        ..webhook::Settings::default()
    })?);
    files.extend(monitoring(&monitoring::Settings {
        namespace: settings.rights.namespace.clone(),
        ..monitoring::Settings::default()
    })?);
    files.extend(gitops::files()?);
    files.extend(kustomize::files(&files)?);
    Ok(files)
}

/// The agent of an installation, in the management cluster itself or in a workload cluster.
fn agent_beside(settings: &Settings) -> agent::Settings {
    let namespace = &settings.rights.namespace;
    let mut agent = agent::Settings {
        image: settings.agent_image.clone(),
        ..agent::Settings::default()
    };
    let operator = name::service_account_user(namespace, name::CONTROLLER);
    if !agent.operators.contains(&operator) {
        agent.operators.push(operator);
    }
    agent
}

/// The additional objects of a cluster without admission policies, in one file.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn webhook(settings: &webhook::Settings) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest("webhook/webhook.yaml", "webhook", &settings.documents())
}

/// The objects of the emergency reclaim agent in a workload cluster, in one file.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn agent(settings: &agent::Settings) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest("agent/agent.yaml", "manifests", &settings.documents())
}

/// The identity of an agent that is a service of its host, in one file.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn host(host: &agent::host::Host) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest("agent/host.yaml", "manifests", &host.documents())
}

/// The policy that restricts the agents of all hosts, in one file: for a cluster with their
/// ScheduledMachines alone. One with Nodes has it in [`agent`].
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn host_policy() -> Result<GeneratedFile, Error> {
    let documents = agent::host::policy();
    GeneratedFile::manifest("agent/host-policy.yaml", "manifests", &documents)
}

/// The files for Prometheus and Grafana: objects of the Prometheus operator, and the same
/// alerts and dashboard as plain files in separate folders.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn monitoring(settings: &monitoring::Settings) -> Result<Vec<GeneratedFile>, Error> {
    let mut files = Vec::new();
    for (path, document) in [
        ("monitoring/servicemonitor.yaml", settings.service_monitor()),
        ("monitoring/prometheusrule.yaml", settings.prometheus_rule()),
        ("monitoring/dashboard.yaml", settings.dashboard_config_map()),
        (
            "monitoring/podmonitor/podmonitor.yaml",
            settings.pod_monitor(),
        ),
        ("monitoring/prometheus/rules.yaml", monitoring::rules()),
    ] {
        files.push(GeneratedFile::manifest(path, "manifests", &[document])?);
    }
    files.push(GeneratedFile {
        path: "monitoring/grafana/dashboard.json".to_owned(),
        text: monitoring::DASHBOARD.to_owned(),
    });
    Ok(files)
}

/// The Helm chart.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub fn chart() -> Result<Vec<GeneratedFile>, Error> {
    chart::files()
}

/// The reference page of permissions.
pub fn permission_page() -> GeneratedFile {
    GeneratedFile {
        path: "permissions.md".to_owned(),
        text: permission::page(),
    }
}

/// The files of a directory of the source tree, with paths relative to [`DEPLOY`].
fn in_directory(directory: &str, files: Vec<GeneratedFile>) -> Vec<GeneratedFile> {
    let folder = directory
        .strip_prefix(DEPLOY)
        .unwrap_or(directory)
        .trim_start_matches('/');
    let renamed = files.into_iter().map(|file| GeneratedFile {
        path: format!("{folder}/{}", file.path),
        ..file
    });
    renamed.collect()
}

fn roles_in(path: &str, documents: &[Value]) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest(path, "rbac", documents)
}
