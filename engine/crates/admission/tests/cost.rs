//! The maximum cost of rules: estimated as in Kubernetes, and rejected at the registration of a
//! definition if it exceeds the limits.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{Crd, ResourceRules, RuleCost, SchemaRoot};
use serde_json::{Value, json};

/// A schema in which some values have a bound and others do not.
fn properties() -> Value {
    json!({
        "s": {"type": "string", "maxLength": 10},
        "free": {"type": "string"},
        "enum": {"type": "string", "enum": ["on", "standby"]},
        "bytes": {"type": "string", "format": "byte", "maxLength": 100},
        "date": {"type": "string", "format": "date"},
        "n": {"type": "integer"},
        "port": {"x-kubernetes-int-or-string": true},
        "names": {"type": "array", "maxItems": 20,
            "items": {"type": "string", "maxLength": 63}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "labels": {"type": "object", "maxProperties": 8,
            "additionalProperties": {"type": "string", "maxLength": 63}},
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
        "pools": {"type": "array", "maxItems": 50, "items": {
            "type": "object", "required": ["zone"], "properties": {
                "zone": {"type": "string"},
                "limit": {"type": "integer"},
                "sizes": {"type": "array", "maxItems": 1000,
                    "items": {"type": "integer"}},
            }}},
    })
}

/// The estimates of Kubernetes 1.36 for each rule over that schema.
const COSTS: &[(&str, u64)] = &[
    ("self.n == 5", 2),
    ("self.s == 'abcdefghijklmnopqrstuvwxyz'", 5),
    ("self.s == oldSelf.s", 8),
    ("self.free == oldSelf.free", 314_577),
    ("self.enum != self.s", 5),
    ("self.bytes == b'x'", 3),
    ("self.date < self.date", 5),
    ("self.port == self.s", 8),
    ("has(self.s) && self.s.startsWith(self.enum)", 6),
    ("self.s.contains(self.free)", 1_258_296),
    ("self.s.matches('^[a-z]{1,5}$')", 17),
    ("(self.s + self.enum).size() > 4", 11),
    ("self.s in self.names", 24),
    ("'a' in self.labels", 3),
    ("self.names.all(x, x != 'root')", 103),
    ("self.numbers.all(x, x > 0)", 7_864_318),
    ("self.labels.all(k, self.labels[k] != k)", 67),
    ("self.notes.exists(k, self.notes[k] == 'x')", 3_538_938),
    ("self.pools.all(p, p.zone == 'a')", 303),
    ("self.pools.all(p, p.sizes.all(x, x < 5))", 250_303),
    ("self.pools.all(p, p.sizes.all(x, x < p.limit))", 303),
    (
        "self.names.map(x, x.lowerAscii()).exists_one(x, x == 'a')",
        855,
    ),
    ("self.names.filter(x, x.size() > 2).size() == 1", 335),
    ("self.n > 0 ? self.s == 'a' : self.free == 'a'", 6),
    ("self.names.isSorted()", 542),
    ("self.numbers.sum() > 3", 1_572_866),
    ("self.s.replace('a', 'bcd').upperAscii() == 'x'", 23),
    ("self.s.split(',').exists(x, x == 'a')", 211),
    ("self.names.join(', ').size() < 100", 512),
    ("self.s.find('[0-9]+') == '1'", 13),
    ("quantity(self.s) == quantity('1')", 8),
    ("url(self.s) == url(self.s)", 16),
    ("ip(self.s).family() == 4", 8),
    ("cidr('10.0.0.0/8').containsIP(self.s)", 11),
    ("format.dns1123Label().validate(self.s).hasValue()", 132),
    ("sets.contains(self.names, ['a', 'b'])", 53),
    ("self.names.distinct().size() == 1", 815),
    ("self.names.sort() == self.names", 857),
    ("lists.range(5).all(x, x > self.n)", 52),
    ("self.?enum.orValue('on') == 'on'", 4),
    (
        "self.names[?0].optMap(x, x + 'y').orValue('z') == 'z'",
        1_844_674_407_370_955_286,
    ),
    ("self.labels.transformList(k, v, v).size() == 1", 119),
    ("string(bytes(self.s)) == strings.quote(self.s)", 37),
];

fn costs(schema: &Value) -> Vec<RuleCost> {
    let rules = ResourceRules::compile(schema, SchemaRoot::Value, KubeVersion::default())
        .unwrap();
    rules.rule_costs()
}

#[test]
fn the_estimate_of_every_rule_equals_that_of_kubernetes() {
    let rules: Vec<_> = COSTS
        .iter()
        .map(|(rule, _)| json!({"rule": rule}))
        .collect();
    let schema = json!({
        "type": "object", "required": ["s"], "properties": properties(),
        "x-kubernetes-validations": rules,
    });
    let found: Vec<_> = costs(&schema).iter().map(RuleCost::total).collect();
    let found: Vec<_> = COSTS.iter().map(|(rule, _)| *rule).zip(found).collect();
    assert_eq!(found, COSTS);
}

/// The number of runs of the rule of a value in a list in a map, each with further keywords.
fn times(map: &Value, list: &Value, value: &Value) -> u64 {
    let with = |mut schema: Value, more: &Value| {
        let fields = more.as_object().unwrap().clone();
        schema.as_object_mut().unwrap().extend(fields);
        schema
    };
    let value = with(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
        value,
    );
    let list = with(json!({"type": "array", "items": value}), list);
    let map = with(json!({"type": "object", "additionalProperties": list}), map);
    costs(&map).first().unwrap().times
}

#[test]
fn a_rule_runs_once_for_each_possible_entry_of_its_lists_and_maps() {
    let (map, list) = (json!({"maxProperties": 5}), json!({"maxItems": 7}));
    assert_eq!(times(&map, &list, &json!({})), 35);
}

#[test]
fn a_rule_in_an_unbounded_list_runs_as_often_as_fits_into_a_request() {
    let none = json!({});
    // An empty text and a comma are three bytes; the limit is three mebibytes.
    assert_eq!(times(&none, &json!({"maxItems": 7}), &none), 1024 * 1024);
    assert_eq!(
        times(&json!({"maxProperties": 5}), &none, &none),
        1024 * 1024
    );
}

fn definition(spec: &Value) -> Value {
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
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec},
                }},
            }],
        },
    })
}

