//! `cargo judge speed`: how long the engine takes, beside cel-go and Kubernetes' libraries.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::library::oracle;
use crate::program::{cargo, command, run};
use crate::target;

/// Where the results are kept, below the engine.
pub(crate) const RESULT: &str = "judge/speed.json";

/// The files below the folder above the engine's, each with the kind that is taken from it.
const FILES: [(&str, &str); 4] = [
    (
        "deploy/crds/scheduledmachines.5spot.finos.org.yaml",
        "CustomResourceDefinition",
    ),
    (
        "deploy/admission/validatingadmissionpolicy.yaml",
        "ValidatingAdmissionPolicy",
    ),
    (
        "deploy/admission/validatingadmissionpolicybinding.yaml",
        "ValidatingAdmissionPolicyBinding",
    ),
    ("examples/business-hours.yaml", "ScheduledMachine"),
];

/// How many rules the shorter policy has: as many as the bounds are about.
const FEW_RULES: usize = 23;

/// How often both sides measure, in turns, so that a change of the computer's speed meets both.
const ROUNDS: usize = 3;

/// How many cases `kubemu test` is given, and how often.
const CASES: usize = 10_000;
const RUNS: usize = 5;

/// Gives the same manifests and objects to `crates/admission/benches/speed.rs` and to a program with
/// Kubernetes' libraries, measures `kubemu test`, and keeps the results.
///
/// # Errors
/// A program cannot be built or fails, or the costs differ.
pub(crate) fn measure(root: &Path) -> Result<(), Box<dyn Error>> {
    let [definition, policy, binding, object] = FILES.map(|file| manifest(root, file));
    let (definition, policy, binding, object) = (definition?, policy?, binding?, object?);
    let mut few = policy.clone();
    if let Some(rules) = few["spec"]["validations"].as_array_mut() {
        rules.truncate(FEW_RULES);
    }
    let objects = json!({"ordinary": object, "large": large(&object)});
    let folder = target().join("speed");
    fs::create_dir_all(&folder)?;
    let question = json!({
        "definition": definition.to_string(), "binding": binding, "objects": objects,
        "policies": {"few": few.to_string(), "policy": policy.to_string()},
    });
    let file = folder.join("question.json");
    fs::write(&file, question.to_string())?;
    let measured = side_by_side(root, &file)?;
    let manifests = [&definition, &policy, &binding];
    let result = json!({
        "rules": {
            "definition": rules_below(&definition),
            "policy": policy["spec"]["validations"].as_array().map(Vec::len),
            "few": FEW_RULES,
        },
        "bytes": {
            "ordinary": object.to_string().len(),
            "large": objects["large"].to_string().len(),
        },
        "measured": measured,
        "cases": {"count": CASES, "seconds": cases(root, &folder.join("cases"), manifests, &object)?},
    });
    let text = serde_json::to_string_pretty(&result)?;
    fs::write(root.join(RESULT), format!("{text}\n"))?;
    println!("`cargo judge gen` writes the times to the documentation");
    Ok(())
}

/// The first manifest of a kind in a file.
fn manifest(root: &Path, (path, kind): (&str, &str)) -> Result<Value, Box<dyn Error>> {
    let text = fs::read_to_string(root.join("..").join(path))?;
    let found: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let found = found.into_iter().find(|it| it["kind"] == kind);
    found.ok_or_else(|| format!("no {kind} in {path}").into())
}

/// The times of all sides in nanoseconds, and the costs, which are equal.
fn side_by_side(root: &Path, question: &Path) -> Result<Value, Box<dyn Error>> {
    let oracle = oracle::build(root)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut bench = command(cargo(), root);
        bench.args(["bench", "--profile", "dist", "--bench", "speed"]);
        let ours = run(bench.env("SPEED_QUESTION", question))?;
        let mut libraries = command(&oracle, root);
        let theirs = run(libraries.arg("speed").stdin(File::open(question)?))?;
        let ours: Value = serde_json::from_str(&ours)?;
        let theirs: Value = serde_json::from_str(&theirs)?;
        for (what, cost) in ours["costs"].as_object().into_iter().flatten() {
            let alone = &theirs["celGo"]["costs"][what];
            let is_equal = |it: &Value| it == cost;
            if !is_equal(&theirs["costs"][what]) || !alone.is_null() && !is_equal(alone) {
                return Err(format!("{what} costs {cost} here: {theirs}").into());
            }
        }
        rounds.push((ours, theirs));
    }
    let medians = |times: &dyn Fn(&(Value, Value)) -> &Value| {
        let of_all: Vec<&Value> = rounds.iter().map(times).collect();
        let first = of_all.first().and_then(|it| it.as_object());
        let medians = first.into_iter().flatten().map(|(what, _)| {
            let each = of_all.iter().filter_map(|it| it[what].as_f64());
            (what.clone(), json!(median(each.collect())))
        });
        medians.collect::<Map<_, _>>()
    };
    Ok(json!({
        "kubemu": medians(&|(ours, _)| &ours["times"]),
        "kubernetes": medians(&|(_, theirs)| &theirs["times"]),
        "celGo": medians(&|(_, theirs)| &theirs["celGo"]["times"]),
        "costs": rounds.first().map(|(ours, _)| &ours["costs"]),
    }))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// How many validation rules a definition has in its first version.
