//! PodSecurity: the Pod Security Standards (k8s.io/pod-security-admission).

mod baseline;
mod check;
mod restricted;
mod standard;

use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::pod::{self, text};
use super::{Attributes, Plugin};
use crate::admission_configuration::{Fields, Shape};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::{Status, invalid};
use crate::store::Key;
use standard::{Level, PREFIX, Policy, Standard};

/// The plugin.
#[derive(Debug, Default)]
pub(super) struct PodSecurity {
    defaults: Policy,
    exempt_users: Vec<String>,
    exempt_namespaces: Vec<String>,
    exempt_runtime_classes: Vec<String>,
}

/// The maximum number of pods that are checked when the level of a namespace is raised.
const MAX_PODS: usize = 3000;

const CONFIGURATION: Shape = Shape {
    kind: "PodSecurityConfiguration",
    versions: &[
        "pod-security.admission.config.k8s.io/v1",
        "pod-security.admission.config.k8s.io/v1beta1",
        "pod-security.admission.config.k8s.io/v1alpha1",
    ],
    fields: &["defaults", "exemptions"],
};

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn description(&self) -> &'static str {
        "Enforces the Pod Security Standard (privileged, baseline, restricted) in the \
         labels of the namespace: rejects pods that violate it, returns warnings or adds \
         audit annotations. For workloads that create pods, it only returns warnings and \
         adds audit annotations."
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::read(configuration, &CONFIGURATION)?;
        let mut plugin = Self::default();
        if let Some(defaults) = fields.object("defaults")? {
            plugin.defaults = Policy::configured(&defaults)?;
        }
        if let Some(exemptions) = fields.object("exemptions")? {
            exemptions.only(&["usernames", "namespaces", "runtimeClasses"])?;
            plugin.exempt_users = exemptions.texts("usernames")?;
            plugin.exempt_namespaces = exemptions.texts("namespaces")?;
            plugin.exempt_runtime_classes = exemptions.texts("runtimeClasses")?;
        }
        Ok(Arc::new(plugin))
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let operation = attributes.operation();
        let writes = matches!(operation, Operation::Create | Operation::Update);
        let Some(object) = object.filter(|_| writes) else {
            return Ok(());
        };
        let storage = &attributes.resource().storage;
        if *storage == GroupResource::new("", "namespaces") {
            return self.namespace(cluster, attributes, object);
        }
        let is_pod = *storage == GroupResource::new("", "pods");
        let Some(template) = template(storage, object) else {
            return Ok(());
        };
        let passes = matches!(
            attributes.subresource(),
            "" | "ephemeralcontainers" | "resize"
        );
        if !passes || !is_pod && !attributes.subresource().is_empty() {
            return Ok(());
        }
        if is_pod
            && let Some(old) = attributes.old_object()
            && !is_significant(object, old)
        {
            return Ok(());
        }
        self.pod(cluster, attributes, &Subject { template, is_pod })
    }
}

/// A pod, or a pod template.
struct Subject<'a> {
    template: &'a Value,
    is_pod: bool,
}

impl PodSecurity {
    /// Checks a pod, or warns about a template.
    fn pod(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        subject: &Subject<'_>,
    ) -> Result<(), Status> {
        let note = |key: &str, text: String| {
            attributes.annotate(format!("{PREFIX}{key}"), text);
        };
        let has = |all: &[String], one: &str| all.iter().any(|it| it == one);
        let template = subject.template;
        let runtime = text(&template["spec"], "runtimeClassName");
        let exemption = if has(&self.exempt_namespaces, attributes.namespace()) {
            Some("namespace")
        } else if has(&self.exempt_users, &attributes.user().name) {
            Some("user")
        } else if has(&self.exempt_runtime_classes, runtime) {
            Some("runtimeClass")
        } else {
            None
        };
        if let Some(reason) = exemption {
            note("exempt", reason.to_owned());
            return Ok(());
        }
        let key = Key::new("", attributes.namespace());
        let namespace = cluster.get(cluster.buckets.namespaces, &key);
        let labels = namespace.map_or(&Value::Null, |it| &it["metadata"]["labels"]);
        let (policy, errors) = Policy::of(labels, self.defaults);
        if !errors.is_empty() {
            let why = kubemu_admission::field::aggregate(&errors);
            note("error", format!("Failed to parse policy: {why}"));
        }
        let kube = cluster.kube;
        let would = |standard: Standard| {
            let why = violations(standard, template, kube)?;
            Some(format!(
                "would violate PodSecurity {:?}: {why}",
                standard.to_text()
            ))
        };
        if subject.is_pod {
            note("enforce-policy", policy.enforce.to_text());
        }
        if let Some(violation) = would(policy.audit) {
            note("audit-violations", violation);
        }
        if subject.is_pod
            && let Some(why) = violations(policy.enforce, template, kube)
        {
            let standard = policy.enforce.to_text();
            let why = format!("violates PodSecurity {standard:?}: {why}");
            return Err(attributes.forbidden(&why));
        }
        if let Some(violation) = would(policy.warn) {
            attributes.warn(violation);
        }
        Ok(())
    }

