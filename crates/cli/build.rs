//! Passes the commit of the build to the compiler as `FIVESPOT_COMMIT`: the value of the
//! environment variable, else the commit of this git checkout, else `unknown`.

use std::path::{Path, PathBuf};
use std::process::Command;

const COMMIT: &str = "FIVESPOT_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let commit = given().or_else(of_checkout);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={COMMIT}={commit}");
}

/// The value of the environment variable, for example of a package that is built without a
/// checkout.
fn given() -> Option<String> {
    let given = std::env::var(COMMIT).ok()?;
    let word = given.split_whitespace().next()?;
    Some(word.to_owned())
}

/// The commit of the git checkout that contains this package.
fn of_checkout() -> Option<String> {
    let root = git(&["rev-parse", "--show-toplevel"])?;
    // Sources that were unpacked within another project's checkout have no commit there.
    if Path::new(&root).canonicalize().ok()? != workspace()? {
        return None;
    }
    watch();
    git(&["rev-parse", "--verify", "HEAD"])
}

fn workspace() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")?;
    Path::new(&package).join("../..").canonicalize().ok()
}

/// Makes cargo run this script again when another commit is checked out.
///
/// A missing file would make cargo run it at every build, so only existing files are watched: the
/// log of HEAD, which grows by a line each time, or else the files of the refs.
fn watch() {
    let paths = |names: &[&str]| -> Vec<String> {
        let paths = names
            .iter()
            .filter_map(|it| git(&["rev-parse", "--git-path", it]));
        paths.filter(|it| Path::new(it).exists()).collect()
    };
    let mut watched = paths(&["logs/HEAD"]);
    if watched.is_empty() {
        watched = paths(&["packed-refs", "refs/heads"]);
    }
    watched.extend(paths(&["HEAD"]));
    for path in watched {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// The output of git. `None` if git is not installed or fails.
fn git(words: &[&str]) -> Option<String> {
    let answer = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    answer.status.success().then(|| text.trim_end().to_owned())
}
