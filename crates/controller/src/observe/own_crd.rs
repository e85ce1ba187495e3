//! Whether the stored CustomResourceDefinition of ScheduledMachine has the fields that this
//! operator needs: an API server drops other fields from every object.

use std::sync::{Mutex, PoisonError};

use fivespot_api::{crd, name};
use fivespot_runtime::http::{Address, ApiClient};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use tokio::sync::OnceCell;

use crate::failure;

/// The result of reading the stored CRD.
#[derive(Debug, Default)]
pub(crate) struct OwnCrd {
    /// Set once the CRD was read for the first time.
    is_read: OnceCell<()>,
    /// The fields that it lacks.
    missing: Mutex<Vec<&'static str>>,
}

impl OwnCrd {
    /// A message about the fields that the CRD lacks. `None` if it lacks none or could not
    /// be read. The first call reads it.
    pub(crate) async fn outdated(&self, api: &ApiClient) -> Option<String> {
        self.is_read
            .get_or_init(|| async {
                self.read(api).await;
            })
            .await;
        self.problem()
    }

    /// The same, according to the last read.
    pub(crate) fn problem(&self) -> Option<String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, rest @ ..] = missing.as_slice() else {
            return None;
        };
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "the CustomResourceDefinition {} in the cluster is older than this operator and lacks \
             {first}{more}: no machine is created; apply the CustomResourceDefinitions of this \
             release",
            name::crd(),
        ))
    }

    /// Reads the CRD. Returns whether the missing fields have changed.
    pub(crate) async fn read(&self, api: &ApiClient) -> bool {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let all = Address {
            resource: &resource,
            namespace: None,
            name: "",
            projection: None,
        };
        let own = format!("metadata.name={}", name::crd());
        let mut missing = Vec::new();
        let read = api
            .page(&all, &[("fieldSelector", &own)], |stored| {
                missing = crd::missing_fields(&stored);
                Ok(())
            })
            .await;
        if let Err(error) = read {
            let error = failure::message(&error);
            tracing::debug!(error, "the stored CRD could not be read");
            return false;
        }
        let mut before = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = *before != missing;
        *before = missing;
        is_changed
    }
}
