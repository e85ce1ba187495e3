//! The costs per machine with many machines, compared with few, and an extrapolation.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{name, number, stored_results, thousands};

/// The folder of the measurements of `benches/scale` that are compared with each other. Of each
/// server, the result with the fewest machines is the reference.
const RESULTS: &str = "benches/crowd";

/// The limit of the ratio between the costs per machine.
const BOUND: f64 = 1.3;

const HEAD: &str = "
## A crowd

The cost of one machine among many. Each column has the value per machine and, in parentheses, its ratio to
the server's first row. *99 in 100* and *all* are the times from the opening of the windows until the three
objects of so many machines exist. The CPU time and the requests are those of the operator in that time.
*memory* is the operator's resident memory when all exist, minus that before the first machine was created.

| server | machines | Clusters | floor | 99 in 100 | all | CPU time | requests | memory |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// A column of the table.
struct Figure {
    unit: &'static str,
    of: fn(&Value) -> f64,
    /// The floor has no bound, because it is a cost of the server and not of the operator.
    is_bounded: bool,
}

const FIGURES: [Figure; 6] = [
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * number(&of["floorSeconds"]),
        is_bounded: false,
    },
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * number(&of["latenessSeconds"][1]),
        is_bounded: true,
    },
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * number(&of["latenessSeconds"][2]),
        is_bounded: true,
    },
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * cpu_seconds(of),
        is_bounded: true,
    },
    Figure {
        unit: "",
        of: |of| number(&of["opening"]["beyondIdling"]),
        is_bounded: true,
    },
    Figure {
        unit: " KiB",
        of: memory_kib,
        is_bounded: true,
    },
];

/// The CPU time of the operator from the opening until all objects exist.
fn cpu_seconds(of: &Value) -> f64 {
    number(&of["opened"]["cpuSeconds"]) - number(&of["settled"]["cpuSeconds"])
}

/// The memory of the operator beyond its memory without machines.
fn memory_kib(of: &Value) -> f64 {
    number(&of["opened"]["residentKib"]) - number(&of["started"]["residentKib"])
}

/// The sections; empty if no results are kept.
///
/// # Errors
/// A result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let folder = root.join(RESULTS);
    if !folder.exists() {
        return Ok(String::new());
    }
    let mut all = stored_results::results(&folder)?;
    all.sort_by_key(|of| {
        (
            name(of).to_owned(),
            of["machines"].as_u64(),
            of["clusters"].as_u64(),
        )
    });
    let runs = stored_results::results(&root.join(super::RESULTS))?;
    Ok(table(&all) + &plan(&all, with_cluster_api(&runs)))
}

fn table(all: &[Value]) -> String {
    let each = |of: &Value, figure: &Figure| (figure.of)(of) / number(&of["machines"]);
    let mut text = HEAD.to_owned();
    let mut above = Vec::new();
    for of in all {
        // Always found: at least the row itself.
        let first = all.iter().find(|it| name(it) == name(of)).unwrap_or(of);
        let _ = write!(
            text,
            "| {} | {} | {} |",
            name(of),
            of["machines"],
            of["clusters"]
        );
        for figure in &FIGURES {
            let value = each(of, figure);
            let times = value / each(first, figure);
            let _ = write!(text, " {value:.2}{}", figure.unit);
            if times.is_finite() {
                let _ = write!(text, " ({times:.2})");
            }
            text.push_str(" |");
            if figure.is_bounded && times.is_finite() && times > BOUND {
                above.push(format!(
                    "{} machines of {} Clusters on {}",
                    of["machines"],
                    of["clusters"],
                    name(of)
                ));
            }
        }
        text.push('\n');
    }
    above.dedup();
    let _ = match above.as_slice() {
        [] => writeln!(
            text,
            "\nNothing of the operator takes more than {BOUND} times as much for each machine."
        ),
        above => writeln!(
            text,
            "\nMore than {BOUND} times as much for each machine: {}.",
            above.join("; ")
        ),
    };
    text
}

/// The number of machines in the plan.
const PLANNED: f64 = 100_000.0;

/// The default quota of etcd and the maximum of its documentation, in GiB.
/// <https://etcd.io/docs/v3.6/dev-guide/limit/>
const ETCD_GIB: [u32; 2] = [2, 8];

/// The seconds per machine while Cluster API reacts to the created objects, from the run with the
/// most machines on a real server.
fn with_cluster_api(runs: &[Value]) -> Option<f64> {
    let of_server = runs.iter().filter(|of| {
        name(of).starts_with("Kubernetes") && name(of).contains(", Cluster API")
    });
    let run = of_server.max_by_key(|of| of["machines"].as_u64())?;
    Some(number(&run["latenessSeconds"][2]) / number(&run["machines"]))
}

