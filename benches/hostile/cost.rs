//! What one event of a tenant costs the operator, and how late it makes a machine of another
//! tenant. Every object passes the CRDs and policies that are shipped.

use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::child::{Child, Usage};
use crate::management::{
    CLASSES, Management, OTHER, TENANT, collection, deployment_path,
};
use crate::{Args, BoxError};

const SPOT_API_VERSION: &str = "spotschedules.5spot.finos.org/v1alpha1";

/// How long the operator may take to come to rest before the event.
const MAX_SETTLE: Duration = Duration::from_mins(3);
/// Below this share of a core the operator is at rest.
const REST: f64 = 0.04;
/// The distance of the edges of the other tenant.
const BETWEEN_EDGES: SignedDuration = SignedDuration::from_secs(3);
/// The number of edges of the other tenant after an event.
const EDGES: u32 = 9;
/// Dates in each calendar: as many as admission allows.
const DATES: u32 = 400;
/// Exceptions of a machine with calendars: as many as admission allows.
const CALENDARS: u32 = 16;

/// Changes of another provider's schedule.
const FLAPS: u32 = 20;

/// What the overrides of a row target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Every machine of the namespace, by a label.
    Every,
    /// No machine, by a label.
    Nobody,
    /// The first machine, by name.
    First,
}

impl Target {
    /// Whose overrides they are, in words.
    fn as_str(self) -> &'static str {
        match self {
            Self::Every => "of all",
            Self::Nobody => "of none",
            Self::First => "of one machine",
        }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// Nothing but the edges of the other tenant.
    None,
    /// The operator starts: the objects exist before it does.
    Start,
    /// An operator on standby takes over leadership.
    TakeOver,
    /// A machine with this many exceptions, each of a calendar, is created.
    MachineCreated { exceptions: u32 },
    /// Overrides are created.
    OverridesCreated { count: u32, target: Target },
    /// The annotations of one override change.
    OverrideAnnotated,
    /// The one override that is in force ends.
    OverrideEnds,
    /// A tenant comes within a quota of ten machines, with everything at its bound: 16 calendars,
    /// ten machines with as many exceptions, and overrides of all of them.
    TenantComes { overrides: u32 },
    /// The labels of one machine change.
    MachineRelabelled,
    /// A calendar to which every machine refers gets other dates.
    CalendarEdited,
    /// The market that every machine follows loses its early closes.
    SharedEdited,
    /// The schedule of another provider that every machine follows says something else each second.
    ProviderFlaps,
    /// The schedule that every ScheduledCapacity follows opens.
    CapacitiesOpen,
    /// The annotations of ten targets of ScheduledCapacities change.
    TargetsAnnotated,
    /// The class of every machine gets other hosts.
    ClassEdited,
    /// Every machine of a class with rates is to run, by one override.
    ClassRuns,
    /// In each of several namespaces, one override runs twice as many machines as the limit of their
    /// class lets run.
    LimitsReached,
    /// A set of closed machines is scaled from none to this many.
    SetScaled { replicas: u32 },
    /// The provider's side of ten machines' status is overwritten by another client.
    StatusWritten,
}

/// One row: what exists, and what happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    machines: u32,
    /// ScheduledCapacities, each with a Deployment as its target.
    capacities: u32,
    /// Hosts of the class of the machines; without any, they have no class.
    hosts: u32,
    /// Whether the machines of a class are open, so that those without a host wait for one.
    is_open: bool,
    /// How many machines of their class may begin within a minute; 0 if there is no such class.
    rate: u32,
    /// The namespaces with a limit on which the machines are spread; 0 for one namespace without.
    limited: u32,
    /// Exceptions with a calendar of each machine.
    exceptions: u32,
    overrides: u32,
    target: Target,
    event: Event,
    /// How long the event is observed.
    window: Duration,
    /// The CPU time that the event may take beyond that of an idle row, in milliseconds.
    max_cpu: u64,
}

