//! What the pods of the operator and the webhook require of their nodes.

use fivespot_install::pod::NodeFeatures;
use fivespot_install::{controller, webhook};
use serde_json::{Value, json};

/// The specifications of the pods of the operator and of the webhook.
fn pods(node_features: NodeFeatures) -> [Value; 2] {
    let operator = controller::Settings {
        node_features,
        ..controller::Settings::default()
    };
    let webhook = webhook::Settings {
        node_features,
        ..webhook::Settings::default()
    };
    [operator.deployment(), webhook.deployment()]
        .map(|it| it["spec"]["template"]["spec"].clone())
}

/// A kubelet refuses a pod that requires what its node lacks, and the operator would not run.
#[test]
fn nothing_is_required_that_a_node_may_lack() {
    for pod in pods(NodeFeatures::default()) {
        assert_eq!(pod.get("hostUsers"), None);
        assert_eq!(pod["securityContext"].get("appArmorProfile"), None);
    }
}

#[test]
fn an_apparmor_profile_and_a_user_namespace_are_required_where_every_node_has_them() {
    let all = NodeFeatures {
        app_armor: true,
        user_namespaces: true,
    };
    for pod in pods(all) {
        assert_eq!(pod["hostUsers"], false);
        let profile = &pod["securityContext"]["appArmorProfile"];
        assert_eq!(*profile, json!({"type": "RuntimeDefault"}));
    }
}

#[test]
fn time_zones_of_a_volume_are_read_only_and_used() {
    let source = json!({"persistentVolumeClaim": {"claimName": "zones"}});
    let settings = controller::Settings {
        zoneinfo: source.as_object().cloned(),
        ..controller::Settings::default()
    };
    let pod = settings.deployment()["spec"]["template"]["spec"].clone();
    assert_eq!(
        pod["volumes"],
        json!([{"name": "zoneinfo", "persistentVolumeClaim": {"claimName": "zones"}}])
    );
    let container = &pod["containers"][0];
    let mount = &container["volumeMounts"][0];
    assert_eq!(
        (&mount["name"], &mount["readOnly"]),
        (&json!("zoneinfo"), &json!(true))
    );
    let words = container["args"].as_array().unwrap();
    let flag = format!("--zoneinfo={}", mount["mountPath"].as_str().unwrap());
    assert!(words.contains(&flag.into()), "{words:?}");
}
