//! Checks the shipped manifests rule by rule against the hardening guides: the restricted Pod
//! Security Standard, the Kubernetes guide of NSA and CISA, and section 5 of the CIS benchmark.
//! Each test lists the violations of its rule.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod node;
mod webhook_rights;

use std::collections::BTreeSet;

use fivespot_install::capacity_target::CapacityTarget;
use fivespot_install::controller::Settings;
use fivespot_install::{file, provider, role, webhook};
use serde_json::{Value, json};

/// Kinds of targets, with which capacities have a controller of their own.
fn targets() -> BTreeSet<CapacityTarget> {
    let kinds = ["deployments.apps/scale", "resourcequotas/template"];
    kinds.iter().map(|kind| kind.parse().unwrap()).collect()
}

/// Every document of `install.yaml` and of the webhook.
fn documents() -> Vec<Value> {
    let settings = Settings {
        rights: role::Rights {
            capacity_targets: targets(),
            ..role::Rights::default()
        },
        ..Settings::default()
    };
    let mut all: Vec<Value> = settings.namespace().into_iter().collect();
    all.extend(settings.rights.management());
    all.extend(settings.workload());
    all.extend(webhook::Settings::default().documents());
    all
}

/// The roles of every provider, with all optional rights.
fn widest_roles() -> Vec<Value> {
    let rights = role::Rights {
        providers: provider::PROVIDERS.iter().collect(),
        kubeconfigs: role::NamespaceScope::All,
        is_workload_cluster: true,
        capacity_targets: targets(),
        ..role::Rights::default()
    };
    let mut all = rights.management();
    all.extend(rights.kubeconfigs());
    all.extend(role::workload("someone"));
    all.extend(webhook::Settings::default().roles());
    all
}

fn of_kind(kind: &str) -> Vec<Value> {
    let found: Vec<Value> = documents()
        .into_iter()
        .filter(|it| it["kind"] == kind)
        .collect();
    assert!(!found.is_empty(), "no {kind}");
    found
}

fn pods() -> Vec<Value> {
    let deployments = of_kind("Deployment");
    deployments
        .iter()
        .map(|it| it["spec"]["template"].clone())
        .collect()
}

fn containers() -> Vec<Value> {
    let lists = pods()
        .into_iter()
        .map(|pod| pod["spec"]["containers"].clone());
    let all: Vec<Value> = lists
        .flat_map(|list| list.as_array().cloned().unwrap_or_default())
        .collect();
    assert!(!all.is_empty(), "no container");
    all
}

fn rules() -> Vec<Value> {
    let lists = widest_roles().into_iter().map(|it| it["rules"].clone());
    let all: Vec<Value> = lists
        .flat_map(|list| list.as_array().cloned().unwrap_or_default())
        .collect();
    assert!(!all.is_empty(), "no rule");
    all
}

/// Whether any of `lists` in `rule` has one of `words`.
fn has_any(rule: &Value, lists: &[&str], words: &[&str]) -> bool {
    lists.iter().any(|list| {
        let entries = rule[*list].as_array().cloned().unwrap_or_default();
        let mut entries = entries.iter().filter_map(Value::as_str);
        entries.any(|entry| words.contains(&entry))
    })
}

/// Fails with the violations of the rule.
fn assert_none(violations: Vec<Value>) {
    assert_eq!(violations, Vec::<Value>::new());
}

fn pods_where(is_broken: impl Fn(&Value) -> bool) {
    assert_none(
        pods()
            .into_iter()
            .filter(|it| is_broken(&it["spec"]))
            .collect(),
    );
}

fn containers_where(is_broken: impl Fn(&Value) -> bool) {
    assert_none(containers().into_iter().filter(is_broken).collect());
}

fn rules_where(is_broken: impl Fn(&Value) -> bool) {
    assert_none(rules().into_iter().filter(is_broken).collect());
}

#[test]
fn no_pod_shares_namespaces_or_volumes_with_its_node() {
    let shared = ["hostNetwork", "hostPID", "hostIPC", "volumes"];
    pods_where(|pod| shared.iter().any(|field| pod.get(field).is_some()));
    containers_where(|it| it["ports"].to_string().contains("hostPort"));
}

#[test]
fn no_process_runs_as_root() {
    pods_where(|pod| {
        let context = &pod["securityContext"];
        context["runAsNonRoot"] != true
            || context["runAsUser"].as_u64().is_none_or(|it| it == 0)
            || context["runAsGroup"].as_u64().is_none_or(|it| it == 0)
    });
}

