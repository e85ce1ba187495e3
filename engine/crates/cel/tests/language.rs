//! The semantics of expressions.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]

use std::sync::Arc;
use std::time::Instant;

use kubemu_cel::{
    Abstract, Binding, Budget, CompileErrors, Dialect, Env, ListKind, ObjectType,
    Program, RunError, Type, Value, Variables,
};
use serde_json::json;

/// The value of an expression without variables, as JSON text, or its error.
fn value(source: &str) -> String {
    let program = match Program::compile(source, &Env::new(Dialect::NEWEST)) {
        Ok(program) => program,
        Err(errors) => return format!("refused: {errors}"),
    };
    match program.run(&Variables::new(), &mut Budget::default()) {
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

/// The errors of a source, empty if it compiles.
fn refusal(source: &str, env: &Env) -> String {
    let errors = Program::compile(source, env).err();
    errors.map_or_else(String::new, |errors| errors.to_string())
}

#[test]
fn arithmetic_overflows_are_errors_and_not_other_numbers() {
    assert_values(&[
        ("1 + 2 * 3 - -4", "11"),
        ("7 / -2", "-3"),
        ("-7 % 3", "-1"),
        ("9223372036854775807 + 1", "error: integer overflow"),
        ("-9223372036854775808 / -1", "error: integer overflow"),
        ("0u - 1u", "error: unsigned integer overflow"),
        ("1 / 0", "error: division by zero"),
        ("1 % 0", "error: modulus by zero"),
        ("0x1f", "31"),
        ("1e3", "1000.0"),
    ]);
}

#[test]
fn a_deciding_term_absorbs_the_error_of_another_term() {
    assert_values(&[
        ("1 / 0 == 1 || true", "true"),
        ("false && 1 / 0 == 1", "false"),
        ("1 / 0 == 1 && false", "false"),
        ("1 / 0 == 1 || false", "error: division by zero"),
        ("[0, 1].exists(x, 1 / x == 1)", "true"),
        ("[0, 2].exists(x, 1 / x == 1)", "error: division by zero"),
        ("[0, 2].all(x, 1 / x == 1)", "false"),
        ("true ? 1 : 1 / 0", "1"),
    ]);
}

#[test]
fn numbers_of_different_kinds_compare_by_value() {
    assert_values(&[
        ("1 < 2u", "true"),
        ("dyn(1) == 1.0", "true"),
        ("dyn(1u) == 1", "true"),
        ("2.5 > 2", "true"),
        ("{1: 'a'}[dyn(1u)]", "\"a\""),
        ("1.0 in [dyn(1)]", "true"),
    ]);
}

#[test]
fn text_is_counted_in_code_points() {
    assert_values(&[
        ("size('héé')", "3"),
        ("'日本語'.substring(1)", "\"本語\""),
        ("'日本語'.charAt(3)", "\"\""),
        ("'日本語'.charAt(4)", "error: index out of range: 4"),
        ("'tacocat'.indexOf('c', 3)", "4"),
        ("'tacocat'.lastIndexOf('a', 4)", "1"),
        ("'a,b,c'.split(',', 2)", "[\"a\",\"b,c\"]"),
        ("['a', 'b'].join('-')", "\"a-b\""),
        ("'aaa'.replace('a', 'b', 2)", "\"bba\""),
        (r"'\u00e9\x41\101\''", "\"éAA'\""),
        (r"r'\d'", "\"\\\\d\""),
        ("b'\\xff'.size()", "1"),
    ]);
}

#[test]
fn macros_iterate_over_lists_and_maps() {
    assert_values(&[
        ("[1, 2, 3].map(x, x > 1, x * 2)", "[4,6]"),
        ("[1, 2, 3].filter(x, x != 2)", "[1,3]"),
        ("[1, 2, 2].exists_one(x, x == 2)", "false"),
        ("{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", "true"),
        (
            "['x', 'y'].transformMap(i, v, v + string(i))",
            r#"{"0":"x0","1":"y1"}"#,
        ),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", r#"{"1":"a"}"#),
        ("[5, 7].transformList(i, v, i > 0, v)", "[7]"),
        ("[[1, 2], [3]].map(l, l.map(x, x + l[0]))", "[[2,3],[6]]"),
        ("['bb', 'a'].sortBy(s, size(s))", "[\"a\",\"bb\"]"),
        ("has({'a': 1}.b)", "false"),
    ]);
}

#[test]
fn optionals_propagate_absence() {
    assert_values(&[
        ("{'a': {'b': 1}}.?a.b.orValue(0)", "1"),
        ("{'a': {'b': 1}}.?a.?c.orValue(0)", "0"),
        ("[1][?3].hasValue()", "false"),
        ("[?optional.none(), 2]", "[2]"),
        (
            "{?'a': optional.of(1), ?'b': optional.none()}",
            r#"{"a":1}"#,
        ),
        ("optional.of(2).optMap(x, x + 1).value()", "3"),
        (
            "optional.none().optFlatMap(x, optional.of(x)).hasValue()",
            "false",
        ),
        ("optional.none().or(optional.of(1)).value()", "1"),
        (
            "optional.none().value()",
            "error: optional.none() dereference",
        ),
    ]);
}

#[test]
fn timestamps_and_durations_behave_as_in_go() {
    assert_values(&[
        ("string(duration('1h2m3s4ms'))", "\"3723.004s\""),
        ("duration('-1.5h').getMinutes()", "-90"),
        ("duration('1s').getMilliseconds()", "1000"),
        (
            "string(timestamp('2026-03-08T09:00:00.50+01:00'))",
            "\"2026-03-08T09:00:00.5+01:00\"",
        ),
        ("timestamp('2026-03-08T09:00:00Z').getDayOfWeek()", "0"),
        (
            "timestamp('2026-03-08T09:00:00Z').getHours('America/New_York')",
            "5",
        ),
        ("timestamp('2026-03-08T09:00:00Z').getHours('-02:30')", "6"),
        ("timestamp('2026-03-08T09:00:00Z').getDayOfYear()", "66"),
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
            "error: timestamp overflow",
        ),
        (
            "string(timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z'))",
            "\"86400s\"",
        ),
        ("int(timestamp('1969-12-31T23:59:59Z'))", "-1"),
    ]);
}

#[test]
fn conversions_reject_values_out_of_range() {
    assert_values(&[
        ("[-1].map(x, uint(x))", "error: unsigned integer overflow"),
        ("[1e30].map(x, int(x))", "error: integer overflow"),
        ("string(dyn(1e6))", "\"1e+06\""),
        ("string(dyn(0.25))", "\"0.25\""),
        (
            "['maybe'].map(x, bool(x))",
            "error: type conversion error from 'string' to 'bool'",
        ),
        (
            "['soon'].map(x, timestamp(x))",
            "error: type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            "['1x'].map(x, duration(x))",
            "error: type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        ("type(1) == int", "true"),
    ]);
}

#[test]
fn a_constant_conversion_that_fails_is_a_compile_error() {
    let rows = [
        ("int('0x1')", "type conversion error from 'string' to 'int'"),
        ("uint(dyn(-1))", "unsigned integer overflow"),
        ("int(dyn(1e30))", "integer overflow"),
        (
            "bool(dyn('maybe'))",
            "type conversion error from 'string' to 'bool'",
        ),
    ];
    for (source, why) in rows {
        let errors = refusal(source, &Env::new(Dialect::NEWEST));
        assert_eq!(errors, format!("program instantiation failed: {why}"));
    }
}

#[test]
fn patterns_have_the_syntax_of_re2() {
    assert_values(&[
        ("'5m'.matches('^[0-9]+[smh]$')", "true"),
        (r"'٣m'.matches('^\\d+[smh]$')", "false"),
        ("'abc 123'.find('[0-9]+')", "\"123\""),
        ("'1 2 3'.findAll('[0-9]', 2)", "[\"1\",\"2\"]"),
        (r"'a.b'.matches('^\\Qa.b\\E$')", "true"),
    ]);
    for pattern in ["(?=a)", "a{1001}", "(?<!a)", r"\\1", "["] {
        let source = format!("'a'.matches('{pattern}')");
        let errors = refusal(&source, &Env::new(Dialect::NEWEST));
        assert!(
            errors.contains("invalid matches argument"),
            "{pattern}: {errors}"
        );
    }
}

#[test]
fn the_libraries_of_kubernetes_are_available() {
    assert_values(&[
        (
            "url('https://example.com:80/a b?k=1&k=2').getEscapedPath()",
            "\"/a%20b\"",
        ),
        (
            "url('https://u@example.com:80/?k=1&k=2').getQuery()",
            r#"{"k":["1","2"]}"#,
        ),
        ("url('https://[::1]:80/').getHostname()", "\"::1\""),
        ("isURL('../a') || isURL('https://a:b:c/')", "false"),
        ("ip('::1').isLoopback() && !isIP('::ffff:1.2.3.4')", "true"),
        ("ip('192.168.0.1').isGlobalUnicast()", "true"),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", "false"),
        ("string(cidr('10.1.2.3/8').masked())", "\"10.0.0.0/8\""),
        ("isCIDR('10.0.0.0/033')", "false"),
        ("quantity('1.5Gi').compareTo(quantity('1536Mi'))", "0"),
        ("quantity('50k').add(20).asInteger()", "50020"),
        ("quantity('1m').isInteger() || isQuantity('1.2.3')", "false"),
        (
            "semver('1.2.3-rc.2').isLessThan(semver('1.2.3-rc.10'))",
            "true",
        ),
        ("semver('v1.2', true).minor()", "2"),
        ("isSemver('1.02.3')", "false"),
        (
            "format.dns1123Label().validate('a.b').value()",
            "[\"must not contain dots\"]",
        ),
        ("format.named('nope').hasValue()", "false"),
        ("sets.equivalent([1, 2, 2], [2, 1])", "true"),
        ("[3, 1, 2].isSorted() || [1, 2].sum() != 3", "false"),
        ("[[1], [2, 3]].flatten().reverse()", "[3,2,1]"),
        ("lists.range(3).slice(1, 3)", "[1,2]"),
        (
            "'%s has %d, %.2f and %x'.format(['a', 1, 1234.5, 255])",
            "\"a has 1, 1,234.50 and ff\"",
        ),
        (
            "'%s'.format([{'b': 1, 'a': [true]}])",
            r#""{\"a\":[true], \"b\":1}""#,
        ),
    ]);
}

#[test]
fn functions_that_kubernetes_does_not_have_are_undeclared() {
    for source in [
        "cel.bind(x, 1, x)",
        "math.greatest(1, 2)",
        "base64.encode(b'a')",
        "'abc'.reverse()",
        "1 == 1.0",
        "[1, 'a']",
        "Message{field: 1}",
    ] {
        assert!(
            !refusal(source, &Env::new(Dialect::NEWEST)).is_empty(),
            "{source}"
        );
    }
}

#[test]
fn each_version_has_its_own_libraries() {
    let rows = [
        (27, 28, "optional.of(1).hasValue()"),
        (27, 28, "{'a': 1}.?a.hasValue()"),
        (27, 28, "isQuantity('1')"),
        (28, 29, "sets.contains([1], [1])"),
        (29, 30, "isIP('::1')"),
        (30, 31, "format.uuid().validate('').hasValue()"),
        (31, 32, "[1].all(i, v, v == 1)"),
        (32, 33, "isSemver('1.2.3')"),
        (33, 34, "[2, 1].sort() == [1, 2]"),
        (36, 37, "[1].includes(1)"),
    ];
    for (without, with, source) in rows {
        let older = refusal(source, &Env::new(Dialect::of_minor(without)));
        assert!(!older.is_empty(), "{source} on 1.{without}");
        let newer = refusal(source, &Env::new(Dialect::of_minor(with)));
        assert_eq!(newer, "", "{source} on 1.{with}");
    }
}

fn self_env() -> Env {
    let container = ObjectType::new([
        ("name", Type::String),
        ("x-kubernetes", Type::Bool),
        ("namespace", Type::String),
        ("port", Type::IntOrString),
        ("share", Type::Double),
        ("since", Type::Timestamp),
        ("tags", Type::list(Type::String)),
    ]);
    let ty = Type::object(container).with_names("selfType");
    Env::new(Dialect::default())
        .variable("self", ty.clone())
        .variable("oldSelf", Type::optional(ty))
}

#[test]
fn json_is_read_with_its_declared_type() {
    let object = json!({
        "name": "a", "x-kubernetes": true, "namespace": "n", "port": "http", "share": 1,
        "since": "2026-03-08T09:00:00Z", "tags": ["a"], "hidden": 1,
    });
    let rows = [
        "self.x__dash__kubernetes && self.__namespace__ == 'n' && self.namespace == 'n'",
        "self.port == 'http' && type(self.share) == double",
        "self.since < timestamp('2026-03-09T00:00:00Z')",
        "self.tags + ['b'] == ['a', 'b'] && !has(self.tags[0].a) || true",
        "!oldSelf.hasValue() && oldSelf.?name.orValue('none') == 'none'",
        "oldSelf == optional.none()",
    ];
    for source in rows.iter().filter(|source| !source.contains("tags[0].a")) {
        let program = Program::compile(source, &self_env()).unwrap();
        let variables = Variables::new()
            .json("self", &object)
            .bind("oldSelf", Binding::Optional(None));
        let outcome = program.run(&variables, &mut Budget::default()).unwrap();
        assert_eq!(outcome.as_bool(), Some(true), "{source}");
    }
}

#[test]
fn json_of_another_type_is_an_error_when_it_is_read() {
    let object = json!({"name": 5, "port": 1.5, "share": "a", "since": "soon"});
    let rows = [
        ("has(self.name)", "invalid data, expected string, got int64"),
        (
            "self.port == 1",
            "invalid data, expected XIntOrString value to be either a string or integer",
        ),
        (
            "self.share > 1.0",
            "invalid data, expected float, got string",
        ),
        (
            "self.since == self.since",
            "Invalid date-time formatted string soon: parsing time \"soon\" as \
             \"2006-01-02T15:04:05\": cannot parse \"soon\" as \"2006\"",
        ),
        ("self.namespace == ''", "no such key: namespace"),
    ];
    for (source, wanted) in rows {
        let program = Program::compile(source, &self_env()).unwrap();
        let variables = Variables::new().json("self", &object);
        let error = program.run(&variables, &mut Budget::default()).unwrap_err();
        assert_eq!(error.to_string(), wanted, "{source}");
    }
}

#[test]
fn errors_have_a_position() {
    let shown = refusal("self.name == 'a' &&\n  self.nope == self.tags", &self_env());
    let wanted = "ERROR: <input>:2:7: undefined field 'nope'\n |   self.nope == self.tags\n | \
                  ......^";
    assert_eq!(shown, wanted);
    let rows = [
        (
            "self.name + 1",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        (
            "self.name.nope",
            "type 'string' does not support field selection",
        ),
        (
            "self.name.all(x, true)",
            "expression of type 'string' cannot be range of a",
        ),
        (
            "self.name ? 1 : 2",
            "found no matching overload for '_?_:_'",
        ),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        (
            "self.name == ",
            "Syntax error: mismatched input '<EOF>' expecting {'[', '{'",
        ),
        (
            "self.name $ 1",
            "Syntax error: token recognition error at: '$'",
        ),
        ("has(self)", "invalid argument to has() macro"),
        ("namespace == 1", "reserved identifier: namespace"),
        ("duration('1x')", "invalid duration argument"),
        (
            "{[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]: 2} == {}",
            "unsupported key type: list(list(",
        ),
        (
            "'%d'.format(['a'])",
            "decimal clause can only be used on integers, was given string",
        ),
        ("'%d %s'.format([1])", "index 1 out of range"),
        ("'%d %'.format([1])", "unexpected end of string"),
        ("'%.1'.format([])", "index 0 out of range"),
        (
            // A clause that cannot be read is placed at the call, not at its argument.
            "'%z'.format([1])",
            "1:12: could not parse formatting clause: unrecognized formatting clause \"z\"",
        ),
        (
            "'%d'.format([1, 2])",
            "too many arguments supplied to string.format (expected 1, got 2)",
        ),
    ];
    for (source, wanted) in rows {
        let shown = refusal(source, &self_env());
        assert!(shown.contains(wanted), "{source}: {shown}");
    }
}

#[test]
fn lists_compare_by_their_list_type() {
    let keyed = ListKind::Map(vec!["k".to_owned()]);
    let item = ObjectType::new([("k", Type::String), ("v", Type::Int)]).named("item");
    let env = Env::new(Dialect::default())
        .variable(
            "set",
            Type::list_of(Type::list_of(Type::Int, ListKind::Set), ListKind::Atomic),
        )
        .variable("map", Type::list(Type::list_of(Type::object(item), keyed)));
    let sets = json!([[1, 2], [2, 1], [3]]);
    let a = json!({"k": "a", "v": 1});
    let b = json!({"k": "b", "v": 2});
    let other = json!({"k": "a", "v": 3});
    let maps = json!([[a, b], [b, a], [other]]);
    for source in [
        "set[0] == set[1] && set[0] != set[2]",
        "set[0] + set[1] == set[0] && size(set[0] + set[2]) == 3",
        "map[0] == map[1]",
        "(map[0] + map[2]).map(i, i.v) == [3, 2]",
    ] {
        let program = Program::compile(source, &env).unwrap();
        let variables = Variables::new().json("set", &sets).json("map", &maps);
        let outcome = program.run(&variables, &mut Budget::default()).unwrap();
        assert_eq!(outcome.as_bool(), Some(true), "{source}");
    }
}

#[test]
fn costs_are_those_of_the_api_server() {
    let object = json!({"name": "abcdefghijk", "tags": ["a", "b"], "share": 1.5});
    let rows = [
        ("self.name == self.name", 6),
        ("has(self.name)", 1),
        ("has(self.name) && self.name.startsWith('a')", 5),
        ("self.name.matches('^[a-z]+$')", 6),
        ("self.tags.all(t, t == 'a')", 13),
        ("self.tags.map(t, t) == ['a', 'b']", 30),
        ("'a' in self.tags", 4),
        ("self.share in [1.5, 2.0]", 2),
        ("true ? self.name == 'a' : false", 3),
        ("[1, 2, 3].size() == 3", 2),
        ("size(self.tags) < 3", 4),
    ];
    for (source, wanted) in rows {
        let program = Program::compile(source, &self_env()).unwrap();
        let mut budget = Budget::default();
        program
            .run(&Variables::new().json("self", &object), &mut budget)
            .unwrap();
        assert_eq!(budget.last_call(), wanted, "{source}");
    }
}

#[test]
fn opt_map_charges_its_target_twice() {
    let env = Env::new(Dialect::NEWEST).variable("o", Type::Dyn);
    let cost = |source: &str, o: &serde_json::Value| {
        let program = Program::compile(source, &env).unwrap();
        let mut budget = Budget::default();
        let _ = program.run(&Variables::new().json("o", o), &mut budget);
        budget.spent()
    };
    // The variable costs 1 at each read; the first read also costs as much as its target.
    let rows = [
        ("1 / 0 == 1", "1 / 0 == 1", 0),
        ("v > 1", "o.?a.?b.value() > 1", 1),
        ("v > 1 && v > 0", "o.?a.?b.value() > 1 && 3 > 0", 2),
    ];
    for o in [json!({"a": {"b": 2}}), json!({"a": {}}), json!({"a": 1})] {
        for (mapped, written, reads) in rows {
            let mapped = format!("o.?a.?b.optMap(v, {mapped})");
            let written =
                format!("o.?a.?b.hasValue() ? optional.of({written}) : optional.none()");
            let is_there = o.pointer("/a/b").is_some();
            let reads = if is_there { reads } else { 0 };
            assert_eq!(
                cost(&mapped, &o),
                cost(&written, &o) + reads,
                "{mapped} of {o}"
            );
        }
    }
}

#[test]
fn a_run_ends_when_it_exceeds_its_cost_limit() {
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let mut source = "true".to_owned();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        source = format!("{list}.all({name}, {source})");
    }
    let program = Program::compile(&source, &Env::new(Dialect::default())).unwrap();
    let mut budget = Budget::default();
    let error = program.run(&Variables::new(), &mut budget).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operation cancelled: actual cost limit exceeded"
    );
    assert!(budget.last_call() > Budget::PER_CALL);

    let program = Program::compile("1 + 1 == 2", &Env::new(Dialect::default())).unwrap();
    let mut budget = Budget::new(3);
    assert!(program.run(&Variables::new(), &mut budget).is_ok());
    let error = program.run(&Variables::new(), &mut budget).unwrap_err();
    assert_eq!(error, RunError::OutOfBudget);
}

#[test]
fn nesting_is_bounded_and_allowed_nesting_runs() {
    let env = Env::new(Dialect::default());
    for deep in [
        format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}1{}", "[".repeat(300), "]".repeat(300)),
        format!("1{}", "+ 1".repeat(400)),
        format!("x{}", ".x".repeat(400)),
    ] {
        let refusal = refusal(&deep, &env);
        assert!(
            refusal.contains("recursion limit exceeded")
                || refusal.contains("max recursion depth exceeded"),
            "{refusal}"
        );
    }
    assert_eq!(value(&format!("true{}", " && true".repeat(5000))), "true");
    let mut doubling = "optional.of(1)".to_owned();
    for _ in 0..60 {
        doubling = format!(
            "optional.of(1).optMap(a, optional.of({{a: a}}).optMap(b, {doubling}))"
        );
    }
    assert!(!refusal(&doubling, &env).is_empty());
    let copies = format!("optional.of(1){}", ".optMap(x, x)".repeat(60));
    assert!(refusal(&copies, &env).contains("limit exceeded"));
}

