//! Recording which results the parts of expressions have had.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use kubemu_cel::{Budget, Coverage, Dialect, Env, Program, Type, Variables};
use serde_json::{Value as Json, json};

fn env() -> Env {
    Env::new(Dialect::default()).variable("self", Type::Dyn)
}

fn compile(source: &str) -> Program {
    Program::compile(source, &env()).unwrap()
}

/// The result of a run with a limit, as text, and its cost.
fn run(program: &Program, object: &Json, limit: u64) -> (String, u64, String) {
    let variables = Variables::new().json("self", object);
    let mut budget = Budget::default().with_limit_per_call(limit);
    let result = match program.run(&variables, &mut budget) {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    };
    let spent = budget.spent();
    let holds = program.holds(&variables, &mut budget);
    (result, spent, format!("{holds:?}"))
}

const SOURCES: [&str; 24] = [
    "true",
    "self.a",
    "self.a == 1 && self.b == 2 || has(self.c)",
    "!(self.a > 1) || !self.yes",
    "self.missing == 1 || self.a == 1",
    "self.missing == 1 && self.a == 2",
    "self.a == 1 ? self.b : self.missing",
    "(self.yes ? self.map : self.map).x == 'y'",
    "self.yes && self.no ? 'a' : self.no || self.yes ? 'b' : 'c'",
    "self.list.all(x, x > 0 && x < 9)",
    "self.list.exists(x, x == 2 || x == self.a)",
    "self.list.exists_one(x, x > 1 ? x < 3 : false)",
    "self.list.filter(x, x > 1).map(y, y > 2, y + 1)",
    "self.list.all(x, self.list.exists(y, y == x && y != 9))",
    "self.list.map(x, x > 1 && x < 3 ? 'a' : 'b').size() == 3",
    "self.?map.x.optMap(v, v == 'y' && self.yes).orValue(false)",
    "self.?none.optMap(v, v == 'y').orValue(self.no || self.yes)",
    "self.?map.hasValue() ? self.map.x.startsWith('y') : false",
    "self.map.x in ['y', 'z'] && self.a in self.list",
    "self.map.all(k, k == 'x' && self.map[k] == 'y')",
    "[self.a + 1].all(v, v == 2 && v < 3)",
    "self.a && self.yes",
    "{'k': self.yes || self.no}['k'] && self.map.x.matches('^y+$')",
    "self.list.sortBy(x, 0 - x)[0] == 3 && self.yes != self.no",
];

#[test]
fn recorded_programs_have_the_same_results_and_costs_whatever_the_limit_is() {
    let object = json!({
        "a": 1, "b": 2, "yes": true, "no": false, "list": [1, 2, 3], "map": {"x": "y"},
    });
    for source in SOURCES {
        let plain = compile(source);
        let (recorded, coverage) = Coverage::record(|| compile(source));
        assert!(!coverage.parts(source).is_empty(), "{source}");
        let (_, cost, _) = run(&plain, &object, u64::MAX);
        for limit in 0..=cost + 1 {
            assert_eq!(
                run(&recorded, &object, limit),
                run(&plain, &object, limit),
                "{source} with at most {limit}"
            );
        }
    }
}

/// Each part, with the results that it has had for these objects.
fn covered(source: &str, objects: &[Json]) -> Vec<(String, &'static str)> {
    let (program, coverage) = Coverage::record(|| compile(source));
    for object in objects {
        run(&program, object, u64::MAX);
    }
    let parts = coverage.parts(source).into_iter();
    let words = parts.map(|it| {
        let text = source.get(it.bytes.clone()).unwrap().to_owned();
        let results = match (it.was_true, it.was_false) {
            (true, true) => "both",
            (true, false) => "true",
            (false, true) => "false",
            (false, false) if it.failed => "error",
            (false, false) if it.was_other => "other",
            (false, false) => "never",
        };
        (text, results)
    });
    words.collect()
}

fn words<'a>(found: &'a [(String, &'static str)]) -> Vec<(&'a str, &'static str)> {
    found
        .iter()
        .map(|(text, it)| (text.as_str(), *it))
        .collect()
}

#[test]
fn an_operand_that_was_not_evaluated_is_not_reached() {
    let source = "has(self.a) && (self.a > 1 || self.b)";
    assert_eq!(
        words(&covered(source, &[json!({})])),
        [
            (source, "false"),
            ("has(self.a)", "false"),
            ("(self.a > 1 || self.b)", "never"),
            ("self.a > 1", "never"),
            ("self.b", "never"),
        ]
    );
    let objects = [json!({"a": 2}), json!({"a": 0})];
    assert_eq!(
        words(&covered(source, &objects)),
        [
            (source, "true"),
            ("has(self.a)", "true"),
            ("(self.a > 1 || self.b)", "true"),
            ("self.a > 1", "both"),
            ("self.b", "error"),
        ]
    );
}

#[test]
fn the_branches_of_a_conditional_and_the_items_of_a_macro_are_seen() {
    let source = "self.a ? 'x' : self.l.filter(i, i > 1).size() > 0 ? 'y' : 'z'";
    let objects = [json!({"a": false, "l": [1, 2]})];
    assert_eq!(
        words(&covered(source, &objects)),
        [
            (source, "other"),
            ("self.a", "false"),
            ("self.l.filter(i, i > 1).size() > 0", "true"),
            ("i > 1", "both"),
        ]
    );
}

#[test]
fn nothing_is_recorded_outside() {
    let ((), coverage) = Coverage::record(|| ());
    compile("1 == 1 && true");
    assert_eq!(coverage.parts("1 == 1 && true"), []);
}
