//! What providers need although admission does not require it.

use serde_json::Value;

use super::{LintWarning, NO_SSH_KEY, NO_VERSION, SHARED_HOST, of_several, warning};
use crate::ScheduledMachine;

/// The port of SSH, the default of a RemoteMachine without a port.
const SSH: u64 = 22;

/// The warnings about missing provider settings of one object: SL008 and SL009.
pub fn of_providers(object: &ScheduledMachine) -> Vec<LintWarning> {
    no_version(object)
        .into_iter()
        .chain(no_ssh_key(object))
        .collect()
}

fn no_version(object: &ScheduledMachine) -> Option<LintWarning> {
    let spec = &object.spec;
    let is_kubeadm = spec.bootstrap_spec.kind == "KubeadmConfig";
    (is_kubeadm && spec.machine_template.version.is_none()).then(|| {
        let message = "a KubeadmConfig requires the Kubernetes version of the machine";
        warning(
            NO_VERSION,
            "spec.machineTemplate.version",
            message.to_owned(),
        )
    })
}

fn no_ssh_key(object: &ScheduledMachine) -> Option<LintWarning> {
    let spec = remote_machine(object)?;
    let key = spec.get("sshKeyRef").and_then(|key| key["name"].as_str());
    // A custom provision job connects to the host by its own means.
    let is_needed = spec.contains_key("address") && !spec.contains_key("provisionJob");
    (is_needed && key.unwrap_or_default().is_empty()).then(|| {
        let message = "the host cannot be provisioned or cleaned up without an SSH key";
        let field = "spec.infrastructureSpec.spec.sshKeyRef";
        warning(NO_SSH_KEY, field, message.to_owned())
    })
}

/// The warnings about hosts that several of `objects` name, SL010: each with the index in
/// `objects` of the object that it concerns. Objects with the same namespace and name count as
/// one.
pub fn shared_hosts(objects: &[&ScheduledMachine]) -> Vec<(usize, LintWarning)> {
    let hosts = objects.iter().enumerate().filter_map(|(place, object)| {
        let host = host(object)?;
        Some((host, place, full_name(object)))
    });
    of_several(hosts, |host, other| {
        let message = format!("{host} is also used by ScheduledMachine {other}");
        let field = "spec.infrastructureSpec.spec.address";
        warning(SHARED_HOST, field, message)
    })
}

/// Address and port of the host of a RemoteMachine. `None` if the provider chooses the host.
fn host(object: &ScheduledMachine) -> Option<String> {
    let spec = remote_machine(object)?;
    let address = spec.get("address")?.as_str()?;
    let port = spec.get("port").and_then(Value::as_u64).unwrap_or(SSH);
    Some(format!("{}:{port}", address.to_ascii_lowercase()))
}

/// The spec of a RemoteMachine that names its host. `None` if the host comes from a pool.
fn remote_machine(object: &ScheduledMachine) -> Option<&serde_json::Map<String, Value>> {
    let asked = &object.spec.infrastructure_spec;
    let is_fixed = asked.kind == "RemoteMachine" && !asked.spec.contains_key("pool");
    is_fixed.then_some(&asked.spec)
}

pub(super) fn full_name(object: &ScheduledMachine) -> String {
    let meta = &object.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    format!("{namespace}/{}", meta.name.as_deref().unwrap_or_default())
}
