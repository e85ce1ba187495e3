//! The verdicts of one set of definitions and policies, for commands that ask about many objects.

use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::Crd;
use kubemu_admission::policy::User;
use kubemu_terminal::Failure;
use serde_json::{Value, json};

use super::builtin::Cluster;
use super::engine::{Engine, Sources};
use super::object_result::{Subject, Verdict};
use super::precompiled::Precompiled;
use super::prepared::Prepared;
use super::refusal::Refusal;
use super::stored::Stored;
use super::{Args, Extension, Form, Operation, user};
use crate::document::Document;

/// The CRDs, policies and other objects of a cluster that are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cast {
    pub(crate) definitions: Vec<Document>,
    pub(crate) policies: Vec<Document>,
    pub(crate) params: Vec<Document>,
    pub(crate) namespaces: Vec<Document>,
    /// Objects that a server has before it has the policies.
    pub(crate) stored: Vec<Document>,
    /// What need not be compiled again.
    pub(crate) precompiled: Arc<Precompiled>,
    /// What need not be started again.
    pub(crate) prepared: Arc<Prepared>,
    /// The user of the requests: without one, that of kubectl.
    pub(crate) user: Option<User>,
}

/// A create, or an update of `old`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) object: Value,
    pub(crate) old: Option<Value>,
}

impl Question {
    pub(crate) fn create(object: Value) -> Self {
        Self { object, old: None }
    }

    /// The number of bytes of the objects as JSON.
    pub(crate) fn bytes(&self) -> usize {
        let old = self.old.as_ref().map_or(0, |it| it.to_string().len());
        self.object.to_string().len() + old
    }
}

/// The verdict of the rules alone, without a server.
#[derive(Clone, Debug)]
pub(crate) struct Opinion {
    pub(crate) admitted: bool,
    /// How far the object came: decoding, the schema, its rules, policies.
    pub(crate) passed: usize,
    /// The fields with errors, and the messages.
    pub(crate) faults: Vec<(String, String)>,
    /// In units of the Kubernetes cost tracker.
    pub(crate) cost: u64,
}

/// The response of a server.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The `metav1.Status` of a refusal.
    pub(crate) refusal: Option<Value>,
    /// The object as it would be stored.
    pub(crate) stored: Value,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With the warnings.
    Admitted(Vec<String>),
    /// With the message of the `metav1.Status`, and the warnings.
    Refused(String, Vec<String>),
    /// Why there is none.
    None(String),
}

/// Answers questions about objects.
pub(crate) struct Judge<'e> {
    sources: Sources,
    engine: Engine<'e>,
    extension: &'e dyn Extension,
    args: Args,
}

impl<'e> Judge<'e> {
    /// Compiles the definitions and policies.
    ///
    /// # Errors
    /// A server would refuse one of them.
    pub(crate) fn new(
        cast: &Cast,
        version: KubeVersion,
        extension: &'e dyn Extension,
    ) -> Result<Self, Failure> {
        let args = defaults(version);
        let sources = Sources {
            definitions: cast.definitions.clone(),
            policies: cast.policies.clone(),
            params: cast.params.clone(),
            namespaces: cast.namespaces.clone(),
            stored: cast.stored.clone(),
            precompiled: Arc::clone(&cast.precompiled),
            prepared: Arc::clone(&cast.prepared),
            user: cast.user.clone().unwrap_or_else(|| user(&args)),
            version,
        };
        let mut engine = Engine::new(&sources, &[], extension)?;
        for result in engine.take_unusable() {
            if let Verdict::Refused(refusals) = &result.verdict {
                let why = refusals.first().map(Refusal::text).unwrap_or_default();
                let what = format!("compiling {}", result.subject.origin);
                return Err(Failure::new(what, why.trim_end())
                    .remedy("correct it; a server would reject it too"));
            }
        }
        Ok(Self {
            sources,
            engine,
            extension,
            args,
        })
    }

