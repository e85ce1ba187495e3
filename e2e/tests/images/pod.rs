//! Pods without a kubelet: `runc` runs the root file system of an image with the manifest's
//! settings (user, capabilities, seccomp, read-only root), on the network of this computer.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fivespot_install::{agent, controller};
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::{BINARIES, BuildahFolder, IMAGES};
use crate::program;

/// The host name of the API server for clients that resolve it.
pub(super) const NAME: &str = "api.management.example";

/// The address of the resolver. C libraries only use this port.
const RESOLVER: &str = "127.0.0.153:53";

/// The namespace of the operator and of the agent's configuration.
const HOME: &str = "5spot-system";

/// The profile for containers with `RuntimeDefault`. It comes with buildah.
const SECCOMP: &str = "/usr/share/containers/seccomp.json";

/// A name server with one name. Dropping it stops it.
pub(super) struct Resolver {
    queries: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Resolver {
    pub(super) async fn start() -> Self {
        let socket = UdpSocket::bind(RESOLVER).await.unwrap();
        let queries: Arc<AtomicUsize> = Arc::default();
        let count = queries.clone();
        let task = tokio::spawn(async move {
            let mut buffer = [0; 512];
            loop {
                let (length, who) = socket.recv_from(&mut buffer).await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let answer = answer(&buffer[..length]);
                socket.send_to(&answer, who).await.unwrap();
            }
        });
        Self { queries, task }
    }

    /// The number of questions received.
    pub(super) fn queries(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }
}

/// The response to a question of one name: 127.0.0.1 for an IPv4 address, none for other types.
fn answer(question: &[u8]) -> Vec<u8> {
    const HEADER: usize = 12;
    let name = question[HEADER..].iter().position(|byte| *byte == 0);
    // After the name: type and class.
    let end = HEADER + name.unwrap() + 5;
    let is_version_4 = question[end - 4..end - 2] == [0, 1];
    let mut answer = question[..end].to_vec();
    // A recursive response. One question, no additional records.
    answer[2..4].copy_from_slice(&[0x81, 0x80]);
    answer[6..12].copy_from_slice(&[0, u8::from(is_version_4), 0, 0, 0, 0]);
    if is_version_4 {
        // The name of the question, type A, class IN, 60 s, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    answer
}

/// A server of the released binary with a simulated Cluster API and without an operator. Dropping
/// it stops it.
pub(super) struct Dev {
    process: Child,
    folder: PathBuf,
}

impl Drop for Dev {
    fn drop(&mut self) {
        // This fails if it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Dev {
    pub(super) fn start(folder: &Path) -> Self {
        let program = PathBuf::from(std::env::var(BINARIES).unwrap()).join("amd64/5spot");
        let home = folder.join("home.yaml");
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME},
        });
        std::fs::write(&home, namespace.to_string()).unwrap();
        let mut process = Command::new(program)
            .args(["dev", "--no-controller", "--apply"])
            .arg(&home)
            .arg("--kubeconfig")
            .arg(folder.join("admin.kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_ready = lines.any(|it| it.is_ok_and(|it| it.starts_with("applied ")));
        let dev = Self {
            process,
            folder: folder.to_owned(),
        };
        assert!(is_ready, "5spot dev ended");
        std::thread::spawn(move || lines.for_each(drop));
        dev
    }

    fn admin(&self) -> Value {
        let path = self.folder.join("admin.kubeconfig");
        let text = std::fs::read_to_string(path).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    }

    pub(super) fn port(&self) -> u16 {
        let admin = self.admin();
        let server = admin["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let (_, port) = server.rsplit_once(':').unwrap();
        port.trim_end_matches('/').parse().unwrap()
    }

    /// A kubeconfig that reaches the server at another address.
    pub(super) fn kubeconfig(&self, server: &str) -> String {
        let mut admin = self.admin();
        let cluster = &mut admin["clusters"][0]["cluster"];
        cluster["server"] = json!(server);
        // Its certificate is valid for this name.
        cluster["tls-server-name"] = json!("localhost");
        admin.to_string()
    }

    async fn kubectl(&self, words: &[&str]) -> String {
        let mut kubectl = tokio::process::Command::new(program::path("kubectl").unwrap());
        kubectl
            .arg("--kubeconfig")
            .arg(self.folder.join("admin.kubeconfig"))
            .args(words);
        program::output(&mut kubectl).await
    }

    async fn create(&self, object: &Value) {
        let path = self.folder.join("object.yaml");
        std::fs::write(&path, object.to_string()).unwrap();
        self.kubectl(&["create", "-f", path.to_str().unwrap()])
            .await;
    }

    /// Creates a ScheduledMachine that is always wanted, with a Cluster of its own. Returns its
    /// name for kubectl.
    pub(super) async fn create_machine(&self, name: &str) -> String {
        let mut cluster =
            fivespot_testkit::cluster_object(fivespot_testkit::Contract::V1Beta2);
        cluster["metadata"]["name"] = json!(name);
        self.create(&cluster).await;
        let mut machine = fivespot_testkit::scheduled_machine(name);
        machine["spec"]["clusterName"] = json!(name);
        machine["spec"]["schedule"] =
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]});
        self.create(&machine).await;
        format!("sm/{name}")
    }

