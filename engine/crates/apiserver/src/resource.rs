//! Served resources: one [`Resource`] for each group, version and plural name.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::kind::BuiltinKind;
use crate::openapi::schema::Schema;

/// One served resource in one version, built-in or from a CustomResourceDefinition.
///
/// Plain data: everything about a kind that discovery, OpenAPI, tables, patches and the verbs
/// use, so that none of them contains code for specific kinds.
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1alpha1`.
    pub version: String,
    /// Kind of one object, such as `ConfigMap`.
    pub kind: String,
    /// Kind of a list of them, such as `ConfigMapList`.
    pub list_kind: String,
    /// Name in paths, such as `configmaps`.
    pub plural: String,
    /// Singular name, used by kubectl, such as `configmap`.
    pub singular: String,
    /// Short names, such as `cm`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// The verbs of the main resource.
    pub verbs: Vec<Verb>,
    /// The served subresources, in the order in which discovery lists them.
    pub subresources: Vec<Subresource>,
    /// Columns of tables after Name; Age is only shown if it is listed.
    pub columns: Vec<Column>,
    /// OpenAPI v3 schema of one object; `None` if none is published.
    pub schema: Option<Schema>,
    /// Fields other than name and namespace that field selectors of custom objects support, as
    /// JSON paths such as `.spec.color`.
    pub selectable: Vec<String>,
    /// The resource under which the objects are stored; two served representations of one
    /// object share it.
    pub storage: GroupResource,
    /// `apiVersion` in which the objects are stored.
    pub stored_as: String,
    /// Whether `metadata.generation` is increased by changes of the desired state.
    pub generation: bool,
    /// Whether an object may be updated without a resourceVersion
    /// (`AllowUnconditionalUpdate`).
    pub unconditional_update: bool,
    /// Whether an update of a missing object creates it (`AllowCreateOnUpdate`).
    pub create_on_update: bool,
    /// Whether the response to a delete is the object (`ReturnDeletedObject` of a store).
    pub returned_when_deleted: bool,
    /// Whether this comes from a CustomResourceDefinition.
    pub custom: bool,
    /// The behavior of the objects of a built-in kind; `None` for a custom resource.
    pub builtin: Option<Arc<dyn BuiltinKind>>,
    /// The deprecation warning for clients of this version, if it is deprecated.
    pub deprecation: Option<String>,
}

impl Resource {
    /// `version`, or `group/version` outside the core group.
    ///
    /// ```
    /// use kubemu_apiserver::Resource;
    /// assert_eq!(Resource::new("", "v1", "Pod", "pods").api_version(), "v1");
    /// assert_eq!(Resource::new("apps", "v1", "X", "xs").api_version(), "apps/v1");
    /// ```
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Whether `text` is this resource's apiVersion.
    pub fn is_served_as(&self, text: &str) -> bool {
        let (group, version) = text.rsplit_once('/').unwrap_or(("", text));
        self.group == group && self.version == version
    }

    /// A namespaced resource with all verbs and no subresources, short names, columns or
    /// schema. It is stored as it is served, and has a generation.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Verb::ALL.to_vec(),
            subresources: Vec::new(),
            columns: Vec::new(),
            schema: None,
            selectable: Vec::new(),
            storage: GroupResource::new(group, plural),
            stored_as: api_version(group, version),
            generation: true,
            unconditional_update: true,
            create_on_update: false,
            returned_when_deleted: false,
            custom: false,
            builtin: None,
            deprecation: None,
        }
    }

    /// Makes the resource cluster-scoped.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Sets the short names.
    #[must_use]
    pub fn with_short_names(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|&it| it.to_owned()).collect();
        self
    }

    /// Adds a category.
    #[must_use]
    pub fn with_category(mut self, name: &str) -> Self {
        self.categories.push(name.to_owned());
        self
    }

    /// Sets the verbs.
    #[must_use]
    pub fn with_verbs(mut self, verbs: &[Verb]) -> Self {
        self.verbs = verbs.to_vec();
        self
    }

    /// Removes one of the verbs.
    #[must_use]
    pub fn without_verb(mut self, verb: Verb) -> Self {
        self.verbs.retain(|it| *it != verb);
        self
    }

    /// Sets the subresources, in the order in which discovery lists them.
    #[must_use]
    pub fn with_subresources(mut self, all: &[Subresource]) -> Self {
        self.subresources = all.to_vec();
        self
    }

    /// Sets the columns after Name.
    #[must_use]
    pub fn with_columns(mut self, columns: Vec<Column>) -> Self {
        self.columns = columns;
        self
    }

    /// Sets the OpenAPI v3 schema of one object. It may omit apiVersion, kind and metadata.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(Schema::new(schema));
        self
    }

    /// Disables the generation.
    #[must_use]
    pub fn without_generation(mut self) -> Self {
        self.generation = false;
        self
    }

    /// Allows an update to create a missing object (`AllowCreateOnUpdate` of a strategy).
    #[must_use]
    pub fn allow_create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    /// Returns the deleted object in the response to a delete.
    #[must_use]
    pub fn returned_when_deleted(mut self) -> Self {
        self.returned_when_deleted = true;
        self
    }

    /// Requires a resourceVersion on update (a strategy without `AllowUnconditionalUpdate`).
    #[must_use]
    pub fn require_resource_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    /// Stores the objects as another resource; the kind converts between the two
    /// representations.
    #[must_use]
    pub fn stored_with(mut self, group: &str, plural: &str, api_version: &str) -> Self {
        self.storage = GroupResource::new(group, plural);
        api_version.clone_into(&mut self.stored_as);
        self
    }

    /// `plural.group`, only the plural in the core group, as in error messages.
    pub fn qualified(&self) -> String {
        GroupResource::new(&self.group, &self.plural).to_string()
    }

    /// `Kind.group`, only the kind in the core group, as in `Invalid` errors.
    pub fn qualified_kind(&self) -> String {
        GroupResource::new(&self.group, &self.kind).to_string()
    }

    /// Whether `status` is a subresource, so that the main resource ignores it.
    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|it| matches!(it, Subresource::Status))
    }

    /// The field of a `fieldSelector`; `None` for an unsupported one.
    pub(crate) fn selected_field<'a>(&self, name: &'a str) -> Option<SelectedField<'a>> {
        let own = SelectedField {
            path: name,
            fallback: "",
            absent: "",
        };
        // Kinds without their own list of field selectors share one, whether namespaced or
        // not.
        let kind = self.builtin.as_ref();
        let shares = kind.is_some_and(|it| it.field_selectors().is_empty());
        let by_namespace = name == "metadata.namespace" && (self.namespaced || shares);
        if name == "metadata.name" || by_namespace {
            return Some(own);
        }
        if let Some(kind) = &self.builtin {
            let mut known = kind.field_selectors().iter();
            let known = known.find(|it| it.name == name)?;
            return Some(SelectedField {
                path: known.path,
                fallback: known.fallback,
                absent: known.absent,
            });
        }
        let mut declared = self.selectable.iter();
        declared
            .any(|it| it.strip_prefix('.') == Some(name))
            .then_some(own)
    }

    /// Whether `verb` is served.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }
}

