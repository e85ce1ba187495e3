//! Custom resource definitions: their validation at registration, and the validation of objects
//! with their rules.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use kubemu_admission::crd::{Crd, CustomResource};
use kubemu_admission::schema::ValidationResult;
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

fn definition(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {
                        "n": {"type": "integer", "maximum": 5}}},
                }}},
            }],
        },
    })
}

fn compile_for(spec: Value, version: &str) -> Crd {
    let version = version.parse().unwrap();
    Crd::compile(&definition(spec), version)
        .map_err(|errors| texts(&errors))
        .unwrap()
}

fn compile(spec: Value) -> Crd {
    compile_for(spec, "1.36")
}

fn v1(crd: &Crd) -> &CustomResource {
    crd.served("v1").unwrap()
}

fn refused(crd: Value) -> String {
    texts(&Crd::compile(&crd, KubeVersion::default()).unwrap_err())
}

fn texts(errors: &[FieldError]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "b"}, "spec": spec})
}

fn errors_text(result: &ValidationResult) -> String {
    texts(&result.errors)
}

#[test]
fn errors_of_rules_have_the_path_of_the_value() {
    let crd = compile(json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [
                {"rule": "self.size() > 2", "message": "short"},
                {"rule": "self != 'secret'", "message": "not this", "reason": "FieldValueForbidden"}]},
            "map": {"type": "object", "maxProperties": 5, "additionalProperties": {
                "type": "integer", "x-kubernetes-validations": [{"rule": "self > 1",
                    "messageExpression": "self == 1 ? 'only one' : 'not even one'"}]}},
            "list": {"type": "array", "maxItems": 3, "items": {"type": "object",
                "properties": {"n": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.n > 0", "fieldPath": ".n",
                    "message": "n too small"}]}},
            "min": {"type": "integer"}, "max": {"type": "integer"},
        },
        "x-kubernetes-validations": [{"rule": "self.min <= self.max"}],
    }));
    let object = widget(
        json!({"text": "ab", "map": {"a.b": 1}, "list": [{"n": 1}, {"n": 0}],
        "min": 2, "max": 1}),
    );
    insta::assert_snapshot!(errors_text(&v1(&crd).create(&object)), @r#"
    spec: Invalid value: failed rule: self.min <= self.max
    spec.text: Invalid value: "ab": short
    spec.map[a.b]: Invalid value: 1: only one
    spec.list[1].n: Invalid value: n too small
    "#);
    let object = widget(json!({"text": "secret", "min": 1, "max": 1}));
    assert_eq!(
        errors_text(&v1(&crd).create(&object)),
        "spec.text: Forbidden: not this"
    );
}

/// As in Go, where its lower-case form is one character.
#[test]
fn a_kind_with_a_dotted_capital_letter_is_a_name() {
    let mut definition = definition(json!({"type": "object"}));
    definition["spec"]["names"]["kind"] = json!("Widİ");
    definition["spec"]["names"]["listKind"] = json!("WidİList");
    assert!(Crd::compile(&definition, KubeVersion::default()).is_ok());
}

#[test]
fn older_servers_print_the_type_instead_of_the_value() {
    let crd = compile_for(
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "false", "message": "no"}]}),
        "1.33",
    );
    assert_eq!(
        errors_text(&v1(&crd).create(&widget(json!({})))),
        r#"spec: Invalid value: "object": no"#
    );
}

