//! `kubemu test`: cases beside policies and CRDs.

mod coverage;
mod edit;
mod kaptest;
mod missing;
mod mutant;
mod report;
mod rule;
mod sarif;
mod sheet;
mod suite;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use kubemu_admission::KubeVersion;
use kubemu_cel::Coverage;
use kubemu_terminal::{Failure, Outcome};

use crate::validate::Extension;

use report::{CaseResult, Report};
use suite::Suite;

/// The examples of the command's help.
pub const EXAMPLES: &str = "\
Examples:
  kubemu test policies/
  kubemu test crds/ policies/ tests/ -o junit";

/// Test policies and CRDs with cases in files beside them
///
/// Documents of the kind AdmissionTest have cases: a request, and the response that is expected. The
/// CRDs, policies, bindings, parameters and namespaces are in the same files or folders. Exit codes: 0
/// all cases pass, 1 one fails, 2 error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(skip)]
pub struct Args {
    /// Files or directories with cases, CRDs and policies
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Kubernetes version of the API server
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Print which results of the expressions of policies and CRDs no case reaches
    #[arg(long)]
    coverage: bool,
    /// Change each rule in small ways, and print the changes that no case detects
    #[arg(long)]
    mutants: bool,
    /// With --coverage and --mutants, only the rules of these files or directories
    #[arg(long, value_name = "FILE|DIR")]
    rules: Vec<PathBuf>,
    /// Write cases for the changes that no case detects into a new file
    #[arg(long, value_name = "FILE", requires = "mutants")]
    write_missing: Option<PathBuf>,
    /// How many changed rules to try
    #[arg(long, value_name = "NUMBER", default_value_t = 5_000)]
    mutant_limit: usize,
    /// How many seconds to try changed rules for, and as many to look for cases
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    mutant_seconds: u64,
    /// With text output, print the cases that pass, too
    #[arg(short, long)]
    verbose: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The longest time for changed rules: a day.
const MAX_SECONDS: u64 = 86_400;

/// The forms in which results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
    /// JUnit's XML, for test reports
    Junit,
    /// SARIF, for code scanning
    Sarif,
}

/// Tests the cases of the arguments and prints the results.
///
/// # Errors
/// A file cannot be read, a document with cases does not have its form, or a server would refuse a CRD
/// or a policy.
pub fn run(
    args: &Args,
    extension: &dyn Extension,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let with = (args.kube_version, extension);
    let mut report = Report::default();
    let time = Duration::from_secs(args.mutant_seconds.min(MAX_SECONDS));
    let deadline = Instant::now() + time;
    let mut proposals = Vec::new();
    for suite in Suite::read(&args.paths, &args.rules)? {
        let tested = if args.coverage {
            let (tested, coverage) = Coverage::record(|| suite.test(with));
            let covered = report.coverage.get_or_insert_default();
            covered.add(&suite.rules(), &coverage);
            tested?
        } else {
            suite.test_in_parallel(with)?
        };
        if args.mutants {
            let mutants = report.mutants.get_or_insert_default();
            let left = args.mutant_limit.saturating_sub(mutants.tried());
            let mut survivors =
                mutants.try_all((&suite, &tested), (left, deadline), with);
            if let Some(file) = &args.write_missing {
                let until = Instant::now() + time;
                let cases = missing::propose(&suite, &mut survivors, (with, until))?;
                proposals.extend(missing::document(&suite, (file, &cases)));
            }
            mutants.survivors.extend(survivors);
        }
        let cases = suite.cases.iter().zip(&tested);
        report
            .cases
            .extend(cases.map(|(case, it)| CaseResult::of(case, it)));
        report.unused += suite.unused;
    }
    if let Some(file) = &args.write_missing {
        missing::write(file, &proposals)?;
    }
    match args.output {
        Form::Text if args.verbose => report.every_case(out)?,
        Form::Text => report.failures(out)?,
        Form::Json => crate::output::json(out, &report)?,
        Form::Sarif => crate::output::json(out, &sarif::log(&report, extension))?,
        Form::Junit => report.junit(out, extension.program().name)?,
    }
    Ok(if report.cases.iter().all(|it| it.passed) {
        Outcome::Yes
    } else {
        Outcome::No
    })
}
