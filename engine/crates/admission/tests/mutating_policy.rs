//! Mutating admission policies: their validation at creation, and the mutation of objects.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use std::sync::Arc;

use kubemu_admission::policy::{
    Binding, Denial, GroupVersionKind, MutatingPolicies, MutatingPolicy, ParamKind,
    PatchError, Patcher, Reinvocation, Request, Resolver,
};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Map, Value, json};

const KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: "example.com",
    version: "v1",
    kind: "Widget",
};

/// Merges objects by field, and supports the operation `add` on a field of the root.
struct SchemalessServer;

impl Resolver for SchemalessServer {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        (kind.kind == "ConfigMap").then_some(true)
    }

    fn param(&self, _: &ParamKind, _: &str, name: &str) -> Option<Value> {
        (name == "red").then(|| json!({"metadata": {"name": name}, "color": "red"}))
    }
}

impl Patcher for SchemalessServer {
    fn applied(
        &self,
        object: &Value,
        _: GroupVersionKind<'_>,
        configuration: &Value,
    ) -> Result<Value, PatchError> {
        if configuration.get("bad").is_some() {
            return Err(PatchError::Policy("error applying patch: bad".to_owned()));
        }
        let mut object = object.clone();
        merge(&mut object, configuration);
        Ok(object)
    }

    fn patched(
        &self,
        object: &Value,
        _: GroupVersionKind<'_>,
        operations: &Value,
    ) -> Result<Value, PatchError> {
        let mut object = object.clone();
        for operation in operations.as_array().unwrap() {
            let path = operation["path"].as_str().unwrap();
            let Some(field) = path.strip_prefix('/') else {
                return Err(PatchError::Server(format!("no path: {path}")));
            };
            object[field] = operation["value"].clone();
        }
        Ok(object)
    }

    fn converted_to_request_kind(
        &self,
        object: Value,
        _: GroupVersionKind<'_>,
        _: GroupVersionKind<'_>,
    ) -> Result<Value, PatchError> {
        Ok(object)
    }
}

fn merge(object: &mut Value, over: &Value) {
    let (Value::Object(fields), Value::Object(over)) = (&mut *object, over) else {
        *object = over.clone();
        return;
    };
    for (key, value) in over {
        merge(fields.entry(key).or_insert(Value::Null), value);
    }
}

/// A policy that matches every write of a widget, with further fields in `spec`.
fn policy(name: &str, more: Value) -> Value {
    let mut spec = json!({"reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"],
            "apiVersions": ["v1"], "resources": ["widgets"],
            "operations": ["CREATE", "UPDATE"]}]}});
    let (Value::Object(fields), Value::Object(more)) = (&mut spec, more) else {
        panic!("both are objects");
    };
    fields.extend(more);
    json!({"metadata": {"name": name}, "spec": spec})
}

fn binding(policy: &str, more: Value) -> Value {
    let mut spec = Map::new();
    spec.insert("policyName".to_owned(), policy.into());
    let Value::Object(more) = more else {
        panic!("it is an object");
    };
    spec.extend(more);
    json!({"metadata": {"name": format!("{policy}-binding")}, "spec": spec})
}

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": expression}})
}