#[test]
fn rules_do_not_run_on_values_that_the_schema_rejects() {
    let spec = json!({
        "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.a != ''"}],
    });
    let crd = compile(spec.clone());
    insta::assert_snapshot!(errors_text(&v1(&crd).create(&widget(json!({})))), @r#"
    spec.a: Required value
    <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    "#);
    let crd = compile_for(spec, "1.33");
    let result = v1(&crd).create(&widget(json!({})));
    assert!(errors_text(&result).contains(r#"<nil>: Invalid value: "null": some"#));
}

#[test]
fn a_transition_rule_does_not_run_without_an_old_value() {
    let crd = compile(json!({
        "type": "object",
        "properties": {
            "once": {"type": "string", "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "is fixed"}]},
            "down": {"type": "integer", "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self > 0",
                    "optionalOldSelf": true, "message": "only up"}]},
        },
    }));
    let resource = v1(&crd);
    let first = widget(json!({"once": "a", "down": 1}));
    assert_eq!(errors_text(&resource.create(&first)), "");
    let none = widget(json!({}));
    assert_eq!(errors_text(&resource.update(&first, &none)), "");
    let second = widget(json!({"once": "b", "down": 0}));
    insta::assert_snapshot!(errors_text(&resource.update(&second, &first)), @r#"
    spec.once: Invalid value: "b": is fixed
    spec.down: Invalid value: 0: only up
    "#);
    assert_eq!(
        errors_text(&resource.create(&widget(json!({"down": 0})))),
        "spec.down: Invalid value: 0: only up"
    );
}

#[test]
fn items_of_a_map_list_are_correlated_by_their_keys_in_any_order() {
    let crd = compile(json!({
        "type": "object",
        "properties": {"list": {
            "type": "array", "maxItems": 4, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"},
                "n": {"type": "integer", "x-kubernetes-validations": [
                    {"rule": "self >= oldSelf", "message": "must not shrink"}]}}},
        }},
    }));
    let old = widget(json!({"list": [{"k": "a", "n": 5}, {"k": "b", "n": 1}]}));
    let new = widget(json!({"list": [{"k": "b", "n": 5}, {"k": "a", "n": 1}]}));
    assert_eq!(
        errors_text(&v1(&crd).update(&new, &old)),
        "spec.list[1].n: Invalid value: 1: must not shrink"
    );
}

#[test]
fn errors_of_unchanged_values_are_warnings() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self != 'bad'", "message": "bad"}]},
        "b": {"type": "string"},
    }});
    let crd = compile(spec.clone());
    let old = widget(json!({"a": "bad", "b": "1"}));
    let new = widget(json!({"a": "bad", "b": "2"}));
    let result = v1(&crd).update(&new, &old);
    assert_eq!(errors_text(&result), "");
    assert_eq!(result.warnings, [r#"spec.a: Invalid value: "bad": bad"#]);
    let crd = compile_for(spec, "1.29");
    assert!(errors_text(&v1(&crd).update(&new, &old)).contains("spec.a: Invalid value"));
}

#[test]
fn an_evaluation_error_names_the_rule() {
    let crd = compile(json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.a / self.b > 0", "message": "must be positive"},
            {"rule": "self.a > self.b"}],
    }));
    let errors_text = errors_text(&v1(&crd).create(&widget(json!({"a": 1, "b": 0}))));
    assert_eq!(
        errors_text,
        "spec: Invalid value: \"object\": division by zero evaluating rule: must be positive"
    );
}

#[test]
fn an_update_of_the_status_validates_only_the_status() {
    let crd = compile(json!({"type": "object", "required": ["a"],
        "properties": {"a": {"type": "string"}}}));
    let old = widget(json!({}));
    let mut new = old.clone();
    new["status"] = json!({"n": 9});
    assert_eq!(
        errors_text(&v1(&crd).update_status(&new, &old)),
        "status.n: Invalid value: 9: n in body should be less than or equal to 5"
    );
}

#[test]
fn another_kind_or_an_invalid_name_is_rejected() {
    let crd = compile(json!({"type": "object"}));
    let mut object = widget(json!({}));
    object["kind"] = json!("Gadget");
    assert_eq!(
        errors_text(&v1(&crd).create(&object)),
        r#"kind: Invalid value: "Gadget": must be Widget"#
    );
    let mut object = widget(json!({}));
    object["metadata"] = json!({"name": "A"});
    let result = v1(&crd).create(&object);
    let paths: Vec<_> = result.errors.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["metadata.name", "metadata.namespace"]);
}

