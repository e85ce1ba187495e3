//! The invariants of every scenario.

use fivespot_api::{name, rules};
use fivespot_plan::{Action, Call, Step};
use serde_json::Value;

use super::{NAME, Simulation};

impl Simulation {
    /// Asserts the invariants of one action.
    pub(super) fn check_invariants(&self, action: &Action) {
        let status = self.status();
        let machine = self.get("Machine");
        let target = &action.request.target.object;
        let label = |object: &Value| {
            object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL].clone()
        };
        match action.step {
            Step::DeleteMachine | Step::DeleteBootstrap | Step::DeleteInfrastructure => {
                let found = self
                    .objects
                    .get(&(target.kind.clone(), target.name.clone()));
                if let Some(found) = found {
                    assert_eq!(label(found), NAME, "deletes only what is ours");
                }
                let is_provider = action.step != Step::DeleteMachine;
                let has_machine = machine.is_some_and(|machine| {
                    let is_going = !machine["metadata"]["deletionTimestamp"].is_null();
                    label(machine) == NAME
                        && !(is_going && found.is_none_or(is_unadopted))
                });
                assert!(
                    !(is_provider && has_machine),
                    "an object that a Machine needs is not deleted before it",
                );
                let is_bootstrap = action.step == Step::DeleteBootstrap;
                let is_used = machine.is_some_and(|machine| label(machine) == NAME);
                let has_host = self
                    .get("RemoteMachine")
                    .is_some_and(|host| label(host) == NAME);
                assert!(
                    !(is_bootstrap && is_used && has_host),
                    "a provider may need the bootstrap data to release its host",
                );
            }
            Step::CordonNode | Step::EvictPod | Step::DeletePod | Step::ExcludeDrain => {
                assert!(
                    status.shutdown.is_some(),
                    "nothing is removed before the shutdown record"
                );
            }
            Step::CreateBootstrap | Step::CreateInfrastructure => {
                assert!(
                    !self.sm().spec.kill_switch,
                    "the kill switch creates nothing"
                );
                assert!(self.sm().metadata.deletion_timestamp.is_none());
            }
            Step::RemoveFinalizer if self.releases_stuck => {}
            Step::RemoveFinalizer => {
                for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
                    assert!(
                        self.get(kind).is_none_or(|object| label(object) != NAME),
                        "the finalizer outlives {kind}",
                    );
                }
            }
            Step::AddFinalizer
            | Step::ClaimHost
            | Step::ReleaseHost
            | Step::CreateMachine
            | Step::RelabelMachine
            | Step::UpdateMachine
            | Step::UncordonNode
            | Step::TaintNode
            | Step::LabelNode
            | Step::CreateAgentConfig
            | Step::UpdateAgentConfig
            | Step::DeleteAgentConfig
            | Step::RecordReclaim
            | Step::DisableSchedule
            | Step::CreateOverride
            | Step::EndOverride
            | Step::RecordDisabled
            | Step::ClearRequest => {}
        }
        if let Call::Create(object) = &action.request.call
            && object["kind"] != "ConfigMap"
        {
            let broken = rules::check(self.sm());
            assert!(broken.is_empty(), "nothing is created: {broken:?}");
        }
        if action.step == Step::DeleteMachine {
            assert!(
                status.shutdown.is_some(),
                "every shutdown begins with the shutdown record"
            );
        }
    }
}

/// Whether no Machine owns an object.
fn is_unadopted(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_none_or(|all| all.iter().all(|owner| owner["kind"] != "Machine"))
}
