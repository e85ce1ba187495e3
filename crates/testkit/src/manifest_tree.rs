//! A folder of manifests in which much is wrong, for programs that validate it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A folder of manifests of every sort. It is removed when dropped.
#[derive(Debug)]
pub struct ManifestTree(PathBuf);

/// Files of one sort. The name of each begins with that of its sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestSort {
    /// Its name.
    pub name: &'static str,
    /// What a server would say about its documents.
    pub verdict: &'static str,
    /// How many documents a file has.
    pub documents: usize,
    text: &'static str,
}

const fn sort(
    name: &'static str,
    verdict: &'static str,
    text: &'static str,
) -> ManifestSort {
    ManifestSort {
        name,
        verdict,
        documents: 1,
        text,
    }
}

/// Every sort. In a text, `NUMBER` is the number of the file.
pub const MANIFEST_SORTS: &[ManifestSort] = &[
    sort("machine", "valid", MACHINE),
    sort("odd", "valid", MACHINE),
    sort("raw", "valid", MACHINE),
    sort("deployment", "valid", DEPLOYMENT),
    sort("json", "valid", JSON),
    sort("scope", "valid", SCOPE),
    sort("crd", "valid", CRD),
    sort("custom", "valid", CUSTOM),
    ManifestSort {
        documents: 2,
        ..sort("stream", "valid", STREAM)
    },
    ManifestSort {
        documents: 2,
        ..sort("list", "valid", LIST)
    },
    ManifestSort {
        documents: 0,
        ..sort("empty", "", "# nothing\n---\n")
    },
    sort("lateness", "invalid", LATENESS),
    sort("selector", "invalid", SELECTOR),
    sort("namespace", "invalid", NAMESPACE),
    sort("nonstructural", "invalid", NONSTRUCTURAL),
    sort("size", "invalid", SIZE),
    sort("template", "invalid", TEMPLATE),
    sort("broken", "invalid", "a: [1,\n b: {"),
    sort("kustomization", "invalid", "resources: [a.yaml]\n"),
    sort("latin1", "invalid", ""),
    sort("dangling", "invalid", ""),
];

const MACHINE: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: m-NUMBER}
spec:
  clusterName: production
  schedule: {daysOfWeek: [mon-fri], hoursOfDay: ['9-17']}
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  gracefulShutdownTimeout: 5m
";

const LATENESS: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: late-NUMBER}
spec:
  clusterName: production
  schedule: {daysOfWeek: [mon-fri], hoursOfDay: ['9-17']}
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  gracefulShutdownTimeout: five
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-NUMBER, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:NUMBER
        ports: [{containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        env: [{name: FILE, value: 'NUMBER'}]
";

const SELECTOR: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: other-NUMBER}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: web, image: web}]}
";

const JSON: &str = r#"{
  "apiVersion": "v1",
  "kind": "Service",
  "metadata": {"name": "json-NUMBER"},
  "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
}
"#;

const STREAM: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web-NUMBER}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-NUMBER}
data: {a: b}
";

const LIST: &str = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: first-NUMBER}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: second-NUMBER}}
";

/// A cluster-scoped object with a namespace, which a server clears.
const SCOPE: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader-NUMBER, namespace: default}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch]}]
";

/// A placeholder where a name should be.
const NAMESPACE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings-NUMBER, namespace: <namespace>}
";

/// A template of Helm.
const TEMPLATE: &str = "{{- if .Values.enabled }}\nkind: ConfigMap\n{{- end }}\n";

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xNUMBERs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: xNUMBERs, singular: xNUMBER, kind: XNUMBER}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 9, description: How many there are.}
              mode: {type: string, enum: [Fast, Safe], default: Safe}
              hosts: {type: array, maxItems: 8, items: {type: string, pattern: '^[a-z.]+$'}}
            x-kubernetes-validations:
            - {rule: self.mode != 'Fast' || self.size < 5, message: at most 4 are fast}
";

/// A value that is checked by an expression only.
const NONSTRUCTURAL: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: yNUMBERs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: yNUMBERs, singular: yNUMBER, kind: YNUMBER}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {properties: {spec: {minimum: 1}}}}
";

const CUSTOM: &str = "\
apiVersion: example.com/v1
kind: XNUMBER
metadata: {name: custom}
spec: {size: 3, mode: Fast, hosts: [a.example.com]}
";

const SIZE: &str = "\
apiVersion: example.com/v1
kind: XNUMBER
metadata: {name: custom}
spec: {size: 30}
";

impl Drop for ManifestTree {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl ManifestTree {
    /// Writes `each` files of every sort into nested folders of a new one. The valid CRDs are below
    /// [`Self::definitions`].
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn new(name: &str, each: usize) -> io::Result<Self> {
        let name = format!("5spot-manifest-tree-{name}-{}", std::process::id());
        let tree = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(tree.definitions())?;
        for number in 0..each {
            let folder = tree.0.join(format!("team-{}/apps", number % 7));
            fs::create_dir_all(&folder)?;
            for sort in MANIFEST_SORTS {
                tree.write(sort, number, &folder)?;
            }
        }
        Ok(tree)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of the valid CRDs in it.
    pub fn definitions(&self) -> PathBuf {
        self.0.join("crds")
    }

    fn write(&self, sort: &ManifestSort, number: usize, folder: &Path) -> io::Result<()> {
        let text = sort.text.replace("NUMBER", &number.to_string());
        let name = sort.name;
        let named = |ending: &str| folder.join(format!("{name}-{number}.{ending}"));
        match name {
            "crd" => fs::write(
                self.definitions().join(format!("{name}-{number}.yaml")),
                text,
            ),
            "dangling" => symlink("/nonexistent", named("yaml")),
            "json" => fs::write(named("json"), text),
            "latin1" => fs::write(named("yaml"), b"kind: caf\xe9\n"),
            "odd" => fs::write(
                folder.join(format!("odd-{number}\n\x1b[31m name.yaml")),
                text,
            ),
            "raw" => {
                let file =
                    [b"raw-", number.to_string().as_bytes(), b"-\xff.yaml"].concat();
                fs::write(folder.join(OsStr::from_bytes(&file)), text)
            }
            _ => fs::write(named("yaml"), text),
        }
    }
}