const fn row(machines: u32, overrides: u32, target: Target, event: Event) -> Row {
    Row {
        machines,
        capacities: 0,
        hosts: 0,
        is_open: false,
        rate: 0,
        limited: 0,
        exceptions: 0,
        overrides,
        target,
        event,
        window: Duration::from_secs(30),
        max_cpu: u64::MAX,
    }
}

impl Row {
    const fn minute(mut self) -> Self {
        self.window = Duration::from_mins(1);
        self
    }

    const fn exceptions(mut self, exceptions: u32) -> Self {
        self.exceptions = exceptions;
        self
    }

    const fn capacities(mut self, capacities: u32) -> Self {
        self.capacities = capacities;
        self
    }

    const fn hosts(mut self, hosts: u32) -> Self {
        self.hosts = hosts;
        self
    }

    const fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    const fn rate(mut self, rate: u32) -> Self {
        self.rate = rate;
        self
    }

    const fn limited(mut self, namespaces: u32) -> Self {
        self.limited = namespaces;
        self
    }

    /// The namespace of a machine.
    fn namespace(&self, machine: u32) -> String {
        match machine.checked_rem(self.limited) {
            Some(number) => format!("{TENANT}-{number}"),
            None => TENANT.to_owned(),
        }
    }

    /// How many machines a limited namespace may have.
    fn limit(&self) -> Option<u32> {
        Some(self.machines.checked_div(self.limited)? / 2)
    }

    /// Whether the machines have a class.
    fn has_class(&self) -> bool {
        self.hosts > 0 || self.rate > 0 || self.limited > 0
    }

    const fn within(mut self, millis: u64) -> Self {
        self.max_cpu = millis;
        self
    }

    /// Every row, in the order of the table.
    pub(crate) const ALL: [Self; 28] = [
        row(0, 0, Target::Nobody, Event::None),
        row(0, 0, Target::Nobody, Event::None).minute(),
        row(
            0,
            0,
            Target::Nobody,
            Event::MachineCreated { exceptions: 0 },
        ),
        row(
            0,
            0,
            Target::Nobody,
            Event::MachineCreated {
                exceptions: CALENDARS,
            },
        ),
        row(0, 0, Target::Every, Event::TenantComes { overrides: 2_500 })
            .minute()
            .within(1_000),
        row(10, 2_500, Target::Every, Event::None)
            .exceptions(CALENDARS)
            .minute()
            .within(50),
        row(
            1,
            0,
            Target::First,
            Event::OverridesCreated {
                count: 1_000,
                target: Target::First,
            },
        ),
        row(
            10,
            0,
            Target::Every,
            Event::OverridesCreated {
                count: 1_000,
                target: Target::Every,
            },
        ),
        row(0, 2_500, Target::Nobody, Event::TakeOver),
        row(1_500, 256, Target::Every, Event::TakeOver),
        row(1_500, 256, Target::Every, Event::None).minute(),
        row(1_500, 256, Target::Every, Event::OverrideAnnotated),
        row(1_500, 256, Target::Nobody, Event::MachineRelabelled),
        row(
            1_500,
            0,
            Target::Every,
            Event::OverridesCreated {
                count: 1,
                target: Target::Every,
            },
        ),
        row(1_500, 0, Target::Every, Event::StatusWritten),
        row(1_500, 1, Target::Every, Event::OverrideEnds),
        row(1_500, 0, Target::Nobody, Event::CalendarEdited).exceptions(1),
        row(5_000, 0, Target::Nobody, Event::SharedEdited),
        row(1_500, 0, Target::Nobody, Event::ProviderFlaps),
        row(0, 0, Target::Nobody, Event::CapacitiesOpen).capacities(1_500),
        row(0, 0, Target::Nobody, Event::TargetsAnnotated).capacities(1_500),
        row(1_500, 0, Target::Nobody, Event::ClassEdited).hosts(1_000),
        row(1_500, 0, Target::Nobody, Event::ClassEdited)
            .hosts(10)
            .open(),
        row(1_000, 0, Target::Nobody, Event::ClassRuns)
            .rate(10)
            .minute(),
        row(1_000, 0, Target::Nobody, Event::LimitsReached)
            .limited(50)
            .minute(),
        row(0, 0, Target::Nobody, Event::SetScaled { replicas: 1_000 }),
        row(10_000, 256, Target::Nobody, Event::TakeOver),
        row(10_000, 256, Target::Nobody, Event::Start),
    ];

