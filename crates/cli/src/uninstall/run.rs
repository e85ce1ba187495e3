//! Removes the installed objects.

use std::io::Write;
use std::time::Duration;

use fivespot_api::name;
use serde_json::{Value, json};

use super::inventory::{Inventory, Object};
use super::{RemovalOptions, namespace};
use crate::reader::Reader;
use crate::requests::Response;
use crate::{Failure, Outcome};

/// The interval between two checks whether an object is gone.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The removal of an inventory.
pub(super) struct Removal<'r> {
    pub(super) reader: &'r Reader,
    pub(super) inventory: &'r Inventory,
    pub(super) options: RemovalOptions,
    /// How long the deletion of the objects of a step may take.
    pub(super) timeout: Duration,
}

impl Removal<'_> {
    /// Runs the steps in order, and stops at the first step that does not succeed.
    ///
    /// # Errors
    /// The output cannot be written, or the server refuses a request.
    pub(super) async fn run(&self, out: &mut dyn Write) -> Result<Outcome, Failure> {
        let inventory = self.inventory;
        if !self.options.keeps_machines {
            for objects in [&inventory.machines, &inventory.others] {
                for object in objects {
                    self.delete(object, "Background", out).await?;
                }
                if !self.wait_until_deleted(objects, out).await? {
                    return Ok(Outcome::No);
                }
            }
        }
        for object in &inventory.running {
            self.delete(object, "Foreground", out).await?;
        }
        if !self.wait_until_deleted(&inventory.running, out).await? {
            return Ok(Outcome::No);
        }
        if self.options.releases_machines() {
            if !inventory.releases.is_empty() {
                return self.print_helm_commands(out);
            }
            let all: Vec<Object> = inventory.custom().cloned().collect();
            for object in &all {
                self.release(object).await?;
                self.delete(object, "Orphan", out).await?;
            }
            if !self.wait_until_deleted(&all, out).await? {
                return Ok(Outcome::No);
            }
        }
        for object in &inventory.rest {
            self.delete(object, "Background", out).await?;
        }
        self.delete_namespaces(out).await?;
        if !inventory.releases.is_empty() {
            return self.print_helm_commands(out);
        }
        if self.options.deletes_crds {
            for object in &inventory.crds {
                self.delete(object, "Background", out).await?;
            }
        } else {
            inventory.describe_retained(out)?;
        }
        Ok(Outcome::Yes)
    }

    /// Deletes the namespaces that contain nothing else. Their contents are read again, because
    /// objects may have been created since the inventory.
    async fn delete_namespaces(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for (object, _) in &self.inventory.namespaces {
            let reason =
                namespace::why_kept(self.reader, &object.name, self.options).await;
            match reason {
                None => self.delete(object, "Background", out).await?,
                Some(reason) => writeln!(out, "Kept: {object} ({reason})")?,
            }
        }
        Ok(())
    }

    /// Prints the Helm commands. Later steps need a second run.
    fn print_helm_commands(&self, out: &mut dyn Write) -> Result<Outcome, Failure> {
        for release in &self.inventory.releases {
            writeln!(out, "Now run: {}", release.command())?;
        }
        if self.options.deletes_crds {
            writeln!(out, "and then `5spot uninstall` again with the same flags.")?;
            return Ok(Outcome::No);
        }
        self.inventory.describe_retained(out)?;
        Ok(Outcome::Yes)
    }

    async fn delete(
        &self,
        object: &Object,
        propagation: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let done = self
            .reader
            .requests
            .delete(&object.path, propagation)
            .await
            .done();
        done.map_err(|why| request_failure(object, why))?;
        writeln!(out, "deleted {object}")?;
        Ok(out.flush()?)
    }

    /// Removes the operator's finalizer from an object, so that its machine is kept.
    async fn release(&self, object: &Object) -> Result<(), Failure> {
        let Response::Found(found) = self.reader.requests.get(&object.path).await else {
            return Ok(());
        };
        let finalizers = found["metadata"]["finalizers"].as_array();
        let others: Vec<&Value> = finalizers
            .into_iter()
            .flatten()
            .filter(|it| *it != name::FINALIZER)
            .collect();
        let change = json!({"metadata": {
            "finalizers": others,
            // A finalizer that was added meanwhile is not overwritten.
            "resourceVersion": found["metadata"]["resourceVersion"],
        }});
        let done = self
            .reader
            .requests
            .merge(&object.path, &change)
            .await
            .done();
        done.map_err(|why| request_failure(object, why))
    }

    /// Waits until all objects are gone. Prints those that are not gone within the timeout.
    async fn wait_until_deleted(
        &self,
        objects: &[Object],
        out: &mut dyn Write,
    ) -> Result<bool, Failure> {
        let all = async {
            for object in objects {
                while !matches!(
                    self.reader.requests.get(&object.path).await,
                    Response::NotFound
                ) {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        };
        if tokio::time::timeout(self.timeout, all).await.is_ok() {
            return Ok(true);
        }
        for object in objects {
            if let Response::Found(found) = self.reader.requests.get(&object.path).await {
                let message = found["status"]["message"].as_str().unwrap_or_default();
                writeln!(
                    out,
                    "still exists: {object}: {}",
                    crate::plain::line(message)
                )?;
            }
        }
        Ok(false)
    }
}

fn request_failure(object: &Object, why: String) -> Failure {
    Failure::new(format!("deleting {object}"), why).remedy(
        "run it as a cluster administrator, then again: it continues where it stopped",
    )
}
