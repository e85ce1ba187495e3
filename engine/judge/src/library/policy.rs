//! Policies and their bindings.

use serde_json::{Value, json};

use super::almost_valid_text;
use super::expression::{Expressions, Scope};
use super::kind::Kind;
use super::scope;
use super::value::Values;
use kubemu_judge::random::Random;

/// The paths that every policy may read, with their types.
const PATHS: &[(&str, &str)] = &[
    ("request.operation", "string"),
    ("request.name", "string"),
    ("request.namespace", "string"),
    ("request.userInfo.username", "string"),
    ("request.userInfo.groups", "list(string)"),
    ("request.dryRun", "bool"),
    ("request.kind.group", "string"),
    ("request.resource.resource", "string"),
    ("namespaceObject.metadata.name", "string"),
    ("namespaceObject.metadata.labels", "map(string)"),
    ("object.metadata.name", "string"),
    ("object.metadata.?labels.orValue({})", "map(string)"),
    ("object.metadata.labels['a.b/c']", "string"),
    ("(oldObject == null)", "bool"),
    (
        "authorizer.group('').resource('pods').namespace('n').check('get').allowed()",
        "bool",
    ),
    (
        "authorizer.requestResource.check('update').allowed()",
        "bool",
    ),
    (
        "authorizer.group('apps').resource('deployments').subresource('scale').check('*').reason()",
        "string",
    ),
    (
        "authorizer.serviceAccount('n', 'sa').path('/healthz').check('get').allowed()",
        "bool",
    ),
    ("authorizer.path('/metrics').check('get').errored()", "bool"),
];

/// Generates policies for objects of a schema.
pub(super) struct Policies<'r> {
    pub(super) random: &'r mut Random,
    pub(super) schema: &'r Value,
}

