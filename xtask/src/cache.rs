//! Programs that are built once for all source trees of this user, below `$XDG_CACHE_HOME/5spot` or
//! `~/.cache/5spot`: those of Kubernetes take minutes, and a fresh clone has an empty `target`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use kubemu_golang as go;

/// The folder `name` of programs that `build` makes from the Go modules that `pins` (files such as
/// `go.sum`) determine. `build` gets an empty folder and is not called if the programs exist.
///
/// # Errors
/// There is no home directory, a file cannot be read, or the build fails.
pub(crate) fn programs(
    name: &str,
    pins: &[PathBuf],
    build: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
) -> Result<PathBuf, Box<dyn Error>> {
    let mut hash = Sha256::new();
    hash.update(name);
    hash.update(go::FLAGS.join(" "));
    for file in pins {
        hash.update(
            fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?,
        );
    }
    let hash = format!("{:x}", hash.finalize());
    once(&folder()?.join(&hash[..16]), name, build)
}

/// Builds into a folder beside `folder` and renames it, so that a folder that exists is complete,
/// also if two processes build at the same time.
fn once(
    folder: &Path,
    name: &str,
    build: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
) -> Result<PathBuf, Box<dyn Error>> {
    let built = folder.join(name);
    if built.is_dir() {
        return Ok(built);
    }
    eprintln!("building {name}: some minutes the first time");
    let partial = folder.with_extension(std::process::id().to_string());
    fs::create_dir_all(partial.join(name))?;
    let done = build(&partial.join(name)).and_then(|()| {
        match fs::rename(&partial, folder) {
            // Another process was faster.
            Err(_) if built.is_dir() => Ok(()),
            renamed => Ok(renamed?),
        }
    });
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    done.map(|()| built)
}

fn folder() -> Result<PathBuf, String> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
        .filter(|path| path.is_absolute())
        .ok_or("HOME is not set; built programs are kept below it")?;
    Ok(cache.join("5spot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_build_leaves_nothing_and_a_complete_one_is_not_repeated() {
        let own = env::temp_dir().join(format!("5spot-cache-{}", std::process::id()));
        let folder = own.join("0123");
        let write = |to: &Path| Ok(fs::write(to.join("program"), "built")?);
        let failed = once(&folder, "helm", |to| {
            write(to)?;
            Err("no compiler".into())
        });
        assert_eq!(failed.unwrap_err().to_string(), "no compiler");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        let built = once(&folder, "helm", write).unwrap();
        assert_eq!(built, folder.join("helm"));
        let again = once(&folder, "helm", |_| Err("built twice".into())).unwrap();
        assert_eq!(fs::read_to_string(again.join("program")).unwrap(), "built");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
        fs::remove_dir_all(own).unwrap();
    }
}
