//! What `5spot plan -f` says of random fleets is what becomes of their openings: the whole operator runs
//! through these days, and the Machines that there are tell which openings were kept.
//!
//! With `RECORD_FLEETS=FILE` (absolute, or below `crates/cli`) two hundred are compared, and how many
//! openings were kept is stored in that file:
//!
//! ```console
//! $ RECORD_FLEETS=$PWD/proof/results/fleets.json \
//!     cargo test --release --test commands -- each_opening --nocapture
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fivespot_testkit::{Cluster, cluster_object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::fleet::{Fleet, Machine, NAMESPACES, Opening, monday};

/// How many fleets are compared each time, and for the record.
const FLEETS: u64 = 8;
const RECORDED: u64 = 200;

const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// The forecast is about openings of two days; the last ones end later.
const RUN: SignedDuration = SignedDuration::from_hours(72);

/// How often Machines are looked at: each exists for longer, because windows last for 25 minutes and
/// more.
const GLANCE: SignedDuration = SignedDuration::from_mins(10);

/// An opening that cannot be kept according to the forecast.
struct Broken {
    late: Option<SignedDuration>,
    reason: String,
}

/// The openings that the forecast calls broken, by namespace, name and time, and how many there are.
fn forecast(objects: &[Value]) -> (BTreeMap<(String, String, Timestamp), Broken>, usize) {
    let (from, to) = (monday(), monday() + TWO_DAYS);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut program = Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(["plan", "-f", "-", "-o", "json"])
        .args(["--from", &from.to_string(), "--to", &to.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    stdin.write_all(list.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = program.wait_with_output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["notEvaluated"], Value::Null, "{report}");
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let broken = report["broken"].as_array().unwrap().iter().map(|row| {
        let time: Timestamp = text(row, "time").parse().unwrap();
        let broken = Broken {
            late: row["lateSeconds"].as_i64().map(SignedDuration::from_secs),
            reason: text(row, "reason"),
        };
        ((text(row, "namespace"), text(row, "name"), time), broken)
    });
    let openings = report["openings"].as_u64().unwrap();
    (broken.collect(), usize::try_from(openings).unwrap())
}

/// When the operator has made Machines, by namespace and name, in order.
async fn replayed(
    seed: u64,
    objects: &[Value],
) -> BTreeMap<(String, String), Vec<Timestamp>> {
    let cluster = Cluster::seeded(monday() - SignedDuration::from_hours(1), seed).await;
    for namespace in NAMESPACES {
        cluster.add_namespace(namespace).await;
        let mut of = cluster_object(cluster.contract());
        of["metadata"]["namespace"] = json!(namespace);
        cluster.apply(&of).await;
    }
    for object in objects {
        cluster.apply(object).await;
    }
    let _operator = cluster.operator();
    let machines = format!(
        "/apis/cluster.x-k8s.io/{}/machines",
        cluster.contract().name()
    );
    let mut made: BTreeMap<_, Vec<Timestamp>> = BTreeMap::new();
    let (mut requests, mut at) = (0, monday());
    while at <= monday() + RUN {
        cluster.advance_until(at).await;
        for machine in cluster.list(&machines).await {
            let metadata = &machine["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap().to_owned();
            let created = text("creationTimestamp").parse().unwrap();
            let all = made.entry((text("namespace"), text("name"))).or_default();
            if all.last() != Some(&created) {
                all.push(created);
            }
        }
        let is_creation = |event: &fivespot_testkit::AuditEvent| {
            event.verb == "create" && event.resource == "machines" && event.code == 201
        };
        let taken = cluster.take_requests();
        requests += taken.iter().filter(|event| is_creation(event)).count();
        at += GLANCE;
    }
    let found: usize = made.values().map(Vec::len).sum();
    assert_eq!(found, requests, "a Machine was not seen");
    made
}

/// What is wrong about an opening, if anything is. `made` is when its Machine was created, `grace` how
/// long the shutdown of another one may take. The forecast counts all of that, so a host may be free
/// earlier, and the Machine there.
fn fault(
    opening: &Opening,
    broken: Option<&Broken>,
    made: Option<Timestamp>,
    grace: SignedDuration,
) -> Option<String> {
    let late = made.map(|made| made.duration_since(opening.opens));
    let said = broken.map(|it| format!("{} {:?}", it.reason, it.late));
    let is_true = match (broken.map(|it| it.late), late) {
        // It had to wait, but for no longer than the lead time.
        (None, Some(late)) if opening.start < opening.opens => !late.is_positive(),
        (None, Some(late)) => late.is_zero(),
        (Some(None), None) => true,
        (Some(Some(most)), Some(late)) => {
            late.is_positive() && late <= most && late >= most - grace
        }
        (None | Some(Some(_)), None) | (Some(None), Some(_)) => false,
    };
    (!is_true)
        .then(|| format!("{opening:?}: forecast {said:?}, and it was made {late:?}"))
}

/// Compares the forecast of a fleet with what the operator does. Returns how many openings were kept,
/// and how many not.
async fn compare(seed: u64) -> Result<(usize, usize), String> {
    let fleet = Fleet::random(seed);
    let objects = fleet.objects();
    let (mut broken, said) = forecast(&objects);
    let mut made = replayed(seed, &objects).await;
    let (mut openings, not_kept) = (0, broken.len());
    let mut faults = Vec::new();
    for machine in &fleet.machines {
        let Machine {
            namespace, name, ..
        } = machine;
        let key = ((*namespace).to_owned(), name.clone());
        let mut made = made.remove(&key).unwrap_or_default();
        for opening in fleet.openings(machine) {
            openings += 1;
            let row = broken.remove(&(key.0.clone(), key.1.clone(), opening.opens));
            let within = |at: &Timestamp| opening.start <= *at && *at < opening.end;
            let of = made.iter().position(within).map(|place| made.remove(place));
            let grace = fleet.classes[machine.class].grace;
            let fault = fault(&opening, row.as_ref(), of, grace);
            faults.extend(fault.map(|fault| format!("{namespace}/{name}: {fault}")));
        }
        faults.extend(
            made.iter()
                .map(|at| format!("{namespace}/{name}: made at {at}")),
        );
    }
    faults.extend(broken.keys().map(|it| format!("no opening: {it:?}")));
    if openings != said {
        faults.push(format!("{openings} openings, and the forecast has {said}"));
    }
    if faults.is_empty() {
        return Ok((openings - not_kept, not_kept));
    }
    Err(format!("seed {seed}: {}\n{fleet:#?}", faults.join("\n")))
}

#[tokio::test(flavor = "current_thread")]
async fn each_opening_that_is_forecast_broken_has_no_machine_and_each_other_one_has() {
    let file = std::env::var_os("RECORD_FLEETS");
    let fleets = if file.is_some() { RECORDED } else { FLEETS };
    let (mut kept, mut not_kept) = (0, 0);
    let mut faults = Vec::new();
    for seed in 0..fleets {
        match compare(seed).await {
            Ok((some, others)) => {
                kept += some;
                not_kept += others;
                println!("fleet {seed}: {some} openings kept, {others} not");
            }
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Both are compared.
    assert!(kept > 10 && not_kept > 10, "{kept} kept, {not_kept} not");
    if let Some(file) = file {
        let result = json!({"fleets": fleets, "kept": kept, "notKept": not_kept});
        fs::write(file, format!("{result:#}\n")).unwrap();
    }
}
