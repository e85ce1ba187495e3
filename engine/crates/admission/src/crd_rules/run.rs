//! Runs rules over an object and its previous state.

use kubemu_cel::{Activation, Binding, Budget, Program, RunError, Variables, escape};
use serde_json::Value;

use super::{Rule, Rules};
use crate::correlate::{ItemsByKey, Old};
use crate::field::Path;
use crate::schema::node::Node;
use crate::schema::ratchets;
use crate::{FieldError, KubeVersion};

/// The maximum size in bytes of a message that an expression returns.
pub(crate) const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no \
                             further validation rules will be run";

/// One validation of one object.
pub(crate) struct Run {
    version: KubeVersion,
    budget: Budget,
    /// Set once no further rule may run.
    stopped: bool,
    /// Whether messages at the current location have the variable `oldSelf`.
    shows_old: bool,
    pub(crate) errors: Vec<FieldError>,
    /// Errors that are ignored because their value is unchanged.
    pub(crate) warnings: Vec<String>,
}

/// The previous state at a location, for ratcheting.
#[derive(Clone, Copy, Default)]
struct PreviousState<'a> {
    /// The previous and the current state of the location; `None` if it cannot be correlated.
    correlated: Option<(Old<'a>, &'a Value)>,
    /// The nearest ancestor that can be correlated.
    ancestor: Option<(Old<'a>, &'a Value)>,
}

impl<'a> PreviousState<'a> {
    fn step(
        self,
        name: &str,
        next: impl FnOnce(Old<'a>) -> Option<(Old<'a>, &'a Value)>,
    ) -> Self {
        let Some((old, _)) = self.correlated else {
            return self;
        };
        // Both states have been converted to one version, so these two fields never differ.
        if self.ancestor.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self {
            correlated: next(old),
            ancestor: self.correlated,
        }
    }

    fn is_unchanged(self) -> bool {
        self.correlated
            .or(self.ancestor)
            .is_some_and(|(old, new)| old.is_equal(new))
    }
}

/// A location in the object.
#[derive(Clone, Copy)]
struct Location<'a> {
    node: &'a Node,
    path: &'a Path<'a>,
    value: &'a Value,
    /// The value of `oldSelf`.
    old: Option<&'a Value>,
    previous: PreviousState<'a>,
}

/// The variables of a rule.
struct RuleVariables<'a> {
    new: &'a Value,
    old: Option<Binding<'a>>,
}

impl<'a> Activation<'a> for RuleVariables<'a> {
    fn variable(&self, name: &str) -> Option<Result<Binding<'a>, RunError>> {
        match name {
            "self" => Some(Ok(Binding::Json(self.new))),
            "oldSelf" => self.old.clone().map(Ok),
            _ => None,
        }
    }
}