fn operations(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn texts(errors: &[FieldError]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn refusal(policy: &Value) -> String {
    let compiled = MutatingPolicy::compile(policy, KubeVersion::default());
    texts(&compiled.err().unwrap_or_default())
}

fn policies(all: &[(Value, Value)]) -> MutatingPolicies {
    let compiled = all.iter().map(|(policy, _)| {
        let policy = MutatingPolicy::compile(policy, KubeVersion::default());
        Arc::new(policy.map_err(|errors| texts(&errors)).unwrap())
    });
    let bindings = all.iter().map(|(_, binding)| {
        let binding = Binding::compile_mutating(binding);
        Arc::new(binding.map_err(|errors| texts(&errors)).unwrap())
    });
    MutatingPolicies::new(compiled, bindings)
}

fn mutate(
    policies: &MutatingPolicies,
    object: &Value,
    memory: &mut Reinvocation,
) -> Result<Option<Value>, Box<Denial>> {
    let mut request = Request::create(KIND, "widgets", object);
    request.namespace = "ns";
    policies.mutate(&request, &SchemalessServer, memory)
}

/// The object after one policy with these fields.
fn changed(spec: Value, object: &Value) -> Result<Option<Value>, Box<Denial>> {
    let policies = policies(&[(policy("p", spec), binding("p", json!({})))]);
    mutate(&policies, object, &mut Reinvocation::default())
}

fn failed(spec: Value) -> String {
    let object = json!({"spec": {"size": 1}});
    changed(spec, &object).unwrap_err().message
}

#[test]
fn each_mutation_is_applied_to_the_result_of_the_previous_one() {
    let spec = json!({
        "variables": [{"name": "size", "expression": "object.spec.size"}],
        "mutations": [
            apply("Object{spec: Object.spec{size: variables.size + 1}}"),
            apply("Object{spec: Object.spec{size: variables.size * 10}}"),
            operations("[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('note'), \
                        value: Object.note{text: 'size ' + string(object.spec.size)}}]"),
        ],
    });
    let object = json!({"metadata": {"name": "a"}, "spec": {"size": 1}});
    assert_eq!(
        changed(spec, &object),
        Ok(Some(
            json!({"metadata": {"name": "a"}, "spec": {"size": 20},
            "note": {"text": "size 20"}})
        ))
    );
}

#[test]
fn match_conditions_decide_which_objects_a_policy_changes() {
    let spec = json!({
        "matchConditions": [{"name": "c", "expression": "object.spec.size > 1"}],
        "mutations": [apply("Object{seen: true}")],
    });
    assert_eq!(
        changed(spec.clone(), &json!({"spec": {"size": 1}})),
        Ok(None)
    );
    let seen = changed(spec, &json!({"spec": {"size": 2}}));
    assert_eq!(seen.unwrap().unwrap()["seen"], true);
}

#[test]
fn the_binding_selects_the_parameters() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "mutations": [apply("Object{color: params.color}")]});
    let reference = |name: &str| json!({"paramRef": {"name": name, "parameterNotFoundAction": "Deny"}});
    let with = |name: &str| {
        let all = [(policy("p", spec.clone()), binding("p", reference(name)))];
        mutate(&policies(&all), &json!({}), &mut Reinvocation::default())
    };
    assert_eq!(with("red"), Ok(Some(json!({"color": "red"}))));
    let denial = with("blue").unwrap_err();
    assert_eq!((denial.code, denial.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        denial.message,
        "policy 'p' with binding 'p-binding' denied request: failed to configure binding: no \
         params found for policy binding with `Deny` parameterNotFoundAction"
    );
    let unknown = json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "mutations": [apply("Object{}")]});
    assert_eq!(
        failed(unknown),
        "policy \"p\" denied request: failed to configure policy: failed to find resource \
         referenced by paramKind: '/v1, Kind=Secret'"
    );
}

#[test]
fn an_evaluation_error_denies_the_request() {
    let denial = changed(
        json!({"mutations": [apply("Object{a: object.spec.missing}"), apply("Object{bad: 1}")]}),
        &json!({"spec": {}}),
    )
    .unwrap_err();
    assert_eq!((denial.code, denial.reason.as_str()), (403, "Invalid"));
    let messages: Vec<&str> =
        denial.causes.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "policy 'p' with binding 'p-binding' denied request: expression \
             'Object{a: object.spec.missing}' resulted in error: no such key: missing",
            "policy 'p' with binding 'p-binding' denied request: error applying patch: bad",
        ]
    );
    assert_eq!(denial.message, messages[0]);
}