    /// Creates a Node, and the configuration of its agent.
    pub(super) async fn create_node(&self, name: &str, command: &str) {
        self.create(&json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        }))
        .await;
        let patterns = [command.to_owned()];
        self.create(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": fivespot_api::name::reclaim_config_map(name),
                "namespace": HOME,
            },
            "data": {
                fivespot_api::name::RECLAIM_CONFIG_KEY:
                    fivespot_api::reclaim::agent_config(&patterns),
            },
        }))
        .await;
    }

    /// Waits for a condition of `kubectl wait`.
    pub(super) async fn wait(&self, object: &str, condition: &str) {
        let condition = format!("--for={condition}");
        self.kubectl(&["wait", object, &condition, "--timeout=60s"])
            .await;
    }
}

/// The pod of a manifest, with one container.
pub(super) struct Pod {
    /// The folder with its images.
    folder: PathBuf,
    root: String,
    spec: Value,
}

/// A running container. Dropping it stops it.
pub(super) struct Running {
    process: Child,
    name: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let runc = |words: &[&str]| {
            let mut command = Command::new(program::path("runc").unwrap());
            // This fails if it has already ended.
            let _ = command.args(words).status();
        };
        runc(&["kill", &self.name, "TERM"]);
        let _ = self.process.wait();
        runc(&["delete", "--force", &self.name]);
    }
}

impl Pod {
    /// The operator's pod, as in its Deployment.
    pub(super) async fn of_operator(buildah_folder: &BuildahFolder, image: &str) -> Self {
        let deployment = controller::Settings::default().deployment();
        Self::of(buildah_folder, image, &deployment).await
    }

    /// The agent's pod, as in its DaemonSet.
    pub(super) async fn of_agent(buildah_folder: &BuildahFolder, image: &str) -> Self {
        let documents = agent::Settings::default().documents();
        let mut documents = documents.iter();
        let daemon_set = documents.find(|it| it["kind"] == "DaemonSet").unwrap();
        Self::of(buildah_folder, image, daemon_set).await
    }

    /// The pod of a workload, with this image instead of its own.
    pub(super) async fn of(
        buildah_folder: &BuildahFolder,
        image: &str,
        workload: &Value,
    ) -> Self {
        let container = buildah_folder.buildah(&["from", image]).await;
        Self {
            folder: buildah_folder.0.path().to_owned(),
            root: buildah_folder.buildah(&["mount", &container]).await,
            spec: workload["spec"]["template"]["spec"].clone(),
        }
    }

    fn container(&self) -> &Value {
        &self.spec["containers"][0]
    }

    /// Runs the container with its own arguments and some more, under a name.
    pub(super) fn run(&self, name: &str, kubeconfig: &str, more: &[String]) -> Running {
        let bundle = self.folder.join(format!("pod-{name}"));
        std::fs::create_dir_all(&bundle).unwrap();
        let kubeconfig_path = bundle.join("kubeconfig");
        std::fs::write(&kubeconfig_path, kubeconfig).unwrap();
        std::fs::write(
            bundle.join("resolv.conf"),
            "nameserver 127.0.0.153\noptions ndots:5\n",
        )
        .unwrap();
        let config = self.runtime_config(&bundle, more);
        std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
        let name = format!("5spot-{name}-{}", std::process::id());
        let process = Command::new(program::path("runc").unwrap())
            .arg("run")
            .arg("--bundle")
            .arg(&bundle)
            .arg(&name)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Running { process, name }
    }

