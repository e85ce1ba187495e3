//! Programs that share the cached targets of paths have the same results and costs as without.

#![allow(missing_docs, reason = "this is a test")]

use kubemu_cel::{
    Activation, Binding, Budget, Dialect, Env, Paths, Program, ResolvedPaths, RunError,
    Type, Value, Variables,
};
use serde_json::{Value as Json, json};

const EXPRESSIONS: &[&str] = &[
    "object == null",
    "object.?spec != null",
    "object.?spec.?name.optMap(self, self.size() > 2).orValue(true)",
    "object.?spec.?name.hasValue()",
    "object.spec.name == 'abc'",
    "object.spec.name.startsWith('a')",
    "object.?spec.?name.orValue('none')",
    "object.?spec.other.?name.orValue('none')",
    "object.?spec.name.?other.orValue('none')",
    "object.spec.?name",
    "has(object.spec) && has(object.spec.name)",
    "object.?spec.?list.orValue([]).all(item, item.?name.hasValue())",
    "object.spec.list[0].name",
    "object.spec.list.size() > 1 || object.spec.flag",
    "object.?spec.?name == old.?spec.?name",
    "old != null && old.?spec.?name == object.?spec.?name",
    "object.spec.flag ? object.spec.name : old.spec.name",
    "optional.of(object.spec).name",
    "object['spec'][?'name'].orValue(object.?spec.?list.orValue(1))",
];

fn objects() -> [Json; 8] {
    [
        json!(null),
        json!({}),
        json!({"spec": null}),
        json!({"spec": "text"}),
        json!({"spec": {"name": "abc"}}),
        json!({"spec": {"list": [{"name": 1}, {}], "name": null, "flag": true}}),
        json!({"spec": {"flag": false, "name": {"other": "é"}, "list": {"a": 1}}}),
        json!({"spec": {"name": "", "other": {"name": "x"}, "list": []}}),
    ]
}

/// The variables of an evaluation, with its cache of path targets.
struct CachingActivation<'v> {
    variables: Variables<'v>,
    resolved_paths: ResolvedPaths<'v>,
}

impl<'v> Activation<'v> for CachingActivation<'v> {
    fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>> {
        self.variables.variable(name)
    }

    fn resolved_paths(&self) -> Option<&ResolvedPaths<'v>> {
        Some(&self.resolved_paths)
    }
}

fn compiled(env: &Env) -> Vec<Program> {
    let compile = |source: &&str| Program::compile(source, env).expect("it is valid");
    EXPRESSIONS.iter().map(compile).collect()
}

fn env() -> Env {
    Env::new(Dialect::default())
        .variable("object", Type::Dyn)
        .variable("old", Type::Dyn)
}

/// The value or the error as text, the error of `holds`, and the cost.
fn outcome<'v>(
    program: &'v Program,
    activation: &dyn Activation<'v>,
    limit: u64,
) -> (String, String, u64) {
    let mut budget = Budget::default().with_limit_per_call(limit);
    let value = program.run(activation, &mut budget);
    let is_true = value
        .as_ref()
        .is_ok_and(|value| value.as_bool() == Some(true));
    let cost = budget.last_call();
    let value = value.map(|value: Value<'_>| value.to_json().to_string());
    let holds = program.holds(activation, &mut budget);
    assert_eq!(budget.last_call(), cost, "{}", program.source());
    assert_eq!(
        holds.clone().unwrap_or(false),
        is_true,
        "{}",
        program.source()
    );
    (format!("{value:?}"), format!("{:?}", holds.err()), cost)
}

#[test]
fn programs_that_share_paths_have_the_same_results_and_costs_at_every_limit() {
    let paths = Paths::of(&["object", "old"]);
    let sharing = compiled(&env().with_paths(paths.clone()));
    let alone = compiled(&env());
    let objects = objects();
    let mut compared = 0;
    for object in &objects {
        for old in &objects {
            let variables = Variables::new().json("object", object).json("old", old);
            for limit in (0..40).chain([1_000]) {
                let caching = CachingActivation {
                    variables: variables.clone(),
                    resolved_paths: paths.new_cache(),
                };
                for (one, other) in sharing.iter().zip(&alone) {
                    let (found, wanted) = (
                        outcome(one, &caching, limit),
                        outcome(other, &variables, limit),
                    );
                    let source = one.source();
                    assert_eq!(found, wanted, "{source} of {object} and {old}, {limit}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, EXPRESSIONS.len() * 64 * 41);
}

#[test]
fn the_cache_of_other_paths_is_not_used() {
    let (paths, others) = (Paths::of(&["object", "old"]), Paths::of(&["object", "old"]));
    let first = Program::compile("object.a", &env().with_paths(paths)).unwrap();
    let second = Program::compile("object.b", &env().with_paths(others.clone())).unwrap();
    let object = json!({"a": 1, "b": 2});
    let caching = CachingActivation {
        variables: Variables::new().json("object", &object),
        resolved_paths: others.new_cache(),
    };
    for (program, wanted) in [(&second, 2), (&first, 1)] {
        let value = program.run(&caching, &mut Budget::default()).unwrap();
        assert_eq!(value.to_json(), wanted);
    }
}

#[test]
fn a_path_numbered_after_the_cache_was_created_is_resolved() {
    let paths = Paths::of(&["object", "old"]);
    let env = env().with_paths(paths.clone());
    let first = Program::compile("object.a", &env).unwrap();
    let object = json!({"a": 1, "b": {"c": 2}});
    let caching = CachingActivation {
        variables: Variables::new().json("object", &object),
        resolved_paths: paths.new_cache(),
    };
    let later = Program::compile("object.b.c + object.a", &env).unwrap();
    for (program, wanted) in [(&first, 1), (&later, 3)] {
        let value = program.run(&caching, &mut Budget::default()).unwrap();
        assert_eq!(value.to_json(), wanted);
    }
}