/// A field of a `fieldSelector` in the stored object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedField<'a> {
    pub(crate) path: &'a str,
    /// The path of the field that counts if the first is empty; empty for none.
    pub(crate) fallback: &'static str,
    /// The value that counts if it is absent.
    pub(crate) absent: &'static str,
}

/// `version`, or `group/version` outside the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The version part of an `apiVersion`.
pub(crate) fn version_of(api_version: &str) -> &str {
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(_, version)| version)
}

/// A resource without its version; prints as `plural.group`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name.
    pub resource: String,
}

impl GroupResource {
    /// Combines group and resource.
    pub fn new(group: &str, resource: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
        }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

/// The API verbs, as in discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Creates an object.
    Create,
    /// Deletes an object.
    Delete,
    /// Deletes all selected objects.
    DeleteCollection,
    /// Returns an object.
    Get,
    /// Lists all selected objects.
    List,
    /// Patches an object.
    Patch,
    /// Replaces an object.
    Update,
    /// Watches for changes.
    Watch,
}

impl Verb {
    /// All verbs, in the order of discovery documents.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The verb as in discovery.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// `status`: get, update and patch of the observed state only.
    Status,
    /// `approval` of a CertificateSigningRequest: get, update and patch of its conditions.
    Approval,
    /// `scale`: the object's replica count as an `autoscaling/v1` Scale.
    Scale(Scale),
    /// `ephemeralcontainers` of a pod: get, update and patch of its ephemeral containers.
    EphemeralContainers,
    /// `resize` of a pod: get, update and patch of the CPU and the memory of its containers.
    Resize,
    /// `eviction` of a pod: create only, a `policy/v1` Eviction.
    Eviction,
    /// `binding` of a pod to a node: create only.
    Binding,
    /// `finalize` of a namespace: update only.
    Finalize,
    /// `token` of a service account: create only, an `authentication.k8s.io/v1`
    /// TokenRequest.
    Token,
    /// `attach` to a pod: a connection to the process of a container.
    Attach,
    /// `exec` in a pod: a connection to a new process in a container.
    Exec,
    /// `portforward` of a pod: a connection to its ports.
    PortForward,
}