    /// The state before the event, in words.
    fn state(&self) -> String {
        let mut parts = Vec::new();
        if self.machines > 0 {
            parts.push(format!("{} machines", self.machines));
        }
        if self.capacities > 0 {
            parts.push(format!("{} capacities of a schedule", self.capacities));
        }
        if self.exceptions > 0 {
            parts.push(format!("{} calendars", self.exceptions));
        }
        if self.hosts > 0 {
            let state = if self.is_open { "open, " } else { "" };
            parts.push(format!("{state}a class of {} hosts", self.hosts));
        }
        if self.rate > 0 {
            parts.push(format!("a class with {} starts a minute", self.rate));
        }
        if let Some(limit) = self.limit() {
            let namespaces = self.limited;
            parts.push(format!(
                "{limit} allowed in each of {namespaces} namespaces"
            ));
        }
        if self.event == Event::SharedEdited {
            parts.push("a market that all follow".to_owned());
        }
        if self.event == Event::ProviderFlaps {
            parts.push("a schedule of another provider".to_owned());
        }
        if self.overrides > 0 {
            let of = self.target.as_str();
            parts.push(format!("{} overrides {of}", self.overrides));
        }
        if parts.is_empty() {
            return "empty".to_owned();
        }
        parts.join(", ")
    }

    /// The event, in words.
    fn event(&self) -> String {
        match self.event {
            Event::None => format!("{} s pass", self.window.as_secs()),
            Event::Start => "the operator starts".to_owned(),
            Event::TakeOver => "leadership taken over".to_owned(),
            Event::MachineCreated { exceptions: 0 } => "a machine created".to_owned(),
            Event::MachineCreated { exceptions } => {
                format!("a machine with {exceptions} calendars created")
            }
            Event::OverridesCreated { count, target } => {
                format!("{count} overrides {} created", target.as_str())
            }
            Event::OverrideAnnotated => "an override annotated".to_owned(),
            Event::TenantComes { overrides } => {
                format!("10 machines, {CALENDARS} calendars, {overrides} overrides")
            }
            Event::OverrideEnds => "the override ends".to_owned(),
            Event::MachineRelabelled => "a machine relabelled".to_owned(),
            Event::CalendarEdited => "the calendar edited".to_owned(),
            Event::SharedEdited => "the market edited".to_owned(),
            Event::ProviderFlaps => {
                format!("{FLAPS} changes of the schedule, a second apart")
            }
            Event::CapacitiesOpen => "the schedule opens".to_owned(),
            Event::TargetsAnnotated => "10 targets annotated".to_owned(),
            Event::ClassEdited => "the class edited".to_owned(),
            Event::ClassRuns => "an override runs all".to_owned(),
            Event::LimitsReached => "an override in each runs all".to_owned(),
            Event::SetScaled { replicas } => format!("a set scaled to {replicas}"),
            Event::StatusWritten => "status of 10 machines overwritten".to_owned(),
        }
    }

    /// Whether it shows what the operator uses while no tenant does anything, which the other rows
    /// are compared with.
    pub(crate) fn is_idle(&self) -> bool {
        self.machines == 0 && self.capacities == 0 && self.event == Event::None
    }

    /// Both, as the argument `--only` selects.
    pub(crate) fn name(&self) -> String {
        format!("{}: {}", self.state(), self.event())
    }
}

/// The measurement of one row.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    state: String,
    event: String,
    /// What the operator used from the event to the end of the window.
    usage: Usage,
    /// How long the event was observed.
    window: Duration,
    /// The CPU time beyond that of the idle row of the same window, which has the edges of the other
    /// tenant alone.
    cpu: Duration,
    max_cpu: u64,
    /// The requests of the operator about the tenant.
    requests: u64,
    /// In bytes. `None` if the program has ended.
    memory: Option<u64>,
    health: Duration,
    /// The latest of the other tenant's edges. `None` if one was not served at all.
    wait: Option<Duration>,
    /// The longest time between two renewals of the Lease. `None` if it lapsed.
    lease: Option<Duration>,
    is_settled: bool,
}

