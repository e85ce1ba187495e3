//! The workload clusters in use, and the ScheduledMachines that use them.

use std::sync::Arc;

use fivespot_runtime::cache::{Reservation, TooLarge};
use serde_json::Value;

use super::Context;
use crate::Key;
use crate::observe::workload::Workload;

impl Context {
    /// The workload cluster of that Cluster, for `key`. The first call connects to it.
    pub(crate) fn workload(self: &Arc<Self>, cluster: &Key, key: &Key) -> Arc<Workload> {
        let (workload, is_new) = {
            let mut tables = self.tables();
            let is_new = !tables.workloads.contains_key(cluster);
            let make = || Arc::new(Workload::new(cluster.clone()));
            let entry = tables.workloads.entry(cluster.clone());
            (entry.or_insert_with(make).clone(), is_new)
        };
        workload.add_user(key);
        if is_new {
            workload.open(self);
        }
        workload
    }

    /// The workload cluster that `key` uses.
    pub(crate) fn used_by(&self, key: &Key) -> Option<Arc<Workload>> {
        let tables = self.tables();
        let mut workloads = tables.workloads.values();
        workloads.find(|workload| workload.is_used_by(key)).cloned()
    }

    /// Reserves memory for an object of the workload cluster that `key` uses, which a reconcile
    /// keeps until it ends.
    ///
    /// # Errors
    /// The memory budget of the cluster is exceeded, or an identifier is too long.
    pub(crate) fn reserve(
        &self,
        key: &Key,
        object: &Value,
    ) -> Result<Option<Reservation>, TooLarge> {
        let workload = self.used_by(key);
        workload.map(|it| it.reserve_object(object)).transpose()
    }

    /// `key` uses no workload cluster except `except`. Workload clusters without users are closed.
    pub(crate) fn release(&self, key: &Key, except: Option<&Key>) {
        let idle: Vec<Arc<Workload>> = {
            let mut tables = self.tables();
            let idle: Vec<Key> = tables
                .workloads
                .iter()
                .filter(|(cluster, _)| Some(*cluster) != except)
                .filter(|(_, workload)| workload.remove_user(key))
                .map(|(cluster, _)| cluster.clone())
                .collect();
            idle.iter()
                .filter_map(|cluster| tables.workloads.remove(cluster))
                .collect()
        };
        for workload in idle {
            workload.close(self);
        }
    }
}