impl Subresource {
    /// Its name in paths.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Approval => "approval",
            Self::Scale(_) => "scale",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
            Self::Token => "token",
            Self::Attach => "attach",
            Self::Exec => "exec",
            Self::PortForward => "portforward",
        }
    }

    /// Whether it is a connection to a running container, which writes no object.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Attach | Self::Exec | Self::PortForward)
    }

    /// Group, version and kind of the written object, or of the options of a connection;
    /// `None` if it is the main object.
    pub fn kind(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Scale(_) => Some(("autoscaling", "v1", "Scale")),
            Self::Eviction => Some(("policy", "v1", "Eviction")),
            Self::Binding => Some(("", "v1", "Binding")),
            Self::Token => Some(("authentication.k8s.io", "v1", "TokenRequest")),
            Self::Attach => Some(("", "v1", "PodAttachOptions")),
            Self::Exec => Some(("", "v1", "PodExecOptions")),
            Self::PortForward => Some(("", "v1", "PodPortForwardOptions")),
            Self::Status
            | Self::Approval
            | Self::Finalize
            | Self::EphemeralContainers
            | Self::Resize => None,
        }
    }

    /// The verbs of the subresource.
    pub fn verbs(&self) -> &'static [Verb] {
        match self {
            Self::Status
            | Self::Approval
            | Self::EphemeralContainers
            | Self::Resize
            | Self::Scale(_) => &[Verb::Get, Verb::Patch, Verb::Update],
            Self::Eviction | Self::Binding | Self::Token => &[Verb::Create],
            Self::Finalize => &[Verb::Update],
            Self::Attach | Self::Exec | Self::PortForward => &[Verb::Create, Verb::Get],
        }
    }
}

/// The field paths of the `scale` subresource of a custom resource; simple dotted paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired replica count.
    pub spec_replicas_path: String,
    /// Path of the observed replica count.
    pub status_replicas_path: String,
    /// Path of the serialised selector, if any.
    pub label_selector_path: Option<String>,
}

/// One column of a table, with the fields of `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Name in the header.
    pub name: String,
    /// OpenAPI type: `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// OpenAPI format; empty for none.
    pub format: String,
    /// Description; empty for none.
    pub description: String,
    /// 0 is always shown, a higher one only in the wide view.
    pub priority: i32,
    /// The JSON path of the cell, such as `.status.phase`.
    pub json_path: String,
}

/// The description that Kubernetes gives to columns of `metadata.creationTimestamp`.
const CREATION: &str = "CreationTimestamp is a timestamp representing the server time when \
     this object was created. It is not guaranteed to be set in happens-before order \
     across separate operations. Clients may not set this value. It is represented in \
     RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. \
     More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
     api-conventions.md#metadata";

impl Column {
    /// A column that is always shown.
    pub fn new(name: &str, kind: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            description: description.to_owned(),
            ..Self::default()
        }
    }

    /// Shows the column only in the wide view.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// The Age column: time since creation.
    pub fn age() -> Self {
        Self::new("Age", "string", CREATION)
    }

    /// The creation time column.
    pub fn created_at() -> Self {
        Self::new("Created At", "date", CREATION)
    }
}
