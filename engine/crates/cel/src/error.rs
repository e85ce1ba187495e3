//! Compile errors and evaluation errors, with Kubernetes' error texts.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::Type;

/// Why an expression does not compile: every error found, in order of position.
///
/// Displayed as Kubernetes does:
///
/// ```text
/// ERROR: <input>:1:5: undefined field 'nope'
///  | self.nope
///  | ....^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileErrors {
    pub(crate) source: String,
    pub(crate) errors: Vec<CompileError>,
    /// The results of the type checker, if only the creation of the program failed.
    pub(crate) checked: Option<Checked>,
}

/// The results of the type checker for an expression that no program can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) output: Type,
    pub(crate) variables: Vec<Arc<str>>,
}

/// One error of compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileError {
    /// Line, from 1; 0 if the error has no position.
    pub line: usize,
    /// Column in code points, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl CompileErrors {
    /// An error without a position in the source, of an expression that passed the type
    /// checker.
    pub(crate) fn without_position(error: &RunError, checked: Checked) -> Self {
        let message = format!("program instantiation failed: {error}");
        let error = CompileError {
            line: 0,
            column: 0,
            message,
        };
        Self {
            source: String::new(),
            errors: vec![error],
            checked: Some(checked),
        }
    }

    /// The whole message with Kubernetes' prefix:
    /// `compilation failed: ERROR: <input>:1:5: …`, or `program instantiation failed: …`.
    pub fn message(&self) -> String {
        if self.errors.iter().any(|error| error.line == 0) {
            return self.to_string();
        }
        format!("compilation failed: {self}")
    }

    /// The type of the result, if it is known despite the errors.
    pub fn output_type(&self) -> Option<&Type> {
        self.checked.as_ref().map(|checked| &checked.output)
    }

    /// Whether the expression refers to a variable, as far as that is known.
    pub fn uses(&self, variable: &str) -> bool {
        let checked = self.checked.iter();
        let mut names = checked.flat_map(|checked| &checked.variables);
        names.any(|name| **name == *variable)
    }

    /// Every error found.
    pub fn errors(&self) -> &[CompileError] {
        &self.errors
    }
}

impl std::error::Error for CompileErrors {}

impl fmt::Display for CompileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            if error.line == 0 {
                f.write_str(&error.message)?;
                continue;
            }
            if self.source.is_empty() {
                // cel-go has no line to show, and no column in it.
                write!(f, "ERROR: <input>:1:0: {}", error.message)?;
                continue;
            }
            write!(
                f,
                "ERROR: <input>:{}:{}: {}",
                error.line, error.column, error.message
            )?;
            let Some(line) = self.source.split('\n').nth(error.line.saturating_sub(1))
            else {
                continue;
            };
            // Wide characters get wide dots, so that the caret is below the position.
            write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
            let column = error.column.saturating_sub(1);
            for char in line.chars().chain(std::iter::repeat(' ')).take(column) {
                f.write_str(if char.is_ascii() { "." } else { "．" })?;
            }
            let at = line.chars().nth(column);
            f.write_str(if at.is_none_or(|char| char.is_ascii()) {
                "^"
            } else {
                "＾"
            })?;
        }
        Ok(())
    }
}

/// Why a run returned no value.
///
/// [`RunError::Evaluation`] is absorbed by `&&`, `||` and the like; the other errors end the
/// run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The evaluation failed, such as `no such key: x`.
    #[error("{0}")]
    Evaluation(Cow<'static, str>),
    /// This run exceeded the cost limit per call.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// All runs together exceeded the cost budget.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    OutOfBudget,
    /// An internal error of the API server's evaluator with this message; no operator absorbs
    /// it.
    #[error("internal error: {0}")]
    Internal(&'static str),
}

impl RunError {
    /// No overload accepts the arguments; the message does not contain their types.
    pub(crate) const NO_SUCH_OVERLOAD: Self =
        Self::Evaluation(Cow::Borrowed("no such overload"));

    pub(crate) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Evaluation(text.into())
    }

    /// Whether the error ends the run even inside `&&` or `||`.
    pub(crate) fn ends_run(&self) -> bool {
        !matches!(self, Self::Evaluation(_))
    }

    /// Whether no overload accepts the types of the operands.
    ///
    /// Kubernetes uses a different message for these errors.
    pub fn is_no_such_overload(&self) -> bool {
        matches!(self, Self::Evaluation(text) if text.starts_with("no such overload"))
    }
}
