//! The expressions of CRDs and policies, and the lines on which they are.

use std::collections::BTreeSet;

use kubemu_cel::{Mutation, mutations};
use serde_json::Value;

use super::sheet::Case;
use crate::document::{Document, SourceLocation};

/// An expression of a CRD or a policy.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The index of the document among the subjects.
    pub(super) subject: usize,
    /// The groups and kinds of the objects that it is about, if only those of given CRDs.
    kinds: Option<Vec<GroupKind>>,
    is_of_definition: bool,
    /// The steps to the expression in the document.
    steps: Vec<Step>,
    pub(super) source: String,
    pub(super) role: Role,
    pub(super) file: String,
    /// The line of the file on which the field of the expression is.
    pub(super) line: usize,
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A rule, a validation or a condition.
    Decision,
    /// A variable, which decisions read.
    Variable,
    /// A message or another value.
    Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// The fields with expressions in lists of a policy's specification.
const OF_POLICIES: [(&str, &str, Role); 7] = [
    ("matchConditions", "expression", Role::Decision),
    ("variables", "expression", Role::Variable),
    ("validations", "expression", Role::Decision),
    ("validations", "messageExpression", Role::Value),
    ("auditAnnotations", "valueExpression", Role::Value),
    ("mutations", "applyConfiguration.expression", Role::Value),
    ("mutations", "jsonPatch.expression", Role::Value),
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
                kinds: None,
                is_of_definition: false,
                rules: Vec::new(),
            };
            if document.text("/kind") == "CustomResourceDefinition" {
                collected.definition(cases);
            } else if super::suite::is_policy(document) {
                collected.kinds = kinds_of_policy(document, subjects);
                collected.policy();
            }
            found.extend(collected.rules);
        }
        found
    }

    /// The changes of the expression that a case should detect.
    pub(super) fn mutations(&self) -> Vec<Mutation> {
        let whole = self.source.trim();
        let is_constant = |it: &Mutation| {
            self.source.get(it.bytes.clone()).map(str::trim) == Some(whole)
                && ["true", "false"].contains(&it.replacement.as_str())
        };
        let mut all = mutations(&self.source);
        match self.role {
            Role::Decision => {}
            // It need not be true or false.
            Role::Variable => all.retain(|it| !is_constant(it)),
            Role::Value => all.clear(),
        }
        all
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
        if !self.is_of_definition {
            return None;
        }
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
        let object = &case.question.object;
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, _) = api_version.split_once('/').unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_it = |it: &GroupKind| it.group == group && it.kind == kind;
        self.kinds.as_ref().is_none_or(|all| all.iter().any(is_it))
    }

    /// The subjects that decide about the objects that it is about, without the others, and with
    /// `source` in its place.
    pub(super) fn replaced_in(
        &self,
        subjects: &[Document],
        source: &str,
    ) -> Vec<Document> {
        let mut kept = Vec::new();
        for (index, document) in subjects.iter().enumerate() {
            if index == self.subject {
                kept.push(self.replaced(document, source));
            } else if self.is_with(document, subjects) {
                kept.push(document.clone());
            }
        }
        kept
    }

    /// Whether a document decides about the same objects.
    fn is_with(&self, document: &Document, subjects: &[Document]) -> bool {
        let Some(kinds) = &self.kinds else {
            return true;
        };
        let about = match document.text("/kind") {
            "CustomResourceDefinition" => {
                let is_param = subjects.iter().any(|it| is_param(document, it));
                return is_param || kinds.contains(&GroupKind::of(document));
            }
            _ if super::suite::is_policy(document) => kinds_of_policy(document, subjects),
            _ => None,
        };
        about.is_none_or(|about| about.iter().any(|it| kinds.contains(it)))
    }
}

/// The group and the kind of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupKind {
    group: String,
    kind: String,
}

impl GroupKind {
    /// Those of the objects of a CRD.
    fn of(definition: &Document) -> Self {
        Self {
            group: definition.text("/spec/group").to_owned(),
            kind: definition.text("/spec/names/kind").to_owned(),
        }
    }
}

/// Whether objects of a CRD are parameters of a policy.
fn is_param(definition: &Document, policy: &Document) -> bool {
    let (group, _) = policy
        .text("/spec/paramKind/apiVersion")
        .split_once('/')
        .unwrap_or_default();
    group == definition.text("/spec/group")
        && policy.text("/spec/paramKind/kind") == definition.text("/spec/names/kind")
}

/// The kinds that a policy matches, if they can only be those of given CRDs.
fn kinds_of_policy(policy: &Document, subjects: &[Document]) -> Option<Vec<GroupKind>> {
    let rules = policy.object["spec"]["matchConstraints"]["resourceRules"].as_array()?;
    let is_definition = |it: &&Document| it.text("/kind") == "CustomResourceDefinition";
    let definitions: Vec<&Document> = subjects.iter().filter(is_definition).collect();
    let texts = |rule: &Value, name: &str| {
        let texts = rule[name].as_array().into_iter().flatten();
        let texts = texts.filter_map(|it| it.as_str().map(str::to_owned));
        texts.collect::<Vec<String>>()
    };
    let mut kinds = Vec::new();
    for rule in rules {
        let resources = texts(rule, "resources");
        for group in texts(rule, "apiGroups") {
            let mut of_group = definitions
                .iter()
                .filter(|it| it.text("/spec/group") == group);
            let first = of_group.clone().next();
            // Another group, or every group, may be one of Kubernetes' own.
            first?;
            let is_named = |it: &&&Document| {
                let plural = it.text("/spec/names/plural");
                let mut names = resources.iter().map(|it| it.split('/').next());
                names.any(|it| it == Some(plural) || it == Some("*"))
            };
            kinds.extend(
                of_group
                    .by_ref()
                    .filter(is_named)
                    .map(|it| GroupKind::of(it)),
            );
        }
    }
    Some(kinds)
}

struct Collected<'d> {
    subject: usize,
    document: &'d Document,
    kinds: Option<Vec<GroupKind>>,
    is_of_definition: bool,
    rules: Vec<Rule>,
}

impl Collected<'_> {
    fn policy(&mut self) {
        for (list, field, role) in OF_POLICIES {
            let items = self.document.object["spec"][list].as_array();
            for index in 0..items.map_or(0, Vec::len) {
                let mut steps =
                    vec![field_step("spec"), field_step(list), Step::Item(index)];
                steps.extend(field.split('.').map(field_step));
                self.add(steps, role);
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
        self.kinds = Some(vec![GroupKind::of(self.document)]);
        self.is_of_definition = true;
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
            let fields = [("rule", Role::Decision), ("messageExpression", Role::Value)];
            for (field, role) in fields {
                let mut steps = below(&["x-kubernetes-validations"]);
                steps.extend([Step::Item(index), field_step(field)]);
                self.add(steps, role);
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

    fn add(&mut self, steps: Vec<Step>, role: Role) {
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
            kinds: self.kinds.clone(),
            is_of_definition: self.is_of_definition,
            steps,
            source: source.to_owned(),
            role,
            file: location.map_or_else(String::new, |it| it.file.clone()),
            line: location.map_or(1, line),
        });
    }
}

fn field_step(name: &str) -> Step {
    Step::Field(name.to_owned())
}
