//! The paths of an OpenAPI document: the operations and their parameters.

use serde_json::{Map, Value, json};

use super::definitions::{self, DELETE_OPTIONS, STATUS};
use super::naming::{self, group_version_kind};
use crate::discovery::response_kind;
use crate::patch;
use crate::resource::{Resource, Subresource, Verb};

/// The names of the schemas of a resource.
pub(super) struct Names {
    /// The schema of an object.
    pub(super) object: String,
    /// The schema of a list.
    pub(super) list: String,
}

/// An operation: the HTTP method, the value of `x-kubernetes-action`, and properties of the
/// verb.
struct Operation<'a> {
    method: &'static str,
    action: &'static str,
    id: String,
    summary: String,
    parameters: &'static [&'static str],
    body: Option<(&'static [&'static str], &'a str)>,
    response_schema: &'a str,
}

const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE: [&str; 4] = [
    "dryRun",
    "gracePeriodSeconds",
    "orphanDependents",
    "propagationPolicy",
];
const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// The parameters of writes, with Kubernetes' descriptions.
const DESCRIBED: [(&str, &str); 3] = [
    (
        "dryRun",
        "When present, indicates that modifications should not be persisted. An invalid or \
         unrecognized dryRun directive will result in an error response and no further \
         processing of the request. Valid values are: - All: all dry run stages will be \
         processed",
    ),
    (
        "fieldManager",
        "fieldManager is a name associated with the actor or entity that is making these \
         changes. The value must be less than or 128 characters long, and only contain \
         printable characters, as defined by https://golang.org/pkg/unicode/#IsPrint.",
    ),
    (
        "fieldValidation",
        "fieldValidation instructs the server on how to handle objects in the request \
         (POST/PUT/PATCH) containing unknown or duplicate fields. Valid values are: - Ignore: \
         This will ignore any unknown fields that are silently dropped from the object, and \
         will ignore all but the last duplicate field that the decoder encounters. This is \
         the default behavior prior to v1.23. - Warn: This will send a warning via the \
         standard warning response header for each unknown field that is dropped from the \
         object, and for each duplicate field that is encountered. The request will still \
         succeed if there are no other errors, and will only persist the last of any \
         duplicate fields. This is the default in v1.23+ - Strict: This will fail the request \
         with a BadRequest error if any unknown fields would be dropped from the object, or \
         if any duplicate fields are present. The error returned from the server will contain \
         all unknown and duplicate fields encountered.",
    ),
];

/// Adds every path of `resource`.
pub(super) fn add_paths(
    resource: &Resource,
    names: &Names,
    paths: &mut Map<String, Value>,
) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let all = format!("{root}/{}", resource.plural);
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        all.clone()
    };
    let one = format!("{collection}/{{name}}");
    let operations = |verbs: &[Verb]| -> Vec<Operation<'_>> {
        let served = verbs.iter().filter(|it| resource.allows(**it));
        served.map(|it| operation(resource, names, *it)).collect()
    };
    let of_collection = operations(&[Verb::List, Verb::Create, Verb::DeleteCollection]);
    add(paths, resource, &collection, &of_collection);
    let of_one = operations(&[Verb::Get, Verb::Update, Verb::Delete, Verb::Patch]);
    add(paths, resource, &one, &of_one);
    if resource.namespaced {
        let mut everywhere = operations(&[Verb::List]);
        for operation in &mut everywhere {
            operation.id = naming::operation(resource, "list", ("", "ForAllNamespaces"));
        }
        add(paths, resource, &all, &everywhere);
    }
    for subresource in &resource.subresources {
        add_subresource(paths, resource, &one, subresource);
    }
}

