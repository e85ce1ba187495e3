//! `cargo judge gostd`: compares crates/gostd with Go's standard library.
//!
//! Texts are generated from a seed: almost valid URLs, addresses, numbers, times and patterns. Both
//! evaluate each text, and every answer must be equal, errors included.

use std::error::Error;
use std::path::Path;

use kubemu_gostd::regexp::Pattern;
use kubemu_gostd::strconv::{Quoted, format_float, parse_float, parse_uint};
use kubemu_gostd::time::{self, Duration, Layout};
use kubemu_gostd::url::{self, Mode, Url};
use kubemu_gostd::{base64, netip, pem, unicode};
use serde_json::{Value, json};

use super::almost_valid_text;
use super::oracle::{self, Oracle};
use crate::Faults;
use kubemu_judge::random::Random;

/// What Go returns: a value or the text of an error.
type Outcome = Result<Value, String>;

/// A function of Go, the form of the texts that it is called with, and our port of it.
struct Function {
    name: &'static str,
    form: &'static str,
    ours: fn(&str) -> Outcome,
}

const FUNCTIONS: &[Function] = &[
    Function {
        name: "url.Parse",
        form: "url",
        ours: parse_url,
    },
    Function {
        name: "url.ParseRequestURI",
        form: "url",
        ours: |text| url::check(text).map(|()| json!(true)),
    },
    Function {
        name: "url.QueryUnescape",
        form: "url",
        ours: |text| {
            let decoded = url::unescape(text, Mode::QueryComponent)?;
            Ok(json!(String::from_utf8_lossy(&decoded)))
        },
    },
    Function {
        name: "base64.URLEncoding",
        form: "byte",
        ours: |text| {
            let decoded = base64::decode_url(text)?;
            let digits = decoded.iter().map(|byte| format!("{byte:02x}"));
            Ok(json!(digits.collect::<String>()))
        },
    },
    Function {
        name: "pem.Decode",
        form: "pem",
        ours: |text| {
            let Some((block, rest)) = pem::decode(text.as_bytes()) else {
                return Ok(Value::Null);
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let digits = block.bytes.iter().map(|byte| format!("{byte:02x}"));
            let digits: String = digits.collect();
            Ok(json!([
                text(&block.label),
                block.has_headers,
                digits,
                text(rest)
            ]))
        },
    },
    Function {
        name: "netip.ParseAddr",
        form: "ip",
        ours: |text| {
            let (address, has_zone) = netip::parse(text)?;
            Ok(json!([address.to_string(), has_zone]))
        },
    },
    Function {
        name: "strconv.Quote",
        form: "text",
        ours: |text| Ok(json!(Quoted(text).to_string())),
    },
    Function {
        name: "strconv.ParseFloat",
        form: "number",
        ours: |text| without_unshown_errors(parse_float(text).map(format_float)),
    },
    Function {
        name: "strconv.ParseUint",
        form: "number",
        ours: |text| without_unshown_errors(parse_uint(text).map(|it| it.to_string())),
    },
    Function {
        name: "time.ParseDuration",
        form: "duration",
        ours: |text| {
            without_unshown_errors(Duration::parse(text).map(|it| it.nanos().to_string()))
        },
    },
    Function {
        name: "time.Parse(DateOnly)",
        form: "date",
        ours: |text| parse_time(&time::DATE, text),
    },
    Function {
        name: "time.Parse(no zone)",
        form: "time",
        ours: |text| parse_time(&time::LOCAL_TIME, text),
    },
    Function {
        name: "unicode",
        form: "text",
        ours: |text| {
            let classes = |c| {
                [
                    unicode::is_printable(c),
                    unicode::is_letter(c),
                    unicode::is_letter_or_symbol(c),
                ]
            };
            Ok(json!(text.chars().next().map(classes).as_slice().concat()))
        },
    },
    Function {
        name: "regexp.Compile",
        form: "pattern",
        ours: compile,
    },
];

/// Texts that patterns are matched with, the same as in the Go program.
const SUBJECTS: [&str; 8] = [
    "",
    "a",
    "abc",
    "ABC-1.2",
    "10.0.0.1",
    "é日\n_ \t",
    "x{2}",
    "2024-01-01",
];

/// Most differences that are printed for each function.
const SHOWN: usize = 5;

/// Calls both with `cases` texts for each function and returns where they differ.
///
/// # Errors
/// Go is not installed, or its program cannot be built or fails.
pub(crate) fn run(root: &Path, cases: u64, seed: u64) -> Result<Faults, Box<dyn Error>> {
    let program = oracle::build_package(root, "./gostd", "gostd")?;
    let mut go = Oracle::start(&program)?;
    let mut faults = Faults::new();
    println!("| function | texts | differing |\n|---|---:|---:|");
    for function in FUNCTIONS {
        let mut random = Random::of(seed, 0);
        let mut differing = 0;
        for _ in 0..cases {
            let text = almost_valid_text::near(&mut random, function.form);
            let theirs = go.query(&json!({"function": function.name, "text": text}))?;
            let ours = match (function.ours)(&text) {
                Ok(value) => json!({"value": value}),
                Err(error) => json!({"error": error}),
            };
            if theirs == ours {
                continue;
            }
            differing += 1;
            if differing <= SHOWN {
                let name = function.name;
                faults.push(format!("{name} of {text:?}: Go {theirs}, ours {ours}"));
            }
        }
        println!("| `{}` | {cases} | {differing} |", function.name);
    }
    Ok(faults)
}

fn parse_url(text: &str) -> Outcome {
    let url = Url::parse(text)?;
    Ok(json!([
        url.to_string(),
        url.scheme,
        url.host(),
        url.hostname(),
        url.port(),
        url.escaped_path(),
        url.query,
    ]))
}

/// Error texts that no API server shows are not compared.
fn without_unshown_errors(value: Option<String>) -> Outcome {
    value.map(Value::from).ok_or_else(|| "refused".to_owned())
}

fn parse_time(layout: &Layout, text: &str) -> Outcome {
    let read = layout.read(text)?;
    Ok(json!([
        read.year,
        read.month,
        read.day,
        read.second_of_day,
        read.nanos
    ]))
}

fn compile(pattern: &str) -> Outcome {
    let pattern = Pattern::alone(pattern)?;
    Ok(SUBJECTS.iter().map(|text| pattern.is_match(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_called_with_valid_and_invalid_texts() {
        for function in FUNCTIONS {
            let mut random = Random::of(1, 0);
            let mut texts =
                (0..500).map(|_| almost_valid_text::near(&mut random, function.form));
            assert!(
                texts.any(|it| (function.ours)(&it).is_ok()),
                "{}",
                function.name
            );
            let total = ["strconv.Quote", "unicode", "pem.Decode"];
            let refuses = texts.any(|it| (function.ours)(&it).is_err());
            assert_eq!(
                refuses,
                !total.contains(&function.name),
                "{}",
                function.name
            );
        }
    }
}
