//! The example quota of a tenant.

use fivespot_api::RESOURCES;
use kubemu_apiserver::KubeVersion;
use serde_json::{Value, json};

use super::{create_all, documents, example, server};

/// A kind of a namespace without a limit could be created without end, and every object of each kind is work for
/// the operator of all tenants.
#[test]
fn the_quota_counts_every_kind_that_a_tenant_writes() {
    let quota = example("policies/tenant-quota.yaml");
    let counted = quota[0]["spec"]["hard"].as_object().expect("counts");
    for resource in RESOURCES.iter().filter(|it| it.is_namespaced) {
        let key = format!("count/{}.{}", resource.plural, resource.group);
        assert!(counted.contains_key(&key), "{key} is missing");
    }
}

/// Whoever shares a cluster reads on these pages what each kind allows.
#[test]
fn the_pages_about_tenants_name_every_kind() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["SECURITY.md", "docs/how-to/multi-tenancy.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        for resource in &RESOURCES {
            assert!(
                text.contains(resource.kind),
                "{page} does not name {}",
                resource.kind
            );
        }
    }
}

#[tokio::test]
async fn the_quota_of_a_tenant_refuses_the_eleventh_machine() {
    let server = server(KubeVersion::default());
    let is_definition = |it: &Value| it["kind"] == "CustomResourceDefinition";
    let definitions = documents().into_iter().filter(is_definition);
    create_all(&server, definitions.collect()).await;
    server.clock().wait_until_idle().await;
    let client = server.client();
    let team = json!({"metadata": {"name": "team-a"}});
    client.create("/api/v1/namespaces", team).await.unwrap();
    create_all(&server, example("policies/tenant-quota.yaml")).await;
    let is_machine = |it: &Value| it["kind"] == "ScheduledMachine";
    let machine = example("business-hours.yaml").into_iter().find(is_machine);
    let mut machine = machine.expect("a ScheduledMachine");
    machine["metadata"]["namespace"] = "team-a".into();
    let path = "/apis/5spot.finos.org/v1alpha1/namespaces/team-a/scheduledmachines";
    let mut last = None;
    for number in 0..11 {
        machine["metadata"]["name"] = format!("m-{number}").into();
        last = client.create(path, machine.clone()).await.err();
        assert_eq!(last.is_some(), number == 10, "{number}: {last:?}");
    }
    assert_eq!(
        last.expect("the eleventh is refused").message,
        "scheduledmachines.5spot.finos.org \"m-10\" is forbidden: exceeded quota: \
         scheduledmachines, requested: count/scheduledmachines.5spot.finos.org=1, used: \
         count/scheduledmachines.5spot.finos.org=10, limited: \
         count/scheduledmachines.5spot.finos.org=10"
    );
}