#[test]
fn no_process_gains_privileges() {
    containers_where(|it| {
        let context = &it["securityContext"];
        context["allowPrivilegeEscalation"] != false || context["privileged"] != false
    });
}

#[test]
fn every_capability_is_dropped_and_none_added() {
    containers_where(|it| {
        it["securityContext"]["capabilities"] != json!({"drop": ["ALL"]})
    });
}

#[test]
fn system_calls_are_filtered() {
    pods_where(|pod| {
        pod["securityContext"]["seccompProfile"]["type"] != "RuntimeDefault"
    });
}

#[test]
fn file_systems_are_read_only() {
    containers_where(|it| it["securityContext"]["readOnlyRootFilesystem"] != true);
}

#[test]
fn resources_are_requested_and_limited() {
    containers_where(|it| {
        ["requests", "limits"].iter().any(|which| {
            let amounts = &it["resources"][*which];
            ["cpu", "memory", "ephemeral-storage"]
                .iter()
                .any(|it| amounts[*it].is_null())
        })
    });
}

#[test]
fn liveness_and_readiness_probes_differ() {
    containers_where(|it| {
        let path = |probe: &str| it[probe]["httpGet"]["path"].clone();
        path("livenessProbe") != "/healthz" || path("readinessProbe") != "/readyz"
    });
}

#[test]
fn images_have_a_version() {
    containers_where(|it| {
        let image = it["image"].as_str().unwrap_or_default();
        let (_, tag) = image.split_once(':').unwrap_or_default();
        tag.is_empty() || tag == "latest"
    });
}

#[test]
fn no_container_has_a_secret() {
    containers_where(|it| {
        it["env"].to_string().contains("secretKeyRef") || it.get("envFrom").is_some()
    });
}

#[test]
fn tokens_are_mounted_only_in_pods_that_access_the_api() {
    let accounts = of_kind("ServiceAccount");
    let open = accounts
        .into_iter()
        .filter(|it| it["automountServiceAccountToken"] != false);
    assert_none(open.collect());
    pods_where(|pod| {
        pod["automountServiceAccountToken"] != true
            || ![
                "5spot-controller",
                "5spot-controller-capacity",
                "5spot-webhook",
            ]
            .iter()
            .any(|it| pod["serviceAccountName"] == *it)
    });
}

#[test]
fn the_namespace_admits_only_restricted_pods() {
    for namespace in of_kind("Namespace") {
        let level =
            &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
        assert_eq!(level, "restricted");
    }
}

#[test]
fn nothing_is_in_the_default_namespace() {
    let lost = documents()
        .into_iter()
        .filter(|it| it["metadata"]["namespace"] == "default")
        .collect();
    assert_none(lost);
}

#[test]
fn traffic_is_denied_unless_it_is_allowed() {
    let policies = of_kind("NetworkPolicy");
    let denies_all = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    assert!(policies.iter().any(|it| it["spec"] == denies_all));
    let without_ports = policies
        .iter()
        .flat_map(|it| [&it["spec"]["ingress"], &it["spec"]["egress"]])
        .filter_map(Value::as_array)
        .flatten()
        .filter(|rule| rule["ports"].as_array().is_none_or(Vec::is_empty))
        .cloned()
        .collect();
    assert_none(without_ports);
}

#[test]
fn no_pod_may_reach_the_port_of_the_probes() {
    let opened = |policies: Vec<Value>| -> Vec<Value> {
        let rules = policies
            .iter()
            .filter_map(|it| it["spec"]["ingress"].as_array())
            .flatten();
        rules
            .filter(|rule| rule["ports"].to_string().contains("8081"))
            .cloned()
            .collect()
    };
    assert_none(opened(of_kind("NetworkPolicy")));
    assert_none(opened(policies_of_the_chart()));
}

#[test]
fn a_role_for_the_kubeconfig_of_a_cluster_names_its_secret() {
    let rights = role::Rights {
        clusters: [("team-a".to_owned(), "prod".to_owned())].into(),
        ..role::Rights::default()
    };
    let roles = rights.kubeconfigs();
    let rules: Vec<&Value> = roles
        .iter()
        .filter_map(|it| it["rules"].as_array())
        .flatten()
        .collect();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["resourceNames"], json!(["prod-kubeconfig"]));
}

