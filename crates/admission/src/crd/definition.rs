//! The definition around the schemas: names, group, versions.

use serde_json::{Map, Value};

use super::scale::Scale;
use super::{Crd, CustomResource, default, open_api};
use crate::crd_rules::Rules;
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::schema::Structural;
use crate::{FieldError, KubeVersion, name};

const ROOT: Path<'static> = Path::Root;
const SPEC: Path<'static> = ROOT.field("spec");

pub(super) fn compile(crd: &Value, version: KubeVersion) -> Result<Crd, Vec<FieldError>> {
    let definition = Definition::read(crd);
    let mut errors = definition.metadata_errors(crd);
    definition.group_and_scope(&mut errors);
    let schemas = definition.schemas(version, &mut errors);
    definition.version_list(&mut errors);
    definition.names(&mut errors);
    definition.shared_schema(&schemas, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(definition.build(schemas, version))
}

/// The definition with the server's defaults.
struct Definition<'a> {
    group: &'a str,
    scope: &'a str,
    plural: &'a str,
    singular: String,
    kind: &'a str,
    list_kind: String,
    names: &'a Value,
    versions: Vec<&'a Value>,
    /// Whether all versions have one schema, which errors then name `spec.validation`.
    shares_schema: bool,
}

struct Compiled {
    schema: Structural,
    rules: Option<Rules>,
    errors: Vec<FieldError>,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, name: &str) -> bool {
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
        let mut schemas = versions.iter().map(|version| schema_of(version));
        let first = schemas.next();
        Self {
            group: text(spec, "group"),
            scope: text(spec, "scope"),
            plural: text(names, "plural"),
            singular: or(text(names, "singular"), kind.to_lowercase()),
            kind,
            list_kind: or(text(names, "listKind"), list_kind),
            names,
            shares_schema: first
                .is_some_and(|first| schemas.all(|schema| schema == first)),
            versions,
        }
    }

    fn metadata_errors(&self, crd: &Value) -> Vec<FieldError> {
        let metadata = crd.get("metadata");
        let mut errors =
            object_meta::create(metadata, NameRule::DnsSubdomain, Scope::Cluster);
        let given = metadata.map(|it| text(it, "name")).unwrap_or_default();
        if !given.is_empty() && given != format!("{}.{}", self.plural, self.group) {
            let path = ROOT.field("metadata");
            let detail = "must be spec.names.plural+\".\"+spec.group";
            let error = FieldError::invalid(path.field("name"), given.into(), detail);
            let of_name = |it: &FieldError| it.path == "metadata.name";
            let at = errors.iter().rposition(of_name).map_or(0, |at| at + 1);
            errors.insert(at, error);
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

    /// Compiles the schema of each version and says what is wrong with each version.
    /// Errors of a shared schema are kept with the first one.
    fn schemas(
        &self,
        version: KubeVersion,
        errors: &mut Vec<FieldError>,
    ) -> Vec<Compiled> {
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
                let mut compiled = compile_schema(schema, path, has_status, version);
                if !self.shares_schema {
                    errors.append(&mut compiled.errors);
                }
                schemas.push(compiled);
            }
            let path = path.field("subresources").to_string();
            let scale = Scale::read(subresources(json));
            errors.extend(scale.iter().flat_map(|scale| scale.errors(&path)));
        }
        schemas
    }

    fn shared_schema(&self, schemas: &[Compiled], errors: &mut Vec<FieldError>) {
        if let (true, Some(first)) = (self.shares_schema, schemas.first()) {
            errors.extend(first.errors.iter().cloned());
        }
    }

    fn version_list(&self, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("versions");
        let mut names: Vec<_> = self.versions.iter().map(|it| text(it, "name")).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() != self.versions.len() {
            let detail = "must contain unique version names";
            errors.push(FieldError::invalid_shown(path, &self.shown(), detail));
        }
        let stored = self
            .versions
            .iter()
            .filter(|it| flag(it, "storage"))
            .count();
        if stored != 1 {
            let detail = "must have exactly one version marked as storage version";
            errors.push(FieldError::invalid_shown(path, &self.shown(), detail));
        }
    }

    /// The versions as Kubernetes prints its own form of them, in which what all versions
    /// share has been moved out.
    fn shown(&self) -> String {
        let shown: Vec<_> = self
            .versions
            .iter()
            .map(|version| {
                let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
                format!(
                    "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
                     \"DeprecationWarning\":{warning},\"Schema\":null,\"Subresources\":null,\
                     \"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                    Value::from(text(version, "name")),
                    flag(version, "served"),
                    flag(version, "storage"),
                    flag(version, "deprecated"),
                )
            })
            .collect();
        match shown.as_slice() {
            [] => "null".to_owned(),
            shown => format!("[{}]", shown.join(",")),
        }
    }

    fn names(&self, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("names");
        let given = [
            ("plural", self.plural),
            ("singular", &self.singular),
            ("kind", self.kind),
            ("listKind", &self.list_kind),
        ];
        for (field, given) in given {
            if given.is_empty() {
                errors.push(FieldError::required(path.field(field), ""));
            }
        }
        let mixed = "may have mixed case, but should otherwise match: ";
        for (field, given) in given {
            let prefix = if field.ends_with("ind") { mixed } else { "" };
            let wrong = match prefix {
                "" => name::dns_1035_label(given),
                _ => name::dns_1035_label(&given.to_lowercase()),
            };
            if !given.is_empty() && !wrong.is_empty() {
                let detail = format!("{prefix}{}", wrong.join(","));
                errors.push(FieldError::invalid(path.field(field), given.into(), detail));
            }
        }
        self.labels("shortNames", errors);
        if !self.kind.is_empty() && self.kind == self.list_kind {
            let detail = "kind and listKind may not be the same";
            let path = path.field("listKind");
            errors.push(FieldError::invalid(path, self.kind.into(), detail));
        }
        self.labels("categories", errors);
    }

    fn labels(&self, field: &str, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("names");
        let path = path.field(field);
        let list = self.names.get(field).and_then(Value::as_array);
        for (at, given) in list.into_iter().flatten().enumerate() {
            let given = given.as_str().unwrap_or_default();
            let wrong = name::dns_1035_label(given);
            if !wrong.is_empty() {
                let detail = wrong.join(",");
                errors.push(FieldError::invalid(path.index(at), given.into(), detail));
            }
        }
    }

    fn build(&self, schemas: Vec<Compiled>, version: KubeVersion) -> Crd {
        let scope = match self.scope {
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Cluster,
        };
        let resource = |(json, compiled): (&&Value, Compiled)| {
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

fn compile_schema(
    schema: &Value,
    path: &Path<'_>,
    has_status: bool,
    version: KubeVersion,
) -> Compiled {
    let path = path.field("openAPIV3Schema");
    let structural = match Structural::read(schema, &path, version) {
        Ok(structural) => structural,
        Err(errors) => {
            return Compiled {
                schema: Structural::empty(version),
                rules: None,
                errors,
            };
        }
    };
    let mut errors = match schema {
        Value::Object(fields) => root_errors(fields, has_status, &path),
        _ => Vec::new(),
    };
    errors.extend(structural.structure_errors(&path));
    let mut rules = None;
    if errors.is_empty() {
        rules = Rules::of(structural.root(), true, version.dialect_of_new());
        errors = default::check(structural.root(), rules.as_ref(), &path, version);
    }
    let usable = rules.as_ref().filter(|_| errors.is_empty());
    errors.extend(open_api::check(structural.root(), usable, &path));
    Compiled {
        schema: structural,
        rules,
        errors,
    }
}

/// Where the status is validated alone, the root may say nothing that would be lost.
fn root_errors(
    fields: &Map<String, Value>,
    has_status: bool,
    path: &Path<'_>,
) -> Vec<FieldError> {
    const LOST: &[&str] = &[
        "default",
        "nullable",
        "maxProperties",
        "minProperties",
        "enum",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "additionalItems",
        "patternProperties",
        "dependencies",
        "definitions",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    const DETAIL: &str = "only [Description Type Format Title Maximum ExclusiveMaximum \
        Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
        MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields \
        XValidations] fields are allowed at the root of the schema if the status \
        subresource is enabled";
    let is_set = |name: &&&str| {
        let value = fields.get(**name);
        value.is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    };
    let mut errors = Vec::new();
    if has_status && LOST.iter().any(|name| is_set(&name)) {
        let schema = Value::Object(fields.clone());
        errors.push(FieldError::invalid(*path, schema, DETAIL));
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(path.field("nullable"), detail));
    }
    errors
}
