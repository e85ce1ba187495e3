//! The objects of the measurement, and waiting for them.

use std::time::Duration;

use benches::TestNamespace;
use fivespot_testkit::{machine_path, scheduled_machine};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::Args;
use crate::operator::Edge;

/// An error that ends the measurement.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The interval of checks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of requests of this program in flight.
const MAX_IN_FLIGHT: usize = 32;

/// A window that opens once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// When it opens.
    pub(crate) opens: Timestamp,
    /// When it closes.
    pub(crate) closes: Timestamp,
}

/// A namespace with its Clusters.
pub(crate) struct Fleet {
    pub(crate) test_namespace: TestNamespace,
    pub(crate) machines: usize,
    /// The number of Clusters. The machines are assigned to them in turn.
    clusters: usize,
    /// How long the machines may take to leave.
    grace: String,
}

impl Fleet {
    /// Creates the namespace and the Clusters, and waits until machines can join them. If no
    /// Cluster API runs, sets their status instead.
    pub(crate) async fn create(args: &Args) -> Result<Self, BoxError> {
        let test_namespace = TestNamespace::create_new("scale").await?;
        if args.no_cluster_api {
            test_namespace.install_cluster_api_crds().await?;
        }
        let fleet = Self {
            test_namespace,
            machines: args.machines,
            clusters: args.clusters.get(),
            grace: format!("{}m", args.grace_minutes),
        };
        for number in 0..args.clusters.get() {
            fleet.add_cluster(number, args).await?;
        }
        Ok(fleet)
    }

    async fn add_cluster(&self, number: usize, args: &Args) -> Result<(), BoxError> {
        let name = cluster_name(number);
        self.test_namespace.add_cluster(&name).await?;
        let path = self.path_of_cluster(&name);
        if args.no_cluster_api {
            let up = json!({"status": {"initialization": {
                "infrastructureProvisioned": true, "controlPlaneInitialized": true,
            }}});
            self.test_namespace
                .merge(&format!("{path}/status"), &up)
                .await?;
        }
        let is_up = async || {
            let cluster = self.test_namespace.get(&path).await?;
            let status = &cluster["status"]["initialization"];
            Ok(status["infrastructureProvisioned"] == true
                && status["controlPlaneInitialized"] == true)
        };
        self.wait(&format!("the Cluster {name}"), 120, is_up).await
    }

    /// The path of the first Cluster.
    pub(crate) fn cluster_path(&self) -> String {
        self.path_of_cluster(&cluster_name(0))
    }

    fn path_of_cluster(&self, name: &str) -> String {
        let namespace = self.test_namespace.namespace();
        format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/clusters/{name}")
    }

