//! Kubernetes' own libraries, in a separate process.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use kubemu_golang as go;

use crate::target;

/// Builds the program, incrementally, and returns its path.
///
/// # Errors
/// Go is not installed, or the build fails.
pub(crate) fn build(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    build_package(root, ".", "oracle")
}

/// Builds a package of the oracle's module into a program of the given name.
///
/// # Errors
/// As for [`build`].
pub(super) fn build_package(
    root: &Path,
    package: &str,
    name: &str,
) -> Result<PathBuf, Box<dyn Error>> {
    let program = target().join("oracle").join(name);
    go::build(&root.join("judge/oracle"), "-s -w", &program, &[package])?;
    Ok(program)
}

/// A running oracle. Dropping it ends the process.
pub(super) struct Oracle {
    program: PathBuf,
    process: Process,
}

impl Oracle {
    pub(super) fn start(program: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            program: program.to_owned(),
            process: Process::start(program)?,
        })
    }

    /// Sends a question and returns the answer. A process ends after an answer with `unanswered`,
    /// and another is started.
    ///
    /// # Errors
    /// The oracle has ended, or the question is malformed.
    pub(super) fn query(&mut self, question: &Value) -> Result<Value, Box<dyn Error>> {
        let answer = self.process.query(question)?;
        if is_unanswered(&answer) {
            self.process = Process::start(&self.program)?;
        }
        Ok(answer)
    }
}

/// Whether the libraries took too long or panicked, so that there is nothing to compare with.
pub(super) fn is_unanswered(answer: &Value) -> bool {
    !answer["unanswered"].is_null()
}

struct Process {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let questions = child.stdin.take();
        let answers = child.stdout.take().ok_or("the oracle has no output")?;
        Ok(Self {
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    fn query(&mut self, question: &Value) -> Result<Value, Box<dyn Error>> {
        let questions = self.questions.as_mut().ok_or("the oracle has ended")?;
        writeln!(questions, "{question}")?;
        questions.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            // The libraries have panicked, and the panic could not be recovered.
            return Ok(json!({"unanswered": "the oracle has ended"}));
        }
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| format!("the oracle answered no JSON: {error}"))?;
        if let Some(why) = answer.get("malformed") {
            return Err(format!("the oracle did not understand: {why}").into());
        }
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.questions = None;
        let _ = self.child.wait();
    }
}
