//! The same on a real Kubernetes.

use std::error::Error;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use benches::send;
use fivespot_testkit::path_of;
use http::{Method, Request};
use jiff::{Timestamp, ToSpan as _};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::count::Counts;
use crate::{Args, idle_machine};

/// Who the operator is in the audit log.
const AGENT: &str = "5spot/";

/// How often is looked whether the machines have settled, and how often at most.
const LOOK: Duration = Duration::from_secs(2);
const LOOKS: usize = 300;

/// Plays it and counts.
pub(crate) async fn count(args: &Args) -> Result<Counts, Box<dyn Error>> {
    let client = Client::try_from(Config::infer().await?)?;
    let namespace = prepare(&client, args.machines).await?;
    eprintln!("{} machines in namespace {namespace}", args.machines);
    let begun = length(&args.audit_log)?;
    let operators = [start(args, &namespace, "a")?, start(args, &namespace, "b")?];
    settle(&client, &namespace, args.machines).await?;
    let settled = length(&args.audit_log)?;
    let start_up = Counts::of(&read(&args.audit_log, begun)?, AGENT);
    eprintln!(
        "settled after {} requests, {} answered 429:\n{start_up}",
        start_up.total(),
        start_up.answered(429)
    );
    // What was written last may still be on its way to the caches.
    tokio::time::sleep(LOOK * 5).await;
    let from = length(&args.audit_log)?;
    eprintln!(
        "counting for {} min, from byte {from} (settled at {settled})",
        args.minutes
    );
    tokio::time::sleep(Duration::from_mins(1) * args.minutes).await;
    let counts = Counts::of(&read(&args.audit_log, from)?, AGENT);
    for mut operator in operators {
        operator.start_kill()?;
        operator.wait().await?;
    }
    Ok(counts)
}

/// Installs the definition and makes a namespace with so many machines in it.
async fn prepare(client: &Client, machines: usize) -> Result<String, Box<dyn Error>> {
    for object in fivespot_api::manifest::installed(36) {
        let path = format!("{}?fieldManager=bench&force=true", path_of(&object));
        send(
            client,
            (Method::PATCH, "application/apply-patch+yaml"),
            &path,
            &object,
        )
        .await?;
    }
    let json = (Method::POST, "application/json");
    let named = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "idle-"}});
    let named = send(client, json.clone(), "/api/v1/namespaces", &named).await?;
    let namespace = named["metadata"]["name"].as_str().unwrap_or_default();
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "production-cluster", "namespace": namespace},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}},
    });
    send(client, json.clone(), &collection(&cluster), &cluster).await?;
    let day = in_three_days()?;
    for number in 0..machines {
        let mut machine = idle_machine(&format!("idle-{number}"), &day);
        machine["metadata"]["namespace"] = json!(namespace);
        send(client, json.clone(), &collection(&machine), &machine).await?;
    }
    Ok(namespace.to_owned())
}

/// The name of the day after the day after tomorrow.
#[expect(clippy::disallowed_methods, reason = "real machines, real time")]
fn in_three_days() -> Result<String, jiff::Error> {
    let then = Timestamp::now().checked_add(72.hours())?;
    Ok(then.strftime("%a").to_string().to_lowercase())
}

fn collection(object: &Value) -> String {
    let path = path_of(object);
    path.rsplit_once('/')
        .map_or_else(String::new, |(collection, _)| collection.to_owned())
}

/// Starts one of two operators that look after the namespace.
fn start(args: &Args, namespace: &str, name: &str) -> Result<Child, Box<dyn Error>> {
    let log = File::create(args.audit_log.with_file_name(format!("idle-{name}.log")))?;
    let child = Command::new(&args.operator)
        .args(["controller", "--enable-leader-election"])
        .args(["--namespaces", namespace, "--lease-namespace", namespace])
        .args(["--metrics-port", "0", "--health-port", "0"])
        .env("POD_NAME", format!("idle-{name}"))
        .stderr(Stdio::from(log))
        .kill_on_drop(true)
        .spawn();
    child.map_err(|error| format!("{}: {error}", args.operator.display()).into())
}

/// Waits until every machine is told to be Inactive.
async fn settle(
    client: &Client,
    namespace: &str,
    machines: usize,
) -> Result<(), Box<dyn Error>> {
    let path = format!(
        "/apis/5spot.finos.org/v1alpha1/namespaces/{namespace}/scheduledmachines"
    );
    for _ in 0..LOOKS {
        let request = Request::builder().uri(&path).body(Vec::new())?;
        let list: Value = client.request(request).await?;
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        let settled = items
            .iter()
            .filter(|item| item["status"]["phase"] == "Inactive");
        if settled.count() == machines {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err("the machines have not settled".into())
}

fn length(path: &Path) -> Result<u64, Box<dyn Error>> {
    let found = std::fs::metadata(path);
    Ok(found
        .map_err(|error| format!("{}: {error}", path.display()))?
        .len())
}

fn read(path: &Path, from: u64) -> Result<String, Box<dyn Error>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
