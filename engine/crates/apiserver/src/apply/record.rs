//! The entries of `metadata.managedFields`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::Writer;
use super::compare::Comparison;
use super::conflict::Conflicts;
use super::element::Element;
use super::owned::OwnedFields;
use super::set::FieldSet;
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
struct Entry<'v> {
    fields: OwnedFields<'v>,
    api_version: String,
    /// RFC 3339 in UTC and whole seconds, so that the text order is the time order.
    since: String,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers<'v>(BTreeMap<Id, Entry<'v>>);

impl<'v> Managers<'v> {
    /// The managers recorded in `object`; none if the record is malformed.
    pub(super) fn of(object: &'v Value) -> Self {
        let recorded = &object["metadata"]["managedFields"];
        Self::decode(Cow::Borrowed(recorded)).unwrap_or_default()
    }

    /// The managers that are recorded in these `managedFields`; none if the record is malformed.
    pub(super) fn recorded(entries: Value) -> Self {
        Self::decode(Cow::Owned(entries)).unwrap_or_default()
    }

    /// The managers before an update: those in the new object, `sent`, or else those of the old
    /// one. An empty list or `[{}]` resets them. Managed fields sent to a subresource are ignored.
    pub(super) fn for_update(
        old: Option<&'v Value>,
        sent: Value,
        subresource: &str,
    ) -> Self {
        // A patch leaves them as they are.
        let is_same = old.is_some_and(|old| old["metadata"]["managedFields"] == sent);
        if is_same {
            return Self::recorded(sent);
        }
        let before = || old.map(Self::of).unwrap_or_default();
        if !subresource.is_empty() {
            return before();
        }
        match sent.as_array().map(Vec::as_slice) {
            None => before(),
            Some([]) => Self::default(),
            Some([Value::Object(one)]) if one.is_empty() => Self::default(),
            Some(_) => match Self::decode(Cow::Owned(sent)) {
                Some(managers) if !managers.is_empty() => managers,
                _ => before(),
            },
        }
    }

    fn decode(entries: Cow<'v, Value>) -> Option<Self> {
        let mut all = BTreeMap::new();
        match entries {
            Cow::Borrowed(entries) => {
                for entry in entries.as_array().into_iter().flatten() {
                    let fields = entry.get("fieldsV1").map(Cow::Borrowed);
                    let (id, entry) = Entry::decode(entry, fields)?;
                    all.insert(id, entry);
                }
            }
            Cow::Owned(mut entries) => {
                for entry in entries.as_array_mut().into_iter().flatten() {
                    let fields = entry.get_mut("fieldsV1").map(Value::take);
                    let (id, entry) = Entry::decode(entry, fields.map(Cow::Owned))?;
                    all.insert(id, entry);
                }
            }
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
    ) -> Managers<'static> {
        let owners = self.0.iter().filter(|it| it.1.fields.has_path(field));
        let owners = owners.map(|(id, entry)| {
            let entry = Entry {
                fields: OwnedFields::Set(shown.clone()),
                api_version: resource.api_version(),
                since: entry.since.clone(),
            };
            (id.in_version_of(resource), entry)
        });
        Managers(owners.collect())
    }

    /// Makes the managers of `shown` in `others` the only managers of `field` in an object of
    /// `resource`. New managers get no time.
    pub(super) fn set_field_managers(
        &mut self,
        (field, resource): (&[Element], &Resource),
        others: &Managers<'_>,
        shown: &[Element],
    ) {
        let owners = others.0.iter().filter(|it| it.1.fields.has_path(shown));
        let owners = owners.map(|it| it.0.in_version_of(resource));
        let owners: BTreeSet<Id> = owners.collect();
        let mut set = FieldSet::default();
        set.insert_path(field);
        for (id, entry) in &mut self.0 {
            if !owners.contains(&id.in_version_of(resource)) {
                entry.fields.remove(&set);
            }
        }
        self.0.retain(|_, it| !it.fields.is_empty());
        for id in owners {
            let manages = |it: (&Id, &Entry<'_>)| {
                it.0.in_version_of(resource) == id && it.1.fields.has_path(field)
            };
            if !self.0.iter().any(manages) {
                self.extend(&id, set.clone(), resource);
            }
        }
    }

    /// Whether `id` manages a path, and no other manager does.
    pub(super) fn is_only_manager(&self, id: &Id, path: &[Element]) -> bool {
        let owners = self.0.iter().filter(|it| it.1.fields.has_path(path));
        owners.map(|it| it.0).eq([id])
    }

    pub(super) fn set_of(&self, id: &Id) -> FieldSet {
        let found = self.0.get(id).map(|it| it.fields.set());
        found.map(Cow::into_owned).unwrap_or_default()
    }

