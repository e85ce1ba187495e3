//! The table of mutants.

use super::Mutant;

const PRECEDENCE: &str = "crates/plan/src/decide/precedence.rs";
const SHUTDOWN: &str = "crates/plan/src/decide/shutdown.rs";
const LIB: &str = "crates/plan/src/lib.rs";
const SERVE: &str = "crates/plan/src/decide/serve.rs";
const OWNED: &str = "crates/plan/src/observed/owned.rs";
const DRAIN: &str = "crates/plan/src/decide/drain.rs";
const NODE: &str = "crates/plan/src/observed/node.rs";
const WRITE: &str = "crates/plan/src/act/write.rs";
const MACHINE: &str = "crates/plan/src/decide/machine.rs";
const OVERRIDING: &str = "crates/schedule/src/overriding.rs";
const SPEC: &str = "crates/api/src/scheduled_machine.rs";
const CASE: &str = "crates/plan/src/decide/case.rs";
const CONDITIONS: &str = "crates/plan/src/status/conditions.rs";
const FROM_CACHE: &str = "crates/plan/src/act/from_cache.rs";
const PHASE: &str = "crates/plan/src/status/phase.rs";
const STATUS: &str = "crates/plan/src/status.rs";
const RECLAIM: &str = "crates/plan/src/decide/reclaim.rs";
const TAINT: &str = "crates/plan/src/decide/taint.rs";
const TAINT_CHANGE: &str = "crates/plan/src/decide/taint/change.rs";
const CONDITION: &str = "crates/api/src/condition.rs";
const RECORD: &str = "crates/plan/src/decide/record.rs";
const BACKOFF: &str = "crates/plan/src/act/backoff.rs";
const MEMORY: &str = "crates/plan/src/act/memory.rs";
const LOCATION: &str = "crates/plan/src/observed/location.rs";
const AUDIT: &str = "crates/plan/src/decide/audit.rs";
const HOST: &str = "crates/plan/src/decide/host.rs";
const HOST_CLAIMS: &str = "crates/plan/src/decide/host_claims.rs";
const HOSTS: &str = "crates/plan/src/observed/hosts.rs";
const RESOLVE: &str = "crates/plan/src/decide/resolve.rs";

macro_rules! mutants {
    ($($id:literal, $fault:literal, $file:expr, $find:literal => $replace:literal;)*) => {
        /// Every mutant, in the order of the precedence list.
        pub(crate) const MUTANTS: &[Mutant] = &[$(Mutant {
            id: $id,
            fault: $fault,
            file: $file,
            find: $find,
            replace: $replace,
        }),*];
    };
}