impl Cost {
    /// The header of the table.
    pub(crate) fn header() -> String {
        format!(
            "{:<44} {:<44} {:>8} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9}",
            "existing",
            "event",
            "plans",
            "requests",
            "CPU",
            "other",
            "Lease",
            "/healthz",
            "memory"
        )
    }

    /// As one object of the recorded results.
    pub(crate) fn to_value(&self) -> Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        json!({
            "state": self.state,
            "event": self.event,
            "plans": self.usage.plans,
            "requests": self.requests,
            "cpuMillis": millis(self.cpu),
            "latenessMillis": self.wait.map(millis),
            "leaseMillis": self.lease.map(millis),
            "healthMillis": millis(self.health),
            "memoryMib": self.memory.map(|bytes| bytes.div_ceil(1 << 20)),
            "isSettled": self.is_settled,
        })
    }

    /// Why the row is not within its bounds. Empty if it is.
    pub(crate) fn excess(&self) -> Vec<&'static str> {
        let mut excess = crate::excess(self.memory, self.health, self.wait);
        if self.lease.is_none() {
            excess.push("the Lease lapsed");
        }
        if !self.is_settled {
            excess.push("not at rest before the event");
        }
        if self.cpu.as_millis() > u128::from(self.max_cpu) {
            excess.push("CPU");
        }
        excess
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = |time: Duration| format!("{} ms", time.as_millis());
        let memory = self.memory.map_or("ended".to_owned(), |memory| {
            format!("{} MiB", memory.div_ceil(1 << 20))
        });
        write!(
            formatter,
            "{:<44} {:<44} {:>8} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9}",
            self.state,
            self.event,
            self.usage.plans,
            self.requests,
            millis(self.cpu),
            self.wait.map_or("never".to_owned(), millis),
            self.lease.map_or("lapsed".to_owned(), millis),
            millis(self.health),
            memory
        )
    }
}

/// Measures one row. `idle` are the measurements of the idle rows that have been made.
///
/// # Errors
/// The API server refused an object, or the operator did not start.
pub(crate) async fn measure(
    args: &Args,
    row: &Row,
    idle: &[Cost],
) -> Result<Cost, BoxError> {
    let kubeconfig = args.folder.join("management.kubeconfig");
    let management = Management::start(&kubeconfig).await?;
    let clock = Clock::system();
    prepare(&management, row, clock.now()).await?;
    for number in 0..EDGES {
        management
            .create_in(OTHER, "scheduledmachines", other(number))
            .await?;
    }
    let arguments = [
        "--allow-loopback-workload-server",
        "--enable-leader-election",
        "--kubeconfig",
        &kubeconfig.display().to_string(),
    ]
    .map(str::to_owned);
    let log = args.folder.join("operator.log");
    let started = clock.now();
    match row.event {
        Event::Start => add_edges(&management, started).await?,
        Event::TakeOver => management.hold_lease(clock.now()).await?,
        _ => {}
    }
    let mut child = Child::start(args, &args.controller, &arguments, &log).await?;
    let is_settled = row.event == Event::Start || settle(&mut child).await;
    if row.event == Event::OverrideEnds {
        await_end(&management, clock.now()).await?;
    }
    let before = match row.event {
        Event::Start => Usage::default(),
        _ => child.usage().await?,
    };
    let asked = management.requests_about_the_tenant();
    let begun = match row.event {
        Event::Start => started,
        _ => clock.now(),
    };
    let begun_at = Instant::now();
    if row.event != Event::Start {
        add_edges(&management, begun).await?;
    }
    happen(&management, row, begun).await?;
    let left = row.window.saturating_sub(begun_at.elapsed());
    sleep(left).await;
    let memory = child.peak();
    let usage = child
        .usage()
        .await
        .map(|used| used.since(&before))
        .unwrap_or_default();
    let edges: Vec<Timestamp> = (1..=EDGES).map(|number| edge(begun, number)).collect();
    let alone = idle.iter().find(|idle| idle.window == row.window);
    let alone = alone.map_or(Duration::ZERO, |idle| idle.usage.cpu);
    Ok(Cost {
        state: row.state(),
        event: row.event(),
        window: row.window,
        cpu: usage.cpu.saturating_sub(alone),
        usage,
        max_cpu: row.max_cpu,
        requests: management.requests_about_the_tenant() - asked,
        memory,
        health: child.worst_health(),
        wait: management.latest(&edges),
        lease: management.longest_renewal(begun, clock.now()),
        is_settled,
    })
}

