use super::*;
use crate::resource::Scale;

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    for version in ["v1alpha1", "v1"] {
        let mut widget = Resource::new("example.com", version, "Widget", "widgets");
        widget.subresources = vec![Subresource::Scale(Scale::default())];
        widget.categories = vec!["all".to_owned()];
        registry.insert(widget);
    }
    registry
}

#[test]
fn the_format_is_the_first_accepted_one_that_is_served() {
    let aggregated =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let beta = aggregated.replace("v=v2", "v=v2beta1");
    let future = aggregated.replace("v=v2", "v=v3");
    let rows = [
        (
            format!("{aggregated},{beta},application/json"),
            Form::AggregatedV2,
        ),
        (format!("{beta},application/json"), Form::AggregatedV2Beta1),
        (format!("{future}, {beta}"), Form::AggregatedV2Beta1),
        (format!("application/json, {aggregated}"), Form::Plain),
        (
            "application/vnd.kubernetes.protobuf".to_owned(),
            Form::Plain,
        ),
        (String::new(), Form::Plain),
    ];
    for (accept, form) in rows {
        assert_eq!(Form::accepted(&accept), form, "{accept}");
    }
}

#[test]
fn aggregated_and_legacy_discovery_name_the_same_resources() {
    let registry = registry();
    let whole = apis(&registry, Form::AggregatedV2);
    for group in whole["items"].as_array().unwrap() {
        let name = group["metadata"]["name"].as_str().unwrap();
        for found in group["versions"].as_array().unwrap() {
            let version_name = found["version"].as_str().unwrap();
            let list = version(&registry, name, version_name).unwrap();
            let mut legacy: Vec<_> = list["resources"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect();
            let mut aggregated = Vec::new();
            for entry in found["resources"].as_array().unwrap() {
                let plural = entry["resource"].as_str().unwrap();
                aggregated.push(plural.to_owned());
                for sub in entry["subresources"].as_array().into_iter().flatten() {
                    let sub = sub["subresource"].as_str().unwrap();
                    aggregated.push(format!("{plural}/{sub}"));
                }
            }
            legacy.sort_unstable();
            aggregated.sort_unstable();
            assert_eq!(legacy, aggregated, "{name}/{version_name}");
        }
    }
}

#[test]
fn eviction_is_listed_with_the_kind_of_its_request() {
    let list = version(&registry(), "", "v1").unwrap();
    let eviction = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "pods/eviction")
        .unwrap();
    assert_eq!(
        eviction,
        &json!({"name": "pods/eviction", "singularName": "", "namespaced": true,
            "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]})
    );
}

#[test]
fn an_unserved_group_or_version_is_not_found() {
    let registry = registry();
    assert_eq!(group(&registry, "storagemigration.k8s.io"), None);
    assert_eq!(group(&registry, ""), None);
    assert_eq!(version(&registry, "policy", "v1beta1"), None);
}

#[test]
fn a_group_names_its_preferred_version() {
    let found = group(&registry(), "example.com").unwrap();
    insta::assert_snapshot!(format!("{found:#}"), @r#"
{
  "kind": "APIGroup",
  "apiVersion": "v1",
  "name": "example.com",
  "versions": [
    {
      "groupVersion": "example.com/v1",
      "version": "v1"
    },
    {
      "groupVersion": "example.com/v1alpha1",
      "version": "v1alpha1"
    }
  ],
  "preferredVersion": {
    "groupVersion": "example.com/v1",
    "version": "v1"
  }
}
"#);
}

#[test]
fn the_aggregated_document_describes_pods() {
    let whole = api(&registry(), Form::AggregatedV2, "127.0.0.1:6443");
    let pods = whole["items"][0]["versions"][0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["resource"] == "pods")
        .unwrap();
    insta::assert_snapshot!(format!("{pods:#}"), @r#"
{
  "resource": "pods",
  "responseKind": {
    "group": "",
    "version": "",
    "kind": "Pod"
  },
  "scope": "Namespaced",
  "singularResource": "pod",
  "verbs": [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch"
  ],
  "shortNames": [
    "po"
  ],
  "categories": [
    "all"
  ],
  "subresources": [
    {
      "subresource": "attach",
      "verbs": [
        "create",
        "get"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "PodAttachOptions"
      }
    },
    {
      "subresource": "binding",
      "verbs": [
        "create"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "Binding"
      }
    },
    {
      "subresource": "ephemeralcontainers",
      "verbs": [
        "get",
        "patch",
        "update"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "Pod"
      }
    },
    {
      "subresource": "eviction",
      "verbs": [
        "create"
      ],
      "responseKind": {
        "group": "policy",
        "version": "v1",
        "kind": "Eviction"
      }
    },
    {
      "subresource": "exec",
      "verbs": [
        "create",
        "get"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "PodExecOptions"
      }
    },
    {
      "subresource": "portforward",
      "verbs": [
        "create",
        "get"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "PodPortForwardOptions"
      }
    },
    {
      "subresource": "resize",
      "verbs": [
        "get",
        "patch",
        "update"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "Pod"
      }
    },
    {
      "subresource": "status",
      "verbs": [
        "get",
        "patch",
        "update"
      ],
      "responseKind": {
        "group": "",
        "version": "",
        "kind": "Pod"
      }
    }
  ]
}
"#);
}

/// The hashes are those of a real server.
#[test]
fn the_hash_of_a_kind_is_that_of_the_version_it_is_stored_in() {
    let registry = registry();
    let hash = |group: &str, of: &str, plural: &str| {
        let list = version(&registry, group, of).unwrap();
        let resources = list["resources"].as_array().unwrap();
        let found = resources.iter().find(|it| it["name"] == plural).unwrap();
        found["storageVersionHash"].clone()
    };
    let autoscalers = "horizontalpodautoscalers";
    assert_eq!(hash("", "v1", "pods"), "xPOwRZ+Yhw8=");
    assert_eq!(hash("autoscaling", "v1", autoscalers), "qwQve8ut294=");
    assert_eq!(hash("events.k8s.io", "v1", "events"), "r2yiGXH7wu8=");
    let definitions = "customresourcedefinitions";
    assert_eq!(
        hash("apiextensions.k8s.io", "v1", definitions),
        "jfWCUB31mvA="
    );
    let reviews = "selfsubjectreviews";
    assert_eq!(hash("authentication.k8s.io", "v1", reviews), Value::Null);
}
