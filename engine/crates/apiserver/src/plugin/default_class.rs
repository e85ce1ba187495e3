//! DefaultStorageClass and DefaultIngressClass: set the default class of objects without a class.
//! The two plugins differ only in names.

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::kind::{ingress_class, storage_class};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// A plugin that sets the default class of a resource.
#[derive(Debug)]
pub(super) struct DefaultClass {
    name: &'static str,
    description: &'static str,
    /// The API group of the objects with a class.
    group: &'static str,
    resource: &'static str,
    /// The field of their spec with the class.
    field: &'static str,
    /// The deprecated annotation with the class.
    annotation: &'static str,
    /// The API group of the classes.
    class_group: &'static str,
    class_resource: &'static str,
    is_default: fn(&Value) -> bool,
}

pub(super) const STORAGE: DefaultClass = DefaultClass {
    name: "DefaultStorageClass",
    description: "Sets the default StorageClass in new PersistentVolumeClaims without a \
                  class; if there are several, the newest.",
    group: "",
    resource: "persistentvolumeclaims",
    field: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
    class_group: "storage.k8s.io",
    class_resource: "storageclasses",
    is_default: storage_class::is_default,
};

pub(super) const INGRESS: DefaultClass = DefaultClass {
    name: "DefaultIngressClass",
    description: "Sets the default IngressClass in new Ingresses without a class; if \
                  there are several, the newest.",
    group: "networking.k8s.io",
    resource: "ingresses",
    field: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
    class_group: "networking.k8s.io",
    class_resource: "ingressclasses",
    is_default: ingress_class::is_default,
};

impl Plugin for DefaultClass {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let has_class = attributes.is_about(self.group, self.resource);
        let Some(object) = object.filter(|_| creates && has_class) else {
            return Ok(());
        };
        let named = object["spec"][self.field].is_string()
            || object["metadata"]["annotations"][self.annotation].is_string();
        let resource = GroupResource::new(self.class_group, self.class_resource);
        let classes = cluster.objects(&resource, None);
        let classes = classes.iter().filter(|it| (self.is_default)(it));
        if let Some(class) = newest(classes.map(|it| &**it))
            && !named
        {
            pod::spec(object).insert(self.field.to_owned(), class.into());
        }
        Ok(())
    }
}

/// The name of the newest object; among objects of the same second, the first by name.
fn newest<'a>(all: impl Iterator<Item = &'a Value>) -> Option<String> {
    let age =
        |it: &Value| std::cmp::Reverse(meta::text(it, "creationTimestamp").to_owned());
    let mut all: Vec<_> = all.map(|it| (age(it), meta::name(it).to_owned())).collect();
    all.sort();
    all.into_iter().next().map(|(_, name)| name)
}
