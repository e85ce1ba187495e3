//! A broken opening in words.

use fivespot_api::ScheduledMachine;
use fivespot_capi::one_line;
use fivespot_plan::limits::Limit;

use crate::{BrokenBy, BrokenOpening, FleetMachine};

impl BrokenOpening {
    /// Why the opening cannot be kept, on one line. `fleet` is the one that was forecast.
    pub fn message(&self, fleet: &[FleetMachine<'_>]) -> String {
        let object = fleet.get(self.machine).map(|it| it.object);
        let class = class(object);
        let name = |place: &usize| {
            let machine = fleet.get(*place);
            machine.map_or_else(String::new, |it| {
                let name = it.object.metadata.name.as_deref().unwrap_or_default();
                one_line(&format!("{}/{name}", it.namespace))
            })
        };
        let namespace =
            || one_line(fleet.get(self.machine).map_or("", |it| it.namespace));
        match &self.cause {
            BrokenBy::NoHostFree { hosts, holders } => {
                let named: Vec<String> = holders.iter().map(name).collect();
                let more = match hosts.saturating_sub(named.len()) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let all = match hosts {
                    1 => "the only host".to_owned(),
                    hosts => format!("all {hosts} hosts"),
                };
                let verb = if *hosts == 1 { "is" } else { "are" };
                let named = named.join(", ");
                format!("{all} of {class} {verb} in use by {named}{more}")
            }
            BrokenBy::HostTaken { host, holder } => {
                let names = names_host(fleet.get(*holder), host);
                let too = if names { ", which names it too" } else { "" };
                let (host, holder) = (one_line(host), name(holder));
                format!("host {host} of {class} is in use by {holder}{too}")
            }
            BrokenBy::HostNotFound { host } => {
                format!("{class} has no host {}", one_line(host))
            }
            BrokenBy::ClusterNotAllowed { allowed } => {
                let cluster = object.map_or("", |it| &it.spec.cluster_name);
                let (cluster, allowed) =
                    (one_line(cluster), one_line(&allowed.join(", ")));
                format!("{class} does not allow Cluster {cluster}, only {allowed}")
            }
            BrokenBy::NamespaceNotSelected => {
                format!("{class} does not select namespace {}", namespace())
            }
            BrokenBy::StartsReached { most } => {
                format!("startsPerMinute {most} of {class} is reached")
            }
            BrokenBy::LimitReached { limit, most } => {
                let namespace = namespace();
                match limit {
                    Limit::Machines => format!(
                        "limits.machinesPerNamespace of {class} is reached in {namespace}, {most}"
                    ),
                    Limit::Hours => format!(
                        "limits.hoursPerWeekPerNamespace of {class}, {most}, does not suffice in \
                         {namespace}"
                    ),
                }
            }
            BrokenBy::LeadTimeTooShort { lead_time, took } => format!(
                "the last provisioning took {took:#}, and the lead time is {lead_time:#}"
            ),
        }
    }

    /// What to do about it.
    pub fn remedy(&self, fleet: &[FleetMachine<'_>]) -> String {
        let object = fleet.get(self.machine).map(|it| it.object);
        let has_class = object.is_some_and(|it| it.spec.class.is_some());
        match &self.cause {
            BrokenBy::NoHostFree { .. } => {
                "have a host added to the class, or move a window".to_owned()
            }
            BrokenBy::HostTaken { .. } => {
                "name another host in spec.classRef.host, or move a window".to_owned()
            }
            BrokenBy::HostNotFound { .. } => "correct spec.classRef.host".to_owned(),
            BrokenBy::ClusterNotAllowed { .. } => {
                "correct spec.clusterName, or have it added to the class".to_owned()
            }
            BrokenBy::NamespaceNotSelected => {
                "name another class, or have the namespace labelled".to_owned()
            }
            BrokenBy::StartsReached { .. } => {
                "set a lead time, or have startsPerMinute raised".to_owned()
            }
            BrokenBy::LimitReached { .. } => {
                "have the limit raised, or let other machines run less".to_owned()
            }
            BrokenBy::LeadTimeTooShort { took, .. } => {
                let of = if has_class { " of the class" } else { "" };
                format!("set spec.provisioning.leadTime{of} to {took:#} or more")
            }
        }
    }
}

fn class(object: Option<&ScheduledMachine>) -> String {
    let class = object.and_then(|it| it.spec.class.as_ref());
    let class = class.map_or("", |class| &class.name);
    format!("ScheduledMachineClass {}", one_line(class))
}

/// Whether a machine names this host in its spec.
fn names_host(machine: Option<&FleetMachine<'_>>, host: &str) -> bool {
    let class = machine.and_then(|it| it.object.spec.class.as_ref());
    class.is_some_and(|class| class.host.as_deref() == Some(host))
}
