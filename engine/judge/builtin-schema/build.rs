//! Generates code from the list of kinds that `cargo judge gen` has read from the API server.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

/// The variable with the path of the list: an apiVersion and a kind per line.
const LIST: &str = "BUILTIN_KINDS";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={LIST}");
    let path = env::var(LIST)
        .map_err(|_| "BUILTIN_KINDS is not set; run `cargo judge gen` instead")?;
    println!("cargo::rerun-if-changed={path}");
    let mut code = "fn add_kinds(schemas: &mut Schemas) {\n".to_owned();
    for line in fs::read_to_string(path)?.lines() {
        let (version, kind) = line.split_once(' ').ok_or("a line is no kind")?;
        let (group, version) = version.rsplit_once('/').unwrap_or(("core", version));
        let family = group.split('.').next().unwrap_or(group);
        let module = match family {
            "apiextensions" => "apiextensions_apiserver::pkg::apis::apiextensions".to_owned(),
            "apiregistration" => "kube_aggregator::pkg::apis::apiregistration".to_owned(),
            _ => format!("api::{family}"),
        };
        let path = format!("k8s_openapi::{module}::{version}::{kind}");
        code.push_str(&format!("    schemas.kind::<{path}>();\n"));
    }
    code.push_str("}\n");
    let target = PathBuf::from(env::var("OUT_DIR")?).join("kinds.rs");
    fs::write(target, code)?;
    Ok(())
}
