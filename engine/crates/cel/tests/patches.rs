//! The types and functions for the mutations of a MutatingAdmissionPolicy.

use kubemu_cel::{Budget, Dialect, Env, Program, Type, Variables};
use serde_json::json;

fn env() -> Env {
    Env::new(Dialect::NEWEST)
        .variable("object", Type::Dyn)
        .with_patches()
}

/// The value of an expression as JSON text, its evaluation error, or its compile errors.
fn value(source: &str) -> String {
    let program = match Program::compile(source, &env()) {
        Ok(program) => program,
        Err(errors) => return format!("refused: {errors}"),
    };
    let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let variables = Variables::new().json("object", &object);
    match program.run(&variables, &mut Budget::default()) {
        Ok(value) => value.to_json().to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// Asserts a table of expressions and their values.
fn assert_values(rows: &[(&str, &str)]) {
    for (source, wanted) in rows {
        assert_eq!(value(source), *wanted, "{source}");
    }
}

#[test]
fn an_object_has_the_fields_of_its_literal() {
    assert_values(&[
        ("Object{}", "{}"),
        (
            "Object{spec: Object.spec{replicas: 3}}",
            r#"{"spec":{"replicas":3}}"#,
        ),
        (
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, \
             Object.spec.containers{name: c.name, image: 'x'})}}",
            r#"{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}}"#,
        ),
        (
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
            r#"{"metadata":{"labels":{"a":"b"}}}"#,
        ),
        (
            "Object{metadata: Object.metadata{namespace: 'n'}}",
            r#"{"metadata":{"namespace":"n"}}"#,
        ),
    ]);
}

#[test]
fn an_optional_field_without_a_value_is_left_out() {
    assert_values(&[
        ("Object{?a: optional.none()}", "{}"),
        ("Object{?a: optional.of(1)}", r#"{"a":1}"#),
        (
            "Object{?spec: optional.ofNonZeroValue(Object.spec{?a: Object{}.?a})}",
            "{}",
        ),
        ("Object{a: 1, ?a: optional.none()}", "{}"),
        (
            "Object{?a: dyn(1)}",
            "error: cannot initialize optional entry 'a' from non-optional value 1",
        ),
    ]);
}

#[test]
fn fields_can_be_read_back() {
    assert_values(&[
        ("Object{l: [1, 2, 3]}.l.sum()", "6"),
        ("has(Object{b: 1}.b)", "true"),
        ("has(Object{b: 1}.c)", "false"),
        ("Object{b: 1}.c == null", "true"),
        ("Object{}.?c.hasValue()", "false"),
        ("Object{b: Object.b{c: 1}}.b == {'c': 1}", "true"),
        ("JSONPatch{op: 'add', path: '/a'}.op", r#""add""#),
        ("JSONPatch{op: 'add', path: '/a'}.from", r#""""#),
        ("has(JSONPatch{op: 'add'}.from)", "false"),
        ("has(JSONPatch{op: 'add', value: null}.value)", "true"),
        ("has(JSONPatch{op: 'add', value: null}.op)", "true"),
    ]);
}

#[test]
fn objects_are_equal_if_their_types_and_fields_are_equal() {
    assert_values(&[
        (
            "Object{spec: Object.spec{a: 3}} == Object{spec: Object.spec{a: 1 + 2}}",
            "true",
        ),
        ("Object{a: 3} == Object{a: 4}", "false"),
        ("dyn(Object.a{}) == dyn(Object.b{})", "false"),
        ("Object{a: 3} == Object{a: 3.0}", "false"),
    ]);
}

#[test]
fn a_patch_is_a_list_of_operations() {
    assert_values(&[
        (
            "[JSONPatch{op: 'add', path: '/a', value: 3}]",
            r#"[{"op":"add","path":"/a","value":3}]"#,
        ),
        (
            "true ? JSONPatch{op: 'remove', path: '/a'} : JSONPatch{op: 'test'}",
            r#"{"op":"remove","path":"/a"}"#,
        ),
        (
            "'/metadata/labels/' + jsonpatch.escapeKey('k8s.io/my~label')",
            r#""/metadata/labels/k8s.io~1my~0label""#,
        ),
        (
            "JSONPatch{op: dyn(1)}",
            "error: unexpected type int64 for JSONPatchType 'op' field",
        ),
    ]);
}

#[test]
fn types_are_checked_as_far_as_they_are_known() {
    let errors = [
        ("Invalid{}", "undeclared reference to 'Invalid'"),
        (
            "type(Object{}) == Object",
            "program instantiation failed: reference to undefined type: Object",
        ),
        (
            "type(Object{}) == Object.spec",
            "program instantiation failed: reference to undefined type: Object.spec",
        ),
        ("Objects{}", "undeclared reference to 'Objects'"),
        (
            "JSONPatch{value: Invalid{}}",
            "undeclared reference to 'Invalid'",
        ),
        (
            "JSONPatch{op: 1}",
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        ("JSONPatch{oper: 'add'}", "undefined field 'oper'"),
        (
            "true ? Object.a{} : Object.b{}",
            "applied to '(bool, Object.a, Object.b)'",
        ),
    ];
    for (source, wanted) in errors {
        let text = value(source);
        assert!(text.contains(wanted), "{source}: {text}");
    }
    let program = Program::compile("[Object.a{}]", &env()).expect("a program");
    assert_eq!(program.output_type().to_string(), "list(Object.a)");
}

#[test]
fn the_types_are_only_declared_for_mutations() {
    let env = Env::new(Dialect::NEWEST);
    for source in ["Object{}", "JSONPatch{}", "jsonpatch.escapeKey('a')"] {
        let errors = Program::compile(source, &env)
            .expect_err(source)
            .to_string();
        assert!(
            errors.contains("undeclared reference"),
            "{source}: {errors}"
        );
    }
}

#[test]
fn an_object_literal_costs_forty() {
    for (source, cost) in [
        ("Object{}", 40),
        ("Object{a: Object.a{}, b: [1 + 1]}", 91),
        ("jsonpatch.escapeKey('abc/def~ abc/def~')", 2),
    ] {
        let program = Program::compile(source, &env()).expect(source);
        let mut budget = Budget::default();
        program.run(&Variables::new(), &mut budget).expect(source);
        assert_eq!(budget.spent(), cost, "{source}");
    }
}

#[test]
fn reading_a_field_with_too_many_values_is_an_error() {
    // Each step contains the previous value twice.
    let mut nested = "1".to_owned();
    for _ in 0..12 {
        nested = format!("[{nested}].map(y, dyn([y, y]))[0]");
    }
    let many = format!("[{nested}].map(y, dyn([y, y, y, y, y, y, y, y]))[0]");
    let many = format!("[{many}].map(y, dyn([y, y, y, y, y, y, y, y]))[0]");
    let bound = format!("Object{{a: {many}}}.a == null");
    assert_eq!(
        value(&bound),
        "error: field is too large: the maximum is 100000"
    );
}
