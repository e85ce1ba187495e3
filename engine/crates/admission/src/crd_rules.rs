//! `x-kubernetes-validations`: the validation rules of a schema, compiled once and run for each
//! object.

mod bounds;
mod declared;
mod estimate;
pub(crate) mod field_path;
mod run;

use std::cell::OnceCell;
use std::sync::Arc;

use kubemu_cel::{Bounds, CompileErrors, Dialect, Env, Program, Type};

use crate::schema::entries::Entries;
use crate::schema::node::{Node, RuleSource};

pub(crate) use estimate::Estimate;
pub use estimate::RuleCost;
pub(crate) use run::{Run, has_lines, usable_message};

/// The compiled rules of one schema node and of its descendants.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The index of the node among its parent's properties; 0 if it is not a property.
    at: usize,
    pub(crate) own: Vec<Rule>,
    /// Whether any of them is a transition rule.
    use_old: bool,
    /// Whether there are rules on a value that rules cannot see.
    pub(crate) has_unusable: bool,
    /// Whether rules cannot see the node's values. All rules on and below a field of such values
    /// are omitted.
    pub(crate) untyped: bool,
    pub(crate) items: Option<Box<Rules>>,
    pub(crate) additional: Option<Box<Rules>>,
    pub(crate) properties: Entries<Rules>,
}

/// One compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) source: Arc<RuleSource>,
    /// `None` if the rule is empty.
    program: Option<Result<Program, String>>,
    message: Option<Result<Program, String>>,
    uses_old: bool,
    /// The cost estimate.
    pub(crate) estimate: Estimate,
    /// `fieldPath` as errors print it; empty if not set.
    path: String,
}

impl Rules {
    /// Compiles the rules of a schema; `resource` if it is the schema of a whole resource.
    /// `None` if there are no rules.
    pub(crate) fn of(root: &Node, resource: bool, dialect: Dialect) -> Option<Self> {
        if !has_rules(root) {
            return None;
        }
        let context = NodeContext {
            resource,
            is_meta: false,
            times: Some(1),
        };
        Self::compile(root, context, dialect)
    }

    /// Whether any rule runs for an object, in contrast to those below a field without a type.
    pub(crate) fn apply(&self) -> bool {
        let inner = self.items.iter().chain(&self.additional);
        !self.own.is_empty()
            || self.has_unusable
            || inner.into_iter().any(|it| it.apply())
            || self.properties.values().any(|it| !it.untyped && it.apply())
    }

    /// `None` if neither the node nor a descendant has rules, or if rules cannot see the value.
    fn compile(node: &Node, context: NodeContext, dialect: Dialect) -> Option<Self> {
        let within = estimate::times_within(node);
        let times = context.times.zip(within);
        let times = times.map(|(outer, inner)| outer.saturating_mul(inner));
        let compile_as = |child: &Node, is_meta: bool| {
            let context = NodeContext {
                resource: child.embedded,
                is_meta,
                times,
            };
            Self::compile(child, context, dialect)
        };
        let compile = |child: &Node| compile_as(child, false);
        let hides_meta = context.resource && !declared::declares_meta(node);
        let own = compile_own(node, context, dialect);
        let items = node.items.as_deref().and_then(compile);
        let additional = node.additional.schema().and_then(compile);
        let properties: Entries<_> = node
            .properties
            .iter()
            .enumerate()
            .filter_map(|(at, (name, property))| {
                let is_meta = hides_meta && name == "metadata";
                let rules = compile_as(property, is_meta)?;
                Some((name.clone(), Self { at, ..rules }))
            })
            .collect();
        let has_unusable = !node.rules.is_empty() && own.is_empty();
        let is_empty = own.is_empty()
            && !has_unusable
            && items.is_none()
            && additional.is_none()
            && properties.is_empty();
        (!is_empty).then(|| Self {
            at: 0,
            use_old: own.iter().any(|rule| rule.uses_old),
            own,
            has_unusable,
            untyped: !declared::is_visible(node),
            items: items.map(Box::new),
            additional: additional.map(Box::new),
            properties,
        })
    }
}

/// The type of `self` for a rule at the root of a resource's schema, and the bounds of its
/// size.
pub(crate) fn declared_at_root(root: &Node) -> Option<(Type, Bounds)> {
    let declared = declared::of(root, true)?.with_names("selfType");
    Some((declared, bounds::of(root, true)?.bounds))
}

fn has_rules(node: &Node) -> bool {
    !node.rules.is_empty()
        || node.items.as_deref().is_some_and(has_rules)
        || node.additional.schema().is_some_and(has_rules)
        || node.properties.values().any(has_rules)
}

