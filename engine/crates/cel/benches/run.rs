//! Run time and compile time of typical rules, with cost accounting.

use criterion::{Criterion, criterion_group, criterion_main};
use kubemu_cel::{Budget, Dialect, Env, ObjectType, Program, Type, Variables};
use serde_json::json;

const RULES: [(&str, &str); 3] = [
    ("duration pattern", "self.timeout.matches('^[0-9]+[smh]$')"),
    ("has and size", "!has(self.days) || size(self.days) <= 32"),
    (
        "all items",
        "self.days.all(d, d.matches('^[a-z,-]+$') && d.size() <= 64)",
    ),
];

fn env() -> Env {
    let object = ObjectType::new([
        ("timeout", Type::String),
        ("days", Type::list(Type::String)),
    ]);
    Env::new(Dialect::default())
        .variable("self", Type::object(object).with_names("selfType"))
}

fn run(criterion: &mut Criterion) {
    let object = json!({"timeout": "15m", "days": ["mon-fri", "sun"]});
    for (name, rule) in RULES {
        let Ok(program) = Program::compile(rule, &env()) else {
            continue;
        };
        let variables = Variables::new().json("self", &object);
        criterion.bench_function(&format!("run/{name}"), |bench| {
            bench.iter(|| {
                let mut budget = Budget::default();
                program
                    .run(&variables, &mut budget)
                    .is_ok_and(|value| value.as_bool().is_some())
            });
        });
    }
}

fn compile(criterion: &mut Criterion) {
    let env = env();
    for (name, rule) in RULES {
        criterion.bench_function(&format!("compile/{name}"), |bench| {
            bench.iter(|| Program::compile(rule, &env).is_ok());
        });
    }
}

criterion_group!(benches, run, compile);
criterion_main!(benches);
