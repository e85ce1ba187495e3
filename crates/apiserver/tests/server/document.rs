//! Examples of the document about admission controllers.

use std::fs;

use fivespot_apiserver::{Options, Server, StartError, read_admission_configuration};
use serde_json::Value;

use crate::fixture::options;

const EVENTS: &str = "kind: AdmissionConfiguration
apiVersion: apiserver.k8s.io/v1alpha1
plugins:
- name: EventRateLimit
  path: eventconfig.yaml
";

const EVENT_RATES: &str = "kind: Configuration
apiVersion: eventratelimit.admission.k8s.io/v1alpha1
limits:
- type: Namespace
  qps: 50
  burst: 100
  cacheSize: 2000
- type: User
  qps: 10
  burst: 50
";

const NAMESPACE: &str = "apiVersion: v1
kind: Namespace
metadata:
  annotations:
    scheduler.alpha.kubernetes.io/node-selector: <node-selectors-labels>
  name: namespace3
";

const CLASS: &str = r#"kind: StorageClass
apiVersion: storage.k8s.io/v1
metadata:
  name: gluster-vol-default
provisioner: kubernetes.io/glusterfs
parameters:
  resturl: "http://192.168.10.100:8080"
  restuser: ""
  secretNamespace: ""
  secretName: ""
allowVolumeExpansion: true
"#;

/// What the document has after `--admission-control=`, by versions of Kubernetes.
const LISTS: [&str; 5] = [
    "NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ResourceQuota",
    "NamespaceLifecycle,LimitRanger,ServiceAccount,PersistentVolumeLabel,DefaultStorageClass,ResourceQuota,DefaultTolerationSeconds",
    "NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,ResourceQuota",
    "NamespaceLifecycle,LimitRanger,ServiceAccount,ResourceQuota",
    "NamespaceLifecycle,LimitRanger,SecurityContextDeny,ServiceAccount,PersistentVolumeLabel,ResourceQuota",
];

fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

fn enabling(list: &str) -> Result<Server, StartError> {
    Server::new(Options {
        enable_plugins: names(list),
        removed_plugins: true,
        ..options()
    })
}

#[tokio::test]
async fn every_list_of_plugins_of_the_document_starts() {
    for list in LISTS {
        assert!(enabling(list).is_ok(), "{list}");
    }
    let disabling = Options {
        disable_plugins: names("PodNodeSelector,AlwaysDeny"),
        ..options()
    };
    assert!(Server::new(disabling).is_ok());
    // One name of this line is misspelt in the document.
    let refused = enabling("NamespaceLifecyle,LimitRanger").unwrap_err();
    assert!(
        refused.to_string().contains("NamespaceLifecyle"),
        "{refused}"
    );
}

#[tokio::test]
async fn the_rates_of_the_document_configure_a_server() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("eventconfig.yaml"), EVENT_RATES).unwrap();
    let file = folder.path().join("admission.yaml");
    fs::write(&file, EVENTS).unwrap();
    let configurations = read_admission_configuration(&file).unwrap();
    assert_eq!(configurations["EventRateLimit"]["limits"][0]["qps"], 50);
    let server = Server::new(Options {
        enable_plugins: names("EventRateLimit"),
        plugin_configurations: configurations,
        ..options()
    });
    assert!(server.is_ok());
}

#[tokio::test]
async fn the_objects_of_the_document_are_created() {
    let client = Server::new(options()).unwrap().client();
    for (path, manifest) in [
        ("/api/v1/namespaces", NAMESPACE),
        ("/apis/storage.k8s.io/v1/storageclasses", CLASS),
    ] {
        let object: Value = serde_saphyr::from_str(manifest).unwrap();
        let made = client.create(path, object.clone()).await.unwrap();
        assert_eq!(made["metadata"]["name"], object["metadata"]["name"]);
    }
}