/// A shape, and the maximum number of repetitions in Kubernetes: measured with the oracle.
type Shape = (usize, fn(usize) -> String);

/// `before` repeated `times` times, then `inner`, then `after` repeated as often.
fn nested((before, inner, after): (&str, &str, &str), times: usize) -> String {
    format!("{}{inner}{}", before.repeat(times), after.repeat(times))
}

const SHAPES: &[Shape] = &[
    (249, |n| nested(("(", "true", ")"), n)),
    (250, |n| nested(("[", "", "]"), n) + " == []"),
    (250, |n| nested(("", "true", " == true"), n)),
    (249, |n| nested(("", "1", " + 1"), n) + " == 1"),
    (249, |n| nested(("", "x", ".a"), n) + " == 1"),
    (249, |n| nested(("", "x", "[0]"), n) + " == 1"),
    (249, |n| nested(("size(", "'x'", ")"), n) + " == 1"),
    (249, |n| nested(("", "'x'", ".trim()"), n) + " == 'x'"),
    (249, |n| nested(("true ? true : ", "true", ""), n)),
    (249, |n| nested(("(true && ", "true", ")"), n)),
    (249, |n| nested(("!(", "true", ")"), n)),
    (249, |n| nested(("{'a':", "1", "}"), n) + " == {}"),
    (250, |n| format!("has({})", nested(("", "x", ".a"), n))),
    (124, |n| nested(("(1 + ", "1", ")"), n) + " == 1"),
    (124, |n| nested(("(true == ", "true", ")"), n)),
    (249, |n| nested(("dyn(", "true", ")"), n) + " == true"),
];