fn rules_below(definition: &Value) -> usize {
    fn below(schema: &Value) -> usize {
        let own = schema["x-kubernetes-validations"].as_array();
        let fields = schema.as_object().into_iter().flatten().map(|(_, it)| it);
        let items = schema.as_array().into_iter().flatten();
        own.map_or(0, Vec::len) + fields.chain(items).map(below).sum::<usize>()
    }
    below(&definition["spec"]["versions"][0]["schema"])
}

/// The object with as many entries as its lists may have, and with files for the machine.
fn large(object: &Value) -> Value {
    let mut object = object.clone();
    let spec = &mut object["spec"];
    let windows = (0..16).map(|at| {
        json!({"name": format!("window-{at}"), "days": ["mon-fri", "sun"],
            "start": format!("{at:02}:00"), "end": format!("{at:02}:45")})
    });
    spec["schedule"] =
        json!({"timezone": "Europe/Amsterdam", "windows": windows.collect::<Value>()});
    let taints = (0..64).map(|at| {
        json!({"key": format!("example.com/reserved-{at}"), "value": "batch",
            "effect": "NoSchedule"})
    });
    spec["nodeTaints"] = taints.collect();
    let labels = (0..50).map(|at| (format!("example.com/label-{at}"), json!("value")));
    spec["machineTemplate"] = json!({"labels": labels.collect::<Map<_, _>>()});
    let files = (0..40).map(|at| {
        json!({"path": format!("/etc/worker/{at}.conf"), "permissions": "0644",
            "content": "setting = 1\n".repeat(40)})
    });
    spec["bootstrapSpec"]["spec"]["files"] = files.collect();
    object
}

/// The median processor time of `kubemu test` about cases of which every second is refused, in seconds.
fn cases(
    root: &Path,
    folder: &Path,
    manifests: [&Value; 3],
    object: &Value,
) -> Result<f64, Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let cases = (0..CASES).map(|at| {
        if at % 2 == 0 {
            let change = json!({"metadata": {"name": format!("worker-{at}")}});
            json!({"name": format!("{at} is admitted"), "change": change, "expect": "Admitted"})
        } else {
            let change = json!({"spec": {"nodeDrainTimeout": format!("{at} minutes")}});
            json!({"name": format!("{at} is refused"), "change": change, "expect": "Refused",
                "message": "must be a duration string"})
        }
    });
    let sheet = json!({"apiVersion": "kubemu/v1", "kind": "AdmissionTest",
        "object": object, "cases": cases.collect::<Value>()});
    for (at, document) in manifests.into_iter().chain([&sheet]).enumerate() {
        fs::write(folder.join(format!("{at}.json")), document.to_string())?;
    }
    let words = ["build", "--quiet", "--profile", "dist", "--bin", "kubemu"];
    run(command(cargo(), root).args(words))?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let before = seconds_of_children()?;
        run(command(target().join("dist/kubemu"), root)
            .arg("test")
            .arg(folder))?;
        times.push(seconds_of_children()? - before);
    }
    Ok(median(times))
}

/// The processor time of the programs that this one has started and that have ended, in seconds.
fn seconds_of_children() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name of the program, which may contain anything, is in parentheses.
    let (_, fields) = text.rsplit_once(") ").ok_or("no name in stat")?;
    let ticks = fields.split(' ').skip(13).take(2).map(str::parse::<u32>);
    let ticks = ticks.sum::<Result<u32, _>>()?;
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(f64::from(ticks) / f64::from(per_second))
}
