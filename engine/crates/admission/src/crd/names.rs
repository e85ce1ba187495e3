//! `names`: the names of a resource.

use kubemu_gostd::unicode::to_lower;
use serde_json::Value;

use super::definition::{Definition, SPEC};
use crate::{FieldError, name};

impl Definition<'_> {
    pub(super) fn names(&self, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("names");
        let given = [
            ("plural", self.plural),
            ("singular", &self.singular),
            ("kind", self.kind),
            ("listKind", &self.list_kind),
        ];
        for (field, given) in given {
            if given.is_empty() {
                errors.push(FieldError::required(path.field(field), ""));
            }
        }
        let mixed = "may have mixed case, but should otherwise match: ";
        for (field, given) in given {
            let prefix = if field.ends_with("ind") { mixed } else { "" };
            let wrong = match prefix {
                "" => name::dns_1035_label(given),
                _ => name::dns_1035_label(&to_lower(given)),
            };
            if !given.is_empty() && !wrong.is_empty() {
                let detail = format!("{prefix}{}", wrong.join(","));
                errors.push(FieldError::invalid(path.field(field), given.into(), detail));
            }
        }
        self.labels("shortNames", errors);
        if !self.kind.is_empty() && self.kind == self.list_kind {
            let detail = "kind and listKind may not be the same";
            let path = path.field("listKind");
            errors.push(FieldError::invalid(path, self.kind.into(), detail));
        }
        self.labels("categories", errors);
    }

    fn labels(&self, field: &str, errors: &mut Vec<FieldError>) {
        let path = SPEC.field("names");
        let path = path.field(field);
        let list = self.names.get(field).and_then(Value::as_array);
        for (at, given) in list.into_iter().flatten().enumerate() {
            let given = given.as_str().unwrap_or_default();
            let wrong = name::dns_1035_label(given);
            if !wrong.is_empty() {
                let detail = wrong.join(",");
                errors.push(FieldError::invalid(path.index(at), given.into(), detail));
            }
        }
    }
}
