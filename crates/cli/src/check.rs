//! `5spot check`: whether 5-Spot works in this cluster.

mod agent;
mod blocked;
mod class;
mod crd;
mod finding;
mod machine;
mod operator;
mod policy;
mod server;
mod webhook;
mod zones;

use std::io::Write;

use fivespot_api::verdict::{self, Lease, Verdict};
use fivespot_api::{ScheduledMachine, name};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::cluster::{self, Source};
use crate::output::{self, Format};
use crate::reader::Reader;
use crate::requests::Requests;
use crate::{Failure, Outcome};
use finding::Finding;

/// Check whether 5-Spot works in this cluster, and print a remedy for each problem
///
/// Only reads. Checks the CRDs and their version, the policy, the admission webhooks and their
/// endpoints, the Lease, the clocks, the release of the time zones, how many machines and capacities
/// are blocked, the kinds of the providers that ScheduledMachines name, the kubeconfig Secrets of
/// their Clusters, and the reclaim agent where a ScheduledMachine has commands to reclaim. What the
/// class of a machine sets counts as if the machine set it. What is wrong with one machine or capacity
/// alone is a warning.
///
/// Exit codes: 0 no errors (there may be warnings), 1 an error was found or a check could not be
/// completed, 2 the API server cannot be reached.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot check
  5spot check --context prod -o json
  5spot check --operator-namespace platform")]
pub(crate) struct Args {
    #[command(flatten)]
    lease: LeaseFlags,
    /// Name of the operator's ServiceAccount
    #[arg(long, value_name = "NAME", default_value = name::CONTROLLER)]
    service_account: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    source: Source,
}

/// Where the operator is expected.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its ServiceAccount.
    pub(crate) account: String,
    /// Its Lease, unless it is divided into shards.
    pub(crate) lease: String,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let operator = Operator {
        account: args.service_account.clone(),
        ..args.lease.operator()
    };
    let findings = cluster::block_on(async {
        let reader = Reader::connect(&args.source).await?;
        Ok(findings(&reader, &operator).await)
    })?;
    print(&findings, args.output, out)?;
    Ok(if findings.iter().all(Finding::is_ok_or_warning) {
        Outcome::Yes
    } else {
        Outcome::No
    })
}

/// Whether an operator holds its Lease.
pub(crate) async fn is_lease_fresh(reader: &Reader, operator: &Operator) -> bool {
    let lease = operator::read_lease(&reader.requests, operator, reader.now).await;
    operator::lease(lease, operator).is_ok_or_warning()
}

/// What a verdict depends on besides the object.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    /// Whether an operator holds its Lease.
    pub(crate) lease: Lease,
    /// The same of what reconciles capacities: a controller of their own, else the operator.
    pub(crate) capacity_lease: Lease,
    /// The current time of the cluster.
    pub(crate) now: Timestamp,
}

impl Judge {
    /// The verdict about a ScheduledMachine as it was read. One that cannot be decoded has the error as
    /// its cause.
    pub(crate) fn machine(&self, object: &Value) -> Verdict {
        match ScheduledMachine::deserialize(object) {
            Ok(machine) => verdict::verdict(&machine, &self.lease, self.now),
            Err(error) => Verdict::undecoded(error),
        }
    }

    /// The verdict about a ScheduledCapacity as it was read.
    pub(crate) fn capacity(&self, object: &Value) -> Verdict {
        verdict::capacity::verdict_of(object, &self.capacity_lease, self.now)
    }

    /// Why no operator runs, if its Lease shows that, and what to do about it. The state of machines
    /// is outdated then.
    pub(crate) fn warning(&self, operator: &Operator) -> Option<String> {
        operator::lease(self.lease.clone(), operator).error_text()
    }

    /// Reads the Leases at `now`.
    async fn of(requests: &Requests, operator: &Operator, now: Timestamp) -> Self {
        let lease = operator::read_lease(requests, operator, now).await;
        let own = operator::read_capacity_lease(requests, operator, now).await;
        Self {
            capacity_lease: own.unwrap_or_else(|| lease.clone()),
            lease,
            now,
        }
    }

    /// Reads the Leases and the time of the cluster. A user who may not read the Lease is not told
    /// that no operator runs.
    pub(crate) async fn read(client: &Client, operator: &Operator) -> Self {
        let now = cluster::now(client).await;
        Self::of(&Requests(client.clone()), operator, now).await
    }
}

/// Flags that say where the operator holds its Lease.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LeaseFlags {
    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = name::SYSTEM_NAMESPACE)]
    pub(crate) operator_namespace: String,
    /// Name of the operator's Lease
    #[arg(long, value_name = "NAME", default_value = name::LEADER_LEASE)]
    pub(crate) lease_name: String,
}

impl LeaseFlags {
    /// The operator, with the usual ServiceAccount.
    pub(crate) fn operator(&self) -> Operator {
        Operator {
            namespace: self.operator_namespace.clone(),
            account: name::CONTROLLER.to_owned(),
            lease: self.lease_name.clone(),
        }
    }
}

/// Runs every check. Checks that can explain the failure of others come first.
async fn findings(reader: &Reader, operator: &Operator) -> Vec<Finding> {
    let mut all = vec![server::check(reader)];
    let crds = crd::check(reader).await;
    let is_installed = crds.iter().all(|it| !it.is_missing());
    all.extend(crds);
    all.extend(policy::check(reader, operator).await);
    all.extend(webhook::check(reader).await);
    all.extend(operator::check(reader, operator).await);
    all.extend(operator::clock(reader, operator).await);
    if is_installed {
        all.extend(operator::definitions(reader, operator).await);
        let Reader { requests, now, .. } = reader;
        let classes = class::read(requests).await;
        let machines = machine::read(reader).await;
        let machines = machines.map(|all| class::with_classes(all, &classes));
        let judge = Judge::of(requests, operator, *now).await;
        all.extend(class::check(&classes, &machines));
        all.extend(blocked::among_machines(&machines, &judge));
        let capacities = blocked::capacities(reader).await;
        all.extend(blocked::among_capacities(&capacities, &judge));
        all.extend(machine::check(reader, operator, &machines).await);
        all.extend(agent::check(&machines));
    }
    all
}

fn print(
    findings: &[Finding],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    output::print(out, format, &json!({"items": findings}), |out| {
        for finding in findings {
            writeln!(out, "{finding}")?;
        }
        writeln!(out, "{}", finding::summary(findings))
    })
}

#[cfg(test)]
mod tests;
