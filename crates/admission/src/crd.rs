//! A `CustomResourceDefinition`: what keeps one from being registered, and what a
//! registered one says to objects of its kind.

mod budget;
mod called;
mod column;
mod conversion;
mod default;
mod definition;
mod history;
mod internal_form;
mod kept;
mod list_type;
mod open_api;
mod rule;
mod scale;
mod selectable;
mod version_schema;

use serde_json::Value;

use crate::crd_rules::{Rules, Run};
use crate::field::{Path, ROOT};
use crate::object_meta::{self, NameRule, Scope};
use crate::schema::{Structural, Verdict};
use crate::{FieldError, KubeVersion};
use scale::Scale;

pub use crate::crd_rules::RuleCost;

/// A compiled `apiextensions.k8s.io/v1` `CustomResourceDefinition`.
///
/// ```
/// use fivespot_admission::{KubeVersion, crd::Crd};
/// use serde_json::json;
///
/// let crd = Crd::compile(
///     &json!({
///         "metadata": {"name": "widgets.example.com"},
///         "spec": {
///             "group": "example.com", "scope": "Namespaced",
///             "names": {"plural": "widgets", "kind": "Widget"},
///             "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
///                 "openAPIV3Schema": {"type": "object", "properties": {"spec": {
///                     "type": "object", "required": ["size"],
///                     "properties": {"size": {"type": "integer"}},
///                 }}},
///             }}],
///         },
///     }),
///     KubeVersion::default(),
/// )
/// .expect("the definition is valid");
///
/// let widget = crd.served("v1").expect("it is served");
/// let mut object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
///     "metadata": {"name": "a", "namespace": "b"}, "spec": {"color": "red"}});
/// assert_eq!(widget.decode(&mut object), ["spec.color"]);
/// let verdict = widget.create(&object);
/// assert_eq!(verdict.errors[0].to_string(), "spec.size: Required value");
/// ```
#[derive(Debug)]
pub struct Crd {
    group: String,
    kind: String,
    plural: String,
    scope: Scope,
    versions: Vec<CustomResource>,
}

impl Crd {
    /// Compiles a `CustomResourceDefinition` as the API server of `version` does when it is
    /// created: names, versions, schemas, defaults and the validation rules in them.
    ///
    /// # Errors
    /// What the server would refuse it for, with paths that start at `spec` or `metadata`.
    /// Like the server, it says `spec.validation` of schemas that all versions share.
    pub fn compile(crd: &Value, version: KubeVersion) -> Result<Self, Vec<FieldError>> {
        definition::compile(crd, None, version)
    }

    /// Compiles a `CustomResourceDefinition` that replaces `old`, which is registered. Its
    /// `status.storedVersions` and the condition `Established` are taken from `old`.
    ///
    /// # Errors
    /// What the server would refuse the update for.
    pub fn replace(
        crd: &Value,
        old: &Value,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        definition::compile(crd, Some(old), version)
    }

    /// The API group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The plural name, as in URLs.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Whether its objects live in namespaces.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Every version, in the order of the definition.
    pub fn versions(&self) -> &[CustomResource] {
        &self.versions
    }

    /// The version called `name`, whether or not it is served.
    pub fn version(&self, name: &str) -> Option<&CustomResource> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version called `name`, if it is served.
    pub fn served(&self, name: &str) -> Option<&CustomResource> {
        self.versions
            .iter()
            .find(|version| version.served && version.name == name)
    }
}

/// One version of a custom resource.
///
/// A write passes [`decode`](Self::decode), then the caller's mutating admission, then
/// [`create`](Self::create), [`update`](Self::update) or
/// [`update_status`](Self::update_status), then validating admission.
#[derive(Debug)]
pub struct CustomResource {
    name: String,
    api_version: String,
    kind: String,
    scope: Scope,
    served: bool,
    storage: bool,
    has_status: bool,
    schema: Structural,
    rules: Option<Rules>,
    scale: Option<Scale>,
    version: KubeVersion,
}

impl CustomResource {
    /// The version's name, as `v1alpha1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the version is served.
    pub const fn is_served(&self) -> bool {
        self.served
    }

