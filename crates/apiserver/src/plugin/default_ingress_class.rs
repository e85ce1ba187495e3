//! DefaultIngressClass: Ingresses that name no class get the default one.

use fivespot_admission::policy::Operation;
use serde_json::Value;

use super::default_storage_class::newest;
use super::{Attributes, Plugin, pod};
use crate::kind::ingress_class;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct DefaultIngressClass;

/// Where the class of an Ingress was named before there was a field for it.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn description(&self) -> &'static str {
        "Gives new Ingresses without a class the default IngressClass, of several the newest."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let is_ingress = attributes.is_about("networking.k8s.io", "ingresses");
        let Some(ingress) = object.filter(|_| creates && is_ingress) else {
            return Ok(());
        };
        let named = ingress["spec"]["ingressClassName"].is_string()
            || ingress["metadata"]["annotations"][ANNOTATION].is_string();
        let resource = GroupResource::new("networking.k8s.io", "ingressclasses");
        let classes = cluster.objects(&resource, None);
        let classes = classes.iter().filter(|it| ingress_class::is_default(it));
        if let Some(class) = newest(classes.map(|it| &**it))
            && !named
        {
            pod::spec(ingress).insert("ingressClassName".to_owned(), class.into());
        }
        Ok(())
    }
}