#[test]
fn a_policy_that_ignores_failures_applies_the_other_mutations() {
    let spec = json!({"failurePolicy": "Ignore",
        "mutations": [apply("Object{bad: 1}"), apply("Object{good: 1}")]});
    assert_eq!(changed(spec, &json!({})), Ok(Some(json!({"good": 1}))));
}

#[test]
fn type_names_must_match_their_field_path() {
    let message = failed(json!({"mutations": [
        apply("Object{spec: Object.spec{a: [Object.spec.b{}]}}")]}));
    assert_eq!(
        message,
        "policy 'p' with binding 'p-binding' denied request: type mismatch: unexpected type \
         name \"Object.spec.b\", expected \"Object.spec.a\", which matches field name path from \
         root Object type"
    );
}

#[test]
fn a_server_error_is_not_a_denial_by_a_policy() {
    let spec = json!({"failurePolicy": "Ignore",
        "mutations": [operations("[JSONPatch{op: 'add', path: 'x'}]")]});
    let denial = changed(spec, &json!({})).unwrap_err();
    assert_eq!(denial.code, 500);
    assert_eq!(denial.message, "Internal error occurred: no path: x");
}

#[test]
fn the_size_of_a_patch_is_limited() {
    let mut nested = "'0123456789'".to_owned();
    for _ in 0..11 {
        nested = format!("[{nested}].map(y, dyn([y, y, y, y]))[0]");
    }
    let message =
        failed(json!({"mutations": [apply(&format!("Object{{a: {nested}}}"))]}));
    assert!(
        message.ends_with("patch is too large: the maximum is 4194304"),
        "{message}"
    );
}