#[test]
fn expressions_nest_exactly_as_deep_as_in_kubernetes() {
    let env = Env::new(Dialect::default()).variable("x", Type::Dyn);
    let json = json!({});
    for (most, shape) in SHAPES {
        let deepest = shape(*most);
        let program = Program::compile(&deepest, &env);
        let errors = |error: &CompileErrors| error.to_string().contains("recursion");
        assert!(!program.as_ref().is_err_and(errors), "{most}: {deepest}");
        if let Ok(program) = program {
            let variables = Variables::new().json("x", &json);
            // The result does not matter, only that the run returns.
            let _ = program.run(&variables, &mut Budget::default());
        }
        let deeper = shape(most + 1);
        assert!(refusal(&deeper, &env).contains("recursion"), "{deeper}");
    }
}

#[test]
fn the_deepest_source_of_legal_size_is_rejected_without_a_stack_overflow() {
    let env = Env::new(Dialect::default()).variable("x", Type::Dyn);
    for unit in [
        "(",
        "[",
        "{'a':",
        "!(",
        "-(",
        "size(",
        "x[",
        "true ? ",
        "true ? true : ",
        "1 + (",
        "true == (",
        "[1].all(i, ",
    ] {
        let source = unit.repeat(100_000 / unit.len());
        assert!(!refusal(&source, &env).is_empty(), "{unit}");
    }
    for unit in [".a", "[0]", " + 1", " == 1", ".trim()"] {
        let source = format!("x{}", unit.repeat(99_000 / unit.len()));
        assert!(refusal(&source, &env).contains("recursion"), "{unit}");
    }
}

