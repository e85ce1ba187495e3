//! The programs that tests run in addition to the product.

use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The path of a program: the one that `cargo xtask tools` or `cargo test` has built, or the one on
/// the PATH. With `REQUIRE_<NAME>=1`, which `.ci/run` sets, a missing program is run nevertheless,
/// so that its test fails.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    // A test is in `deps`, in the folder of the programs of its build.
    let test = std::env::current_exe().unwrap_or_default();
    let programs = test.ancestors().nth(2).map(Path::to_path_buf);
    let mut folders = [Some(tools), programs].into_iter().flatten();
    if let Some(built) =
        folders.find_map(|folder| Some(folder.join(name)).filter(|it| it.is_file()))
    {
        return Some(built);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&paths)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    let variable = format!("REQUIRE_{}", name.to_uppercase().replace(['-', '.'], "_"));
    let is_required = std::env::var(variable).as_deref() == Ok("1");
    on_path.or_else(|| is_required.then(|| PathBuf::from(name)))
}

/// Where a program comes from that is missing.
pub(crate) fn remedy(name: &str) -> String {
    match name {
        "actionlint" | "clusterctl" | "helm" | "kstatus" => {
            "`cargo xtask tools` builds it".to_owned()
        }
        "5spot" => "`cargo build --bin 5spot` builds it".to_owned(),
        "target-crds" => "`cargo xtask tools` collects them".to_owned(),
        "kubectl" => "`cargo xtask kubectl` builds it".to_owned(),
        "promtool" => "it is in Debian's package `prometheus`".to_owned(),
        _ => format!("it is in Debian's package `{name}`"),
    }
}

/// The output of a program. Panics unless it succeeds.
pub(crate) async fn output(command: &mut Command) -> String {
    let done = command.output().await.unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{:?}: {printed}{errors}",
        command.as_std()
    );
    printed
}

/// Whether the program can be run.
pub(crate) fn is_there(name: &str) -> bool {
    path(name).is_some()
}
