//! The agent has access to its host and only the permissions that it needs for it.

use fivespot_install::agent;
use serde_json::{Value, json};

/// The specification of the agent's pods.
fn agent_pod(settings: &agent::Settings) -> Value {
    settings.daemon_set()["spec"]["template"]["spec"].clone()
}

fn every_agent() -> Vec<agent::Settings> {
    let mut all = Vec::new();
    for kernel in [None, "5.15".parse().ok(), "6.6".parse().ok()] {
        for detection in [agent::Detection::Events, agent::Detection::Scan] {
            all.push(agent::Settings {
                kernel,
                detection,
                ..agent::Settings::default()
            });
        }
    }
    all
}

#[test]
fn the_agent_gains_no_privileges_and_its_profiles_are_those_of_the_runtime() {
    for settings in every_agent() {
        let pod = agent_pod(&settings);
        let container = &pod["containers"][0]["securityContext"];
        assert_eq!(container["allowPrivilegeEscalation"], false);
        assert_eq!(container["privileged"], false);
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        for profile in ["seccompProfile", "appArmorProfile"] {
            assert_eq!(pod["securityContext"][profile]["type"], "RuntimeDefault");
        }
        let volumes = pod["volumes"].as_array().unwrap();
        assert_eq!(volumes.len(), 1);
        assert_eq!(volumes[0]["hostPath"]["path"], "/etc/machine-id");
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["readOnly"], true);
        assert!(pod["containers"][0]["resources"]["limits"]["memory"].is_string());
    }
}

#[test]
fn the_agent_is_root_only_where_the_kernel_requires_it() {
    for settings in every_agent() {
        let is_old = settings.kernel != "6.6".parse().ok();
        let is_root = is_old && settings.detection == agent::Detection::Events;
        let pod = agent_pod(&settings);
        let container = &pod["containers"][0]["securityContext"];
        if is_root {
            assert_eq!(container["capabilities"]["add"], json!(["NET_ADMIN"]));
            assert_eq!(container["runAsUser"], 0);
        } else {
            assert_eq!(container["capabilities"], json!({"drop": ["ALL"]}));
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["runAsUser"], 65532);
            assert_eq!(container.get("runAsUser"), None);
        }
    }
}

#[test]
fn an_agent_that_scans_is_outside_the_network_of_its_host() {
    for settings in every_agent() {
        let is_on_host = settings.detection == agent::Detection::Events;
        let pod = agent_pod(&settings);
        assert_eq!(pod["hostNetwork"] == true, is_on_host);
        let words = &pod["containers"][0]["args"];
        assert_eq!(*words == json!(["--detection=scan"]), !is_on_host);
    }
}

#[test]
fn the_agent_has_no_right_before_the_policies_that_bound_it() {
    let documents = agent::Settings::default().documents();
    let place = |kind: &str| documents.iter().position(|it| it["kind"] == kind).unwrap();
    let last = |kind: &str| documents.iter().rposition(|it| it["kind"] == kind).unwrap();
    let policies = last("ValidatingAdmissionPolicyBinding");
    assert!(last("ValidatingAdmissionPolicy") < policies);
    for later in [
        "ServiceAccount",
        "ClusterRoleBinding",
        "RoleBinding",
        "DaemonSet",
    ] {
        assert!(policies < place(later), "{later}");
    }
    let bindings = documents
        .iter()
        .filter(|it| it["kind"] == "ValidatingAdmissionPolicyBinding");
    for binding in bindings {
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
        assert_eq!(binding["spec"].get("matchResources"), None);
    }
}

#[test]
fn the_agent_writes_only_to_nodes() {
    let documents = agent::Settings::default().documents();
    let rules = documents.iter().filter_map(|it| it["rules"].as_array());
    for rule in rules.flatten() {
        if rule["resources"] == json!(["nodes"]) {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch", "patch"]));
        } else {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
        }
    }
}