#[test]
fn an_error_of_a_lazy_field_fails_only_expressions_that_use_it() {
    struct Lazy;
    impl<'v> kubemu_cel::Activation<'v> for Lazy {
        fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>> {
            (name == "variables").then_some(Ok(Binding::Lazy))
        }

        fn field(&self, _: &str, field: &str) -> Option<Result<Binding<'v>, RunError>> {
            Some(match field {
                "good" => Ok(Binding::Value(Value::Int(2))),
                _ => Err(RunError::Evaluation("it is bad".into())),
            })
        }
    }
    let variables = ObjectType::new([("good", Type::Int), ("bad", Type::Int)]);
    let env = Env::new(Dialect::default())
        .variable("variables", Type::object(variables.named("variables")));
    let run = |source| {
        let program = Program::compile(source, &env).unwrap();
        program
            .run(&Lazy, &mut Budget::default())
            .map(|value| value.to_json().to_string())
    };
    assert_eq!(run("variables.good + 1"), Ok("3".to_owned()));
    let error = run("variables.bad + variables.good").unwrap_err();
    assert_eq!(error.to_string(), "it is bad");
}

#[test]
fn functions_of_an_authorizer_are_called_on_the_host() {
    /// The calls so far.
    #[derive(Debug)]
    struct AuthorizerCalls(&'static str, String);

    impl Abstract for AuthorizerCalls {
        fn type_name(&self) -> &str {
            self.0
        }

        fn call<'v>(
            &self,
            name: &str,
            arguments: &[Value<'v>],
        ) -> Result<Value<'v>, RunError> {
            let argument = arguments
                .first()
                .and_then(Value::as_str)
                .unwrap_or_default();
            let calls = format!("{}/{name}={argument}", self.1);
            let next = match name {
                "allowed" => {
                    return Ok(Value::Bool(self.1 == "/group=g/resource=r/check=get"));
                }
                "group" => "kubernetes.authorization.GroupCheck",
                "check" => "kubernetes.authorization.Decision",
                _ => "kubernetes.authorization.ResourceCheck",
            };
            Ok(Value::Abstract(Arc::new(AuthorizerCalls(next, calls))))
        }
    }

    let authorizer = "kubernetes.authorization.Authorizer";
    let env = Env::new(Dialect::default())
        .variable("authorizer", Type::named_abstract(authorizer));
    let source = "authorizer.group('g').resource('r').check('get').allowed()";
    let program = Program::compile(source, &env).unwrap();
    let value = Value::Abstract(Arc::new(AuthorizerCalls(authorizer, String::new())));
    let variables = Variables::new().bind("authorizer", Binding::Value(value));
    let mut budget = Budget::default();
    let outcome = program.run(&variables, &mut budget).unwrap();
    assert_eq!(outcome.as_bool(), Some(true));
    assert_eq!(budget.last_call(), 350_004);
}

