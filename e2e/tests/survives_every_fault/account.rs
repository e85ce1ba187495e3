//! The results of a scenario's runs: printed during the runs and as a table at the end, and written
//! to a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fault_injector::{InjectedFault, Target};

/// The results of the scenarios of this run, by name.
static REPORTED: Mutex<BTreeMap<&str, Account>> = Mutex::new(BTreeMap::new());

/// The results of the runs of one scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    scenario: &'static str,
    writes: usize,
    watches: usize,
    planned: usize,
    begun: Option<Instant>,
    took: Duration,
    /// The number of injected faults of writes and of watches.
    injected: [usize; 2],
    /// The faults that were never injected because their target did not occur.
    missed: Vec<String>,
    /// The runs with a different end, and the differences.
    differences: Vec<String>,
}

impl Account {
    /// The account of a scenario with this number of writes and watches, and these faults.
    pub(super) fn new(
        scenario: &'static str,
        (writes, watches): (usize, usize),
        planned_faults: &[InjectedFault],
    ) -> Self {
        let account = Self {
            scenario,
            writes,
            watches,
            planned: planned_faults.len(),
            begun: Some(Instant::now()),
            ..Self::default()
        };
        account.say(&format!(
            "{writes} writes, {watches} watches: {} faults to inject",
            planned_faults.len()
        ));
        account
    }

    /// Records the result of one fault.
    pub(super) fn note(
        &mut self,
        injected_fault: &InjectedFault,
        end: Result<bool, String>,
    ) {
        let outcome = match end {
            Ok(true) => {
                let of_watch = matches!(injected_fault.target, Target::Watch(_));
                self.injected[usize::from(of_watch)] += 1;
                "ended alike".to_owned()
            }
            Ok(false) => {
                self.missed.push(injected_fault.to_string());
                "has not come".to_owned()
            }
            Err(difference) => {
                self.differences
                    .push(format!("{injected_fault}: {difference}"));
                format!("ENDED OTHERWISE: {difference}")
            }
        };
        let done = self.injected.iter().sum::<usize>()
            + self.missed.len()
            + self.differences.len();
        self.say(&format!(
            "{done} of {}: {injected_fault}: {outcome}",
            self.planned
        ));
    }

    /// Completes the account.
    ///
    /// # Errors
    /// Some runs had a different end or, if `is_exact`, some faults were not injected.
    pub(super) fn close(mut self, is_exact: bool) -> Result<(), String> {
        self.took = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let mut wrong = self.differences.clone();
        if is_exact {
            wrong.extend(self.missed.iter().map(|it| format!("{it} has not come")));
        }
        let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
        reported.insert(self.scenario, self);
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n"))
        }
    }

    fn say(&self, words: &str) {
        if super::requested_faults().is_some() {
            eprintln!("{}: {words}", self.scenario);
        }
    }

    fn figures(&self) -> Value {
        json!({
            "writes": self.writes, "faultsOfWrites": self.injected[0],
            "watches": self.watches, "faultsOfWatches": self.injected[1],
            "missed": self.missed, "otherwise": self.differences.len(),
        })
    }
}

/// Prints the results of the scenarios of this run. If every fault was requested, also adds them to
/// the file of this environment in `directory`. Does nothing if no scenario was run.
pub(crate) fn conclude(directory: &Path, (label, title): (&str, &str)) {
    let reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(requested) = super::requested_faults().filter(|_| !reported.is_empty())
    else {
        return;
    };
    println!("{}", table(&reported));
    if requested != super::ALL {
        return;
    }
    let path = directory.join(format!("{label}.json"));
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let recorded: Value = serde_json::from_str(&recorded).unwrap_or_default();
    let mut scenarios = recorded["scenarios"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (scenario, account) in reported.iter() {
        scenarios.insert((*scenario).to_owned(), account.figures());
    }
    let record = json!({"backend": title, "scenarios": scenarios});
    let text = serde_json::to_string_pretty(&record).expect("JSON") + "\n";
    fs::create_dir_all(directory).expect("a folder");
    fs::write(&path, text).expect("a file");
}

fn table(reported: &BTreeMap<&str, Account>) -> String {
    let mut text = format!(
        "{:<20} {:>6} {:>6} {:>7} {:>6} {:>6} {:>9} {:>7}\n",
        "scenario",
        "writes",
        "faults",
        "watches",
        "faults",
        "missed",
        "otherwise",
        "seconds"
    );
    for (scenario, account) in reported {
        let [of_writes, of_watches] = account.injected;
        let _ = writeln!(
            text,
            "{scenario:<20} {:>6} {of_writes:>6} {:>7} {of_watches:>6} {:>6} {:>9} {:>7}",
            account.writes,
            account.watches,
            account.missed.len(),
            account.differences.len(),
            account.took.as_secs(),
        );
    }
    text
}