/// Waits until the operator uses nearly no CPU. Returns whether it came to that.
async fn settle(child: &mut Child) -> bool {
    let begun = Instant::now();
    let pause = Duration::from_secs(2);
    let mut at_rest = 0;
    while begun.elapsed() < MAX_SETTLE {
        let before = child.cpu();
        sleep(pause).await;
        let used = child.cpu().saturating_sub(before);
        let is_at_rest = used.as_secs_f64() < REST * pause.as_secs_f64();
        at_rest = if is_at_rest { at_rest + 1 } else { 0 };
        if at_rest == 2 {
            return true;
        }
    }
    false
}

/// The instant of the edge of a machine of the other tenant.
fn edge(begun: Timestamp, number: u32) -> Timestamp {
    let number = i32::try_from(number).unwrap_or_default();
    let whole = Timestamp::from_second(begun.as_second()).unwrap_or(begun);
    whole + BETWEEN_EDGES * number
}

/// A closed machine of the other tenant.
fn other(number: u32) -> Value {
    let mut object = fivespot_testkit::scheduled_machine(&format!("other-{number}"));
    object["spec"]["schedule"] = closed();
    object
}

/// A schedule that does not open for months.
fn closed() -> Value {
    json!({"cron": "0 0 29 2 *", "duration": "1m"})
}

/// Opens each machine of the other tenant at its edge, by an override.
async fn add_edges(management: &Management, begun: Timestamp) -> Result<(), BoxError> {
    for number in 0..EDGES {
        let start = edge(begun, number + 1);
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
            "metadata": {"name": format!("edge-{number}")},
            "spec": {
                "targetRef": {"name": format!("other-{number}")}, "mode": "Run",
                "startTime": start.to_string(), "endTime": (start + 1.hour()).to_string(),
            },
        });
        management
            .create_in(OTHER, "scheduleoverrides", object)
            .await?;
    }
    Ok(())
}