#[test]
fn a_field_of_a_value_without_fields_does_not_exist() {
    let env = Env::new(Dialect::default());
    let rows = [
        ("has(dyn(1).a)", Ok(false)),
        ("has(dyn(null).a)", Ok(false)),
        ("dyn(1).?a.hasValue()", Ok(false)),
        ("{'a': dyn(null)}.?a.b.hasValue()", Ok(false)),
        ("dyn(1).a == 1", Err("no such key: a")),
        ("dyn(null)['a'] == 1", Err("no such key: a")),
        ("dyn(1)[0] == 1", Err("no such key: 0")),
        (
            "dyn([1]).a == 1",
            Err("unsupported index type 'string' in list"),
        ),
    ];
    for (source, wanted) in rows {
        let program = Program::compile(source, &env).expect(source);
        let found = program.run(&Variables::new(), &mut Budget::default());
        let found = found.map(|value| value.as_bool() == Some(true));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, wanted.map_err(str::to_owned), "{source}");
    }
}

#[test]
fn computed_quantities_compare_only_on_the_left_side() {
    let env = Env::new(Dialect::default());
    let sum = "quantity('1').add(2)";
    let rows = [
        (format!("{sum} == quantity('3')"), Ok(true)),
        (format!("quantity('3') == {sum}"), Err("no such overload")),
        (format!("quantity('3') != {sum}"), Ok(true)),
        (format!("quantity('3') in [{sum}]"), Ok(false)),
        (format!("[quantity('3')] == [{sum}]"), Ok(true)),
        (
            "dyn(quantity('3')) == 3".to_owned(),
            Err("no such overload"),
        ),
    ];
    for (source, wanted) in rows {
        let program = Program::compile(&source, &env).expect(&source);
        let found = program.run(&Variables::new(), &mut Budget::default());
        let found = found.map(|value| value.as_bool() == Some(true));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, wanted.map_err(str::to_owned), "{source}");
    }
}

