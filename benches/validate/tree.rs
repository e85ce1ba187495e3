//! The verdicts about a tree of manifests, the time and the memory for them, and those of
//! kubectl-validate beside them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fivespot_api::manifest;
use fivespot_testkit::{MANIFEST_SORTS, ManifestTree, MeasuredRun};
use serde_json::{Value, json};

/// The newest Kubernetes whose schemas kubectl-validate 0.0.4 contains.
const KUBERNETES: &str = "1.30";

const FIVE_SPOT: &str = "5spot validate";

/// The most MiB that `5spot validate` may use for ten thousand manifests.
const MAX_MIB: u64 = 300;

/// Programs on the same tree.
pub(crate) struct Programs<'a> {
    pub(crate) five_spot: &'a Path,
    pub(crate) kubectl_validate: Option<&'a Path>,
    /// How many files there are of each sort.
    pub(crate) each: usize,
}

/// The results of one program.
struct Results {
    name: &'static str,
    run: MeasuredRun,
    /// How many documents of a sort have a verdict.
    verdicts: BTreeMap<(String, String), usize>,
}

impl Programs<'_> {
    /// Runs them, and returns what they said about each sort, and what they took.
    ///
    /// # Errors
    /// A program cannot be started, or does not print JSON.
    pub(crate) fn measure(&self) -> Result<Value, Box<dyn Error>> {
        let tree = ManifestTree::new("bench", self.each)?;
        let mut all = vec![five_spot(self.five_spot, &tree)?];
        if let Some(program) = self.kubectl_validate {
            all.push(kubectl_validate(program, &tree)?);
        }
        let sorts = MANIFEST_SORTS.iter().map(|sort| {
            let verdicts = all.iter().map(|it| (it.name, it.of_sort(sort.name)));
            json!({
                "sort": sort.name,
                "documents": self.each * sort.documents,
                "expected": sort.verdict,
                "verdicts": verdicts.collect::<BTreeMap<_, _>>(),
            })
        });
        let profile = self.five_spot.parent().and_then(Path::file_name);
        Ok(json!({
            "kubernetes": KUBERNETES,
            "profile": profile.unwrap_or_default().to_string_lossy(),
            "sorts": sorts.collect::<Vec<_>>(),
            "programs": all.iter().map(Results::cost).collect::<Vec<_>>(),
        }))
    }
}

/// What is not as it should be in the results of `5spot validate`.
pub(crate) fn faults(results: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for sort in results["sorts"].as_array().into_iter().flatten() {
        let found = &sort["verdicts"][FIVE_SPOT];
        let expected = match sort["expected"].as_str() {
            None | Some("") => json!({}),
            Some(verdict) => json!({verdict: sort["documents"]}),
        };
        if *found != expected {
            let name = &sort["sort"];
            faults.push(format!("{name}: {found} where {expected} is expected"));
        }
    }
    let cost = &results["programs"][0];
    if cost["exitCode"] != 1 {
        faults.push(format!("the exit code is {}, not 1", cost["exitCode"]));
    }
    if cost["peakMib"].as_u64().is_none_or(|it| it > MAX_MIB) {
        faults.push(format!("{} MiB are more than {MAX_MIB}", cost["peakMib"]));
    }
    faults
}

fn five_spot(program: &Path, tree: &ManifestTree) -> Result<Results, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args(["validate", "-o", "json", "--kube-version", KUBERNETES]);
    command.arg("-f").arg(tree.path());
    command.arg("--crd").arg(tree.definitions());
    let run = MeasuredRun::of(&mut command)?;
    let report: Value = serde_json::from_slice(&run.output.stdout)?;
    let items = report["items"].as_array().into_iter().flatten();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let verdicts = items.map(|it| (text(&it["origin"]), text(&it["result"])));
    Ok(Results::new(FIVE_SPOT, run, verdicts))
}

fn kubectl_validate(
    program: &Path,
    tree: &ManifestTree,
) -> Result<Results, Box<dyn Error>> {
    let mut command = Command::new(program);
    let own = Definitions::write()?;
    // Only what the program and the folders contain is used, and no cluster.
    command.env("KUBECONFIG", "/dev/null");
    command.args(["--output", "json", "--version", KUBERNETES]);
    command.arg("--local-crds").arg(tree.definitions());
    command.arg("--local-crds").arg(&own.0).arg(tree.path());
    let run = MeasuredRun::of(&mut command)?;
    let report: Value = serde_json::from_slice(&run.output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
        format!("kubectl-validate: {error}: {said}")
    })?;
    let files = report.as_object().into_iter().flatten();
    let statuses = files.flat_map(|(file, all)| {
        let all = all.as_array().into_iter().flatten();
        all.map(move |it| (file.clone(), it))
    });
    let verdicts = statuses.map(|(file, status)| {
        let is_valid = status["status"] == "Success";
        (file, if is_valid { "valid" } else { "invalid" }.to_owned())
    });
    Ok(Results::new("kubectl-validate", run, verdicts))
}

/// A folder with the CRDs of 5-Spot. It is removed when dropped.
struct Definitions(PathBuf);

impl Definitions {
    fn write() -> std::io::Result<Self> {
        let name = format!("5spot-definitions-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0)?;
        for (definition, number) in manifest::definitions(30).into_iter().zip(0..) {
            let file = folder.0.join(format!("{number}.yaml"));
            fs::write(file, definition.to_string())?;
        }
        Ok(folder)
    }
}

impl Drop for Definitions {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Results {
    /// From the file and the verdict of each document.
    fn new(
        name: &'static str,
        run: MeasuredRun,
        each: impl Iterator<Item = (String, String)>,
    ) -> Self {
        let mut verdicts = BTreeMap::new();
        for (file, verdict) in each {
            let file = file.rsplit('/').next().unwrap_or_default();
            let sort = file.split('-').next().unwrap_or_default().to_owned();
            *verdicts.entry((sort, verdict)).or_default() += 1;
        }
        Self {
            name,
            run,
            verdicts,
        }
    }

    /// How many documents of a sort have each verdict.
    fn of_sort(&self, name: &str) -> BTreeMap<&str, usize> {
        let of_sort = self.verdicts.iter().filter(|((sort, _), _)| sort == name);
        of_sort
            .map(|((_, verdict), count)| (verdict.as_str(), *count))
            .collect()
    }

    fn cost(&self) -> Value {
        json!({
            "name": self.name,
            "exitCode": self.run.output.status.code(),
            "seconds": self.run.duration.as_secs_f64(),
            "peakMib": self.run.peak_kib >> 10,
        })
    }
}
