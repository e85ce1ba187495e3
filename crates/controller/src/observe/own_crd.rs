//! Whether the stored CustomResourceDefinition of ScheduledMachine has the fields that this
//! operator needs: an API server drops other fields from every object.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_api::{crd, name};
use fivespot_runtime::http::{Address, ApiClient};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use tokio::sync::OnceCell;

use crate::failure;

/// What is known about the stored CRD.
#[derive(Debug, Default)]
pub(crate) struct OwnCrd {
    /// Set once the CRD was read for the first time, or that failed.
    pub(super) is_read: OnceCell<()>,
    reads: Mutex<Reads>,
}

/// The results of reading the stored CRD.
#[derive(Debug, Default)]
struct Reads {
    /// The fields that it lacked when it was last read; `None` if it never was.
    missing: Option<Vec<&'static str>>,
    /// Why it could not be read since; `None` if it could.
    error: Option<String>,
    /// Whether it is read again in the background until that succeeds.
    is_retrying: bool,
}

impl OwnCrd {
    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message, according to the last read.
    pub(crate) fn problem(&self) -> Option<String> {
        let reads = self.reads();
        let own = name::crd();
        let Some(missing) = &reads.missing else {
            let error = reads.error.as_ref()?;
            return Some(format!(
                "the CustomResourceDefinition {own} could not be read, so it may lack fields that \
                 this operator needs: no machine is created; {error}"
            ));
        };
        let [first, rest @ ..] = missing.as_slice() else {
            return None;
        };
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "the CustomResourceDefinition {own} in the cluster is older than this operator and \
             lacks {first}{more}: no machine is created; apply the CustomResourceDefinitions of \
             this release"
        ))
    }

    /// Whether the last read failed and nothing tries again yet.
    pub(super) fn begins_retrying(&self) -> bool {
        let mut reads = self.reads();
        let begins = reads.error.is_some() && !reads.is_retrying;
        reads.is_retrying |= begins;
        begins
    }

    /// Whether the last read failed; else the retries end.
    pub(super) fn retries(&self) -> bool {
        let mut reads = self.reads();
        reads.is_retrying = reads.error.is_some();
        reads.is_retrying
    }

    /// Reads the CRD. Returns whether a decision was made from other fields, or without any.
    pub(super) async fn read(&self, api: &ApiClient) -> bool {
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
        let mut reads = self.reads();
        if let Err(error) = read {
            let error = failure::message(&error);
            tracing::debug!(error, "the stored CRD could not be read");
            reads.error = Some(error);
            return false;
        }
        let failed = reads.error.take().is_some();
        let before = reads.missing.replace(missing);
        match before {
            Some(before) => reads.missing.as_ref() != Some(&before),
            None => failed,
        }
    }
}
