//! Validating admission policies: the requests they match, and their decisions.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::policy::{
    Access, Authorizer, Binding, Decision, GroupVersionKind, GroupVersionResource,
    ParamKind, Permission, Policies, Policy, Request, Resolver, Target, User,
};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

const V1: GroupVersionResource<'static> = GroupVersionResource {
    group: "example.com",
    version: "v1",
    resource: "widgets",
};
const KIND: GroupVersionKind<'static> = GroupVersionKind {
    group: "example.com",
    version: "v1",
    kind: "Widget",
};

/// A policy that matches every write of a widget, with further fields in `spec`.
fn policy(more: Value) -> Value {
    let mut spec = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
        "operations": ["*"]}]}});
    merge(&mut spec, more);
    json!({"metadata": {"name": "p"}, "spec": spec})
}

fn binding(more: Value) -> Value {
    let mut spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    merge(&mut spec, more);
    json!({"metadata": {"name": "b"}, "spec": spec})
}

fn merge(spec: &mut Value, more: Value) {
    let (Value::Object(spec), Value::Object(more)) = (spec, more) else {
        panic!("both are objects");
    };
    spec.extend(more);
}

fn texts(errors: &[FieldError]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn policies(policy: Value, binding: Value) -> Policies {
    let policy = Policy::compile(&policy, KubeVersion::default());
    let binding = Binding::compile(&binding);
    Policies::new(
        [Arc::new(policy.map_err(|errors| texts(&errors)).unwrap())],
        [Arc::new(binding.map_err(|errors| texts(&errors)).unwrap())],
    )
}

fn create<'a>(object: &'a Value, user: &'a User) -> Request<'a> {
    let mut request = Request::create(KIND, V1.resource, object);
    request.namespace = "ns";
    request.name = "a";
    request.user = user;
    request
}

fn decide(spec: Value, object: &Value) -> Decision {
    let user = User::default();
    policies(policy(spec), binding(json!({}))).decide(&create(object, &user), &())
}

/// The text after "denied request: " of every denial.
fn denial_messages(decision: &Decision) -> Vec<&str> {
    let denials = decision.denials.iter();
    denials
        .map(|it| it.message.split_once("denied request: ").unwrap().1)
        .collect()
}

#[test]
fn a_denial_has_the_form_that_kubectl_prints() {
    let decision = decide(
        json!({"validations": [{"expression": "object.spec.n < 5", "message": " too many "}]}),
        &json!({"spec": {"n": 7}}),
    );
    let denial = decision.denied().unwrap();
    assert_eq!(
        denial.message,
        "widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding \
         'b' denied request: too many"
    );
    assert_eq!((denial.code, denial.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        serde_json::to_value(&denial.causes).unwrap(),
        json!([{"message": "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too many"}])
    );
}

#[test]
fn every_failure_is_a_denial_and_the_first_is_returned() {
    let decision = decide(
        json!({"validations": [
            {"expression": " false "},
            {"expression": "false", "messageExpression": "'n is ' + string(object.n)", "message": "m"},
            {"expression": "false", "messageExpression": "string(object.none)", "message": "m"},
            {"expression": "false", "messageExpression": "' '", "message": "blank"},
            {"expression": "false", "messageExpression": "'two\\nlines'", "message": "lines"},
            {"expression": "true"},
            {"expression": "false", "reason": "RequestEntityTooLarge", "message": "who"},
        ]}),
        &json!({"n": 1}),
    );
    assert_eq!(
        denial_messages(&decision),
        [
            "failed expression: false",
            "n is 1",
            "m",
            "blank",
            "lines",
            "who"
        ]
    );
    let last = decision.denials.last().unwrap();
    assert_eq!((last.code, last.validation), (413, Some(6)));
}

#[test]
fn the_failure_policy_applies_to_errors_but_not_to_false() {
    let validations = json!([
        {"expression": "object.none == 1"}, {"expression": "false", "message": "no"}]);
    let object = json!({});
    let decision = decide(json!({"validations": validations}), &object);
    assert_eq!(
        denial_messages(&decision),
        [
            "expression 'object.none == 1' resulted in error: no such key: none",
            "no"
        ]
    );
    let decision = decide(
        json!({"validations": validations, "failurePolicy": "Ignore"}),
        &object,
    );
    assert_eq!(denial_messages(&decision), ["no"]);
}

#[test]
fn variables_are_lazy_and_their_errors_fail_only_expressions_that_use_them() {
    let decision = decide(
        json!({
            "variables": [
                {"name": "n", "expression": "object.n"},
                {"name": "twice", "expression": "variables.n * 2"},
                {"name": "bad", "expression": "object.none"},
            ],
            "validations": [
                {"expression": "variables.twice == 6"},
                {"expression": "variables.twice > 10", "message": "small"},
                {"expression": "variables.bad == 1"},
                {"expression": "true || variables.bad == 1"},
            ],
        }),
        &json!({"n": 3}),
    );
    assert_eq!(
        denial_messages(&decision),
        [
            "small",
            "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" \
             fails to evaluate: no such key: none"
        ]
    );
}

#[test]
fn a_false_condition_takes_precedence_over_an_error() {
    let spec = |conditions: Value| {
        json!({"matchConditions": conditions,
            "validations": [{"expression": "false", "message": "no"}]})
    };
    let fails = json!({"name": "fails", "expression": "object.none == 1"});
    let no = json!({"name": "no", "expression": "false"});
    let object = json!({});
    assert_eq!(
        denial_messages(&decide(spec(json!([fails, no])), &object)),
        [""; 0]
    );
    assert_eq!(
        denial_messages(&decide(spec(json!([fails])), &object)),
        ["expression 'object.none == 1' resulted in error: no such key: none"]
    );
}

#[test]
fn keys_in_expressions_are_not_escaped() {
    let decision = decide(
        json!({"validations": [
            {"expression": "!('evil.io/x' in object.metadata.labels)", "message": "evil"},
            {"expression": "object.spec['a-b'] == 1"}]}),
        &json!({"metadata": {"labels": {"evil.io/x": ""}}, "spec": {"a-b": 1}}),
    );
    assert_eq!(denial_messages(&decision), ["evil"]);
}

#[test]
fn the_request_is_a_variable_and_its_empty_fields_are_absent() {
    let object = json!({});
    let user = User {
        name: "jane".to_owned(),
        groups: vec!["admins".to_owned()],
        ..User::default()
    };
    let all = policies(
        policy(json!({"validations": [
            {"expression": "request.operation == 'CREATE' && request.kind.kind == 'Widget'"},
            {"expression": "request.userInfo.username == 'jane' && 'admins' in request.userInfo.groups"},
            {"expression": "!has(request.subResource) && !has(request.userInfo.extra)"},
            {"expression": "request.name == 'a' && request.namespace == 'ns' && !request.dryRun"},
            {"expression": "oldObject == null && object != null"},
        ]})),
        binding(json!({})),
    );
    let decision = all.decide(&create(&object, &user), &());
    assert_eq!(denial_messages(&decision), [""; 0]);
}

#[test]
fn the_actions_of_the_binding_determine_the_outputs() {
    let object = json!({});
    let user = User::default();
    let spec = json!({"validations": [{"expression": "false", "message": "no"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'seen'"},
            {"key": "none", "valueExpression": "null"}]});
    let all = policies(
        policy(spec),
        binding(json!({"validationActions": ["Warn", "Audit"]})),
    );
    let decision = all.decide(&create(&object, &user), &());
    assert_eq!(decision.denied(), None);
    assert_eq!(
        decision.warnings,
        ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"]
    );
    let key = "validation.policy.admission.k8s.io/validation_failure".to_owned();
    assert_eq!(
        decision.audit_annotations,
        BTreeMap::from([
            ("p/k".to_owned(), "seen".to_owned()),
            (key, r#"[{"message":"no","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Warn","Audit"]}]"#.to_owned()),
        ])
    );
}

#[test]
fn only_matching_requests_are_evaluated() {
    let refuse = json!({"validations": [{"expression": "false"}]});
    let object = json!({"metadata": {"labels": {"team": "x"}}});
    let user = User::default();
    let request = create(&object, &user);
    let namespace = json!({"metadata": {"labels": {"env": "prod"}}});
    let mut in_prod = request;
    in_prod.namespace_object = Some(&namespace);
    let mut status = request;
    status.subresource = "status";
    let rows = [
        (json!({}), request, true),
        (json!({}), status, false),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            in_prod,
            true,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            request,
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ns"}}}),
            request,
            true,
        ),
        (
            json!({"objectSelector": {"matchLabels": {"team": "y"}}}),
            request,
            false,
        ),
        (
            json!({"excludeResourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["*"], "operations": ["CREATE"], "resourceNames": ["a"]}]}),
            request,
            false,
        ),
        (
            json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["*/*"], "operations": ["UPDATE"]}]}),
            request,
            false,
        ),
        (
            json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["widgets"], "operations": ["*"], "scope": "Cluster"}]}),
            request,
            false,
        ),
    ];
    for (resources, request, refused) in rows {
        let all = policies(
            policy(refuse.clone()),
            binding(json!({"matchResources": resources})),
        );
        let decision = all.decide(&request, &());
        assert_eq!(decision.denied().is_some(), refused, "{resources}");
    }
}

