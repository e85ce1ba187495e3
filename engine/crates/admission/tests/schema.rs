//! Structural schemas: pruning, defaulting and validation, with the error texts.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, Instant};

use kubemu_admission::schema::Structural;
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

fn compile(spec: Value) -> Structural {
    compile_for(spec, KubeVersion::default())
}

fn compile_for(spec: Value, version: KubeVersion) -> Structural {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Structural::compile(&schema, version).unwrap()
}

fn texts(errors: &[FieldError]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

fn refuse(schema: &Structural, spec: Value) -> String {
    texts(&schema.validate(&json!({"spec": spec}), None).errors)
}

#[test]
fn every_check_has_the_message_of_the_api_server() {
    let schema = compile(json!({
        "type": "object",
        "required": ["must"],
        "minProperties": 20,
        "maxProperties": 3,
        "properties": {
            "must": {"type": "string"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "short": {"type": "string", "maxLength": 3},
            "long": {"type": "string", "minLength": 1},
            "like": {"type": "string", "pattern": "^[a-z]+$"},
            "when": {"type": "string", "format": "date-time"},
            "low": {"type": "integer", "maximum": 5, "exclusiveMaximum": true},
            "high": {"type": "number", "minimum": 1.5},
            "even": {"type": "integer", "multipleOf": 2},
            "small": {"type": "integer", "format": "int32"},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            "many": {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
            "flag": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }));
    let spec = json!({
        "kind": "c", "short": "four", "long": "", "like": "A", "when": "today", "low": 5,
        "high": 0.5, "even": 3, "small": 4_294_967_296_u64, "list": ["x"], "many": [1, 2],
        "flag": null, "port": 1.5, "map": {"a.b": 1},
    });
    insta::assert_snapshot!(refuse(&schema, spec), @r#"
    spec: Invalid value: 14: spec in body should have at least 20 properties
    spec: Too many: 14: must have at most 3 items
    spec.kind: Unsupported value: "c": supported values: "a", "b"
    spec.short: Too long: may not be more than 3 bytes
    spec.long: Invalid value: "": spec.long in body should be at least 1 chars long
    spec.like: Invalid value: "A": spec.like in body should match '^[a-z]+$'
    spec.when: Invalid value: "today": spec.when in body must be of type date-time: "today"
    spec.low: Invalid value: 5: spec.low in body should be less than 5
    spec.high: Invalid value: 0.5: spec.high in body should be greater than or equal to 1.5
    spec.even: Invalid value: 3: spec.even in body should be a multiple of 2
    <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.small
    spec.list[0]: Invalid value: "string": spec.list[0] in body must be of type integer: "string"
    spec.list: Invalid value: 1: spec.list in body should have at least 2 items
    spec.many: Too many: 2: must have at most 1 item
    spec.flag: Invalid value: "null": spec.flag in body must be of type boolean: "null"
    spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"
    spec.map.a.b: Invalid value: "integer": spec.map.a.b in body must be of type string: "integer"
    spec.must: Required value
    "#);
}

#[test]
fn valid_values_are_accepted() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "whole": {"type": "integer"},
            "number": {"type": "number"},
            "port": {"x-kubernetes-int-or-string": true},
            "maybe": {"type": "string", "nullable": true},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        },
    }));
    let spec =
        json!({"whole": 5.0, "number": 5, "port": "http", "maybe": null, "any": [1, {}]});
    assert_eq!(refuse(&schema, spec), "");
}

