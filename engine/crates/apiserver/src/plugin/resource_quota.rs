//! ResourceQuota: limits the usage of a namespace (plugin/resourcequota in k8s.io/apiserver,
//! pkg/quota in Kubernetes).
//!
//! Requests are serialized. The usage is therefore counted during admission and is always current;
//! the controller of the same name writes it into the status.

mod scope;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubemu_admission::Quantity;
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::pod::{list, text};
use super::pod_resources::{self, Amounts};
use super::{Attributes, Plugin};
use crate::admission_configuration::{Fields, Shape};
use crate::resource::{GroupResource, Resource};
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Object;
use usage::Evaluator;

pub(crate) use usage::used;

/// The plugin.
#[derive(Debug, Default)]
pub(super) struct ResourceQuota {
    limited: Vec<LimitedResource>,
}

/// A resource that can only be used if a quota covers it.
#[derive(Clone, Debug)]
struct LimitedResource {
    resource: GroupResource,
    /// Substrings of the names of the limited resources.
    contains: Vec<String>,
    /// Requirements on scopes.
    scopes: Vec<Value>,
}

const CONFIGURATION: Shape = Shape {
    kind: "ResourceQuotaConfiguration",
    versions: &[
        "apiserver.config.k8s.io/v1",
        "resourcequota.admission.k8s.io/v1",
        "resourcequota.admission.k8s.io/v1beta1",
        "resourcequota.admission.k8s.io/v1alpha1",
    ],
    fields: &["limitedResources"],
};

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn description(&self) -> &'static str {
        "Rejects objects that exceed the ResourceQuotas of their namespace: compute \
         resources, storage, and the number of objects of any resource \
         (`count/<resource>.<group>`)."
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::read(configuration, &CONFIGURATION)?;
        let mut limited = Vec::new();
        for entry in fields.list("limitedResources")? {
            let known = ["apiGroup", "resource", "matchContains", "matchScopes"];
            entry.only(&known)?;
            let resource = entry.text("resource")?;
            if resource.is_empty() {
                return Err(format!("{}.resource: Required value", entry.path()));
            }
            limited.push(LimitedResource {
                resource: GroupResource::new(&entry.text("apiGroup")?, &resource),
                contains: entry.texts("matchContains")?,
                scopes: entry.values("matchScopes")?,
            });
        }
        Ok(Arc::new(Self { limited }))
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_namespace =
            attributes.resource().storage == GroupResource::new("", "namespaces");
        let Some(object) = object else {
            return Ok(());
        };
        let evaluator = Evaluator::of(&attributes.resource().storage);
        if attributes.namespace().is_empty()
            || is_namespace
            || !evaluator.handles(attributes, object)
        {
            return Ok(());
        }
        let resource = GroupResource::new("", "resourcequotas");
        // Events are never counted.
        if attributes.resource().storage == GroupResource::new("", "events") {
            return Ok(());
        }
        let quotas = cluster.objects(&resource, Some(attributes.namespace()));
        if quotas.is_empty() && self.limited.is_empty() {
            return Ok(());
        }
        Check {
            cluster,
            attributes,
            evaluator,
            object,
        }
        .run(&quotas, &self.limited)
    }
}

/// The check of a request against the quotas of its namespace (`CheckRequest`).
struct Check<'a> {
    cluster: &'a State,
    attributes: &'a Attributes<'a>,
    evaluator: Evaluator,
    object: &'a Value,
}