/// The objects of the tenant before the event.
async fn prepare(
    management: &Management,
    row: &Row,
    now: Timestamp,
) -> Result<(), BoxError> {
    let created = match row.event {
        Event::MachineCreated { exceptions } => exceptions,
        _ => 0,
    };
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    for number in 0..row.exceptions.max(created) {
        management
            .create_in(TENANT, "schedulecalendars", calendar(number, today)?)
            .await?;
    }
    if row.event == Event::SharedEdited {
        let market = market(today)?;
        management
            .create_in(TENANT, "capitalmarketsschedules", market)
            .await?;
    }
    if row.event == Event::ProviderFlaps {
        let schedule = json!({
            "apiVersion": SPOT_API_VERSION, "kind": "ManualSchedule",
            "metadata": {"name": "tenant"},
        });
        management
            .create_in(TENANT, "manualschedules", schedule)
            .await?;
        publish(management, false).await?;
    }
    let scales = matches!(row.event, Event::SetScaled { .. });
    for number in 0..row.limited {
        management.add_namespace(&row.namespace(number)).await?;
    }
    if row.has_class() || scales {
        let mut class = class(row.hosts);
        if let Some(limit) = row.limit() {
            class["spec"]["limits"] = json!({"machinesPerNamespace": limit});
        }
        if row.rate > 0 {
            class["spec"]["startsPerMinute"] = json!(row.rate);
        }
        management.create_class(class).await?;
    }
    if scales {
        let set = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
            "metadata": {"name": "tenant"},
            "spec": {"replicas": 0, "template": {"spec": of_class(closed())}},
        });
        management
            .create_in(TENANT, "scheduledmachinesets", set)
            .await?;
    }
    for number in 0..row.machines {
        let mut object = machine(number, row.exceptions);
        if row.has_class() {
            let schedule = if row.is_open { open() } else { closed() };
            object["spec"] = of_class(schedule);
        }
        if row.event == Event::ProviderFlaps {
            object["spec"]["schedule"] = json!({
                "apiVersion": SPOT_API_VERSION, "kind": "ManualSchedule", "name": "tenant",
            });
        }
        if row.event == Event::SharedEdited {
            object["spec"]["schedule"] = json!({
                "apiVersion": SPOT_API_VERSION, "kind": "CapitalMarketsSchedule",
                "name": "tenant",
            });
        }
        management
            .create_in(&row.namespace(number), "scheduledmachines", object)
            .await?;
    }
    if row.capacities > 0 {
        let schedule = json!({
            "apiVersion": SPOT_API_VERSION, "kind": "TimeBasedSpotSchedule",
            "metadata": {"name": "tenant"}, "spec": closed(),
        });
        management
            .create_in(TENANT, "timebasedspotschedules", schedule)
            .await?;
    }
    for number in 0..row.capacities {
        management.create_deployment(TENANT, number).await?;
        management
            .create_in(TENANT, "scheduledcapacities", capacity(number))
            .await?;
    }
    for number in 0..row.overrides {
        let end = match row.event {
            Event::OverrideEnds => now + OVERRIDE_DURATION,
            _ => now + SignedDuration::from_hours(240),
        };
        let object = schedule_override(number, row.target, end);
        management
            .create_in(TENANT, "scheduleoverrides", object)
            .await?;
    }
    Ok(())
}

/// When the override of [`Event::OverrideEnds`] ends, after it was created.
const OVERRIDE_DURATION: SignedDuration = SignedDuration::from_secs(90);

/// Waits until the override of the tenant is about to end.
async fn await_end(management: &Management, now: Timestamp) -> Result<(), BoxError> {
    let path = format!("{}/tenant-0", collection(TENANT, "scheduleoverrides"));
    let object = management.read(&path).await?;
    let end: Timestamp = object["spec"]["endTime"]
        .as_str()
        .unwrap_or_default()
        .parse()?;
    let left = end.duration_since(now) - SignedDuration::from_secs(2);
    sleep(Duration::try_from(left).unwrap_or_default()).await;
    Ok(())
}

/// Lets the other provider say whether its schedule is open.
async fn publish(management: &Management, is_active: bool) -> Result<(), BoxError> {
    let path = format!("{}/tenant/status", collection(TENANT, "manualschedules"));
    let patch = json!({"status": {"active": is_active, "observedGeneration": 1}});
    management.merge(&path, patch).await
}

