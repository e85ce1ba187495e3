//! `cargo xtask deps`: which package may depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Faults, circle};

/// A package of this workspace and the packages that it may depend on.
struct Package {
    name: &'static str,
    /// The packages of this workspace that it may depend on.
    may_use: &'static [&'static str],
    /// Whether it is free of I/O: none of [`IMPURE`] may be in its dependency tree.
    is_pure: bool,
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Package {
    Package {
        name,
        may_use,
        is_pure: true,
    }
}

const fn with_io(name: &'static str, may_use: &'static [&'static str]) -> Package {
    Package {
        name,
        may_use,
        is_pure: false,
    }
}

/// Dependencies have one direction: schedule, api, plan, controller, cli; cel, admission, and the
/// users of admission.
const PACKAGES: &[Package] = &[
    pure("schedule", &[]),
    pure("api", &["schedule", "capi"]),
    pure("install", &["api"]),
    pure("gostd", &[]),
    pure("cel", &["gostd"]),
    pure("admission", &["cel", "gostd"]),
    pure("capi", &[]),
    pure("plan", &["api", "schedule", "capi"]),
    pure("forecast", &["api", "schedule", "capi", "plan"]),
    pure("drawing", &["schedule"]),
    pure("usage", &["api", "schedule", "plan", "drawing"]),
    with_io("clock", &[]),
    with_io("https", &[]),
    with_io("terminal", &[]),
    with_io("runtime", &["clock"]),
    with_io("program", &["api", "schedule", "https", "terminal"]),
    with_io(
        "controller",
        &[
            "api", "plan", "capi", "clock", "program", "runtime", "schedule", "https",
        ],
    ),
    with_io(
        "dashboard",
        &["api", "schedule", "plan", "drawing", "controller", "usage"],
    ),
    with_io(
        "webhook",
        &["api", "admission", "clock", "https", "program"],
    ),
    with_io("agent", &["api", "program", "schedule"]),
    with_io("apiserver", &["admission", "clock", "gostd", "https"]),
    with_io(
        "kubemu",
        &["admission", "apiserver", "cel", "clock", "terminal"],
    ),
    with_io("sim", &["apiserver", "capi", "clock"]),
    with_io(
        "cli",
        &[
            "schedule",
            "api",
            "kubemu",
            "admission",
            "capi",
            "plan",
            "drawing",
            "forecast",
            "clock",
            "controller",
            "dashboard",
            "webhook",
            "install",
            "apiserver",
            "program",
            "sim",
            "usage",
        ],
    ),
];

/// Packages for tests and maintenance. They may depend on any package, and no package may depend on
/// them.
const SERVICE: [&str; 10] = [
    "benches",
    "testkit",
    "xtask",
    "e2e",
    "fuzz",
    "golang",
    "judge",
    "proof",
    "public",
    "simulation",
];

/// The packages of the engine, which is a workspace of its own.
const ENGINE: [&str; 8] = [
    "admission",
    "apiserver",
    "cel",
    "clock",
    "gostd",
    "https",
    "kubemu",
    "terminal",
];

/// The packages of the programs in a cluster, and what they must not contain, whatever they use.
const LEFT_OUT: [(&str, &[&str]); 2] = [
    ("controller", &["admission", "apiserver", "cel", "kubemu"]),
    ("webhook", &["apiserver", "kubemu"]),
];

/// The folder of a package that is no service, below the root.
pub(crate) fn folder(name: &str) -> String {
    let prefix = if ENGINE.contains(&name) {
        "engine/"
    } else {
        ""
    };
    format!("{prefix}crates/{name}")
}

/// The name of a package that is no service, in Cargo.
fn package(name: &str) -> String {
    let prefix = if ENGINE.contains(&name) {
        "kubemu"
    } else {
        "fivespot"
    };
    format!("{prefix}-{name}")
}

/// Packages that bring threads, sockets or another clock.
const IMPURE: [&str; 3] = ["tokio", "hyper", "chrono"];

/// Compares both workspaces with the table.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut all = BTreeMap::new();
    for workspace in [root.to_owned(), root.join("engine")] {
        let metadata: Value = serde_json::from_str(&cargo(
            &workspace,
            &["metadata", "--no-deps", "--format-version", "1"],
        )?)?;
        all.extend(packages(&metadata));
    }
    let mut faults = edges(&all);
    faults.extend(left_out(&all));
    for entry in PACKAGES {
        faults.extend(circle::check(entry.name, &root.join(folder(entry.name)))?);
    }
    for entry in PACKAGES.iter().filter(|entry| entry.is_pure) {
        let package = package(entry.name);
        let tree = cargo(
            root,
            &[
                "tree",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--package",
                &package,
            ],
        )?;
        faults.extend(impure_packages(entry.name, &tree));
    }
    Ok(faults)
}

