//! Properties of every schema and every object.

use kubemu_admission::KubeVersion;
use kubemu_admission::schema::Structural;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values with the field names of the schemas below, and with others.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        Just(json!(2.5)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Structural schemas of objects, lists, maps and scalars with bounds and defaults.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 2, "default": "a"})),
        Just(json!({"type": "string", "pattern": "^a", "nullable": true})),
        Just(json!({"type": "integer", "minimum": 0, "maximum": 5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(
                |items| json!({"type": "array", "items": items, "maxItems": 2})
            ),
            inner
                .clone()
                .prop_map(|each| json!({"type": "object", "additionalProperties": each})),
            prop::collection::vec(("[a-c]", inner), 0..4).prop_map(|fields| {
                let properties: Map<_, _> = fields.into_iter().collect();
                json!({"type": "object", "properties": properties, "required": ["a"]})
            }),
        ]
    })
}

fn compile(spec: &Value) -> Structural {
    let root = json!({"type": "object", "properties": {"spec": spec}});
    Structural::compile(&root, KubeVersion::default()).expect("it is structural")
}

proptest! {
    #[test]
    fn pruning_and_defaulting_leave_nothing_to_prune_or_default(
        schema in schema(),
        spec in value(),
    ) {
        let schema = compile(&schema);
        let mut object = json!({"kind": "A", "spec": spec});
        schema.prune(&mut object);
        schema.default(&mut object);
        let before = object.clone();
        prop_assert!(schema.prune(&mut object).is_empty());
        schema.default(&mut object);
        prop_assert_eq!(before, object);
    }

    #[test]
    fn an_unchanged_object_is_not_rejected(schema in schema(), spec in value()) {
        let schema = compile(&schema);
        let mut object = json!({"spec": spec});
        schema.prune(&mut object);
        let result = schema.validate(&object, Some(&object));
        prop_assert!(result.errors.is_empty(), "{:?}", result.errors);
    }

    #[test]
    fn no_json_makes_the_compiler_panic(schema in value()) {
        let root = json!({"type": "object", "properties": schema, "anyOf": schema});
        let _ = Structural::compile(&root, KubeVersion::default());
    }
}