fn operation<'a>(resource: &Resource, names: &'a Names, verb: Verb) -> Operation<'a> {
    let kind = &resource.kind;
    let object = names.object.as_str();
    let forms = forms(resource);
    let body: Option<(&'static [&'static str], &'a str)> = match verb {
        Verb::Create | Verb::Update => Some((forms, object)),
        Verb::Delete | Verb::DeleteCollection => Some((forms, DELETE_OPTIONS)),
        Verb::Patch => Some((patch::media_types(resource), "")),
        Verb::Get | Verb::List | Verb::Watch => None,
    };
    let (method, action, summary, parameters, response_schema): (_, _, _, &[&str], _) =
        match verb {
            Verb::Create => ("post", "post", format!("create a {kind}"), &WRITE, object),
            Verb::Update => {
                let summary = format!("replace the specified {kind}");
                ("put", "put", summary, &WRITE, object)
            }
            Verb::Patch => {
                let summary = format!("partially update the specified {kind}");
                ("patch", "patch", summary, &PATCH, object)
            }
            Verb::Delete => {
                let summary = format!("delete a {kind}");
                ("delete", "delete", summary, &DELETE, STATUS)
            }
            Verb::DeleteCollection => {
                let summary = format!("delete collection of {kind}");
                ("delete", "deletecollection", summary, &DELETE, STATUS)
            }
            Verb::Get => {
                let summary = format!("read the specified {kind}");
                ("get", "get", summary, &[], object)
            }
            Verb::List | Verb::Watch => {
                let summary = format!("list or watch objects of kind {kind}");
                ("get", "list", summary, &LIST, names.list.as_str())
            }
        };
    Operation {
        method,
        action,
        id: id(resource, verb),
        summary,
        parameters,
        body,
        response_schema,
    }
}

/// The operation id of a verb.
fn id(resource: &Resource, verb: Verb) -> String {
    let (word, collection) = match verb {
        Verb::Create => ("create", ""),
        Verb::Update => ("replace", ""),
        Verb::Patch => ("patch", ""),
        Verb::Delete => ("delete", ""),
        Verb::DeleteCollection => ("delete", "Collection"),
        Verb::Get => ("read", ""),
        Verb::List | Verb::Watch => ("list", ""),
    };
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        ""
    };
    naming::operation(resource, word, (&format!("{collection}{scope}"), ""))
}

fn add_subresource(
    paths: &mut Map<String, Value>,
    resource: &Resource,
    one: &str,
    subresource: &Subresource,
) {
    if subresource.is_connection() {
        return add_connection(paths, resource, one, subresource);
    }
    let (group, version, kind) = response_kind(resource, subresource);
    let mut shown = resource.clone();
    group.clone_into(&mut shown.group);
    version.clone_into(&mut shown.version);
    kind.clone_into(&mut shown.kind);
    let name = definitions::name_of(group, version, kind).unwrap_or_default();
    let names = Names {
        object: name.to_owned(),
        list: name.to_owned(),
    };
    let after = naming::capital(subresource.name());
    let operations: Vec<_> = subresource
        .verbs()
        .iter()
        .map(|it| Operation {
            id: format!("{}{after}", id(resource, *it)),
            ..operation(&shown, &names, *it)
        })
        .collect();
    add(
        paths,
        &shown,
        &format!("{one}/{}", subresource.name()),
        &operations,
    );
}

