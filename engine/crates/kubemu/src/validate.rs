//! `kubemu validate`: validates manifests as an API server would, offline.

mod builtin;
mod definitions;
mod engine;
mod extension;
mod github;
pub(crate) mod judge;
pub(crate) mod junit;
mod lookup;
mod object_result;
mod options;
mod policies;
pub(crate) mod precompiled;
pub(crate) mod prepared;
mod refusal;
mod report;
mod rights;
pub(crate) mod sarif;
mod stored;
mod type_check;
mod write;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::User;
use kubemu_terminal::{Failure, Outcome};

use crate::document::{Document, Documents, Malformed};
use crate::{document, parallel};
use engine::{Engine, Sources};
use object_result::{ObjectResult, Verdict};
use stored::Stored;

pub use extension::{Description, Extension, Lint, Program};
pub use object_result::Level;

/// The examples of the command's help.
pub const EXAMPLES: &str = "\
Examples:
  kubemu validate -f manifests/ --crd crds/
  kubemu validate -f new.yaml --old stored.yaml -o json
  kubemu validate -f manifests/ --policy policies/ --type-check";

/// Validate manifests as an API server would, offline
///
/// Objects of Kubernetes' own kinds, and of the CRDs that are given. Exit codes: 0 all are valid, 1 one
/// is invalid, 2 error (a flag cannot be used, or there is no schema for any object).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(skip)]
pub struct Args {
    /// Files or directories with objects, - for standard input (repeatable)
    #[arg(short, long, value_name = "FILE|DIR|-", required = true)]
    file: Vec<PathBuf>,
    /// Files or directories with CustomResourceDefinitions, in addition to those of --file; other
    /// objects are skipped (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,
    /// Files or directories with ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their
    /// bindings; configurations of webhooks are skipped (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// Files or directories with parameter objects of policies (their paramKind) (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    param: Vec<PathBuf>,
    /// Files or directories with Namespace objects, for policies that read their labels
    /// (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    namespace_object: Vec<PathBuf>,
    /// User of the request
    #[arg(long, value_name = "NAME", default_value = "kubernetes-admin")]
    user: String,
    /// Group of the user, in addition to system:authenticated (repeatable) [default: system:masters
    /// for the default user]
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Files or directories with the stored objects: an object with the same kind, namespace and
    /// name as one of these is validated as an update (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    old: Vec<PathBuf>,
    /// Operation to validate [default: update if --old contains the object, else create]
    #[arg(long, value_enum)]
    operation: Option<Operation>,
    /// Namespace of objects that have none
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Kubernetes version of the API server
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Report all errors, including those that a server would not return: further denials by
    /// policies, and policies after schema errors
    #[arg(long)]
    all_failures: bool,
    /// Reject policies whose expressions do not match the types of their CRDs; a server only writes
    /// a warning into status.typeChecking
    #[arg(long)]
    type_check: bool,
    /// Show which layer, rule, policy and binding decided, and the CEL cost
    #[arg(long)]
    explain: bool,
    /// With text output, print only invalid objects, warnings and the counts
    #[arg(short, long)]
    quiet: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Create
    Create,
    /// Update of an object of --old
    Update,
    /// Delete
    Delete,
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

/// The given objects.
#[derive(Default)]
pub struct Given {
    /// Those to validate.
    pub documents: Documents,
    /// Those that may be CRDs.
    pub definitions: Documents,
    /// Policies and their bindings.
    pub policies: Vec<Document>,
    /// The parameters of policies.
    pub params: Vec<Document>,
    /// Namespaces, for policies that read their labels.
    pub namespaces: Vec<Document>,
    /// The stored objects.
    pub old: Vec<Document>,
}

impl Given {
    /// Reads the objects.
    ///
    /// # Errors
    /// There is none to validate, or another file than those of `--file` and `--crd` cannot be read.
    fn read(args: &Args) -> Result<Self, Failure> {
        let documents = document::read_each(&args.file)?;
        // A list without items, as `kubectl get -o yaml` prints it, has no invalid object.
        if documents.items.is_empty() && !documents.has_list {
            let remedy = "give files that contain objects";
            return Err(
                Failure::new("validate", "the input contains no objects").remedy(remedy)
            );
        }
        Ok(Self {
            documents,
            definitions: document::read_each(&args.crd)?,
            policies: document::read(&args.policy)?,
            params: document::read(&args.param)?,
            namespaces: document::read(&args.namespace_object)?,
            old: document::read(&args.old)?,
        })
    }
}

/// Validates the manifests of the arguments and prints the results.
///
/// # Errors
/// There are no objects, none of them has a schema, or objects other than those to validate cannot
/// be read or used.
pub fn run(
    args: &Args,
    extension: &dyn Extension,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    match validate(Given::read(args)?, (args, extension), out)? {
        Outcome::NoResult => {
            let why = "there is no schema for any of these objects";
            Err(Failure::new("validate", why)
                .remedy("give the CRDs of their kinds with --crd"))
        }
        outcome => Ok(outcome),
    }
}

/// Validates the given objects and prints the results. `NoResult` if none of them has a schema.
///
/// # Errors
/// An object other than those to validate cannot be used.
pub fn validate(
    given: Given,
    (args, extension): (&Args, &dyn Extension),
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let (definitions, malformed) = split(given.definitions);
    let sources = Sources {
        definitions,
        policies: given.policies,
        params: given.params,
        namespaces: given.namespaces,
        stored: Vec::new(),
        precompiled: Arc::default(),
        prepared: Arc::default(),
        user: user(args),
        version: args.kube_version,
    };
    let objects: Vec<&Document> = given.documents.items.iter().flatten().collect();
    let mut engine = Engine::new(&sources, &objects, extension)?;
    let old = Stored::of(given.old, &args.namespace, extension);
    let mut object_results: Vec<_> =
        malformed.iter().map(ObjectResult::malformed).collect();
    object_results.extend(engine.take_unusable());
    object_results.extend(validate_each(&engine, given.documents, (&old, args))?);
    if args.type_check {
        object_results.extend(type_check::refused(&sources, &engine));
    }
    report::print(out, (args, extension), &object_results)?;
    Ok(outcome(&object_results))
}

/// The documents, and the texts that contain none.
fn split(documents: Documents) -> (Vec<Document>, Vec<Malformed>) {
    let (mut all, mut malformed) = (Vec::new(), Vec::new());
    for item in documents.items {
        match item {
            Ok(document) => all.push(document),
            Err(text) => malformed.push(text),
        }
    }
    (all, malformed)
}

/// The results for all documents and, in their places, for texts that are not documents.
fn validate_each(
    engine: &Engine<'_>,
    documents: Documents,
    request: (&Stored, &Args),
) -> Result<Vec<ObjectResult>, Failure> {
    let mut all = Vec::new();
    let mut in_order = Vec::new();
    for item in documents.items {
        in_order.push(match item {
            Ok(document) => {
                all.push(document);
                None
            }
            Err(text) => Some(text),
        });
    }
    let mut validated = validate_all(engine, all, request)?.into_iter();
    let results = in_order
        .into_iter()
        .filter_map(|malformed| match malformed {
            Some(text) => Some(ObjectResult::malformed(&text)),
            None => validated.next(),
        });
    Ok(results.collect())
}

/// The results for all documents, including lint warnings about several of them.
fn validate_all(
    engine: &Engine<'_>,
    documents: Vec<Document>,
    (old, args): (&Stored, &Args),
) -> Result<Vec<ObjectResult>, Failure> {
    let shared = engine.lints_of_all(&documents, &args.namespace);
    let validated =
        parallel::map(documents, |document| engine.validate(document, (old, args)));
    let mut object_results = validated.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (index, lint) in shared {
        if let Some(object_result) = object_results.get_mut(index) {
            object_result.lints.push(lint);
        }
    }
    Ok(object_results)
}

/// The user of the requests.
fn user(args: &Args) -> User {
    let is_default = args.group.is_empty() && args.user == "kubernetes-admin";
    let masters = is_default.then(|| "system:masters".to_owned());
    let authenticated = "system:authenticated".to_owned();
    User {
        name: args.user.clone(),
        groups: args
            .group
            .iter()
            .cloned()
            .chain(masters)
            .chain([authenticated])
            .collect(),
        ..User::default()
    }
}

/// `No` if any object is refused; `NoResult` if there are objects and none could be validated.
fn outcome(object_results: &[ObjectResult]) -> Outcome {
    let is_valid = |it: &ObjectResult| matches!(it.verdict, Verdict::Valid);
    if object_results.iter().any(ObjectResult::is_invalid) {
        Outcome::No
    } else if object_results.is_empty() || object_results.iter().any(is_valid) {
        Outcome::Yes
    } else {
        Outcome::NoResult
    }
}
