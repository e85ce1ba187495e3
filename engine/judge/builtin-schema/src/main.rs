//! Prints the OpenAPI v3 schemas of the kinds that the embedded API server serves, and of all
//! definitions that they refer to, as JSON with sorted keys.
//!
//! Names, types and descriptions come from the `schemars` feature of k8s-openapi. How lists are
//! merged is not in those schemas; it is read from the `DeepMerge` implementations in the sources
//! of the same crate, see [`lists`].

mod lists;
mod normal;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// The definitions read so far, and which of them are kinds.
struct Schemas {
    generator: SchemaGenerator,
    kinds: BTreeMap<String, Value>,
}

impl Schemas {
    fn kind<K: JsonSchema + Resource>(&mut self) {
        self.part::<K>();
        let kind = json!({"group": K::GROUP, "version": K::VERSION, "kind": K::KIND});
        self.kinds.insert(K::schema_name().into_owned(), kind);
    }

    fn part<T: JsonSchema>(&mut self) {
        self.generator.subschema_for::<T>();
    }
}

// `fn add_kinds(schemas: &mut Schemas)`, generated from the list of kinds by build.rs.
include!(concat!(env!("OUT_DIR"), "/kinds.rs"));

fn main() -> Result<(), Box<dyn Error>> {
    let settings = SchemaSettings::draft07().with(|it| {
        it.definitions_path = "/components/schemas".into();
        it.transforms.clear();
    });
    let mut schemas = Schemas {
        generator: settings.into_generator(),
        kinds: BTreeMap::new(),
    };
    add_kinds(&mut schemas);
    schemas.kind::<meta::Status>();
    schemas.part::<meta::DeleteOptions>();
    schemas.part::<meta::ObjectMeta>();
    schemas.part::<meta::ListMeta>();

    let merges = lists::read(&sources()?)?;
    let definitions = schemas.generator.take_definitions(true);
    println!("{{");
    let mut separator = "";
    let sorted: BTreeMap<_, _> = definitions.into_iter().collect();
    for (name, mut schema) in sorted {
        normal::definition(&name, &mut schema);
        lists::annotate(&name, &mut schema, &merges);
        if let Some(kind) = schemas.kinds.get(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([kind]);
        }
        print!("{separator}{}:{schema}", json!(name));
        separator = ",\n";
    }
    println!("\n}}");
    Ok(())
}

/// The folder in which cargo keeps the sources of k8s-openapi for the version used here.
fn sources() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--manifest-path",
            manifest,
        ])
        .output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let found = packages
        .iter()
        .find(|it| it["name"] == "k8s-openapi")
        .and_then(|it| it["manifest_path"].as_str())
        .ok_or("cargo metadata does not list k8s-openapi")?;
    let root = PathBuf::from(found);
    let parent = root.parent().ok_or("a manifest has a folder")?;
    Ok(parent.join("src").join("v1_36"))
}
