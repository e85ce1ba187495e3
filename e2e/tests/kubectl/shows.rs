//! The output of kubectl for machines: columns, fields, and the whole scenario.

use insta::assert_snapshot;

use super::IN_WINDOW;
use super::session::Session;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(get_shows_what_matters_in_columns).with_kubectl(),
    promise!(explain_shows_the_description_of_a_field).with_kubectl(),
    promise!(describe_shows_spec_status_and_events).with_kubectl(),
];

async fn get_shows_what_matters_in_columns() {
    let session = Session::with_worker(IN_WINDOW).await;
    session.cluster.advance_to("2026-03-06T15:30:00Z").await;
    assert_snapshot!(session.kubectl("get sm").await, @r"
    NAME     PHASE    READY   REASON           CLUSTER              NODE     NEXT                   AGE
    worker   Active   True    MachineRunning   production-cluster   worker   2026-03-06T23:00:00Z   30m
    ");
    assert_snapshot!(session.kubectl("get scheduledmachines -o wide").await, @r#"
    NAME     PHASE    READY   REASON           CLUSTER              NODE     NEXT                   AGE   STALLED   INSCHEDULE   ENABLED   KILLSWITCH   DAYS          HOURS      CRON   WINDOWS   MESSAGE
    worker   Active   True    MachineRunning   production-cluster   worker   2026-03-06T23:00:00Z   30m             true         true      false        ["mon-fri"]   ["9-17"]                    Node worker is in service until 2026-03-06T23:00:00Z
    "#);
    assert_snapshot!(session.kubectl("get sm,machines,nodes -A").await, @r"
    NAMESPACE   NAME                                      PHASE    READY   REASON           CLUSTER              NODE     NEXT                   AGE
    default     scheduledmachine.5spot.finos.org/worker   Active   True    MachineRunning   production-cluster   worker   2026-03-06T23:00:00Z   30m

    NAMESPACE   NAME                              CLUSTER              NODE NAME   PHASE     AGE
    default     machine.cluster.x-k8s.io/worker   production-cluster   worker      Running   30m

    NAMESPACE   NAME              STATUS   ROLES           AGE   VERSION
                node/sim-node-0   Ready    control-plane   30m   v1.36.0+k0s.0
                node/worker       Ready    <none>          29m   v1.36.0+k0s.0
    ");
    assert_snapshot!(session.kubectl("get fivespot -o name").await, @"scheduledmachine.5spot.finos.org/worker");
    assert_snapshot!(session.kubectl("get sm nobody").await, @r#"
    Error from server (NotFound): scheduledmachines.5spot.finos.org "nobody" not found
    exit status: 1
    "#);
}

async fn explain_shows_the_description_of_a_field() {
    let session = Session::start(IN_WINDOW).await;
    assert_snapshot!(session.kubectl("explain scheduledmachine.spec.schedule").await, @r"
    GROUP:      5spot.finos.org
    KIND:       ScheduledMachine
    VERSION:    v1beta1

    FIELD: schedule <Object>


    DESCRIPTION:
        When the machine runs: daysOfWeek and hoursOfDay, or cron and duration, or
        windows. In addition, exceptions for dates.

    FIELDS:
      apiVersion	<string>
        Group and version of a schedule that the machine follows, instead of
        daysOfWeek, hoursOfDay, cron and windows: spotschedules.5spot.finos.org and
        any version.

      cron	<string>
        Five cron fields (minute, hour, day of month, month, day of week), instead
        of daysOfWeek and hoursOfDay. Each firing opens a window of the given
        duration; adjacent or overlapping windows are merged.

      daysOfWeek	<[]string>
        Days on which the machine runs: mon, tue, wed, thu, fri, sat, sun, ranges
        such as mon-fri or fri-mon, or comma-separated lists of these.

      duration	<string>
        Length of the window that each firing of cron opens, from 1m to 168h; 1h if
        absent. Only allowed with cron.

      enabled	<boolean>
        Whether the schedule is enabled. Disabling it does not remove a running
        machine.

      exceptions	<[]Object>
        Dates on which the schedule does not apply. The first exception that matches
        the local date decides.

      hoursOfDay	<[]string>
        Hours in which the machine runs, both ends included: 9-17 is from 09:00:00
        to 17:59:59. Ranges may cross midnight, such as 22-6, which for a single day
        means its first and its last hours. Entries may be comma-separated lists.

      kind	<string>
        Kind of the schedule that the machine follows: TimeBasedSpotSchedule,
        CapitalMarketsSchedule, or a kind of another provider.

      name	<string>
        Name of the schedule that the machine follows, in the same namespace.

      timezone	<string>
        The IANA time zone of days, hours, cron, windows and exceptions, such as
        Europe/Zurich. At daylight saving time changes, a skipped hour is never
        active and a repeated hour is active twice.

      windows	<[]Object>
        Windows in which the machine runs, instead of daysOfWeek, hoursOfDay and
        cron. Adjacent or overlapping windows are merged.
    ");
}

/// A description without values that differ from run to run.
fn lasting(description: &str) -> String {
    let (object, _) = description.split_once("\nEvents:").unwrap();
    let lines = object.lines().map(|line| {
        let (key, _) = line.split_once(':').unwrap_or((line, ""));
        match key.trim() {
            "UID" | "Resource Version" => format!("{key}:  (differs)\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

async fn describe_shows_spec_status_and_events() {
    let session = Session::with_worker(IN_WINDOW).await;
    session.cluster.advance_to("2026-03-06T15:30:00Z").await;
    let description = session.kubectl("describe sm worker").await;
    let (_, status) = description.split_once("\nStatus:\n").unwrap();
    assert_snapshot!(lasting(status), @r"
      Bootstrap Ref:
        API Version:  bootstrap.cluster.x-k8s.io/v1beta1
        Kind:         K0sWorkerConfig
        Name:         worker
        Namespace:    default
        UID:  (differs)
      Cluster Name:   production-cluster
      Conditions:
        Last Transition Time:  2026-03-06T15:00:12Z
        Message:               Node worker is in service until 2026-03-06T23:00:00Z
        Observed Generation:   1
        Reason:                MachineRunning
        Status:                True
        Type:                  Ready
        Last Transition Time:  2026-03-06T15:00:00Z
        Message:               open until 2026-03-06T23:00:00Z
        Observed Generation:   1
        Reason:                ScheduleActive
        Status:                True
        Type:                  Scheduled
        Last Transition Time:  2026-03-06T15:00:00Z
        Message:               the schedule can be evaluated
        Observed Generation:   1
        Reason:                Valid
        Status:                True
        Type:                  ScheduleValid
        Last Transition Time:  2026-03-06T15:00:00Z
        Message:               all objects that the spec refers to exist
        Observed Generation:   1
        Reason:                Valid
        Status:                True
        Type:                  ReferencesValid
        Last Transition Time:  2026-03-06T15:00:12Z
        Message:
        Observed Generation:   1
        Reason:                Ready
        Status:                True
        Type:                  MachineReady
        Last Transition Time:  2026-03-06T15:00:02Z
        Message:               the workload cluster is reachable
        Observed Generation:   1
        Reason:                Connected
        Status:                True
        Type:                  NodeAccess
      In Schedule:             true
      Infrastructure Ref:
        API Version:  infrastructure.cluster.x-k8s.io/v1beta1
        Kind:         RemoteMachine
        Name:         worker
        Namespace:    default
        UID:  (differs)
      Last Provisioning:
        Ready Time:         2026-03-06T15:00:12Z
        Start Time:         2026-03-06T15:00:00Z
      Last Scheduled Time:  2026-03-06T15:00:00Z
      Machine Ref:
        API Version:    cluster.x-k8s.io/v1beta2
        Kind:           Machine
        Name:           worker
        Namespace:      default
        UID:  (differs)
      Message:          Node worker is in service until 2026-03-06T23:00:00Z
      Next Cleanup:     2026-03-06T23:00:00Z
      Next Transition:  2026-03-06T23:00:00Z
      Node Ref:
        API Version:        v1
        Kind:               Node
        Name:               worker
        UID:  (differs)
      Observed Generation:  1
      Phase:                Active
      Provider ID:          remote-machine://worker.example:22
      Ready:                true
      Spec Hash:            8266429dd92da7d81f33349c2e4bb5fe3ce2c875894e3372c12d9e7256d7086a
      Usage:
        Accounted State:  Active
        Accounted Time:   2026-03-06T15:00:12Z
        Months:
          Active Seconds:        0
          Late Seconds:          12
          Month:                 2026-03
          Provisioning Seconds:  12
          Reclaims:              0
          Wanted Seconds:        12
        Start Time:              2026-03-06T15:00:00Z
    ");
    let (_, events) = description.split_once("\nEvents:").unwrap();
    for event in [
        "Pending: creating Machine worker",
        "Pending -> Active: Node worker is in service until 2026-03-06T23:00:00Z",
    ] {
        assert!(events.contains(event), "{events}");
    }
}