#[test]
fn decoding_removes_unknown_fields_also_from_metadata() {
    let crd = compile(json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x"}}}));
    let mut object = widget(json!({"b": 1}));
    object["metadata"]["color"] = json!("red");
    assert_eq!(v1(&crd).decode(&mut object), ["metadata.color", "spec.b"]);
    assert_eq!(object, widget(json!({"a": "x"})));
}

#[test]
fn names_and_versions_of_a_definition_are_validated() {
    let mut crd = definition(json!({"type": "object"}));
    crd["metadata"]["name"] = json!("gadgets.example.com");
    crd["spec"]["scope"] = json!("Everywhere");
    crd["spec"]["names"] =
        json!({"plural": "Widgets", "kind": "Widget", "shortNames": ["W"]});
    crd["spec"]["versions"][0]["storage"] = json!(false);
    insta::assert_snapshot!(refused(crd), @r#"
    metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group
    spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"
    spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version
    spec.names.plural: Invalid value: "Widgets": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
    spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
    status.storedVersions: Invalid value: null: must have at least one stored version
    "#);
}

#[test]
fn a_definition_with_a_rule_that_does_not_compile_is_rejected() {
    let crd = definition(json!({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "x-kubernetes-validations": [
            {"rule": "self.nope == 1", "message": "m"},
            {"rule": "self.a"},
            {"rule": "true", "messageExpression": "1", "optionalOldSelf": true}],
    }));
    insta::assert_snapshot!(refused(crd), @r#"
    spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.nope == 1","Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'nope'
     | self.nope == 1
     | ....^
    spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1].rule: Invalid value: {"Rule":"self.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool
    spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].messageExpression: Invalid value: {"Rule":"true","Message":"","MessageExpression":"1","Reason":null,"FieldPath":"","OptionalOldSelf":true}: messageExpression must evaluate to a string
    spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule
    "#);
}

#[test]
fn a_new_rule_may_only_use_functions_of_the_previous_version() {
    let spec = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "isIP('10.0.0.1')"}]});
    let errors = Crd::compile(&definition(spec.clone()), "1.30".parse().unwrap());
    assert!(texts(&errors.unwrap_err()).contains("undeclared reference to 'isIP'"));
    compile_for(spec, "1.31");
}

#[test]
fn a_transition_rule_is_not_allowed_in_a_list_without_correlatable_items() {
    let crd = definition(json!({"type": "object", "properties": {"list": {
        "type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9,
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}}));
    insta::assert_snapshot!(refused(crd), @r#"spec.validation.openAPIV3Schema.properties[spec].properties[list].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[list]"#);
}

#[test]
fn a_default_must_satisfy_its_own_schema_and_rules() {
    let crd = definition(json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": 5},
            "b": {"type": "object", "properties": {"n": {"type": "integer"}},
                "default": {"n": 1, "m": 2}},
        },
    }));
    insta::assert_snapshot!(refused(crd), @r#"
    spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"
    spec.validation.openAPIV3Schema.properties[spec].properties[b].default: Invalid value: {"m":2,"n":1}: must not have unknown fields
    "#);
    let crd = definition(json!({"type": "object", "properties": {"a": {
        "type": "integer", "default": 0,
        "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]}}}));
    assert_eq!(
        refused(crd),
        "spec.validation.openAPIV3Schema.properties[spec].properties[a].default: \
         Invalid value: 0: positive"
    );
}

#[test]
fn list_types_must_fit_their_items() {
    let crd = definition(json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {
            "type": "object", "properties": {"a": {"type": "string"}}}},
        "map": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "none"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "odd": {"type": "string", "x-kubernetes-list-type": "bag"},
        "unique": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
    }}));
    insta::assert_snapshot!(refused(crd), @r#"
    spec.validation.openAPIV3Schema.properties[spec].properties[set].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set
    spec.validation.openAPIV3Schema.properties[spec].properties[map].x-kubernetes-list-map-keys: Invalid value: ["k","none"]: entries must all be names of item properties
    spec.validation.openAPIV3Schema.properties[spec].properties[map].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
    spec.validation.openAPIV3Schema.properties[spec].properties[odd].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified
    spec.validation.openAPIV3Schema.properties[spec].properties[odd].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"
    spec.validation.openAPIV3Schema.properties[spec].properties[unique].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
    "#);
}

#[test]
fn a_finalizer_without_a_domain_gets_a_warning() {
    let crd = compile(json!({"type": "object"}));
    let mut object = widget(json!({}));
    object["metadata"]["finalizers"] = json!(["mine"]);
    let result = v1(&crd).create(&object);
    assert_eq!(errors_text(&result), "");
    assert_eq!(result.warnings.len(), 1);
}

/// The API server's errors for a definition with this edit: at its creation and as an update.
fn edited(pointer: &str, value: Value) -> (Vec<String>, Vec<String>) {
    let mut old = definition(json!({"type": "object"}));
    old["metadata"]["resourceVersion"] = json!("1");
    let mut new = old.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("it is a pointer");
    new.pointer_mut(parent).expect("it is there")[name] = value;
    let texts = |result: Result<Crd, Vec<FieldError>>| -> Vec<String> {
        let errors = result.err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    };
    (
        texts(Crd::compile(&new, KubeVersion::default())),
        texts(Crd::replace(&new, &old, KubeVersion::default())),
    )
}

#[test]
fn columns_and_selectable_fields_of_a_definition_are_validated() {
    let columns = json!([{"name": "", "type": "text", "jsonPath": "spec.a"}]);
    let (created, _) = edited("/spec/versions/0/additionalPrinterColumns", columns);
    assert_eq!(
        created,
        [
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
             boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": must be a \
             simple json path starting with .",
        ]
    );
    let fields = json!([{"jsonPath": ".nope"}, {"jsonPath": ""}, {"jsonPath": ".a[0]"}]);
    let (created, _) = edited("/spec/versions/0/selectableFields", fields);
    assert_eq!(
        created,
        [
            "spec.selectableFields[0].jsonPath: Invalid value: \".nope\": is an invalid path: \
             does not refer to a valid field",
            "spec.selectableFields[1].jsonPath: Required value",
            "spec.selectableFields[2].jsonPath: Invalid value: \".a[0]\": is an invalid path: \
             does not refer to a valid field",
        ]
    );
}

#[test]
fn a_conversion_of_a_definition_is_validated() {
    let (created, _) = edited(
        "/spec/conversion",
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v9"],
            "clientConfig": {"url": "http://example.com/?a=b"}}}),
    );
    assert_eq!(
        created,
        [
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the \
             only allowed URL scheme; desired format: https://host[/path]",
            "spec.conversion.webhookClientConfig.url: Invalid value: \"a=b\": query parameters \
             are not permitted in the URL",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v9\"]: must include at \
             least one of v1, v1beta1",
        ]
    );
}