/// The errors for a definition of an object with these fields, or `registered`.
fn answer(fields: &Value) -> String {
    let spec = json!({"type": "object", "properties": fields});
    match Crd::compile(&definition(&spec), KubeVersion::default()) {
        Ok(_) => "registered".to_owned(),
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            errors.join("\n")
        }
    }
}

/// A list with a rule that compares every item with every other item.
fn quadratic(most: Option<u64>) -> Value {
    let mut list = json!({
        "type": "array", "items": {"type": "string", "maxLength": 10},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}],
    });
    if let (Some(most), Some(list)) = (most, list.as_object_mut()) {
        list.insert("maxItems".to_owned(), most.into());
    }
    list
}

#[test]
fn a_rule_whose_estimate_exceeds_the_limit_is_rejected_with_the_factor() {
    assert_eq!(
        answer(&json!({"names": quadratic(Some(1000))})),
        "registered"
    );
    insta::assert_snapshot!(answer(&json!({"names": quadratic(Some(1200))})), @"spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 1.296600x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)");
    insta::assert_snapshot!(answer(&json!({"names": quadratic(Some(2000))})), @"spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 3.6x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)");
    insta::assert_snapshot!(answer(&json!({"names": quadratic(None)})), @r"
    spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
    spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
    ");
}

#[test]
fn a_rule_is_rejected_if_the_estimate_of_all_its_runs_exceeds_the_limit() {
    let pools = |most: Option<u64>| {
        let zone = json!({"type": "string", "maxLength": 63,
            "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]});
        let mut pools = json!({"type": "array", "items": {"type": "object",
            "required": ["zone"], "properties": {"zone": zone}}});
        if let (Some(most), Some(pools)) = (most, pools.as_object_mut()) {
            pools.insert("maxItems".to_owned(), most.into());
        }
        answer(&json!({"pools": pools}))
    };
    assert_eq!(pools(Some(100)), "registered");
    insta::assert_snapshot!(pools(None), @"spec.validation.openAPIV3Schema.properties[spec].properties[pools].items.properties[zone].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of 5.6x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)");
}

#[test]
fn a_message_whose_estimate_exceeds_the_limit_is_rejected() {
    let names = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [
            {"rule": "self.size() < 5", "messageExpression": "self.join(', ')"}]});
    insta::assert_snapshot!(answer(&json!({"names": names})), @r"
    spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
    spec.validation.openAPIV3Schema.properties[spec].properties[names].x-kubernetes-validations[0].messageExpression: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
    ");
}

#[test]
fn rules_over_the_total_limit_are_rejected_with_the_four_most_expensive() {
    let mut fields = serde_json::Map::new();
    for (at, most) in (0..13_u64).map(|at| (at, 1000 + at)) {
        fields.insert(format!("list{at}"), quadratic(Some(most)));
    }
    fields.insert("short".to_owned(), quadratic(Some(3)));
    insta::assert_snapshot!(answer(&Value::Object(fields)), @r"
    spec.validation.openAPIV3Schema.properties[spec].properties[list12].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema.properties[spec].properties[list11].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema.properties[spec].properties[list10].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema.properties[spec].properties[list9].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
    spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.184754x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
    ");
}

#[test]
fn a_rule_that_does_not_compile_has_no_cost_error() {
    let free = json!({"type": "string",
        "x-kubernetes-validations": [{"rule": "self.nope == 1"}]});
    let answer = answer(&json!({"free": free}));
    assert!(!answer.contains("cost"), "{answer}");
    assert!(answer.contains("compilation failed"), "{answer}");
}
