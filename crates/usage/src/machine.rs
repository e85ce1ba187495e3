//! The input of the report for one machine.

use std::collections::BTreeMap;

use fivespot_api::verdict::Verdict;
use fivespot_api::{ScheduledMachineStatus, Usage, UsageMonth};
use fivespot_plan::usage_until;
use fivespot_schedule::Schedule;
use jiff::Timestamp;

use crate::{Figures, Month};

/// A ScheduledMachine with its account.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The kind of its infrastructure object.
    pub infrastructure_kind: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its account, as far as the report uses it.
    pub usage: Usage,
    /// What its status says at present; `None` for a machine that is in no cluster.
    pub verdict: Option<Verdict>,
}

impl Machine {
    /// The account of a status, updated to `now`. `schedule` is the one in force, with calendars
    /// and overrides; `None` if it is disabled or invalid.
    pub fn account(
        status: &ScheduledMachineStatus,
        schedule: Option<&Schedule>,
        now: Timestamp,
    ) -> Usage {
        match status.usage {
            Some(_) => usage_until(status, schedule, now),
            None => Usage::default(),
        }
    }

    /// The account of a month as `schedule` plans it, see [`Figures::planned`]. `schedule` is the one in
    /// force, with calendars and overrides; `None` if it is disabled.
    pub fn planned_account(schedule: Option<&Schedule>, month: Month) -> Usage {
        let planned = Figures::planned(schedule, month.start(), month.end());
        Usage {
            start_time: Some(month.start()),
            months: vec![UsageMonth {
                month: month.to_string(),
                active_seconds: planned.active_seconds,
                wanted_seconds: planned.wanted_seconds,
                provisioning_seconds: planned.provisioning_seconds,
                late_seconds: planned.late_seconds,
                audited_seconds: planned.audited_seconds,
                reclaims: planned.reclaims,
            }],
            ..Usage::default()
        }
    }

    /// The beginning of the account.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.usage.start_time.or(self.created)
    }

    /// The figures of a month until `now`. `None` without an account of the month.
    pub(crate) fn figures(&self, month: Month, now: Timestamp) -> Option<Figures> {
        let name = month.to_string();
        let counted = self.usage.months.iter().find(|of| of.month == name)?;
        let since = self.since().unwrap_or(Timestamp::MIN).max(month.start());
        let until = month.end().min(now);
        Some(Figures {
            wanted_seconds: counted.wanted_seconds,
            active_seconds: counted.active_seconds,
            provisioning_seconds: counted.provisioning_seconds,
            late_seconds: counted.late_seconds,
            audited_seconds: counted.audited_seconds,
            used_seconds: counted
                .active_seconds
                .saturating_add(counted.provisioning_seconds)
                .saturating_add(counted.audited_seconds),
            always_on_seconds: until.duration_since(since).as_secs().max(0),
            reclaims: counted.reclaims,
        })
    }
}
