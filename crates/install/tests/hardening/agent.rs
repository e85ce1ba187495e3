//! The agent has access to its host and only the permissions that it needs for it.

use fivespot_install::agent;
use fivespot_install::agent::host::{Host, Part};
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

/// A kubelet refuses a pod that asks for a profile if AppArmor is not enabled on its node. Without
/// the field, the runtime applies the same profile where it is enabled.
#[test]
fn the_agent_requires_an_apparmor_profile_only_where_every_node_has_one() {
    for settings in every_agent() {
        let context = agent_pod(&settings)["securityContext"].clone();
        assert_eq!(context.get("appArmorProfile"), None);
        let context = agent_pod(&agent::Settings {
            app_armor: true,
            ..settings
        })["securityContext"]
            .clone();
        assert_eq!(context["appArmorProfile"]["type"], "RuntimeDefault");
    }
}

/// An agent that scans is in a network of its own, to which policies apply.
#[test]
fn an_agent_that_scans_reaches_dns_and_api_servers_and_nothing_reaches_it() {
    for settings in every_agent() {
        let documents = settings.documents();
        let policy = documents.iter().find(|it| it["kind"] == "NetworkPolicy");
        if settings.detection == agent::Detection::Events {
            assert_eq!(policy, None);
            continue;
        }
        let policy = policy.expect("a policy");
        assert_eq!(policy["metadata"]["namespace"], "5spot-reclaim-agent");
        let pods = &settings.daemon_set()["spec"]["template"]["metadata"]["labels"];
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], *pods);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(policy["spec"].get("ingress"), None);
        let egress = policy["spec"]["egress"].as_array().unwrap();
        let ports: Vec<u64> = egress
            .iter()
            .flat_map(|rule| rule["ports"].as_array().unwrap())
            .map(|port| port["port"].as_u64().unwrap())
            .collect();
        assert_eq!(ports, [53, 53, 443, 6443, 30443]);
    }
}

/// Its one thread never uses more than one CPU: a lower limit would throttle it, and delay a
/// reclaim.
#[test]
fn the_agent_is_limited_to_what_its_one_thread_can_use() {
    for settings in every_agent() {
        let resources = &agent_pod(&settings)["containers"][0]["resources"];
        assert_eq!(resources["limits"]["cpu"], "1");
        assert_eq!(resources["limits"]["ephemeral-storage"], "1Gi");
        assert_eq!(resources["requests"]["ephemeral-storage"], "64Mi");
    }
}

#[test]
fn the_agent_gains_no_privileges_and_its_system_calls_are_filtered() {
    for settings in every_agent() {
        let pod = agent_pod(&settings);
        let container = &pod["containers"][0]["securityContext"];
        assert_eq!(container["allowPrivilegeEscalation"], false);
        assert_eq!(container["privileged"], false);
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
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
fn the_agent_sees_only_the_parts_of_the_host_that_its_signals_need_and_writes_to_none() {
    let load = agent::Signal::Load {
        above: "2".to_owned(),
        time: "5m".to_owned(),
    };
    for (signals, paths) in [
        (vec![], vec!["/etc/machine-id"]),
        (
            vec![agent::Signal::LoginSessions("local".to_owned())],
            vec!["/etc/machine-id", "/run/systemd"],
        ),
        (
            vec![
                agent::Signal::SessionAway("locked".to_owned()),
                agent::Signal::LoginSessions("local".to_owned()),
            ],
            vec!["/etc/machine-id", "/run/systemd", "/run/dbus"],
        ),
        (vec![load], vec!["/etc/machine-id", "/sys/fs/cgroup"]),
    ] {
        let pod = agent_pod(&agent::Settings {
            signals: signals.into_iter().collect(),
            ..agent::Settings::default()
        });
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let mounted: Vec<&str> = mounts
            .iter()
            .map(|mount| mount["mountPath"].as_str().unwrap())
            .collect();
        assert_eq!(mounted, paths);
        assert!(mounts.iter().all(|mount| mount["readOnly"] == true));
        let volumes = pod["volumes"].as_array().unwrap();
        let hosts = volumes
            .iter()
            .map(|of| of["hostPath"]["path"].as_str().unwrap());
        assert_eq!(hosts.collect::<Vec<_>>(), paths);
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

#[test]
fn a_host_has_rights_on_named_objects_alone_and_shares_no_object_with_another_host() {
    for part in [Part::Both, Part::Management, Part::Workload] {
        let host = Host {
            namespace: "team-a".to_owned(),
            machine: "desk-042".to_owned(),
            node: "desk-042.example".to_owned(),
            part,
        };
        let documents = host.documents();
        let shared = |it: &&Value| {
            let name = it["metadata"]["name"].as_str().unwrap();
            !name.ends_with("-desk-042") && !name.ends_with(":desk-042")
        };
        assert_eq!(documents.iter().find(shared), None);
        let rules = documents.iter().filter_map(|it| it["rules"].as_array());
        let rules: Vec<&Value> = rules.flatten().collect();
        for rule in &rules {
            assert_eq!(rule["resourceNames"].as_array().unwrap().len(), 1, "{rule}");
        }
        let of = |kind: &str| rules.iter().any(|rule| rule["resources"] == json!([kind]));
        assert_eq!(of("scheduledmachines"), part != Part::Workload);
        assert_eq!(of("nodes"), part != Part::Management);
        assert_eq!(of("configmaps"), part != Part::Management);
    }
}

#[test]
fn the_bundle_of_the_agent_has_the_policy_that_bounds_every_host() {
    let documents = agent::Settings::default().documents();
    for object in agent::host::policy() {
        assert!(documents.contains(&object), "{object}");
    }
}
