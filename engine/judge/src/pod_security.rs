//! `cargo judge pod-security`: records the fixtures of Kubernetes' Pod Security Standards as test
//! data.
//!
//! `k8s.io/pod-security-admission/test/testdata` has a file for each fixture, level and release.
//! Most are equal; here each pod is kept once, with the releases in which it passes a level and in
//! which it fails.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use kubemu_golang as go;

const MODULE: &str = "k8s.io/pod-security-admission";
/// A module of Kubernetes that is released with the same version, and that the oracle is built with.
const RELEASED_WITH: &str = "k8s.io/apiserver";
/// The file of the data: a pod per line.
const DATA: &str = "crates/apiserver/src/plugin/pod_security/fixtures.jsonl";

/// The verdicts about a pod: the minor versions of the releases, by level and verdict.
type Verdicts = BTreeMap<String, Vec<u32>>;

/// Writes the data from the module that Kubernetes is built with.
///
/// # Errors
/// Go is not installed, or a fixture cannot be read.
pub(crate) fn write(root: &Path) -> Result<(), Box<dyn Error>> {
    let oracle = root.join("judge/oracle");
    let version = ["list", "-m", "-f", "{{.Version}}", RELEASED_WITH];
    let version = go::run(&oracle, &version)?;
    let module = format!("{MODULE}@{version}");
    let found: Value =
        serde_json::from_str(&go::run(&oracle, &["mod", "download", "-json", &module])?)?;
    let folder = found["Dir"].as_str().ok_or("go printed no folder")?;
    let mut pods: BTreeMap<(String, String), Verdicts> = BTreeMap::new();
    for level in sorted(&Path::new(folder).join("test/testdata"))? {
        if !level.is_dir() {
            continue;
        }
        for release in sorted(&level)? {
            read(&release, &name(&level), &mut pods)?;
        }
    }
    let origin =
        json!({"origin": format!("{MODULE} {version}, test/testdata; Apache-2.0")});
    let mut text = format!("{origin}\n");
    for ((fixture, pod), verdicts) in &pods {
        let pod: Value = serde_json::from_str(pod)?;
        let verdicts: Value = verdicts
            .iter()
            .map(|(of, it)| (of.clone(), Value::from(ranges(it))))
            .collect();
        writeln!(
            text,
            "{}",
            json!({"fixture": fixture, "verdicts": verdicts, "pod": pod})
        )?;
    }
    fs::write(root.join(DATA), text)?;
    println!("{} pods in {DATA}", pods.len());
    Ok(())
}

/// Reads the pods that pass a level in a release, and those that fail.
fn read(
    release: &Path,
    level: &str,
    pods: &mut BTreeMap<(String, String), Verdicts>,
) -> Result<(), Box<dyn Error>> {
    let minor = name(release);
    let minor: u32 = minor.trim_start_matches("v1.").parse()?;
    for verdict in ["pass", "fail"] {
        for path in sorted(&release.join(verdict))? {
            let pod: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)?;
            let fixture = path.file_stem().unwrap_or_default().to_string_lossy();
            let key = (fixture.into_owned(), pod.to_string());
            let verdicts = pods.entry(key).or_default();
            let of = format!("{level} {verdict}");
            verdicts.entry(of).or_default().push(minor);
        }
    }
    Ok(())
}

/// Numbers as ranges: `0-3 5`.
fn ranges(minors: &[u32]) -> String {
    let mut minors = minors.to_vec();
    minors.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for minor in minors {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == minor => *last = minor,
            _ => ranges.push((minor, minor)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}
