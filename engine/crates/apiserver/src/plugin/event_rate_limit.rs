//! EventRateLimit: limits the rate of Event writes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use jiff::Timestamp;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::admission_configuration::{Fields, Shape};
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::{Details, Reason, Status};

/// The plugin. Without a configuration it has no limits, and the server does not start.
#[derive(Debug, Default)]
pub(super) struct EventRateLimit {
    limits: Vec<Limit>,
}

/// A limit with its token buckets.
#[derive(Debug)]
struct Limit {
    kind: LimitKind,
    per_second: f64,
    burst: f64,
    max_buckets: NonZeroUsize,
    /// In the order of their last use.
    buckets: Mutex<IndexMap<String, Bucket>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitKind {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

const KINDS: [(&str, LimitKind); 4] = [
    ("Server", LimitKind::Server),
    ("Namespace", LimitKind::Namespace),
    ("User", LimitKind::User),
    ("SourceAndObject", LimitKind::SourceAndObject),
];
/// The default number of buckets of a limit.
const DEFAULT_BUCKETS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

const CONFIGURATION: Shape = Shape {
    kind: "Configuration",
    versions: &["eventratelimit.admission.k8s.io/v1alpha1"],
    fields: &["limits"],
};

impl Plugin for EventRateLimit {
    fn name(&self) -> &'static str {
        "EventRateLimit"
    }

    fn description(&self) -> &'static str {
        "Rejects Events that exceed the configured rates: of the server, of each \
         namespace, of each user, and of each source and object. Requires a \
         configuration."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn needs_configuration(&self) -> bool {
        true
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::read(configuration, &CONFIGURATION)?;
        let limits = fields.list("limits")?;
        if limits.is_empty() {
            return Err("limits: Invalid value: [] must not be empty".to_owned());
        }
        let limits = limits.iter().map(limit).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { limits }))
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_event = attributes.resource().storage == GroupResource::new("", "events");
        let writes = matches!(
            attributes.operation(),
            Operation::Create | Operation::Update
        );
        // A request that is performed again after a webhook call is already counted.
        if !is_event || !writes || attributes.is_dry_run() || cluster.is_retry() {
            return Ok(());
        }
        let now = cluster.instant();
        let refusals = self.limits.iter().filter_map(|limit| {
            let key = limit.key(attributes, object);
            (!limit.accept(&key, now)).then(|| {
                let kind = KINDS.iter().find(|it| it.1 == limit.kind);
                let kind = kind.map_or("", |it| it.0);
                format!("limit reached on type {kind} for key {key}")
            })
        });
        let refusals: Vec<String> = refusals.collect();
        if refusals.is_empty() {
            return Ok(());
        }
        let message = pod::aggregate(&refusals);
        let refused = Status::new(429, Reason::TooManyRequests, message);
        Err(refused.with_details(Details::default()))
    }
}

fn limit(fields: &Fields<'_>) -> Result<Limit, String> {
    fields.only(&["type", "qps", "burst", "cacheSize"])?;
    let (path, word) = (fields.path(), fields.text("type")?);
    let kind = KINDS.iter().find(|it| it.0 == word);
    let Some((_, kind)) = kind else {
        let known = KINDS.map(|it| format!("{:?}", it.0)).join(", ");
        return Err(format!(
            "{path}.type: Unsupported value: {word:?}: supported values: {known}"
        ));
    };
    let positive = |name: &str| {
        let number = fields.number(name)?.unwrap_or_default();
        let fits = i32::try_from(number).ok().filter(|it| *it > 0);
        let why = || format!("{path}.{name}: Invalid value: {number}: must be positive");
        fits.map(f64::from).ok_or_else(why)
    };
    let (per_second, burst) = (positive("qps")?, positive("burst")?);
    let size = fields.number("cacheSize")?.unwrap_or_default();
    if size < 0 && *kind != LimitKind::Server {
        return Err(format!(
            "{path}.cacheSize: Invalid value: {size}: must not be negative"
        ));
    }
    let max_buckets = usize::try_from(size).ok().and_then(NonZeroUsize::new);
    Ok(Limit {
        kind: *kind,
        per_second,
        burst,
        max_buckets: max_buckets.unwrap_or(DEFAULT_BUCKETS),
        buckets: Mutex::default(),
    })
}

impl Limit {
    /// The key of the bucket of an event.
    fn key(&self, attributes: &Attributes<'_>, event: Option<&Value>) -> String {
        match self.kind {
            LimitKind::Server => String::new(),
            LimitKind::Namespace => attributes.namespace().to_owned(),
            LimitKind::User => attributes.user().name.clone(),
            LimitKind::SourceAndObject => {
                event.map(source_and_object).unwrap_or_default()
            }
        }
    }

    /// Takes a token. Returns whether there was one.
    fn accept(&self, key: &str, now: Timestamp) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = buckets.shift_remove(key);
        let mut bucket = previous.unwrap_or(Bucket {
            tokens: self.burst,
            at: now,
        });
        let passed = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * self.per_second).min(self.burst);
        bucket.at = bucket.at.max(now);
        let accepted = bucket.tokens >= 1.0;
        if accepted {
            bucket.tokens -= 1.0;
        }
        if buckets.len() >= self.max_buckets.get() {
            buckets.shift_remove_index(0);
        }
        buckets.insert(key.to_owned(), bucket);
        accepted
    }
}

/// The source and the object of an event, in either version of Event.
fn source_and_object(event: &Value) -> String {
    let either = |old: &'static str, new: &'static str| {
        let found = &event[old];
        if found.is_object() {
            found
        } else {
            &event[new]
        }
    };
    let source = either("source", "deprecatedSource");
    let about = either("involvedObject", "regarding");
    let parts = [
        pod::text(source, "component"),
        pod::text(source, "host"),
        pod::text(about, "kind"),
        pod::text(about, "namespace"),
        pod::text(about, "name"),
        pod::text(about, "uid"),
        pod::text(about, "apiVersion"),
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configured(limits: Value) -> Result<Arc<dyn Plugin>, String> {
        EventRateLimit::default().configured(&json!({"kind": "Configuration",
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "limits": limits}))
    }

    #[test]
    fn a_bucket_is_refilled_and_the_least_recently_used_is_evicted() {
        let limit = Limit {
            kind: LimitKind::User,
            per_second: 1.0,
            burst: 2.0,
            max_buckets: NonZeroUsize::new(2).unwrap(),
            buckets: Mutex::default(),
        };
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let accepted = [0, 0, 0, 1, 1].map(|second| limit.accept("ann", at(second)));
        assert_eq!(accepted, [true, true, false, true, false]);
        limit.accept("bob", at(1));
        limit.accept("eve", at(1));
        assert!(limit.accept("ann", at(1)), "starts with a full bucket");
    }

    #[test]
    fn limits_are_validated_when_the_server_starts() {
        let why = |limits: Value| configured(limits).unwrap_err();
        assert_eq!(
            why(json!([])),
            "limits: Invalid value: [] must not be empty"
        );
        assert_eq!(
            why(json!([{"type": "Server", "qps": 0, "burst": 1}])),
            "limits[0].qps: Invalid value: 0: must be positive"
        );
        assert_eq!(
            why(json!([{"type": "Cluster", "qps": 1, "burst": 1}])),
            "limits[0].type: Unsupported value: \"Cluster\": supported values: \"Server\", \
             \"Namespace\", \"User\", \"SourceAndObject\""
        );
        assert_eq!(
            why(json!([{"type": "User", "qps": 1, "burst": 1, "size": 3}])),
            "unknown field \"limits[0].size\""
        );
    }
}