#[test]
fn the_scope_of_an_established_definition_is_kept_and_printed_as_json() {
    let mut old = definition(json!({"type": "object"}));
    old["metadata"]["resourceVersion"] = json!("1");
    old["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    let mut new = old.clone();
    new["spec"]["scope"] = json!("\u{0}Cluster");
    let errors = Crd::replace(&new, &old, KubeVersion::default()).err();
    let texts: Vec<String> = errors.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.scope: Unsupported value: \"\\x00Cluster\": supported values: \"Cluster\", \
             \"Namespaced\"",
            "spec.scope: Invalid value: \"\\u0000Cluster\": field is immutable",
        ]
    );
}

#[test]
fn the_group_and_the_stored_versions_of_a_definition_are_kept() {
    let (_, updated) = edited("/spec/group", json!("other.example.com"));
    assert_eq!(
        updated,
        ["spec.group: Invalid value: \"other.example.com\": field is immutable"]
    );
    let (created, updated) = edited("/spec/versions/0/name", json!("v2"));
    assert!(created.is_empty(), "{created:?}");
    assert_eq!(
        updated,
        [
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
          previously a storage version, and must remain in spec.versions until a storage \
          migration ensures no data remains persisted in v1 and removes v1 from \
          status.storedVersions"
        ]
    );
    let (created, updated) = edited("/spec/preserveUnknownFields", json!(true));
    assert_eq!(created, updated);
    assert_eq!(
        created,
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
          x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ]
    );
}

