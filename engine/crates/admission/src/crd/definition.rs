//! A definition without its schemas: names, group, versions.

use serde_json::Value;

use super::ratchet::Tolerated;
use super::scale::Scale;
use super::version_schema::{self, CompiledSchema};
use super::{
    Crd, CustomResource, column, conversion, history, internal_form, ratchet, selectable,
};
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::schema::node::Node;
use crate::{FieldError, KubeVersion, name};

pub(super) const ROOT: Path<'static> = Path::Root;
pub(super) const SPEC: Path<'static> = ROOT.field("spec");

pub(super) fn compile(
    crd: &Value,
    old: Option<&Value>,
    version: KubeVersion,
) -> Result<Crd, Vec<FieldError>> {
    let strictly = compile_with(crd, old, version, &Tolerated::default());
    let (Err(errors), Some(old)) = (&strictly, old) else {
        return strictly;
    };
    let tolerated = Tolerated::of(old, version);
    if errors.iter().any(|it| tolerated.has(it)) {
        // What these errors have hidden is checked too.
        compile_with(crd, Some(old), version, &tolerated)
    } else {
        strictly
    }
}

fn compile_with(
    crd: &Value,
    old: Option<&Value>,
    version: KubeVersion,
    tolerated: &Tolerated,
) -> Result<Crd, Vec<FieldError>> {
    let definition = Definition::read(crd);
    let mut errors = definition.metadata_errors(crd, old);
    definition.group_and_scope(&mut errors);
    let schemas = definition.schemas(version, tolerated, &mut errors);
    definition.version_list(&mut errors);
    definition.names(&mut errors);
    definition.shared(&schemas, &mut errors);
    let preserves = flag(definition.spec, history::PRESERVE);
    let conversion_given = definition.spec.get("conversion").unwrap_or(&Value::Null);
    let trusts = old.is_some_and(|old| {
        history::is_established(old) && !conversion::has_bad_bundle(old)
    });
    errors.extend(conversion::errors(conversion_given, (preserves, trusts)));
    if let Some(old) = old {
        errors.extend(history::immutable(crd, old));
    }
    errors.extend(history::stored_versions(crd, old));
    errors.extend(history::approval(crd, old));
    errors.extend(history::preserving(crd, old));
    errors.retain(|it| !tolerated.has(it));
    if let Some(old) = old {
        ratchet::ignore_unchanged(&mut errors, crd, old);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(definition.build(schemas, version))
}

/// The definition with the API server's defaults.
pub(super) struct Definition<'a> {
    spec: &'a Value,
    group: &'a str,
    scope: &'a str,
    pub(super) plural: &'a str,
    pub(super) singular: String,
    pub(super) kind: &'a str,
    pub(super) list_kind: String,
    pub(super) names: &'a Value,
    versions: Vec<&'a Value>,
    /// Whether all versions have the same schema; errors then have the path `spec.validation`.
    shares_schema: bool,
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

fn schema_of(version: &Value) -> Option<&Value> {
    let schema = version.get("schema")?.get("openAPIV3Schema")?;
    (!schema.is_null()).then_some(schema)
}

impl<'a> Definition<'a> {
    fn read(crd: &'a Value) -> Self {
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        let names = spec.get("names").unwrap_or(&Value::Null);
        let kind = text(names, "kind");
        let or = |given: &str, default: String| {
            if given.is_empty() {
                default
            } else {
                given.to_owned()
            }
        };
        let list_kind = match kind {
            "" => String::new(),
            kind => format!("{kind}List"),
        };
        let versions: Vec<&Value> = spec
            .get("versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .collect();
        Self {
            spec,
            group: text(spec, "group"),
            scope: text(spec, "scope"),
            plural: text(names, "plural"),
            singular: or(text(names, "singular"), name::to_lower(kind)),
            kind,
            list_kind: or(text(names, "listKind"), list_kind),
            names,
            shares_schema: shares(&versions, "schema"),
            versions,
        }
    }

    /// On update, the API server does not validate the name.
    fn metadata_errors(&self, crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let metadata = crd.get("metadata");
        if let Some(old) = old {
            return object_meta::update(metadata, old.get("metadata"), Scope::Cluster);
        }
        let mut errors =
            object_meta::create(metadata, NameRule::DnsSubdomain, Scope::Cluster);
        let only = format!("{}.{}", self.plural, self.group);
        // A prefix is never the name, so that no name can be generated.
        let paths = ["metadata.generateName", "metadata.name"];
        for (index, path) in paths.into_iter().enumerate() {
            let field = path.trim_start_matches("metadata.");
            let given = metadata.map(|it| text(it, field)).unwrap_or_default();
            if given.is_empty() || given == only {
                continue;
            }
            let detail = "must be spec.names.plural+\".\"+spec.group";
            let error = FieldError::invalid(path, given.into(), detail);
            let before = |it: &FieldError| paths[..=index].contains(&it.path.as_str());
            let at = errors.iter().rposition(before);
            errors.insert(at.map_or(0, |at| at + 1), error);
        }
        errors
    }

    fn group_and_scope(&self, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("group");
        if self.group.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else {
            let mut wrong = name::dns_subdomain(self.group);
            if wrong.is_empty() && !self.group.contains('.') {
                wrong.push("should be a domain with at least one dot".to_owned());
            }
            if !wrong.is_empty() {
                let group = self.group.into();
                errors.push(FieldError::invalid(path, group, wrong.join(",")));
            }
        }
        let path = SPEC.field("scope");
        match self.scope {
            "Cluster" | "Namespaced" => {}
            "" => errors.push(FieldError::required(path, "")),
            other => errors.push(FieldError::not_supported(
                path,
                other.into(),
                ["Cluster", "Namespaced"],
            )),
        }
        self.preserved_defaults(errors);
        if !self.shares_schema || self.versions.iter().all(|it| schema_of(it).is_none()) {
            let versions = SPEC.field("versions");
            for (at, version) in self.versions.iter().enumerate() {
                if schema_of(version).is_none() {
                    let path = versions.index(at);
                    let path = path.field("schema");
                    errors.push(FieldError::required(path.field("openAPIV3Schema"), ""));
                }
            }
        }
    }

    fn preserved_defaults(&self, errors: &mut Vec<FieldError>) {
        let has_default = self
            .versions
            .iter()
            .any(|it| schema_of(it).is_some_and(defaults));
        if flag(self.spec, history::PRESERVE) && has_default {
            let detail = "must be false in order to use defaults in the schema";
            let path = SPEC.field(history::PRESERVE);
            errors.push(FieldError::invalid(path, true.into(), detail));
        }
    }

    /// Compiles the schema of each version and adds the errors of each version. Errors of a
    /// shared schema are stored with the first version.
    fn schemas(
        &self,
        version: KubeVersion,
        tolerated: &Tolerated,
        errors: &mut Vec<FieldError>,
    ) -> Vec<CompiledSchema> {
        let versions = SPEC.field("versions");
        let mut schemas = Vec::new();
        for (at, json) in self.versions.iter().enumerate() {
            let path = versions.index(at);
            let given = text(json, "name");
            let wrong = name::dns_1035_label(given);
            if !wrong.is_empty() {
                let path = path.field("name");
                errors.push(FieldError::invalid(path, given.into(), wrong.join(",")));
            }
            deprecation(json, &path, errors);
            if let Some(schema) = schema_of(json) {
                let (own, shared) = (path.field("schema"), SPEC.field("validation"));
                let path = if self.shares_schema { &shared } else { &own };
                let has_status = subresources(json).get("status").is_some();
                let mut compiled =
                    version_schema::compile(schema, path, has_status, version, tolerated);
                if !self.shares_schema {
                    errors.append(&mut compiled.errors);
                }
                schemas.push(compiled);
            }
            if !self.shares("subresources") {
                errors.extend(scale_errors(json, path));
            }
            if !self.shares(COLUMNS) {
                let columns = json.get(COLUMNS).unwrap_or(&Value::Null);
                errors.extend(column::errors(columns, &path));
            }
            if !self.shares(SELECTABLE) {
                let has_own = schema_of(json).is_some() && !self.shares_schema;
                let root = schemas.last().map(|it| it.schema.root());
                let root = root.filter(|_| has_own);
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not \
                              included";
                errors.extend(selectable_errors(json, root, (&path, detail)));
            }
        }
        schemas
    }

    fn shares(&self, part: &str) -> bool {
        shares(&self.versions, part)
    }

    /// Validates the parts that all versions share, which the API server moves out of the
    /// versions.
    fn shared(&self, schemas: &[CompiledSchema], errors: &mut Vec<FieldError>) {
        let Some(first) = self.versions.first() else {
            return;
        };
        if let (true, Some(first)) = (self.shares_schema, schemas.first()) {
            errors.extend(first.errors.iter().cloned());
        }
        if self.shares("subresources") {
            errors.extend(scale_errors(first, SPEC));
        }
        if self.shares(COLUMNS) {
            let columns = first.get(COLUMNS).unwrap_or(&Value::Null);
            errors.extend(column::errors(columns, &SPEC));
        }
        if self.shares(SELECTABLE) {
            let detail = "may only be set when validations.schema is included";
            // `schema` may be set without an `openAPIV3Schema`.
            let empty = Node::default();
            let holds = first.get("schema").is_some_and(|it| !it.is_null());
            let root = schemas.first().map_or(&empty, |it| it.schema.root());
            let root = Some(root).filter(|_| self.shares_schema && holds);
            errors.extend(selectable_errors(first, root, (&SPEC, detail)));
        }
    }

    fn version_list(&self, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("versions");
        let mut names: Vec<_> = self.versions.iter().map(|it| text(it, "name")).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() != self.versions.len() {
            let detail = "must contain unique version names";
            errors.push(FieldError::invalid_form(path, &self.form(), detail));
        }
        // The name of the first version is also `spec.version`.
        let first = self.versions.first().map_or("", |it| text(it, "name"));
        let wrong = name::dns_1035_label(first);
        if !first.is_empty() && !wrong.is_empty() {
            let path = SPEC.field("version");
            errors.push(FieldError::invalid(path, first.into(), wrong.join(",")));
        }
        let stored = self
            .versions
            .iter()
            .filter(|it| flag(it, "storage"))
            .count();
        if stored != 1 {
            let detail = "must have exactly one version marked as storage version";
            errors.push(FieldError::invalid_form(path, &self.form(), detail));
        }
    }

    /// The versions in Kubernetes' internal form, without the parts that all versions share.
    fn form(&self) -> String {
        let shown: Vec<_> = self
            .versions
            .iter()
            .map(|version| {
                let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
                let own = |part: &str| match version.get(part) {
                    Some(value) if !self.shares(part) => value,
                    _ => &Value::Null,
                };
                format!(
                    "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
                     \"DeprecationWarning\":{warning},\"Schema\":{},\"Subresources\":null,\
                     \"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                    Value::from(text(version, "name")),
                    flag(version, "served"),
                    flag(version, "storage"),
                    flag(version, "deprecated"),
                    internal_form::validation(own("schema")),
                    internal_form::columns(own(COLUMNS)),
                    internal_form::selectable(own(SELECTABLE)),
                )
            })
            .collect();
        match shown.as_slice() {
            [] if self.spec.get("versions").is_some_and(Value::is_array) => {
                "[]".to_owned()
            }
            [] => "null".to_owned(),
            shown => format!("[{}]", shown.join(",")),
        }
    }

    fn build(&self, schemas: Vec<CompiledSchema>, version: KubeVersion) -> Crd {
        let scope = match self.scope {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        };
        let resource = |(json, compiled): (&&Value, CompiledSchema)| {
            let name = text(json, "name").to_owned();
            CustomResource {
                api_version: format!("{}/{name}", self.group),
                name,
                kind: self.kind.to_owned(),
                scope,
                served: flag(json, "served"),
                storage: flag(json, "storage"),
                has_status: subresources(json).get("status").is_some(),
                schema: compiled.schema,
                rules: compiled.rules,
                scale: Scale::read(subresources(json)),
                version,
            }
        };
        Crd {
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
            scope,
            versions: self.versions.iter().zip(schemas).map(resource).collect(),
        }
    }
}

const COLUMNS: &str = "additionalPrinterColumns";
const SELECTABLE: &str = "selectableFields";

/// Whether this part is the same in every version; absent in all versions also counts.
fn shares(versions: &[&Value], part: &str) -> bool {
    let of = |version: &Value| {
        let found = version.get(part).cloned().unwrap_or_default();
        // An empty list is treated as absent.
        if found.as_array().is_some_and(Vec::is_empty) {
            Value::Null
        } else {
            found
        }
    };
    match versions.split_first() {
        Some((first, others)) => others.iter().all(|it| of(it) == of(first)),
        None => false,
    }
}

fn scale_errors(version: &Value, path: Path<'_>) -> Vec<FieldError> {
    let path = path.field("subresources");
    let scale = Scale::read(subresources(version));
    scale.map_or_else(Vec::new, |scale| scale.errors(&path.to_string()))
}

/// `missing` is the error message if there is no `root` of a schema.
fn selectable_errors(
    version: &Value,
    root: Option<&Node>,
    (path, missing): (&Path<'_>, &str),
) -> Vec<FieldError> {
    let fields = version.get(SELECTABLE).unwrap_or(&Value::Null);
    if fields.as_array().is_none_or(Vec::is_empty) {
        return Vec::new();
    }
    let Some(root) = root else {
        let path = path.field(SELECTABLE);
        return vec![FieldError::invalid(path, "".into(), missing)];
    };
    let unread = schema_of(version).and_then(version_schema::unconvertible);
    let at = path.field("schema.openAPIV3Schema");
    let unread = unread.map(|why| FieldError::invalid(at, "".into(), why));
    let errors = selectable::errors(fields, root, path.field(SELECTABLE));
    unread.into_iter().chain(errors).collect()
}

/// Whether a schema contains a default.
fn defaults(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else {
        return false;
    };
    fields.iter().any(|(name, value)| match name.as_str() {
        "default" => !value.is_null(),
        "items" | "additionalProperties" | "not" => defaults(value),
        "properties" => value
            .as_object()
            .into_iter()
            .flatten()
            .any(|(_, it)| defaults(it)),
        "allOf" | "anyOf" | "oneOf" => {
            value.as_array().into_iter().flatten().any(defaults)
        }
        _ => false,
    })
}

fn subresources(version: &Value) -> &Value {
    version.get("subresources").unwrap_or(&Value::Null)
}

fn deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(Value::String(warning)) = version.get("deprecationWarning") else {
        return;
    };
    let mut wrong = Vec::new();
    if !flag(version, "deprecated") {
        wrong.push("can only be set for deprecated versions");
    } else if warning.len() > 256 {
        wrong.push("must be <= 256 characters long");
    } else if warning.is_empty() {
        wrong.push("must not be an empty string");
    }
    for detail in wrong {
        let path = path.field("deprecationWarning");
        errors.push(FieldError::invalid(path, warning.as_str().into(), detail));
    }
}