mutants! {
    "pause-of-object-ignored", "acts on an object that is paused", PRECEDENCE,
        "if case.subject.is_paused {" => "if false {";
    "pause-of-cluster-ignored", "acts in a Cluster that is paused", PRECEDENCE,
        "case.cluster().is_some_and(|cluster| cluster.is_paused)" => "false";
    "pause-of-machine-ignored", "acts on a Machine that is paused", PRECEDENCE,
        "machine.is_some_and(|machine| machine.meta.is_paused())" => "false";
    "error-is-terminal", "never leaves the phase Error", LIB,
        "let decision = precedence::decide(&case);"
        => "let decision = if case.subject.status.phase == Some(fivespot_api::Phase::Error) { Decision::Invalid } else { precedence::decide(&case) };";
    "terminated-is-terminal", "does not return to service when the kill switch is cleared", LIB,
        "let decision = precedence::decide(&case);"
        => "let decision = if case.subject.status.phase == Some(fivespot_api::Phase::Terminated) { Decision::Disabled } else { precedence::decide(&case) };";
    "audit-acts", "does in audit mode what it decides", AUDIT,
        "reported.with(release.into_iter().collect())"
        => "reported.with(release.into_iter().chain(outcome.actions).collect())";
    "audit-records-shutdown", "records a shutdown in audit mode", AUDIT,
        "requeues: outcome.requeues," => "requeues: outcome.requeues, shutdown: outcome.shutdown,";
    "audit-releases-early", "removes the finalizer in audit mode while objects exist", AUDIT,
        "        && case.owned.is_gone()\n        && case" => "        && case";
    "audit-keeps-finalizer", "keeps the finalizer of a machine in audit mode", AUDIT,
        "is_released.then(||" => "(false && is_released).then(||";
    "kill-switch-needs-machine", "creates missing objects under the kill switch", PRECEDENCE,
        "is_killed.then_some(Decision::ShutDown(ShutdownReason::KillSwitch))"
        => "(is_killed && case.owned.our_machine().is_some()).then_some(Decision::ShutDown(ShutdownReason::KillSwitch))";
    "half-made-outlives-kill-switch", "reports an unfinished machine as terminated", SHUTDOWN,
        "        Some(machine) => shut_down_machine(case, machine, reason),\n        None => clean_up(case),"
        => "        Some(machine) => shut_down_machine(case, machine, reason),\n        None if reason.is_at_once() => Outcome::of(State::Idle),\n        None => clean_up(case),";
    "kill-switch-ignored", "keeps a machine whose kill switch is set", PRECEDENCE,
        "is_killed.then_some(Decision::ShutDown(ShutdownReason::KillSwitch))"
        => "(is_killed && false).then_some(Decision::ShutDown(ShutdownReason::KillSwitch))";
    "deletion-ignored", "keeps a machine whose ScheduledMachine is deleted", PRECEDENCE,
        "case.subject.is_deleting.then_some(decision)" => "false.then_some(decision)";
    "shutdown-record-forgotten", "makes a new decision while a machine is shut down", PRECEDENCE,
        "(!is_cancelled).then_some(Decision::ShutDown(reason))" => "(!is_cancelled && false).then_some(Decision::ShutDown(reason))";
    "shutdown-not-cancelled", "shuts down a machine whose window has opened again", PRECEDENCE,
        "let is_cancelled = can_be_cancelled" => "let is_cancelled = false && can_be_cancelled";
    "disabled-cancels", "keeps a machine that is shut down when its schedule is disabled", PRECEDENCE,
        "&& case.is_wanted()\n        && case.hold().is_none()"
        => "&& (case.is_wanted() || !case.desired.is_enabled)\n        && case.hold().is_none()";
    "remediation-cancelled", "keeps a machine that failed a health check", PRECEDENCE,
        "!machine.meta.is_deleting && reason != ShutdownReason::Remediation;" => "!machine.meta.is_deleting;";
    "disabled-is-closed", "removes a machine when its schedule is disabled", PRECEDENCE,
        "if !case.desired.is_enabled {" => "if false {";
    "invalid-is-closed", "removes a machine whose schedule is invalid", PRECEDENCE,
        "if case.need.is_none() {\n        return Some(Decision::Invalid);" => "if false {\n        return Some(Decision::Invalid);";
    "always-wanted", "keeps a machine outside its window", PRECEDENCE,
        "is_served.then_some(Decision::Serve)" => "Some(Decision::Serve)";
    "never-replaced", "leaves a machine that failed a health check in service", PRECEDENCE,
        "let is_due = case.is_wanted()" => "let is_due = false && case.is_wanted()";
    "replaced-at-once", "replaces a machine again and again", CASE,
        "created.map(|created| after(created, REMEDIATION_PAUSE))" => "created";
    "deadline-ignored", "lets a blocked drain keep a machine forever", SHUTDOWN,
        "let is_over = reason.is_at_once() || deadline <= case.now;"
        => "let is_over = reason.is_at_once();";
    "grace-ignored", "removes a machine without a drain when its window ends", SHUTDOWN,
        "let is_over = reason.is_at_once() || deadline <= case.now;"
        => "let is_over = true;";
    "no-shutdown-record", "shuts down without a shutdown record", SHUTDOWN,
        "let Some(shutdown) = case.shutdown_record(machine) else {\n        return record_shutdown(case, machine, reason, case.now);\n    };"
        => "let made = Shutdown { machine_uid: machine.meta.uid.clone(), started_at: case.now, deadline: case.now, reason, window_end: None };\n    let shutdown = case.shutdown_record(machine).unwrap_or(&made);";
    "started-in-the-past", "counts the time of a shutdown from before its start", SHUTDOWN,
        "return record_shutdown(case, machine, reason, case.now);"
        => "return record_shutdown(case, machine, reason, after(case.now, SignedDuration::from_mins(-3)));";
    "unadopted-deleted", "deletes a Machine before Cluster API can adopt its objects", SHUTDOWN,
        "if !unadopted.is_empty() && case.now < adoptable_until {" => "if false {";
    "adoption-awaited-for-ever", "keeps a Machine whose objects Cluster API never adopts", SHUTDOWN,
        "if !unadopted.is_empty() && case.now < adoptable_until {" => "if !unadopted.is_empty() {";
    "template-on-removal", "applies the template to a Machine that is created to be deleted", WRITE,
        "Purpose::Removal => MachineTemplate::default()," => "Purpose::Removal => desired.template.clone(),";
    "created-against-the-rules", "creates a Machine from a spec that violates a rule, to delete it", SHUTDOWN,
        "case.desired.is_admissible\n        && matches!" => "matches!";
    "infrastructure-without-machine", "deletes an infrastructure object that no Machine had", SHUTDOWN,
        "Some(infrastructure) if may_get_a_machine(case) => {" => "Some(infrastructure) if false => {";
    "leftovers-kept", "treats leftover objects as deleted", SHUTDOWN,
        "if providers.is_empty() {\n        return Outcome::of(State::Idle);"
        => "if !providers.is_empty() || providers.is_empty() {\n        return Outcome::of(State::Idle);";
    "shutdown-record-not-stored", "reports a shutdown and does not store it", STATUS,
        "status.shutdown = Some(shutdown.clone());" => "";
    "shutdown-record-not-hastened", "removes a machine at once without shortening the recorded deadline", SHUTDOWN,
        "if reason.is_at_once() && shutdown.reason != reason {" => "if false {";
    "shutdown-record-inherited", "applies the shutdown record of an earlier machine to the next one", CASE,
        "stored.filter(|shutdown| shutdown.machine_uid == machine.meta.uid)" => "stored";
    "shorter-deadline-ignored", "ignores an edit that shortens the deadline", CASE,
        "shutdown.deadline.min(due)" => "shutdown.deadline.min(due.max(shutdown.deadline))";
    "longer-deadline-taken", "lets an edit lengthen the deadline", CASE,
        "shutdown.deadline.min(due)" => "shutdown.deadline.max(due)";
    "grace-unbounded", "allows a shutdown of more than a day", RESOLVE,
        ".map(|length| length.min(MAX_TIMEOUT))" => ".map(|length| length.max(MAX_TIMEOUT.min(length)))";
    "refused-kubeconfig-is-empty", "treats a Node without access as empty", DRAIN,
        "if case.now <= after(started, BEGINNING) =>\n        {\n            return Drain::NotOurs;"
        => "if case.now <= after(started, BEGINNING) =>\n        {\n            return Drain::Empty;";
    "transition-not-awaited", "is not requeued at the start and end of windows", LIB,
        "\n        .chain(announced)\n        .chain(later);" => "\n        .chain(later);";
    "never-at-rest", "requeues immediately, again and again", LIB,
        "let requeue_at = requeues.filter(|due| *due > case.now).min();" => "let requeue_at = requeues.chain([case.now]).min();";
    "attempts-shared", "counts the failures of all steps together", MEMORY,
        "let failure = self.failures.get(&step);\n        failure.map_or(0, |failure| failure.attempts)"
        => "let _ = step;\n        self.failures.values().map(|failure| failure.attempts).sum()";
    "override-outlives-its-end", "applies an override that has ended", OVERRIDING,
        "let (start, end) = (of.start_second(), of.end_second());" => "let (start, end) = (of.start_second(), i64::MAX);";
    "hold-ignored", "starts and shuts down a machine that an override holds", PRECEDENCE,
        "case.hold().is_some().then_some(Decision::Hold)"
        => "(case.hold().is_some() && false).then_some(Decision::Hold)";
    "hold-cancels", "cancels a shutdown under a hold", PRECEDENCE,
        "        && case.hold().is_none()\n" => "";
    "lead-time-ignored", "creates a machine only when its window opens", SPEC,
        ".with_lead_time(length(&self.provisioning.lead_time))" => ".with_lead_time(Duration::ZERO)";
    "early-end-ignored", "begins a shutdown only when the window has ended", SPEC,
        "EndPolicy::CompleteByWindowEnd => length(&self.graceful_shutdown_timeout),"
        => "EndPolicy::CompleteByWindowEnd => Duration::ZERO,";
    "window-end-not-recorded", "does not record the end of the window of a shutdown", SHUTDOWN,
        "case.window_end().filter(|_| is_of_schedule)" => "case.window_end().filter(|_| is_of_schedule && false)";
    "deadline-after-window-end", "sets a deadline after the end of the window", SHUTDOWN,
        "deadline: window_end.map_or(deadline, |end| deadline.min(end.max(started)))," => "deadline,";
    "independent-step-blocks", "waits for the taint of a Node before the next step", BACKOFF,
        "} else {\n        !failure.step.is_independent()\n    }" => "} else {\n        true\n    }";
    "retry-not-awaited", "is not requeued when a retry is due", BACKOFF,
        "outcome.requeues.push(failure.retry_at);" => "";
    "children-first", "deletes bootstrap and infrastructure before the Machine", SHUTDOWN,
        "match case.owned.our_machine() {\n        Some(machine) => shut_down_machine(case, machine, reason),"
        => "match case.owned.our_machine() {\n        Some(_) if !case.owned.providers().is_empty() => delete(case, &case.owned.providers()),\n        Some(machine) => shut_down_machine(case, machine, reason),";
    "silence-is-refusal", "gives up a drain when the workload cluster does not respond", DRAIN,
        "        | Access::NotRequested => return unreachable(),\n    }\n    if is_refused" => "        | Access::NotRequested => return Drain::NotOurs,\n    }\n    if is_refused";
    "leaving-is-gone", "treats terminating pods as gone", NODE,
        "!self.is_of_daemon_set && !self.is_mirror && !self.is_finished"
        => "!self.is_of_daemon_set && !self.is_mirror && !self.is_finished && !self.is_deleting";
    "pods-ignored", "treats a Node with pods as empty", DRAIN,
        "if leaving.is_empty() && node.is_unschedulable {" => "if node.is_unschedulable {";
    "refusal-forgotten", "evicts a pod again immediately after a rejection", DRAIN,
        ".filter(|pod| retry_due(case, pod).is_none_or(|due| due <= case.now));\n    actions.extend"
        => ".filter(|_| true);\n    actions.extend";
    "no-time-for-pods", "deletes the pods of a reclaimed host without a grace period", WRITE,
        "grace: 1," => "grace: 0,";
    "delete-instead-of-evict", "deletes pods that a disruption budget protects", WRITE,
        "Call::Evict {\n            uid: pod.uid.clone(),\n        }"
        => "Call::DeletePod {\n            uid: pod.uid.clone(),\n            grace: 30,\n        }";
    "any-node", "changes a Node of that name that is not the Machine's", MACHINE,
        "is_named && machine.provider_id.is_some() && machine.provider_id == node.provider_id"
        => "is_named";
    "node-of-another-touched", "changes a Node that Cluster API assigns to another Machine", MACHINE,
        "        || differs(&claim.machine, of.name)\n" => "        || differs(&claim.machine, of.name) && of.name.is_empty()\n";
    "moved-not-relabelled", "leaves the uid of an earlier object on a Machine that was moved", MACHINE,
        "if case.memory.failure(Step::RelabelMachine).is_none() {" => "if false {";
    "foreign-adopted", "treats every object with the name label as its own", OWNED,
        "\n        && !uid.is_empty()\n        && (meta.is_owned_by(uid) || name::owner_uid(&meta.labels) == Some(uid))"
        => "";
    "leftovers-used-again", "uses objects of an earlier machine", OWNED,
        "*place > 0\n                        || had_machine\n                        || found.meta.is_deleting\n                        || found\n                            .meta\n                            .owners\n                            .iter()\n                            .any(fivespot_capi::Owner::is_machine)"
        => "*place > 0 && !found.kind.is_empty()";
    "old-machine-kept", "treats a Machine that is being deleted as one in service", SERVE,
        "NamedMachine::Ours(machine) if machine.meta.is_deleting => {"
        => "NamedMachine::Ours(machine) if false => {";
    "kind-of-spec-assumed", "looks for its objects only where the current spec places them", LOCATION,
        "for place in recorded.chain([home]) {" => "for place in recorded.filter(|_| false).chain([home]) {";
    "record-not-read", "looks for its objects only where its Machine refers to, if there is one", LOCATION,
        "let recorded = recorded.into_iter().flatten().filter(of_providers);"
        => "let recorded = recorded.into_iter().take(1).flatten().filter(of_providers);";
    "outdated-bootstrap-used", "creates a machine from a bootstrap object of an older spec", SERVE,
        "&& hash_of(outdated) != Some(&case.desired.hash)" => "&& false && outdated.meta.is_deleting";
    "outdated-infrastructure-unreported", "reports a machine with parts of an older spec as up to date", SERVE,
        "let hash = infrastructure\n        .and_then(hash_of)\n        .unwrap_or(&case.desired.hash);"
        => "let hash = &case.desired.hash;";
    "pending-changes-unreported", "does not report that a machine is of an older spec", SERVE,
        "has_pending_changes: is_remade || is_moved," => "has_pending_changes: is_moved && is_remade,";
    "finalizer-dropped-early", "removes the finalizer while the machine exists", LIB,
        "let action = if outcome.state == State::Idle && subject.is_deleting && is_released {"
        => "let action = if subject.is_deleting {";
    "finalizer-never-set", "creates objects without a finalizer", LIB,
        "} else if is_touched && !subject.has_finalizer() {" => "} else if false {";
    "finalizer-set-again", "sets its finalizer in every reconcile", LIB,
        "} else if is_touched && !subject.has_finalizer() {" => "} else if is_touched {";
    "finalizer-never-dropped", "never removes the finalizer", LIB,
        "let action = if outcome.state == State::Idle && subject.is_deleting && is_released {"
        => "let action = if false {";
    "stale-cache-acted-on", "acts on the state of a cache", FROM_CACHE,
        "if case.observed.freshness == Freshness::Live {" => "if case.observed.freshness == Freshness::Live || !outcome.actions.is_empty() {";
    "always-writes", "writes its status in every reconcile", LIB,
        "let status = is_reported.then_some(after);"
        => "let status = (!is_partial && later.is_none()).then_some({ let mut after = after; after.in_schedule = !before.in_schedule; after });";
    "status-before-finalizer", "writes its status only while it has no phase", LIB,
        "let status = is_reported.then_some(after);"
        => "let status = (is_reported && before.phase.is_none()).then_some(after);";
    "ended-from-cache", "ends a shutdown by the state of a cache", FROM_CACHE,
        "&& keeps\n        && after.is_none_or(|after| {\n            ends_nothing(before, after)\n                && (case"
        => "&& (keeps || !keeps)\n        && after.is_none_or(|after| {\n            (ends_nothing(before, after) || true)\n                && (case";
    "created-from-cache", "creates without a live read of the desired state", FROM_CACHE,
        "return Confirmation::Precondition;" => "return Confirmation::NotNeeded;";
    "predecessor-recorded", "records a Machine that only an outdated cache contains", FROM_CACHE,
        "(case.memory.has_created" => "(true";
    "last-edit-ignored", "ignores an edit that it reads directly before a create", RECORD,
        "            && now.generation == self.generation\n" => "";
    "last-pause-ignored", "ignores a pause that it reads directly before a create", RECORD,
        "            && !now.is_paused\n" => "";
    "unrecorded-created", "creates objects that are not recorded", SERVE,
        "if !record::allows_creation(case) {" => "if false {";
    "record-follows-spec", "records the current spec over objects of an earlier one", RECORD,
        "if case.owned.is_gone() {\n            return planned;" => "if case.owned.is_gone() || case.desired.is_enabled {\n            return planned;";
    "record-rewritten-from-cache", "drops a record because a cache contains no object of it", FROM_CACHE,
        "&& (is_first || record.continues(&earlier))" => "&& (is_first || record.continues(&earlier) || true)";
    "end-reported-from-cache", "reports a machine as gone that a cache does not contain yet", FROM_CACHE,
        "    !reports_end\n        && keeps_taints" => "    keeps_taints";
    "uid-not-given", "deletes every object of the name", WRITE,
        "Step::DeleteMachine,\n        Call::Delete {\n            uid: machine.meta.uid.clone(),"
        => "Step::DeleteMachine,\n        Call::Delete {\n            uid: String::new(),";
    "finalizers-unguarded", "overwrites finalizers that were added concurrently", WRITE,
        "\"resourceVersion\": subject.resource_version,\n        \"finalizers\": finalizers,"
        => "\"finalizers\": finalizers,";
    "schedule-unguarded", "disables a schedule that was edited concurrently", WRITE,
        "            \"uid\": subject.uid,\n            \"resourceVersion\": subject.resource_version,"
        => "            \"uid\": subject.uid,";
    "node-unguarded", "overwrites concurrent changes of a Node", WRITE,
        "\"resourceVersion\": node.resource_version,\n        \"annotations\": annotations,"
        => "\"annotations\": annotations,";
    "foreign-annotations-dropped", "removes foreign annotations from the Machine", WRITE,
        "for annotation in [key::EXCLUDE_NODE_DRAINING, key::EXCLUDE_VOLUME_DETACH] {\n        if machine\n            .meta\n            .annotations\n            .get(annotation)\n            .is_some_and(|value| value == OUR_MARK)\n        {"
        => "for annotation in machine.meta.annotations.keys() {\n        if !annotation.starts_with(\"5spot\") {";
    "name-of-its-own", "gives the Machine another name than it looks for", WRITE,
        "name: subject.child().to_owned()," => "name: format!(\"{}-machine\", subject.child()),";
    "foreign-finalizers-dropped", "removes foreign finalizers", WRITE,
        "finalizers.retain(|finalizer| finalizer != name::FINALIZER);" => "finalizers.clear();";
    "owner-label-missing", "creates objects without its labels", WRITE,
        "\"labels\": labels," => "\"labels\": {},";
    "owner-missing", "creates objects that remain when their ScheduledMachine is deleted", WRITE,
        "\"ownerReferences\": [owner(subject, false).json()]," => "\"ownerReferences\": [],";
    "controls-providers", "takes the controller reference that the Machine needs", WRITE,
        "\"ownerReferences\": [owner(subject, false).json()]," => "\"ownerReferences\": [owner(subject, true).json()],";
    "never-created", "creates nothing when a window opens", SERVE,
        "let actions = providers.into_iter().flatten().chain(machine).collect();"
        => "let actions = providers.into_iter().flatten().chain(machine).filter(|_| false).collect();";
    "timeouts-not-passed", "does not pass an edited drain timeout to Cluster API", MACHINE,
        "        drain_timeout: wanted," => "        drain_timeout: wanted.filter(|_| false),";
    "exclusions-stay", "keeps the drain excluded after a cancelled shutdown", SERVE,
        "annotations: write::no_exclusions(machine).annotations,\n        ..machine::timeouts(case, machine)"
        => "..machine::timeouts(case, machine)";
    "cordon-stays", "keeps the Node cordoned after a cancelled shutdown", SERVE,
        ".chain(marked.map(write::uncordon))" => ".chain(marked.filter(|_| false).map(write::uncordon))";
    "foreign-cordon-lifted", "uncordons a Node that an administrator cordoned", SERVE,
        "let marked = node.filter(|node| node.cordon_marker.as_ref() == Some(uid));"
        => "let marked = node.filter(|node| node.is_unschedulable && !uid.is_empty());";
    "foreign-marker-honoured", "uncordons a Node with the marker of another client", SERVE,
        "let marked = node.filter(|node| node.cordon_marker.as_ref() == Some(uid));"
        => "let marked = node.filter(|node| node.cordon_marker.is_some() && !uid.is_empty());";
    "shutdown-record-stays", "keeps the shutdown record after a cancelled shutdown", SERVE,
        "let mut outcome = Outcome {\n        shutdown: ShutdownChange::Clear," => "let mut outcome = Outcome {\n        shutdown: ShutdownChange::Keep,";
    "cluster-going-ignored", "creates a machine for a Cluster that is being deleted", CONDITIONS,
        "if cluster.meta.is_deleting {" => "if false {";
    "cluster-not-ready-ignored", "creates a machine for a Cluster that is not ready", CONDITIONS,
        "(true, false) => \"its control plane is not initialised\"," => "(true, false) => return None,";
    "not-wanted-created", "creates a machine outside its window", SHUTDOWN,
        "        Some(machine) => shut_down_machine(case, machine, reason),\n        None => clean_up(case),"
        => "        Some(machine) => shut_down_machine(case, machine, reason),\n        None if case.owned.is_gone() => crate::decide::serve::serve(case),\n        None => clean_up(case),";
    "inactive-too-early", "reports a machine as gone while it is shut down", PHASE,
        "        State::Terminating(message) => {\n" => "        State::Terminating(message) if case.now < jiff::Timestamp::UNIX_EPOCH || !matches!(decision, Decision::Serve) => (Phase::Inactive, true, Reason::Inactive, message.clone()),\n        State::Terminating(message) => {\n";
    "ready-while-blocked", "reports Ready while no machine can be created", PHASE,
        "(blocked(reason), false, reason.clone(), message.clone())"
        => "(blocked(reason), true, reason.clone(), message.clone())";
    "node-stays-on-record", "keeps the Node of a deleted machine in the status", STATUS,
        "if !is_node_awaited(case, outcome) {" => "if false {";
    "machine-stays-on-record", "keeps a deleted Machine in the status", STATUS,
        "        if is_gone {\n            status.machine_ref = None;" => "        if false {\n            status.machine_ref = None;";
    "times-not-kept", "sets a new transition time on every condition", CONDITION,
        "if before.status == next.status.as_str() {" => "if false {";
    "generation-goes-back", "reports an older observed generation", STATUS,
        "status.observed_generation = case.subject.generation;"
        => "status.observed_generation = case.subject.generation.map(|of| if case.desired.is_enabled { of } else { 1 });";
    "generation-kept", "always reports the first observed generation", STATUS,
        "status.observed_generation = case.subject.generation;"
        => "status.observed_generation = status.observed_generation.or(case.subject.generation);";
    "reclaim-ignored", "keeps a host that its owner reclaims", PRECEDENCE,
        "is_reclaimed.then_some(Decision::ShutDown(ShutdownReason::Reclaim))"
        => "(is_reclaimed && false).then_some(Decision::ShutDown(ShutdownReason::Reclaim))";
    "reclaim-not-disabled", "uses a host again that was reclaimed", RECLAIM,
        "if !switching.is_empty() && !has_failed_to_switch_off(case) {" => "if false {";
    "reclaim-waits-for-schedule", "keeps a host until its schedule is disabled", RECLAIM,
        "if !switching.is_empty() && !has_failed_to_switch_off(case) {" => "if !switching.is_empty() {";
    "disabled-only-on-record", "records that a schedule is disabled, but leaves it enabled", RECLAIM,
        "stop.into_iter().chain(record).collect()"
        => "stop.into_iter().filter(|_| false).chain(record).collect()";
    "reclaim-request-kept", "keeps the request on a Node that joined with it", RECLAIM,
        "is_stale.then(|| write::clear_request(node))" => "(is_stale && false).then(|| write::clear_request(node))";
    "brought-request-obeyed", "reclaims a host for a request that its Node joined with", RECLAIM,
        "has_joined(case, machine, node).then_some(reason)" => "Some(reason)";
    "foreign-taint-seized", "overwrites the taint of another client", TAINT_CHANGE,
        "(Some(_), None) => self.conflicts.push(desired.clone())," => "(Some(existing), None) => {\n                existing.value.clone_from(&desired.value);\n                self.ours.push(desired.clone());\n            }";
    "foreign-taint-adopted", "treats the taint of another client as its own", TAINT_CHANGE,
        "(Some(_), None) => self.conflicts.push(desired.clone())," => "(Some(_), None) => self.ours.push(desired.clone()),";
    "record-alone-honoured", "removes a taint that only an annotation on the Node records as ours", TAINT_CHANGE,
        "let ours: Vec<_> = record.iter().filter(is_applied).cloned().collect();"
        => "let ours: Vec<_> = record.iter().filter(|taint| is_applied(taint) || true).cloned().collect();";
    "tainted-before-status", "applies taints that the status does not list yet", TAINT,
        "&& next.is_claimed(&case.subject.status.applied_node_taints);"
        => "&& (next.is_claimed(&case.subject.status.applied_node_taints) || true);";
    "foreign-taints-dropped", "writes the list of taints without foreign taints", TAINT_CHANGE,
        "        taints: node.to_vec()," => "        taints: node.iter().filter(|there| wanted.iter().any(|desired| is_at(there, desired))).cloned().collect(),";
    "taint-not-recorded", "applies taints without recording them on the Node", TAINT_CHANGE,
        "next.record = next.ours.clone();" => "next.record = next.ours.iter().filter(|_| false).cloned().collect();";
    "taint-value-kept", "keeps the old value of an edited taint", TAINT_CHANGE,
        "existing.value.clone_from(&desired.value);" => "";
    "never-tainted", "does not apply the desired taints", TAINT,
        "is_due.then(|| write::taint(node, &next, leaves_at.as_deref()))" => "(is_due && false).then(|| write::taint(node, &next, leaves_at.as_deref()))";
    "host-not-recorded", "creates before the host is recorded", SERVE,
        "HostNeed::Nothing => return None," => "HostNeed::Nothing => return None,\n        HostNeed::Record(_) => return None,";
    "host-forgotten-early", "forgets its host while objects are on it", STATUS,
        "if outcome.host.is_some() || is_gone {" => "if outcome.host.is_some() || is_gone || !is_gone {";
    "host-released-early", "gives a recorded host back while objects are on it", HOST,
        "recorded == Some(&of.host) && (is_own || !is_gone)" => "recorded == Some(&of.host) && (is_own || !is_gone) && case.owned.our_machine().is_some()";
    "host-never-released", "keeps the claim of a host that it does not use", HOST_CLAIMS,
        "outcome.actions.extend(released);" => "outcome.actions.extend(released.filter(|_| false));";
    "host-never-sought", "waits for a host without asking for one", SERVE,
        "seeks_host: true," => "seeks_host: false,";
    "host-outlives-its-machine", "removes the finalizer while a host is claimed", LIB,
        "let is_released = !host::is_held(case);" => "let is_released = !host::is_held(case) || case.subject.is_deleting;";
    "host-lost-by-edit", "removes a machine whose host its class does not have any more", SERVE,
        "NamedMachine::Ours(machine) => keep_running(case, machine)," => "NamedMachine::Ours(_) if host::is_lost(case) => {\n            provisioning(shutdown::delete(case, &case.owned.providers()))\n        }\n        NamedMachine::Ours(machine) => keep_running(case, machine),";
    "removed-host-used", "uses a claim of a host that its class does not have any more", HOSTS,
        "own.find(|of| desired.allows(&of.host));" => "own.find(|of| desired.allows(&of.host) || !of.host.is_empty());";
}