#[test]
fn groups_of_the_community_require_an_approval() {
    let mut crd = definition(json!({"type": "object"}));
    crd["spec"]["group"] = json!("a.k8s.io");
    crd["metadata"]["name"] = json!("widgets.a.k8s.io");
    let errors = Crd::compile(&crd, KubeVersion::default())
        .err()
        .unwrap_or_default();
    assert_eq!(
        errors[0].to_string(),
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups \
         must have approval annotation \"api-approved.kubernetes.io\", see \
         https://github.com/kubernetes/enhancements/pull/1111"
    );
    crd["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "unapproved, a test"});
    assert!(Crd::compile(&crd, KubeVersion::default()).is_ok());
}

#[test]
fn rules_run_on_a_default_with_an_unknown_field() {
    let field = json!({"type": "string",
        "x-kubernetes-validations": [{"rule": "self == 'b'", "message": "not b"}]});
    let errors = refused(definition(json!({"type": "object",
        "properties": {"a": field}, "default": {"a": "c", "unknown": 1}})));
    assert!(errors.contains("must not have unknown fields"), "{errors}");
    assert!(
        errors.contains("default.a: Invalid value: \"c\": not b"),
        "{errors}"
    );
}

#[test]
fn the_name_of_an_entry_of_a_default_map_starts_with_a_dot() {
    let errors = refused(definition(json!({"type": "object",
        "additionalProperties": {"type": "number", "maximum": 5}, "default": {"a": 1e10}})));
    let wanted =
        "default.a: Invalid value: 1e+10: .a in body should be less than or equal to 5";
    assert!(errors.contains(wanted), "{errors}");
}

#[test]
fn rules_that_read_an_unchanged_invalid_date_fail() {
    let rule = json!([{"rule": "has(self.t) && oldSelf.t == self.t"}]);
    let rows = [
        ("date", "2024-01-01", ""),
        (
            "date",
            "2024-01-01T00:00:00Z",
            "Invalid date formatted string 2024-01-01T00:00:00Z: parsing time \
             \"2024-01-01T00:00:00Z\": extra text: \"T00:00:00Z\"",
        ),
        ("date-time", "2024-01-01T00:00:00Z", ""),
        (
            "date-time",
            "2024-01-01",
            "Invalid date-time formatted string 2024-01-01: parsing time \"2024-01-01\" as \
             \"2006-01-02T15:04:05\": cannot parse \"\" as \"T\"",
        ),
    ];
    for (format, text, why) in rows {
        let crd = compile(json!({"type": "object", "x-kubernetes-validations": rule,
            "properties": {"t": {"type": "string", "format": format}}}));
        let object = widget(json!({"t": text}));
        let found = errors_text(&v1(&crd).update(&object, &object));
        assert_eq!(found.is_empty(), why.is_empty(), "{format} {text}: {found}");
        assert!(found.contains(why), "{format} {text}: {found}");
    }
}

#[test]
fn a_schema_in_an_error_has_every_field_of_the_internal_form() {
    let mut crd = definition(json!({"type": "object"}));
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    *schema = json!({"type": "object", "nullable": true});
    let errors = refused(crd);
    let wanted = "Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,\"Description\":\"\",\
                  \"Type\":\"object\",\"Nullable\":true,";
    assert!(errors.contains(wanted), "{errors}");
}

#[test]
fn a_default_of_int_or_string_may_be_of_any_type_as_in_kubernetes() {
    let either = json!({"x-kubernetes-int-or-string": true, "default": [true]});
    let crd = compile(json!({"type": "object", "properties": {"a": either}}));
    let errors_text = errors_text(&v1(&crd).create(&widget(json!({"a": [true]}))));
    assert!(
        errors_text.contains("must be of type integer,string"),
        "{errors_text}"
    );
}

#[test]
fn rules_on_the_metadata_of_an_embedded_resource_see_only_its_names() {
    let with = |rule: &str| {
        let metadata = json!({
            "type": "object",
            "properties": {"owner": {"type": "string", "maxLength": 9}},
            "x-kubernetes-validations": [{"rule": rule}],
        });
        let embedded = json!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "properties": {"metadata": metadata},
        });
        definition(json!({"type": "object", "properties": {
            "parts": {"type": "object", "maxProperties": 2, "additionalProperties": embedded},
        }}))
    };
    let errors_text = refused(with("has(self.owner)"));
    assert!(
        errors_text.contains("undefined field 'owner'"),
        "{errors_text}"
    );
    let by_name = with("self.name != ''");
    assert!(Crd::compile(&by_name, KubeVersion::default()).is_ok());
}