    /// The configuration of the pod for the container runtime.
    fn runtime_config(&self, bundle: &Path, more: &[String]) -> Value {
        let (pod, container) = (
            &self.spec["securityContext"],
            &self.container()["securityContext"],
        );
        let user = [&container["runAsUser"], &pod["runAsUser"]]
            .into_iter()
            .find_map(Value::as_u64)
            .unwrap();
        assert_eq!(pod["seccompProfile"]["type"], "RuntimeDefault");
        let dropped = &container["capabilities"]["drop"];
        assert_eq!(*dropped, json!(["ALL"]));
        let added: Vec<String> = container["capabilities"]["add"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| format!("CAP_{}", it.as_str().unwrap()))
            .collect();
        let mut arguments: Vec<String> = vec![entry_point(&self.root)];
        let own = self.container()["args"].as_array();
        let own = own.into_iter().flatten().map(|it| it.as_str().unwrap());
        arguments.extend(own.map(str::to_owned));
        arguments.extend(more.iter().cloned());
        let mount = |name: &str, to: &str| {
            json!({
                "destination": to, "type": "bind", "source": bundle.join(name),
                "options": ["bind", "ro"],
            })
        };
        let mut namespaces = vec!["mount", "ipc", "uts"];
        if self.spec["hostPID"] != true {
            namespaces.push("pid");
        }
        let namespaces: Vec<Value> =
            namespaces.iter().map(|it| json!({"type": it})).collect();
        json!({
            "ociVersion": "1.0.2",
            "root": {
                "path": self.root,
                "readonly": container["readOnlyRootFilesystem"],
            },
            "process": {
                "terminal": false,
                "cwd": "/",
                "args": arguments,
                "env": ["KUBECONFIG=/etc/kubeconfig", "POD_NAME=image"],
                "user": {"uid": user, "gid": user},
                "noNewPrivileges": container["allowPrivilegeEscalation"] == false,
                "capabilities": {
                    "bounding": added, "effective": added,
                    "permitted": added, "inheritable": [], "ambient": [],
                },
            },
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                mount("kubeconfig", "/etc/kubeconfig"),
                mount("resolv.conf", "/etc/resolv.conf"),
            ],
            "linux": {
                "namespaces": namespaces,
                "seccomp": seccomp(&added),
            },
        })
    }
}

/// The program of an image with one program.
fn entry_point(root: &str) -> String {
    let names = IMAGES.map(|(_, name)| format!("/{name}"));
    let mut names = names.into_iter();
    names
        .find(|name| Path::new(&format!("{root}{name}")).exists())
        .unwrap()
}

/// The profile in the format of a runtime: without the rules for other architectures, or for
/// capabilities that the container does not have.
fn seccomp(capabilities: &[String]) -> Value {
    let profile = std::fs::read_to_string(SECCOMP).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let holds = |condition: &Value| {
        let any = |key: &str, mine: &dyn Fn(&str) -> bool| {
            let values = condition[key].as_array();
            values.map(|all| all.iter().any(|it| mine(it.as_str().unwrap())))
        };
        let has = |capability: &str| capabilities.iter().any(|it| it == capability);
        [any("caps", &has), any("arches", &|it| it == "amd64")]
    };
    let applies = |rule: &&Value| {
        let (includes, excludes) = (holds(&rule["includes"]), holds(&rule["excludes"]));
        !includes.contains(&Some(false)) && !excludes.contains(&Some(true))
    };
    let rules = profile["syscalls"].as_array().unwrap().iter();
    let rules: Vec<Value> = rules
        .filter(applies)
        .map(|rule| {
            let mut own = json!({"names": rule["names"], "action": rule["action"]});
            for key in ["args", "errnoRet"] {
                if !rule[key].is_null() {
                    own[key] = rule[key].clone();
                }
            }
            own
        })
        .collect();
    json!({
        "defaultAction": profile["defaultAction"],
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": rules,
    })
}

/// An unused port.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