/// The network policies in the chart.
fn policies_of_the_chart() -> Vec<Value> {
    let files = file::chart().unwrap();
    let documents = files.iter().flat_map(|it| it.text.split("---\n"));
    documents
        .filter(|it| it.contains("\nkind: NetworkPolicy\n"))
        .map(|it| {
            let is_action = |line: &&str| line.trim_start().starts_with("{{");
            let lines: Vec<&str> = it.lines().filter(|line| !is_action(line)).collect();
            let text = lines.join("\n");
            let text = text.replace("{{ include \"5spot.controller\" $ }}", "operator");
            serde_saphyr::from_str(&text.replace("{{ . }}", "443")).unwrap()
        })
        .collect()
}

#[test]
fn in_a_shared_namespace_only_the_operators_pods_are_restricted() {
    let settings = Settings {
        rights: role::Rights {
            namespace: "shared".to_owned(),
            ..role::Rights::default()
        },
        ..Settings::default()
    };
    for policies in [settings.network_policies(), policies_of_the_chart()] {
        assert!(!policies.is_empty());
        let selects_all = |it: &Value| {
            let labels = it["spec"]["podSelector"]["matchLabels"].as_object();
            labels.is_none_or(serde_json::Map::is_empty)
        };
        assert_none(policies.into_iter().filter(selects_all).collect());
    }
}

#[test]
fn a_namespace_that_may_be_shared_is_not_in_the_manifests() {
    let settings = Settings {
        rights: role::Rights {
            namespace: "shared".to_owned(),
            ..role::Rights::default()
        },
        ..Settings::default()
    };
    for file in file::manifests(&settings).unwrap() {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&file.text).unwrap_or_default();
        let is_it =
            |it: &Value| it["kind"] == "Namespace" && it["metadata"]["name"] == "shared";
        assert!(!documents.iter().any(is_it), "{}", file.path);
    }
}

#[test]
fn the_policy_about_annotations_admits_the_operator_in_its_namespace() {
    let settings = Settings {
        rights: role::Rights {
            namespace: "elsewhere".to_owned(),
            ..role::Rights::default()
        },
        agent_image: "registry.example/agent:1".to_owned(),
        ..Settings::default()
    };
    let files = file::manifests(&settings).unwrap();
    let agent = files.iter().find(|it| it.path == "agent/agent.yaml");
    let text = &agent.unwrap().text;
    assert!(text.contains("system:serviceaccount:elsewhere:5spot-controller"));
    assert!(text.contains("image: registry.example/agent:1\n"));
}

#[test]
fn each_workload_has_the_image_of_its_program() {
    let settings = Settings {
        image: "registry.example/operator:1".to_owned(),
        agent_image: "registry.example/agent:1".to_owned(),
        webhook_image: "registry.example/webhook:1".to_owned(),
        ..Settings::default()
    };
    let files = file::manifests(&settings).unwrap();
    for (path, image) in [
        ("controller/controller.yaml", &settings.image),
        ("agent/agent.yaml", &settings.agent_image),
        ("webhook/webhook.yaml", &settings.webhook_image),
    ] {
        let text = &files.iter().find(|it| it.path == path).unwrap().text;
        assert!(text.contains(&format!("image: {image}\n")), "{path}");
    }
}

#[test]
fn a_disruption_keeps_a_replica_and_allows_node_drains() {
    let replicas = of_kind("Deployment")[0]["spec"]["replicas"]
        .as_u64()
        .unwrap();
    for budget in of_kind("PodDisruptionBudget") {
        let gone = budget["spec"]["maxUnavailable"].as_u64().unwrap();
        assert!(0 < gone && gone < replicas);
    }
}

#[test]
fn selectors_select_the_operator_s_pods() {
    for pod in pods() {
        let labels = pod["metadata"]["labels"].clone();
        let is_picked = |kind: &str, pointer: &str| {
            let found = of_kind(kind);
            let mut selectors = found.iter().filter_map(|it| it.pointer(pointer));
            assert!(selectors.any(|it| *it == labels), "{kind} {labels}");
        };
        is_picked("Deployment", "/spec/selector/matchLabels");
        is_picked("Service", "/spec/selector");
        is_picked("PodDisruptionBudget", "/spec/selector/matchLabels");
        is_picked("NetworkPolicy", "/spec/podSelector/matchLabels");
    }
}