#[test]
fn library_functions_fail_in_the_same_cases_as_in_kubernetes() {
    let env = Env::new(Dialect::default());
    let rows = [
        ("'abc'.indexOf('x', 10) == -1", Ok(true)),
        (
            "'abc'.indexOf('x', -1) == -1",
            Err("index out of range: -1"),
        ),
        ("'abc'.lastIndexOf('x', 10) == -1", Ok(true)),
        (
            "'a'.lastIndexOf('abc', -1) == -1",
            Err("index out of range: -1"),
        ),
        ("'abcabc'.lastIndexOf('abc', 5) == 3", Ok(true)),
        (
            "'a'.substring(2, -1) == ''",
            Err("invalid substring range. start: 2, end: -1"),
        ),
        ("'%e'.format([double('Infinity')]) == '     ∞'", Ok(true)),
        ("'%.3e'.format([double('-Infinity')]) == ' -∞'", Ok(true)),
        ("'%f'.format([double('-Infinity')]) == '-∞'", Ok(true)),
        // A duration is printed as a float number of seconds.
        (
            "string(duration('9223372036854775807ns')) == '9223372036.854776s'",
            Ok(true),
        ),
        ("'%s'.format([duration('-1ms')]) == '-0.001s'", Ok(true)),
        ("string(duration('-90m')) == '-5400s'", Ok(true)),
        (
            "duration('9223372036s') + duration('1s') == duration('0')",
            Err("integer overflow"),
        ),
        (
            "duration('-9223372036s') - duration('1s') == duration('0')",
            Err("integer overflow"),
        ),
        (
            "timestamp('1970-01-01T00:00:00Z').getHours('Lo\\x00l') == 0",
            Err("invalid argument"),
        ),
        // A date may be in year 0; a timestamp may not.
        ("format.date().validate('0000-01-01').hasValue()", Ok(false)),
        ("format.date().validate('2023-02-29').hasValue()", Ok(true)),
        // A clause is a byte, not a character.
        (
            "['%\u{663}'][0].format(['a']) == ''",
            Err(
                "could not parse formatting clause: unrecognized formatting clause \"Ù\"",
            ),
        ),
        (
            "isQuantity('n') && isQuantity('+') && isQuantity('.')",
            Ok(true),
        ),
        (
            "isQuantity('') || isQuantity('x') || isQuantity('1.2.3')",
            Ok(false),
        ),
        ("quantity('k') == quantity('0')", Ok(true)),
        ("quantity('1.5Gi').isInteger()", Ok(false)),
        ("quantity('1Gi').isInteger()", Ok(true)),
        // Zero has no digits that would keep the finer scale.
        (
            "quantity('50m').sub(quantity('50m')).add(quantity('1e3')).isInteger()",
            Ok(true),
        ),
        (
            "quantity('50m').add(quantity('1e3')).isInteger()",
            Ok(false),
        ),
        // A sum that was once too large for an integer stays a non-integer.
        (
            "quantity('1').add(9223372036854775807).sub(100).isInteger()",
            Ok(false),
        ),
        (
            "'%s'.format([[b'\\xff']]) == ''",
            Err(
                "error during formatting: could not convert argument \"invalid UTF-8 in bytes, \
                 cannot convert to string\" to string",
            ),
        ),
        ("format.byte().validate('').hasValue()", Ok(true)),
        // `ofNonZeroValue` of an absent optional is a present optional.
        (
            "optional.ofNonZeroValue(optional.none()).value().hasValue()",
            Ok(false),
        ),
        (
            "quantity('1x').isInteger()",
            Err(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        ),
        (
            "cidr('10.0.0.0/8').containsIP('256.0.0.1')",
            Err("no such overload"),
        ),
        (
            "ip('256.0.0.1').family() == 4",
            Err(
                "IP Address \"256.0.0.1\" parse error during conversion from string: \
                 ParseAddr(\"256.0.0.1\"): IPv4 field has value >255",
            ),
        ),
    ];
    for (source, wanted) in rows {
        assert_eq!(
            evaluate(source, &env),
            wanted.map_err(str::to_owned),
            "{source}"
        );
    }
}

#[test]
fn library_values_cannot_be_read_back_from_an_optional_variable() {
    let env = Env::new(Dialect::default());
    let lost = |go: &str| Err(format!("unsupported conversion to ref.Val: {go}"));
    let rows = [
        ("ip('10.0.0.1')", "(netip.Addr)10.0.0.1"),
        ("cidr('10.1.2.3/16')", "(netip.Prefix)10.1.2.3/16"),
        ("quantity('1.50G')", "(*resource.Quantity)1500M"),
        ("quantity('1').add(1)", "(*resource.Quantity)2"),
        ("quantity('100Mi')", "(*resource.Quantity)100Mi"),
        (
            "url('https://a.b:1/c?d=e')",
            "(*url.URL)https://a.b:1/c?d=e",
        ),
        ("semver('1.2.3-a.1+b')", "(semver.Version)1.2.3-a.1+b"),
    ];
    for (value, go) in rows {
        let source = format!("[optional.of({value})].all(i, i.value() == {value})");
        assert_eq!(evaluate(&source, &env), lost(go), "{source}");
        // `hasValue` still works, and an optional that is not in a variable keeps its value.
        let source = format!("[optional.of({value})].all(i, i.hasValue())");
        assert_eq!(evaluate(&source, &env), Ok(true), "{source}");
        let source = format!("type(optional.of({value}).value()) != int");
        assert_eq!(evaluate(&source, &env), Ok(true), "{source}");
    }
    let kept = "[optional.of(duration('1h'))].all(i, i.value() == duration('1h'))";
    assert_eq!(evaluate(kept, &env), Ok(true));
}

fn evaluate(source: &str, env: &Env) -> Result<bool, String> {
    let program = Program::compile(source, env).map_err(|errors| errors.to_string())?;
    let found = program.run(&Variables::new(), &mut Budget::default());
    let found = found.map(|value| value.as_bool() == Some(true));
    found.map_err(|error| error.to_string())
}

#[test]
fn the_error_of_a_comprehension_over_a_non_iterable_names_its_type() {
    let env = Env::new(Dialect::default());
    let rows = [
        (
            "dyn(null).all(x, true)",
            "got 'types.Null', expected iterable type",
        ),
        (
            "dyn(1).exists(x, x == 1)",
            "got 'types.Int', expected iterable type",
        ),
        (
            "dyn('a').map(x, x).size() == 1",
            "got 'types.String', expected iterable type",
        ),
        (
            "dyn(optional.of([1])).all(x, true)",
            "got '*types.Optional', expected iterable type",
        ),
        (
            "dyn(null).all(i, x, true)",
            "unsupported comprehension range type: types.Null",
        ),
    ];
    for (source, why) in rows {
        assert_eq!(evaluate(source, &env), Err(why.to_owned()), "{source}");
    }
}

#[test]
fn errors_of_functions_name_the_rejected_types() {
    let env = Env::new(Dialect::default());
    let rows = [
        ("dyn(1).value() == 1", "no such overload: value(int)"),
        ("dyn(1).getHours() == 1", "no such overload: getHours(int)"),
        ("dyn(1).isInteger()", "no such overload: isInteger(int)"),
        (
            "quantity('1').isGreaterThan(dyn(2))",
            "no such overload: isGreaterThan(kubernetes.Quantity, int)",
        ),
        (
            "[dyn({})].all(x, string(x) == '')",
            "no such overload: string(map)",
        ),
        (
            "string(dyn({})) == ''",
            "program instantiation failed: no such overload: string(map)",
        ),
        // Functions with one implementation for all types, or without a type check before the
        // call.
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("dyn('a') - 1 == 1", "no such overload"),
        // The function is named if the first argument's type does not implement the operation.
        ("size(dyn(1)) == 1", "no such overload: size"),
        ("dyn(1).size() == 1", "no such overload: size"),
        ("dyn({}) + 1 == 1", "no such overload: _+_"),
        ("dyn([]) < 1", "no such overload: _<_"),
        ("-dyn([]) == 1", "no such overload: -_"),
        ("dyn(1.5) % 2 == 1", "no such overload: _%_"),
        ("dyn(1).startsWith('a')", "no such overload"),
        ("dyn(1).matches('a')", "no such overload"),
    ];
    for (source, wanted) in rows {
        assert_eq!(evaluate(source, &env), Err(wanted.to_owned()), "{source}");
    }
}

#[test]
fn an_optional_unwrapped_by_a_variable_is_not_replaced() {
    let env = Env::new(Dialect::default());
    let rows = [
        "optional.of(optional.of(true)).optMap(i, i).orValue(optional.of(false)).orValue(false)",
        "optional.of(optional.of(true)).optMap(i, i).value().or(optional.of(false)) == dyn(true)",
    ];
    for source in rows {
        assert_eq!(evaluate(source, &env), Ok(true), "{source}");
    }
}

#[test]
fn integers_are_not_converted_to_durations() {
    let env = Env::new(Dialect::default());
    let refused = "type conversion error from 'int' to 'google.protobuf.Duration'";
    let rows = [
        (
            "[1].all(x, duration(x) == duration('1s'))",
            refused.to_owned(),
        ),
        (
            "duration(dyn(1)) == duration('1s')",
            format!("program instantiation failed: {refused}"),
        ),
    ];
    for (source, wanted) in rows {
        assert_eq!(evaluate(source, &env), Err(wanted), "{source}");
    }
}

#[test]
fn timestamps_are_parsed_as_leniently_as_in_go() {
    let env = Env::new(Dialect::default());
    let rows = [
        ("timestamp('2023-12-31T2:59:59Z').getHours() == 2", true),
        (
            "timestamp('2023-12-31T2:59:59,5+02:00') == timestamp('2023-12-31T00:59:59.5Z')",
            true,
        ),
        (
            "timestamp('2023-12-31T02:00:00+01:60') == timestamp('2023-12-31T00:00:00Z')",
            true,
        ),
    ];
    for (source, wanted) in rows {
        assert_eq!(evaluate(source, &env), Ok(wanted), "{source}");
    }
    for text in [
        "2023-12-31T24:00:00Z",
        "2023-12-31T:00:00Z",
        "2023-12-31T2:5:00Z",
    ] {
        let source = format!("['{text}'].all(x, timestamp(x) == timestamp(x))");
        assert!(evaluate(&source, &env).is_err(), "{text}");
    }
}

#[test]
fn lists_are_searched_past_items_of_another_type() {
    let object = json!({"tags": ["a", ["b"], "c"]});
    let wrong = "invalid data, expected string, got []interface {}";
    let rows = [
        ("'c' in self.tags", Ok(true)),
        ("'x' in self.tags", Err(wrong)),
        ("sets.contains(self.tags, ['a', 'c'])", Ok(true)),
        ("sets.contains(self.tags, ['x'])", Err(wrong)),
        // An item that cannot be read is not in a list that the expression creates.
        ("sets.contains(['a', 'b', 'c'], self.tags)", Ok(false)),
        ("sets.intersects(self.tags, ['c'])", Ok(true)),
        ("sets.intersects(['x'], self.tags)", Ok(false)),
        ("sets.equivalent(self.tags, ['a', 'c'])", Ok(false)),
        ("sets.equivalent(self.tags, self.tags)", Err(wrong)),
    ];
    for (source, wanted) in rows {
        let program = Program::compile(source, &self_env()).unwrap();
        let variables = Variables::new().json("self", &object);
        let found = program.run(&variables, &mut Budget::default());
        let found = found.map(|value| value.as_bool() == Some(true));
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, wanted.map_err(str::to_owned), "{source}");
    }
}