    /// Validates the labels of a namespace, and warns about existing pods that violate them.
    fn namespace(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Status> {
        if !attributes.subresource().is_empty() {
            return Ok(());
        }
        let labels = |it: &Value| it["metadata"]["labels"].clone();
        let (policy, errors) = Policy::of(&labels(object), self.defaults);
        let old = attributes
            .old_object()
            .map(|it| Policy::of(&labels(it), self.defaults));
        let previous = old.as_ref().map(|it| &it.1);
        if !errors.is_empty() && previous.is_none_or(|previous| *previous != errors) {
            return Err(invalid(attributes.resource(), attributes.name(), &errors));
        }
        let name = meta::name(object);
        if self.exempt_namespaces.iter().any(|it| it == name) {
            if let Some(warning) = self.exemption(object, policy) {
                attributes.warn(warning);
            }
            return Ok(());
        }
        let Some((old, _)) = old else {
            return Ok(());
        };
        let (now, before) = (policy.enforce, old.enforce);
        let is_relaxed = now.minor == before.minor && now.level <= before.level;
        if now == before || now.level == Level::Privileged || is_relaxed {
            return Ok(());
        }
        for warning in self.existing(cluster, name, now) {
            attributes.warn(warning);
        }
        Ok(())
    }

    /// The warning about the labels of an exempt namespace.
    fn exemption(&self, namespace: &Value, policy: Policy) -> Option<String> {
        let modes = [
            ("enforce", policy.enforce),
            ("audit", policy.audit),
            ("warn", policy.warn),
        ];
        let is_privileged = modes.iter().all(|it| it.1.level == Level::Privileged);
        if is_privileged || policy == self.defaults {
            return None;
        }
        let labels = &namespace["metadata"]["labels"];
        let has = |mode: &str| labels[format!("{PREFIX}{mode}")].is_string();
        let value = modes.iter().filter(|(mode, standard)| {
            standard.level != Level::Privileged
                && (has(mode) || has(&format!("{mode}-version")))
        });
        let value =
            value.map(|(mode, standard)| format!("{mode}={}", standard.to_text()));
        let value: Vec<String> = value.collect();
        Some(format!(
            "namespace {:?} is exempt from Pod Security, and the policy ({}) will be ignored",
            meta::name(namespace),
            value.join(", ")
        ))
    }

    /// Warns about existing pods that violate the new level.
    fn existing(&self, cluster: &State, name: &str, standard: Standard) -> Vec<String> {
        let pods = cluster.objects(&GroupResource::new("", "pods"), Some(name));
        let mut found: Vec<(String, String, usize)> = Vec::new();
        for pod in pods.iter().take(MAX_PODS) {
            let runtime = text(&pod["spec"], "runtimeClassName");
            if self.exempt_runtime_classes.iter().any(|it| it == runtime) {
                continue;
            }
            let violations =
                check::violations_of(standard.level, standard.minor, pod, cluster.kube);
            let reasons: Vec<&str> =
                violations.iter().map(|it| it.reason.as_str()).collect();
            if reasons.is_empty() {
                continue;
            }
            let reasons = reasons.join(", ");
            match found.iter_mut().find(|it| it.0 == reasons) {
                Some((_, first, count)) => {
                    *count += 1;
                    if meta::name(pod) < first.as_str() {
                        meta::name(pod).clone_into(first);
                    }
                }
                None => found.push((reasons, meta::name(pod).to_owned(), 1)),
            }
        }
        let mut warnings = Vec::new();
        if pods.len() > MAX_PODS {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {MAX_PODS} of \
                 {} existing pods",
                pods.len()
            ));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {name:?} violate the new PodSecurity enforce level \
                 {:?}",
                standard.to_text()
            ));
        }
        let mut each: Vec<String> = found
            .into_iter()
            .map(|(reasons, first, count)| match count {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                _ => format!("{first} (and {} other pods): {reasons}", count - 1),
            })
            .collect();
        each.sort_unstable();
        warnings.extend(each);
        warnings
    }
}

