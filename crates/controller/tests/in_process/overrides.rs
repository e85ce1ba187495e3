//! ScheduleOverrides.

use fivespot_api::crd;
use fivespot_api::resource::SCHEDULE_OVERRIDE;
use fivespot_controller::Options;
use serde_json::json;

use crate::cluster::TestCluster;
use crate::timing::LogCapture;

const OVERRIDES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn the_log_names_an_override_and_no_scheduled_machine_if_it_is_about_an_override() {
    let logged = LogCapture::begin(tracing::Level::INFO);
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    // A definition without a schema accepts what the operator cannot parse.
    let mut versions = crd::render_of(SCHEDULE_OVERRIDE, 36)["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = format!("{DEFINITIONS}/{}", SCHEDULE_OVERRIDE.definition_name());
    let change = json!({"spec": {"versions": versions}});
    cluster.merge(&definition, change).await;
    let unreadable = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "not-today", "namespace": "default"},
        "spec": {"targetRef": {"name": "worker"}, "mode": 5},
    });
    cluster.client.create(OVERRIDES, unreadable).await.unwrap();
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let mut lines = logged.lines();
    lines.retain(|line| line.contains("ScheduleOverride could not be parsed"));
    assert!(!lines.is_empty(), "{:#?}", logged.lines());
    for line in lines {
        assert!(line.contains("scheduleoverride=\"not-today\""), "{line}");
        assert!(!line.contains("scheduledmachine"), "{line}");
        assert!(!line.contains(" name="), "{line}");
    }
}
