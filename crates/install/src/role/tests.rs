use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{NamespaceScope, Rights, workload};
use crate::permission::{PERMISSIONS, PROVIDER, Scope};
use crate::provider::{self, PROVIDERS};

/// Namespace, group, resource and verb. The namespace is empty for a right in every namespace.
type Right = [String; 4];

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// Everything that the bindings in `documents` allow, according to the roles in it.
fn allowed(documents: &[Value]) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for binding in documents.iter().filter(|it| it.get("roleRef").is_some()) {
        let namespace = text(binding, "/metadata/namespace");
        let kind = text(binding, "/roleRef/kind");
        let is_bound = |it: &&Value| {
            text(it, "/kind") == kind
                && text(it, "/metadata/name") == text(binding, "/roleRef/name")
                && (kind == "ClusterRole" || text(it, "/metadata/namespace") == namespace)
        };
        let role = documents.iter().find(is_bound).unwrap();
        for rule in role["rules"].as_array().into_iter().flatten() {
            all.extend(rights(namespace, rule));
        }
    }
    all
}

/// What one rule allows in a namespace.
fn rights(namespace: &str, rule: &Value) -> Vec<Right> {
    let words = |list: &str| -> Vec<String> {
        serde_json::from_value(rule[list].clone()).unwrap_or_default()
    };
    let mut all = Vec::new();
    for group in words("apiGroups") {
        for resource in words("resources") {
            for verb in words("verbs") {
                all.push([namespace.to_owned(), group.clone(), resource.clone(), verb]);
            }
        }
    }
    all
}

/// The same according to the table, with the providers' resources, for an operator in the
/// namespace `home`.
fn table(
    home: &str,
    scopes: &[Scope],
    providers: &[&provider::Provider],
) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for row in PERMISSIONS.iter().filter(|row| scopes.contains(&row.scope)) {
        let namespace = match row.scope {
            Scope::Management
            | Scope::Capacity
            | Scope::ManagementClusterWide
            | Scope::Classes
            | Scope::Workload
            | Scope::WebhookClusterWide
            | Scope::WebhookQuestions => "",
            Scope::OperatorNamespace
            | Scope::WebhookNamespace
            | Scope::WebhookTargetKinds => home,
            Scope::WorkloadSystem => "5spot-system",
        };
        let resources: Vec<(&str, &str)> = if row.resource == PROVIDER {
            providers
                .iter()
                .flat_map(|it| it.resources)
                .copied()
                .collect()
        } else {
            vec![(&row.group, &row.resource)]
        };
        for (group, resource) in resources {
            let verbs = row.verbs.iter();
            all.extend(
                verbs.map(|verb| [namespace, group, resource, verb].map(str::to_owned)),
            );
        }
    }
    all
}

fn names(documents: &[Value], kind: &str) -> Vec<String> {
    let of_kind = documents.iter().filter(|it| it["kind"] == kind);
    of_kind
        .map(|it| {
            let namespace = text(it, "/metadata/namespace");
            format!("{namespace}/{}", text(it, "/metadata/name"))
        })
        .collect()
}

fn only(namespaces: &[&str]) -> NamespaceScope {
    NamespaceScope::Only(namespaces.iter().map(|it| (*it).to_owned()).collect())
}

#[test]
fn the_roles_allow_the_table_and_nothing_else() {
    let rights = Rights {
        namespace: "elsewhere".to_owned(),
        providers: PROVIDERS.iter().collect(),
        kubeconfigs: NamespaceScope::All,
        is_workload_cluster: true,
        ..Rights::default()
    };
    let mut documents = rights.management();
    documents.extend(rights.kubeconfigs());
    let scopes = [
        Scope::Management,
        Scope::ManagementClusterWide,
        Scope::Classes,
        Scope::OperatorNamespace,
        Scope::Workload,
        Scope::WorkloadSystem,
    ];
    let providers: Vec<_> = PROVIDERS.iter().collect();
    assert_eq!(allowed(&documents), table("elsewhere", &scopes, &providers));
}

#[test]
fn secrets_can_be_read_only_in_given_namespaces() {
    let rights = Rights::default();
    assert_eq!(rights.kubeconfigs(), Vec::<Value>::new());
    let is_secret = |[_, _, resource, _]: &Right| resource == "secrets";
    assert!(!allowed(&rights.management()).iter().any(is_secret));

    let rights = Rights {
        kubeconfigs: only(&["a", "b"]),
        ..Rights::default()
    };
    let documents = rights.kubeconfigs();
    let expected = [
        "a/5spot-controller-kubeconfigs",
        "b/5spot-controller-kubeconfigs",
    ];
    assert_eq!(names(&documents, "Role"), expected);
    assert_eq!(names(&documents, "RoleBinding"), expected);
    assert_eq!(documents.len(), 4);
}

