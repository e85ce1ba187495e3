//! An OpenAPI schema, parsed once for the lookups that every write needs: looking up keywords
//! in its JSON for each field takes longer than the rest of a check. The JSON is kept for clients.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::definitions;

/// The OpenAPI v3 schema of the objects of a resource. Clones share it.
#[derive(Clone, Debug)]
pub struct Schema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    document: Value,
    root: OnceLock<Node>,
}

impl Schema {
    /// A schema of a JSON document.
    pub fn new(document: Value) -> Self {
        let root = OnceLock::new();
        Self(Arc::new(Inner { document, root }))
    }

    /// A schema that refers to the built-in definition of that name.
    pub(crate) fn reference(name: &str) -> Self {
        Self::new(definitions::reference(name))
    }

    /// The JSON document.
    pub fn document(&self) -> &Value {
        &self.0.document
    }

    pub(super) fn root(&self) -> &Node {
        self.0.root.get_or_init(|| Node::new(&self.0.document))
    }
}

/// One node of a schema, with its keywords parsed from the JSON once.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The name of the built-in definition that the node refers to.
    pub(super) definition: Option<Box<str>>,
    target: OnceLock<Option<&'static Node>>,
    pub(super) kind: Option<Box<str>>,
    pub(super) format: Option<Box<str>>,
    pub(super) properties: Option<Properties>,
    pub(super) items: Option<Box<Node>>,
    /// The branches of `oneOf` if the node itself has neither type nor format.
    pub(super) alternatives: Option<Box<[Node]>>,
    pub(super) values: Values,
    pub(super) list_type: Option<ListType>,
    pub(super) is_atomic_map: Option<bool>,
    pub(super) preserves_unknown: Option<bool>,
    pub(super) default: Option<Value>,
    pub(super) patch_strategy: Option<Box<str>>,
    pub(super) patch_merge_key: Option<Box<str>>,
}

/// How a list is merged by server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Owned as a whole.
    Atomic,
    /// Distinct scalars.
    Set,
    /// Objects identified by the given key fields.
    Map(Vec<String>),
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum Values {
    /// Absent.
    #[default]
    Undeclared,
    /// `false`.
    Refused,
    /// `true`.
    Any,
    /// The schema of each value.
    Schema(Box<Node>),
}

/// The fields of an object, sorted by name.
#[derive(Debug)]
pub(super) struct Properties(Vec<(Box<str>, Node)>);

impl Properties {
    fn new(fields: &Map<String, Value>) -> Self {
        let fields = fields.iter();
        let fields =
            fields.map(|(name, schema)| (name.as_str().into(), Node::new(schema)));
        let mut fields: Vec<(Box<str>, Node)> = fields.collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        Self(fields)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        let place = self.0.binary_search_by(|it| (*it.0).cmp(name)).ok()?;
        self.0.get(place).map(|it| &it.1)
    }
}

impl Node {
    pub(super) fn new(schema: &Value) -> Self {
        let get = |name: &str| schema.get(name);
        let text = |name: &str| get(name)?.as_str().map(Box::from);
        let extension = |name: &str| get(&format!("x-kubernetes-{name}"));
        let extension_text = |name: &str| extension(name)?.as_str();
        Self {
            definition: reference(schema).map(Box::from),
            target: OnceLock::new(),
            kind: text("type"),
            format: text("format"),
            properties: get("properties").map(|it| {
                let none = Map::new();
                Properties::new(it.as_object().unwrap_or(&none))
            }),
            items: get("items").map(|it| Box::new(Self::new(it))),
            alternatives: get("oneOf")
                .filter(|_| get("type").or_else(|| get("format")).is_none())
                .and_then(Value::as_array)
                .map(|all| all.iter().map(Self::new).collect()),
            values: match get("additionalProperties") {
                None => Values::Undeclared,
                Some(Value::Bool(false)) => Values::Refused,
                Some(schema @ Value::Object(_)) => {
                    Values::Schema(Box::new(Self::new(schema)))
                }
                Some(_) => Values::Any,
            },
            list_type: extension_text("list-type").map(|it| match it {
                "set" => ListType::Set,
                "map" => ListType::Map(texts(extension("list-map-keys"))),
                _ => ListType::Atomic,
            }),
            is_atomic_map: extension_text("map-type").map(|it| it == "atomic"),
            preserves_unknown: extension("preserve-unknown-fields").map(|it| *it == true),
            default: get("default").cloned(),
            patch_strategy: extension_text("patch-strategy").map(Box::from),
            patch_merge_key: extension_text("patch-merge-key").map(Box::from),
        }
    }

    /// The node that this one refers to, or itself.
    pub(super) fn target(&self) -> &Self {
        let Some(name) = &self.definition else {
            return self;
        };
        let found = self.target.get_or_init(|| definitions::node(name));
        found.unwrap_or(self)
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let texts = list.filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The name of the definition in a schema that is only a `$ref`, either directly or as the
/// single entry of `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| {
        match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref"),
            _ => None,
        }
    });
    target?.as_str()?.strip_prefix(definitions::PREFIX)
}
