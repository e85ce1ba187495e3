//! The examples of the document about admission controllers.

use std::fs;

use kubemu_apiserver::{Options, Server, StartError, read_admission_configuration};
use serde_json::{Value, json};

use crate::fixture::{PODS, options, pod};
use crate::webhook_server::{WebhookServer, authority};

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

const IMAGES: &str = "kind: AdmissionConfiguration
apiVersion: apiserver.k8s.io/v1alpha1
plugins:
- name: ImagePolicyWebhook
  path: imagepolicyconfig.yaml
...
";

const IMAGE_POLICY: &str = "imagePolicy:
  kubeConfigFile: /path/to/kubeconfig/for/backend
  # time in s to cache approval
  allowTTL: 50
  # time in s to cache denial
  denyTTL: 50
  # time in ms to wait between retries
  retryBackoff: 500
  # determines behavior if the webhook backend fails
  defaultAllow: true
";

const SELECTORS: &str = "kind: AdmissionConfiguration
apiVersion: apiserver.k8s.io/v1alpha1
plugins:
- name: PodNodeSelector
  path: podnodeselector.yaml
...
";

const NODE_SELECTORS: &str = "podNodeSelectorPluginConfig:
 clusterDefaultNodeSelector: <node-selectors-labels>
 namespace1: <node-selectors-labels>
 namespace2: <node-selectors-labels>
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

/// The lists after `--admission-control=` in the document, by Kubernetes version.
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
async fn the_server_starts_with_every_plugin_list_of_the_document() {
    for list in LISTS {
        assert!(enabling(list).is_ok(), "{list}");
    }
    let disabling = Options {
        disable_plugins: names("PodNodeSelector,AlwaysDeny"),
        ..options()
    };
    assert!(Server::new(disabling).is_ok());
    // The document misspells one name of this list.
    let refused = enabling("NamespaceLifecyle,LimitRanger").unwrap_err();
    assert!(
        refused.to_string().contains("NamespaceLifecyle"),
        "{refused}"
    );
}

#[tokio::test]
async fn the_rate_limits_of_the_document_are_accepted() {
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

/// Options with one plugin, whose configuration is in a file next to the admission configuration.
fn configured(plugin: &str, file: &str, (name, text): (&str, &str)) -> Options {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    let path = folder.path().join("admission.yaml");
    fs::write(&path, file).unwrap();
    Options {
        enable_plugins: names(plugin),
        plugin_configurations: read_admission_configuration(&path).unwrap(),
        ..options()
    }
}

#[tokio::test]
async fn the_image_policy_of_the_document_admits_pods_if_the_backend_fails() {
    let name = "imagepolicyconfig.yaml";
    let missing = configured("ImagePolicyWebhook", IMAGES, (name, IMAGE_POLICY));
    let missing = Server::new(missing).unwrap_err().to_string();
    let expected =
        "imagePolicy.kubeConfigFile: /path/to/kubeconfig/for/backend: No such file";
    assert!(missing.contains(expected), "{missing}");
    let backend = tempfile::NamedTempFile::new().unwrap();
    let kubeconfig = r#"{"clusters": [{"name": "b", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "b"}}], "current-context": "c"}"#;
    fs::write(backend.path(), kubeconfig).unwrap();
    let path = backend.path().to_str().unwrap();
    let policy = IMAGE_POLICY.replace("/path/to/kubeconfig/for/backend", path);
    let options = configured("ImagePolicyWebhook", IMAGES, (name, &policy));
    let server = Server::new(options).unwrap();
    let created = server.client().create(PODS, pod("a", "", "x")).await;
    assert!(created.is_ok(), "{created:?}");
}

#[tokio::test]
async fn an_image_policy_with_a_ca_certificate_that_is_its_own_bundle_is_asked() {
    let policy = WebhookServer::start_with(authority(), |review| {
        let mut review = review.clone();
        review["status"] = json!({"allowed": false, "reason": "bad image"});
        review
    })
    .await;
    let kubeconfig = json!({
        "clusters": [{"name": "b", "cluster": {
            "server": format!("https://{}/review", policy.address),
            "certificate-authority-data": policy.bundle}}],
        "contexts": [{"name": "c", "context": {"cluster": "b"}}], "current-context": "c"});
    let backend = tempfile::NamedTempFile::new().unwrap();
    fs::write(backend.path(), kubeconfig.to_string()).unwrap();
    let path = backend.path().to_str().unwrap();
    let text = IMAGE_POLICY.replace("/path/to/kubeconfig/for/backend", path);
    let file = ("imagepolicyconfig.yaml", text.as_str());
    let server = Server::new(configured("ImagePolicyWebhook", IMAGES, file)).unwrap();
    let refused = server.client().create(PODS, pod("a", "", "x")).await;
    let why = refused.unwrap_err().message;
    assert!(why.ends_with("bad image"), "{why}");
    assert_eq!(policy.calls(), 1);
}

#[tokio::test]
async fn the_node_selectors_of_the_document_apply_to_its_namespaces() {
    let labels = NODE_SELECTORS.replace("<node-selectors-labels>", "env=production");
    let file = ("podnodeselector.yaml", labels.as_str());
    let server = Server::new(configured("PodNodeSelector", SELECTORS, file)).unwrap();
    let created = server
        .client()
        .create(PODS, pod("a", "", "x"))
        .await
        .unwrap();
    assert_eq!(
        created["spec"]["nodeSelector"],
        json!({"env": "production"})
    );
}

#[tokio::test]
async fn the_objects_of_the_document_are_created() {
    let client = Server::new(options()).unwrap().client();
    for (path, manifest) in [
        ("/api/v1/namespaces", NAMESPACE),
        ("/apis/storage.k8s.io/v1/storageclasses", CLASS),
    ] {
        let object: Value = serde_saphyr::from_str(manifest).unwrap();
        let created = client.create(path, object.clone()).await.unwrap();
        assert_eq!(created["metadata"]["name"], object["metadata"]["name"]);
    }
}
