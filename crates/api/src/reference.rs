//! The generated reference pages, in Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use crate::condition::{ConditionType, Reason};
use crate::manifest::{self, GeneratedFile};
use crate::resource::{RESOURCES, Resource};
use crate::rules::{self, Examples, Layer, Rule};
use crate::{lint, name};

const HEADER: &str = manifest::PAGE_HEADER;

/// The pages as they belong into `docs/reference`. Cannot fail.
pub fn pages() -> Vec<GeneratedFile> {
    vec![
        GeneratedFile {
            path: "api.md".to_owned(),
            text: api_page(),
        },
        GeneratedFile {
            path: "rules.md".to_owned(),
            text: rules_page(),
        },
        lint::page(),
    ]
}

fn api_page() -> String {
    let mut page = format!(
        "{HEADER}# API `{version}`\n\n\
         Three kinds, all namespaced and in the category `{category}`. In addition to the limits \
         below, values must satisfy the [rules](rules.md).\n",
        version = name::API_VERSION,
        category = name::CATEGORY,
    );
    for resource in &RESOURCES {
        kind(&mut page, resource);
        if resource.kind == name::KIND {
            conditions(&mut page);
        }
    }
    page
}

fn kind(page: &mut String, resource: &Resource) {
    let root = (resource.schema)();
    let status = if resource.has_status {
        ", with the subresource `status`"
    } else {
        ""
    };
    let _ = write!(
        page,
        "\n## {kind}\n\n{about} Plural `{plural}`, short name `{short}`{status}.\n",
        kind = resource.kind,
        about = text(&root, "description"),
        plural = resource.plural,
        short = resource.short_name,
    );
    for part in ["spec", "status"] {
        let Some(schema) = root.pointer(&format!("/properties/{part}")) else {
            continue;
        };
        let _ = write!(
            page,
            "\n### {kind} {part}\n\n| field | type | default | limits | meaning |\n\
             |---|---|---|---|---|\n",
            kind = resource.kind,
        );
        rows(page, "", schema);
    }
}

fn conditions(page: &mut String) {
    page.push_str("\n## Conditions\n\n| type | true if |\n|---|---|\n");
    for kind in ConditionType::ALL {
        let _ = writeln!(page, "| `{}` | {} |", kind.as_str(), kind.meaning());
    }
    page.push_str(
        "\n`NodeTainted` is absent without `nodeTaints`, `AgentReady` without `killIfCommands`.\n\n\
         | reason | meaning |\n|---|---|\n",
    );
    for (reason, meaning) in Reason::MEANINGS {
        let _ = writeln!(page, "| `{reason}` | {} |", cell(meaning.trim()));
    }
    page.push_str("\n`MachineReady` has the reasons of the Machine's own condition.\n");
}

/// One row for each property of an object, those of nested objects below their parent.
fn rows(page: &mut String, prefix: &str, object: &Value) {
    let Some(properties) = object.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = object.get("required").and_then(Value::as_array);
    for (name, field) in properties {
        let path = format!("{prefix}{name}");
        let is_required =
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
        let default = match field.get("default") {
            Some(default) => format!("`{default}`"),
            None if is_required => "required".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(
            page,
            "| `{path}` | {} | {default} | {} | {} |",
            type_of(field),
            bounds(field),
            cell(text(field, "description")),
        );
        let is_list = field.get("items").is_some();
        let inner = field.get("items").unwrap_or(field);
        rows(
            page,
            &format!("{path}{}.", if is_list { "[]" } else { "" }),
            inner,
        );
    }
}

fn text<'s>(schema: &'s Value, keyword: &str) -> &'s str {
    schema
        .get(keyword)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn type_of(schema: &Value) -> String {
    if let Some(items) = schema.get("items") {
        return format!("[]{}", type_of(items));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return format!("map of {}", type_of(values));
    }
    match text(schema, "format") {
        "date-time" => "RFC 3339 time".to_owned(),
        _ => text(schema, "type").to_owned(),
    }
}

fn bounds(schema: &Value) -> String {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_i64);
    let inner = schema
        .get("items")
        .or_else(|| schema.get("additionalProperties"));
    let mut bounds = Vec::new();
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values = values
            .iter()
            .filter_map(Value::as_str)
            .map(|value| format!("`{value}`"));
        bounds.push(values.collect::<Vec<_>>().join(", "));
    } else if let (Some(most), "") = (number("maxLength"), text(schema, "format")) {
        bounds.push(format!("at most {most} characters"));
    }
    if let (Some(least), Some(most)) = (number("minimum"), number("maximum")) {
        bounds.push(format!("from {least} to {most}"));
    }
    if let Some(most) = number("maxItems") {
        bounds.push(format!("at most {most} items"));
    }
    if let Some(most) = number("maxProperties") {
        bounds.push(format!("at most {most} entries"));
    }
    if let Some(most) = inner
        .and_then(|inner| inner.get("maxLength"))
        .and_then(Value::as_i64)
    {
        bounds.push(format!("each at most {most} characters"));
    }
    bounds.join(", ")
}

/// Text that stays within one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn rules_page() -> String {
    let mut page = format!(
        "{HEADER}# Rules\n\n\
         The rules that objects must satisfy. Rules marked *CRD* are validation rules of the CRD, whose errors name the field and the value; all rules are also in the admission policy of the kind. The operator checks them again before it acts, and `5spot validate` checks them offline.\n\n\
         An update is never rejected by a rule whose inputs it does not change: the kill switch can be set, and the schedule disabled, on an object that violates every rule.\n"
    );
    for resource in &RESOURCES {
        let _ = write!(
            page,
            "\n## {kind}\n\nPolicy `{policy}`.\n\n\
             | rule | field | message | in |\n|---|---|---|---|\n",
            kind = resource.kind,
            policy = resource.policy,
        );
        for rule in resource.rules {
            let _ = writeln!(
                page,
                "| [{id}](#{anchor}) | `{field}` | {message} | {layer} |",
                id = rule.id,
                anchor = rule.id.to_lowercase(),
                field = rule.path,
                message = cell(rule.requirement.message),
                layer = layer(rule),
            );
        }
    }
    for rule in rules::all() {
        section(&mut page, rule);
    }
    page
}

fn layer(rule: &Rule) -> &'static str {
    match rule.requirement.layer {
        Layer::SchemaAndPolicy | Layer::Change => "CRD, policy",
        Layer::Policy => "policy",
    }
}

fn section(page: &mut String, rule: &Rule) {
    let _ = write!(
        page,
        "\n## {id}\n\n`{path}`: {message}.\n\n{why}\n\n```cel\n{cel}\n```\n\n",
        id = rule.id,
        path = rule.path,
        message = rule.requirement.message,
        why = rule.why,
        cel = rule.requirement.cel,
    );
    let shown = |example: &&str| match rule.examples {
        Examples::Text { .. } => format!("`\"{example}\"`"),
        Examples::Json { .. } => format!("`{example}`"),
        Examples::Sizes { .. } => (*example).to_owned(),
    };
    let list =
        |examples: &[&str]| examples.iter().map(shown).collect::<Vec<_>>().join(", ");
    let _ = writeln!(page, "- accepted: {}", list(rule.examples.accepts()));
    let _ = writeln!(page, "- rejected: {}", list(rule.examples.rejects()));
}
