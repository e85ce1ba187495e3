//! `5spot uninstall`: removes 5-Spot from a cluster in an order that does not block on finalizers.
//!
//! Objects are found by their label, not by the manifests of this version, and a namespace is
//! deleted only if no object of any served kind is left in it. The command polls once a second
//! rather than watching a dozen kinds, because it runs once.

mod inventory;
mod namespace;
mod run;

use std::io::Write;

use fivespot_api::name;
use jiff::SignedDuration;

use crate::check::LeaseFlags;
use crate::cluster::{self, Source};
use crate::reader::Reader;
use crate::{Failure, Outcome};
use inventory::Inventory;

/// Remove 5-Spot from a cluster, in an order that loses no machine and blocks no deletion
///
/// First, the ScheduledMachines are deleted while the operator runs, which drains and removes their
/// machines; then the classes, schedules and other objects. With --keep-machines they all stay, and
/// so do the machines.
///
/// Then the operator, its roles, policies and webhook are deleted. Helm releases are not changed;
/// the command that uninstalls them is printed. The CRDs are kept, unless --delete-crds is given.
///
/// Only the namespaces 5spot-system, 5spot-reclaim-agent and 5spot-admission are deleted, and only
/// if they contain no other objects.
///
/// Exit codes: 0 done, 1 not everything was removed, 2 error (the cluster cannot be read, no
/// operator runs that could remove the machines).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot uninstall --dry-run
  5spot uninstall --keep-machines
  5spot uninstall --yes --delete-crds")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Args {
    /// Print what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep all machines. With --delete-crds, Cluster API manages them as any other Machine
    /// afterwards
    #[arg(long)]
    keep_machines: bool,
    /// Delete the CRDs too
    #[arg(long)]
    delete_crds: bool,
    /// Confirm that the objects of the CRDs are deleted, and the machines with them unless they are
    /// kept
    #[arg(long)]
    yes: bool,
    /// How long to wait for machines to be removed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1h",
        value_parser = crate::time::duration
    )]
    timeout: fivespot_schedule::Duration,
    #[command(flatten)]
    lease: LeaseFlags,
    #[command(flatten)]
    source: Source,
}

/// Whether machines are kept and CRDs are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemovalOptions {
    keeps_machines: bool,
    deletes_crds: bool,
}

impl RemovalOptions {
    /// Whether the ScheduledMachines are deleted and their machines kept. A CRD can only be deleted
    /// without the machines in this way.
    fn releases_machines(self) -> bool {
        self.keeps_machines && self.deletes_crds
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(async {
        let reader = Reader::connect(&args.source).await?;
        let options = RemovalOptions {
            keeps_machines: args.keep_machines,
            deletes_crds: args.delete_crds,
        };
        let inventory = Inventory::read(&reader, &args.lease.operator(), options).await?;
        if args.dry_run {
            inventory.describe(options, out)?;
            return Ok(Outcome::Yes);
        }
        confirmed(&inventory, options, args.yes)?;
        let removes = !options.keeps_machines && inventory.count(name::KIND) > 0;
        if removes && !inventory.has_running_operator {
            return Err(Failure::new(
                "uninstalling",
                "no operator runs that could remove the machines",
            )
            .remedy(
                "start it (`5spot check` shows what is wrong), or keep the machines with \
                 --keep-machines",
            ));
        }
        let removal = run::Removal {
            reader: &reader,
            inventory: &inventory,
            options,
            timeout: SignedDuration::from(args.timeout).unsigned_abs(),
        };
        removal.run(out).await
    })
}

/// Whether the removal of what people have written was confirmed.
///
/// # Errors
/// It was not.
fn confirmed(
    inventory: &Inventory,
    options: RemovalOptions,
    is_confirmed: bool,
) -> Result<(), Failure> {
    let is_asked = !is_confirmed && (!options.keeps_machines || options.deletes_crds);
    let Some(counted) = inventory.counted(options).filter(|_| is_asked) else {
        return Ok(());
    };
    let otherwise = if options.keeps_machines {
        "leave --delete-crds out"
    } else {
        "keep them with --keep-machines"
    };
    Err(
        Failure::new("uninstalling", format!("this deletes {counted}"))
            .remedy(format!("confirm it with --yes, or {otherwise}")),
    )
}

#[cfg(test)]
mod tests;
