//! `cargo judge controllers`: Kubernetes' own controllers against `kubemu serve`.
//!
//! The programs are those of a release, given by their paths. No kubelet runs: two of them are played,
//! and the scheduler unless one is given. A line of a controller's log about a kind that is
//! not served is a fault, and so are pods that a StatefulSet, a DaemonSet or a Deployment lacks.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::Method;
use kubemu_judge::record::BoxError;
use serde_json::{Value, json};

use crate::played_kubelet::{Binder, Kubelets, get, send};
use crate::program::{PAUSE, Program, connect, flag, serve};
use crate::{Faults, target, wait};

/// The variable with the path of kube-controller-manager.
const MANAGER: &str = "KUBE_CONTROLLER_MANAGER";
/// The variable with the path of kube-scheduler. Without it pods are bound by this program.
const SCHEDULER: &str = "KUBE_SCHEDULER";
/// How long the controllers run, unless the command says otherwise.
const USUAL: Duration = Duration::from_secs(40);
/// How many of the faults in a log are printed.
const SHOWN: usize = 20;

/// What a controller says about a kind that is not served.
const MISSING: [&str; 4] = [
    "the server could not find the requested resource",
    "no matches for kind",
    "failed to list",
    "Failed to watch",
];

/// The workloads: where each is stored, and how many of its pods must become ready.
const WORKLOADS: [(&str, &str, &str, i64); 3] = [
    ("statefulsets", "StatefulSet", "readyReplicas", 2),
    ("daemonsets", "DaemonSet", "numberReady", 2),
    ("deployments", "Deployment", "readyReplicas", 3),
];

/// Runs the controllers for a time, and returns what they lacked.
///
/// # Errors
/// A program is missing or does not start, or a request fails.
pub(crate) fn run(words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let time = match words {
        [] => USUAL,
        ["--seconds", seconds] => Duration::from_secs(seconds.parse()?),
        _ => return Err("usage: cargo judge controllers [--seconds N]".into()),
    };
    let Some(manager) = env::var_os(MANAGER).map(PathBuf::from) else {
        return Err(format!(
            "set {MANAGER} to the path of a kube-controller-manager; `cargo xtask cluster build` \
             builds one"
        )
        .into());
    };
    let scheduler = env::var_os(SCHEDULER).map(PathBuf::from);
    let folder = target().join("controllers");
    fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    let _server = serve(&folder, &kubeconfig)?;
    let mut programs = Vec::new();
    for (path, extra) in [
        (Some(manager), "--use-service-account-credentials=false"),
        (scheduler.clone(), "--v=0"),
    ] {
        let Some(path) = path else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let log = folder.join(format!("{name}.log"));
        let arguments = [
            flag("kubeconfig", &kubeconfig),
            flag("authentication-kubeconfig", &kubeconfig),
            flag("authorization-kubeconfig", &kubeconfig),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            extra.to_owned(),
        ];
        programs.push((Program::start(&path, &arguments, &log)?, log));
    }
    let binder = match scheduler {
        Some(_) => Binder::Scheduler,
        None => Binder::Played,
    };
    let mut faults = wait(play(&kubeconfig, time, binder))?;
    for (mut program, log) in programs {
        if let Some(status) = program.child.try_wait()? {
            faults.push(format!("{}: ended: {status}", log.display()));
        }
        faults.extend(missing(&fs::read_to_string(&log)?));
    }
    Ok(faults)
}

/// The lines of a log about what is missing, each without its head.
fn missing(log: &str) -> Faults {
    let mut found = Faults::new();
    let lines = log.lines();
    for line in lines.filter(|line| MISSING.iter().any(|it| line.contains(it))) {
        let text = line.split_once("] ").map_or(line, |it| it.1).to_owned();
        if !found.contains(&text) && found.len() < SHOWN {
            found.push(text);
        }
    }
    found
}

/// Creates nodes and workloads, plays the kubelets until the time is over, and returns what the
/// workloads lack then.
async fn play(
    kubeconfig: &Path,
    time: Duration,
    binder: Binder,
) -> Result<Faults, BoxError> {
    let client = &connect(kubeconfig).await?;
    let end = Instant::now() + time;
    let mut kubelets = Kubelets::start(client.clone(), binder).await?;
    for (plural, kind, _, count) in WORKLOADS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        send(client, Method::POST, &path, &workload(kind, count)).await?;
    }
    while Instant::now() < end {
        kubelets.step().await?;
        tokio::time::sleep(PAUSE).await;
    }
    let mut faults = Faults::new();
    for (plural, kind, field, count) in WORKLOADS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}/web");
        let found = get(client, &path).await?["status"][field].as_i64();
        if found != Some(count) {
            let found = found.unwrap_or_default();
            faults.push(format!("{kind}: {found} of {count} pods are ready"));
        }
    }
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revisions = get(client, path).await?["items"]
        .as_array()
        .map_or(0, Vec::len);
    if revisions < 2 {
        faults.push(format!(
            "{revisions} ControllerRevisions, of a StatefulSet and a DaemonSet"
        ));
    }
    Ok(faults)
}

fn workload(kind: &str, count: i64) -> Value {
    let labels = json!({"app": kind.to_lowercase()});
    let mut spec = json!({
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "example.com/c"}]}},
    });
    if kind != "DaemonSet" {
        spec["replicas"] = count.into();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_missing_kind_is_a_fault_once() {
        let line = "E1129 10:00:00.000000 7 reflector.go:1] \"Failed to watch\" err=\"failed to \
                    list *v1.CSINode: the server could not find the requested resource\"";
        let log = format!("I1129 started\n{line}\n{line}\n");
        let found = missing(&log);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("\"Failed to watch\""), "{found:?}");
    }
}