#[test]
fn an_equivalent_version_is_converted_to_the_version_of_the_policy() {
    let object = json!({"apiVersion": "example.com/v2"});
    let user = User::default();
    let mut request = create(&object, &user);
    request.kind.version = "v2";
    request.resource.version = "v2";
    request.equivalents = &[(V1, KIND)];
    let spec = json!({"validations": [{"expression":
        "object.apiVersion != 'example.com/v1' || request.requestKind.version != 'v2'",
        "message": "seen"}]});
    let all = policies(policy(spec.clone()), binding(json!({})));
    assert_eq!(denial_messages(&all.decide(&request, &())), ["seen"]);
    let mut exact = policy(spec);
    exact["spec"]["matchConstraints"]["matchPolicy"] = json!("Exact");
    let all = policies(exact, binding(json!({})));
    assert_eq!(denial_messages(&all.decide(&request, &())), [""; 0]);
}

struct Config;

impl Resolver for Config {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        (kind.kind == "ConfigMap").then_some(true)
    }

    fn param(&self, _: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let found = (namespace, name) == ("ns", "limits");
        found.then(|| json!({"data": {"max": "5"}}))
    }

    fn params(&self, _: &ParamKind, _: &str) -> Vec<Value> {
        vec![
            json!({"metadata": {"labels": {"on": "1"}}, "data": {"max": "1"}}),
            json!({"metadata": {"labels": {"on": "1"}}, "data": {"max": "9"}}),
            json!({"data": {"max": "0"}}),
        ]
    }
}

