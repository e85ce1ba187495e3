//! The run-time cost of rules that fail during the evaluation, as Kubernetes 1.36 charges it.

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{ResourceRules, SchemaRoot};
use serde_json::json;

/// The cost that Kubernetes charges each rule for an object without fields.
const COSTS: &[(&str, u64)] = &[
    // An index that cannot be computed costs the same as one that does not exist.
    ("{'a': 5}[self.a] == 5", 4),
    ("['a'][?(self.n)].hasValue()", 3),
    ("self.?l[0].hasValue()", 2),
    ("self.?l[1/0].hasValue()", 2),
    // A presence test charges its field; after `?` only if the field exists.
    ("has(self.?m.a)", 0),
    ("has((true ? self : self).a)", 0),
    ("has((self.n == 1 ? self : self).a)", 2),
    // Arguments after one that is an error are not evaluated if there are more than two, if the
    // pattern is a constant, or if the overload is selected by their types.
    ("[1].slice(0, {'a': 1}[self.a]).size() == 1", 17),
    ("self.a.replace(self.a, 'b') == 'c'", 3),
    ("self.a.matches('^abcdefgh$')", 2),
    ("self.a.find('abc') == ''", 2),
    ("self.a.find(self.a) == ''", 5),
    ("dyn(self.a).indexOf('b') == 1", 4),
    ("'%s'.format([self.a]) == 'x'", 14),
    ("(self.a + '%s').format([self.a]) == 'x'", 4),
    ("[1].transformMap(i, v, self.n).size() == 0", 8),
    (
        "{'a': 1}.transformMapEntry(k, v, {self.a: 1}).size() == 0",
        37,
    ),
    ("['x'].exists(i, v, self.a == 'b')", 8),
];

/// The cost that Kubernetes charges each rule for an object whose list `o` of objects has a list in it.
const COSTS_OF_UNREADABLE_ITEMS: &[(&str, u64)] = &[
    // The item is found, so that the field behind it costs something; after `?` only if it exists.
    ("self.o[0].k == 'x'", 5),
    ("self.o[1].k == 'x'", 4),
    ("self.o[int('0')].k == 'x'", 5),
    ("(true ? self : self).o[0].k == 'x'", 4),
    ("[self.o[0]][0].k == 'x'", 15),
    ("has(self.o[0].k)", 3),
    ("self.o[0].?k.hasValue()", 4),
    ("self.o[?0].k.hasValue()", 4),
    ("self.o[?0].?k.hasValue()", 4),
    ("self.o[?0].hasValue()", 4),
    ("has(self.o[?0].k)", 2),
    ("self.?o[0].k.hasValue()", 4),
    ("has(self.?o[0].k)", 2),
    ("self.o[0] == self.o[0]", 7),
];

#[test]
fn an_item_that_cannot_be_read_costs_what_kubernetes_charges() {
    let object = json!({"type": "object", "properties": {
        "k": {"type": "string", "maxLength": 9}}});
    for (rule, wanted) in COSTS_OF_UNREADABLE_ITEMS {
        let schema = json!({"type": "object", "properties": {
            "o": {"type": "array", "maxItems": 5, "items": object},
        }, "x-kubernetes-validations": [{"rule": rule}]});
        let rules =
            ResourceRules::compile(&schema, SchemaRoot::Value, KubeVersion::NEWEST);
        let rules = rules.expect(rule);
        assert_eq!(rules.run(&json!({"o": [[]]}), None).cost, *wanted, "{rule}");
    }
}

#[test]
fn a_rule_that_fails_has_the_cost_that_kubernetes_charges() {
    let text = json!({"type": "string", "maxLength": 9});
    for (rule, wanted) in COSTS {
        let schema = json!({"type": "object", "properties": {
            "a": text, "n": {"type": "integer"},
            "l": {"type": "array", "maxItems": 5, "items": text},
            "m": {"type": "object", "maxProperties": 5, "additionalProperties": text},
        }, "x-kubernetes-validations": [{"rule": rule}]});
        let rules =
            ResourceRules::compile(&schema, SchemaRoot::Value, KubeVersion::NEWEST);
        let rules = rules.expect(rule);
        assert_eq!(rules.run(&json!({}), None).cost, *wanted, "{rule}");
    }
}