#[test]
fn combinations_report_themselves_and_the_best_failing_branch() {
    let schema = compile(json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"required": ["a"], "properties": {"a": {"enum": ["x"]}}},
    }));
    assert_eq!(refuse(&schema, json!({"a": "1"})), "");
    insta::assert_snapshot!(refuse(&schema, json!({})), @r#"
    <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid
    spec.a: Required value
    "#);
    insta::assert_snapshot!(refuse(&schema, json!({"a": "x", "b": "y"})), @r#"
    <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives
    <nil>: Invalid value: "": "spec" must not validate the schema (not)
    "#);
}

#[test]
fn number_formats_were_not_checked_before_1_36() {
    let spec = json!({"type": "object", "properties": {
        "small": {"type": "integer", "format": "int32"}}});
    let schema = compile_for(spec, "1.35".parse().unwrap());
    assert_eq!(refuse(&schema, json!({"small": 4_294_967_296_u64})), "");
}

#[test]
fn a_negative_number_with_a_fraction_is_not_a_multiple() {
    let schema = compile(json!({"type": "object", "properties": {
        "half": {"type": "integer", "multipleOf": 2.5},
        "whole": {"type": "integer"},
    }}));
    let spec = json!({"half": -2_147_483_648_i64});
    let wanted = "<nil>: Invalid value: \"\": MultipleOf value must be of type integer (default \
        format) in spec.half\nspec.half: Invalid value: -2.147483648e+09: spec.half in body \
        should be a multiple of 2.5";
    assert_eq!(refuse(&schema, spec), wanted);
    let refused = refuse(&schema, json!({"whole": -5.000_000_000_1}));
    assert!(
        refused.contains("spec.whole: Invalid value: \"number\""),
        "{refused}"
    );
    let nearly = refuse(&schema, json!({"whole": 5.000_000_000_1}));
    assert!(!nearly.contains("Invalid value: \"number\""), "{nearly}");
}

#[test]
fn every_text_is_too_long_for_a_negative_maximum() {
    let schema = compile(json!({"type": "string", "maxLength": -1}));
    assert_eq!(
        refuse(&schema, json!("")),
        "spec: Too long: value is too long"
    );
}

#[test]
fn lists_of_sets_and_maps_must_not_have_duplicates() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "map": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["key", "effect"],
                "items": {"type": "object", "required": ["key", "effect"], "properties": {
                    "key": {"type": "string"}, "effect": {"type": "string"},
                    "value": {"type": "string"}}},
            },
        },
    }));
    let spec = json!({
        "set": ["a", "b", "a", "a"],
        "map": [
            {"key": "k", "effect": "e", "value": "1"},
            {"key": "k", "effect": "f"},
            {"effect": "e", "key": "k", "value": "2"},
        ],
    });
    insta::assert_snapshot!(refuse(&schema, spec.clone()), @r#"
    spec.set[2]: Duplicate value: "a"
    spec.map[2]: Duplicate value: {"effect":"e","key":"k"}
    "#);
    let object = json!({"spec": spec});
    let again = schema.validate(&object, Some(&object));
    assert_eq!(texts(&again.errors), "", "what was stored so may stay so");
}

#[test]
fn embedded_resources_are_validated_as_resources() {
    let schema = compile(json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }));
    let ok = json!({"apiVersion": "a/b", "kind": "C", "metadata": {"name": "x"}, "y": 1});
    assert_eq!(refuse(&schema, ok), "");
    let bad =
        json!({"apiVersion": "a/b/c", "metadata": {"name": "a/b", "labels": {"!": ""}}});
    insta::assert_snapshot!(refuse(&schema, bad), @r#"
    spec.kind: Required value
    spec.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
    spec.metadata.name: Invalid value: "a/b": may not contain '/'
    spec.metadata.labels: Invalid value: "!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
    "#);
}

#[test]
fn pruning_removes_unknown_fields_and_returns_their_paths() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object"}}},
        },
    }));
    let mut object = json!({
        "apiVersion": "x/v1", "kind": "X", "metadata": {"anything": 1},
        "spec": {"list": [{"a": "", "b": ""}], "map": {"k": {"l": 1}},
            "raw": {"free": {"x": 1}, "known": {"y": 1}}, "z": 1},
        "extra": true,
    });
    assert_eq!(
        schema.prune(&mut object),
        [
            "extra",
            "spec.list[0].b",
            "spec.map.k.l",
            "spec.raw.known.y",
            "spec.z"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "x/v1", "kind": "X", "metadata": {"anything": 1},
            "spec": {"list": [{"a": ""}], "map": {"k": {}},
                "raw": {"free": {"x": 1}, "known": {}}},
        })
    );
    assert_eq!(schema.prune(&mut object), [""; 0]);
}