/// Adds the operations of a connection subresource.
fn add_connection(
    paths: &mut Map<String, Value>,
    resource: &Resource,
    one: &str,
    subresource: &Subresource,
) {
    let name = subresource.name();
    let (group, version, kind) = response_kind(resource, subresource);
    let mut item = Map::new();
    for method in ["get", "post"] {
        let place = format!("{}Namespaced", naming::capital(method));
        let id = naming::operation(resource, "connect", (&place, ""));
        let word = method.to_uppercase();
        let operation = json!({
            "tags": [naming::tag(resource)],
            "description": format!("connect {word} requests to {name} of {}", resource.kind),
            "operationId": format!("{id}{}", naming::capital(name)),
            "responses": {
                "200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": "connect",
            "x-kubernetes-group-version-kind":
                {"group": group, "version": version, "kind": kind},
        });
        item.insert(method.to_owned(), operation);
    }
    let in_path = ["name", "namespace"].map(path_parameter);
    let mut parameters = Vec::from(in_path);
    let options: &[(&str, &str)] = match subresource {
        Subresource::PortForward => &[("ports", "integer")],
        Subresource::Exec => &CONNECTION,
        _ => &CONNECTION[1..],
    };
    for (name, kind) in options {
        let schema = json!({"type": kind, "uniqueItems": true});
        parameters.push(json!({"name": name, "in": "query", "schema": schema}));
    }
    item.insert("parameters".to_owned(), parameters.into());
    paths.insert(format!("{one}/{name}"), Value::Object(item));
}

/// The options of `exec`; `attach` has all except the first.
const CONNECTION: [(&str, &str); 6] = [
    ("command", "string"),
    ("container", "string"),
    ("stderr", "boolean"),
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("tty", "boolean"),
];

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true,
        "schema": {"type": "string", "uniqueItems": true}})
}

fn add(
    paths: &mut Map<String, Value>,
    resource: &Resource,
    path: &str,
    operations: &[Operation<'_>],
) {
    if operations.is_empty() {
        return;
    }
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.to_owned(), operation.to_value(resource));
    }
    let mut parameters = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            parameters.push(path_parameter(name));
        }
    }
    parameters.push(query("pretty"));
    item.insert("parameters".to_owned(), parameters.into());
    paths.insert(path.to_owned(), Value::Object(item));
}

impl Operation<'_> {
    fn to_value(&self, resource: &Resource) -> Value {
        let parameters: Vec<_> = self.parameters.iter().map(|it| query(it)).collect();
        let mut value = json!({
            "tags": [naming::tag(resource)],
            "description": self.summary,
            "operationId": self.id,
        });
        // Kubernetes' types write no empty list.
        if !parameters.is_empty() {
            value["parameters"] = parameters.into();
        }
        if let Some((media_types, schema)) = self.body {
            let content = content(media_types, schema);
            // Every field of DeleteOptions has a default.
            let required = schema != DELETE_OPTIONS;
            value["requestBody"] = json!({"content": content, "required": required});
        }
        let content = content(forms(resource), self.response_schema);
        let further: &[(&str, &str)] = match self.action {
            "post" => &[("201", "Created"), ("202", "Accepted")],
            "put" => &[("201", "Created")],
            "patch" if !resource.custom => &[("201", "Created")],
            "delete" => &[("202", "Accepted")],
            _ => &[],
        };
        value["responses"] = json!({
            "200": {"description": "OK", "content": content},
            "401": {"description": "Unauthorized"},
        });
        for (code, meaning) in further {
            value["responses"][*code] =
                json!({"description": meaning, "content": content});
        }
        value["x-kubernetes-action"] = self.action.into();
        value["x-kubernetes-group-version-kind"] = group_version_kind(resource);
        value
    }
}

/// The media types in which an object is encoded.
fn forms(resource: &Resource) -> &'static [&'static str] {
    if resource.custom {
        &["application/json", "application/yaml"]
    } else {
        &["application/json"]
    }
}

fn content(media_types: &[&str], schema: &str) -> Value {
    let schema = if schema.is_empty() {
        json!({"type": "object"})
    } else {
        definitions::reference(schema)
    };
    let all = media_types
        .iter()
        .map(|&it| (it.to_owned(), json!({ "schema": schema })));
    Value::Object(all.collect())
}

fn query(name: &str) -> Value {
    let kind = match name {
        "allowWatchBookmarks"
        | "force"
        | "orphanDependents"
        | "sendInitialEvents"
        | "watch" => "boolean",
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    };
    let schema = json!({"type": kind, "uniqueItems": true});
    let mut parameter = json!({"name": name, "in": "query", "schema": schema});
    if let Some((_, text)) = DESCRIBED.iter().find(|it| it.0 == name) {
        parameter["description"] = (*text).into();
    }
    parameter
}
