//! The project's one task runner: `cargo xtask <task>`.

mod cache;
mod circle;
mod cluster;
mod conformance;
mod dependency;
mod desk;
mod diagram;
mod figure;
mod generate;
mod how_we_test;
mod import;
mod marked_page;
mod promises;
mod release;
mod scale;
mod size;
mod stored_results;
mod tool;
mod upgrades;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// The project's one task runner.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Write every generated file
    Gen {
        /// Print what would change, and fail
        #[arg(long)]
        check: bool,
    },
    /// Compare the dependencies between crates with the allowed ones, and the circles of files within
    /// each with the limit
    Deps,
    /// Compare the files with the limits of their size and names
    Size,
    /// Print which recorded results are about the sources as they are, and the command that shows what
    /// has changed under the others
    Figures {
        /// Fail if the sources of this result have changed since it was recorded
        #[arg(long, value_name = "FILE")]
        check: Option<String>,
        /// Record that these results are about the sources as they are, also if their content is as
        /// before
        #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "check")]
        recorded: Vec<String>,
    },
    /// A real Kubernetes and a real Cluster API on this machine (needs Go)
    #[command(subcommand)]
    Cluster(cluster::Task),
    /// Record the results of the last complete runs of the end-to-end suite, and of its last runs with
    /// every fault
    Promises,
    /// Build kubectl if it is missing, and print the PATH to it (needs Go)
    Kubectl,
    /// The files of a release
    Release(release::Arguments),
    /// Write the krew manifest of the archives in a folder
    Krew { folder: PathBuf },
    /// Build helm, clusterctl, kstatus and actionlint, and print the PATH to them (needs Go)
    Tools {
        /// Build this instead, and print the variable with which a promise runs it
        controller: Option<Controller>,
    },
}

/// A controller that a promise runs.
#[derive(Clone, Copy, ValueEnum)]
enum Controller {
    Kueue,
}

/// The faults that a task found, one per line; empty if there are none.
type Faults = Vec<String>;

fn main() -> ExitCode {
    match run(Task::parse(), &root()) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(task: Task, root: &Path) -> Result<Faults, Box<dyn Error>> {
    match task {
        Task::Gen { check: true } => return generate::check(root),
        Task::Gen { check: false } => generate::write(root)?,
        Task::Deps => return dependency::check(root),
        Task::Size => return Ok(size::check(root)?),
        Task::Figures {
            check: Some(file), ..
        } => return figure::check(root, &file),
        Task::Figures { recorded, .. } if recorded.is_empty() => figure::print(root)?,
        Task::Figures { recorded, .. } => figure::stamp(root, &recorded)?,
        Task::Cluster(task) => cluster::run(root, task)?,
        Task::Promises => promises::store(root)?,
        Task::Kubectl => cluster::kubectl(root)?,
        Task::Release(arguments) => return release::run(root, &arguments),
        Task::Krew { folder } => release::krew(&folder)?,
        Task::Tools { controller: None } => tool::build(root)?,
        Task::Tools {
            controller: Some(Controller::Kueue),
        } => tool::build_kueue(root)?,
    }
    Ok(Faults::new())
}

/// The root of the source tree: the folder above this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
