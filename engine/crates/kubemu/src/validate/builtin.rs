//! Validates objects of built-in kinds: an API server in this process receives a dry-run request.
//! Calling only the rules of the kinds would implement decoding, defaults, metadata and plugins a
//! second time.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONTENT_TYPE, WARNING};
use http::{HeaderMap, Method, Request};
use kube::Client;
use kube::client::Body;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::User;
use kubemu_apiserver::{Options, Registry, Resource, Server, builtin_plugins};
use kubemu_clock::Clock;
use kubemu_terminal::Failure;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::engine::Sources;
use super::object_result::{ObjectResult, Step, Subject, Verdict};
use super::refusal::Refusal;
use super::rights::rights;
use super::stored::Stored;
use super::write::set_in_metadata;
use super::{Args, Operation};
use crate::document::Document;

/// Plugins that read other objects of a cluster, which the files need not contain.
const CLUSTER_PLUGINS: [&str; 4] = [
    "NamespaceLifecycle",
    "ServiceAccount",
    "Priority",
    "RuntimeClass",
];

/// Validates built-in kinds.
pub(super) struct Builtin {
    registry: Registry,
    sources: Sources,
    /// Started for the first object.
    cluster: Mutex<Option<Cluster>>,
}

impl Builtin {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            registry: Registry::builtin(),
            sources,
            cluster: Mutex::default(),
        }
    }

    /// Whether the kind is a built-in kind.
    pub(super) fn serves(&self, subject: &Subject) -> bool {
        of_kind(&self.registry, subject).is_some()
    }

    /// The response of a server to one object.
    ///
    /// # Errors
    /// The server refuses one of the other given objects, or the update of an object that is not
    /// stored is requested.
    pub(super) fn validate(
        &self,
        mut subject: Subject,
        object: Value,
        (old, args): (&Stored, &Args),
    ) -> Result<ObjectResult, Failure> {
        let resource = of_kind(&self.registry, &subject);
        let is_namespaced = resource.is_some_and(|it| it.namespaced);
        if is_namespaced && subject.namespace.is_empty() {
            subject.namespace.clone_from(&args.namespace);
        }
        let has_stored = !self.sources.stored.is_empty();
        let is_deletion = args.operation == Some(Operation::Delete);
        if is_deletion && !has_stored {
            let why = "deletions of built-in kinds are not validated".to_owned();
            return Ok(ObjectResult::without_steps(subject, Verdict::Skipped(why)));
        }
        let old = match args.operation {
            Some(Operation::Create | Operation::Delete) => None,
            operation => old.find(&subject, operation)?.cloned(),
        };
        let cluster = self.cluster.lock();
        let mut cluster = cluster.unwrap_or_else(PoisonError::into_inner);
        let cluster = match &mut *cluster {
            Some(cluster) => cluster,
            none => none.insert(Cluster::start(&self.sources)?),
        };
        let validated = if is_deletion {
            cluster.delete(&subject)
        } else {
            cluster.validate(&subject, object, old)
        };
        Ok(validated.unwrap_or_else(|failure| {
            let refusal = Refusal::failed(&failure);
            ObjectResult::without_steps(subject, Verdict::Refused(vec![refusal]))
        }))
    }
}

fn of_kind<'a>(registry: &'a Registry, subject: &Subject) -> Option<&'a Arc<Resource>> {
    registry.of_kind(&subject.group, &subject.version, &subject.kind)
}

/// An API server with the given policies, parameters and namespaces.
pub(super) struct Cluster {
    server: Server,
    /// That of the user of the requests.
    client: Client,
    /// That of an administrator, who stores the other objects.
    admin: Client,
    runtime: Runtime,
    /// Whether the old objects of updates are stored.
    has_stored: bool,
}

/// A server without objects.
fn new_server(version: KubeVersion) -> Result<Server, Failure> {
    let mut options = Options::new(Clock::system());
    options.kube = version;
    // The answer to the same manifests is the same.
    options.seed = Some(0);
    let known = builtin_plugins();
    let known = |name: &&str| known.iter().any(|it| it.name() == *name);
    let disabled = CLUSTER_PLUGINS.into_iter().filter(known);
    options.disable_plugins = disabled.map(str::to_owned).collect();
    Server::new(options).map_err(|it| Failure::new("validate", it))
}