/// The violations of a standard by a pod; `None` if there are none.
fn violations(standard: Standard, pod: &Value, kube: KubeVersion) -> Option<String> {
    let violations = check::violations_of(standard.level, standard.minor, pod, kube);
    let shown = violations.iter().map(|it| match it.detail.as_str() {
        "" => it.reason.clone(),
        detail => format!("{} ({detail})", it.reason),
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The pod or pod template in an object; `None` for a resource without one.
fn template<'a>(resource: &GroupResource, object: &'a Value) -> Option<&'a Value> {
    let of_spec = ["replicasets", "deployments", "statefulsets", "daemonsets"];
    let is = |group: &str, plural: &str| *resource == GroupResource::new(group, plural);
    let found = if is("", "pods") {
        object
    } else if is("", "podtemplates") {
        &object["template"]
    } else if is("", "replicationcontrollers")
        || is("batch", "jobs")
        || of_spec.iter().any(|it| is("apps", it))
    {
        &object["spec"]["template"]
    } else if is("batch", "cronjobs") {
        &object["spec"]["jobTemplate"]["spec"]["template"]
    } else {
        return None;
    };
    found.is_object().then_some(found)
}

/// Whether an update adds containers or changes images.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<String> {
        let all = pod::list(&pod["spec"], list).iter();
        all.map(|it| text(it, "image").to_owned()).collect()
    };
    let by_place = ["containers", "initContainers"]
        .iter()
        .any(|list| images(pod, list) != images(old, list));
    let previous = pod::list(&old["spec"], "ephemeralContainers");
    let mut ephemeral = pod::list(&pod["spec"], "ephemeralContainers").iter();
    by_place
        || ephemeral.any(|it| {
            let before = previous
                .iter()
                .find(|previous| previous["name"] == it["name"]);
            before.is_none_or(|previous| previous["image"] != it["image"])
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use standard::Level;

    /// Whether ranges such as `2-4 7` contain a number.
    fn is_in(ranges: &str, minor: u32) -> bool {
        let mut ranges = ranges.split(' ');
        ranges.any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bounds: [u32; 2] = [first.parse().unwrap(), last.parse().unwrap()];
            (bounds[0]..=bounds[1]).contains(&minor)
        })
    }

    /// `cargo judge pod-security` generates the data from Kubernetes' fixtures.
    #[test]
    fn kubernetes_fixtures_have_the_same_verdict_in_every_release() {
        let lines = include_str!("pod_security/fixtures.jsonl").lines().skip(1);
        let kinds = crate::kind::builtin::builtin_kinds();
        let pods = kinds.iter().find(|it| it.resource().kind == "Pod").unwrap();
        let mut count = 0;
        for line in lines {
            let mut fixture: Value = serde_json::from_str(line).unwrap();
            // A volume without a source is defaulted before a plugin receives it.
            pods.default(&mut fixture["pod"]);
            let name = &fixture["fixture"];
            for (of, ranges) in fixture["verdicts"].as_object().unwrap() {
                let (level, verdict) = of.split_once(' ').unwrap();
                let level = match level {
                    "baseline" => Level::Baseline,
                    _ => Level::Restricted,
                };
                let ranges = ranges.as_str().unwrap();
                for minor in (0..=99).filter(|it| is_in(ranges, *it)) {
                    let minor = Some(minor);
                    let standard = Standard { level, minor };
                    let pod = &fixture["pod"];
                    let found = violations(standard, pod, KubeVersion::default());
                    let expected = verdict == "pass";
                    let shown = standard.to_text();
                    assert_eq!(found.is_none(), expected, "{name} {shown}: {found:?}");
                    count += 1;
                }
            }
        }
        assert!(count > 4_000, "{count}");
    }
}
