//! One question of the kind that `e2e/oracle` answers, made from a seed and a number.

use serde_json::{Value, json};

use super::definition;
use super::policy::{Policies, pair};
use super::random::Random;
use super::schema::Schemas;
use super::value::Values;
use super::{text, texts};

/// The question of a case. The same seed and number make the same one.
pub(super) fn question(seed: u64, case: u64) -> Value {
    let mut random = Random::of(seed, case);
    match random.below(10) {
        0..=3 => objects(&mut random),
        4 => definitions(&mut random),
        5..=6 => texts::question(&mut random),
        _ => policies(&mut random),
    }
}

/// A definition, and objects of its kind.
fn objects(random: &mut Random) -> Value {
    let schema = Schemas { random, rules: 6 }.root();
    let definition = definition::plain(&schema);
    let mut writes = Vec::new();
    for operation in ["CREATE", "CREATE", "UPDATE", "UPDATE", "STATUS"] {
        let (new, old) = pair(random, &schema);
        let mut write = json!({"operation": operation, "object": new});
        if operation != "CREATE" {
            write["oldObject"] = old;
        }
        writes.push(write);
    }
    json!({"definition": definition, "writes": writes})
}

/// A definition that is unusual, perhaps in place of another.
fn definitions(random: &mut Random) -> Value {
    let replaces = random.chance(40);
    // What is replaced was accepted once.
    let schema = if replaces {
        definition::accepted()
    } else {
        Schemas { random, rules: 2 }.root()
    };
    let mut old = definition::plain(&schema);
    if replaces {
        old["metadata"]["resourceVersion"] = json!("1");
        let established = [
            json!(null),
            json!([{"type": "Established", "status": "True"}]),
        ];
        old["status"] = json!({"conditions": random.pick(&established)});
    }
    let mut new = old.clone();
    for _ in 0..random.between(1, 3) {
        if random.chance(30) {
            text::edit_leaf(random, &mut new);
        } else {
            definition::edit(random, &mut new);
        }
    }
    if replaces {
        json!({"definition": new, "oldDefinition": old})
    } else {
        json!({"definition": new})
    }
}

/// Policies, and requests that they see.
fn policies(random: &mut Random) -> Value {
    let schema = Schemas { random, rules: 0 }.root();
    let (count, bindings) = (random.between(1, 2), random.between(1, 3));
    let mut made = Policies {
        random,
        schema: &schema,
    };
    let policies: Vec<_> = (0..count)
        .map(|at| made.policy(&format!("p{at}")))
        .collect();
    let bindings: Vec<_> = (0..bindings)
        .map(|at| made.binding(&format!("b{at}"), &format!("p{}", at % count)))
        .collect();
    let (params, namespace, allowed) = (made.params(), made.namespace(), made.allowed());
    let mut requests = Vec::new();
    for _ in 0..3 {
        let old = Values {
            random: made.random,
        }
        .resource(&schema);
        let new = Values {
            random: made.random,
        }
        .edited(&schema, &old);
        requests.push(made.request(&new, &old));
    }
    let mut question = json!({"policies": policies, "bindings": bindings, "params": params,
        "namespaces": [namespace], "allowed": allowed, "requests": requests});
    if made.random.chance(25) {
        question["definition"] = definition::plain(&schema);
        question["typeCheck"] = json!(true);
    }
    question
}