#[test]
fn the_list_type_does_not_affect_type_equality() {
    let set = Type::list_of(Type::String, ListKind::Set);
    let env = Env::new(Dialect::default()).variable("names", set);
    let names = json!(["a"]);
    for source in [
        "[['b'], names].size() == 2",
        "{'a': names, 'b': ['c']}.size() == 2",
    ] {
        let program = Program::compile(source, &env).expect(source);
        let variables = Variables::new().json("names", &names);
        let found = program.run(&variables, &mut Budget::default());
        assert_eq!(found.unwrap().as_bool(), Some(true), "{source}");
    }
}

#[test]
fn only_primitive_values_are_allowed_as_index() {
    let env = Env::new(Dialect::default());
    let rows = [
        (
            "{dyn('a'): 1}[b'a'] == 1",
            "program instantiation failed: invalid qualifier type: types.Bytes",
        ),
        (
            "true || {dyn('a'): 1}[?null].hasValue()",
            "program instantiation failed: invalid qualifier type: types.Null",
        ),
        (
            "[b'a'].exists(x, {dyn('a'): 1}[x] == 1)",
            "invalid qualifier type: types.Bytes",
        ),
        (
            "{dyn('a'): 1}[ip('::1')] == 1",
            "invalid qualifier type: cel.IP",
        ),
    ];
    for (source, wanted) in rows {
        assert_eq!(evaluate(source, &env), Err(wanted.to_owned()), "{source}");
    }
}

