//! Promises, and the backends on which they are tested.

use std::pin::Pin;

use fivespot_testkit::{Backend, Contract, Providers};

/// A statement about the product that is true on every backend, unless restricted.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    path: &'static str,
    run: fn() -> Pin<Box<dyn Future<Output = ()>>>,
    only_embedded: Option<&'static str>,
    requested_by: Option<&'static str>,
    only_kubernetes: Option<&'static str>,
    contract: Option<Contract>,
    gap: Option<(Contract, &'static str)>,
    /// The environment variable without which it is not run on any backend.
    variable: Option<&'static str>,
    only_stand_ins: Option<&'static str>,
    only_real_providers: Option<&'static str>,
    /// The programs that it runs.
    pub(crate) programs: &'static [&'static str],
    /// Whether it changes objects that all promises on a shared cluster depend on.
    pub(crate) is_disruptive: bool,
}

/// The promise of the async function with this name.
macro_rules! promise {
    ($name:ident) => {
        $crate::promise::Promise::new(
            concat!(module_path!(), "::", stringify!($name)),
            || Box::pin($name()),
        )
    };
}
pub(crate) use promise;

impl Promise {
    /// A promise for every backend. Written as [`promise!`].
    pub(crate) const fn new(
        path: &'static str,
        run: fn() -> Pin<Box<dyn Future<Output = ()>>>,
    ) -> Self {
        Self {
            path,
            run,
            only_embedded: None,
            requested_by: None,
            only_kubernetes: None,
            contract: None,
            gap: None,
            variable: None,
            only_stand_ins: None,
            only_real_providers: None,
            programs: &[],
            is_disruptive: false,
        }
    }

    /// It can only be shown on the embedded backend, for this reason.
    pub(crate) const fn on_embedded_alone(mut self, why: &'static str) -> Self {
        self.only_embedded = Some(why);
        self
    }

    /// It can only be shown on a real cluster, for this reason.
    pub(crate) const fn on_kubernetes_alone(mut self, why: &'static str) -> Self {
        self.only_kubernetes = Some(why);
        self
    }

    /// On a real cluster, it takes so long that it is only run if this environment variable is set.
    pub(crate) const fn on_request(mut self, variable: &'static str) -> Self {
        self.requested_by = Some(variable);
        self
    }

    /// It is about this contract of Cluster API, which a real one may not support.
    pub(crate) const fn with_contract(mut self, contract: Contract) -> Self {
        self.contract = Some(contract);
        self
    }

    /// It is known not to be kept on a real Cluster API of this contract, for this reason.
    pub(crate) const fn not_kept_with(
        mut self,
        contract: Contract,
        why: &'static str,
    ) -> Self {
        self.gap = Some((contract, why));
        self
    }

    /// On a real cluster, it can only be shown with stand-ins for the providers, for this reason.
    pub(crate) const fn with_stand_ins_alone(mut self, why: &'static str) -> Self {
        self.only_stand_ins = Some(why);
        self
    }

    /// It can only be shown with real providers, for this reason.
    pub(crate) const fn with_real_providers_alone(mut self, why: &'static str) -> Self {
        self.only_real_providers = Some(why);
        self
    }

    /// It compares the output of kubectl for a cluster in which time is stopped.
    pub(crate) const fn with_kubectl(mut self) -> Self {
        self.programs = &["kubectl"];
        self.on_embedded_alone("compares what kubectl prints, ages included")
    }

    /// It runs these programs.
    pub(crate) const fn with_programs(
        mut self,
        programs: &'static [&'static str],
    ) -> Self {
        self.programs = programs;
        self
    }

    /// It needs an input that takes long to build. This environment variable names it.
    pub(crate) const fn with_variable(mut self, variable: &'static str) -> Self {
        self.variable = Some(variable);
        self
    }

    /// It changes objects that all promises on a shared cluster depend on. It is run while no other
    /// promise runs.
    pub(crate) const fn disruptive(mut self) -> Self {
        self.is_disruptive = true;
        self
    }

    /// File and function: `pauses::with_a_paused_cluster`.
    pub(crate) fn name(&self) -> &'static str {
        self.path
            .split_once("::")
            .map_or(self.path, |(_, name)| name)
    }

    /// The file of its subject: `pauses`.
    pub(crate) fn file(&self) -> &'static str {
        self.name().split("::").next().unwrap_or_default()
    }

    /// Why it cannot be shown on a backend with this contract and these providers. `None` if it
    /// can.
    pub(crate) fn hindrance(
        &self,
        backend: Backend,
        contract: Contract,
        providers: Providers,
    ) -> Option<String> {
        let is_unset = |variable: &&str| std::env::var_os(variable).is_none();
        if let Some(variable) = self.variable.filter(is_unset) {
            return Some(format!("is run only if {variable} is set"));
        }
        if let (Some(why), Providers::StandIn) = (self.only_real_providers, providers) {
            return Some(why.to_owned());
        }
        if backend == Backend::Embedded {
            return self.only_kubernetes.map(str::to_owned);
        }
        if let Some(why) = self.only_embedded {
            return Some(why.to_owned());
        }
        let is_asked_for = |variable: &&str| std::env::var_os(variable).is_some();
        if let Some(variable) = self.requested_by.filter(|it| !is_asked_for(it)) {
            return Some(format!("is run there only if {variable} is set"));
        }
        if let (Some(why), Providers::Real) = (self.only_stand_ins, providers) {
            return Some(why.to_owned());
        }
        if let Some((_, why)) = self.gap.filter(|(gap, _)| *gap == contract) {
            return Some(format!("is not kept: {why}"));
        }
        let other = self.contract.filter(|wanted| *wanted != contract)?;
        Some(format!("is about Cluster API's {}", other.name()))
    }

    /// Runs it. Panics if the promise is broken.
    pub(crate) fn run(&self) {
        run((self.run)());
    }
}

/// Runs a future to its end on this thread.
pub(crate) fn run<T>(scenario: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(scenario)
}
