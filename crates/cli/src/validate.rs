//! `5spot validate`: what the API server would answer to manifests, without one.

mod answer;
mod engine;
mod github;
mod junit;
mod options;
mod refusal;
mod report;
mod sarif;
mod shared;
mod stored;
#[cfg(test)]
mod tests;
mod type_check;
mod world;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use fivespot_admission::KubeVersion;
use fivespot_admission::policy::User;
use fivespot_clock::Clock;
use jiff::Timestamp;

use crate::document::Document;
use crate::{Failure, Outcome, document, parallel};
use answer::{Answer, Level, Verdict};
use engine::{Engine, Sources};
use stored::Stored;

const EXAMPLES: &str = "\
Examples:
  5spot validate -f machine.yaml
  5spot validate -f manifests/ -o json
  5spot validate -f new.yaml --old stored.yaml
  5spot validate -f machines/ --explain --lint error -o sarif
  5spot validate -f machines/ --policy policies/ --type-check
  5spot validate --no-builtin --crd crd.yaml --policy policies/ -f -";

/// Arguments of `5spot validate`.
#[derive(Debug, clap::Args)]
#[command(
    about = "Say what the API server would answer to manifests, without one",
    after_help = EXAMPLES
)]
pub(crate) struct Args {
    /// Files or directories with objects, - for standard input (repeatable)
    #[arg(short, long, value_name = "FILE|DIR|-", required = true)]
    file: Vec<PathBuf>,
    /// Leave out the definition and the policy of ScheduledMachine
    #[arg(long)]
    no_builtin: bool,
    /// Files or directories with CustomResourceDefinitions (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,
    /// Files or directories with ValidatingAdmissionPolicies and their bindings (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// Files or directories with the parameters of policies: objects of their paramKind
    /// (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    param: Vec<PathBuf>,
    /// Files or directories with Namespace objects, for policies that look at labels
    /// (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    namespace_object: Vec<PathBuf>,
    /// Who asks
    #[arg(long, value_name = "NAME", default_value = "kubernetes-admin")]
    user: String,
    /// A group of the user, beside system:authenticated (repeatable) [default: system:masters
    /// for the default user]
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Files or directories with the objects as they are stored: one of the same kind,
    /// namespace and name makes the object an update (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    old: Vec<PathBuf>,
    /// What is done with the objects [default: update where --old has one, else create]
    #[arg(long, value_enum)]
    operation: Option<Operation>,
    /// The namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// The API server whose answer is wanted
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Everything that is wrong, also what a server would have kept back: further refusals by
    /// policies, and policies after the schema has refused
    #[arg(long)]
    all_failures: bool,
    /// Refuse policies whose expressions do not fit the definitions that they match, about which
    /// a server only writes a warning into status.typeChecking
    #[arg(long)]
    type_check: bool,
    /// Say which layer, rule, policy and binding answered, and what it cost
    #[arg(long)]
    explain: bool,
    /// What becomes of remarks about schedules that are allowed and rarely meant
    #[arg(long, value_enum, default_value_t)]
    lint: LintLevel,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// It is new
    Create,
    /// It replaces one of --old
    Update,
    /// It goes
    Delete,
}

/// What becomes of remarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LintLevel {
    /// They are not looked for
    Off,
    /// They are printed
    #[default]
    Warn,
    /// They are printed, and the answer is no if there are any
    Error,
}

impl LintLevel {
    /// How much a remark weighs.
    fn level(self) -> Level {
        match self {
            Self::Off | Self::Warn => Level::Warning,
            Self::Error => Level::Error,
        }
    }
}

/// The forms in which answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// As kubectl prints them
    #[default]
    Text,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit's XML, for test reports
    Junit,
    /// Workflow commands of GitHub Actions, for annotations on lines
    Github,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let documents = document::read(&args.file)?;
    if documents.is_empty() {
        let remedy = "give files that hold objects";
        return Err(
            Failure::new("validate", "there is no object in what was given")
                .remedy(remedy),
        );
    }
    let sources = Sources {
        builtin: !args.no_builtin,
        definitions: document::read(&args.crd)?,
        policies: document::read(&args.policy)?,
        params: document::read(&args.param)?,
        namespaces: document::read(&args.namespace_object)?,
        user: user(&args),
        version: args.kube_version,
    };
    let engine = Engine::new(&sources)?;
    let now = Clock::system().now();
    let old = Stored::of(document::read(&args.old)?, &args.namespace);
    let mut answers = answers(&engine, documents, (&old, &args, now))?;
    if args.type_check {
        answers.extend(type_check::refused(&sources, &engine));
    }
    report::print(out, &args, &answers)?;
    match outcome(&answers, args.lint) {
        Outcome::Unanswered => {
            let why = "nothing says what any of these objects has to be";
            Err(Failure::new("validate", why)
                .remedy("give the definitions of their kinds with --crd"))
        }
        answer => Ok(answer),
    }
}

/// What the server would answer to each of the documents, and what is remarked on about all of
/// them together.
fn answers(
    engine: &Engine,
    documents: Vec<Document>,
    (old, args, now): (&Stored, &Args, Timestamp),
) -> Result<Vec<Answer>, Failure> {
    let shared = match args.lint {
        LintLevel::Off => Vec::new(),
        LintLevel::Warn | LintLevel::Error => shared::hosts(&documents, args),
    };
    let answered = parallel::map(documents, |document| {
        engine.answer(document, old, (args, now))
    });
    let mut answers = answered.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (place, remark) in shared {
        if let Some(answer) = answers.get_mut(place) {
            answer.remarks.push(remark);
        }
    }
    Ok(answers)
}

/// Who asks.
fn user(args: &Args) -> User {
    let is_usual = args.group.is_empty() && args.user == "kubernetes-admin";
    let usual = is_usual.then(|| "system:masters".to_owned());
    let everybody = "system:authenticated".to_owned();
    User {
        name: args.user.clone(),
        groups: args
            .group
            .iter()
            .cloned()
            .chain(usual)
            .chain([everybody])
            .collect(),
        ..User::default()
    }
}

/// No if anything is refused; no answer if nothing could be looked at.
fn outcome(answers: &[Answer], lint: LintLevel) -> Outcome {
    let is_valid = |it: &Answer| matches!(it.verdict, Verdict::Valid);
    if answers.iter().any(|it| it.is_no(lint)) {
        Outcome::No
    } else if answers.iter().any(is_valid) {
        Outcome::Yes
    } else {
        Outcome::Unanswered
    }
}
