//! The requests that an admission webhook is called for.

use serde_json::{Map, Value};

use super::decide;
use super::definition::Policy;
use super::expression::Environments;
use super::fields::Fields;
use super::matching::Matching;
use super::registration::Reader;
use super::request::{GroupVersionKind, GroupVersionResource, Request};
use super::resolver::Resolver;
use crate::field::Path;
use crate::{FieldError, KubeVersion};

/// The rules, selectors and match conditions of one webhook of a
/// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
#[derive(Debug)]
pub struct Webhook(Policy);

/// The resource and kind of the object that a webhook is called with. With `matchPolicy:
/// Equivalent` they can differ from those of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The resource.
    pub resource: GroupVersionResource<'a>,
    /// The kind of the object.
    pub kind: GroupVersionKind<'a>,
}

/// The kinds that webhooks are not called for, because a webhook could prevent its own repair.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

impl Webhook {
    /// The errors of a webhook's match conditions, with paths that start at `path`.
    pub fn condition_errors(
        webhook: &Value,
        path: &str,
        version: KubeVersion,
    ) -> Vec<FieldError> {
        let root = Path::Root;
        let path = root.field(path);
        let mut errors = Vec::new();
        let mut reader = Reader {
            policy: "",
            spec: Fields::new(webhook, &path),
            errors: &mut errors,
        };
        let environments = Environments::new(version.dialect_of_new(), false);
        reader.conditions(&environments);
        errors
    }

    /// Compiles a stored webhook. Its errors were rejected when it was written: a condition
    /// that does not compile in this version fails when it is evaluated.
    pub fn stored(webhook: &Value, version: KubeVersion) -> Self {
        let root = Path::Root;
        let mut ignored = Vec::new();
        let mut matching = Map::new();
        for (own, of_policy) in [
            ("rules", "resourceRules"),
            ("namespaceSelector", "namespaceSelector"),
            ("objectSelector", "objectSelector"),
            ("matchPolicy", "matchPolicy"),
        ] {
            if let Some(value) = webhook.get(own) {
                matching.insert(of_policy.to_owned(), value.clone());
            }
        }
        let matching = Value::Object(matching);
        let matching = Matching::compile(Fields::new(&matching, &root), &mut ignored);
        let mut environments = Environments::new(version.dialect_of_stored(), false);
        let paths = environments.number_paths();
        let mut reader = Reader {
            policy: "",
            spec: Fields::new(webhook, &root),
            errors: &mut ignored,
        };
        let conditions = reader.conditions(&environments);
        let failure_policy = webhook.get("failurePolicy");
        Self(Policy {
            name: String::new(),
            params: None,
            matching,
            conditions,
            variables: Vec::new(),
            validations: Vec::new(),
            annotations: Vec::new(),
            ignores_errors: failure_policy.is_some_and(|it| it == "Ignore"),
            paths,
        })
    }

    /// Whether the webhook is called for a request, and with which resource and kind.
    ///
    /// # Errors
    /// Why its match conditions could not be evaluated, unless it ignores failures.
    pub fn matches<'a>(
        &self,
        request: &'a Request<'a>,
        resolver: &dyn Resolver,
    ) -> Result<Option<Invocation<'a>>, String> {
        let group = request.kind.group;
        let is_configuration = group == "admissionregistration.k8s.io";
        // A webhook without rules matches nothing, whereas a policy without rules matches
        // everything.
        if is_configuration && EXEMPT.contains(&request.kind.kind)
            || !self.0.matching.has_rules()
        {
            return Ok(None);
        }
        let Some(matched) = self.0.matching.matches(request) else {
            return Ok(None);
        };
        let invocation = Invocation {
            resource: matched.0,
            kind: matched.1,
        };
        if self.0.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let inputs = decide::inputs_of(request, resolver, matched)?;
        let holds = self.0.conditions_hold(&inputs)?;
        Ok(holds.then_some(invocation))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_called(webhook: &Value, object: &Value) -> Result<bool, String> {
        let kind = GroupVersionKind {
            group: "",
            version: "v1",
            kind: "Pod",
        };
        let request = Request::create(kind, "pods", object);
        let webhook = Webhook::stored(webhook, KubeVersion::default());
        webhook.matches(&request, &()).map(|it| it.is_some())
    }

    fn hook() -> Value {
        json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["pods"]}]})
    }

    #[test]
    fn a_webhook_without_rules_is_never_called() {
        assert_eq!(is_called(&json!({}), &json!({})), Ok(false));
        assert_eq!(is_called(&hook(), &json!({})), Ok(true));
    }

    #[test]
    fn match_conditions_decide_and_errors_follow_the_failure_policy() {
        let mut hook = hook();
        let condition =
            |expression: &str| json!([{"name": "c", "expression": expression}]);
        hook["matchConditions"] = condition("object.metadata.name == 'a'");
        let named = |name: &str| json!({"metadata": {"name": name}});
        assert_eq!(is_called(&hook, &named("a")), Ok(true));
        assert_eq!(is_called(&hook, &named("b")), Ok(false));
        hook["matchConditions"] = condition("object.spec.x == 1");
        assert!(
            is_called(&hook, &named("a"))
                .unwrap_err()
                .contains("no such key")
        );
        hook["failurePolicy"] = "Ignore".into();
        assert_eq!(is_called(&hook, &named("a")), Ok(false));
    }

    #[test]
    fn a_condition_that_does_not_compile_is_rejected() {
        let hook = json!({"matchConditions": [{"name": "c", "expression": "1 +"}]});
        let errors =
            Webhook::condition_errors(&hook, "webhooks[0]", KubeVersion::default());
        assert_eq!(errors[0].path, "webhooks[0].matchConditions[0].expression");
    }
}