#[test]
fn a_default_is_validated_with_formats_that_are_ignored_for_objects() {
    let with = |format: &str, default: Value| {
        definition(json!({"type": "object", "properties": {
            "a": {"type": "string", "format": format, "default": default},
        }}))
    };
    // With a format, the validator leaves the type of a list to the format, which ignores lists.
    assert!(Crd::compile(&with("int32", json!(["a"])), KubeVersion::default()).is_ok());
    let errors_text = refused(with("float", json!(5)));
    assert!(
        errors_text.contains("must be of type float: \"int64\""),
        "{errors_text}"
    );
}

#[test]
fn an_error_of_the_result_type_precedes_an_error_of_the_program() {
    let rule = |rule: Value| {
        refused(definition(
            json!({"type": "string", "x-kubernetes-validations": [rule]}),
        ))
    };
    let found = rule(json!({"rule": "uint(-1)"}));
    assert!(
        found.ends_with("cel expression must evaluate to a bool"),
        "{found}"
    );
    let found = rule(json!({"rule": "true", "messageExpression": "uint(-1)"}));
    assert!(
        found.ends_with("messageExpression must evaluate to a string"),
        "{found}"
    );
    // The use of `oldSelf` is also known.
    let found = rule(json!({"rule": "oldSelf.hasValue() && uint(-1) == 1u",
        "optionalOldSelf": true}));
    assert!(
        found.ends_with("program instantiation failed: unsigned integer overflow"),
        "{found}"
    );
}