    /// The verdict of the rules.
    ///
    /// # Errors
    /// An object of a built-in kind cannot be asked about.
    pub(crate) fn opinion(&self, question: &Question) -> Result<Opinion, Failure> {
        let old = question.old.clone().map(document).into_iter().collect();
        let old = Stored::of(old, &self.args.namespace, self.extension);
        let result = self
            .engine
            .validate(document(question.object.clone()), (&old, &self.args))?;
        let passed = result.steps.iter().take_while(|it| it.refused == 0).count();
        let faults = result.faults(self.extension).into_iter();
        let faults: Vec<_> = faults.map(|it| (it.field, it.message)).collect();
        // Errors of the schema hide those of the rules.
        let are_rules_hidden = faults.iter().any(|(_, message)| {
            message.contains("some validation rules were not checked")
        });
        Ok(Opinion {
            admitted: matches!(result.verdict, Verdict::Valid),
            passed: 2 * passed + usize::from(!are_rules_hidden),
            faults,
            cost: result.steps.iter().filter_map(|it| it.cost).sum(),
        })
    }

    /// The response to a request, whatever its kind: from the rules if they suffice, otherwise of a
    /// server in this process. Without an operation, it is a create, or an update of an old object.
    ///
    /// # Errors
    /// The server refuses one of the definitions, policies or other objects.
    pub(crate) fn answer(
        &self,
        question: &Question,
        operation: Option<Operation>,
    ) -> Result<Answer, Failure> {
        let old = question.old.clone().map(document).into_iter().collect();
        let old = Stored::of(old, &self.args.namespace, self.extension);
        let args = Args {
            operation,
            ..defaults(self.args.kube_version)
        };
        let asked = document(question.object.clone());
        let result = self.engine.validate(asked, (&old, &args))?;
        Ok(match &result.verdict {
            Verdict::Valid => Answer::Admitted(result.warnings),
            Verdict::Skipped(why) => Answer::None(why.clone()),
            Verdict::Refused(refusals) => {
                let status = refusals.first().map(Refusal::status).unwrap_or_default();
                let message = status["message"].as_str().unwrap_or_default();
                Answer::Refused(message.to_owned(), result.warnings)
            }
        })
    }

    /// The object with its defaults. `None` if its kind is not defined by a CRD.
    pub(crate) fn completed(&self, object: &Value) -> Option<Value> {
        let subject = Subject::of(&document(object.clone()));
        let is_kind =
            |it: &&Arc<Crd>| (it.group(), it.kind()) == (&*subject.group, &*subject.kind);
        let definition = self.engine.definitions().iter().find(is_kind)?;
        let mut object = object.clone();
        let version = definition.served(&subject.version)?;
        version.decode(&mut object);
        if version.has_status() {
            object.as_object_mut()?.remove("status");
        }
        object["scope"] = format!("{:?}", definition.scope()).into();
        Some(object)
    }

    /// The response of a server in this process that has only the definitions and policies, and
    /// the old object.
    ///
    /// # Errors
    /// The server refuses one of them.
    pub(crate) fn reply(&self, question: &Question) -> Result<Reply, Failure> {
        let cluster = Cluster::start(&self.sources)?;
        let mut subject = Subject::of(&document(question.object.clone()));
        if subject.namespace.is_empty() {
            subject.namespace.clone_from(&self.args.namespace);
        }
        let asked = (question.object.clone(), question.old.clone());
        let Some(response) = cluster.respond(&subject, asked)? else {
            return Ok(Reply {
                refusal: Some(Refusal::not_served(&subject).status()),
                stored: Value::Null,
            });
        };
        let mut stored = response.body;
        if response.code >= 300 {
            return Ok(Reply {
                refusal: Some(stored),
                stored: Value::Null,
            });
        }
        if let Some(Value::Object(metadata)) = stored.get_mut("metadata") {
            for of_server in ["uid", "creationTimestamp", "managedFields"] {
                metadata.remove(of_server);
            }
        }
        Ok(Reply {
            refusal: None,
            stored,
        })
    }
}

fn document(object: Value) -> Document {
    Document {
        origin: "the object".to_owned(),
        object,
        location: None,
    }
}

/// The arguments of a request that kubectl would send.
fn defaults(version: KubeVersion) -> Args {
    Args {
        file: Vec::new(),
        crd: Vec::new(),
        policy: Vec::new(),
        param: Vec::new(),
        namespace_object: Vec::new(),
        user: "kubernetes-admin".to_owned(),
        group: Vec::new(),
        old: Vec::new(),
        operation: None::<Operation>,
        namespace: "default".to_owned(),
        kube_version: version,
        all_failures: false,
        type_check: false,
        explain: false,
        quiet: false,
        output: Form::Json,
    }
}

/// A binding that applies a policy to everything that it matches.
pub(crate) fn binding_of(policy: &str) -> Document {
    document(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    }))
}