/// The response of the server.
pub(super) struct Response {
    pub(super) code: u16,
    pub(super) body: Value,
    warnings: Vec<String>,
}

/// A request to the server.
struct Call<'c> {
    method: Method,
    path: String,
    object: Value,
    client: &'c Client,
}

/// An object to write, and who writes it.
struct Writing<'w> {
    object: &'w Value,
    query: &'static str,
    client: &'w Client,
}

impl Cluster {
    /// Starts the server.
    ///
    /// # Errors
    /// The server refuses one of the given objects.
    pub(super) fn start(sources: &Sources) -> Result<Self, Failure> {
        let rights = rights();
        // Policies without bindings concern no request, so that stored objects need not satisfy them.
        let (bindings, policies): (Vec<_>, Vec<_>) = sources
            .policies
            .iter()
            .partition(|it| it.text("/kind").ends_with("Binding"));
        let prepared: Vec<&Document> = rights
            .iter()
            .chain(&sources.definitions)
            .chain(policies)
            .collect();
        let start = || {
            let cluster = Self::of(new_server(sources.version)?, sources)?;
            for document in &prepared {
                cluster.store(document)?;
            }
            Ok(cluster.server)
        };
        let server = sources.prepared.fork(sources.version, &prepared, start)?;
        let cluster = Self::of(server, sources)?;
        let others = [&sources.namespaces, &sources.params, &sources.stored];
        for document in others.into_iter().flatten().chain(bindings) {
            cluster.store(document)?;
        }
        Ok(cluster)
    }

    /// Requests to a server.
    fn of(server: Server, sources: &Sources) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::at_start)?;
        let (client, admin) = {
            let _entered = runtime.enter();
            let User {
                name,
                uid,
                groups,
                extra,
            } = sources.user.clone();
            let user = kubemu_apiserver::User {
                name,
                uid,
                groups,
                extra,
            };
            (
                Client::new(server.in_process_as(user), "default"),
                Client::new(server.in_process(), "default"),
            )
        };
        Ok(Self {
            server,
            client,
            admin,
            runtime,
            has_stored: !sources.stored.is_empty(),
        })
    }

    /// Stores an object that policies or updates need. Objects of a kind that is not served are
    /// ignored.
    fn store(&self, document: &Document) -> Result<(), Failure> {
        let subject = Subject::of(document);
        let Some(resource) = self.resource(&subject) else {
            return Ok(());
        };
        let object = writable(document.object.clone());
        let writing = Writing {
            object: &object,
            query: "",
            client: &self.admin,
        };
        let response = self.write(&resource, &subject, &writing)?;
        if response.code < 300 {
            return Ok(());
        }
        let why = response.body["message"].as_str().unwrap_or_default();
        Err(Failure::new(format!("storing {}", document.origin), why)
            .remedy("correct it; a server would reject it too"))
    }

    fn resource(&self, subject: &Subject) -> Option<Arc<Resource>> {
        of_kind(&self.server.registry(), subject).cloned()
    }

    /// The result of a request to the server for one object. `old` is the stored object.
    ///
    /// # Errors
    /// The server refuses `old`.
    pub(super) fn validate(
        &self,
        subject: &Subject,
        object: Value,
        old: Option<Value>,
    ) -> Result<ObjectResult, Failure> {
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let response = self.respond(subject, (object, old))?;
        Ok(result(subject, operation, response))
    }

    /// The result of a request to the server to delete a stored object.
    fn delete(&self, subject: &Subject) -> Result<ObjectResult, Failure> {
        let response = match self.resource(subject) {
            None => None,
            Some(resource) => {
                let collection = collection_path(&resource, subject);
                let name = path_segment(&subject.name);
                Some(self.send(Call {
                    method: Method::DELETE,
                    path: format!("{collection}/{name}?dryRun=All"),
                    object: json!({"apiVersion": "v1", "kind": "DeleteOptions"}),
                    client: &self.client,
                })?)
            }
        };
        Ok(result(subject, Operation::Delete, response))
    }

    /// The response of the server to a dry run that creates an object, or updates `old`. `None` if
    /// the kind is not served.
    ///
    /// # Errors
    /// The server refuses `old`.
    pub(super) fn respond(
        &self,
        subject: &Subject,
        (object, old): (Value, Option<Value>),
    ) -> Result<Option<Response>, Failure> {
        let Some(resource) = self.resource(subject) else {
            return Ok(None);
        };
        let request = Writing {
            object: &writable(object),
            query: "?dryRun=All&fieldValidation=Strict",
            client: &self.client,
        };
        let Some(old) = old else {
            return self.write(&resource, subject, &request).map(Some);
        };
        if !self.has_stored {
            let origin = format!("the stored {}", subject.handle());
            self.store(&Document {
                origin,
                object: old,
                location: None,
            })?;
        }
        self.update(&resource, subject, &request).map(Some)
    }

    /// Creates an object, or updates it if it exists.
    fn write(
        &self,
        resource: &Resource,
        subject: &Subject,
        writing: &Writing<'_>,
    ) -> Result<Response, Failure> {
        let collection = collection_path(resource, subject);
        let created = self.send(Call {
            method: Method::POST,
            path: format!("{collection}{}", writing.query),
            object: writing.object.clone(),
            client: writing.client,
        })?;
        if created.body["reason"] != "AlreadyExists" {
            return Ok(created);
        }
        self.update(resource, subject, writing)
    }

    /// Updates an object that exists.
    fn update(
        &self,
        resource: &Resource,
        subject: &Subject,
        writing: &Writing<'_>,
    ) -> Result<Response, Failure> {
        let collection = collection_path(resource, subject);
        let path = format!("{collection}/{}", path_segment(&subject.name));
        let stored = self.send(Call {
            method: Method::GET,
            path: path.clone(),
            object: Value::Null,
            client: &self.admin,
        })?;
        // Some kinds are only updated with the version of the stored object.
        let mut object = writing.object.clone();
        let version = &stored.body["metadata"]["resourceVersion"];
        set_in_metadata(&mut object, "resourceVersion", version.clone());
        self.send(Call {
            method: Method::PUT,
            path: format!("{path}{}", writing.query),
            object,
            client: writing.client,
        })
    }

    fn send(&self, call: Call<'_>) -> Result<Response, Failure> {
        let request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(call.object.to_string().into_bytes()));
        let failed = |error: &dyn std::fmt::Display| Failure::new("validate", error);
        let request = request.map_err(|it| failed(&it))?;
        self.runtime.block_on(async {
            let response = call.client.send(request).await;
            let response = response.map_err(|it| failed(&it))?;
            let (head, body) = response.into_parts();
            let body = body.collect_bytes().await.map_err(|it| failed(&it))?;
            Ok(Response {
                code: head.status.as_u16(),
                body: serde_json::from_slice(&body).unwrap_or_else(|_| json!({})),
                warnings: warnings(&head.headers),
            })
        })
    }
}

