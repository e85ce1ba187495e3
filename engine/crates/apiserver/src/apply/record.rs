//! The entries of `metadata.managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::compare::Comparison;
use super::conflict::Conflicts;
use super::element::Element;
use super::set::FieldSet;
use super::{Writer, fields};
use crate::resource::Resource;

/// The maximum number of update managers; the oldest are merged above it.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager name of merged entries.
const ANCIENT: &str = "ancient-changes";

/// The operation by which fields came to be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager; for updates it includes the API version of the write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    manager: String,
    operation: Operation,
    api_version: String,
    subresource: String,
}

impl Id {
    pub(super) fn new(
        writer: &Writer<'_>,
        operation: Operation,
        resource: &Resource,
    ) -> Self {
        let manager = match writer.manager {
            "" => "unknown",
            name => name,
        };
        let api_version = match operation {
            Operation::Apply => String::new(),
            Operation::Update => resource.api_version(),
        };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version,
            subresource: writer.subresource.to_owned(),
        }
    }

    /// The same manager with the API version of another resource.
    fn in_version_of(&self, resource: &Resource) -> Self {
        let mut id = self.clone();
        if id.operation == Operation::Update {
            id.api_version = resource.api_version();
        }
        id
    }

    /// The manager as conflict messages print it.
    pub(super) fn described(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        match self.operation {
            Operation::Apply => text,
            Operation::Update => format!("{text} using {}", self.api_version),
        }
    }
}

/// The managed fields entry of one manager.
#[derive(Clone, Debug, Default, PartialEq)]
struct Entry {
    set: FieldSet,
    api_version: String,
    /// RFC 3339 in UTC and whole seconds, so that the text order is the time order.
    since: String,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers(BTreeMap<Id, Entry>);

impl Managers {
    /// The managers recorded in `object`; none if the record is malformed.
    pub(super) fn of(object: &Value) -> Self {
        Self::decode(&object["metadata"]["managedFields"]).unwrap_or_default()
    }

    /// The managers before an update: those in the new object, or else those of the old one.
    /// An empty list or `[{}]` resets them. Managed fields sent to a subresource are ignored.
    pub(super) fn for_update(
        old: Option<&Value>,
        new: &Value,
        subresource: &str,
    ) -> Self {
        let recorded = old.map(Self::of).unwrap_or_default();
        let sent = &new["metadata"]["managedFields"];
        // A patch leaves them as they are.
        let is_same = old.is_some_and(|old| old["metadata"]["managedFields"] == *sent);
        if !subresource.is_empty() || is_same {
            return recorded;
        }
        match sent.as_array().map(Vec::as_slice) {
            None => recorded,
            Some([]) => Self::default(),
            Some([Value::Object(one)]) if one.is_empty() => Self::default(),
            Some(_) => match Self::decode(sent) {
                Some(managers) if !managers.is_empty() => managers,
                _ => recorded,
            },
        }
    }

