//! StatefulSets: validated and stored; no controller runs them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::go_struct;
use super::pod_spec::default::{self, each, fill, part};
use super::{
    BuiltinKind, NameRule, Write, column, persistent_volume_claim, pod_spec, rule,
    workload,
};
use crate::meta;
use crate::resource::{Column, Resource};

/// `statefulsets` of `apps/v1`.
#[derive(Debug)]
pub(super) struct StatefulSet;

/// The mutable fields of a spec.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

impl BuiltinKind for StatefulSet {
    fn resource(&self) -> Resource {
        let mut columns = vec![
            Column::new("Ready", "string", "Number of the pod with ready state"),
            Column::age(),
        ];
        columns.extend(workload::container_columns());
        Resource::new("apps", "v1", "StatefulSet", "statefulsets")
            .with_short_names(&["sts"])
            .with_category("all")
            .with_subresources(&workload::subresources())
            .with_columns(columns)
    }

    /// The names of the pods have it as prefix.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        workload::default_template(spec);
        fill(spec, "podManagementPolicy", "OrderedReady");
        let strategy = meta::field(spec, "updateStrategy");
        if strategy.get("type").is_none() {
            strategy.insert("type".to_owned(), "RollingUpdate".into());
            meta::field(strategy, "rollingUpdate");
        }
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = part(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
            // The feature gate of the field is off.
            rolling.shift_remove("maxUnavailable");
        }
        let retention = meta::field(spec, "persistentVolumeClaimRetentionPolicy");
        fill(retention, "whenDeleted", "Retain");
        fill(retention, "whenScaled", "Retain");
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        for claim in each(spec, "volumeClaimTemplates") {
            fill(claim, "apiVersion", "v1");
            fill(claim, "kind", "PersistentVolumeClaim");
            default::claim(meta::field(claim, "spec"));
            fill(meta::field(claim, "status"), "phase", "Pending");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({"availableReplicas": 0, "replicas": 0}));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            status(write, &mut errors);
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        self::spec(&spec, write.old.is_none(), &mut errors);
        if let Some(old) = write.old {
            let fixed = |object: &Value| {
                let mut spec = object["spec"].clone();
                let fields = meta::fields(&mut spec);
                fields.retain(|field, _| !MUTABLE.contains(&field.as_str()));
                spec
            };
            if fixed(write.object) != fixed(old) {
                let why = "updates to statefulset spec for fields other than 'replicas', \
                     'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                     'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
                     forbidden";
                errors.push(spec.forbidden(why));
            }
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let spec = Field::of(write.object, "spec");
        let name = workload::Name::Validated;
        let mut warnings = workload::template_warnings(write, "template", name);
        for claim in spec.child("volumeClaimTemplates").items() {
            // Kubernetes has this field in uppercase when it warns about an update.
            let path = match write.old {
                None => claim.path.to_string(),
                Some(_) => claim.path_of("Spec"),
            };
            let spec = &claim.value["spec"];
            warnings.extend(persistent_volume_claim::fractions(&path, spec));
        }
        if spec.child("revisionHistoryLimit").count() < 0 {
            let why = "spec.revisionHistoryLimit: a negative value retains all historical \
                 revisions; a value >= 0 is recommended";
            warnings.push(why.to_owned());
        }
        warnings
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![
            column::name(object),
            workload::ready(object),
            column::age(object, now),
        ];
        cells.extend(workload::container_cells(&object["spec"]["template"]));
        cells
    }
}

fn spec(spec: &Field<'_>, is_new: bool, errors: &mut Errors) {
    let policy = spec.child("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy.text()) {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    strategy(&spec.child("updateStrategy"), errors);
    for field in ["whenDeleted", "whenScaled"] {
        let policy = spec
            .child("persistentVolumeClaimRetentionPolicy")
            .child(field);
        rule::one_of_if_set(&policy, &["Retain", "Delete"], errors);
    }
    if is_new {
        for claim in spec.child("volumeClaimTemplates").items() {
            pod_spec::claim_errors(&claim.child("spec"), false, errors);
        }
    }
    for number in ["replicas", "minReadySeconds", "ordinals.start"] {
        rule::non_negative(&spec.child(number), errors);
    }
    if is_new {
        rule::text_if_set(&spec.child("serviceName"), name::dns_label, errors);
    }
    let selector = spec.child("selector");
    if workload::selector(&selector, "statefulset", "", errors) {
        template(spec, errors);
    }
    workload::running_pods(&spec.child("template"), "StatefulSet", errors);
}

/// Validates the template, with a volume for each claim. Its labels and annotations are checked
/// twice.
fn template(spec: &Field<'_>, errors: &mut Errors) {
    let template = spec.child("template");
    let mut changed = template.value.clone();
    let pod = meta::field(meta::fields(&mut changed), "spec");
    for field in ["subdomain", "hostname"] {
        pod.shift_remove(field);
    }
    let claims = spec.child("volumeClaimTemplates");
    let named = claims.items().map(|it| it.child("metadata.name").text());
    // Two claims with one name result in one volume.
    let named: BTreeSet<&str> = named.collect();
    if !named.is_empty() {
        let own = pod.get("volumes").and_then(Value::as_array).cloned();
        let own = own.into_iter().flatten();
        let own = own.filter(|it| !named.iter().any(|name| it["name"] == **name));
        let claimed = named.iter().map(
            |name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}),
        );
        let volumes: Vec<Value> = claimed.chain(own).collect();
        pod.insert("volumes".to_owned(), volumes.into());
    }
    let changed = Field {
        path: template.path.clone(),
        value: &changed,
    };
    rule::matches_template(&spec.child("selector"), &changed, errors);
    errors.extend(pod_spec::template_errors(&changed));
    errors.extend(pod_spec::template_metadata_errors(&changed));
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.child("rollingUpdate");
    match strategy.child("type").text() {
        "OnDelete" if rolling.is_set() => {
            let shown = go_struct::text(
                rolling.value,
                "apps.v1.RollingUpdateStatefulSetStrategy",
            );
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(go_struct::invalid(&rolling, &shown, why));
        }
        "OnDelete" => {}
        "RollingUpdate" => rule::non_negative(&rolling.child("partition"), errors),
        _ => {
            let shown =
                go_struct::text(strategy.value, "apps.v1.StatefulSetUpdateStrategy");
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(go_struct::invalid(strategy, &shown, why));
        }
    }
}

fn status(write: &Write<'_>, errors: &mut Errors) {
    let status = Field::of(write.object, "status");
    let numbers = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
    ];
    workload::counts(&status, &numbers, errors);
    let numbers = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    workload::within_replicas(&status, &numbers, errors);
    workload::available(
        &status,
        "cannot be greater than status.readyReplicas",
        errors,
    );
    workload::collisions(write, errors);
}
