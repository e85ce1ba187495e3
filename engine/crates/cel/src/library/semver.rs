//! Semantic versions: from Kubernetes 1.33 on.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::library_value::{LibraryValue, LibraryValueKind};
use super::{Row, Run, global, member, no_such_overload};
use crate::{RunError, Value};
use kubemu_gostd::strconv::Quoted;

/// A semantic version. Build metadata is ignored in comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    /// Major, minor, patch.
    numbers: [u64; 3],
    pre: Vec<Part>,
    build: Option<String>,
}

/// A part of a pre-release; numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

const PAIR: &str = "kubernetes.Semver, kubernetes.Semver -> bool";

pub(super) const ROWS: &[Row] = &[
    global(
        "semver",
        "string_to_semver",
        "string -> kubernetes.Semver",
        semver,
    ),
    global(
        "semver",
        "string_bool_to_semver",
        "string, bool -> kubernetes.Semver",
        semver,
    ),
    global("isSemver", "is_semver_string", "string -> bool", is_semver),
    global(
        "isSemver",
        "is_semver_string_bool",
        "string, bool -> bool",
        is_semver,
    ),
    member("isGreaterThan", "semver_is_greater_than", PAIR, GREATER),
    member("isLessThan", "semver_is_less_than", PAIR, LESS),
    member(
        "compareTo",
        "semver_compare_to",
        "kubernetes.Semver, kubernetes.Semver -> int",
        COMPARE,
    ),
    member("major", "semver_major", "kubernetes.Semver -> int", MAJOR),
    member("minor", "semver_minor", "kubernetes.Semver -> int", MINOR),
    member("patch", "semver_patch", "kubernetes.Semver -> int", PATCH),
];

const GREATER: Run = |args| order(args).map(|order| Value::Bool(order.is_gt()));
const LESS: Run = |args| order(args).map(|order| Value::Bool(order.is_lt()));
const COMPARE: Run = |args| order(args).map(|order| Value::Int(order as i64));
const MAJOR: Run = |args| number(args, 0);
const MINOR: Run = |args| number(args, 1);
const PATCH: Run = |args| number(args, 2);

impl Semver {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let numbers = [
            numeric(major, "major")?,
            numeric(minor, "minor")?,
            numeric(patch, "patch")?,
        ];
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_word) {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    Quoted(part)
                ));
            }
        }
        let pre = pre.into_iter().flat_map(|pre| pre.split('.'));
        Ok(Self {
            numbers,
            pre: pre.map(pre_part).collect::<Result<_, _>>()?,
            build: build.map(str::to_owned),
        })
    }

    /// The normalized form of a version such as `v1.02`: without the prefix and leading zeros,
    /// and with missing parts added.
    fn normalized(text: &str) -> Result<String, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                let trimmed = part.trim_start_matches('0');
                let digits = trimmed.starts_with(|char: char| char.is_ascii_digit());
                match part.len() {
                    0 | 1 => part.to_owned(),
                    _ if digits => trimmed.to_owned(),
                    _ => format!("0{trimmed}"),
                }
            })
            .collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err(
                    "short version cannot contain PreRelease/Build meta data".to_owned()
                );
            }
            parts.resize(3, "0".to_owned());
        }
        Ok(parts.join("."))
    }

    fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            // A pre-release sorts before its release.
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, part) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => number.fmt(f)?,
                Part::Word(word) => f.write_str(word)?,
            }
        }
        match &self.build {
            Some(build) => write!(f, "+{build}"),
            None => Ok(()),
        }
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for Semver {}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn numeric(text: &str, what: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("strconv.ParseUint: parsing \"\": invalid syntax".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {what} number {}",
            Quoted(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        let what = format!("{}{}", what[..1].to_uppercase(), &what[1..]);
        return Err(format!(
            "{what} number must not contain leading zeroes {}",
            Quoted(text)
        ));
    }
    number_in_range(text)
}

fn number_in_range(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let text = Quoted(text);
        format!("strconv.ParseUint: parsing {text}: value out of range")
    })
}

fn pre_part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                Quoted(text)
            ));
        }
        return number_in_range(text).map(Part::Number);
    }
    if text.bytes().all(is_word) {
        return Ok(Part::Word(text.to_owned()));
    }
    Err(format!(
        "Invalid character(s) found in prerelease {}",
        Quoted(text)
    ))
}

fn parsed(args: &[Value<'_>]) -> Result<Result<Semver, String>, RunError> {
    Ok(match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => {
            Semver::parse(text)
        }
        [Value::String(text), Value::Bool(true)] => {
            Semver::normalized(text).and_then(|text| Semver::parse(&text))
        }
        _ => return no_such_overload(),
    })
}

fn semver<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let version = parsed(args)?.map_err(RunError::text)?;
    Ok(Value::Library(LibraryValue(LibraryValueKind::Semver(
        Arc::new(version),
    ))))
}

fn is_semver<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Bool(parsed(args)?.is_ok()))
}

fn argument<'a>(args: &'a [Value<'_>], index: usize) -> Result<&'a Semver, RunError> {
    match args.get(index) {
        Some(Value::Library(LibraryValue(LibraryValueKind::Semver(version)))) => {
            Ok(version)
        }
        _ => no_such_overload(),
    }
}

fn order(args: &[Value<'_>]) -> Result<Ordering, RunError> {
    Ok(argument(args, 0)?.order(argument(args, 1)?))
}

fn number<'v>(args: &[Value<'v>], which: usize) -> Result<Value<'v>, RunError> {
    let numbers = argument(args, 0)?.numbers;
    let number = numbers.get(which).copied().unwrap_or(0);
    // Go converts without a range check.
    Ok(Value::Int(number.cast_signed()))
}
