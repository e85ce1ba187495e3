//! The CEL specification's conformance tests.
//!
//! Files and tests outside Kubernetes' dialect are counted, by reason, and not judged.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubemu_cel::{Binding, Budget, Dialect, Env, Program, Type, Value, Variables};
use serde_json::Value as Json;

use crate::{Counts, excluded};

/// Files that Kubernetes' dialect does not cover.
const OUTSIDE: [&str; 10] = [
    "bindings_ext",
    "block_ext",
    "encoders_ext",
    "enums",
    "math_ext",
    "network_ext",
    "proto2",
    "proto2_ext",
    "proto3",
    "wrappers",
];

pub(crate) fn run(text: &str) -> Result<BTreeMap<String, Counts>, serde_json::Error> {
    let files: BTreeMap<String, Json> = serde_json::from_str(text)?;
    let files = files
        .into_iter()
        .filter(|(name, _)| !OUTSIDE.contains(&name.as_str()));
    Ok(files.map(|(name, file)| (name, count(&file))).collect())
}

fn count(file: &Json) -> Counts {
    let mut counts = Counts::default();
    for section in file["section"].as_array().into_iter().flatten() {
        for test in section["test"].as_array().into_iter().flatten() {
            let expr = test["expr"].as_str().unwrap_or_default();
            match run_test(test, expr) {
                Verdict::Run(result) => counts.record(expr, result),
                Verdict::Excluded(why) => *counts.outside.entry(why).or_default() += 1,
            }
        }
    }
    counts
}

enum Verdict {
    Run(Result<(), String>),
    /// Kubernetes does not have the tested feature.
    Excluded(String),
}

fn run_test(test: &Json, expr: &str) -> Verdict {
    let excluded = |why: &str| Verdict::Excluded(why.to_owned());
    if let Some(why) = excluded::reason(expr) {
        return excluded(why);
    }
    if !test["container"].is_null() {
        return excluded("container");
    }
    if !test["checkOnly"].is_null() {
        return excluded("check only");
    }
    let mut env = Env::new(Dialect::NEWEST);
    for declaration in test["typeEnv"].as_array().into_iter().flatten() {
        let name = declaration["name"].as_str().unwrap_or_default();
        match declared(&declaration["ident"]["type"]) {
            Some(ty) => env = env.variable(name, ty),
            None => return excluded("protobuf message or declared function"),
        }
    }
    let mut variables = Variables::new();
    for (name, bound) in test["bindings"].as_object().into_iter().flatten() {
        match value(&bound["value"]) {
            Some(value) => variables = variables.bind(name, Binding::Value(value)),
            None => return excluded("protobuf message"),
        }
    }
    let program = match Program::compile(expr, &env) {
        Ok(program) => program,
        Err(errors) => return refused(test, &errors.to_string()),
    };
    let outcome = program.run(&variables, &mut Budget::default());
    let expected = match (&test["value"], &test["typedResult"]["result"]) {
        (Json::Null, Json::Null) => Some(Value::Bool(true)),
        (Json::Null, typed) => value(typed),
        (plain, _) => value(plain),
    };
    if !test["evalError"].is_null() || !test["anyEvalErrors"].is_null() {
        return Verdict::Run(match outcome {
            Ok(found) => Err(format!("{found:?} instead of an error")),
            Err(_) => Ok(()),
        });
    }
    let Some(expected) = expected else {
        return excluded("protobuf message");
    };
    Verdict::Run(match outcome {
        Ok(found) if same(&found, &expected) => Ok(()),
        Ok(found) => Err(format!("{found:?} instead of {expected:?}")),
        Err(error) => Err(error.to_string()),
    })
}

/// Judges an expression that does not compile.
fn refused(test: &Json, errors: &str) -> Verdict {
    // The test expects an evaluation error; Kubernetes always checks first and reports it
    // there.
    if test["evalError"].is_object() {
        return Verdict::Run(Ok(()));
    }
    let first = errors.lines().next().unwrap_or_default();
    let reasons = [
        (
            "undeclared reference",
            "names or functions that Kubernetes does not have",
        ),
        ("expected type", "lists and maps of several types"),
        ("no matching overload", "refused by the type checker"),
        (
            "does not support field selection",
            "refused by the type checker",
        ),
        ("cannot be range", "refused by the type checker"),
        ("unsupported syntax: '`'", "field names in backticks"),
    ];
    match reasons.iter().find(|(part, _)| first.contains(part)) {
        Some((_, reason)) => Verdict::Excluded((*reason).to_owned()),
        None => Verdict::Run(Err(first.to_owned())),
    }
}

fn same(found: &Value<'_>, expected: &Value<'_>) -> bool {
    let nan =
        |value: &Value<'_>| matches!(value, Value::Double(double) if double.is_nan());
    (found == expected && found.type_name() == expected.type_name())
        || (nan(found) && nan(expected))
}

fn declared(ty: &Json) -> Option<Type> {
    if let Some(primitive) = ty["primitive"].as_str() {
        return Some(match primitive {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            _ => Type::Bytes,
        });
    }
    if !ty["listType"].is_null() {
        return Some(Type::list(declared(&ty["listType"]["elemType"])?));
    }
    if !ty["mapType"].is_null() {
        let map = &ty["mapType"];
        return Some(Type::map_of(
            declared(&map["keyType"])?,
            declared(&map["valueType"])?,
        ));
    }
    match ty["wellKnown"].as_str() {
        Some("TIMESTAMP") => return Some(Type::Timestamp),
        Some("DURATION") => return Some(Type::Duration),
        _ => {}
    }
    (!ty["dyn"].is_null()).then_some(Type::Dyn)
}

fn value(json: &Json) -> Option<Value<'static>> {
    let (kind, json) = json.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "nullValue" => Value::Null,
        "boolValue" => Value::Bool(json.as_bool()?),
        "int64Value" => Value::Int(json.as_str()?.parse().ok()?),
        "uint64Value" => Value::Uint(json.as_str()?.parse().ok()?),
        "doubleValue" => Value::Double(match json.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            Some(_) => return None,
            None => json.as_f64()?,
        }),
        "stringValue" => Value::text(json.as_str()?),
        "bytesValue" => Value::Bytes(STANDARD.decode(json.as_str()?).ok()?.into()),
        "typeValue" => Value::Type(json.as_str()?.into()),
        "listValue" => {
            let items = json["values"].as_array().into_iter().flatten();
            Value::list(items.map(value).collect::<Option<_>>()?)
        }
        "mapValue" => {
            let entries = json["entries"].as_array().into_iter().flatten();
            let entry =
                |entry: &Json| Some((value(&entry["key"])?, value(&entry["value"])?));
            Value::map(entries.map(entry).collect::<Option<_>>()?).ok()?
        }
        "objectValue" => match json["@type"].as_str()? {
            "type.googleapis.com/google.protobuf.Timestamp" => {
                let text = json["value"].as_str()?;
                Value::Timestamp(kubemu_cel::Timestamp::parse(text)?)
            }
            "type.googleapis.com/google.protobuf.Duration" => {
                let text = json["value"].as_str()?;
                Value::Duration(kubemu_cel::Duration::parse(text)?)
            }
            _ => return None,
        },
        _ => return None,
    })
}