/// The plan, from the largest measurement of each server, and with Cluster API from its seconds per
/// machine.
fn plan(all: &[Value], with_cluster_api: Option<f64>) -> String {
    let largest = |is_real: bool| {
        let of_server = all
            .iter()
            .filter(|of| name(of).starts_with("Kubernetes") == is_real);
        of_server.max_by_key(|of| of["machines"].as_u64())
    };
    let (Some(embedded), Some(real), Some(with_cluster_api)) =
        (largest(false), largest(true), with_cluster_api)
    else {
        return String::new();
    };
    let times = |of: &Value| PLANNED / number(&of["machines"]);
    let minutes = |seconds: f64| format!("{:.0} min", (seconds / 60.0).ceil());
    let floor = number(&real["floorSeconds"]) * times(real);
    let edge = number(&real["latenessSeconds"][2]) * times(real);
    let whole = with_cluster_api * PLANNED;
    let cpu = cpu_seconds(embedded) * times(embedded);
    let started = number(&embedded["started"]["residentKib"]);
    let mib = (started + memory_kib(embedded) * times(embedded)) / 1_024.0;
    let gib = number(&real["objectBytes"]) * PLANNED / 1_073_741_824.0;
    let kib = number(&real["objectBytes"]) / 1_024.0;
    let [quota, most] = ETCD_GIB;
    format!(
        "
## A plan for {planned} machines

From the largest measurement of each server above, and the run with Cluster API with the most machines, if every value
per machine stays the same. The computer of the measurement has two cores, which the API server, etcd, the operator and,
where it runs, Cluster API share; where a row says one core, another program used the other.

| what | for {planned} machines | what limits it |
|---|---|---|
| one edge for all, created by a plain client without Cluster API | {floor} | the API server's CPU time |
| the same by the operator | {edge} | the same |
| the same while Cluster API reacts to each Machine | {whole} | Cluster API's CPU time, and its writes |
| the operator's CPU time for it | {cpu} of one core | one process; divided among replicas |
| the operator's memory | {mib:.0} MiB | the caches; every replica holds them all |
| storage in etcd | {gib:.1} GiB ({kib:.1} KiB for each) | etcd's quota: {quota} GiB by default, {most} GiB at most |

- *What limits first* is the rate of writes to one API server, most of which are Cluster API's: an edge that all share
  is spread over the minutes above, however many operators there are. Edges that differ, or `--max-starts-per-minute`, spread the same writes.
- *etcd* also stores the history since its last compaction (five minutes by default). Every status patch is a new
  version of its object, so an edge for all needs several times the size above for that long: set the
  quota accordingly, or use several management clusters.
- *Watches*: each write is sent once to each process that watches its kind: the operator's replicas, Cluster API's
  controllers and the providers. With N replicas that divide the work it is sent to each, because a watch cannot select by the hash of
  a uid.
- *N operators by namespace* (`--namespaces`) divide all costs of the operator: CPU time, memory and watches.
- *N replicas that divide the work* (`--instance-count`) divide the CPU time and the requests. Each replica needs the memory and the watches of a single operator.
- *Several management clusters* are the only way to more writes, more storage and fewer watches per server.
",
        planned = format_args!("{}", thousands(PLANNED)),
        floor = minutes(floor),
        edge = minutes(edge),
        whole = minutes(whole),
        cpu = minutes(cpu),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{plan, table};

    fn result(machines: u32, seconds: f64) -> Value {
        json!({
            "server": "embedded", "machines": machines, "clusters": 1, "floorSeconds": 1.0,
            "latenessSeconds": [0.0, seconds, seconds],
            "started": {"residentKib": 20_480},
            "settled": {"cpuSeconds": 0.0},
            "opened": {"cpuSeconds": f64::from(machines), "residentKib": 20_480 + machines},
            "opening": {"beyondIdling": machines},
            "objectBytes": 10_240,
        })
    }

    #[test]
    fn a_row_that_takes_more_for_each_machine_is_named() {
        let flat = table(&[result(10, 1.0), result(100, 13.0)]);
        assert!(flat.contains("Nothing of the operator"), "{flat}");
        let steep = table(&[result(10, 1.0), result(100, 14.0)]);
        assert!(
            steep.contains("for each machine: 100 machines of 1 Clusters on embedded."),
            "{steep}"
        );
    }

    #[test]
    fn servers_are_not_compared_with_each_other() {
        let mut other = result(100, 1_000.0);
        other["server"] = json!("Kubernetes 1.36");
        let text = table(&[result(10, 1.0), other]);
        assert!(text.contains("Nothing of the operator"), "{text}");
    }

    #[test]
    fn the_plan_is_that_of_the_largest_measurements() {
        let mut real = result(20_000, 600.0);
        real["server"] = json!("Kubernetes 1.36");
        let measured = [result(10, 1.0), result(50_000, 20.0), real.clone()];
        let text = plan(&measured, Some(0.06));
        assert!(
            text.contains("| the same by the operator | 50 min |"),
            "{text}"
        );
        assert!(text.contains("to each Machine | 100 min |"), "{text}");
        assert!(text.contains("| 118 MiB |"), "{text}");
        assert!(text.contains("| 1.0 GiB (10.0 KiB for each) |"), "{text}");
        assert_eq!(
            plan(&measured, None),
            "",
            "that with Cluster API is missing"
        );
        assert_eq!(plan(&[real], Some(0.06)), "", "one of the two is missing");
    }
}
