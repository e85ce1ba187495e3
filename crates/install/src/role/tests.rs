use std::collections::BTreeSet;

use serde_json::Value;

use super::{Reach, Rights, workload};
use crate::permission::{PERMISSIONS, PROVIDER, Scope};
use crate::provider::{self, PROVIDERS};

/// Group, resource and verb of everything that the roles among `documents` allow.
fn allowed(documents: &[Value]) -> BTreeSet<(String, String, String)> {
    let words = |value: &Value| -> Vec<String> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    let mut all = BTreeSet::new();
    let rules = documents.iter().filter_map(|it| it["rules"].as_array());
    for rule in rules.flatten() {
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for verb in words(&rule["verbs"]) {
                    all.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    all
}

/// The same of the table, a provider's resources put in.
fn table(
    scopes: &[Scope],
    providers: &[&provider::Provider],
) -> BTreeSet<(String, String, String)> {
    let mut all = BTreeSet::new();
    for row in PERMISSIONS.iter().filter(|row| scopes.contains(&row.scope)) {
        let resources: Vec<(&str, &str)> = if row.resource == PROVIDER {
            providers
                .iter()
                .flat_map(|it| it.resources)
                .copied()
                .collect()
        } else {
            vec![(row.group, row.resource)]
        };
        for (group, resource) in resources {
            let verbs = row.verbs.iter();
            all.extend(
                verbs.map(|verb| {
                    (group.to_owned(), resource.to_owned(), (*verb).to_owned())
                }),
            );
        }
    }
    all
}

fn names(documents: &[Value], kind: &str) -> Vec<String> {
    let of_kind = documents.iter().filter(|it| it["kind"] == kind);
    of_kind
        .map(|it| {
            let text =
                |pointer: &str| it.pointer(pointer).and_then(Value::as_str).unwrap_or("");
            format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
        })
        .collect()
}

fn only(namespaces: &[&str]) -> Reach {
    Reach::Only(namespaces.iter().map(|it| (*it).to_owned()).collect())
}

#[test]
fn the_roles_allow_the_table_and_nothing_else() {
    let rights = Rights {
        providers: PROVIDERS.iter().collect(),
        kubeconfigs: Reach::Everywhere,
        is_workload_cluster: true,
        ..Rights::default()
    };
    let mut documents = rights.management();
    documents.extend(rights.kubeconfigs());
    let scopes = [
        Scope::Management,
        Scope::ManagementWide,
        Scope::Home,
        Scope::Workload,
    ];
    let providers: Vec<_> = PROVIDERS.iter().collect();
    assert_eq!(allowed(&documents), table(&scopes, &providers));
}

#[test]
fn secrets_are_read_nowhere_unless_a_namespace_is_given() {
    let rights = Rights::default();
    assert_eq!(rights.kubeconfigs(), Vec::<Value>::new());
    let is_secret = |(_, resource, _): &(String, String, String)| resource == "secrets";
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
fn a_confined_operator_is_bound_cluster_wide_to_definitions_alone() {
    let rights = Rights {
        reach: only(&["a"]),
        ..Rights::default()
    };
    let documents = rights.management();
    assert_eq!(
        names(&documents, "ClusterRoleBinding"),
        ["/5spot-controller-definitions"]
    );
    assert_eq!(
        names(&documents, "RoleBinding"),
        [
            "a/5spot-controller",
            "a/5spot-controller-k0smotron",
            "a/5spot-controller-providers",
            "5spot-system/5spot-controller"
        ]
    );
}

#[test]
fn nobody_is_bound_but_the_operator_in_its_namespace() {
    let rights = Rights {
        home: "elsewhere".to_owned(),
        kubeconfigs: Reach::Everywhere,
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
fn a_workload_cluster_binds_its_role_to_the_user_of_the_kubeconfig() {
    let documents = workload("jane");
    assert_eq!(allowed(&documents), table(&[Scope::Workload], &[]));
    assert_eq!(documents[1]["subjects"][0]["name"], "jane");
    assert_eq!(
        documents[1]["roleRef"]["name"],
        documents[0]["metadata"]["name"]
    );
}
