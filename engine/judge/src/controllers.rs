//! `cargo judge controllers`: Kubernetes' own controllers against `kubemu serve`.
//!
//! The programs are those of a release, given by their paths. No kubelet runs: two of them are played,
//! and the scheduler unless one is given. Each program is the user that it is in a cluster, with the
//! rights of that user's roles only, and each controller its service account. A line of a log about a
//! kind that is not served or a right that is missing is a fault, and so is what the workloads lack in
//! the end.

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
/// How long the controllers run, unless the command says otherwise: a minute begins, so that a CronJob
/// has something to do.
const USUAL: Duration = Duration::from_secs(75);
/// How many of the faults in a log are printed.
const SHOWN: usize = 20;

/// What a controller says about a kind that is not served, or a right that its role does not have.
const MISSING: [&str; 5] = [
    "the server could not find the requested resource",
    "no matches for kind",
    "failed to list",
    "Failed to watch",
    "is forbidden",
];

const APPS: &str = "/apis/apps/v1/namespaces/default";
const BATCH: &str = "/apis/batch/v1/namespaces/default";
const CORE: &str = "/api/v1/namespaces/default";
const SCALING: &str = "/apis/autoscaling/v2/namespaces/default";
const STORAGE: &str = "/apis/storage.k8s.io/v1";
/// The class of the volumes.
const CLASS: &str = "local";

/// What is there in the end: the path, the member, and its value.
const EXPECTED: [(&str, &str, &str, &str); 9] = [
    (APPS, "statefulsets/web", "/status/readyReplicas", "2"),
    (APPS, "daemonsets/web", "/status/numberReady", "2"),
    (APPS, "deployments/web", "/status/readyReplicas", "3"),
    (APPS, "controllerrevisions", "/items/1/revision", "1"),
    (BATCH, "jobs/web", "/status/succeeded", "2"),
    (BATCH, "cronjobs/web", "/status/active/0/kind", "Job"),
    (
        CORE,
        "persistentvolumeclaims/data-web-0",
        "/status/phase",
        "Bound",
    ),
    (
        CORE,
        "persistentvolumeclaims/data-web-1",
        "/status/phase",
        "Bound",
    ),
    (
        SCALING,
        "horizontalpodautoscalers/web",
        "/status/conditions/0/type",
        "AbleToScale",
    ),
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
        (Some(manager), "--use-service-account-credentials=true"),
        (scheduler.clone(), "--v=0"),
    ] {
        let Some(path) = path else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let log = folder.join(format!("{name}.log"));
        let own = folder.join(format!("{name}.kubeconfig"));
        fs::write(&own, acting_as(&fs::read_to_string(&kubeconfig)?, &name))?;
        let arguments = [
            flag("kubeconfig", &own),
            flag("authentication-kubeconfig", &own),
            flag("authorization-kubeconfig", &own),
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

/// A kubeconfig with which requests are those of the user `system:PROGRAM`.
fn acting_as(kubeconfig: &str, program: &str) -> String {
    let user = "\n  user:\n";
    kubeconfig.replacen(user, &format!("{user}    as: system:{program}\n"), 1)
}

/// The lines of a log about what is missing, each without its head. That there are no metrics of pods is
/// so in every cluster without metrics-server.
fn missing(log: &str) -> Faults {
    let mut found = Faults::new();
    let lines = log.lines().filter(|line| !line.contains("metrics.k8s.io"));
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
    for (path, object) in objects(binder) {
        send(client, Method::POST, &path, &object).await?;
    }
    while Instant::now() < end {
        kubelets.step().await?;
        tokio::time::sleep(PAUSE).await;
    }
    let mut faults = Faults::new();
    for (group, name, member, expected) in EXPECTED {
        let object = get(client, &format!("{group}/{name}")).await?;
        let found = object.pointer(member).map(|it| match it {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        if found.as_deref() != Some(expected) {
            let found = found.as_deref().unwrap_or("nothing");
            faults.push(format!("{name}: {member} is {found}, not {expected}"));
        }
    }
    Ok(faults)
}

/// Workloads of each kind, and volumes for those of the StatefulSet: a scheduler binds them with
/// the pod, without one they are bound at once.
fn objects(binder: Binder) -> Vec<(String, Value)> {
    let with = |mut base: Value, more: Value| {
        for (member, value) in more.as_object().into_iter().flatten() {
            base[member] = value.clone();
        }
        base
    };
    let pods = |app: &str, more: Value| {
        let spec = json!({"containers": [{"name": "c", "image": "example.com/c"}]});
        json!({"metadata": {"labels": {"app": app}}, "spec": with(spec, more)})
    };
    let workload = |kind: &str, more: Value| {
        let app = kind.to_lowercase();
        let spec = json!({"selector": {"matchLabels": {"app": app}},
            "template": pods(&app, json!({}))});
        let object = json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "web"}, "spec": with(spec, more)});
        (format!("{APPS}/{app}s"), object)
    };
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": CLASS,
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let ending = json!({"restartPolicy": "Never", "containers": [{"name": "c",
        "image": "example.com/c", "command": ["sh", "-c", "exit 0"]}]});
    let running = json!({"restartPolicy": "Never"});
    let mut objects = volumes(binder);
    objects.extend([
        workload("DaemonSet", json!({})),
        workload("Deployment", json!({"replicas": 3})),
        workload(
            "StatefulSet",
            json!({"replicas": 2, "volumeClaimTemplates": [claim]}),
        ),
        (
            format!("{BATCH}/jobs"),
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"},
                "spec": {"completions": 2, "template": pods("job", ending)}}),
        ),
        (
            format!("{BATCH}/cronjobs"),
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
                    "template": pods("cron-job", running)}}}}),
        ),
        (
            format!("{SCALING}/horizontalpodautoscalers"),
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "minReplicas": 3,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                        "name": "web"}}}),
        ),
    ]);
    objects
}

/// A class of volumes, and a volume for each pod of the StatefulSet.
fn volumes(binder: Binder) -> Vec<(String, Value)> {
    let mode = match binder {
        Binder::Scheduler => "WaitForFirstConsumer",
        Binder::Played => "Immediate",
    };
    let mut objects = vec![(
        format!("{STORAGE}/storageclasses"),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": CLASS}, "volumeBindingMode": mode,
            "provisioner": "kubernetes.io/no-provisioner"}),
    )];
    for number in 0..2 {
        objects.push((
            "/api/v1/persistentvolumes".to_owned(),
            json!({"apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": format!("disk-{number}")},
                "spec": {"storageClassName": CLASS, "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}}}),
        ));
    }
    objects
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