impl Check<'_> {
    fn run(&self, quotas: &[Object], limited: &[LimitedResource]) -> Result<(), Status> {
        let evaluator = &self.evaluator;
        let mut covered = BTreeSet::new();
        let mut scopes = Vec::new();
        let mut matching = Vec::new();
        for quota in quotas {
            scopes.extend(
                scope::selectors(quota)
                    .into_iter()
                    .filter(|it| evaluator.matches_scope(it, self.object)),
            );
            let hard = pod_resources::amounts(&quota["spec"]["hard"]);
            let restricted = evaluator.restricted(hard.keys());
            if restricted.is_empty() || !evaluator.matches(quota, self.object) {
                continue;
            }
            if let Err(why) = evaluator.constraints(&restricted, self.object) {
                let name = text(&quota["metadata"], "name");
                let why = format!("failed quota: {name}: {why}");
                return Err(self.attributes.forbidden(&why));
            }
            covered.extend(restricted);
            matching.push((quota, hard));
        }
        let now = evaluator.usage(self.object, self.cluster);
        let delta = self.delta(&now);
        if delta.is_empty() && matching.iter().all(|(it, _)| self.was_counted(it)) {
            return Ok(());
        }
        self.check_limited(limited, &covered, &scopes)?;
        for (quota, hard) in matching {
            let delta = if self.was_counted(quota) {
                &delta
            } else {
                &now
            };
            self.check_quota(quota, &hard, delta)?;
        }
        Ok(())
    }

    /// Whether a quota covered the object before the request.
    fn was_counted(&self, quota: &Value) -> bool {
        let old = self.attributes.old_object();
        old.is_some_and(|old| self.evaluator.matches(quota, old))
            || self.attributes.operation() == Operation::Create
    }

    /// The usage that the request adds to that of the old object.
    fn delta(&self, now: &Amounts) -> Amounts {
        let before = self
            .attributes
            .old_object()
            .map(|it| self.evaluator.usage(it, self.cluster))
            .unwrap_or_default();
        let mut delta = now.clone();
        for (resource, amount) in &mut delta {
            if let Some(previous) = before.get(resource)
                && let Some(more) = amount.sum(&previous.negated())
            {
                *amount = more;
            }
        }
        delta.retain(|_, it| it.signum() > 0);
        delta
    }

    fn check_quota(
        &self,
        quota: &Value,
        hard: &Amounts,
        delta: &Amounts,
    ) -> Result<(), Status> {
        let requested: Amounts = delta
            .iter()
            .filter(|(it, _)| hard.contains_key(*it))
            .map(|(resource, amount)| (resource.clone(), amount.clone()))
            .collect();
        if requested.is_empty() || self.attributes.subresource() == "status" {
            return Ok(());
        }
        let mut used = used(self.cluster, quota);
        if let Some(old) = self.attributes.old_object()
            && !self.evaluator.matches(quota, old)
        {
            // The quota did not cover the object before the request, and covers it after.
            used.retain(|resource, _| hard.contains_key(resource));
        }
        let zero = Quantity::count(0);
        let of = |amounts: &Amounts, resource: &str| {
            amounts
                .get(resource)
                .cloned()
                .unwrap_or_else(|| zero.clone())
        };
        let exceeded: Vec<&String> = requested
            .iter()
            .filter(|(resource, amount)| {
                let sum = of(&used, resource).sum(amount);
                sum.is_none_or(|sum| sum > of(hard, resource))
            })
            .map(|(resource, _)| resource)
            .collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let listed = |amounts: &Amounts| {
            let parts = exceeded.iter();
            let parts = parts.map(|it| format!("{it}={}", of(amounts, it)));
            parts.collect::<Vec<_>>().join(",")
        };
        Err(self.attributes.forbidden(&format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            text(&quota["metadata"], "name"),
            listed(&requested),
            listed(&used),
            listed(hard)
        )))
    }

    /// Rejects the use of limited resources that no quota covers.
    fn check_limited(
        &self,
        limited: &[LimitedResource],
        covered: &BTreeSet<String>,
        scopes: &[Value],
    ) -> Result<(), Status> {
        let resource: &Resource = self.attributes.resource();
        let own = limited.iter().filter(|it| it.resource == resource.storage);
        let usage = self.evaluator.usage(self.object, self.cluster);
        let mut uncovered: Vec<&str> = own
            .flat_map(|it| {
                let named = usage.iter().filter(|(_, amount)| amount.signum() > 0);
                named.filter(|(name, _)| {
                    it.contains.iter().any(|part| name.contains(part))
                })
            })
            .map(|(name, _)| name.as_str())
            .filter(|it| !covered.contains(*it))
            .collect();
        uncovered.sort_unstable();
        uncovered.dedup();
        if !uncovered.is_empty() {
            let why = format!("insufficient quota to consume: {}", uncovered.join(","));
            return Err(self.attributes.forbidden(&why));
        }
        let required = limited.iter().flat_map(|it| &it.scopes);
        let required =
            required.filter(|it| self.evaluator.matches_scope(it, self.object));
        let mut unmet = required.filter(|it| {
            !scopes
                .iter()
                .any(|previous| previous["scopeName"] == it["scopeName"])
        });
        let Some(scope) = unmet.next() else {
            return Ok(());
        };
        let values = list(scope, "values").iter().filter_map(Value::as_str);
        let values: Vec<&str> = values.collect();
        let shown = format!(
            "{{{} {} [{}]}}",
            text(scope, "scopeName"),
            text(scope, "operator"),
            values.join(" ")
        );
        let message = format!("insufficient quota to match these scopes: [{shown}]");
        Err(Status::new(500, Reason::Unknown, message))
    }
}

/// Amounts in the format of a status.
pub(crate) fn amounts_value(amounts: &BTreeMap<String, Quantity>) -> Value {
    let pairs = amounts.iter();
    pairs
        .map(|(resource, amount)| (resource.clone(), json!(amount.to_string())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