/// The results of `k8s.io/apiserver` v0.36.3 for the same expressions.
#[test]
fn values_are_written_as_in_kubernetes() {
    let rows = [
        ("9007199254740991", "9007199254740991"),
        ("9007199254740992", r#""9007199254740992""#),
        ("-9007199254740992", r#""-9007199254740992""#),
        ("3.0", "3"),
        ("1.5", "1.5"),
        ("1e30", "1e+30"),
        ("b'abc'", r#""YWJj""#),
        ("duration('1h30m')", r#""5400s""#),
        ("duration('1500ms')", r#""1.5s""#),
        (
            "timestamp('2024-01-01T00:00:00Z')",
            r#""2024-01-01T00:00:00Z""#,
        ),
        (
            "timestamp('2024-01-01T00:00:00.5Z')",
            r#""2024-01-01T00:00:00.5Z""#,
        ),
        ("Object.x{y: Object.x.y{}}", r#"{"y":{}}"#),
        ("optional.of(1)", "1"),
        ("null", "null"),
        ("object.spec", r#"{"list":["x"]}"#),
        ("JSONPatch{op: 'x'} == JSONPatch{op: 'x'}", "true"),
    ];
    let object = json!({"spec": {"list": ["x"]}});
    for (value, wanted) in rows {
        let expression = format!("[JSONPatch{{op: 'add', path: '/a', value: {value}}}]");
        let spec = json!({"mutations": [operations(&expression)]});
        let made = changed(spec, &object).unwrap().unwrap();
        assert_eq!(made["a"].to_string(), wanted, "{value}");
    }
}

#[test]
fn values_without_a_json_form_are_rejected_with_the_error_of_kubernetes() {
    let rows = [
        (
            "double('NaN')",
            "json: error calling MarshalJSON for type *structpb.Value: proto: \
             google.protobuf.Value.number_value: invalid NaN value",
        ),
        ("{1: 2}", "unsupported type conversion from 'int' to string"),
        ("{true: 2}", "type conversion error from bool to 'string'"),
        ("optional.none()", "optional.none() dereference"),
        (
            "quantity('1Gi')",
            "type conversion error from 'Quantity' to '*structpb.Value'",
        ),
        ("type(1)", "type conversion not supported for 'type'"),
    ];
    for (value, wanted) in rows {
        let expression = format!("[JSONPatch{{op: 'add', path: '/a', value: {value}}}]");
        let message = failed(json!({"mutations": [operations(&expression)]}));
        assert_eq!(
            message,
            format!(
                "policy 'p' with binding 'p-binding' denied request: JSONPath valueExpression \
                 evaluated to a type that could not marshal to JSON: {wanted}"
            ),
            "{value}"
        );
    }
}

#[test]
fn only_policies_with_if_needed_are_reinvoked() {
    let count = |name: &str, again: &str| {
        let expression =
            format!("Object{{{name}: (has(object.{name}) ? object.{name} : 0) + 1}}");
        let spec =
            json!({"reinvocationPolicy": again, "mutations": [apply(&expression)]});
        (policy(name, spec), binding(name, json!({})))
    };
    let policies = policies(&[count("a", "IfNeeded"), count("b", "Never")]);
    let mut memory = Reinvocation::default();
    let first = mutate(&policies, &json!({}), &mut memory).unwrap().unwrap();
    assert_eq!(first, json!({"a": 1, "b": 1}));
    memory.begin_reinvocation(Some(&first));
    let second = mutate(&policies, &first, &mut memory).unwrap().unwrap();
    assert_eq!(second, json!({"a": 2, "b": 1}));
}

#[test]
fn an_invalid_policy_is_rejected_with_the_errors_of_the_api_server() {
    assert_eq!(
        refusal(&policy(
            "p",
            json!({"matchConstraints": {}, "reinvocationPolicy": null})
        )),
        "spec.matchConstraints.resourceRules: Required value\n\
         spec.mutations: Required value: mutations must contain at least one item\n\
         spec.reinvocationPolicy: Required value"
    );
    let wrong = json!({"reinvocationPolicy": "Often", "mutations": [
        {},
        {"patchType": "Merge"},
        {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
        apply(" "),
        apply("[Object{}]"),
        operations("[]"),
        operations("JSONPatch{op: 1}"),
    ]});
    assert_eq!(
        refusal(&policy("p", wrong)),
        "spec.mutations[0].patchType: Required value\n\
         spec.mutations[1].patchType: Unsupported value: \"Merge\": supported values: \
         \"ApplyConfiguration\", \"JSONPatch\"\n\
         spec.mutations[2].jsonPatch: Required value: must be specified when patchType is \
         JSONPatch\n\
         spec.mutations[2].applyConfiguration: Invalid value: \"{applyConfiguration}\": must \
         not be specified when patchType is JSONPatch\n\
         spec.mutations[3].applyConfiguration.expression: Required value\n\
         spec.mutations[4].applyConfiguration.expression: Invalid value: \"[Object{}]\": must \
         evaluate to Object but got list(Object)\n\
         spec.mutations[5].jsonPatch.expression: Invalid value: \"[]\": must evaluate to \
         list(JSONPatch) but got list(dyn)\n\
         spec.mutations[6].jsonPatch.expression: Invalid value: \"JSONPatch{op: 1}\": \
         compilation failed: ERROR: <input>:1:13: expected type of field 'op' is 'string' but \
         provided type is 'int'\n | JSONPatch{op: 1}\n | ............^\n\
         spec.reinvocationPolicy: Unsupported value: \"Often\": supported values: \"IfNeeded\", \
         \"Never\""
    );
}

#[test]
fn deletions_cannot_be_mutated() {
    let rules = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods"], "operations": ["CREATE", "DELETE"]}]});
    let spec = json!({"matchConstraints": rules, "mutations": [apply("Object{}")]});
    assert_eq!(
        refusal(&policy("p", spec)),
        "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": \
         supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\""
    );
    let binding = binding("p", json!({"matchResources": rules}));
    assert_eq!(
        texts(&Binding::compile_mutating(&binding).unwrap_err()),
        "spec.matchResources.resourceRules.operations: Unsupported value: \"DELETE\": \
         supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\""
    );
}
