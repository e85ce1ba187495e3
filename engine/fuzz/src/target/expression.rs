//! Expressions and regular expressions.

use kubemu_cel::{Bounds, Budget, Dialect, Env, ObjectType, Program, Type, Variables};
use kubemu_gostd::regexp::Pattern;
use serde_json::json;

use super::sample;

pub(super) const WORDS: &[&str] = &[
    "self",
    "object",
    "x",
    ".a",
    ".c",
    "[0]",
    "[?1]",
    ".?d",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    "1",
    "-9223372036854775808",
    "2u",
    "1.5",
    "1e400",
    "'s'",
    "b'b'",
    "null",
    "true",
    " in ",
    " == ",
    " < ",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " && ",
    " || ",
    "!",
    ".all(i, ",
    ".exists(i, ",
    ".exists_one(i, ",
    ".map(i, ",
    ".filter(i, ",
    ".transformMap(k, v, ",
    ".transformList(k, v, ",
    "i",
    "has(self.a)",
    "size(",
    ".size()",
    "dyn(",
    "string(",
    "int(",
    "duration('1h')",
    "timestamp('2026-01-01T00:00:00Z')",
    ".getHours('Europe/Zurich')",
    ".matches('a+')",
    ".split('')",
    ".orValue(",
    "optional.of(",
    ".optMap(i, ",
    ".optFlatMap(i, ",
    "quantity('1Mi')",
    "ip('::1')",
    "cidr('10.0.0.0/8')",
    "url('/a?b=c')",
    "semver('1.2.3')",
    ".format([",
    "'%s %.3e %x'",
    "])",
    ".sum()",
    ".flatten()",
    ".sort()",
    ".substring(1)",
    ".replace('s', 'tt')",
    ".join()",
    ".charAt(",
    ".indexOf('s')",
    "type(",
    "sets.contains([1], ",
    "cel.bind(v, ",
    "\\u00e9",
    "r'\\d'",
    "'''",
    "//",
    ".find('[0-9]+')",
    ".findAll('a')",
    ".lowerAscii()",
];

pub(super) const PATTERN_WORDS: &[&str] = &[
    "\\d",
    "\\w",
    "\\s",
    "\\b",
    "\\pL",
    "\\p{Greek}",
    "\\Q",
    "\\E",
    "\\x{10FFFF}",
    "[",
    "]",
    "[^",
    "[[:alpha:]]",
    "&&",
    "--",
    "~~",
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?P<n>",
    "(?=",
    "(?!",
    "*",
    "+",
    "?",
    "{1,1000}",
    "{1001}",
    "{,3}",
    "|",
    "^",
    "$",
    "\\A",
    "\\z",
    "\\C",
    ".",
    "a-z",
    "-",
    "\\1",
    "*?",
    "++",
];

/// The expressions of the sample, and some expressions with most features of the language.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let rules = sample::expressions();
    let more = [
        "[1, 2, 3].sum() > 5 && x.c.d < 2.0",
        "x.a.map(i, string(i)).join(',').split(',').size() == 3",
        "optional.of(x).?c.?d.orValue(1.0) == 1.5",
        "'%s and %d'.format(['a', 1]) == 'a and 1'",
        "{'a': 1, 'b': [true, null]}.all(k, k in ['a', 'b'])",
        "x.c.transformMap(k, v, v * 2.0)['d'] > 1.0 ? url('/a').getHost() == '' : false",
    ];
    let more = more.into_iter().map(str::to_owned);
    rules
        .into_iter()
        .chain(more)
        .map(String::into_bytes)
        .collect()
}

/// The texts in the expressions of the sample, most of which are patterns, and others.
pub(super) fn patterns() -> Vec<Vec<u8>> {
    let rules = sample::expressions();
    let quoted = rules
        .iter()
        .flat_map(|rule| rule.split('\'').skip(1).step_by(2));
    let more = [
        "(a|b)*c{2,3}[^\\d]$",
        "\\Qa.b\\E[[:^word:]-z]",
        "(?i:x)\\p{Lu}+?",
    ];
    quoted
        .chain(more)
        .map(|text| text.as_bytes().to_vec())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An environment in which every name is declared with type `dyn`.
fn untyped() -> Env {
    let env = Env::new(Dialect::NEWEST);
    ["self", "oldSelf", "object", "oldObject", "x"]
        .into_iter()
        .fold(env, |env, name| env.variable(name, Type::Dyn))
}

/// Compiles without declarations, so that most errors are those of the parser.
pub(super) fn parse(bytes: &[u8]) -> String {
    match Program::compile(&text(bytes), &Env::new(Dialect::OLDEST)) {
        Ok(program) => format!("is {}", program.output_type()),
        Err(errors) => errors.to_string(),
    }
}

/// Compiles with declared types. The cost estimate of a program has a minimum of at most its
/// maximum.
pub(super) fn check(bytes: &[u8]) -> String {
    let item = Type::object(ObjectType::new([("n", Type::Int), ("s", Type::String)]));
    let object = Type::object(ObjectType::new([
        ("a", Type::list(item)),
        ("c", Type::map(Type::Double)),
        ("s", Type::String),
        ("t", Type::Timestamp),
    ]));
    let env = ["self", "oldSelf", "object", "x"]
        .into_iter()
        .fold(Env::new(Dialect::NEWEST), |env, name| {
            env.variable(name, object.clone())
        });
    match Program::compile(&text(bytes), &env) {
        Err(errors) => errors.to_string(),
        Ok(program) => {
            let estimate = program.estimate(&Bounds::list(9, Bounds::of_size(9)));
            assert!(estimate.min <= estimate.max, "{estimate:?}");
            format!(
                "is {} for {}",
                program.output_type(),
                estimate.max.checked_ilog2().unwrap_or(0)
            )
        }
    }
}

/// Two runs give the same value for the same cost, and stop at the limit.
pub(super) fn evaluate(bytes: &[u8]) -> String {
    let Ok(program) = Program::compile(&text(bytes), &untyped()) else {
        return "does not compile".to_owned();
    };
    let object = json!({
        "a": [1, "b", null, {"n": 2}], "c": {"d": 1.5}, "s": "text", "key": "k",
        "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "cron": "0 9 * * 1-5",
    });
    let names = ["self", "oldSelf", "object", "oldObject", "x"];
    let variables = names
        .into_iter()
        .fold(Variables::new(), |all, name| all.json(name, &object));
    let run = || {
        let mut budget = Budget::default();
        let outcome = program.run(&variables, &mut budget);
        let text = match &outcome {
            Ok(value) => format!("{value:?}"),
            Err(error) => error.to_string(),
        };
        (text, budget.spent())
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second, "two runs have different results");
    first.0
}

/// A valid pattern can be matched, and is translated to the same regular expression each time.
pub(super) fn match_pattern(bytes: &[u8]) -> String {
    let pattern = text(bytes);
    match Pattern::new(&pattern) {
        Err(why) => why,
        Ok(compiled) => {
            let again = Pattern::new(&pattern).map(|it| it.as_str().to_owned());
            assert_eq!(
                again.as_deref(),
                Ok(compiled.as_str()),
                "the second translation differs"
            );
            let texts = ["", "mon-fri", "a.b\nc", "é9_", "0-9,18-23"];
            let matched = texts.map(|text| u8::from(compiled.is_match(text)));
            format!(
                "matches {}",
                matched
                    .map(|it| if it == 1 { 'y' } else { 'n' })
                    .iter()
                    .collect::<String>()
            )
        }
    }
}
