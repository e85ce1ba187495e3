//! Expressions that are well-typed, except for some.

use super::almost_valid_text;
use super::kind::{Kind, Parameter};
use super::literal::{LITERALS, WRONG};
use super::table::{ANY, TEMPLATES};
use kubemu_judge::random::Random;

/// The forms of texts for a type of literal.
const FORMS: &[(&str, &str)] = &[
    ("string", "text"),
    ("regex", "pattern"),
    ("iptext", "ip"),
    ("cidrtext", "cidr"),
    ("quantitytext", "quantity"),
    ("semvertext", "semver"),
    ("urltext", "url"),
    ("durationtext", "duration"),
    ("timetext", "time"),
    ("zone", "zone"),
];

/// The names that an expression may use, with their types.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    names: Vec<(String, Kind)>,
    /// Boolean expressions about the presence of fields: `has(self.a)`.
    pub(super) presence: Vec<String>,
    fresh: usize,
}

impl Scope {
    pub(super) fn add(&mut self, text: impl Into<String>, kind: Kind) {
        self.names.push((text.into(), kind));
    }

    /// Declares a variable with an unused name.
    fn declare(&mut self, kind: Kind) -> String {
        let name = ["i", "j", "k", "m", "n", "p"][self.fresh % 6];
        let name = format!("{name}{}", self.fresh / 6);
        let name = name.trim_end_matches('0').to_owned();
        self.fresh += 1;
        self.names.push((name.clone(), kind));
        name
    }
}

/// Generates expressions.
pub(super) struct Expressions<'r> {
    pub(super) random: &'r mut Random,
}

impl Expressions<'_> {
    /// A rule about the names in scope; most are valid.
    pub(super) fn rule(&mut self, scope: &Scope) -> String {
        if self.random.chance(3) {
            return self.random.pick(WRONG).to_owned();
        }
        let depth = self.random.between(1, 4);
        let rule = self.of(&Kind::plain("bool"), scope, depth);
        if self.random.chance(1) {
            return self.broken(&rule);
        }
        if !scope.presence.is_empty() && self.random.chance(30) {
            let presence = self.random.pick(&scope.presence);
            return match self.random.below(3) {
                0 => format!("!{presence} || {rule}"),
                1 => format!("{presence} && {rule}"),
                _ => format!("{presence} ? {rule} : true"),
            };
        }
        rule
    }

    /// An expression of a type with at most this nesting depth.
    pub(super) fn of(&mut self, kind: &Kind, scope: &Scope, depth: usize) -> String {
        // Sometimes a wrong type.
        let other = Kind::read(self.random.pick(ANY));
        let kind = if self.random.below(250) == 0 {
            &other
        } else {
            kind
        };
        let mut named: Vec<&str> = scope
            .names
            .iter()
            .filter(|(_, own)| own == kind)
            .map(|(text, _)| text.as_str())
            .collect();
        if kind.is("bool") {
            named.extend(scope.presence.iter().map(String::as_str));
        }
        let literal = literals(kind);
        let name_odds = if depth == 0 { 70 } else { 30 };
        if !named.is_empty() && self.random.chance(name_odds) {
            return self.random.pick(&named).to_owned();
        }
        if !literal.is_empty() && (depth == 0 || self.random.chance(15)) {
            return self.literal(kind, literal);
        }
        self.template(kind, scope, depth)
    }

    fn template(&mut self, kind: &Kind, scope: &Scope, depth: usize) -> String {
        if depth == 0 {
            return self.smallest(kind, scope);
        }
        let fitting: Vec<_> = TEMPLATES
            .iter()
            .filter_map(|template| {
                let (result, text) = template.split_once(" = ")?;
                let parameter = Kind::read(result).unify(kind)?;
                // Templates that fit every type would otherwise crowd out the others.
                Some((text, parameter, result == "T"))
            })
            .collect();
        let (own, any): (Vec<_>, Vec<_>) = fitting.into_iter().partition(|it| !it.2);
        let several = if own.is_empty() || !any.is_empty() && self.random.chance(12) {
            any
        } else {
            own
        };
        if several.is_empty() {
            return self.smallest(kind, scope);
        }
        let (text, parameter, _) = self.random.pick(&several);
        let parameter = match parameter {
            Parameter::Only(kind) => kind,
            Parameter::Any => Kind::read(self.random.pick(ANY)),
        };
        self.fill(text, &parameter, scope, depth - 1)
    }

    /// The simplest expression of a type.
    fn smallest(&mut self, kind: &Kind, scope: &Scope) -> String {
        match kind {
            Kind::List(_) if self.random.chance(20) => "[]".to_owned(),
            Kind::List(of) => format!("[{}]", self.of(of, scope, 0)),
            Kind::Map(of) => format!("{{'a': {}}}", self.of(of, scope, 0)),
            Kind::Optional(of) => format!("optional.of({})", self.of(of, scope, 0)),
            Kind::Plain(_) => match literals(kind) {
                [] => "null".to_owned(),
                some => self.literal(kind, some),
            },
        }
    }

    /// A known literal of a type, or a text that is almost of its form.
    fn literal(&mut self, kind: &Kind, known: &[&str]) -> String {
        match FORMS.iter().find(|(name, _)| kind.is(name)) {
            Some((_, form)) if self.random.chance(25) => {
                almost_valid_text::quoted(&almost_valid_text::near(self.random, form))
            }
            _ => self.random.pick(known).to_owned(),
        }
    }

    fn fill(
        &mut self,
        template: &str,
        parameter: &Kind,
        scope: &Scope,
        depth: usize,
    ) -> String {
        let mut scope = scope.clone();
        let mut filled = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '@']) {
            filled.push_str(&rest[..at]);
            let (mark, after) = rest[at..].split_at(1);
            let word: &str = after
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '(' && c != ')')
                .next()
                .unwrap_or_default();
            let is_slot = mark == "{" && after[word.len()..].starts_with('}');
            if is_slot && !word.is_empty() {
                let kind = Kind::read(word).with(parameter);
                filled.push_str(&self.operand(&kind, &scope, depth));
                rest = &after[word.len() + 1..];
            } else if mark == "@" {
                let kind = Kind::read(word).with(parameter);
                filled.push_str(&scope.declare(kind));
                rest = &after[word.len()..];
            } else {
                filled.push_str(mark);
                rest = after;
            }
        }
        filled + rest
    }

    /// An operand of a larger expression, in parentheses where it needs them.
    fn operand(&mut self, kind: &Kind, scope: &Scope, depth: usize) -> String {
        let text = self.of(kind, scope, depth);
        let is_simple = text
            .chars()
            .all(|c| c.is_alphanumeric() || "_.'()[]\"".contains(c));
        if is_simple || self.random.chance(1) {
            text
        } else {
            format!("({text})")
        }
    }

    /// The text with a character removed, inserted or replaced.
    fn broken(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let at = self.random.below(letters.len());
        let junk = self.random.pick(&[
            '(', ')', '.', '?', '\'', '&', '$', '[', ',', ' ', 'é', '0', '-',
        ]);
        match self.random.below(3) {
            0 if !letters.is_empty() => {
                letters.remove(at);
            }
            1 if !letters.is_empty() => letters[at] = junk,
            _ => letters.insert(at, junk),
        }
        letters.into_iter().collect()
    }
}

fn literals(kind: &Kind) -> &'static [&'static str] {
    let Kind::Plain(name) = kind else {
        return &[];
    };
    LITERALS
        .iter()
        .find(|(own, _)| own == name)
        .map_or(&[], |(_, literals)| literals)
}
