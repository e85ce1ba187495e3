//! The value of a semantic version.

use std::cmp::Ordering;
use std::fmt;

use kubemu_gostd::strconv::Quoted;

/// A semantic version. Build metadata is ignored in comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    /// Major, minor, patch.
    pub(crate) numbers: [u64; 3],
    pre: Vec<Part>,
    build: Option<String>,
}

/// A part of a pre-release; numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Semver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
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
    pub(crate) fn normalized(text: &str) -> Result<String, String> {
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

    pub(crate) fn order(&self, other: &Self) -> Ordering {
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
