//! `kubemu cel`: compiles, estimates and evaluates one expression.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{Crd, CustomResource};
use kubemu_admission::{FieldError, field};
use kubemu_cel::{
    Bounds, Budget, CostEstimate, Dialect, Env, Program, Type, Value as Cel, Variables,
};
use serde::Serialize;
use serde_json::Value;

use crate::output::Format;
use kubemu_terminal::{Failure, Outcome};

use crate::{document, output};

/// The examples of the command's help.
pub const EXAMPLES: &str = "\
Examples:
  kubemu cel '[1, 2, 3].sum() > 5'
  kubemu cel 'self.spec.replicas <= 5' --data widget.yaml
  kubemu cel 'object.spec.schedule.enabled' --data machine.yaml --schema crd.yaml -o json";

/// Compile, type-check, estimate and evaluate one expression in the Kubernetes dialect of CEL
///
/// The variables `self` and `object` are the object of --data; `oldSelf` and `oldObject` are the
/// object of --old. Their type is dynamic unless --schema gives it. Exit codes: 0 the expression
/// has a value, 1 the value is false, 2 error (the expression does not compile or fails).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The expression
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// File with the object, - for standard input [default: an empty object]
    #[arg(long, value_name = "FILE|-")]
    data: Option<PathBuf>,
    /// File with the old object
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// File with the CustomResourceDefinition that declares the type of the objects
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The Kubernetes version whose dialect is used
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// The result of the evaluation.
#[derive(Debug, Serialize)]
struct Report {
    value: Value,
    r#type: String,
    /// The cost of this evaluation.
    cost: u64,
    /// The estimated cost of an evaluation, if a schema is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate>,
}

#[derive(Debug, Serialize)]
struct Estimate {
    min: u64,
    max: u64,
}

/// Evaluates the expression, and prints its value.
///
/// # Errors
/// A file cannot be read, or the expression does not compile or fails.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let object = read(args.data.as_deref())?;
    let old = read(args.old.as_deref())?;
    let declared = match &args.schema {
        Some(path) => Some(declared_type(path, &object, args.kube_version)?),
        None => None,
    };
    let report = evaluate(args, declared, (&object, &old))?;
    match args.output {
        Format::Text => text(out, &report)?,
        Format::Json => output::json(out, &report)?,
        Format::Yaml => output::yaml(out, &report)?,
    }
    Ok(if report.value == Value::Bool(false) {
        Outcome::No
    } else {
        Outcome::Yes
    })
}

fn evaluate(
    args: &Args,
    declared: Option<(Type, Bounds)>,
    (object, old): (&Value, &Value),
) -> Result<Report, Failure> {
    let (ty, bounds) =
        declared.map_or((Type::Dyn, None), |(ty, bounds)| (ty, Some(bounds)));
    let env = ["self", "object", "oldSelf", "oldObject"].iter().fold(
        Env::new(Dialect::of_minor(args.kube_version.minor())),
        |env, name| env.variable(*name, ty.clone()),
    );
    let program = Program::compile(&args.expression, &env).map_err(|errors| {
        Failure::new("compiling the expression", errors)
            .remedy("correct it at the marked position, and quote it for the shell")
    })?;
    let variables = Variables::new()
        .json("self", object)
        .json("object", object)
        .json("oldSelf", old)
        .json("oldObject", old);
    let mut budget = Budget::default();
    let value: Cel<'_> = program.run(&variables, &mut budget).map_err(|error| {
        Failure::new("running the expression", error)
            .remedy("guard it with has() or a condition, or give other --data")
    })?;
    let estimate = bounds.map(|bounds| {
        let CostEstimate { min, max, .. } = program.estimate(&bounds);
        Estimate { min, max }
    });
    Ok(Report {
        value: to_json(&value),
        r#type: program.output_type().to_string(),
        cost: budget.spent(),
        estimate,
    })
}

/// The value as JSON. Numbers that JSON cannot represent are written as Kubernetes writes them.
fn to_json(value: &Cel<'_>) -> Value {
    match value {
        Cel::Double(number) if number.is_nan() => "NaN".into(),
        Cel::Double(number) if *number == f64::INFINITY => "+Inf".into(),
        Cel::Double(number) if *number == f64::NEG_INFINITY => "-Inf".into(),
        other => other.to_json(),
    }
}

/// The only object of a file. An empty object without a file.
fn read(path: Option<&Path>) -> Result<Value, Failure> {
    let Some(path) = path else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    let mut documents = document::read(&[path.to_owned()])?;
    match (documents.pop(), documents.len()) {
        (Some(only), 0) => Ok(only.object),
        (_, more) => {
            let count = if more == 0 { 0 } else { more + 1 };
            let why = format!("it contains {count} objects instead of one");
            Err(Failure::new(format!("reading {}", path.display()), why)
                .remedy("give a file with one object"))
        }
    }
}

/// The type and the cost bounds of objects according to a CRD, in the version of `object` if it is
/// served, else in the first served version.
fn declared_type(
    path: &Path,
    object: &Value,
    version: KubeVersion,
) -> Result<(Type, Bounds), Failure> {
    let what = format!("the CRD in {}", path.display());
    let failed = |errors: Vec<FieldError>| {
        Failure::new(format!("compiling {what}"), field::aggregate(&errors))
            .remedy("give a CustomResourceDefinition that the API server accepts")
    };
    let definition = Crd::compile(&read(Some(path))?, version).map_err(failed)?;
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let named = api_version.rsplit('/').next().unwrap_or_default();
    let first = || definition.versions().iter().find(|it| it.is_served());
    let resource = definition.served(named).or_else(first);
    resource.and_then(CustomResource::declared).ok_or_else(|| {
        Failure::new(what, "it serves no version with a structural schema")
            .remedy("give a CRD with a structural schema")
    })
}

fn text(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "{}", report.value)?;
    writeln!(out, "type {}, cost {}", report.r#type, report.cost)?;
    match &report.estimate {
        None => Ok(()),
        Some(Estimate { max: u64::MAX, .. }) => {
            writeln!(out, "estimated cost: unbounded by the schema")
        }
        Some(Estimate { min, max }) => {
            writeln!(out, "estimated cost by the schema: {min} to {max}")
        }
    }
}
