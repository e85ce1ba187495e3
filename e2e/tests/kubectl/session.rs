//! The real kubectl and other programs, used with a cluster.

use std::path::Path;
use std::process::{Output, Stdio};

use fivespot_testkit::{Cluster, ListeningServer, Operator, instant, scheduled_machine};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::folder::Folder;
use crate::program;

/// A cluster with a running operator, and a kubectl that connects to it from outside. Time is
/// stopped while kubectl runs.
pub(crate) struct Session {
    pub(crate) cluster: Cluster,
    _operator: Operator,
    _listening: ListeningServer,
    folder: Folder,
}

/// A running kubectl. Dropping it stops it.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Session {
    /// Starts a cluster at `now`.
    pub(crate) async fn start(now: &str) -> Self {
        let cluster = Cluster::start(instant(now)).await;
        let listening = cluster.listen().await;
        let folder = Folder::new("kubectl");
        std::fs::write(folder.path().join("kubeconfig"), listening.kubeconfig()).unwrap();
        Self {
            _operator: cluster.operator(),
            cluster,
            _listening: listening,
            folder,
        }
    }

    /// A session at `now` with a Cluster and a worker that has settled.
    pub(crate) async fn with_worker(now: &str) -> Self {
        let session = Self::start(now).await;
        let cluster = &session.cluster;
        cluster.add_cluster().await;
        let created = session
            .kubectl_reading("apply", &scheduled_machine("worker"))
            .await;
        assert_eq!(created, "scheduledmachine.5spot.finos.org/worker created");
        session
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.program("kubectl", arguments)
    }

    /// The folder for files of the programs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The output of a program that uses the kubeconfig of this cluster, and its exit code if that
    /// is not 0. It runs in the root of the source tree.
    pub(crate) async fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.program(program, arguments).output().await.unwrap();
        let printed = printed(&output);
        self.cluster.clock().wait_until_idle().await;
        printed
    }

    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program::path(program).unwrap());
        command
            .args(arguments)
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env("HOME", self.folder.path())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The output of `kubectl <words>`, and its exit code if that is not 0.
    pub(crate) async fn kubectl(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.kubectl_with(&words).await
    }

    /// The same, with arguments that contain spaces.
    pub(crate) async fn kubectl_with(&self, arguments: &[&str]) -> String {
        self.run("kubectl", arguments).await
    }

    /// The output of `kubectl <words> -f -` with `object` as its input.
    pub(crate) async fn kubectl_reading(
        &self,
        words: &str,
        object: &serde_json::Value,
    ) -> String {
        let words: Vec<&str> = words.split_whitespace().chain(["-f", "-"]).collect();
        let mut command = self.command(&words);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input
            .write_all(object.to_string().as_bytes())
            .await
            .unwrap();
        drop(input);
        let printed = printed(&child.wait_with_output().await.unwrap());
        self.cluster.clock().wait_until_idle().await;
        printed
    }

    /// Starts `kubectl <words>` and waits until it watches `resource`.
    pub(crate) async fn watching(&self, words: &str, resource: &str) -> Running {
        let words: Vec<&str> = words.split_whitespace().collect();
        let before = self.cluster.requests().len();
        let mut child = self.command(&words).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_watching = || {
            self.cluster.requests()[before..].iter().any(|event| {
                event.user == "kubernetes-admin"
                    && event.verb == "watch"
                    && event.resource == resource
            })
        };
        while !is_watching() {
            assert_eq!(child.try_wait().unwrap(), None, "{words:?} ended");
            tokio::task::yield_now().await;
        }
        Running { child, lines }
    }
}

impl Running {
    /// The next line of its output. `None` if it has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.unwrap()
    }

    /// Waits for its end, and returns whether it succeeded.
    pub(crate) async fn ends_well(mut self) -> bool {
        self.child.wait().await.unwrap().success()
    }
}

/// The output, line by line without trailing blanks.
fn printed(output: &Output) -> String {
    let mut printed = String::new();
    for stream in [&output.stdout, &output.stderr] {
        for line in String::from_utf8_lossy(stream).lines() {
            printed.push_str(line.trim_end());
            printed.push('\n');
        }
    }
    if !output.status.success() {
        printed.push_str(&output.status.to_string());
    }
    printed.trim_end().to_owned()
}