impl Policies<'_> {
    fn scope(&self, has_params: bool) -> Scope {
        let mut scope = Scope::default();
        for (text, kind) in PATHS {
            scope.add(*text, Kind::read(kind));
        }
        scope::add(&mut scope, "object", self.schema, 3);
        scope::add(&mut scope, "oldObject", self.schema, 2);
        scope.presence.push("has(object.spec)".to_owned());
        if has_params {
            scope.add("params.data.limit", Kind::plain("string"));
            scope.add("params.spec.max", Kind::plain("int"));
            scope.add("params.metadata.name", Kind::plain("string"));
            scope.presence.push("(params == null)".to_owned());
        }
        scope
    }

    /// A policy to register.
    pub(super) fn policy(&mut self, name: &str) -> Value {
        let mut spec = self.specification();
        if self.random.chance(8) {
            self.invalidate(&mut spec);
        }
        if self.random.chance(8) {
            almost_valid_text::edit_leaf(self.random, &mut spec);
        }
        let mut policy = of(name, &spec);
        self.maybe_mark_deleted(&mut policy);
        policy
    }

    /// A policy that an older server has stored, and that may not compile in this version.
    pub(super) fn stored(&mut self, name: &str) -> Value {
        let mut spec = self.specification();
        let list = self
            .random
            .pick(&["validations", "matchConditions", "variables"]);
        if let Some(expression) = spec.pointer_mut(&format!("/{list}/0/expression"))
            && let Some(known) = expression.as_str()
        {
            *expression = json!(almost_valid_text::edited(
                self.random,
                known,
                "nothing.known()"
            ));
        }
        of(name, &spec)
    }

    /// A policy or binding that is being deleted is in force until it is gone.
    fn maybe_mark_deleted(&mut self, object: &mut Value) {
        if self.random.chance(4) {
            object["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
            object["metadata"]["finalizers"] = json!(["example.com/held"]);
        }
    }

    fn specification(&mut self) -> Value {
        let has_params = self.random.chance(30);
        let mut scope = self.scope(has_params);
        let mut spec = json!({"matchConstraints": self.matching(true)});
        if self.random.chance(40) {
            spec["failurePolicy"] = json!(self.random.pick(&["Fail", "Ignore"]));
        }
        if has_params {
            let kinds = [
                json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                json!({"apiVersion": "example.com/v1", "kind": "Limit"}),
                json!({"apiVersion": "example.com/v2", "kind": "Limit"}),
                json!({"apiVersion": "example.com/v1", "kind": "NotServed"}),
            ];
            spec["paramKind"] = self.random.pick(&kinds).clone();
        }
        if self.random.chance(30) {
            let count = self.random.between(1, 2);
            let conditions: Vec<_> = (0..count)
                .map(|at| {
                    let rule = Expressions {
                        random: self.random,
                    }
                    .rule(&scope);
                    json!({"name": format!("c{at}"), "expression": rule})
                })
                .collect();
            spec["matchConditions"] = json!(conditions);
        }
        if self.random.chance(40) {
            spec["variables"] = self.variables(&mut scope);
        }
        let count = self.random.between(1, 3);
        let validations: Vec<_> = (0..count).map(|_| self.validation(&scope)).collect();
        spec["validations"] = json!(validations);
        if self.random.chance(15) {
            spec["auditAnnotations"] = self.annotations(&scope);
        }
        spec
    }

    fn variables(&mut self, scope: &mut Scope) -> Value {
        let kinds = [
            "bool",
            "int",
            "string",
            "list(string)",
            "map(string)",
            "optional(int)",
        ];
        let mut variables = Vec::new();
        for at in 0..self.random.between(1, 3) {
            let kind = Kind::read(self.random.pick(&kinds));
            let text = Expressions {
                random: self.random,
            }
            .of(&kind, scope, 2);
            let name = if self.random.chance(5) {
                "v0".to_owned()
            } else {
                format!("v{at}")
            };
            scope.add(format!("variables.{name}"), kind.clone());
            scope.add(format!("variables.{name}"), kind);
            variables.push(json!({"name": name, "expression": text}));
        }
        json!(variables)
    }

    fn validation(&mut self, scope: &Scope) -> Value {
        let mut validation =
            json!({"expression": Expressions { random: self.random }.rule(scope)});
        if self.random.chance(35) {
            let messages = ["must hold", " padded ", "a\nb", " ", "é \"q\""];
            validation["message"] = json!(self.random.pick(&messages));
        }
        if self.random.chance(20) {
            let text = Kind::plain("string");
            let message = Expressions {
                random: self.random,
            }
            .of(&text, scope, 2);
            validation["messageExpression"] = json!(message);
        }
        if self.random.chance(15) {
            let reasons = [
                "Forbidden",
                "Invalid",
                "Unauthorized",
                "RequestEntityTooLarge",
                "Bogus",
            ];
            validation["reason"] = json!(self.random.pick(&reasons));
        }
        validation
    }

    fn annotations(&mut self, scope: &Scope) -> Value {
        let text = Kind::plain("string");
        let value = Expressions {
            random: self.random,
        }
        .of(&text, scope, 2);
        let key = self.random.pick(&["k", "k", "a.b", "Bad Key", ""]);
        let mut annotations = vec![json!({"key": key, "valueExpression": value})];
        if self.random.chance(20) {
            annotations.push(json!({"key": "k", "valueExpression": "null"}));
        }
        json!(annotations)
    }

    fn matching(&mut self, with_rules: bool) -> Value {
        let mut matching = json!({});
        if with_rules || self.random.chance(50) {
            matching["resourceRules"] = json!([self.matching_rule()]);
            if self.random.chance(10) {
                matching["resourceRules"][0]["scope"] =
                    json!(self.random.pick(&["Namespaced", "Cluster", "*"]));
            }
            if self.random.chance(8) {
                matching["resourceRules"][0]["resourceNames"] =
                    json!(self.random.pick(&[["w", "x"], ["x", "y"], ["w", "w"]]));
            }
        }
        if self.random.chance(10) {
            matching["excludeResourceRules"] = json!([self.matching_rule()]);
        }
        if self.random.chance(15) {
            matching["matchPolicy"] = json!(self.random.pick(&["Exact", "Equivalent"]));
        }
        if self.random.chance(12) {
            matching["namespaceSelector"] = self.selector();
        }
        if self.random.chance(12) {
            matching["objectSelector"] = self.selector();
        }
        matching
    }

    fn matching_rule(&mut self) -> Value {
        json!({
            "apiGroups": [self.random.pick(&["example.com", "example.com", "*"])],
            "apiVersions": [self.random.pick(&["v1", "v1", "*", "v2"])],
            "resources": [self.random.pick(&["widgets", "widgets", "*", "*/*", "widgets/status"])],
            "operations": self.random.pick(&[
                json!(["CREATE", "UPDATE"]), json!(["*"]), json!(["CREATE"]),
                json!(["UPDATE", "DELETE"])]),
        })
    }

    fn selector(&mut self) -> Value {
        self.random
            .pick(&[
                json!({}),
                json!({"matchLabels": {"app": "x"}}),
                json!({"matchLabels": {"kubernetes.io/metadata.name": "n"}}),
                json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["y"]}]}),
                json!({"matchExpressions": [{"key": "app", "operator": "In"}]}),
                json!({"matchLabels": {"bad key": "x"}}),
            ])
            .clone()
    }

    pub(super) fn binding(&mut self, name: &str, policy: &str) -> Value {
        let actions = [
            json!(["Deny"]),
            json!(["Deny"]),
            json!(["Deny", "Audit"]),
            json!(["Warn"]),
            json!(["Warn", "Audit"]),
            json!(["Audit"]),
            json!(["Deny", "Warn"]),
            json!([]),
            json!(["Refuse"]),
        ];
        let mut spec = json!({"policyName": policy, "validationActions": self.random.pick(&actions)});
        if self.random.chance(40) {
            let mut reference = self
                .random
                .pick(&[
                    json!({"name": "p"}),
                    json!({"name": "absent"}),
                    json!({"selector": {"matchLabels": {"app": "x"}}}),
                    json!({"selector": {}}),
                    json!({"name": "p", "namespace": "n"}),
                    json!({"name": "p", "selector": {}}),
                    json!({}),
                ])
                .clone();
            if self.random.chance(92) {
                reference["parameterNotFoundAction"] =
                    json!(self.random.pick(&["Deny", "Allow"]));
            }
            spec["paramRef"] = reference;
        }
        if self.random.chance(20) {
            spec["matchResources"] = self.matching(false);
        }
        if self.random.chance(5) {
            almost_valid_text::edit_leaf(self.random, &mut spec);
        }
        let mut binding = binding_of(name, &spec);
        self.maybe_mark_deleted(&mut binding);
        binding
    }

    fn invalidate(&mut self, spec: &mut Value) {
        let rules = json!([{"apiGroups": ["*", "a"], "apiVersions": [""], "resources": ["pods/", "*/*", "a"],
            "operations": ["create"]}]);
        let faults = [
            ("failurePolicy", json!("Maybe")),
            ("paramKind", json!({"apiVersion": "a/b/c", "kind": ""})),
            ("paramKind", json!({"apiVersion": "v1", "kind": "Bad Kind"})),
            ("matchConstraints", json!({"resourceRules": []})),
            ("matchConstraints", json!({"resourceRules": rules})),
            (
                "matchConstraints",
                json!({"matchPolicy": "Some", "resourceRules": rules}),
            ),
            ("matchConditions", json!([{"name": "", "expression": ""}])),
            (
                "matchConditions",
                json!([{"name": "a b", "expression": " true "},
                {"name": "a b", "expression": "1"}]),
            ),
            (
                "matchConditions",
                json!([{"name": "v", "expression": "variables.v0 == 1"}]),
            ),
            ("variables", json!([{"name": "1a", "expression": ""}])),
            ("variables", json!([{"name": "", "expression": "1 +"}])),
            (
                "variables",
                json!([{"name": "in", "expression": "1"}, {"name": "x", "expression": "2"},
                {"name": "x", "expression": "variables.x + 1"}]),
            ),
            ("validations", json!([])),
            (
                "validations",
                json!([{"expression": " "}, {"expression": "1"},
                {"expression": "true", "messageExpression": " "},
                {"expression": "true", "messageExpression": "1"}]),
            ),
            (
                "auditAnnotations",
                json!([{"key": "a", "valueExpression": "1"},
                {"key": "a", "valueExpression": ""}]),
            ),
        ];
        let (name, value) = self.random.pick(&faults);
        spec[name] = value;
    }
}

/// A policy with a spec.
pub(super) fn of(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec})
}

/// A binding with a spec.
pub(super) fn binding_of(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec})
}

/// A value, and the value before the change.
pub(super) fn pair(random: &mut Random, schema: &Value) -> (Value, Value) {
    let mut values = Values { random };
    let old = values.resource(schema);
    let new = values.edited(schema, &old);
    (new, old)
}
