//! A `CustomResourceDefinition`: its validation at registration, and the validation of its
//! objects.

mod budget;
mod column;
mod conversion;
mod default;
mod definition;
mod history;
mod internal_form;
mod list_type;
mod names;
mod open_api;
mod ratchet;
mod rule;
mod scale;
mod selectable;
mod version_schema;

use serde_json::Value;

use crate::crd_rules::{Rules, Run};
use crate::field::{Path, ROOT};
use crate::object_meta::{self, NameRule, Scope};
use crate::schema::{Structural, ValidationResult};
use crate::{FieldError, KubeVersion};
use scale::Scale;

pub use crate::crd_rules::RuleCost;

/// A compiled `apiextensions.k8s.io/v1` `CustomResourceDefinition`.
///
/// ```
/// use kubemu_admission::{KubeVersion, crd::Crd};
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
/// let result = widget.create(&object);
/// assert_eq!(result.errors[0].to_string(), "spec.size: Required value");
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
    /// Compiles a `CustomResourceDefinition` as the API server of `version` does at its
    /// creation: names, versions, schemas, defaults and the validation rules in them.
    ///
    /// # Errors
    /// The API server's errors for the definition, with paths that start at `spec` or
    /// `metadata`. Like the API server, it uses the path `spec.validation` for a schema that
    /// all versions share.
    pub fn compile(crd: &Value, version: KubeVersion) -> Result<Self, Vec<FieldError>> {
        definition::compile(crd, None, version)
    }

    /// Compiles a `CustomResourceDefinition` that replaces the registered `old`. Its
    /// `status.storedVersions` and the condition `Established` are taken from `old`.
    ///
    /// # Errors
    /// The API server's errors for the update.
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

    /// The kind of the resource's objects.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The plural name, as in URLs.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Whether the objects are namespaced.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Every version, in the order of the definition.
    pub fn versions(&self) -> &[CustomResource] {
        &self.versions
    }

    /// The version with this `name`, served or not.
    pub fn version(&self, name: &str) -> Option<&CustomResource> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version with this `name`, if it is served.
    pub fn served(&self, name: &str) -> Option<&CustomResource> {
        self.versions
            .iter()
            .find(|version| version.served && version.name == name)
    }
}

