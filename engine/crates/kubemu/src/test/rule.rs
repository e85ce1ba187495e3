//! The expressions of CRDs and policies, and the lines on which they are.

use std::collections::BTreeSet;

use serde_json::Value;

use super::sheet::Case;
use crate::document::{Document, SourceLocation};

/// An expression of a CRD or a policy.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The index of the document among the subjects.
    pub(super) subject: usize,
    /// The group and the kind of the objects of a CRD: `None` for policies.
    pub(super) of_kind: Option<(String, String)>,
    /// The steps to the expression in the document.
    steps: Vec<Step>,
    pub(super) source: String,
    /// Whether it is a rule, a validation or a condition, and not a message or another value.
    pub(super) decides: bool,
    pub(super) file: String,
    /// The line of the file on which the field of the expression is.
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// The fields with expressions in lists of a policy's specification, and whether these decide.
const OF_POLICIES: [(&str, &str, bool); 7] = [
    ("matchConditions", "expression", true),
    ("variables", "expression", false),
    ("validations", "expression", true),
    ("validations", "messageExpression", false),
    ("auditAnnotations", "valueExpression", false),
    ("mutations", "applyConfiguration.expression", false),
    ("mutations", "jsonPatch.expression", false),
];

/// The deepest schema of a CRD that is entered. That of a valid CRD is not deeper.
const MAX_DEPTH: usize = 64;

impl Rule {
    /// The expressions of the policies, and of the versions of CRDs that a case asks about.
    pub(super) fn all(subjects: &[Document], cases: &[Case]) -> Vec<Self> {
        let mut found = Vec::new();
        for (subject, document) in subjects.iter().enumerate() {
            let mut collected = Collected {
                subject,
                document,
                of_kind: None,
                rules: Vec::new(),
            };
            if document.text("/kind") == "CustomResourceDefinition" {
                collected.definition(cases);
            } else if super::suite::is_policy(document) {
                collected.policy();
            }
            found.extend(collected.rules);
        }
        found
    }

    /// The line of a byte of the expression.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        let before = self.source.get(..byte).unwrap_or_default();
        // Several lines are written below the field.
        let is_block = self.source.trim_end().contains('\n');
        self.line + usize::from(is_block) + before.matches('\n').count()
    }

    /// The document with another expression in place of this one.
    pub(super) fn replaced(&self, document: &Document, source: &str) -> Document {
        let mut document = document.clone();
        let mut value = Some(&mut document.object);
        for step in &self.steps {
            value = value.and_then(|it| match step {
                Step::Field(name) => it.get_mut(name),
                Step::Item(index) => it.get_mut(index),
            });
        }
        if let Some(value) = value {
            *value = source.into();
        }
        document
    }

    /// The place of a rule of a CRD in its objects, at the first item of lists. `None` for policies,
    /// and in maps.
    pub(super) fn place(&self) -> Option<Vec<String>> {
        self.of_kind.as_ref()?;
        let mut place = Vec::new();
        let is_schema =
            |it: &Step| matches!(it, Step::Field(name) if name == "openAPIV3Schema");
        let start = self.steps.iter().position(is_schema)?;
        let mut steps = self.steps.iter().skip(start + 1);
        while let Some(Step::Field(name)) = steps.next() {
            match name.as_str() {
                "properties" => match steps.next()? {
                    Step::Field(name) => place.push(name.clone()),
                    Step::Item(_) => return None,
                },
                "items" => place.push("0".to_owned()),
                "x-kubernetes-validations" => return Some(place),
                _ => return None,
            }
        }
        None
    }

    /// Whether a case may ask about it: a rule of a CRD is about objects of its kind.
    pub(super) fn concerns(&self, case: &Case) -> bool {
        let Some((group, kind)) = &self.of_kind else {
            return true;
        };
        let object = &case.question.object;
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (of_group, _) = api_version.split_once('/').unwrap_or_default();
        of_group == group && object["kind"] == **kind
    }
}

struct Collected<'d> {
    subject: usize,
    document: &'d Document,
    of_kind: Option<(String, String)>,
    rules: Vec<Rule>,
}

impl Collected<'_> {
    fn policy(&mut self) {
        for (list, field, decides) in OF_POLICIES {
            let items = self.document.object["spec"][list].as_array();
            for index in 0..items.map_or(0, Vec::len) {
                let mut steps =
                    vec![field_step("spec"), field_step(list), Step::Item(index)];
                steps.extend(field.split('.').map(field_step));
                self.add(steps, decides);
            }
        }
    }

    fn definition(&mut self, cases: &[Case]) {
        let text = |pointer| self.document.text(pointer).to_owned();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let asked = cases.iter().map(|it| &it.question.object);
        let asked = asked.filter(|it| it["kind"] == kind.as_str());
        let asked: BTreeSet<&str> =
            asked.filter_map(|it| it["apiVersion"].as_str()).collect();
        self.of_kind = Some((group.clone(), kind));
        let versions = self.document.object["spec"]["versions"].as_array();
        for (index, version) in versions.into_iter().flatten().enumerate() {
            let name = version["name"].as_str().unwrap_or_default();
            if !asked.contains(format!("{group}/{name}").as_str()) {
                continue;
            }
            let steps = vec![
                field_step("spec"),
                field_step("versions"),
                Step::Item(index),
                field_step("schema"),
                field_step("openAPIV3Schema"),
            ];
            self.schema(&version["schema"]["openAPIV3Schema"], &steps);
        }
    }

    fn schema(&mut self, node: &Value, steps: &[Step]) {
        if steps.len() > 2 * MAX_DEPTH {
            return;
        }
        let below = |names: &[&str]| {
            let names = names.iter().map(|it| field_step(it));
            steps.iter().cloned().chain(names).collect::<Vec<_>>()
        };
        let rules = node["x-kubernetes-validations"].as_array();
        for index in 0..rules.map_or(0, Vec::len) {
            for (field, decides) in [("rule", true), ("messageExpression", false)] {
                let mut steps = below(&["x-kubernetes-validations"]);
                steps.extend([Step::Item(index), field_step(field)]);
                self.add(steps, decides);
            }
        }
        for name in ["items", "additionalProperties"] {
            if node[name].is_object() {
                self.schema(&node[name], &below(&[name]));
            }
        }
        for (name, field) in node["properties"].as_object().into_iter().flatten() {
            self.schema(field, &below(&["properties", name]));
        }
    }

    fn add(&mut self, steps: Vec<Step>, decides: bool) {
        let mut value = &self.document.object;
        let mut field = String::new();
        for step in &steps {
            match step {
                Step::Field(name) => {
                    value = &value[name.as_str()];
                    field = format!("{field}.{name}");
                }
                Step::Item(index) => {
                    value = &value[*index];
                    field = format!("{field}[{index}]");
                }
            }
        }
        let Some(source) = value.as_str() else { return };
        let location = self.document.location.as_ref();
        let line = |it: &SourceLocation| it.line_of(&field);
        self.rules.push(Rule {
            subject: self.subject,
            of_kind: self.of_kind.clone(),
            steps,
            source: source.to_owned(),
            decides,
            file: location.map_or_else(String::new, |it| it.file.clone()),
            line: location.map_or(1, line),
        });
    }
}

fn field_step(name: &str) -> Step {
    Step::Field(name.to_owned())
}