    /// The name of a machine, unique among all namespaces, because Nodes are cluster-scoped.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.test_namespace.namespace())
    }

    /// Creates the ScheduledMachines.
    pub(crate) async fn populate(&self, schedule: &Schedule) -> Result<(), BoxError> {
        let schedule = schedule.as_json();
        let created = stream::iter(0..self.machines).map(|number| {
            let mut machine = scheduled_machine(&self.name(number));
            let spec = &mut machine["spec"];
            spec["clusterName"] = json!(cluster_name(number % self.clusters));
            spec["schedule"] = schedule.clone();
            spec["gracefulShutdownTimeout"] = json!(self.grace);
            spec["nodeDrainTimeout"] = json!(self.grace);
            self.test_namespace.create(machine)
        });
        created
            .buffer_unordered(MAX_IN_FLIGHT)
            .try_for_each(async |_| Ok(()))
            .await
    }

    /// The bytes of JSON of a ScheduledMachine and its three objects.
    pub(crate) async fn object_bytes(&self) -> Result<usize, BoxError> {
        let scheduled = scheduled_machine(&self.name(0));
        let machine =
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"});
        let spec = &scheduled["spec"];
        let mut bytes = 0;
        for of in [
            &scheduled,
            &machine,
            &spec["bootstrapSpec"],
            &spec["infrastructureSpec"],
        ] {
            let named = json!({
                "apiVersion": of["apiVersion"], "kind": of["kind"],
                "metadata": {"namespace": self.test_namespace.namespace(), "name": "any"},
            });
            let path = format!("{}?limit=1", benches::collection(&named));
            let list = self.test_namespace.get(&path).await?;
            bytes += list["items"][0].to_string().len();
        }
        Ok(bytes)
    }

    /// Sets another window for all machines. Does nothing if edges are made by `schedule.enabled`.
    pub(crate) async fn reschedule(
        &self,
        edge: Edge,
        window: Window,
    ) -> Result<(), BoxError> {
        if edge == Edge::Switch {
            return Ok(());
        }
        self.edit(&Schedule::of(edge, window).as_json()).await
    }

    /// Patches the schedule of all machines.
    pub(crate) async fn edit(&self, schedule: &Value) -> Result<(), BoxError> {
        let patch = json!({"spec": {"schedule": schedule}});
        let patched = stream::iter(0..self.machines).map(async |number| {
            let path = machine_path(&self.name(number));
            let in_namespace =
                format!("/namespaces/{}/", self.test_namespace.namespace());
            let path = path.replace("/namespaces/default/", &in_namespace);
            self.test_namespace.merge(&path, &patch).await
        });
        patched
            .buffer_unordered(MAX_IN_FLIGHT)
            .try_for_each(async |_| Ok(()))
            .await
    }

    /// Waits for the window's edge, or makes it with `schedule.enabled`.
    pub(crate) async fn cross_edge(
        &self,
        edge: Edge,
        at: Timestamp,
        enabled: bool,
    ) -> Result<Timestamp, BoxError> {
        if edge == Edge::Cron {
            let left = at.duration_since(now());
            tokio::time::sleep(left.try_into().unwrap_or_default()).await;
            return Ok(at);
        }
        let turned = now();
        self.edit(&json!({"enabled": enabled})).await?;
        Ok(turned)
    }

    /// Deletes all ScheduledMachines of the namespace, and waits until they are removed.
    pub(crate) async fn delete_all(
        &self,
        seconds: u64,
    ) -> Result<SignedDuration, BoxError> {
        let path = self.test_namespace.machines_path();
        let begun = now();
        let is_empty = async || {
            let list: Value = self.test_namespace.get(&format!("{path}?limit=1")).await?;
            Ok::<_, BoxError>(list["items"].as_array().is_none_or(Vec::is_empty))
        };
        loop {
            let request = Request::builder()
                .method(Method::DELETE)
                .uri(&path)
                .body(Vec::new())?;
            let response = self.test_namespace.client().request_text(request).await;
            // A server with a request timeout of a minute aborts if thousands of deletions take
            // longer. It has then deleted some of them.
            match response {
                Ok(_) => break,
                Err(_)
                    if now().duration_since(begun).as_secs() < seconds.cast_signed() =>
                {
                    if is_empty().await? {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.wait(&format!("{path} to be empty"), seconds, is_empty)
            .await?;
        Ok(now().duration_since(begun))
    }

    async fn wait(
        &self,
        what: &str,
        seconds: u64,
        holds: impl AsyncFn() -> Result<bool, BoxError>,
    ) -> Result<(), BoxError> {
        for _ in 0..seconds {
            if holds().await? {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Err(format!("timed out after {seconds} s waiting for {what}").into())
    }
}

/// The name of a Cluster. The first has the same name as everywhere in tests.
fn cluster_name(number: usize) -> String {
    match number {
        0 => "production-cluster".to_owned(),
        number => format!("production-cluster-{number}"),
    }
}

/// When machines are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// Only in this window.
    Once(Window),
    /// Always, while it is enabled.
    Always {
        /// Whether it is.
        enabled: bool,
    },
}

impl Schedule {
    /// The schedule for an operator with this kind of edge. The machines are not wanted yet.
    pub(crate) fn of(edge: Edge, window: Window) -> Self {
        match edge {
            Edge::Cron => Self::Once(window),
            Edge::Switch => Self::Always { enabled: false },
        }
    }

    fn as_json(self) -> Value {
        match self {
            Self::Once(Window { opens, closes }) => {
                let minutes = closes.duration_since(opens).as_mins();
                let at = opens.strftime("%-M %-H %-d %-m *");
                json!({"cron": at.to_string(), "duration": format!("{minutes}m"), "timezone": "UTC"})
            }
            Self::Always { enabled } => json!({
                "daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": "UTC",
                "enabled": enabled,
            }),
        }
    }
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "real machines, real time")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