#[test]
fn a_confined_operator_is_bound_cluster_wide_only_for_crds_and_classes() {
    let rights = Rights {
        namespaces: only(&["a"]),
        ..Rights::default()
    };
    let documents = rights.management();
    assert_eq!(
        names(&documents, "ClusterRoleBinding"),
        ["/5spot-controller-definitions", "/5spot-controller-classes"]
    );
    assert_eq!(
        names(&documents, "RoleBinding"),
        [
            "a/5spot-controller",
            "a/5spot-controller-k0smotron",
            "a/5spot-controller-providers",
            "5spot-system/5spot-controller-leases"
        ]
    );
}

#[test]
fn only_the_service_account_of_the_operator_is_bound() {
    let rights = Rights {
        namespace: "elsewhere".to_owned(),
        kubeconfigs: NamespaceScope::All,
        is_workload_cluster: true,
        ..Rights::default()
    };
    let mut documents = rights.management();
    documents.extend(rights.kubeconfigs());
    let bindings = documents.iter().filter(|it| it.get("roleRef").is_some());
    for binding in bindings {
        let subjects = serde_json::json!([{
            "kind": "ServiceAccount",
            "name": "5spot-controller",
            "namespace": "elsewhere",
        }]);
        assert_eq!(binding["subjects"], subjects, "{binding}");
    }
}

#[test]
fn a_workload_cluster_binds_its_roles_to_the_user_of_the_kubeconfig() {
    let documents = workload("jane");
    let scopes = [Scope::Workload, Scope::WorkloadSystem];
    assert_eq!(allowed(&documents), table("", &scopes, &[]));
    let bindings = documents.iter().filter(|it| it.get("roleRef").is_some());
    let subjects: Vec<&str> = bindings.map(|it| text(it, "/subjects/0/name")).collect();
    assert_eq!(subjects, ["jane", "jane"]);
}

#[test]
fn a_role_for_nodes_comes_after_its_namespace() {
    let elsewhere = Rights {
        namespace: "elsewhere".to_owned(),
        is_workload_cluster: true,
        ..Rights::default()
    };
    for (documents, role) in [
        (workload("jane"), "5spot-controller-workload"),
        (
            elsewhere.management(),
            "5spot-controller-workload.elsewhere",
        ),
    ] {
        let place = |kind: &str, name: &str| {
            let is_it = |it: &Value| {
                text(it, "/kind") == kind && text(it, "/metadata/name") == name
            };
            documents.iter().position(is_it).unwrap()
        };
        let namespace = place("Namespace", "5spot-system");
        assert!(namespace < place("Role", role));
    }
}

#[test]
fn the_roles_do_not_create_the_operators_own_namespace() {
    let at_home = Rights {
        is_workload_cluster: true,
        ..Rights::default()
    };
    assert_eq!(names(&at_home.management(), "Namespace"), [""; 0]);
}

#[test]
fn a_cluster_grants_only_its_kubeconfig_and_no_other_secret() {
    let clusters = [("a", "east"), ("a", "west"), ("b", "east")];
    let rights = Rights {
        clusters: clusters
            .map(|(namespace, cluster)| (namespace.to_owned(), cluster.to_owned()))
            .into(),
        ..Rights::default()
    };
    let documents = rights.kubeconfigs();
    let expected = [
        "a/5spot-controller-east-kubeconfig",
        "a/5spot-controller-west-kubeconfig",
        "b/5spot-controller-east-kubeconfig",
    ];
    assert_eq!(names(&documents, "Role"), expected);
    assert_eq!(names(&documents, "RoleBinding"), expected);
    assert_eq!(names(&documents, "ClusterRole"), [""; 0]);
    let opened: Vec<String> = documents
        .iter()
        .filter_map(|it| it["rules"].as_array())
        .flatten()
        .map(|rule| rule["resourceNames"].to_string())
        .collect();
    assert_eq!(
        opened,
        [
            "[\"east-kubeconfig\"]",
            "[\"west-kubeconfig\"]",
            "[\"east-kubeconfig\"]"
        ]
    );
}

#[test]
fn operators_in_two_namespaces_share_no_role_and_no_binding() {
    let names = |namespace: &str, watched: &str| -> BTreeSet<String> {
        let rights = Rights {
            namespace: namespace.to_owned(),
            namespaces: only(&[watched]),
            kubeconfigs: NamespaceScope::All,
            clusters: [("shared".to_owned(), "prod".to_owned())].into(),
            is_workload_cluster: true,
            ..Rights::default()
        };
        let documents = [rights.management(), rights.kubeconfigs()].concat();
        let own = documents.iter().filter(|it| it["kind"] != "Namespace");
        own.map(|it| {
            let namespace = text(it, "/metadata/namespace");
            let (kind, name) = (text(it, "/kind"), text(it, "/metadata/name"));
            format!("{kind} {namespace}/{name}")
        })
        .collect()
    };
    let of_each = [
        names("5spot-system", "team-a"),
        names("team-b", "team-b"),
        names("ops", "team-c"),
    ];
    let together: BTreeSet<&String> = of_each.iter().flatten().collect();
    let counted: usize = of_each.iter().map(BTreeSet::len).sum();
    assert_eq!(together.len(), counted, "{together:#?}");
}

