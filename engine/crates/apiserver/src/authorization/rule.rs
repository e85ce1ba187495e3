//! One rule of a role.

use serde_json::{Map, Value, json};

use super::action::Action;

/// The permissions of a rule; `*` means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    /// Resource names; empty for all names.
    pub(crate) names: Vec<String>,
    pub(crate) paths: Vec<String>,
}

impl Rule {
    /// Parses a `PolicyRule`; malformed fields count as missing.
    pub(crate) fn read(value: &Value) -> Self {
        let texts = |key: &str| {
            let all = value[key].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            paths: texts("nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        let all = role["rules"].as_array().into_iter().flatten();
        all.map(Self::read).collect()
    }

    /// As a `PolicyRule`, or a rule of a review: empty fields are left out.
    pub(crate) fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (key, texts) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ] {
            if !texts.is_empty() {
                fields.insert(key.to_owned(), json!(texts));
            }
        }
        Value::Object(fields)
    }

    pub(crate) fn allows(&self, action: &Action) -> bool {
        let one_of =
            |all: &[String], one: &str| all.iter().any(|it| it == "*" || it == one);
        if !one_of(&self.verbs, &action.verb) {
            return false;
        }
        if !action.is_about_resource() {
            return self.paths.iter().any(|it| path_matches(it, &action.path));
        }
        let named = self.names.is_empty() || self.names.contains(&action.name);
        named && one_of(&self.groups, &action.group) && self.is_about(action)
    }

    fn is_about(&self, action: &Action) -> bool {
        let combined = action.combined();
        self.resources.iter().any(|it| {
            let everywhere = it.strip_prefix("*/");
            it == "*"
                || *it == combined
                || !action.subresource.is_empty()
                    && everywhere == Some(action.subresource.as_str())
        })
    }

