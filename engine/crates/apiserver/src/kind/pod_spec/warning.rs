//! The warnings for a pod or a template (pkg/api/pod/warnings.go).

pub(in crate::kind) mod node;
mod path;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kind::field::Field;
use crate::kind::{persistent_volume_claim, resource_name};

/// Deprecated volume sources, and since when.
const DEPRECATED: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Annotations that became fields.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The warnings about a spec.
pub(in crate::kind) fn warnings(spec: &Field<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    node::labels(&spec.child("nodeSelector"), &mut warnings);
    let affinity = spec.child("affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for term in affinity.child(required).items() {
        node::term(&term, false, &mut warnings);
    }
    let preferred = affinity.child("preferredDuringSchedulingIgnoredDuringExecution");
    for term in preferred.items() {
        node::term(&term.child("preference"), true, &mut warnings);
    }
    for constraint in spec.child("topologySpreadConstraints").items() {
        node::key(&constraint.child("topologyKey"), &mut warnings);
        warnings.extend(no_selector(&constraint));
    }
    volumes(spec, &mut warnings);
    path::overlapping(&spec.child("volumes"), &mut warnings);
    aliases(&spec.child("hostAliases"), &mut warnings);
    secrets(&spec.child("imagePullSecrets"), &mut warnings);
    amounts(&spec.child("overhead"), &mut warnings);
    for container in containers(spec) {
        fractions(&container, &mut warnings);
        variables(&container.child("env"), &mut warnings);
    }
    ports(spec, &mut warnings);
    let grace = spec.child("terminationGracePeriodSeconds");
    if grace.count() < 0 {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {why}", grace.path));
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = spec.child("affinity").child(name);
        let required = pods.child("requiredDuringSchedulingIgnoredDuringExecution");
        warnings.extend(required.items().filter_map(|it| no_selector(&it)));
        let preferred = pods.child("preferredDuringSchedulingIgnoredDuringExecution");
        let terms = preferred.items().map(|it| it.child("podAffinityTerm"));
        warnings.extend(terms.filter_map(|it| no_selector(&it)));
    }
    warnings
}

fn containers<'a>(spec: &Field<'a>) -> impl Iterator<Item = Field<'a>> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.map(|it| spec.child(it).items()).into_iter().flatten()
}

fn no_selector(term: &Field<'_>) -> Option<String> {
    let selector = term.child("labelSelector");
    let why = "a null labelSelector results in matching no pod";
    (!selector.is_set()).then(|| format!("{}: {why}", selector.path))
}

fn volumes(spec: &Field<'_>, warnings: &mut Vec<String>) {
    for volume in spec.child("volumes").items() {
        for (source, why) in DEPRECATED {
            let source = volume.child(source);
            if source.is_set() {
                warnings.push(format!("{}: {why}", source.path));
            }
        }
        let claim = volume.child("ephemeral.volumeClaimTemplate.spec");
        let path = claim.path.to_string();
        warnings.extend(persistent_volume_claim::fractions(&path, claim.value));
    }
}

fn secrets(list: &Field<'_>, warnings: &mut Vec<String>) {
    let names: Vec<Field<'_>> = list.items().map(|it| it.child("name")).collect();
    for (index, name) in names.iter().enumerate() {
        let earlier = names.iter().take(index);
        if earlier.into_iter().any(|it| it.text() == name.text()) {
            warnings.push(format!("{}: duplicate name {:?}", name.path, name.text()));
        }
    }
    for name in names.iter().filter(|it| it.text().is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", name.path));
    }
}

fn aliases(list: &Field<'_>, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for address in list.items().map(|it| it.child("ip")) {
        if !seen.insert(address.text()) {
            let value = address.text();
            warnings.push(format!("{}: duplicate ip {value:?}", address.path));
        }
    }
}

/// Warns about fractional byte values.
fn fractions(container: &Field<'_>, warnings: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let list = container.child("resources").child(list);
            fraction(&list, resource, warnings);
        }
    }
}