fn cargo(root: &Path, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(words)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("cargo {} failed: {said}", words.join(" ")).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Each package of the workspace with those of its normal dependencies that are in the workspace
/// too.
fn packages(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let list = |value: Option<&Value>| {
        value.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let name = |value: &Value| {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let short = ["fivespot-", "kubemu-"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        short.unwrap_or(name).to_owned()
    };
    list(metadata.get("packages"))
        .iter()
        .map(|package| {
            let dependencies = list(package.get("dependencies"));
            let ours = dependencies.iter().filter(|dependency| {
                dependency.get("path").is_some_and(Value::is_string)
                    && dependency.get("kind").is_none_or(Value::is_null)
            });
            (name(package), ours.map(name).collect())
        })
        .collect()
}

fn edges(packages: &BTreeMap<String, BTreeSet<String>>) -> Faults {
    let mut faults = Faults::new();
    for (name, uses) in packages {
        if SERVICE.contains(&name.as_str()) {
            continue;
        }
        let Some(entry) = PACKAGES.iter().find(|entry| entry.name == name) else {
            faults.push(format!(
                "{name}: not in the table of xtask/src/dependency.rs; add it"
            ));
            continue;
        };
        for used in uses
            .iter()
            .filter(|used| !entry.may_use.contains(&used.as_str()))
        {
            faults.push(format!("{name}: must not depend on {used}"));
        }
    }
    faults
}

/// The packages of [`LEFT_OUT`] that a program contains, with the way to each.
fn left_out(packages: &BTreeMap<String, BTreeSet<String>>) -> Faults {
    let mut faults = Faults::new();
    for (program, excluded) in LEFT_OUT {
        let mut seen = BTreeSet::new();
        let mut open = vec![(program, program.to_owned())];
        while let Some((name, way)) = open.pop() {
            if excluded.contains(&name) {
                faults.push(format!("a program must not contain {name}: {way}"));
            }
            for used in packages.get(name).into_iter().flatten() {
                if seen.insert(used) {
                    open.push((used, format!("{way} -> {used}")));
                }
            }
        }
    }
    faults
}

/// The impure packages in the output of `cargo tree --prefix none`: one `name vX.Y.Z` per line.
fn impure_packages(name: &str, tree: &str) -> Faults {
    let all: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    IMPURE
        .iter()
        .filter(|impure| all.contains(*impure))
        .map(|impure| {
            format!(
                "{name}: {impure} is in its tree; `cargo tree -p {} -i {impure}` shows why",
                package(name)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{edges, impure_packages, left_out, packages};

    #[test]
    fn a_dependency_not_in_the_table_is_a_fault_but_a_dev_dependency_is_not() {
        let metadata = json!({"packages": [
            {"name": "fivespot-schedule", "dependencies": [
                {"name": "fivespot-api", "path": "/x", "kind": null},
                {"name": "fivespot-plan", "path": "/x", "kind": "dev"},
                {"name": "jiff", "kind": null},
            ]},
            {"name": "fivespot-attic", "dependencies": []},
        ]});
        assert_eq!(
            edges(&packages(&metadata)),
            [
                "attic: not in the table of xtask/src/dependency.rs; add it",
                "schedule: must not depend on api",
            ]
        );
    }

    #[test]
    fn the_engine_in_the_operator_is_a_fault_whichever_way_it_comes() {
        let metadata = json!({"packages": [
            {"name": "fivespot-controller", "dependencies": [
                {"name": "fivespot-program", "path": "/x", "kind": null},
                {"name": "kubemu-apiserver", "path": "/x", "kind": "dev"},
            ]},
            {"name": "fivespot-program", "dependencies": [
                {"name": "kubemu-admission", "path": "/x", "kind": null},
            ]},
        ]});
        assert_eq!(
            left_out(&packages(&metadata)),
            ["a program must not contain admission: controller -> program -> admission"]
        );
    }

    #[test]
    fn tokio_in_the_tree_of_a_pure_package_is_a_fault() {
        let tree = "fivespot-plan v0.1.0\ntokio-util v0.7.1\n";
        assert_eq!(impure_packages("plan", tree), Vec::<String>::new());
        assert_eq!(
            impure_packages("plan", &format!("{tree}tokio v1.48.0 (*)\n")).len(),
            1
        );
    }
}