#[test]
fn defaults_replace_absent_values_and_nulls_that_are_not_allowed() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "zone": {"type": "string", "default": "UTC"},
            "inner": {"type": "object", "default": {}, "properties": {
                "n": {"type": "integer", "default": 1}}},
            "gone": {"type": "string"},
            "kept": {"type": "string", "nullable": true, "default": "x"},
            "each": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        },
    }));
    let mut object =
        json!({"spec": {"zone": null, "gone": null, "kept": null, "each": {"a": null}}});
    schema.default(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"zone": "UTC", "kept": null, "each": {"a": 7}, "inner": {"n": 1}}})
    );
}

#[test]
fn errors_of_unchanged_values_are_ignored() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 3},
            "size": {"type": "integer", "maximum": 3},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {
                    "k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}},
            },
        },
    }));
    let old =
        json!({"spec": {"name": "long", "size": 9, "list": [{"k": "a", "v": "bad"}]}});
    let new = json!({"spec": {"name": "long", "size": 8,
        "list": [{"k": "b", "v": "bad"}, {"k": "a", "v": "bad"}]}});
    insta::assert_snapshot!(texts(&schema.validate(&new, Some(&old)).errors), @"
    spec.size: Invalid value: 8: spec.size in body should be less than or equal to 3
    spec.list[0].v: Too long: may not be more than 1 byte
    ");
}