/// What the bindings in `documents` allow one account.
fn allowed_to(documents: &[Value], account: &str) -> BTreeSet<Right> {
    let is_of_account = |document: &Value| match document["subjects"].as_array() {
        Some(subjects) => subjects.iter().any(|it| it["name"] == account),
        None => true,
    };
    let own = documents.iter().filter(|it| is_of_account(it)).cloned();
    allowed(&own.collect::<Vec<_>>())
}

#[test]
fn with_targets_capacities_and_machines_have_accounts_with_rights_of_their_own() {
    let targets = ["deployments.apps/scale", "resourcequotas/template"];
    let rights = Rights {
        capacity_targets: targets.iter().map(|it| it.parse().unwrap()).collect(),
        schedule_providers: BTreeSet::from(["tariffs".to_owned()]),
        kubeconfigs: NamespaceScope::All,
        ..Rights::default()
    };
    let mut documents = rights.management();
    documents.extend(rights.kubeconfigs());
    let capacity = allowed_to(&documents, "5spot-controller-capacity");
    let scopes = [
        Scope::Capacity,
        Scope::ManagementClusterWide,
        Scope::OperatorNamespace,
    ];
    let mut expected = table("5spot-system", &scopes, &[]);
    let read = ["get", "list", "watch"];
    for (group, resource, verbs) in [
        ("apps", "deployments", &read[..]),
        ("apps", "deployments/scale", &["patch"]),
        (
            "",
            "resourcequotas",
            &["get", "list", "watch", "create", "patch"],
        ),
        ("spotschedules.5spot.finos.org", "tariffs", &read),
    ] {
        let all = verbs.iter();
        expected.extend(all.map(|verb| ["", group, resource, verb].map(str::to_owned)));
    }
    assert_eq!(capacity, expected);
    let operator = allowed_to(&documents, "5spot-controller");
    let of = |resource: &str, verb: &str| {
        let is_it = |it: &&Right| it[2] == resource && it[3] == verb;
        operator.iter().find(is_it).is_some()
    };
    assert!(of("machines", "delete") && of("secrets", "get") && of("tariffs", "list"));
    for resource in ["deployments", "deployments/scale", "resourcequotas"] {
        assert!(!of(resource, "get") && !of(resource, "patch"), "{resource}");
    }
    // It reports which overrides are of a capacity.
    assert!(
        of("scheduledcapacities", "list") && !of("scheduledcapacities/status", "patch")
    );
    let alone = Rights::default().management();
    assert!(
        allowed(&alone)
            .iter()
            .any(|it| it[2] == "scheduledcapacities/status")
    );
}

/// The policy, the binding and the ConfigMap with the kinds of targets.
fn policy_about_targets(rights: &Rights) -> [Value; 3] {
    rights.capacity_policy().try_into().unwrap()
}

#[test]
fn the_policy_about_targets_is_shipped_before_there_is_a_target() {
    let [policy, binding, kinds] = policy_about_targets(&Rights::default());
    assert_eq!(policy["kind"], "ValidatingAdmissionPolicy");
    assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
    assert_eq!(kinds["data"], json!({"clusterScoped": ""}));
    assert_eq!(Rights::default().capacity_kinds()["data"], kinds["data"]);
}

#[test]
fn the_policy_about_targets_is_for_every_namespace() {
    let target = "nodepools.karpenter.sh".parse().unwrap();
    let everywhere = Rights {
        capacity_targets: BTreeSet::from([target]),
        ..Rights::default()
    };
    let confined = Rights {
        namespace: "team-a-5spot".to_owned(),
        namespaces: only(&["team-a"]),
        ..everywhere.clone()
    };
    for rights in [&everywhere, &confined] {
        let [policy, binding, kinds] = policy_about_targets(rights);
        // What is written in a namespace before the operator gets it is served afterwards.
        for selective in [
            &policy["spec"]["matchConstraints"],
            &binding["spec"]["matchResources"],
        ] {
            assert_eq!(selective.get("namespaceSelector"), None);
        }
        assert_eq!(text(&kinds, "/data/NodePool.karpenter.sh"), "nodepools");
        assert_eq!(text(&kinds, "/data/clusterScoped"), "NodePool.karpenter.sh");
        let param = "/spec/paramRef/name";
        assert_eq!(text(&binding, param), text(&kinds, "/metadata/name"));
    }
    assert_eq!(
        text(&policy_about_targets(&confined)[0], "/metadata/name"),
        "5spot-controller-capacity-targets.team-a-5spot"
    );
}
