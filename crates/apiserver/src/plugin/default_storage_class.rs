//! DefaultStorageClass: claims that name no class get the default one.

use fivespot_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::kind::storage_class;
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct DefaultStorageClass;

/// Where the class of a claim was named before there was a field for it.
const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn description(&self) -> &'static str {
        "Gives new PersistentVolumeClaims without a class the default StorageClass, of several \
         the newest."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let is_claim = attributes.is_about("", "persistentvolumeclaims");
        let Some(claim) = object.filter(|_| creates && is_claim) else {
            return Ok(());
        };
        let named = claim["spec"]["storageClassName"].is_string()
            || claim["metadata"]["annotations"][ANNOTATION].is_string();
        let resource = GroupResource::new("storage.k8s.io", "storageclasses");
        let classes = cluster.objects(&resource, None);
        let classes = classes.iter().filter(|it| storage_class::is_default(it));
        if let Some(class) = newest(classes.map(|it| &**it))
            && !named
        {
            pod::spec(claim).insert("storageClassName".to_owned(), class.into());
        }
        Ok(())
    }
}

/// The name of the newest object; of several of one second the first by name.
pub(super) fn newest<'a>(all: impl Iterator<Item = &'a Value>) -> Option<String> {
    let age =
        |it: &Value| std::cmp::Reverse(meta::text(it, "creationTimestamp").to_owned());
    let mut all: Vec<_> = all.map(|it| (age(it), meta::name(it).to_owned())).collect();
    all.sort();
    all.into_iter().next().map(|(_, name)| name)
}