/// Lets the event happen.
async fn happen(
    management: &Management,
    row: &Row,
    now: Timestamp,
) -> Result<(), BoxError> {
    match row.event {
        Event::None | Event::Start | Event::OverrideEnds => {}
        Event::TakeOver => management.release_lease().await?,
        Event::MachineCreated { exceptions } => {
            let object = machine(0, exceptions);
            management
                .create_in(TENANT, "scheduledmachines", object)
                .await?;
        }
        Event::OverridesCreated { count, target } => {
            let end = now + SignedDuration::from_hours(240);
            for number in 0..count {
                let object = schedule_override(number, target, end);
                management
                    .create_in(TENANT, "scheduleoverrides", object)
                    .await?;
            }
        }
        Event::TenantComes { overrides } => {
            let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
            for number in 0..CALENDARS {
                let object = calendar(number, today)?;
                management
                    .create_in(TENANT, "schedulecalendars", object)
                    .await?;
            }
            for number in 0..10 {
                let object = machine(number, CALENDARS);
                management
                    .create_in(TENANT, "scheduledmachines", object)
                    .await?;
            }
            let end = now + SignedDuration::from_hours(240);
            for number in 0..overrides {
                let object = schedule_override(number, Target::Every, end);
                management
                    .create_in(TENANT, "scheduleoverrides", object)
                    .await?;
            }
        }
        Event::OverrideAnnotated => {
            let path = format!("{}/tenant-0", collection(TENANT, "scheduleoverrides"));
            let patch = json!({"metadata": {"annotations": {"example.com/seen": "1"}}});
            management.merge(&path, patch).await?;
        }
        Event::MachineRelabelled => {
            let path = format!("{}/tenant-0", collection(TENANT, "scheduledmachines"));
            let patch = json!({"metadata": {"labels": {"team": "b"}}});
            management.merge(&path, patch).await?;
        }
        Event::CalendarEdited => {
            let path = format!("{}/tenant-0", collection(TENANT, "schedulecalendars"));
            let patch = json!({"spec": {"dates": [{"name": "new", "date": "01-01"}]}});
            management.merge(&path, patch).await?;
        }
        Event::SharedEdited => {
            let path =
                format!("{}/tenant", collection(TENANT, "capitalmarketsschedules"));
            let patch = json!({"spec": {"earlyCloses": []}});
            management.merge(&path, patch).await?;
        }
        Event::ProviderFlaps => {
            for number in 0..FLAPS {
                publish(management, number % 2 == 0).await?;
                sleep(Duration::from_secs(1)).await;
            }
        }
        Event::CapacitiesOpen => {
            let path = format!("{}/tenant", collection(TENANT, "timebasedspotschedules"));
            let patch = json!({"spec": {"cron": "* * * * *"}});
            management.merge(&path, patch).await?;
        }
        Event::TargetsAnnotated => {
            for number in 0..10 {
                let patch =
                    json!({"metadata": {"annotations": {"example.com/seen": "1"}}});
                management
                    .merge(&deployment_path(TENANT, number), patch)
                    .await?;
            }
        }
        Event::ClassEdited => {
            let edited = class(row.hosts - 1);
            let patch = json!({"spec": {"hosts": edited["spec"]["hosts"]}});
            management
                .merge(&format!("{CLASSES}/tenant"), patch)
                .await?;
        }
        Event::ClassRuns => {
            let end = now + SignedDuration::from_hours(1);
            let mut object = schedule_override(0, Target::Every, end);
            object["spec"]["mode"] = json!("Run");
            management
                .create_in(TENANT, "scheduleoverrides", object)
                .await?;
        }
        Event::LimitsReached => {
            let end = now + SignedDuration::from_hours(1);
            for number in 0..row.limited {
                let mut object = schedule_override(0, Target::Every, end);
                object["spec"]["mode"] = json!("Run");
                management
                    .create_in(&row.namespace(number), "scheduleoverrides", object)
                    .await?;
            }
        }
        Event::SetScaled { replicas } => {
            let path = collection(TENANT, "scheduledmachinesets");
            let patch = json!({"spec": {"replicas": replicas}});
            management
                .merge(&format!("{path}/tenant/scale"), patch)
                .await?;
        }
        Event::StatusWritten => {
            for number in 0..10 {
                let path = format!(
                    "{}/tenant-{number}/status",
                    collection(TENANT, "scheduledmachines")
                );
                let patch = json!({"status": {"message": "written by another client"}});
                management.merge(&path, patch).await?;
            }
        }
    }
    Ok(())
}

/// A closed machine, or one whose windows of a minute are joined by their lead time and cut by
/// calendars: everything at the bounds of admission.
fn machine(number: u32, exceptions: u32) -> Value {
    let mut object = fivespot_testkit::scheduled_machine(&format!("tenant-{number}"));
    object["metadata"]["labels"] = json!({"team": "a"});
    object["spec"]["schedule"] = closed();
    if exceptions == CALENDARS {
        object["spec"]["schedule"] = json!({"cron": "*/2 0-20 * * *", "duration": "1m"});
        object["spec"]["provisioning"] = json!({"leadTime": "2h", "minimumRun": "24h"});
    }
    let exceptions: Vec<Value> = (0..exceptions)
        .map(|number| {
            json!({"name": format!("e-{number}"), "action": "Stop",
                   "calendarRef": {"name": format!("tenant-{number}")}})
        })
        .collect();
    if !exceptions.is_empty() {
        object["spec"]["schedule"]["exceptions"] = exceptions.into();
    }
    object
}

