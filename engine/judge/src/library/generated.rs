//! A question for `engine/judge/oracle`, generated from a seed and a number.

use serde_json::{Value, json};

use super::definition;
use super::mutation;
use super::policy::{Policies, pair};
use super::schema::Schemas;
use super::value::Values;
use super::{almost_valid_text, text_questions};
use kubemu_judge::random::Random;

/// The question of a case. The same seed and number give the same question.
pub(super) fn question(seed: u64, case: u64) -> Value {
    let mut random = Random::of(seed, case);
    match random.below(10) {
        0..=3 => objects(&mut random),
        4 => definitions(&mut random),
        5..=6 => text_questions::question(&mut random),
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

/// An unusual definition, in some cases as an update of another.
fn definitions(random: &mut Random) -> Value {
    let replaces = random.chance(40);
    // The old definition must be a valid one.
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
            almost_valid_text::edit_leaf(random, &mut new);
        } else {
            definition::edit(random, &mut new);
        }
    }
    if replaces {
        // Without the resourceVersion, every update is rejected.
        new["metadata"]["resourceVersion"] = json!("1");
        json!({"definition": new, "oldDefinition": old})
    } else {
        json!({"definition": new})
    }
}

/// Policies, and requests that they match.
fn policies(random: &mut Random) -> Value {
    let schema = Schemas { random, rules: 0 }.root();
    let (count, bindings) = (random.between(1, 2), random.between(1, 3));
    let mut made = Policies {
        random,
        schema: &schema,
    };
    let is_stored = made.random.chance(10);
    let policies: Vec<_> = (0..count)
        .map(|at| {
            let name = format!("p{at}");
            if is_stored {
                made.stored(&name)
            } else {
                made.policy(&name)
            }
        })
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
    let part = if is_stored {
        "storedPolicies"
    } else {
        "policies"
    };
    let mut question = json!({part: policies, "bindings": bindings, "params": params,
        "namespaces": [namespace], "allowed": allowed, "requests": requests});
    if !is_stored && made.random.chance(25) {
        question["definition"] = definition::plain(&schema);
        question["typeCheck"] = json!(true);
    }
    if made.random.chance(25) {
        question["mutations"] = json!([mutation::generate(made.random)]);
    }
    question
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_reproducible() {
        for case in 0..1000 {
            assert_eq!(question(42, case), question(42, case), "{case}");
        }
    }

    #[test]
    fn a_thousand_cases_contain_every_feature() {
        let cases: Vec<_> = (0..1000).map(|case| question(42, case)).collect();
        let has = |holds: &dyn Fn(&Value) -> bool| cases.iter().any(holds);
        for part in [
            "writes",
            "oldDefinition",
            "storedPolicies",
            "typeCheck",
            "params",
            "mutations",
        ] {
            assert!(has(&|it| !it[part].is_null()), "{part}");
        }
        let texts = [
            "deletionTimestamp",
            "NotServed",
            "excludeResourceRules",
            "object.texts",
            "\"é\"",
            "\"__x__\"",
            "\"anyOf\":[{\"type\":\"integer\"",
            "\"x-kubernetes-preserve-unknown-fields\":true,\"properties\"",
        ];
        for text in texts {
            assert!(has(&|it| it.to_string().contains(text)), "{text}");
        }
    }
}
