//! `kubemu test`: cases beside policies and CRDs.

mod report;
mod sheet;
mod suite;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use kubemu_admission::KubeVersion;
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
    /// With text output, print the cases that pass, too
    #[arg(short, long)]
    verbose: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

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
    for suite in Suite::read(&args.paths)? {
        let tested = suite.test(with)?;
        let cases = suite.cases.iter().zip(&tested);
        report
            .cases
            .extend(cases.map(|(case, it)| CaseResult::of(case, it)));
        report.unused += suite.unused;
    }
    match args.output {
        Form::Text if args.verbose => report.every_case(out)?,
        Form::Text => report.failures(out)?,
        Form::Json => crate::output::json(out, &report)?,
        Form::Junit => report.junit(out, extension.program().name)?,
    }
    Ok(if report.cases.iter().all(|it| it.passed) {
        Outcome::Yes
    } else {
        Outcome::No
    })
}
