//! Runs the promises on the backend of the run, and records the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use fivespot_testkit::{Backend, Contract, Providers, SharedCluster};
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};

use crate::program;
use crate::promise::Promise;
use crate::survives_every_fault::account;

/// The number of concurrent promises, of which each waits for a part of its time: mostly on a real
/// cluster, and for a fifth on the embedded server.
fn concurrent(backend: Backend) -> usize {
    match backend {
        Backend::Kubernetes => 16,
        Backend::Embedded => 1 + thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The environment in which promises are run.
struct Environment {
    backend: Backend,
    contract: Contract,
    providers: Providers,
    /// The environment's name in texts.
    title: String,
    /// The environment's name in file names.
    label: String,
}

impl Environment {
    /// The environment that the variables choose. Without `connects`, it is not accessed.
    fn chosen(connects: bool) -> Self {
        let backend = Backend::chosen();
        let mut environment = Self {
            backend,
            contract: Contract::V1Beta2,
            providers: Providers::StandIn,
            title: "the embedded server and a simulated Cluster API".to_owned(),
            label: backend.as_str().to_owned(),
        };
        if connects && backend == Backend::Kubernetes {
            let shared_cluster = crate::promise::run(SharedCluster::get());
            let (kubernetes, cluster_api) =
                (shared_cluster.kubernetes(), shared_cluster.cluster_api());
            environment.contract = shared_cluster.contract();
            environment.title =
                format!("Kubernetes {kubernetes} and Cluster API {cluster_api}");
            environment.label =
                format!("kubernetes-{kubernetes}-cluster-api-{cluster_api}");
            environment.providers = shared_cluster.providers();
            if environment.providers == Providers::Real {
                environment.title += " with real providers";
                environment.label += "-real-providers";
            }
        }
        environment
    }

    /// Why a promise cannot be run here. `None` if it can.
    fn hindrance(&self, promise: &Promise) -> Option<String> {
        let hindrance = promise.hindrance(self.backend, self.contract, self.providers);
        hindrance.or_else(|| {
            let mut programs = promise.programs.iter();
            let missing = programs.find(|name| !program::is_there(name))?;
            Some(format!("needs {missing}; {}", program::remedy(missing)))
        })
    }

    /// The file for the result of a whole run.
    fn record(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("promises/{}.json", self.label))
    }
}

/// The files of `E2E_FILES`, separated by commas: only their promises are run. `None` without it.
///
/// # Panics
/// If there are no promises in one of them.
fn files_to_run(promises: &[Promise]) -> Option<Vec<String>> {
    let named = std::env::var("E2E_FILES").ok()?;
    let files: Vec<String> = named.split(',').map(str::to_owned).collect();
    for file in &files {
        let has_some = promises.iter().any(|promise| promise.file() == file);
        assert!(has_some, "E2E_FILES: there are no promises in {file:?}");
    }
    Some(files)
}

/// Runs the promises that libtest's command line and `E2E_FILES` select, and prints which were not
/// run and why.
pub(crate) fn all(mut promises: Vec<Promise>) -> ExitCode {
    let files = files_to_run(&promises);
    if let Some(files) = &files {
        promises.retain(|promise| files.iter().any(|file| file == promise.file()));
    }
    let mut arguments = Arguments::from_args();
    let environment = Environment::chosen(!arguments.list);
    arguments
        .test_threads
        .get_or_insert_with(|| concurrent(environment.backend));
    let (hindered, mut runnable): (Vec<_>, Vec<_>) = promises
        .into_iter()
        .map(|promise| (promise, environment.hindrance(&promise)))
        .partition(|(_, hindrance)| hindrance.is_some());
    // Each of them waits until no other runs, and others wait for it: together at the end, they wait
    // once.
    runnable.sort_by_key(|(promise, _)| promise.is_disruptive);
    let passed: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let turns = Arc::new(RwLock::new(()));
    let trials = runnable
        .iter()
        .map(|(promise, _)| trial(*promise, passed.clone(), turns.clone()))
        .collect();
    let is_whole = files.is_none()
        && arguments.filter.is_none()
        && arguments.skip.is_empty()
        && !arguments.list
        && !arguments.ignored;
    let conclusion = libtest_mimic::run(&arguments, trials);
    let faults = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
    account::conclude(&faults, (&environment.label, &environment.title));
    if is_whole {
        println!("on {}; not run:", environment.title);
        let mut results = BTreeMap::new();
        for (promise, hindrance) in &hindered {
            let why = hindrance.as_deref().unwrap_or_default();
            println!("  {}: {why}", promise.name());
            results.insert(promise.name(), json!({"notRun": why}));
        }
        for (promise, _) in &runnable {
            let passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
            let result = if passed.contains(&promise.name()) {
                "kept"
            } else {
                "broken"
            };
            results.insert(promise.name(), json!(result));
        }
        write(&environment, &results);
    }
    conclusion.exit_code()
}

/// When dropped, restores the objects that a disruptive promise has changed for all.
struct RestoreOnDrop;

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        if Backend::chosen() == Backend::Kubernetes {
            let restore = async { SharedCluster::get().await.restore().await };
            crate::promise::run(restore);
        }
    }
}

fn trial(
    promise: Promise,
    passed: Arc<Mutex<Vec<&'static str>>>,
    turns: Arc<RwLock<()>>,
) -> Trial {
    Trial::test(promise.name(), move || {
        // The lock guards no data, so a poisoned one can be used.
        if promise.is_disruptive {
            let _alone = turns.write().unwrap_or_else(PoisonError::into_inner);
            let _restore_on_drop = RestoreOnDrop;
            promise.run();
        } else {
            let _together = turns.read().unwrap_or_else(PoisonError::into_inner);
            promise.run();
        }
        passed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(promise.name());
        Ok(())
    })
}

/// Writes the result of a whole run to the file that `cargo xtask promises` reads.
fn write(environment: &Environment, results: &BTreeMap<&str, Value>) {
    let path = environment.record();
    let record = json!({"backend": environment.title, "promises": results});
    let text = serde_json::to_string_pretty(&record).expect("JSON") + "\n";
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, text).expect("a file");
}
