//! Upgrades Kubernetes and Cluster API under a running operator.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use kubemu_golang::process;
use serde_json::{Value, json};

use super::operator::{Operator, until};
use super::program::{Programs, Version};
use super::sequence::{self, Results, Step};
use super::server::Server;

/// The name of the cluster, which only this test uses.
const NAME: &str = "upgrade-platform";

/// The minor versions at the beginning and at the end.
const KUBERNETES: [&str; 2] = ["1.30", "1.36"];
const CLUSTER_API: [&str; 2] = ["1.8", "1.14"];

/// Which of the two is upgraded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum UpgradeOrder {
    Kubernetes,
    ClusterApi,
}

impl UpgradeOrder {
    /// The pairs of versions, Kubernetes and Cluster API, in order.
    fn pairs(self) -> [(&'static str, &'static str); 3] {
        let [(old, new), (older, newer)] =
            [KUBERNETES, CLUSTER_API].map(|[from, to]| (from, to));
        let between = match self {
            Self::Kubernetes => (new, older),
            Self::ClusterApi => (old, newer),
        };
        [(old, older), between, (new, newer)]
    }

    /// The title of the result.
    fn title(self) -> String {
        let [kubernetes, api] = [KUBERNETES, CLUSTER_API].map(|it| it.join(" to "));
        match self {
            Self::Kubernetes => {
                format!("Kubernetes {kubernetes}, then Cluster API {api}")
            }
            Self::ClusterApi => {
                format!("Cluster API {api}, then Kubernetes {kubernetes}")
            }
        }
    }

    /// The name of the file of the result.
    fn label(self) -> &'static str {
        match self {
            Self::Kubernetes => "platform-kubernetes-first",
            Self::ClusterApi => "platform-cluster-api-first",
        }
    }
}

/// Runs one operator while both are upgraded, in a separate cluster.
///
/// # Errors
/// Something cannot be started, queried or changed; a machine that was not kept is in the result.
pub(super) fn run(
    root: &Path,
    programs: &Programs,
    (first, folder): (UpgradeOrder, &Path),
) -> Result<(Results, Value, String), Box<dyn Error>> {
    let [old, ..] = first.pairs();
    cluster(root, &["down", "--name", NAME])?;
    cluster(root, &in_versions("up", old))?;
    let done = sequence(root, programs, (first, folder));
    cluster(root, &["down", "--name", NAME])?;
    let (results, stored) = done?;
    let kept = json!({
        "server": first.title(),
        "about": format!(
            "One operator ran all the time. At the end, Machines were stored as {stored} alone."
        ),
        "results": results.result(),
    });
    Ok((results, kept, first.label().to_owned()))
}

/// The arguments for a cluster with these versions of Kubernetes and Cluster API.
fn in_versions<'w>(
    task: &'w str,
    (kubernetes, cluster_api): (&'w str, &'w str),
) -> [&'w str; 7] {
    [
        task,
        "--name",
        NAME,
        "--kubernetes",
        kubernetes,
        "--cluster-api",
        cluster_api,
    ]
}

/// Runs a task of `cargo xtask cluster`.
fn cluster(root: &Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["xtask", "cluster"])
        .args(words)
        .current_dir(root);
    process::run(&mut cargo)
}

fn sequence(
    root: &Path,
    programs: &Programs,
    (first, folder): (UpgradeOrder, &Path),
) -> Result<(Results, String), Box<dyn Error>> {
    let server = Server::real(NAME)?;
    sequence::install(programs.path(Version::Newer), &server)?;
    let mut operator = Operator::start(programs, Version::Newer, &server, folder)?;
    sequence::begin(&server)?;
    operator.settle()?;
    let before = sequence::observe(&server)?;
    let mut results = Results::default();
    for pair in first.pairs() {
        let (kubernetes, cluster_api) = pair;
        eprintln!("Kubernetes {kubernetes}, Cluster API {cluster_api}");
        cluster(root, &in_versions("upgrade", pair))?;
        operator.settle()?;
        if !operator.is_running()? {
            return Err("the operator has ended".into());
        }
        let runs = json!({"kubernetes": kubernetes, "clusterAPI": cluster_api});
        results
            .steps
            .push(Step::observe(&server, &before, (runs, false))?);
    }
    let stored = stored(&server)?;
    results.finish(&server)?;
    if !operator.is_running()? {
        return Err("the operator has ended".into());
    }
    Ok((results, stored))
}

/// The version in which Machines are stored. Waits until it is the only one.
fn stored(server: &Server) -> Result<String, Box<dyn Error>> {
    let mut stored = Value::Null;
    until("Machines are stored in one version", || {
        let words = ["crd", "machines.cluster.x-k8s.io"];
        stored = server.management.get(&words)?["status"]["storedVersions"].take();
        Ok(stored.as_array().is_some_and(|it| it.len() == 1))
    })?;
    Ok(super::text(&stored, "/0").to_owned())
}

#[cfg(test)]
mod tests {
    use super::UpgradeOrder;

    #[test]
    fn one_of_the_two_is_upgraded_at_a_time() {
        for order in [UpgradeOrder::Kubernetes, UpgradeOrder::ClusterApi] {
            let pairs = order.pairs();
            for steps in pairs.windows(2) {
                let (before, after) = (steps[0], steps[1]);
                assert_ne!(before.0 == after.0, before.1 == after.1, "{pairs:?}");
            }
        }
    }
}