    /// The union of the fields of all managers.
    pub(super) fn all_fields(&self) -> FieldSet {
        let sets = self.0.values().map(|it| it.fields.set());
        sets.fold(FieldSet::default(), |all, it| all.union(it.into_owned()))
    }

    /// Replaces the fields that `id` owns with `set`.
    pub(super) fn replace(&mut self, id: &Id, set: FieldSet, resource: &Resource) {
        let entry = self.0.entry(id.clone()).or_default();
        entry.fields = OwnedFields::Set(set);
        entry.api_version = resource.api_version();
    }

    /// Adds `set` to the fields that `id` owns.
    pub(super) fn extend(&mut self, id: &Id, set: FieldSet, resource: &Resource) {
        let entry = self.0.entry(id.clone()).or_default();
        entry.fields.extend(set);
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
        let others = self.0.iter();
        let others =
            others.filter(|(id, entry)| *id != writer && entry.fields.may_have_any(&new));
        let mut others: Vec<_> = others.collect();
        // Kubernetes sorts them by their JSON, in which the time precedes a subresource.
        others.sort_by_key(|(id, entry)| {
            let named = (&id.manager, id.operation, &id.api_version);
            (
                named,
                &entry.since,
                id.subresource.is_empty(),
                &id.subresource,
            )
        });
        let mut conflicts = Conflicts::default();
        for (id, entry) in others {
            conflicts.add(id, &entry.fields.set().intersection(&new));
        }
        conflicts
    }

    /// Makes `id` the owner of the fields of `set`, which are among the changed ones. The other
    /// changed fields have no manager any longer; a manager without fields is dropped.
    pub(super) fn update(
        &mut self,
        change: Comparison,
        (id, set): (&Id, FieldSet),
        resource: &Resource,
    ) {
        self.remove_changed_fields(&change, Some(id));
        let gone = change.removed.union(change.modified).union(change.added);
        let gone = gone.difference(&set);
        if set.is_empty() {
            self.remove_fields(id, &gone);
            return;
        }
        let entry = self.0.entry(id.clone()).or_default();
        entry.fields.remove(&gone);
        entry.fields.extend(set);
        entry.api_version = resource.api_version();
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
                    entry.fields.remove(gone);
                }
            }
        }
        self.0.retain(|_, it| !it.fields.is_empty());
    }

    /// Removes `fields` from those that `id` owns.
    pub(super) fn remove_fields(&mut self, id: &Id, fields: &FieldSet) {
        if let Some(entry) = self.0.get_mut(id) {
            entry.fields.remove(fields);
        }
        self.0.retain(|_, it| !it.fields.is_empty());
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
                ancient.fields.extend(entry.fields.into_set());
                ancient.api_version = entry.api_version;
                ancient.since = since;
                count -= 1;
            }
        }
    }

    /// Writes the managers to `object` in Kubernetes' order: applies before updates, then by
    /// time, name, version and subresource.
    pub(super) fn write_to(self, object: &mut Value) {
        super::clear_managed_fields(object);
        if self.0.is_empty() {
            return;
        }
        let mut sorted: Vec<_> = self.0.into_iter().collect();
        sorted.sort_by(|one, other| one.1.place(&one.0).cmp(&other.1.place(&other.0)));
        let entries: Vec<_> = sorted.into_iter().map(|(id, it)| it.encode(id)).collect();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["managedFields"] = entries.into();
    }
}

impl<'v> Entry<'v> {
    /// An entry without its fields, and these. `None` if it is malformed.
    fn decode(entry: &Value, fields: Option<Cow<'v, Value>>) -> Option<(Id, Self)> {
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
        let fields = match fields.filter(|it| !it.is_null()) {
            None => OwnedFields::default(),
            Some(found) => OwnedFields::decode(found)?,
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
        Some((
            id,
            Self {
                fields,
                api_version,
                since,
            },
        ))
    }

    /// What the entry of `id` is sorted by.
    fn place<'a>(
        &'a self,
        id: &'a Id,
    ) -> (Operation, &'a str, &'a str, &'a str, &'a str) {
        let Id {
            manager,
            operation,
            subresource,
            ..
        } = id;
        (
            *operation,
            &self.since,
            manager,
            &self.api_version,
            subresource,
        )
    }

    fn encode(self, id: Id) -> Value {
        let mut value = json!({
            "manager": id.manager,
            "operation": id.operation.as_str(),
            "apiVersion": self.api_version,
        });
        if !self.since.is_empty() {
            value["time"] = self.since.into();
        }
        value["fieldsType"] = "FieldsV1".into();
        value["fieldsV1"] = self.fields.encode();
        if !id.subresource.is_empty() {
            value["subresource"] = id.subresource.into();
        }
        value
    }
}