    /// Whether objects are stored in this version.
    pub const fn is_storage(&self) -> bool {
        self.storage
    }

    /// Whether the status is a resource of its own.
    pub const fn has_status(&self) -> bool {
        self.has_status
    }

    /// The structural schema.
    pub const fn schema(&self) -> &Structural {
        &self.schema
    }

    /// What a rule at the root of the schema sees as `self`: its type, and how large a value
    /// can get, for [`Program::estimate`](fivespot_cel::Program::estimate). None where the
    /// schema shows rules nothing.
    pub fn declared(&self) -> Option<(fivespot_cel::Type, fivespot_cel::Bounds)> {
        crate::crd_rules::seen_at_root(self.schema.root())
    }

    /// What each of its rules and message expressions may cost at most, with paths that
    /// start at `openAPIV3Schema`. A definition is refused if one costs more than
    /// [`RuleCost::LIMIT`], or all together more than ten times as much.
    pub fn rule_costs(&self) -> Vec<RuleCost> {
        costs(self.rules.as_ref())
    }

    /// Turns what a client sent into what the server works on: unknown fields are removed,
    /// nulls that stand for absence too, defaults are filled in.
    ///
    /// Returns the paths of the unknown fields, sorted: the server refuses them when asked
    /// for `fieldValidation=Strict` (`strict decoding error: unknown field "spec.x"`) and
    /// warns about them for `Warn`.
    pub fn decode(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = self.schema.prune(object);
        unknown.extend(object_meta::prune(object));
        self.schema.default(object);
        unknown.sort_unstable();
        unknown
    }

    /// Turns what was made of an applied configuration into what the server works on: defaults are
    /// filled in. A null that is not allowed stays, to be refused, where [`decode`](Self::decode)
    /// removes it.
    pub fn complete(&self, object: &mut Value) {
        self.schema.prune(object);
        object_meta::prune(object);
        self.schema.fill(object);
    }

    /// Checks an object about to be created.
    pub fn create(&self, object: &Value) -> Verdict {
        let mut errors = self.wrong_kind(object);
        if errors.is_empty() {
            let metadata = member(object, "metadata");
            errors = object_meta::create(metadata, NameRule::DnsSubdomain, self.scope);
            errors.extend(self.schema.check_values(object, None));
            errors.extend(self.scale_errors(object, true));
        }
        errors.extend(self.schema.check_lists(object, None));
        self.finish(object, None, errors)
    }

    /// Checks an object about to replace `old`. What did not change is not refused again,
    /// except by rules that look at `oldSelf`.
    pub fn update(&self, object: &Value, old: &Value) -> Verdict {
        let mut errors = self.wrong_kind(object);
        if errors.is_empty() {
            errors = self.metadata_errors(object, old);
            errors.extend(self.schema.check_values(object, Some(old)));
            errors.extend(self.scale_errors(object, true));
        }
        errors.extend(self.schema.check_lists(object, Some(old)));
        self.finish_update(object, old, errors)
    }

    /// Checks an object whose status is about to replace that of `old`: only the status
    /// part of the schema applies, but rules run as in an update.
    pub fn update_status(&self, object: &Value, old: &Value) -> Verdict {
        let mut errors = self.wrong_kind(object);
        if errors.is_empty() {
            errors = self.metadata_errors(object, old);
            errors.extend(self.schema.check_status(object, old));
            errors.extend(self.scale_errors(object, false));
        }
        errors.extend(self.schema.check_unique(object, Some(old)));
        self.finish_update(object, old, errors)
    }

    fn wrong_kind(&self, object: &Value) -> Vec<FieldError> {
        let wanted = [("kind", &self.kind), ("apiVersion", &self.api_version)];
        let wrong = wanted.into_iter().filter_map(|(name, wanted)| {
            let found = member(object, name);
            if found.and_then(Value::as_str) == Some(wanted) {
                return None;
            }
            let found = found.cloned().unwrap_or_else(|| "".into());
            Some(FieldError::invalid(
                name,
                found,
                format!("must be {wanted}"),
            ))
        });
        wrong.collect()
    }

    fn metadata_errors(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        object_meta::update(object.get("metadata"), old.get("metadata"), self.scope)
    }