fn amounts(list: &Field<'_>, warnings: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        fraction(list, resource, warnings);
    }
}

fn fraction(list: &Field<'_>, resource: &str, warnings: &mut Vec<String>) {
    let amount = list.value.get(resource).and_then(resource_name::quantity);
    if let Some(amount) = amount.filter(|it| it.milli_value() % 1000 != 0) {
        let amount = amount.to_string();
        warnings.push(format!(
            "{}[{resource}]: fractional byte value {amount:?} is invalid, must be an integer",
            list.path
        ));
    }
}

/// The warnings about the annotations of a pod or of a template.
pub(in crate::kind) fn annotations(annotations: &Field<'_>, warnings: &mut Vec<String>) {
    for (key, why) in ANNOTATIONS {
        if annotations.value.get(key).is_some() {
            warnings.push(format!("{}[{key}]: {why}", annotations.path));
        }
    }
}

/// Warns about variables that hide an earlier one.
fn variables(list: &Field<'_>, warnings: &mut Vec<String>) {
    let mut seen = Vec::new();
    for variable in list.items() {
        let name = variable.child("name").text();
        if !seen.contains(&name) {
            seen.push(name);
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.child("value").text();
        let extends = value != reference && value.contains(&reference);
        if variable.child("valueFrom").is_set() || !extends {
            warnings.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using \
                 apply",
                variable.path
            ));
        }
    }
}

/// The parts of a port that are compared.
#[derive(Clone)]
struct Port<'a> {
    field: Field<'a>,
    host: i64,
    address: &'a str,
}

impl Port<'_> {
    /// The conflict of this port with an earlier one, if any.
    fn conflict(&self, other: &Self) -> Option<&'static str> {
        let one_is_general = self.address.is_empty() != other.address.is_empty();
        if self.address == other.address && self.host == other.host {
            Some("duplicate port definition with")
        } else if self.host == 0 || other.host == 0 {
            Some("overlapping port definition with")
        } else if self.host == other.host && one_is_general {
            Some("dangerously ambiguous port definition with")
        } else {
            None
        }
    }
}

fn ports(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let all = || containers(spec).flat_map(|it| it.child("ports").items());
    let mut seen: BTreeMap<(i64, &str), Vec<Port<'_>>> = BTreeMap::new();
    for field in all() {
        let (number, protocol) = (field.child("containerPort"), field.child("protocol"));
        let port = Port {
            host: field.child("hostPort").count(),
            address: field.child("hostIP").text(),
            field: field.clone(),
        };
        if !port.address.is_empty() && port.host == 0 {
            warnings.push(format!(
                "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} \
                 Protocol:{} HostIP:{}}}",
                field.path,
                field.child("name").text(),
                number.count(),
                protocol.text(),
                port.address
            ));
        }
        let others = seen.entry((number.count(), protocol.text())).or_default();
        for other in others.iter() {
            if let Some(conflict) = port.conflict(other) {
                warnings.push(format!("{}: {conflict} {}", field.path, other.field.path));
            }
        }
        others.push(port);
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for field in all() {
        let name = field.child("name").text();
        if name.is_empty() {
            continue;
        }
        if let Some(other) = names.get(name) {
            warnings.push(format!(
                "{}: duplicate port name {name:?} with {other}, services and probes that \
                 select ports by name will use {other}",
                field.path
            ));
        } else {
            names.insert(name, field.path.to_string());
        }
    }
}

/// The warning about an invalid DNS label as a name that pods use as prefix.
pub(in crate::kind) fn name_warning(object: &Value) -> Option<String> {
    let wrong = kubemu_admission::name::dns_label(crate::meta::name(object));
    if wrong.is_empty() {
        return None;
    }
    let why = wrong.join(" ");
    Some(format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in \
         surprising behavior; a DNS label is recommended: [{why}]"
    ))
}