/// One version of a custom resource.
///
/// The steps of a write are [`decode`](Self::decode), the caller's mutating admission,
/// [`create`](Self::create), [`update`](Self::update) or
/// [`update_status`](Self::update_status), and the caller's validating admission.
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
    /// The version's name, such as `v1alpha1`.
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

    /// Whether the status is a subresource.
    pub const fn has_status(&self) -> bool {
        self.has_status
    }

    /// The structural schema.
    pub const fn schema(&self) -> &Structural {
        &self.schema
    }

    /// The type of `self` for a rule at the root of the schema, and the bounds of its size, for
    /// [`Program::estimate`](kubemu_cel::Program::estimate). `None` if rules cannot see the
    /// schema's values.
    pub fn declared(&self) -> Option<(kubemu_cel::Type, kubemu_cel::Bounds)> {
        crate::crd_rules::declared_at_root(self.schema.root())
    }

    /// The maximum costs of the rules and message expressions, with paths that start at
    /// `openAPIV3Schema`. A definition is rejected if one exceeds [`RuleCost::LIMIT`], or their
    /// sum exceeds ten times the limit.
    pub fn rule_costs(&self) -> Vec<RuleCost> {
        costs(self.rules.as_ref())
    }

    /// Converts a client's object to the form the API server uses: unknown fields are removed,
    /// nulls that represent absence too, and defaults are filled in.
    ///
    /// Returns the paths of the unknown fields, sorted: the API server rejects them with
    /// `fieldValidation=Strict` (`strict decoding error: unknown field "spec.x"`) and warns
    /// about them with `Warn`. Of paths that have more than 8 MiB together, only the first fields
    /// of the object and those of its metadata are returned.
    pub fn decode(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = self.schema.prune(object);
        unknown.extend(object_meta::prune(object));
        self.schema.default(object);
        unknown.sort_unstable();
        unknown
    }

    /// Converts the result of an applied configuration to the form the API server uses:
    /// defaults are filled in. A null that is not allowed is kept and rejected later, whereas
    /// [`decode`](Self::decode) removes it.
    pub fn complete(&self, object: &mut Value) {
        self.schema.prune(object);
        object_meta::prune(object);
        self.schema.fill(object);
    }

    /// Validates an object for its creation.
    pub fn create(&self, object: &Value) -> ValidationResult {
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

    /// Validates an object that replaces `old`. Errors of unchanged values are ignored, except
    /// those of rules that use `oldSelf`.
    pub fn update(&self, object: &Value, old: &Value) -> ValidationResult {
        let mut errors = self.wrong_kind(object);
        if errors.is_empty() {
            errors = self.metadata_errors(object, old);
            errors.extend(self.schema.check_values(object, Some(old)));
            errors.extend(self.scale_errors(object, true));
        }
        errors.extend(self.schema.check_lists(object, Some(old)));
        self.finish_update(object, old, errors)
    }

    /// Validates an object whose status replaces that of `old`: only the status part of the
    /// schema applies, but rules run as in an update.
    pub fn update_status(&self, object: &Value, old: &Value) -> ValidationResult {
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

    /// [`Self::finish`], with the errors of every update. The rules run even if there are such
    /// errors, because the API server validates names separately from them.
    fn finish_update(
        &self,
        object: &Value,
        old: &Value,
        errors: Vec<FieldError>,
    ) -> ValidationResult {
        let metadata = member(object, "metadata");
        let names = object_meta::update_names(metadata, self.scope);
        let mut result = self.finish(object, Some(old), errors);
        result.errors.splice(0..0, names);
        result
    }

    /// Runs the rules, unless errors prevent it, and warns about finalizers.
    fn finish(
        &self,
        object: &Value,
        old: Option<&Value>,
        mut errors: Vec<FieldError>,
    ) -> ValidationResult {
        let old_metadata = old.and_then(|old| old.get("metadata"));
        let mut warnings =
            object_meta::finalizer_warnings(member(object, "metadata"), old_metadata);
        let mut cost = 0;
        if let Some(rules) = &self.rules {
            if errors.iter().any(|error| error.kind.blocks_rules()) {
                if rules.apply() {
                    errors.push(self.unchecked());
                }
            } else {
                let mut run = Run::new(self.version);
                run.object(rules, self.schema.root(), object, old);
                cost = run.cost();
                errors.append(&mut run.errors);
                warnings.append(&mut run.warnings);
            }
        }
        ValidationResult {
            errors,
            warnings,
            cost,
        }
    }

    fn unchecked(&self) -> FieldError {
        let detail = "some validation rules were not checked because the object was \
                      invalid; correct the existing errors to complete validation";
        // Until 1.33 an absent value was printed as the quoted word `null`.
        let absent = if self.version.is_at_least(34) {
            Value::Null
        } else {
            "null".into()
        };
        FieldError::invalid(ROOT, absent, detail)
    }
}

/// A field of an object.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    kubemu_cel::json_field(object.as_object()?, name)
}

fn costs(rules: Option<&Rules>) -> Vec<RuleCost> {
    let mut costs = Vec::new();
    if let Some(rules) = rules {
        rules.costs(&Path::Root.field("openAPIV3Schema"), &mut costs);
    }
    costs
}

/// The kind of value that the root of a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaRoot {
    /// A whole resource, whose `apiVersion`, `kind` and names are visible to every rule.
    Resource,
    /// Any other value.
    Value,
}

/// The rules of a schema alone, for measuring and testing them: neither the object's shape nor
/// its `metadata` is validated, and the schema need not be valid for registration.
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
    /// Syntax errors of the schema. A rule that does not compile is not an error here; it
    /// rejects every object, as in the API server.
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

    /// The maximum cost of each rule and message expression, whether or not a definition with
    /// it could be registered.
    pub fn rule_costs(&self) -> Vec<RuleCost> {
        costs(self.rules.as_ref())
    }

    /// Runs the rules and returns their cost in the units of Kubernetes' cost tracker.
    pub fn run(&self, object: &Value, old: Option<&Value>) -> ValidationResult {
        let mut run = Run::new(self.version);
        if let Some(rules) = &self.rules {
            run.object(rules, self.schema.root(), object, old);
        }
        ValidationResult {
            cost: run.cost(),
            errors: run.errors,
            warnings: run.warnings,
        }
    }
}