/// A schedule that is open now.
fn open() -> Value {
    json!({"cron": "* * * * *", "duration": "1h"})
}

/// The spec of a machine of the class.
fn of_class(schedule: Value) -> Value {
    json!({"schedule": schedule, "classRef": {"name": "tenant"}})
}

/// The class of the tenant's machines, with this many hosts.
fn class(hosts: u32) -> Value {
    let spec = &fivespot_testkit::scheduled_machine("tenant")["spec"];
    let host = |number| {
        let address = format!("host-{number}.example");
        json!({"name": format!("host-{number}"), "infrastructure": {"address": address}})
    };
    let hosts: Vec<Value> = (0..hosts).map(host).collect();
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineClass",
        "metadata": {"name": "tenant"},
        "spec": {
            "clusterNames": ["production-cluster"], "hosts": hosts,
            "bootstrapSpec": spec["bootstrapSpec"],
            "infrastructureSpec": spec["infrastructureSpec"],
        },
    })
}

/// A ScheduledCapacity that scales a Deployment while a schedule is open.
fn capacity(number: u32) -> Value {
    let name = format!("tenant-{number}");
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": name},
        "spec": {
            "schedule": {
                "apiVersion": SPOT_API_VERSION, "kind": "TimeBasedSpotSchedule", "name": "tenant",
            },
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "subresource": "scale"},
            "fields": [{"field": "replicas", "activeValue": 3, "inactiveValue": 0}],
        },
    })
}

/// A calendar of as many yearly dates as admission allows, all of them before today: the next of
/// each is as far away as it can be.
fn calendar(number: u32, today: Date) -> Result<Value, BoxError> {
    let mut dates = Vec::new();
    for index in 0..DATES {
        let back = i64::from(1 + index % 320);
        let day = today.checked_sub(back.days())?;
        dates.push(json!({"name": format!("d-{index}"), "date": day.strftime("%m-%d").to_string()}));
    }
    Ok(json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendar",
        "metadata": {"name": format!("tenant-{number}")}, "spec": {"dates": dates},
    }))
}

/// A market that is open in one hour of a week other than today's, with as many holidays and early
/// closes as admission allows.
fn market(today: Date) -> Result<Value, BoxError> {
    let day = today.checked_add(3.days())?;
    let session = json!({"daysOfWeek": [day.strftime("%a").to_string().to_lowercase()], "hoursOfDay": ["0"]});
    let mut holidays = Vec::new();
    let mut early = Vec::new();
    for index in 0..DATES {
        let holiday = today.checked_add(i64::from(10 + 2 * index).days())?;
        holidays.push(holiday.to_string());
        early.push(
            json!({"date": holiday.tomorrow()?.to_string(), "closeHour": index % 24}),
        );
    }
    Ok(json!({
        "apiVersion": SPOT_API_VERSION, "kind": "CapitalMarketsSchedule",
        "metadata": {"name": "tenant"},
        "spec": {
            "timezone": "America/New_York", "sessions": [session], "holidays": holidays,
            "earlyCloses": early,
        },
    }))
}

fn schedule_override(number: u32, target: Target, end: Timestamp) -> Value {
    let mut object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": format!("tenant-{number}")},
        "spec": {"mode": "Stop", "endTime": end.to_string()},
    });
    let labels = |team: &str| json!({"matchLabels": {"team": team}});
    match target {
        Target::Every => object["spec"]["selector"] = labels("a"),
        Target::Nobody => object["spec"]["selector"] = labels("none"),
        Target::First => object["spec"]["targetRef"] = json!({"name": "tenant-0"}),
    }
    object
}