#[test]
fn parameters_are_selected_by_name_or_selector() {
    let object = json!({"n": 7});
    let user = User::default();
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params == null || object.n <= int(params.data.max)",
            "messageExpression": "'more than ' + params.data.max"}],
    });
    let rows = [
        (json!({}), vec![]),
        (
            json!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}),
            vec!["more than 5"],
        ),
        (
            json!({"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}}),
            vec![],
        ),
        (
            json!({"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}}),
            vec![
                "failed to configure binding: no params found for policy binding with `Deny` \
                 parameterNotFoundAction",
            ],
        ),
        (
            json!({"paramRef": {"selector": {"matchLabels": {"on": "1"}},
                "parameterNotFoundAction": "Deny"}}),
            vec!["more than 1"],
        ),
    ];
    for (binding_spec, wanted) in rows {
        let all = policies(policy(spec.clone()), binding(binding_spec));
        assert_eq!(
            denial_messages(&all.decide(&create(&object, &user), &Config)),
            wanted
        );
    }
}

#[test]
fn an_expensive_validation_fails_with_the_cost_limit_error() {
    let items: Vec<_> = (0..1500).collect();
    let decision = decide(
        json!({"validations": [
            {"expression": "object.l.all(x, object.l.all(y, x + y >= 0))", "message": "no"}]}),
        &json!({"l": items}),
    );
    assert_eq!(
        denial_messages(&decision),
        [
            "expression 'object.l.all(x, object.l.all(y, x + y >= 0))' resulted in error: \
          operation cancelled: actual cost limit exceeded"
        ]
    );
}

#[test]
fn requests_for_policies_are_exempt_from_policies() {
    let object = json!({});
    let kind = GroupVersionKind {
        group: "admissionregistration.k8s.io",
        version: "v1",
        kind: "ValidatingAdmissionPolicy",
    };
    let request = Request::create(kind, "validatingadmissionpolicies", &object);
    let mut all = policy(json!({"validations": [{"expression": "false"}]}));
    all["spec"]["matchConstraints"]["resourceRules"][0] = json!({"apiGroups": ["*"],
        "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]});
    let all = policies(all, binding(json!({})));
    assert_eq!(all.decide(&request, &()).denied(), None);
}

#[test]
fn a_malformed_policy_is_rejected_with_the_path_of_each_error() {
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "failurePolicy": "Maybe",
        "paramKind": {"kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["READ"], "resources": ["pods"]}]},
        "variables": [{"name": "a-b", "expression": "1"}],
        "matchConditions": [{"name": "x", "expression": "1"}],
        "validations": [{"expression": "object.a", "reason": "Odd"},
            {"expression": " "}, {"expression": "true", "message": "a\nb",
            "messageExpression": "1"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "object.x"}],
    }});
    let errors = Policy::compile(&policy, KubeVersion::default()).unwrap_err();
    insta::assert_snapshot!(texts(&errors), @r#"
    spec.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"
    spec.paramKind.apiVersion: Required value
    spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
    spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int
    spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier
    spec.validations[0].expression: Invalid value: "object.a": must evaluate to bool but got dyn
    spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"
    spec.validations[1].expression: Required value: expression is not specified
    spec.validations[2].messageExpression: Invalid value: "1": must evaluate to string but got int
    spec.validations[2].message: Invalid value: "a\nb": must not contain line breaks
    spec.auditAnnotations[0].valueExpression: Invalid value: "object.x": must evaluate to one of [string null_type] but got dyn
    "#);
}

#[test]
fn a_null_in_a_list_is_an_empty_text() {
    let rule = |groups: Value, resources: Value| {
        json!({"matchConstraints": {"resourceRules": [{"apiGroups": groups,
            "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}]}})
    };
    let errors = |groups: Value, resources: Value| {
        let mut spec = rule(groups, resources);
        spec["validations"] = json!([{"expression": "true"}]);
        let errors = Policy::compile(&policy(spec), KubeVersion::default()).err();
        texts(&errors.unwrap_or_default())
    };
    assert_eq!(errors(json!([null]), json!(["pods"])), "");
    insta::assert_snapshot!(
        errors(json!([""]), json!([null])),
        @"spec.matchConstraints.resourceRules[0].resources[0]: Required value"
    );
}

#[test]
fn an_empty_text_is_not_a_value_of_an_enumeration() {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["pods"], "scope": ""});
    let errors = Policy::compile(
        &policy(json!({
            "failurePolicy": "",
            "matchConstraints": {"matchPolicy": "", "resourceRules": [rule]},
            "validations": [{"expression": "true", "reason": ""}],
        })),
        KubeVersion::default(),
    )
    .map(|_| ())
    .unwrap_err();
    let paths: Vec<_> = errors.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(errors.len(), 4, "{paths:?}");
    for error in errors {
        let text = error.to_string();
        assert!(
            text.contains(r#"Unsupported value: "": supported"#),
            "{text}"
        );
    }
}

#[test]
fn enumeration_values_are_printed_as_json() {
    let word = "x<\u{0}";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": [word],
        "resources": ["pods"], "scope": word});
    let errors = Policy::compile(
        &policy(json!({
            "failurePolicy": word,
            "matchConstraints": {"matchPolicy": word, "resourceRules": [rule],
                "objectSelector": {"matchExpressions": [{"key": "a", "operator": word}]}},
            "validations": [{"expression": "true", "reason": word}],
        })),
        KubeVersion::default(),
    )
    .map(|_| ())
    .unwrap_err();
    assert_eq!(errors.len(), 6, "{}", texts(&errors));
    for error in &errors {
        assert!(
            error.to_string().contains(r#"value: "x\u003c\u0000": "#),
            "{error}"
        );
    }
    let errors = Binding::compile(&binding(json!({
        "validationActions": ["Deny", word, word],
        "paramRef": {"name": "a", "parameterNotFoundAction": word},
    })))
    .map(|_| ())
    .unwrap_err();
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts.last().map(String::as_str),
        Some(r#"spec.validationActions[2]: Duplicate value: "x\u003c\u0000""#)
    );
    for text in texts {
        assert!(text.contains(r#""x\u003c\u0000""#), "{text}");
    }
}

#[test]
fn a_stored_policy_that_does_not_compile_denies_requests() {
    let object = json!({});
    let user = User::default();
    let broken =
        policy(json!({"validations": [{"expression": "1 +"}, {"expression": "true"}]}));
    let stored = Policy::stored(&broken, KubeVersion::default()).unwrap();
    let bound = Binding::compile(&binding(json!({}))).unwrap();
    let all = Policies::new([Arc::new(stored)], [Arc::new(bound)]);
    let decision = all.decide(&create(&object, &user), &());
    let [only] = denial_messages(&decision)[..] else {
        panic!("one refusal, not {:?}", decision.denials);
    };
    assert!(only.starts_with("compilation error: compilation failed: ERROR: "));
}

#[test]
fn a_malformed_binding_is_rejected_with_the_path_of_each_error() {
    let binding = json!({"metadata": {"name": "b"}, "spec": {
        "validationActions": ["Deny", "Warn", "AuditAndDeny", "Deny"],
        "paramRef": {"name": "x", "selector": {}},
    }});
    let errors = Binding::compile(&binding).unwrap_err();
    insta::assert_snapshot!(texts(&errors), @r#"
    spec.policyName: Required value
    spec.paramRef.name: Forbidden: name and selector are mutually exclusive
    spec.paramRef.selector: Forbidden: name and selector are mutually exclusive
    spec.paramRef.parameterNotFoundAction: Required value
    spec.validationActions[2]: Unsupported value: "AuditAndDeny": supported values: "Audit", "Deny", "Warn"
    spec.validationActions[3]: Duplicate value: "Deny"
    spec.validationActions: Invalid value: ["Deny","Warn","AuditAndDeny","Deny"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)
    "#);
}

/// Allows the listed accesses: user, verb, then group, resource, namespace, name.
#[derive(Debug)]
struct Allows(&'static [&'static str]);

impl Authorizer for Allows {
    fn authorize(&self, access: &Access<'_>) -> Result<Permission, String> {
        let asked = match access.target {
            Target::Path(path) => format!("{} {} {path}", access.user.name, access.verb),
            Target::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
                ..
            } => format!(
                "{} {} {group}/{resource}/{subresource} {namespace}/{name}",
                access.user.name, access.verb
            ),
        };
        if asked.contains("broken") {
            return Err("the authorizer is down".to_owned());
        }
        let allowed = self.0.contains(&asked.as_str());
        Ok(Permission {
            allowed,
            reason: format!("asked: {asked}"),
        })
    }
}

#[derive(Debug)]
struct Authorized(Arc<Allows>);

impl Resolver for Authorized {
    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        Some(self.0.clone())
    }
}

#[test]
fn a_policy_uses_the_authorizer_of_its_world() {
    let rows: [(&str, Result<(), &str>); 8] = [
        (
            "authorizer.group('apps').resource('deployments').subresource('scale')\
             .namespace('n').name('d').check('update').allowed()",
            Ok(()),
        ),
        ("authorizer.path('/healthz').check('get').allowed()", Ok(())),
        (
            "authorizer.requestResource.check('update').allowed()",
            Ok(()),
        ),
        (
            "authorizer.serviceAccount('n', 'sa').group('').resource('pods').check('list')\
             .allowed()",
            Ok(()),
        ),
        (
            "authorizer.group('').resource('broken').check('get').errored()",
            Ok(()),
        ),
        (
            "authorizer.group('').resource('secrets').check('get').reason() \
             == 'asked: ann get /secrets/ /'",
            Ok(()),
        ),
        (
            "authorizer.group('').resource('secrets').check('get').allowed()",
            Err(
                "failed expression: authorizer.group('').resource('secrets').check('get')\
                 .allowed()",
            ),
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            Err("path must not be empty"),
        ),
    ];
    let resolver = Authorized(Arc::new(Allows(&[
        "ann update apps/deployments/scale n/d",
        "ann get /healthz",
        "ann update example.com/widgets/ ns/a",
        "system:serviceaccount:n:sa list /pods/ /",
    ])));
    let user = User {
        name: "ann".to_owned(),
        ..User::default()
    };
    let object = json!({"metadata": {"name": "a"}});
    for (expression, wanted) in rows {
        let policies = policies(
            policy(json!({"validations": [{"expression": expression}]})),
            binding(json!({})),
        );
        let decision = policies.decide(&create(&object, &user), &resolver);
        let found = decision.denied().map(|denial| denial.message.as_str());
        match (found, wanted) {
            (None, Ok(())) => {}
            (Some(found), Err(wanted)) => {
                assert!(found.ends_with(wanted), "{expression}: {found}");
            }
            (found, wanted) => panic!("{expression}: {found:?} is not {wanted:?}"),
        }
    }
}

#[test]
fn messages_and_audit_annotations_cannot_use_the_authorizer() {
    let resolver = Authorized(Arc::new(Allows(&[])));
    let object = json!({"metadata": {"name": "a"}});
    let reason = "authorizer.path('/healthz').check('get').reason()";
    let message = |spec: Value| {
        let policies = policies(policy(spec), binding(json!({})));
        let decision = policies.decide(&create(&object, &User::default()), &resolver);
        decision.denied().map(|denial| denial.message.clone())
    };
    let annotated = message(json!({"validations": [{"expression": "true"}],
        "auditAnnotations": [{"key": "k", "valueExpression": reason}]}));
    insta::assert_snapshot!(annotated.unwrap(), @"widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'authorizer.path('/healthz').check('get').reason()' resulted in error: no such attribute(s): authorizer");
    // A variable that uses the authorizer works in a validation but not in a message.
    let denied = message(json!({"variables": [{"name": "why", "expression": reason}],
        "validations": [{"expression": "variables.why == ''",
            "messageExpression": "variables.why", "message": "the message beside it"}]}));
    insta::assert_snapshot!(denied.unwrap(), @"widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the message beside it");
}

#[test]
fn a_decision_contains_the_cost_of_each_evaluation() {
    let policies = policies(
        policy(json!({"validations": [{"expression": "object.metadata.name != ''"}]})),
        binding(json!({})),
    );
    let object = json!({"metadata": {"name": "a"}});
    let decision = policies.decide(&create(&object, &User::default()), &());
    let costs: Vec<_> = decision.evaluations.iter().map(|it| it.cost).collect();
    assert_eq!(costs, [3]);
    assert_eq!(decision.evaluations[0].policy, "p");
    assert_eq!(decision.evaluations[0].binding, "b");
}

#[test]
fn conditions_after_a_false_one_are_charged_too() {
    let conditions = |second: &str| {
        json!({"validations": [{"expression": "true"}], "matchConditions": [
            {"name": "a", "expression": "has(object.spec)"},
            {"name": "b", "expression": second}]})
    };
    let object = json!({"metadata": {"name": "w"}});
    let decision = decide(conditions("object.metadata.name == 'w'"), &object);
    assert_eq!(decision.evaluations.first().map(|it| it.cost), Some(5));
    // The budget is exhausted, which takes precedence over the condition that is false.
    let check = "authorizer.path('/a').check('get').allowed()";
    let checks = [check; 2].join(" || ");
    let expensive: Vec<Value> = (0..4)
        .map(|at| json!({"name": format!("c{at}"), "expression": checks}))
        .collect();
    let mut spec = conditions("true");
    spec["matchConditions"] = [
        json!([{"name": "a", "expression": "has(object.spec)"}]),
        json!(expensive),
    ]
    .iter()
    .flat_map(|it| it.as_array().cloned().unwrap_or_default())
    .collect();
    let decision = decide(spec, &object);
    assert!(decision.denied().is_some(), "{decision:?}");
}