    /// The rule split into parts of one group, resource, verb and name (or path and verb)
    /// each. They are made one by one: three lists of some thousand entries have more parts than
    /// fit into memory, see [`number_of_parts`](Self::number_of_parts).
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> {
        let one = |text: &String| vec![text.clone()];
        let all = self.names.is_empty().then(Vec::new);
        let names = move || all.clone().into_iter().chain(self.names.iter().map(one));
        let of_resources = self.groups.iter().flat_map(move |group| {
            let names = names.clone();
            self.resources.iter().flat_map(move |resource| {
                let names = names.clone();
                self.verbs.iter().flat_map(move |verb| {
                    names().map(move |names| Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        names,
                        paths: Vec::new(),
                    })
                })
            })
        });
        let of_paths = self.paths.iter().flat_map(move |path| {
            self.verbs.iter().map(move |verb| Self {
                verbs: one(verb),
                paths: one(path),
                ..Self::default()
            })
        });
        of_resources.chain(of_paths)
    }

    /// The number of the [`parts`](Self::parts), or the highest one.
    pub(super) fn number_of_parts(&self) -> usize {
        let lists = [&self.groups, &self.resources].map(Vec::len);
        let names = self.names.len().max(1);
        let objects = lists.into_iter().fold(names, usize::saturating_mul);
        let all = objects.saturating_add(self.paths.len());
        all.saturating_mul(self.verbs.len())
    }

    /// Whether this rule allows everything that `part` allows.
    pub(super) fn covers(&self, part: &Self) -> bool {
        let all = |have: &[String], want: &[String]| {
            have.iter().any(|it| it == "*") || want.iter().all(|it| have.contains(it))
        };
        let resource = |want: &String| {
            let below = want.split_once('/').map(|(_, it)| format!("*/{it}"));
            self.resources.contains(want)
                || below.is_some_and(|it| self.resources.contains(&it))
        };
        let resources = self.resources.iter().any(|it| it == "*")
            || part.resources.iter().all(resource);
        let names = self.names.is_empty()
            || !part.names.is_empty()
                && part.names.iter().all(|it| self.names.contains(it));
        let path = |want: &String| self.paths.iter().any(|have| path_matches(have, want));
        all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && resources
            && names
            && part.paths.iter().all(path)
    }

    /// The rule as error messages print it.
    pub(super) fn compact(&self) -> String {
        let list = |texts: &[String]| {
            let quoted: Vec<String> = texts.iter().map(|it| format!("{it:?}")).collect();
            format!("[{}]", quoted.join(" "))
        };
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ]
        .iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| format!("{name}:{}", list(texts)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Whether a path of a rule, which may end in `*`, matches another path.
fn path_matches(pattern: &str, path: &str) -> bool {
    let open = pattern.ends_with('*');
    pattern == path || open && path.starts_with(pattern.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::read(&serde_saphyr::from_str(text).unwrap())
    }

    fn action(verb: &str, combined: &str, name: &str) -> Action {
        let (resource, subresource) = combined.split_once('/').unwrap_or((combined, ""));
        Action {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..Action::default()
        }
    }

    #[test]
    fn a_rule_allows_only_what_it_lists() {
        let pods = rule("{verbs: [get], apiGroups: [''], resources: [pods, '*/scale']}");
        assert!(pods.allows(&action("get", "pods", "x")));
        assert!(pods.allows(&action("get", "things/scale", "x")));
        assert!(!pods.allows(&action("get", "pods/status", "x")));
        assert!(!pods.allows(&action("list", "pods", "")));
        assert!(!pods.allows(&action("get", "scale", "x")));
        let one = rule(
            "{verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [x]}",
        );
        assert!(one.allows(&action("delete", "pods/status", "x")));
        assert!(!one.allows(&action("delete", "pods", "y")));
        assert!(!one.allows(&action("list", "pods", "")));
    }

    #[test]
    fn a_path_with_a_star_matches_the_paths_below() {
        let rule = rule("{verbs: [get], nonResourceURLs: [/healthz, /api/*]}");
        let path = |path: &str| Action {
            verb: "get".to_owned(),
            path: path.to_owned(),
            ..Action::default()
        };
        assert!(rule.allows(&path("/healthz")));
        assert!(rule.allows(&path("/api/v1")));
        assert!(!rule.allows(&path("/healthz/ping")));
        assert!(!rule.allows(&path("/apis")));
    }

    #[test]
    fn a_rule_has_a_part_for_each_combination_however_many_there_are() {
        let small = rule(
            "{verbs: [get, list], apiGroups: ['', apps], resources: [a, b, c],
              resourceNames: [u, v], nonResourceURLs: [/a, /b]}",
        );
        assert_eq!(small.number_of_parts(), 2 * 2 * 3 * 2 + 2 * 2);
        assert_eq!(small.parts().count(), small.number_of_parts());
        let many: Vec<String> = (0..10_000).map(|it| it.to_string()).collect();
        let large = Rule {
            verbs: many.clone(),
            groups: many.clone(),
            resources: many,
            ..Rule::default()
        };
        assert_eq!(large.number_of_parts(), 1_000_000_000_000);
        let verbs: Vec<_> = large.parts().take(3).flat_map(|it| it.verbs).collect();
        assert_eq!(verbs, ["0", "1", "2"]);
    }

    #[test]
    fn a_part_is_covered_only_as_a_whole() {
        let rows = [
            ("{verbs: ['*'], apiGroups: ['*'], resources: ['*']}", true),
            (
                "{verbs: [get, list], apiGroups: [''], resources: [pods]}",
                true,
            ),
            ("{verbs: [get], apiGroups: [''], resources: [pods]}", false),
            (
                "{verbs: [get, list], apiGroups: [''], resources: [pods], resourceNames: [x]}",
                false,
            ),
            (
                "{verbs: [get, list], apiGroups: [apps], resources: [pods]}",
                false,
            ),
        ];
        let requested = rule("{verbs: [list], apiGroups: [''], resources: [pods]}");
        for (held, covers) in rows {
            assert_eq!(rule(held).covers(&requested), covers, "{held}");
        }
    }
}