/// The result of a response. `None` if the kind is not served.
fn result(
    subject: &Subject,
    operation: Operation,
    response: Option<Response>,
) -> ObjectResult {
    let Some(response) = response else {
        let refusal = Refusal::not_served(subject);
        return ObjectResult::without_steps(
            subject.clone(),
            Verdict::Refused(vec![refusal]),
        );
    };
    let refused = response.code >= 300;
    let steps = vec![Step {
        layer: "API server",
        policy: None,
        binding: None,
        cost: None,
        refused: usize::from(refused),
    }];
    let verdict = if refused {
        let refusal = Refusal::of_server(subject, &response.body, operation);
        Verdict::Refused(vec![refusal])
    } else {
        Verdict::Valid
    };
    ObjectResult {
        steps,
        warnings: response.warnings,
        ..ObjectResult::without_steps(subject.clone(), verdict)
    }
}

/// The path of the objects of a kind, in the namespace of the subject.
fn collection_path(resource: &Resource, subject: &Subject) -> String {
    let mut path = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    if resource.namespaced {
        let namespace = match subject.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        path = format!("{path}/namespaces/{}", path_segment(namespace));
    }
    format!("{path}/{}", resource.plural)
}

/// A name as one segment of a path, whatever its characters are.
pub(super) fn path_segment(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

/// The object without the metadata that a server maintains.
fn writable(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["uid", "resourceVersion", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}

/// The texts of the `Warning` headers.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(WARNING).iter();
    let all = all.filter_map(|it| it.to_str().ok());
    let text = |it: &str| {
        let quoted = it.split_once('"').map_or(it, |(_, rest)| rest);
        let quoted = quoted.strip_suffix('"').unwrap_or(quoted);
        quoted.replace("\\\"", "\"").replace("\\\\", "\\")
    };
    all.map(text).collect()
}
