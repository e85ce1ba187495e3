//! PriorityLevelConfigurations: stored; requests are not queued by them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::flow_schema::{STATUS_METADATA, condition_types};
use super::pod_spec::default::{Fields, fill, fill_number, part};
use super::{BuiltinKind, StatusMetadata, Write, column, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `prioritylevelconfigurations` of `flowcontrol.apiserver.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct PriorityLevelConfiguration;

/// The level of requests that are never queued.
const EXEMPT: &str = "exempt";
/// The maximum number of queues.
const MAX_QUEUES: i64 = 10_000_000;
/// How many bits of a hash are used to choose queues (`MaxHashBits` of shufflesharding).
const MAX_HASH_BITS: i64 = 60;
/// The annotation that only another version of the API has.
const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

impl BuiltinKind for PriorityLevelConfiguration {
    fn resource(&self) -> Resource {
        let column = |name: &str, of: &str, field: &str| {
            column::described(name, "string", &format!("flowcontrol.v1.{of}"), field)
        };
        let (limited, queuing) =
            ("LimitedPriorityLevelConfiguration", "QueuingConfiguration");
        let shares = "nominalConcurrencyShares";
        Resource::new(
            "flowcontrol.apiserver.k8s.io",
            "v1",
            "PriorityLevelConfiguration",
            "prioritylevelconfigurations",
        )
        .cluster_scoped()
        .with_subresources(&[Subresource::Status])
        .with_columns(vec![
            column("Type", "PriorityLevelConfigurationSpec", "type"),
            column("NominalConcurrencyShares", limited, shares),
            column("Queues", queuing, "queues"),
            column("HandSize", queuing, "handSize"),
            column("QueueLengthLimit", queuing, "queueLengthLimit"),
            Column::age(),
        ])
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        let shares = |fields: &mut Fields, count: i64| {
            fill(fields, "nominalConcurrencyShares", count);
            fill(fields, "lendablePercent", 0);
        };
        if let Some(exempt) = part(spec, "exempt") {
            shares(exempt, 0);
        }
        let Some(limited) = part(spec, "limited") else {
            return;
        };
        shares(limited, 30);
        let response = part(limited, "limitResponse");
        if let Some(queuing) = response.and_then(|it| part(it, "queuing")) {
            fill_number(queuing, "handSize", 8);
            fill_number(queuing, "queues", 64);
            fill_number(queuing, "queueLengthLimit", 50);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        STATUS_METADATA
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.subresource.is_empty() {
            let annotations = Field::of(write.object, "metadata").child("annotations");
            if annotations.value.get(PRESERVE_ZERO).is_some() {
                let why = format!("annotation '{PRESERVE_ZERO}' is forbidden");
                errors.push(annotations.forbidden(why));
            }
            let name = meta::name(write.object);
            let spec = Field::of(write.object, "spec");
            self::spec(&spec, name, &mut errors);
            mandatory(&spec, name, &mut errors);
        }
        condition_types(&Field::of(write.object, "status"), &mut errors);
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let limited = &object["spec"]["limited"];
        let queuing = &limited["limitResponse"]["queuing"];
        let number = |of: &Value, field: &str| {
            if of.is_object() {
                column::number(&of[field])
            } else {
                "<none>".into()
            }
        };
        vec![
            column::name(object),
            column::string(&object["spec"]["type"]),
            number(limited, "nominalConcurrencyShares"),
            number(queuing, "queues"),
            number(queuing, "handSize"),
            number(queuing, "queueLengthLimit"),
            column::age(object, now),
        ]
    }
}

fn spec(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let kind = spec.child("type");
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(kind.invalid_text(why));
    }
    let (exempt, limited) = (spec.child("exempt"), spec.child("limited"));
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                let why = "must be nil if the type is not Limited";
                errors.push(limited.forbidden(why));
            }
            shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_set() {
                self::limited(&limited, errors);
            } else {
                let why = "must not be empty when type is Limited";
                errors.push(limited.required(why));
            }
        }
        _ => rule::one_of(&kind, &["Exempt", "Limited"], errors),
    }
}

/// Validates the share of requests, and how much of it others may use.
fn shares(field: &Field<'_>, errors: &mut Errors) {
    not_negative(&field.child("nominalConcurrencyShares"), errors);
    percent(&field.child("lendablePercent"), errors);
}

fn not_negative(field: &Field<'_>, errors: &mut Errors) {
    if field.count() < 0 {
        errors.push(field.invalid("must be a non-negative integer"));
    }
}

fn percent(field: &Field<'_>, errors: &mut Errors) {
    if !(0..=100).contains(&field.count()) {
        errors.push(field.invalid("must be between 0 and 100, inclusive"));
    }
}

fn limited(limited: &Field<'_>, errors: &mut Errors) {
    not_negative(&limited.child("nominalConcurrencyShares"), errors);
    response(&limited.child("limitResponse"), errors);
    percent(&limited.child("lendablePercent"), errors);
    let borrowed = limited.child("borrowingLimitPercent");
    if borrowed.count() < 0 {
        let why = "if specified, must be a non-negative integer";
        errors.push(borrowed.invalid(why));
    }
}

fn response(response: &Field<'_>, errors: &mut Errors) {
    let kind = response.child("type");
    let queuing = response.child("queuing");
    match (kind.text(), queuing.is_set()) {
        ("Reject", true) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(queuing.forbidden(why));
        }
        ("Queue", false) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(queuing.required(why));
        }
        ("Queue", true) => self::queuing(&queuing, errors),
        _ => rule::one_of(&kind, &["Queue", "Reject"], errors),
    }
}

fn queuing(queuing: &Field<'_>, errors: &mut Errors) {
    let [length, queues, hand] =
        ["queueLengthLimit", "queues", "handSize"].map(|it| queuing.child(it));
    let positive = "must be positive";
    if length.count() <= 0 {
        errors.push(length.invalid(positive));
    }
    if queues.count() <= 0 {
        errors.push(queues.invalid(positive));
    } else if queues.count() > MAX_QUEUES {
        errors.push(queues.invalid(format!("must not be greater than {MAX_QUEUES}")));
    }
    let bits = hash_bits(queues.count(), hand.count());
    if hand.count() <= 0 {
        errors.push(hand.invalid(positive));
    } else if hand.count() > queues.count() {
        let why = format!("should not be greater than queues ({})", queues.count());
        errors.push(hand.invalid(why));
    } else if bits > MAX_HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {} and handSize {} should not be greater than \
             {MAX_HASH_BITS}",
            queues.count(),
            hand.count()
        );
        errors.push(hand.invalid(why));
    }
}

/// How many bits choose a hand of queues (`RequiredEntropyBits` of shufflesharding).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the product of two small numbers, in the precision of Kubernetes"
)]
fn hash_bits(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

/// Validates a level that every cluster has: only the share of exempt requests may change.
fn mandatory(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let fixed = match name {
        EXEMPT => json!({"type": "Exempt", "exempt": spec.child("exempt").value}),
        "catch-all" => json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"},
            "lendablePercent": 0}}),
        _ => return,
    };
    if fixed != *spec.value {
        let except = match name {
            EXEMPT => " except the 'spec.exempt' field",
            _ => "",
        };
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(spec.invalid(why));
    }
}
