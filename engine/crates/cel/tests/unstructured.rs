//! Lists and maps of a custom resource, which the API server stores as unstructured objects,
//! and those that an expression creates, which are cel-go's own.

use kubemu_cel::{Budget, Dialect, Env, ListKind, ObjectType, Program, Type, Variables};
use serde_json::{Value as Json, json};

/// The value of an expression over `self` of these fields, as JSON text, or its error.
fn value(source: &str, fields: &[(&str, Type)], object: &Json) -> String {
    let fields = fields.iter().map(|(name, ty)| (*name, ty.clone()));
    let ty = Type::object(ObjectType::new(fields).named("self"));
    let env = Env::new(Dialect::default()).variable("self", ty);
    let program = match Program::compile(source, &env) {
        Ok(program) => program,
        Err(errors) => return format!("refused: {errors}"),
    };
    let variables = Variables::new().json("self", object);
    match program.run(&variables, &mut Budget::default()) {
        Ok(value) => value.to_json().to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn only_empty_values_that_an_expression_creates_are_zero_values() {
    let fields = [
        ("list", Type::list(Type::String)),
        ("map", Type::map(Type::String)),
        ("text", Type::String),
    ];
    let object = json!({"list": [], "map": {}, "text": ""});
    for (made, wanted) in [
        ("self.list", "true"),
        ("self.map", "true"),
        ("self.list + []", "true"),
        ("[] + self.list", "true"),
        ("self.text", "false"),
        ("self.list.map(i, i)", "false"),
        ("[]", "false"),
        ("{}", "false"),
        ("['a'].filter(i, false)", "false"),
    ] {
        let source = format!("optional.ofNonZeroValue({made}).hasValue()");
        assert_eq!(value(&source, &fields, &object), wanted, "{source}");
    }
}

#[test]
fn items_added_to_a_list_are_read_with_its_schema() {
    let instant = "timestamp('2024-01-01T00:00:00Z')";
    let fields = [
        ("times", Type::list(Type::Timestamp)),
        ("numbers", Type::list(Type::Double)),
        ("maps", Type::list(Type::map(Type::String))),
        ("lists", Type::list(Type::list(Type::String))),
        ("any", Type::list(Type::IntOrString)),
    ];
    let object = json!({
        "times": ["2024-02-29T12:00:00Z"], "numbers": [1], "maps": [{"a": "b"}],
        "lists": [["x"]], "any": [1, "a"],
    });
    for (source, wanted) in [
        ("(self.numbers + [2.0]).sum()", "3.0"),
        ("(self.numbers + [2.0])[1]", "2.0"),
        ("(self.maps + self.maps)[1] == {'a': 'b'}", "true"),
        ("(self.lists + [self.lists[0] + ['y']])[1]", "[\"x\",\"y\"]"),
        ("(self.lists + [['x'] + ['y']])[1]", "[\"x\",\"y\"]"),
        ("(self.any + [dyn(2)])[2] == 2", "true"),
        ("size(self.times + [INSTANT])", "2"),
        ("([INSTANT] + self.times).all(i, i == i)", "true"),
        (
            "(self.times + [INSTANT])[0] == timestamp('2024-02-29T12:00:00Z')",
            "true",
        ),
        // A value of the expression is not a JSON string that could be parsed.
        (
            "(self.times + [INSTANT])[1] == INSTANT",
            "error: invalid data, expected string, got time.Time",
        ),
        (
            "INSTANT in (self.times + [INSTANT])",
            "error: invalid data, expected string, got time.Time",
        ),
        (
            "(self.maps + [{'a': 'b'}])[1] == {'a': 'b'}",
            "error: invalid data, expected a map for the provided schema with type=object",
        ),
        (
            "(self.lists + [['x']])[1] == ['x']",
            "error: invalid data, expected an array for the provided schema with type=array",
        ),
        (
            "(self.any + [dyn(1.5)])[2] == 1.5",
            "error: invalid data, expected XIntOrString value to be either a string or integer",
        ),
    ] {
        let source = source.replace("INSTANT", instant);
        assert_eq!(value(&source, &fields, &object), wanted, "{source}");
    }
}

#[test]
fn a_set_compares_the_stored_values_and_not_the_values_read() {
    let set = |item| Type::list_of(item, ListKind::Set);
    let fields = [
        ("names", set(Type::String)),
        ("numbers", set(Type::Double)),
        ("times", set(Type::Timestamp)),
        ("bytes", set(Type::Bytes)),
    ];
    let object = json!({
        "names": ["a", "b"], "numbers": [1, 2.5], "times": ["2024-02-29T12:00:00Z"],
        "bytes": ["YWJj"],
    });
    for (source, wanted) in [
        ("self.names == ['b', 'a']", "true"),
        // Each item of the right list is looked up in the left set, and not the reverse.
        ("self.names == ['a', 'a']", "true"),
        ("['b', 'a'] == self.names", "false"),
        ("[] + self.names == ['b', 'a']", "true"),
        ("['c'] + self.names == ['c', 'b', 'a']", "false"),
        ("self.names + ['c'] == ['c', 'b', 'a']", "true"),
        // The stored value is an integer, and the value read is a float.
        ("self.numbers == self.numbers", "false"),
        ("size(self.numbers + self.numbers)", "3"),
        ("self.times == self.times", "false"),
        ("size(self.times + self.times)", "2"),
        (
            "self.bytes == [b'abc']",
            "error: internal error: runtime error: hash of unhashable type []uint8",
        ),
        (
            "size(self.bytes + [b'abc'])",
            "error: internal error: runtime error: hash of unhashable type []uint8",
        ),
    ] {
        assert_eq!(value(source, &fields, &object), wanted, "{source}");
    }
}

#[test]
fn items_of_a_keyed_list_are_found_by_their_escaped_key_names() {
    let keyed = |names: [&str; 1]| ListKind::Map(names.map(str::to_owned).to_vec());
    let item = |name| {
        let fields = [(name, Type::String), ("v", Type::Int)];
        Type::object(ObjectType::new(fields).named(name))
    };
    let lists = |name| Type::list(Type::list_of(item(name), keyed([name])));
    let fields = [("plain", lists("k")), ("dashed", lists("a-b"))];
    let [k, l] = [json!({"k": "k", "v": 1}), json!({"k": "l", "v": 2})];
    let object = json!({
        "plain": [[k, l], [l, k], [{"k": "l", "v": 3}]],
        "dashed": [[{"a-b": "x", "v": 1}], [{"a-b": "y", "v": 2}]],
    });
    for (source, wanted) in [
        ("self.plain[0] == self.plain[1]", "true"),
        ("(self.plain[0] + self.plain[2]).map(i, i.v)", "[1,3]"),
        // No item has a field with the escaped name of `a-b`.
        ("(self.dashed[0] + self.dashed[1]).map(i, i.v)", "[2]"),
    ] {
        assert_eq!(value(source, &fields, &object), wanted, "{source}");
    }
}

#[test]
fn values_with_a_schema_compare_only_with_their_own_kind() {
    let fields = [
        ("list", Type::list(Type::String)),
        ("map", Type::map(Type::String)),
        ("wrong", Type::list(Type::String)),
        (
            "objects",
            Type::list(Type::Nullable(Type::map(Type::String).into())),
        ),
    ];
    let object = json!({"list": ["a", 1], "map": {}, "objects": [{}], "wrong": [1]});
    let unread = "error: invalid data, expected string, got int64";
    for (source, wanted) in [
        ("dyn(self.list) == 1", "error: no such overload"),
        ("dyn(1) == self.list", "false"),
        ("dyn(self.map) == 1", "error: no such overload"),
        ("dyn(self.map) != 1", "true"),
        ("dyn(self.map) == null", "false"),
        (
            "dyn(self.objects) == dyn([null])",
            "error: no such overload",
        ),
        ("dyn([null]) == dyn(self.objects)", "false"),
        // The left list decides, and fails on an item that it cannot read.
        ("self.list == ['a', 'b']", unread),
        ("self.list == ['b', 'b']", "false"),
        ("['a', 'b'] == self.list", "false"),
        ("size(self.list.distinct() + self.list.reverse())", "4"),
        ("self.list.reverse()[1]", "\"a\""),
        ("self.list.reverse()[0]", unread),
        ("self.list.last().hasValue()", "true"),
        ("self.list.last().value()", unread),
        (
            "self.list.sort()",
            "error: list elements must have the same type",
        ),
        // The type of the first item decides whether the function accepts the list.
        ("self.list.isSorted()", unread),
        (
            "self.wrong.isSorted()",
            "error: no such overload: isSorted(list)",
        ),
        (
            "self.list.join(',')",
            "error: join: invalid input: invalid data, expected string, got int64",
        ),
    ] {
        assert_eq!(value(source, &fields, &object), wanted, "{source}");
    }
}

#[test]
fn objects_compare_every_declared_property_also_those_that_expressions_cannot_name() {
    let names = ["é", "1st", "a b", "a-b", "in", "plain"];
    let fields = names.map(|name| (name, Type::list(Type::Bool)));
    let inner = Type::object(
        ObjectType::new(fields)
            .with_untyped(["any"].into_iter())
            .named("inner"),
    );
    let fields = [("a", inner.clone()), ("b", inner)];
    let equal = |a: &Json, b: &Json| {
        let source = "self.a == self.b";
        value(source, &fields, &json!({"a": a, "b": b}))
    };
    for name in names.into_iter().chain(["any"]) {
        let other = if name == "plain" { "in" } else { "plain" };
        let one = json!({name: [true]});
        assert_eq!(equal(&one, &json!({name: [true]})), "true", "{name}");
        assert_eq!(equal(&one, &json!({name: [false]})), "false", "{name}");
        // The other object has as many properties, but not this one.
        assert_eq!(equal(&one, &json!({other: [true]})), "false", "{name}");
        assert_eq!(equal(&one, &json!({"unknown": 1})), "false", "{name}");
        assert_eq!(equal(&json!({name: null}), &json!({"unknown": 1})), "true");
    }
    // Properties without a declaration count only if both have them.
    assert_eq!(equal(&json!({"x": 1}), &json!({"y": 1})), "true");
    assert_eq!(equal(&json!({"x": 1}), &json!({"x": 2})), "false");
}

#[test]
fn properties_with_another_word_between_double_underscores_are_not_compared() {
    let fields = ["__x__", "__dot__", "."].map(|name| (name, Type::Int));
    let inner = Type::object(ObjectType::new(fields).named("inner"));
    let fields = [("a", inner.clone()), ("b", inner)];
    for (a, b, wanted) in [
        (json!({"__x__": 1}), json!({"__x__": 2}), "true"),
        (json!({"__x__": 1}), json!({"unknown": 2}), "true"),
        // As an escaped name it is that of the property `.`.
        (json!({"__dot__": 1}), json!({"__dot__": 2}), "true"),
        (
            json!({"__dot__": 1, ".": 1}),
            json!({"__dot__": 1, ".": 2}),
            "false",
        ),
        (json!({".": 1}), json!({".": 2}), "false"),
    ] {
        let object = json!({"a": a, "b": b});
        let found = value("self.a == self.b", &fields, &object);
        assert_eq!(found, wanted, "{object}");
    }
}

#[test]
fn the_value_of_an_optional_loses_its_schema_when_a_field_is_read() {
    let inner = [("a-b", Type::String), ("n", Type::Double)];
    let inner = Type::object(ObjectType::new(inner).named("inner"));
    let fields = [("o", inner), ("numbers", Type::list(Type::Double))];
    let object = json!({"o": {"a-b": "x", "n": 1}, "numbers": [1]});
    for (source, wanted) in [
        ("self.?o.a__dash__b.hasValue()", "true"),
        ("self.?o.value().a__dash__b", "\"x\""),
        ("optional.of(self.o).a__dash__b.hasValue()", "false"),
        (
            "optional.of(self.o).n.value() + 1.5",
            "error: no such overload",
        ),
        ("[self.?o][0].?a__dash__b.hasValue()", "false"),
        ("[self.?o].all(i, i.?a__dash__b.hasValue())", "false"),
        ("self.?o.optMap(i, i.a__dash__b).value()", "\"x\""),
        (
            "(true ? self.?o : optional.none()).a__dash__b.hasValue()",
            "true",
        ),
        (
            "(true ? optional.of(self.o) : optional.none()).?a__dash__b.hasValue()",
            "false",
        ),
        ("[self.numbers[?0]].all(i, i.value() + 1.5 == 2.5)", "true"),
        (
            "[optional.of(self.numbers)].all(i, i.value()[0] + 1.5 == 2.5)",
            "error: no such overload",
        ),
    ] {
        assert_eq!(value(source, &fields, &object), wanted, "{source}");
    }
}
