//! No input makes the crate panic, and a repeated run returns the same result.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]

use kubemu_cel::{Bounds, Budget, Dialect, Env, Program, Type, Variables};
use proptest::prelude::*;

fn compile_and_run(source: &str) -> Option<(String, u64)> {
    let env = Env::new(Dialect::NEWEST).variable("x", Type::Dyn);
    let program = Program::compile(source, &env).ok()?;
    let estimate = program.estimate(&Bounds::list(9, Bounds::of_size(9)));
    assert!(estimate.min <= estimate.max, "{source}: {estimate:?}");
    let json = serde_json::json!({"a": [1, "b", null], "c": {"d": 1.5}});
    let mut budget = Budget::default();
    let outcome = program.run(&Variables::new().json("x", &json), &mut budget);
    Some((format!("{outcome:?}"), budget.spent()))
}

/// Fragments that often parse when concatenated.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "x",
        ".a",
        ".c",
        "[0]",
        "[?1]",
        ".?d",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "1",
        "-9223372036854775808",
        "2u",
        "1.5",
        "'s'",
        "b'b'",
        "null",
        "true",
        " in ",
        " == ",
        " < ",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " && ",
        " || ",
        "!",
        "-",
        ".all(i, ",
        ".exists(i, ",
        ".map(i, ",
        ".filter(i, ",
        ".transformMap(k, v, ",
        "i",
        "has(x.a)",
        "size(",
        ".size()",
        "dyn(",
        "string(",
        "int(",
        "duration('1h')",
        "timestamp('2026-01-01T00:00:00Z')",
        ".getHours()",
        ".matches('a+')",
        ".split('')",
        ".orValue(",
        "optional.of(",
        ".optMap(i, ",
        "quantity('1Mi')",
        "ip('::1')",
        "url('/a?b=c')",
        ".format([",
        "'%s %.3e'",
        "])",
        ".sum()",
        ".flatten()",
        ".sort()",
        ".substring(1)",
        ".replace('s', 'tt')",
        "'é\\u00e9'",
        ".join()",
        ".charAt(",
        "type(",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_parser_panic(source in "\\PC{0,60}") {
        compile_and_run(&source);
    }

    #[test]
    fn no_expression_makes_the_engine_panic_and_runs_repeat(
        pieces in prop::collection::vec(piece(), 1..14),
    ) {
        let source = pieces.concat();
        prop_assert_eq!(compile_and_run(&source), compile_and_run(&source));
    }

    #[test]
    fn no_pattern_makes_the_translation_panic(pattern in "[\\\\\\[\\](){}?*+|^$.a-c0-9<>:=!QEdswéP-]{0,20}") {
        let _ = kubemu_gostd::regexp::Pattern::new(&pattern);
    }

    #[test]
    fn an_escaped_name_is_an_identifier(name in "[a-z_./-]{1,12}") {
        if let Some(escaped) = kubemu_cel::escape(&name) {
            let env = Env::new(Dialect::NEWEST).variable(escaped.clone(), Type::Int);
            prop_assert!(Program::compile(&escaped, &env).is_ok(), "{}", escaped);
        }
    }
}