    fn decode(entries: &Value) -> Option<Self> {
        let mut all = BTreeMap::new();
        for entry in entries.as_array().map(Vec::as_slice).unwrap_or_default() {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let operation = match entry["operation"].as_str()? {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() || entry["fieldsType"] != "FieldsV1" {
                return None;
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(found) => fields::decode(found)?,
            };
            let id = Id {
                manager: text("manager"),
                operation,
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => api_version.clone(),
                },
                subresource: text("subresource"),
            };
            let since = text("time");
            all.insert(
                id,
                Entry {
                    set,
                    api_version,
                    since,
                },
            );
        }
        Some(Self(all))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The managers of `field`, converted to managers of `shown` in an object of `resource`.
    pub(super) fn of_field(
        &self,
        field: &[Element],
        shown: &FieldSet,
        resource: &Resource,
    ) -> Self {
        let owners = self.0.iter().filter(|it| it.1.set.has_path(field));
        let owners = owners.map(|(id, entry)| {
            let entry = Entry {
                set: shown.clone(),
                api_version: resource.api_version(),
                since: entry.since.clone(),
            };
            (id.in_version_of(resource), entry)
        });
        Self(owners.collect())
    }

    /// Makes the managers of `shown` in `others` the only managers of `field` in an object of
    /// `resource`. New managers get no time.
    pub(super) fn set_field_managers(
        &mut self,
        (field, resource): (&[Element], &Resource),
        others: &Self,
        shown: &[Element],
    ) {
        let owners = others.0.iter().filter(|it| it.1.set.has_path(shown));
        let owners = owners.map(|it| it.0.in_version_of(resource));
        let owners: BTreeSet<Id> = owners.collect();
        let mut set = FieldSet::default();
        set.insert_path(field);
        for (id, entry) in &mut self.0 {
            if !owners.contains(&id.in_version_of(resource)) {
                entry.set.remove(&set);
            }
        }
        self.0.retain(|_, it| !it.set.is_empty());
        for id in owners {
            let manages = |it: (&Id, &Entry)| {
                it.0.in_version_of(resource) == id && it.1.set.has_path(field)
            };
            if !self.0.iter().any(manages) {
                self.extend(&id, set.clone(), resource);
            }
        }
    }

    pub(super) fn set_of(&self, id: &Id) -> Option<&FieldSet> {
        self.0.get(id).map(|it| &it.set)
    }

    /// The union of the fields of all managers.
    pub(super) fn all_fields(&self) -> FieldSet {
        let sets = self.0.values().map(|it| &it.set);
        sets.fold(FieldSet::default(), |all, it| all.union(it.clone()))
    }

    /// Replaces the fields that `id` owns with `set`.
    pub(super) fn replace(&mut self, id: &Id, set: FieldSet, resource: &Resource) {
        let entry = self.0.entry(id.clone()).or_default();
        entry.set = set;
        entry.api_version = resource.api_version();
    }

    /// Adds `set` to the fields that `id` owns.
    pub(super) fn extend(&mut self, id: &Id, set: FieldSet, resource: &Resource) {
        let entry = self.0.entry(id.clone()).or_default();
        entry.set.extend(set);
        entry.api_version = resource.api_version();
    }

    /// Sets the time of the entry of `id` to `now`.
    pub(super) fn set_time(&mut self, id: &Id, now: Timestamp) {
        if let Some(entry) = self.0.get_mut(id) {
            let now = now.to_zoned(TimeZone::UTC);
            entry.since = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        }
    }

    /// The fields with new values that managers other than `writer` own.
    pub(super) fn conflicts(&self, change: &Comparison, writer: &Id) -> Conflicts {
        let new = change.set_values();
        let mut conflicts = Conflicts::default();
        for (id, entry) in &self.0 {
            if id != writer {
                conflicts.add(id, &entry.set.intersection(&new));
            }
        }
        conflicts
    }

    /// Removes the changed fields from every manager except `writer`; a manager without fields
    /// is dropped.
    pub(super) fn remove_changed_fields(
        &mut self,
        change: &Comparison,
        writer: Option<&Id>,
    ) {
        for (id, entry) in &mut self.0 {
            if writer != Some(id) {
                for gone in [&change.modified, &change.added, &change.removed] {
                    entry.set.remove(gone);
                }
            }
        }
        self.0.retain(|_, it| !it.set.is_empty());
    }

    /// Removes `fields` from those that `id` owns.
    pub(super) fn remove_fields(&mut self, id: &Id, fields: &FieldSet) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.set.remove(fields);
        }
        self.0.retain(|_, it| !it.set.is_empty());
    }

    /// Merges the entries of the oldest update managers if there are too many; those of
    /// different versions stay separate.
    pub(super) fn cap_updates(&mut self) {
        let mut updates: Vec<(String, Id)> = self
            .0
            .iter()
            .filter(|it| it.0.operation == Operation::Update)
            .map(|(id, entry)| (entry.since.clone(), id.clone()))
            .collect();
        updates.sort();
        let mut count = updates.len();
        let mut first_of: BTreeMap<String, Id> = BTreeMap::new();
        for (since, id) in updates {
            if count <= MAX_UPDATE_MANAGERS {
                return;
            }
            let version = id.api_version.clone();
            let Some(first) = first_of.get(&version).cloned() else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = Id {
                manager: ANCIENT.to_owned(),
                operation: Operation::Update,
                api_version: version,
                subresource: String::new(),
            };
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(&first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            if id != bucket
                && let Some(entry) = self.0.remove(&id)
            {
                let ancient = self.0.entry(bucket).or_default();
                ancient.set.extend(entry.set);
                ancient.api_version = entry.api_version;
                ancient.since = since;
                count -= 1;
            }
        }
    }

    /// Writes the managers to `object` in Kubernetes' order: applies before updates, then by
    /// time, name, version and subresource.
    pub(super) fn write_to(&self, object: &mut Value) {
        super::clear_managed_fields(object);
        if self.0.is_empty() {
            return;
        }
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by_key(|(id, entry)| {
            (
                id.operation,
                &entry.since,
                &id.manager,
                &entry.api_version,
                &id.subresource,
            )
        });
        let entries: Vec<_> = sorted.into_iter().map(|(id, it)| it.encode(id)).collect();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["managedFields"] = entries.into();
    }
}

impl Entry {
    fn encode(&self, id: &Id) -> Value {
        let mut value = json!({
            "manager": id.manager,
            "operation": id.operation.as_str(),
            "apiVersion": self.api_version,
        });
        if !self.since.is_empty() {
            value["time"] = self.since.as_str().into();
        }
        value["fieldsType"] = "FieldsV1".into();
        value["fieldsV1"] = fields::encode(&self.set);
        if !id.subresource.is_empty() {
            value["subresource"] = id.subresource.as_str().into();
        }
        value
    }
}
