//! What OpenAPI does not have of Go's types: the order of their fields, the structs that fields are
//! embedded by, and the names of types that are no struct.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) name: &'static str,
    pub(crate) is_pointer: bool,
    /// The name in Go, if it is not the name in JSON with an uppercase first letter.
    go_name: Option<&'static str>,
    embedded_by: Option<&'static str>,
    /// The type, if it has a name that OpenAPI does not have.
    named: Option<&'static str>,
}

impl Field {
    fn read(text: &'static str) -> Self {
        let cut = |text: &'static str, mark: char| match text.split_once(mark) {
            Some((left, right)) => (left, Some(right)),
            None => (text, None),
        };
        let (rest, named) = cut(text, '=');
        let (rest, embedded_by) = cut(rest, '@');
        let (rest, go_name) = cut(rest, ':');
        let pointed = rest.strip_prefix('*');
        Self {
            name: pointed.unwrap_or(rest),
            is_pointer: pointed.is_some(),
            go_name,
            embedded_by,
            named,
        }
    }

    /// The name in Go.
    pub(crate) fn go_name(&self) -> String {
        let capital = || {
            let (first, rest) = self.name.split_at_checked(1).unwrap_or_default();
            format!("{}{rest}", first.to_uppercase())
        };
        self.go_name.map_or_else(capital, str::to_owned)
    }
}

/// The fields of each definition, in Go's order. Only errors need it, so it is read with the first
/// one.
static TABLE: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let lines = include_str!("../../schema/go-types.txt").lines();
    let structs = lines.filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.map(Field::read).collect()))
    });
    structs.collect()
});

/// The fields of a definition; none for a type that is no struct.
pub(crate) fn fields(definition: &str) -> &'static [Field] {
    TABLE.get(definition).map(Vec::as_slice).unwrap_or_default()
}

fn field(definition: &str, name: &str) -> Option<&'static Field> {
    fields(definition).iter().find(|it| it.name == name)
}

/// The type of a field of a definition, or of the values at that depth of lists and maps in it.
/// `None` if OpenAPI has its name.
pub(crate) fn named(definition: &str, name: &str, depth: usize) -> Option<&'static str> {
    let all = field(definition, name)?.named?;
    (0..depth).try_fold(all, |it, _| {
        let element = it.strip_prefix("[]");
        let value = || Some(it.strip_prefix("map[")?.split_once(']')?.1);
        element.or_else(value)
    })
}

/// The names of the structs that a field of a definition is embedded by, with dots between them;
/// `None` for its own fields.
pub(super) fn embedding(definition: &str, name: &str) -> Option<&'static str> {
    field(definition, name)?.embedded_by
}

/// The place of a field among those of its definition, in Go's order. `None` for a key of a map.
pub(crate) fn place(definition: &str, name: &str) -> Option<usize> {
    fields(definition).iter().position(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_and_the_names_of_go() {
        let volume = "io.k8s.api.core.v1.PersistentVolumeSpec";
        assert!(place(volume, "capacity") < place(volume, "nfs"));
        assert!(place(volume, "nfs") < place(volume, "accessModes"));
        assert_eq!(place(volume, "unknown"), None);
        assert_eq!(embedding(volume, "nfs"), Some("PersistentVolumeSource"));
        assert_eq!(embedding(volume, "capacity"), None);
        assert_eq!(named(volume, "nfs", 0), None);
        let modes = |depth| named(volume, "accessModes", depth);
        assert_eq!(modes(0), Some("[]v1.PersistentVolumeAccessMode"));
        assert_eq!(modes(1), Some("v1.PersistentVolumeAccessMode"));
        assert_eq!(modes(2), None);
        let data = |depth| named("io.k8s.api.core.v1.Secret", "data", depth);
        assert_eq!(data(0), Some("map[string][]uint8"));
        assert_eq!(data(1), Some("[]uint8"));
        let reference = fields("io.k8s.api.core.v1.ObjectReference").iter();
        let names: Vec<String> = reference.map(Field::go_name).collect();
        let expected = "Kind Namespace Name UID APIVersion ResourceVersion FieldPath";
        assert_eq!(names.join(" "), expected);
        let mode = field(volume, "volumeMode").map(|it| it.is_pointer);
        assert_eq!(mode, Some(true));
    }
}
