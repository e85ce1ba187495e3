//! `5spot dev --data-dir`: acknowledged writes outlive the process, however it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

const SEED: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seed}}";

/// A temporary directory for each test; removed when dropped.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("data-dir-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("seed.yaml"), SEED).unwrap();
        Self(path)
    }

    fn dev(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
        command
            .current_dir(&self.0)
            .args(["dev", "--data-dir", "data", "--no-controller"])
            .args(["--no-simulator", "--apply", "seed.yaml"])
            .stdin(Stdio::null());
        command
    }

    /// Starts the server and waits until it has applied its manifests.
    fn start(&self) -> Running {
        let mut child = self.dev().stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let applied = output.find(|line| line.as_ref().unwrap().starts_with("applied "));
        assert!(applied.is_some());
        Running {
            child,
            _output: output,
        }
    }

    fn kubeconfig(&self) -> String {
        fs::read_to_string(self.0.join(".5spot/kubeconfig")).unwrap()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Running {
    child: Child,
    /// The server ends when its output is closed.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Kills the process without a shutdown.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn maps(kubeconfig: &str) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    Api::default_namespaced(client)
}

/// Creates a ConfigMap. Returns its name and resourceVersion if the request succeeded.
async fn create(maps: &Api<ConfigMap>, name: String) -> Option<(String, u64)> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.clone());
    let created = maps.create(&PostParams::default(), &map).await.ok()?;
    Some((name, version(&created)))
}

fn version(map: &ConfigMap) -> u64 {
    let version = map.metadata.resource_version.as_deref();
    version.unwrap().parse().unwrap()
}

#[tokio::test]
async fn acknowledged_writes_outlive_a_kill_during_writes() {
    let dir = TempDir::new();
    let mut running = Some(dir.start());
    let kubeconfig = dir.kubeconfig();
    let maps = maps(&kubeconfig).await;
    let mut writes = stream::iter(0..200)
        .map(|number| create(&maps, format!("map-{number}")))
        .buffer_unordered(8);
    let mut answered = BTreeMap::new();
    while let Some(created) = writes.next().await {
        answered.extend(created);
        if answered.len() >= 40
            && let Some(running) = running.take()
        {
            running.kill();
        }
    }
    assert!((40..200).contains(&answered.len()), "{}", answered.len());

    let _running = dir.start();
    assert_eq!(dir.kubeconfig(), kubeconfig, "it stays valid");
    let list = maps.list(&ListParams::default()).await.unwrap();
    let there: BTreeSet<String> = list
        .items
        .iter()
        .filter_map(|it| it.metadata.name.clone())
        .collect();
    for (name, version) in &answered {
        assert!(
            there.contains(name),
            "{name}, written at {version}, is lost"
        );
    }
    let newest = answered.values().max().expect("forty were answered");
    let (_, later) = create(&maps, "later".to_owned()).await.unwrap();
    assert!(later > *newest, "{later} follows {newest}");

    let oldest = answered.values().min().expect("forty were answered");
    let watch = maps
        .watch(&WatchParams::default(), &oldest.to_string())
        .await;
    let code = match watch {
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
        Ok(events) => match events.boxed().next().await {
            Some(Ok(WatchEvent::Error(status))) => status.code,
            other => panic!("{other:?}"),
        },
    };
    assert_eq!(code, 410);
}

#[test]
fn a_directory_that_is_in_use_is_refused() {
    let dir = TempDir::new();
    let _running = dir.start();
    let second = dir.dev().output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(second.stderr).unwrap(),
        "error: --data-dir: data is in use by another process; stop that process, \
         or specify another directory\n"
    );
}