#[test]
fn replicas_are_spread_and_elect_a_leader() {
    pods_where(|pod| {
        pod["topologySpreadConstraints"]
            .as_array()
            .is_none_or(Vec::is_empty)
    });
    containers_where(|it| {
        it["name"] == "controller"
            && !has_any(it, &["args"], &["--enable-leader-election"])
    });
}

#[test]
fn no_role_has_a_wildcard() {
    rules_where(|it| has_any(it, &["apiGroups", "resources", "verbs"], &["*"]));
    rules_where(|it| it.get("nonResourceURLs").is_some());
}

#[test]
fn no_role_allows_privilege_escalation() {
    rules_where(|it| has_any(it, &["verbs"], &["escalate", "bind", "impersonate"]));
    rules_where(|it| has_any(it, &["apiGroups"], &["rbac.authorization.k8s.io"]));
    let ways_in = [
        "pods/exec",
        "pods/attach",
        "pods/portforward",
        "pods/ephemeralcontainers",
        "nodes/proxy",
        "serviceaccounts/token",
    ];
    rules_where(|it| has_any(it, &["resources"], &ways_in));
}

#[test]
fn no_role_creates_pods_or_deletes_collections() {
    rules_where(|it| {
        has_any(it, &["resources"], &["pods"]) && has_any(it, &["verbs"], &["create"])
    });
    rules_where(|it| has_any(it, &["verbs"], &["deletecollection"]));
}

#[test]
fn secrets_are_never_written_and_not_read_by_default() {
    let verbs = ["create", "update", "patch", "delete"];
    // The webhook stores its certificate in one Secret, which it cannot create.
    let own = json!(["5spot-webhook"]);
    rules_where(|it| {
        has_any(it, &["resources"], &["secrets"])
            && has_any(it, &["verbs"], &verbs)
            && (it["resourceNames"] != own || has_any(it, &["verbs"], &["create"]))
    });
    let text = file::install(&Settings::default()).unwrap().text;
    assert!(!text.contains("- secrets\n"));
}

#[test]
fn no_cluster_role_may_write_config_maps() {
    let verbs = ["create", "update", "patch", "delete"];
    let is_broken = |role: &Value| {
        let mut rules = role["rules"].as_array().into_iter().flatten();
        role["kind"] == "ClusterRole"
            && rules.any(|it| {
                has_any(it, &["resources"], &["configmaps"])
                    && has_any(it, &["verbs"], &verbs)
            })
    };
    assert_none(widest_roles().into_iter().filter(is_broken).collect());
}

#[test]
fn the_operator_cannot_write_what_its_policy_allows() {
    let parameters = fivespot_api::vap::params::allowlist();
    let home = &parameters["metadata"]["namespace"];
    assert_eq!(
        fivespot_api::vap::params::namespace()["metadata"]["name"],
        *home
    );
    let inside = widest_roles()
        .into_iter()
        .filter(|it| it["metadata"]["namespace"] == *home);
    assert_none(inside.collect());
}

#[test]
fn no_binding_names_anonymous_or_all_users() {
    let broad = [
        "system:anonymous",
        "system:unauthenticated",
        "system:authenticated",
    ];
    let bound = widest_roles()
        .into_iter()
        .filter(|it| {
            broad
                .iter()
                .any(|name| it["subjects"].to_string().contains(name))
        })
        .collect();
    assert_none(bound);
}

#[test]
fn manifests_of_operator_and_agent_agree_in_one_cluster() {
    let agent = fivespot_install::agent::Settings::default().documents();
    let identity = |it: &Value| {
        let meta = &it["metadata"];
        (
            it["kind"].clone(),
            meta["namespace"].clone(),
            meta["name"].clone(),
        )
    };
    let mut shared = 0;
    for ours in documents() {
        for theirs in agent.iter().filter(|it| identity(it) == identity(&ours)) {
            assert_eq!(*theirs, ours, "the one applied last would decide");
            shared += 1;
        }
    }
    assert_eq!(shared, 1, "the namespace of the operator");
    // Pods with access to their host are not in it.
    let daemon_set = agent.iter().find(|it| it["kind"] == "DaemonSet").unwrap();
    assert_eq!(daemon_set["metadata"]["namespace"], "5spot-reclaim-agent");
    let home = agent.iter().find(|it| {
        it["kind"] == "Namespace" && it["metadata"]["name"] == "5spot-reclaim-agent"
    });
    let level = "pod-security.kubernetes.io/enforce";
    assert_eq!(home.unwrap()["metadata"]["labels"][level], "privileged");
}