impl Run {
    pub(crate) fn new(version: KubeVersion) -> Self {
        Self {
            version,
            budget: Budget::default(),
            stopped: false,
            shows_old: false,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The total cost of all rules.
    pub(crate) fn cost(&self) -> u64 {
        self.budget.spent().min(Budget::PER_OBJECT)
    }

    /// Runs every rule that applies to an object, ignoring errors of unchanged values.
    pub(crate) fn object(
        &mut self,
        rules: &Rules,
        root: &Node,
        new: &Value,
        old: Option<&Value>,
    ) {
        let comparable = old.filter(|_| ratchets(self.version));
        let correlated = comparable.map(|value| (Old { node: root, value }, new));
        let location = Location {
            node: root,
            path: &Path::Root,
            value: new,
            old,
            previous: PreviousState {
                correlated,
                ancestor: None,
            },
        };
        self.check(rules, location);
    }

    /// Runs every rule that applies to a default, with `old` as the previous state.
    pub(crate) fn default(
        &mut self,
        (rules, node): (&Rules, &Node),
        path: &Path<'_>,
        value: &Value,
        old: Option<&Value>,
    ) {
        let location = Location {
            node,
            path,
            value,
            old,
            previous: PreviousState::default(),
        };
        self.check(rules, location);
    }

    fn check(&mut self, rules: &Rules, location: Location<'_>) {
        if self.stopped || location.value.is_null() {
            return;
        }
        self.run_rules(rules, location);
        match location.value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.entry(rules, location, name, value);
                }
            }
            Value::Array(items) => {
                let (Some(rules), Some(node)) = (&rules.items, &location.node.items)
                else {
                    return;
                };
                let old = location.old.and_then(Value::as_array);
                let old = ItemsByKey::of(location.node, old);
                let correlated = location.previous.correlated;
                let correlated = correlated.map(|(old, _)| old.items());
                for (at, value) in items.iter().enumerate() {
                    let path = location.path.index(at);
                    let step = Location {
                        node,
                        path: &path,
                        value,
                        old: old.find(value),
                        previous: location.previous.step("", |_| {
                            Some((correlated.as_ref()?.item(value)?, value))
                        }),
                    };
                    self.check(rules, step);
                }
            }
            _ => {}
        }
    }

    /// Runs the rules of a field of an object or an entry of a map.
    fn entry(
        &mut self,
        rules: &Rules,
        location: Location<'_>,
        name: &str,
        value: &Value,
    ) {
        let property = rules.properties.get(name);
        if property.is_none() && rules.additional.is_none() {
            return;
        }
        let old = location.old.and_then(|old| old.get(name));
        let previous = location
            .previous
            .step(name, |old| Some((old.key(name)?, value)));
        if let (Some(rules), Some(node)) =
            (&rules.additional, location.node.additional.schema())
        {
            let path = location.path.key(name);
            let step = Location {
                node,
                path: &path,
                value,
                old,
                previous,
            };
            self.check(rules, step);
        }
        // Below a value that rules cannot see, Kubernetes only finds the fields that CEL cannot name.
        let is_found = !rules.untyped || escape(name).is_none();
        if let Some(rules) = property.filter(|it| is_found && !it.untyped)
            && let Some(node) = location.node.properties.at(rules.at)
        {
            let path = location.path.field(name);
            let step = Location {
                node,
                path: &path,
                value,
                old,
                previous,
            };
            self.check(rules, step);
        }
    }

    fn run_rules(&mut self, rules: &Rules, location: Location<'_>) {
        if rules.has_unusable {
            let detail = "rule compiler initialization error: failed to convert to declType \
                          for CEL validation rules";
            self.fail(location, detail);
        }
        if rules.own.is_empty() {
            return;
        }
        if self.budget.remaining() == 0 {
            self.stop(location, OUT_OF_BUDGET);
            return;
        }
        self.shows_old = rules.use_old;
        for rule in &rules.own {
            self.rule(rule, location);
            if self.stopped {
                return;
            }
        }
    }

    /// Adds an error about a rule itself; it does not contain the value.
    fn fail(&mut self, location: Location<'_>, detail: impl Into<String>) {
        let kind = location.node.kind.as_str().into();
        self.errors
            .push(FieldError::invalid(*location.path, kind, detail));
    }

    fn stop(&mut self, location: Location<'_>, detail: impl Into<String>) {
        self.fail(location, detail);
        self.stopped = true;
    }

    fn rule(&mut self, rule: &Rule, location: Location<'_>) {
        let program = match &rule.program {
            None => return,
            Some(Ok(program)) => program,
            Some(Err(why)) => {
                return self.fail(location, format!("rule compile error: {why}"));
            }
        };
        let old = location.old.filter(|old| !old.is_null());
        let optional = rule.source.optional_old_self == Some(true);
        // A transition rule does not run without a previous state.
        if rule.uses_old && old.is_none() && !(optional && ratchets(self.version)) {
            return;
        }
        let variables = RuleVariables {
            new: location.value,
            old: match (optional, old) {
                (true, old) => Some(Binding::Optional(old)),
                (false, Some(old)) => Some(Binding::Json(old)),
                (false, None) => None,
            },
        };
        match program.holds(&variables, &mut self.budget) {
            Ok(true) => {}
            Ok(false) => self.add_violation(rule, location),
            Err(RunError::OutOfBudget) => self.stop(location, OUT_OF_BUDGET),
            Err(error) if error.is_no_such_overload() => {
                let detail = format!(
                    "'{error}': call arguments did not match a supported operator, \
                     function or macro signature for rule: {}",
                    rule.name()
                );
                self.fail(location, detail);
            }
            Err(error @ RunError::CallLimit) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost \
                     exceeds limit for rule: {}",
                    rule.name()
                );
                self.stop(location, detail);
            }
            Err(error) => {
                self.fail(
                    location,
                    format!("{error} evaluating rule: {}", rule.name()),
                );
            }
        }
    }

    /// The variables of a message expression. `oldSelf` is not an optional, also if it is for
    /// the rule, and it is only set if some rule of the location uses it.
    fn message_variables<'a>(
        &self,
        rule: &Rule,
        location: Location<'a>,
    ) -> Variables<'a> {
        let variables = Variables::new().json("self", location.value);
        let old = location.old.filter(|old| self.shows_old && !old.is_null());
        let Some(old) = old else {
            return variables;
        };
        if rule.source.optional_old_self != Some(true) {
            return variables.json("oldSelf", old);
        }
        match kubemu_cel::Value::from_json(old, &kubemu_cel::Type::Dyn) {
            Ok(old) => variables.bind("oldSelf", Binding::Value(old)),
            Err(_) => variables,
        }
    }

    fn add_violation(&mut self, rule: &Rule, location: Location<'_>) {
        let path = match (rule.path.as_str(), location.path) {
            ("", path) => path.to_string(),
            (inner, Path::Root) => inner.to_owned(),
            (inner, path) => format!("{path}.{inner}"),
        };
        let detail = match self.message(rule, location) {
            Ok(detail) => detail,
            Err(stopping) => {
                let kind = location.node.kind.as_str().into();
                let error = FieldError::invalid(path, kind, stopping);
                self.add(rule, location, error);
                self.stopped = true;
                return;
            }
        };
        let error = self.violation(rule, location, path, detail);
        self.add(rule, location, error);
    }

    /// Adds an error, or a warning if the value is unchanged and the rule is not a transition
    /// rule.
    fn add(&mut self, rule: &Rule, location: Location<'_>, error: FieldError) {
        if !rule.uses_old && location.previous.is_unchanged() {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
    }

    fn violation(
        &self,
        rule: &Rule,
        location: Location<'_>,
        path: String,
        detail: String,
    ) -> FieldError {
        let is_composite = matches!(location.node.kind.as_str(), "object" | "array");
        let shows_values = self.version.is_at_least(35);
        let value = if shows_values && !is_composite {
            location.value.clone()
        } else {
            location.node.kind.as_str().into()
        };
        let error = match rule.source.reason.as_deref() {
            Some("FieldValueForbidden") => return FieldError::forbidden(path, detail),
            Some("FieldValueRequired") => return FieldError::required(path, detail),
            Some("FieldValueDuplicate") => FieldError::duplicate(path, value),
            _ => FieldError::invalid(path, value, detail),
        };
        if shows_values && is_composite {
            error.without_value()
        } else {
            error
        }
    }

    /// The message of a rule, or why no further rule may run.
    fn message(&mut self, rule: &Rule, location: Location<'_>) -> Result<String, String> {
        let Some(Ok(program)) = &rule.message else {
            return Ok(rule.plain_message());
        };
        match run_message(
            program,
            &self.message_variables(rule, location),
            &mut self.budget,
        ) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Ok(rule.plain_message()),
            Err(RunError::OutOfBudget) => {
                Err("messageExpression evaluation failed due to \
                 running out of cost budget, no further validation rules will be run"
                    .to_owned())
            }
            Err(_) => {
                let source = crate::quote::Quoted(&rule.source.message_expression);
                Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit \
                     for messageExpression: {source}"
                ))
            }
        }
    }
}

/// Runs a message expression: `None` if its value is not usable, an error only if a limit was
/// exceeded.
fn run_message(
    program: &Program,
    variables: &Variables<'_>,
    budget: &mut Budget,
) -> Result<Option<String>, RunError> {
    match program.run(variables, budget) {
        Ok(value) => Ok(value.as_str().and_then(usable_message)),
        Err(error @ (RunError::CallLimit | RunError::OutOfBudget)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether a text has several lines.
pub(crate) fn has_lines(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.contains(&b'\n') || bytes.contains(&b'\r')
}

/// A message without surrounding space; `None` if it is empty, too long or has several lines.
pub(crate) fn usable_message(text: &str) -> Option<String> {
    let text = text.trim();
    let usable =
        !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    usable.then(|| text.to_owned())
}