    fn scale_errors(&self, object: &Value, with_spec: bool) -> Vec<FieldError> {
        let Some(scale) = &self.scale else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        if with_spec {
            errors.extend(scale.spec_error(object));
        }
        errors.extend(scale.status_errors(object));
        errors
    }

    /// As [`Self::finish`], with what is wrong of every update. Rules run all the same: whoever
    /// asks for that asks it apart from them.
    fn finish_update(
        &self,
        object: &Value,
        old: &Value,
        errors: Vec<FieldError>,
    ) -> Verdict {
        let metadata = member(object, "metadata");
        let names = object_meta::update_names(metadata, self.scope);
        let mut verdict = self.finish(object, Some(old), errors);
        verdict.errors.splice(0..0, names);
        verdict
    }

    /// Runs the rules, unless errors block them, and warns about finalizers.
    fn finish(
        &self,
        object: &Value,
        old: Option<&Value>,
        mut errors: Vec<FieldError>,
    ) -> Verdict {
        let old_metadata = old.and_then(|old| old.get("metadata"));
        let mut warnings =
            object_meta::finalizer_warnings(member(object, "metadata"), old_metadata);
        let mut cost = 0;
        if let Some(rules) = &self.rules {
            if errors.iter().any(|error| error.kind.blocks_rules()) {
                errors.push(self.unchecked());
            } else {
                let mut run = Run::new(self.version);
                run.object(rules, self.schema.root(), object, old);
                cost = run.cost();
                errors.append(&mut run.errors);
                warnings.append(&mut run.warnings);
            }
        }
        Verdict {
            errors,
            warnings,
            cost,
        }
    }

    fn unchecked(&self) -> FieldError {
        let detail = "some validation rules were not checked because the object was \
                      invalid; correct the existing errors to complete validation";
        // Until 1.33 an absent value was printed as the word in quotes.
        let absent = if self.version.is_at_least(34) {
            Value::Null
        } else {
            "null".into()
        };
        FieldError::invalid(ROOT, absent, detail)
    }
}

/// The field of an object.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    fivespot_cel::json_field(object.as_object()?, name)
}

fn costs(rules: Option<&Rules>) -> Vec<RuleCost> {
    let mut costs = Vec::new();
    if let Some(rules) = rules {
        rules.costs(&Path::Root.field("openAPIV3Schema"), &mut costs);
    }
    costs
}

/// What the root of a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaRoot {
    /// A whole resource, whose `apiVersion`, `kind` and names every rule can see.
    Resource,
    /// Any other value.
    Value,
}

/// The rules of a schema alone, for measuring and trying them: neither the object's shape
/// nor its `metadata` is checked, and the schema need not be one that can be registered.
#[derive(Debug)]
pub struct ResourceRules {
    schema: Structural,
    rules: Option<Rules>,
    version: KubeVersion,
}

impl ResourceRules {
    /// Compiles the rules of a schema.
    ///
    /// # Errors
    /// What is malformed in the schema. A rule that does not compile is no error here; it
    /// refuses every object, as it does in a server.
    pub fn compile(
        schema: &Value,
        root: SchemaRoot,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let schema = Structural::read(schema, &crate::field::Path::Root, version)?;
        let schema = schema.with_checked_formats();
        let resource = root == SchemaRoot::Resource;
        let rules = Rules::of(schema.root(), resource, version.dialect_of_stored());
        Ok(Self {
            schema,
            rules,
            version,
        })
    }

    /// What each rule and message expression may cost at most, whether or not a definition
    /// with it could be registered.
    pub fn rule_costs(&self) -> Vec<RuleCost> {
        costs(self.rules.as_ref())
    }

    /// Runs the rules, and says what they cost in the units of Kubernetes' tracker.
    pub fn run(&self, object: &Value, old: Option<&Value>) -> Verdict {
        let mut run = Run::new(self.version);
        if let Some(rules) = &self.rules {
            run.object(rules, self.schema.root(), object, old);
        }
        Verdict {
            cost: run.cost(),
            errors: run.errors,
            warnings: run.warnings,
        }
    }
}