#[test]
fn field_paths_are_not_checked_without_a_structural_schema() {
    let found = refused(definition(json!({"type": "object", "$ref": "#/a",
        "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".nope"}]})));
    insta::assert_snapshot!(found, @"spec.validation.openAPIV3Schema.properties[spec].$ref: Forbidden: $ref is not supported");
}

#[test]
fn selectable_fields_of_one_version_require_its_own_schema() {
    let mut crd =
        definition(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let mut other = crd["spec"]["versions"][0].clone();
    other["name"] = json!("v2");
    other["storage"] = json!(false);
    other["selectableFields"] = json!([{"jsonPath": ".spec.a"}]);
    crd["spec"]["versions"].as_array_mut().unwrap().push(other);
    insta::assert_snapshot!(refused(crd), @r#"spec.versions[1].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included"#);
}

#[test]
fn field_paths_are_not_checked_if_the_schema_has_other_errors() {
    let rule = json!([{"rule": "true", "fieldPath": ".nope"}]);
    let found = refused(definition(
        json!({"x-kubernetes-preserve-unknown-fields": false, "type": "object",
        "x-kubernetes-validations": rule}),
    ));
    insta::assert_snapshot!(found, @"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined");
    let found = refused(definition(json!({"type": "object", "properties": {"a":
        {"$ref": "#/a", "type": "string"}}, "x-kubernetes-validations": rule})));
    insta::assert_snapshot!(found, @"spec.validation.openAPIV3Schema.properties[spec].properties[a].$ref: Forbidden: $ref is not supported");
}

#[test]
fn a_selectable_field_requires_a_structural_schema() {
    let select = |schema: Value| {
        let mut crd = definition(json!({"type": "object"}));
        let version = &mut crd["spec"]["versions"][0];
        version["schema"] = schema;
        version["selectableFields"] = json!([{"jsonPath": "spec.a"}]);
        refused(crd)
    };
    insta::assert_snapshot!(select(json!({})), @r#"
    spec.versions[0].schema.openAPIV3Schema: Required value
    spec.selectableFields[0].jsonPath: Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec
    "#);
    insta::assert_snapshot!(select(json!({"openAPIV3Schema": {"type": "object", "$ref": "#/a"}})), @r#"
    spec.validation.openAPIV3Schema.$ref: Forbidden: $ref is not supported
    spec.schema.openAPIV3Schema: Invalid value: "": OpenAPIV3Schema '$ref' is not supported
    spec.selectableFields[0].jsonPath: Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec
    "#);
}

#[test]
fn versions_in_errors_contain_the_schemas_that_they_do_not_share() {
    let mut crd = definition(json!({"type": "object"}));
    let versions = crd["spec"]["versions"].as_array_mut().unwrap();
    *versions = vec![json!({"name": "v1", "schema": {}}), json!({"name": "v2"})];
    let found = refused(crd);
    let stored = found.lines().find(|line| line.contains("exactly one"));
    insta::assert_snapshot!(stored.unwrap_or_default(), @r#"spec.versions: Invalid value: [{"Name":"v1","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":{"OpenAPIV3Schema":null},"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version"#);
}

#[test]
fn rules_about_a_field_without_a_type_are_reported_once_and_not_for_a_default() {
    let rules = json!([{"rule": "true"}]);
    let untyped = json!({"x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": rules});
    let found = refused(definition(json!({"type": "object", "properties": {"o":
        {"type": "object", "properties": {"a": untyped}, "default": {"a": 1}}}})));
    insta::assert_snapshot!(found, @"spec.validation.openAPIV3Schema.properties[spec].properties[o].properties[a].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations");
    // A list of such values has no field whose rules could be omitted.
    let found = refused(definition(json!({"type": "object", "properties": {"l":
        {"type": "array", "items": untyped, "default": [1]}}})));
    insta::assert_snapshot!(found, @r#"spec.validation.openAPIV3Schema.properties[spec].properties[l].default[0]: Invalid value: "": rule compiler initialization error: failed to convert to declType for CEL validation rules"#);
}

#[test]
fn invalid_limits_are_reported_with_their_field() {
    let crd = compile(json!({"type": "object", "properties": {
        "n": {"type": "integer", "multipleOf": 0}, "l": {"type": "array", "maxItems": -1,
        "items": {"type": "string"}}}}));
    let result = v1(&crd).create(&widget(json!({"n": 4, "l": []})));
    insta::assert_snapshot!(errors_text(&result), @r#"
    spec.n: Invalid value: 0: factor MultipleOf declared for spec.n must be positive: 0
    spec.l: Too many: 0: has too many items
    "#);
}

#[test]
fn rules_below_a_field_without_a_type_never_run() {
    let never =
        json!({"type": "boolean", "x-kubernetes-validations": [{"rule": "false"}]});
    let untyped = json!({"x-kubernetes-preserve-unknown-fields": true,
        "properties": {"a": never}});
    for field in [
        untyped.clone(),
        json!({"type": "array", "items": untyped}),
        json!({"type": "object", "additionalProperties": untyped}),
    ] {
        let crd =
            compile(json!({"type": "object", "properties": {"x": field, "a": never}}));
        for x in [
            json!({"a": true}),
            json!([{"a": true}]),
            json!({"k": {"a": true}}),
        ] {
            let result = v1(&crd).create(&widget(json!({ "x": x })));
            assert!(!errors_text(&result).contains("failed rule"), "{field} {x}");
        }
        let result = v1(&crd).create(&widget(json!({"a": true})));
        assert!(
            errors_text(&result).contains("failed rule: false"),
            "{field}"
        );
    }
}

#[test]
fn rules_below_a_field_without_a_type_are_not_run_on_its_default() {
    let never =
        json!({"type": "boolean", "x-kubernetes-validations": [{"rule": "false"}]});
    let with_default = |name: &str| {
        definition(json!({"type": "object", "properties": {"x": {
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {name: never}, "default": {name: true}}}}))
    };
    let crd = Crd::compile(&with_default("a"), KubeVersion::default()).unwrap();
    // Nothing was left unchecked: there is no rule that would run.
    let result = v1(&crd).create(&widget(json!("text")));
    assert!(!errors_text(&result).contains("rules were not checked"));
    // Kubernetes finds a field that CEL cannot name by its own schema.
    let refused = refused(with_default("é"));
    assert!(refused.contains("failed rule: false"), "{refused}");
}

#[test]
fn rules_below_a_field_without_a_type_are_refused_within_other_rules() {
    let rules = json!([{"rule": "true"}]);
    let untyped = json!({"x-kubernetes-preserve-unknown-fields": true,
        "properties": {"a": {"type": "boolean", "x-kubernetes-validations": rules}}});
    let found = refused(definition(json!({"type": "object",
        "x-kubernetes-validations": rules, "properties": {"x": untyped}})));
    insta::assert_snapshot!(found, @"spec.validation.openAPIV3Schema.properties[spec].properties[x].properties[a].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations");
}

#[test]
fn an_update_may_keep_an_unknown_type_where_the_old_definition_has_one() {
    let spec = |kind: &str, rule: &str| {
        let mut crd = definition(json!({"type": "object",
            "properties": {"a": {"type": kind}, "b": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]}));
        crd["metadata"]["resourceVersion"] = json!("1");
        crd
    };
    let replace = |new: &Value, old: &Value| {
        let result = Crd::replace(new, old, KubeVersion::default());
        result.map_err(|errors| texts(&errors))
    };
    let old = spec("strin", "true");
    let crd = replace(&spec("txt", "self.b > 1"), &old).unwrap();
    let result = v1(&crd).create(&widget(json!({"b": 0})));
    insta::assert_snapshot!(errors_text(&result), @"spec: Invalid value: failed rule: self.b > 1");
    let result = v1(&crd).create(&widget(json!({"a": "x", "b": 2})));
    insta::assert_snapshot!(result.errors[0], @r#"spec.a: Invalid value: "string": spec.a in body must be of type txt: "string""#);
    let refused = replace(&old, &spec("string", "true")).unwrap_err();
    insta::assert_snapshot!(refused, @r#"spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Unsupported value: "strin": supported values: "array", "boolean", "integer", "number", "object", "string""#);
    // The kept type hides no error of a rule.
    let refused = replace(&spec("strin", "self.a == 'x'"), &old).unwrap_err();
    assert!(refused.contains("undefined field 'a'"), "{refused}");
}

#[test]
fn a_set_that_an_update_keeps_hides_no_error_of_a_rule() {
    let spec = |rule: &str| {
        let items = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let set =
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
        let mut crd = definition(json!({"type": "object", "properties": {"l": set},
            "x-kubernetes-validations": [{"rule": rule}]}));
        crd["metadata"]["resourceVersion"] = json!("1");
        crd
    };
    let old = spec("true");
    let replace = |new: &Value| Crd::replace(new, &old, KubeVersion::default());
    assert!(replace(&old).is_ok());
    let refused = texts(&replace(&spec("self.nope == 1")).unwrap_err());
    assert!(refused.contains("undefined field 'nope'"), "{refused}");
}

#[test]
fn an_optional_old_value_that_cannot_be_read_fails_only_the_rules_that_use_it() {
    let failure = |rule: &str| {
        let crd = compile(json!({"type": "object", "properties": {"d": {
            "type": "string", "format": "duration",
            "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true}]}}}));
        let (new, old) = (widget(json!({"d": "1h"})), widget(json!({"d": "soon"})));
        errors_text(&v1(&crd).update(&new, &old))
    };
    insta::assert_snapshot!(
        failure("oldSelf.orValue(self) == self"),
        @r#"spec.d: Invalid value: "string": unsupported conversion to ref.Val: (*errors.errorString)Invalid duration soon: unable to parse soon as duration evaluating rule: oldSelf.orValue(self) == self"#
    );
    assert_eq!(failure("oldSelf.hasValue()"), "");
    let compared = failure("oldSelf == optional.of(self)");
    assert!(compared.contains("unsupported conversion"), "{compared}");
    // As in Kubernetes, values that cannot be compared are not equal.
    assert_eq!(failure("oldSelf != optional.of(self)"), "");
}

#[test]
fn errors_of_the_root_hide_no_errors_of_its_default_and_rules() {
    let mut crd = definition(json!({"type": "object"}));
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["nullable"] = json!(true);
    schema["x-kubernetes-validations"] = json!([{"rule": "self.nope"}]);
    let found = refused(crd.clone());
    assert!(found.contains("undefined field 'nope'"), "{found}");
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["default"] = json!({});
    let found = refused(crd);
    for wanted in [
        "fields are allowed at the root of the schema",
        "openAPIV3Schema.nullable: Forbidden",
        "openAPIV3Schema.default.apiVersion: Required value",
        "openAPIV3Schema.default.kind: Required value",
    ] {
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
}
