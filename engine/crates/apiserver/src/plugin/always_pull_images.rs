//! AlwaysPullImages: sets the pull policy of every pod to `Always`, so that its pull credentials
//! are checked.

use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

use super::{Attributes, Plugin, pod};
use crate::state::State;
use crate::status::{Reason, Status};

/// The plugin.
#[derive(Debug)]
pub(super) struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn description(&self) -> &'static str {
        "Sets `imagePullPolicy: Always` in every container of new pods and of new images."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if let Some(pod) = object
            && is_concerned(attributes, pod)
        {
            pod::each_container(pod, |it| {
                it.insert("imagePullPolicy".to_owned(), json!("Always"));
            });
            let volumes = pod.pointer_mut("/spec/volumes");
            let volumes = volumes.and_then(Value::as_array_mut);
            for volume in volumes.into_iter().flatten() {
                if let Some(image) = volume["image"].as_object_mut() {
                    image.insert("pullPolicy".to_owned(), json!("Always"));
                }
            }
        }
        Ok(())
    }

    /// Rejects a pull policy that was changed later, for example by a webhook.
    fn validate(
        &self,
        _cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|it| is_concerned(attributes, it)) else {
            return Ok(());
        };
        let of_container = pod::containers(&pod["spec"]).map(|(path, it)| {
            (format!("{path}.imagePullPolicy"), &it["imagePullPolicy"])
        });
        let volumes = pod::list(&pod["spec"], "volumes").iter().enumerate();
        let volumes = volumes.filter(|(_, it)| it["image"].is_object());
        let of_volume = volumes.map(|(index, it)| {
            let path = format!("spec.volumes[{index}].image.pullPolicy");
            (path, &it["image"]["pullPolicy"])
        });
        let wrong = of_container
            .chain(of_volume)
            .filter(|(_, it)| *it != "Always");
        let refusals = wrong.map(|(path, policy)| {
            let value = policy.as_str().unwrap_or_default();
            let error = FieldError::not_supported(path, value.into(), ["Always"]);
            attributes.forbidden(&error.to_string()).message
        });
        let refusals: Vec<String> = refusals.collect();
        if refusals.is_empty() {
            return Ok(());
        }
        let message = pod::aggregate(&refusals);
        Err(Status::new(500, Reason::Unknown, message))
    }
}

/// Whether the request writes a new pod, or one with an image that it did not have.
fn is_concerned(attributes: &Attributes<'_>, pod: &Value) -> bool {
    let image = |it: &Value| pod::text(it, "image").to_owned();
    let previous = attributes.old_object().map(|old| {
        let all = pod::containers(&old["spec"]).map(|(_, it)| image(it));
        all.collect::<Vec<_>>()
    });
    let is_new = || {
        let mut all = pod::containers(&pod["spec"]);
        previous.is_none_or(|previous| all.any(|(_, it)| !previous.contains(&image(it))))
    };
    attributes.is_about("", "pods") && is_new()
}