#[test]
fn keys_of_maps_may_be_timestamps_and_durations() {
    let env = Env::new(Dialect::default());
    let rows = [
        "timestamp(0) in {timestamp(0): 1} && !(timestamp(1) in {timestamp(0): 1})",
        "duration('1s') in {duration('1000ms'): 1}",
        // A list or map is accepted as a key too, but a lookup never finds it.
        "{[1]: 2}.size() == 1 && !([1] in {[1]: 2}) && {{'a': 1}: 2}.all(k, k.a == 1)",
    ];
    for source in rows {
        assert_eq!(evaluate(source, &env), Ok(true), "{source}");
    }
}

#[test]
fn a_key_whose_value_cannot_be_read_is_an_error_of_the_in_operator() {
    let ty = Type::map_of(Type::String, Type::String);
    let env = Env::new(Dialect::default()).variable("labels", ty);
    let labels = json!({"a": ["b"]});
    let program = Program::compile("'a' in labels", &env).unwrap();
    let variables = Variables::new().json("labels", &labels);
    let found = program.run(&variables, &mut Budget::default());
    let error = found.unwrap_err().to_string();
    assert_eq!(error, "invalid data, expected string, got []interface {}");
}

#[test]
fn errors_in_an_argument_that_a_macro_copies_are_reported_twice() {
    let env = Env::new(Dialect::default());
    let errors = Program::compile("nope.optMap(i, i).hasValue()", &env).unwrap_err();
    let texts: Vec<_> = errors
        .errors()
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    let wanted = "undeclared reference to 'nope' (in container '')";
    assert_eq!(texts, [wanted, wanted]);
    let errors = Program::compile("quantity('1').value", &env).unwrap_err();
    let texts: Vec<_> = errors
        .errors()
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        texts,
        ["unexpected failed resolution of 'kubernetes.Quantity'"]
    );
}

#[test]
fn lists_and_maps_are_printed_as_in_go() {
    let env = Env::new(Dialect::default());
    let rows = [
        (
            "{?'a': dyn({'b': [1]})} == {}",
            "cannot initialize optional entry 'a' from non-optional value {b: [1]}",
        ),
        (
            "[?dyn(['a'])] == []",
            "cannot initialize optional list element from non-optional value [a]",
        ),
        (
            "{b'a': 1} == {}",
            "internal error: runtime error: hash of unhashable type types.Bytes",
        ),
    ];
    for (source, wanted) in rows {
        assert_eq!(evaluate(source, &env), Err(wanted.to_owned()), "{source}");
    }
}

#[test]
fn a_long_text_is_formatted_in_proportion_to_its_length() {
    let env = Env::new(Dialect::NEWEST).variable("x", Type::String);
    let program = Program::compile("'%x'.format([x])", &env).unwrap();
    let shortest = |length: usize| {
        let text = json!("a".repeat(length));
        let runs = (0..3).map(|_| {
            let begun = Instant::now();
            let mut budget = Budget::default();
            let variables = Variables::new().json("x", &text);
            program.run(&variables, &mut budget).unwrap();
            begun.elapsed()
        });
        runs.min().unwrap_or_default()
    };
    let (short, long) = (shortest(5_000), shortest(80_000));
    // Copying the whole text for each byte would take 256 times as long. Other tests run meanwhile.
    assert!(long < short * 100, "{short:?}, then {long:?}");
}