/// The context of a node.
#[derive(Clone, Copy)]
struct NodeContext {
    resource: bool,
    /// Whether it is the `metadata` of a resource, of which rules only see the names.
    is_meta: bool,
    /// The maximum number of its values; `None` if only the size of a request limits it.
    times: Option<u64>,
}

fn compile_own(node: &Node, context: NodeContext, dialect: Dialect) -> Vec<Rule> {
    if node.rules.is_empty() {
        return Vec::new();
    }
    let declared = if context.is_meta {
        Some(declared::meta())
    } else {
        declared::of(node, context.resource)
    };
    let declared_and_bounds = declared.zip(bounds::of(node, context.resource));
    let Some((declared, value)) = declared_and_bounds else {
        return Vec::new();
    };
    let declared = declared.with_names("selfType");
    let env = |old: Type| {
        Env::new(dialect)
            .variable("self", declared.clone())
            .variable("oldSelf", old)
    };
    let (plain, optional) = (OnceCell::new(), OnceCell::new());
    let rules = node.rules.iter().map(|source| {
        let env = if source.optional_old_self == Some(true) {
            optional.get_or_init(|| env(Type::optional(declared.clone())))
        } else {
            plain.get_or_init(|| env(declared.clone()))
        };
        let mut rule = Rule::compile(source, node, env);
        rule.estimate = Estimate::of(&rule, &value, context.times);
        rule
    });
    rules.collect()
}

impl Rule {
    fn compile(source: &Arc<RuleSource>, node: &Node, env: &Env) -> Self {
        let mut rule = Self {
            source: Arc::clone(source),
            program: None,
            message: None,
            uses_old: false,
            estimate: Estimate::default(),
            path: String::new(),
        };
        if source.rule.trim().is_empty() {
            return rule;
        }
        let program =
            compile_to(&source.rule, env, &Type::Bool).map_err(|error| match error {
                RuleCompileError::Syntax(errors) => {
                    rule.uses_old = errors.uses("oldSelf");
                    compilation_failed("", &errors)
                }
                RuleCompileError::Output => {
                    "cel expression must evaluate to a bool".to_owned()
                }
            });
        if let Ok(program) = &program {
            rule.uses_old = program.uses("oldSelf");
            rule.message = Self::compile_message(source, env);
            rule.path = field_path::parse(&source.field_path, node)
                .map(|(path, _)| path)
                .unwrap_or_default();
        }
        rule.program = Some(program);
        rule
    }

    fn compile_message(
        source: &RuleSource,
        env: &Env,
    ) -> Option<Result<Program, String>> {
        if source.message_expression.is_empty() {
            return None;
        }
        let compiled = compile_to(&source.message_expression, env, &Type::String);
        Some(compiled.map_err(|error| match error {
            RuleCompileError::Syntax(errors) => {
                compilation_failed("messageExpression ", &errors)
            }
            RuleCompileError::Output => {
                "messageExpression must evaluate to a string".to_owned()
            }
        }))
    }

    /// The compile error of the rule.
    pub(crate) fn error(&self) -> Option<&str> {
        self.program.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// The compile error of the message expression.
    pub(crate) fn message_error(&self) -> Option<&str> {
        self.message.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// Whether it is a transition rule.
    pub(crate) const fn uses_old(&self) -> bool {
        self.uses_old
    }

    /// The name of the rule in errors that are not its outcome.
    fn name(&self) -> &str {
        if self.source.message.is_empty() {
            self.source.rule.trim()
        } else {
            self.source.message.trim()
        }
    }

    /// The message if the rule evaluates to false and has no usable message expression.
    fn plain_message(&self) -> String {
        if self.source.message.is_empty() {
            format!("failed rule: {}", self.name())
        } else {
            self.name().to_owned()
        }
    }
}

/// The text of compile errors. Errors in the creation of a program, such as an invalid constant
/// pattern, have their own prefix.
pub(crate) fn compilation_failed(of: &str, errors: &CompileErrors) -> String {
    let text = errors.to_string();
    match text.strip_prefix("program instantiation failed") {
        Some(rest) if of.is_empty() => format!("program instantiation failed{rest}"),
        Some(rest) => format!("{of}instantiation failed{rest}"),
        None => format!("{of}compilation failed: {text}"),
    }
}

enum RuleCompileError {
    Syntax(CompileErrors),
    Output,
}

fn compile_to(
    source: &str,
    env: &Env,
    wanted: &Type,
) -> Result<Program, RuleCompileError> {
    let program = Program::compile(source, env).map_err(|errors| {
        // An error of the result type takes precedence over an error in the creation of a
        // program.
        match errors.output_type() {
            Some(found) if found != wanted => RuleCompileError::Output,
            _ => RuleCompileError::Syntax(errors),
        }
    })?;
    if program.output_type() == wanted {
        Ok(program)
    } else {
        Err(RuleCompileError::Output)
    }
}