#[test]
fn a_schema_that_is_not_structural_is_rejected() {
    let schema = json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
            "spec": {"properties": {"a": {}}, "type": "object"},
            "list": {"type": "array"},
            "re": {"type": "string", "pattern": "("},
        },
        "anyOf": [{"properties": {"b": {"type": "string"}}}],
    });
    let errors = Structural::compile(&schema, KubeVersion::default()).unwrap_err();
    insta::assert_snapshot!(texts(&errors), @r#"
    openAPIV3Schema.anyOf[0].properties[b].type: Forbidden: must be empty to be structural
    openAPIV3Schema.properties[b]: Required value: because it is defined in openAPIV3Schema.anyOf[0].properties[b]
    openAPIV3Schema.properties[list].items: Required value: must be specified
    openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
    openAPIV3Schema.properties[re].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`
    openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields
    "#);
}

/// The errors of a root schema.
fn schema_errors(schema: &Value) -> String {
    let compiled = Structural::compile(schema, KubeVersion::default());
    compiled.err().map(|it| texts(&it)).unwrap_or_default()
}

#[test]
fn only_the_exact_branches_of_int_or_string_may_repeat_the_types() {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    let with = |any_of: &Value| {
        let plain = json!({"x-kubernetes-int-or-string": true, "anyOf": any_of});
        let nested = json!({"x-kubernetes-int-or-string": true,
            "allOf": [{"anyOf": any_of}]});
        [plain, nested].map(|field| {
            schema_errors(&json!({"type": "object", "properties": {"f": field}}))
        })
    };
    assert_eq!(with(&types), ["", ""]);
    for same in [
        json!({"nullable": false}),
        json!({"title": "", "format": "", "pattern": "", "uniqueItems": false}),
        json!({"minimum": null, "enum": [], "anyOf": []}),
    ] {
        let mut types = types.clone();
        types[0]
            .as_object_mut()
            .unwrap()
            .append(same.clone().as_object_mut().unwrap());
        assert_eq!(with(&types), ["", ""], "{same}");
    }
    for more in [
        json!({"minimum": 1}),
        json!({"maxLength": 0}),
        json!({"pattern": "^[0-9]+%$"}),
        json!({"format": "int32"}),
        json!({"enum": [1]}),
        json!({"required": []}),
        json!({"properties": {}}),
        json!({"not": {}}),
        json!({"oneOf": [{}]}),
        json!({"example": 1}),
        json!({"externalDocs": {}}),
    ] {
        let mut types = types.clone();
        types[1]
            .as_object_mut()
            .unwrap()
            .append(more.clone().as_object_mut().unwrap());
        for (errors, field) in with(&types).iter().zip(["anyOf", "allOf[0].anyOf"]) {
            for at in [0, 1] {
                let wanted = format!(
                    "openAPIV3Schema.properties[f].{field}[{at}].type: Forbidden: must be \
                     empty to be structural"
                );
                assert!(errors.contains(&wanted), "{more}: {errors}");
            }
        }
    }
    let [reversed, _] = with(&json!([{"type": "string"}, {"type": "integer"}]));
    assert!(reversed.contains("anyOf[0].type: Forbidden"), "{reversed}");
}

#[test]
fn metadata_at_the_root_may_only_restrict_the_names() {
    let with = |more: Value| {
        let mut metadata = json!({"type": "object",
            "properties": {"name": {"type": "string", "maxLength": 9}}});
        let fields = metadata.as_object_mut().unwrap();
        fields.append(more.clone().as_object_mut().unwrap());
        schema_errors(&json!({"type": "object", "properties": {"metadata": metadata}}))
    };
    for allowed in [
        json!({}),
        json!({"nullable": false, "title": "", "enum": []}),
    ] {
        assert_eq!(with(allowed.clone()), "", "{allowed}");
    }
    for more in [
        json!({"title": "names"}),
        json!({"maxProperties": 3}),
        json!({"minProperties": 1}),
        json!({"enum": [{}]}),
        json!({"format": "x"}),
        json!({"pattern": "x"}),
        json!({"maximum": 1}),
        json!({"x-kubernetes-map-type": "atomic"}),
        json!({"example": {}}),
        json!({"externalDocs": {"url": "x"}}),
    ] {
        let errors = with(more.clone());
        let wanted = "must not specify anything other than name and generateName";
        assert!(errors.contains(wanted), "{more}: {errors}");
    }
}

#[test]
fn null_is_an_empty_schema_and_a_description_must_be_text() {
    let field = |field: Value| {
        schema_errors(&json!({"type": "object", "properties": {"f": field}}))
    };
    assert_eq!(field(json!({"type": "string", "anyOf": [null]})), "");
    assert_eq!(field(json!({"type": "object", "items": "text"})), "");
    assert_eq!(field(json!({"type": "object", "required": [null]})), "");
    let rules = json!({"type": "object", "x-kubernetes-validations": [null]});
    assert_eq!(field(rules), "");
    for nested in [
        json!({"type": "array", "items": {"type": "string", "description": 256}}),
        json!({"type": "object", "additionalProperties": {"type": "string", "title": 5}}),
        json!({"type": "string", "not": {"description": true}}),
    ] {
        let errors = field(nested.clone());
        assert!(errors.contains("must be a string"), "{nested}: {errors}");
    }
}

#[test]
fn a_schema_with_unlimited_nesting_is_rejected() {
    let mut schema = json!({"type": "object"});
    for _ in 0..100 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let errors = Structural::compile(&schema, KubeVersion::default()).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0]
            .to_string()
            .ends_with("must not be nested deeper than 64 levels")
    );
}

/// A list of named items.
fn named(count: u32) -> Value {
    let items = (0..count).map(|it| json!({"name": format!("item-{it}"), "size": it}));
    json!({"list": items.collect::<Vec<Value>>()})
}

#[test]
fn the_items_of_long_lists_are_correlated_in_proportion_to_their_number() {
    let schema = compile(json!({"type": "object", "properties": {"list": {
        "type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "maximum": 0},
        }},
    }}}));
    let shortest = |count: u32| -> Duration {
        let spec = named(count);
        let mut reverse = spec.clone();
        reverse["list"].as_array_mut().unwrap().reverse();
        let (old, new) = (json!({ "spec": spec }), json!({ "spec": reverse }));
        let runs = (0..3).map(|_| {
            let begun = Instant::now();
            assert_eq!(schema.validate(&new, Some(&old)).errors, []);
            begun.elapsed()
        });
        runs.min().unwrap_or_default()
    };
    let (short, long) = (shortest(250), shortest(4_000));
    // Comparing each item with each other one would take 256 times as long. Other tests run
    // meanwhile.
    assert!(long < short * 100, "{short:?}, then {long:?}");
}
