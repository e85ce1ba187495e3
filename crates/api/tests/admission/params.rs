//! The policy with an allowlist of providers as its parameters.

use std::sync::Arc;

use fivespot_api::rules::Rule;
use fivespot_api::{name, vap};
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::{Binding, ParamKind, Policies, Policy, Request, Resolver};
use serde_json::{Value, json};

use crate::admission::evaluator::KIND;

/// A cluster with at most one ConfigMap.
struct Cluster(Option<Value>);

impl Resolver for Cluster {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        (kind.kind == "ConfigMap").then_some(true)
    }

    fn param(&self, _: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let found = self.0.clone();
        found.filter(|it| {
            it["metadata"]["namespace"] == namespace && it["metadata"]["name"] == name
        })
    }
}

/// Why the example of a rule is rejected; empty if it is admitted.
fn denial_of_example(params: Option<Value>, (rule, example): (&str, &str)) -> String {
    denial_message(params, &Rule::find(rule).unwrap().example(example))
}

fn denial_message(params: Option<Value>, object: &Value) -> String {
    let policy = Policy::compile(&vap::params::policy(), KubeVersion::default()).unwrap();
    let binding = Binding::compile(&vap::params::binding()).unwrap();
    let policies = Policies::new([Arc::new(policy)], [Arc::new(binding)]);
    let request = Request::create(KIND, name::PLURAL, object);
    let decision = policies.decide(&request, &Cluster(params));
    let message = decision.denied().map(|it| it.message.clone());
    let message = message.unwrap_or_default();
    let why = message.split_once("denied request: ");
    why.map_or(message.clone(), |(_, why)| why.to_owned())
}

fn allowing(bootstrap: &str) -> Value {
    let mut list = vap::params::allowlist();
    list["data"]["bootstrapGroups"] = json!(bootstrap);
    list
}

const CLUSTER_API: (&str, &str) = ("SM009", "bootstrap.cluster.x-k8s.io/v1beta1");
const K0SMOTRON: (&str, &str) = ("SM009", "k0smotron.io/v1beta1");

#[test]
fn the_shipped_allowlist_allows_what_the_policy_without_one_allows() {
    for id in ["SM009", "SM012"] {
        let rule = Rule::find(id).unwrap();
        for example in rule.requirement.examples.accepts() {
            let message =
                denial_of_example(Some(vap::params::allowlist()), (id, example));
            assert_eq!(message, "", "{id} {example}");
        }
        for example in rule.requirement.examples.rejects() {
            let message =
                denial_of_example(Some(vap::params::allowlist()), (id, example));
            assert!(
                message.contains("must be from an allowed group"),
                "{id} {example}"
            );
        }
    }
}

#[test]
fn an_allowlist_of_one_group_rejects_other_groups_with_a_message() {
    assert_eq!(
        denial_of_example(Some(allowing(" k0smotron.io ,")), K0SMOTRON),
        ""
    );
    assert_eq!(
        denial_of_example(Some(allowing("k0smotron.io")), CLUSTER_API),
        "spec.bootstrapSpec.apiVersion: must be from an allowed group: k0smotron.io"
    );
    // A group that only starts with an allowed group is a different one.
    let message = denial_of_example(Some(allowing("k0smotron")), K0SMOTRON);
    assert!(
        message.contains("must be from an allowed group"),
        "{message}"
    );
}

#[test]
fn without_an_allowlist_nothing_is_admitted() {
    let message = denial_of_example(None, K0SMOTRON);
    assert!(
        message.contains("no params found for policy binding"),
        "{message}"
    );
    let mut empty = vap::params::allowlist();
    empty["data"] = Value::Null;
    let message = denial_of_example(Some(empty), K0SMOTRON);
    assert!(
        message.contains("must be from an allowed group"),
        "{message}"
    );
}

/// The parameters with one more list.
fn with(key: &str, list: &str) -> Value {
    let mut params = vap::params::allowlist();
    params["data"][key] = json!(list);
    params
}

fn object() -> Value {
    let (rule, example) = K0SMOTRON;
    Rule::find(rule).unwrap().example(example)
}

#[test]
fn kinds_are_bounded_where_a_list_of_them_is_given() {
    let mut object = object();
    for (field, key) in [
        ("bootstrapSpec", "bootstrapKinds"),
        ("infrastructureSpec", "infrastructureKinds"),
    ] {
        for kind in ["JoinTokenRequest", "MachinePool", "K0sControllerConfig"] {
            object["spec"][field]["kind"] = json!(kind);
            assert_eq!(
                denial_message(Some(vap::params::allowlist()), &object),
                "",
                "{kind}"
            );
            let list = "K0sWorkerConfig, RemoteMachine";
            assert_eq!(
                denial_message(Some(with(key, list)), &object),
                format!("spec.{field}.kind: must be an allowed kind: {list}")
            );
            assert_eq!(
                denial_message(Some(with(key, &format!("a, {kind} ,b"))), &object),
                ""
            );
        }
    }
}

#[test]
fn labels_are_bounded_where_a_list_of_prefixes_is_given() {
    let mut object = object();
    let labels = |it: &Value| {
        denial_message(Some(with("labelPrefixes", "example.com/, team")), it)
    };
    assert_eq!(labels(&object), "", "there are none");
    object["spec"]["machineTemplate"]["labels"] =
        json!({"example.com/a": "b", "team": "c"});
    assert_eq!(labels(&object), "");
    for key in [
        "node-role.kubernetes.io/ingress",
        "node-restriction.kubernetes.io/tenant",
    ] {
        object["spec"]["machineTemplate"]["labels"] = json!({key: ""});
        assert_eq!(
            denial_message(Some(vap::params::allowlist()), &object),
            "",
            "{key}"
        );
        assert_eq!(
            labels(&object),
            "spec.machineTemplate.labels: keys must begin with an allowed prefix: \
             example.com/, team"
        );
    }
    assert_ne!(denial_message(Some(with("labelPrefixes", "")), &object), "");
}
