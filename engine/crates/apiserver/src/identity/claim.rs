//! The claims of a service account token and their validation.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::store::{Key, Object};
use crate::user::User;

/// The issuer of the tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The allowed clock skew.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// The claims of a service account token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) issuer: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) id: String,
    /// Seconds since the Unix epoch.
    pub(crate) not_before: i64,
    pub(crate) expiry: i64,
    pub(crate) namespace: String,
    pub(crate) account: ObjectRef,
    pub(crate) pod: Option<ObjectRef>,
    pub(crate) secret: Option<ObjectRef>,
    pub(crate) node: Option<ObjectRef>,
}

/// An object that a token refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectRef {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl ObjectRef {
    pub(crate) fn of(object: &Value) -> Self {
        Self {
            name: meta::name(object).to_owned(),
            uid: meta::uid(object).to_owned(),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        value.is_object().then(|| Self {
            name: text("name"),
            uid: text("uid"),
        })
    }

    fn to_value(&self) -> Value {
        let mut fields = json!({"name": self.name});
        if !self.uid.is_empty() {
            fields["uid"] = self.uid.as_str().into();
        }
        fields
    }
}

impl Claims {
    pub(crate) fn read(payload: &Value) -> Self {
        let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
        let audiences = payload["aud"].as_array().into_iter().flatten();
        let own = &payload["kubernetes.io"];
        Self {
            issuer: text("iss"),
            audiences: audiences
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            id: text("jti"),
            not_before: payload["nbf"].as_i64().unwrap_or(i64::MAX),
            expiry: payload["exp"].as_i64().unwrap_or_default(),
            namespace: own["namespace"].as_str().unwrap_or_default().to_owned(),
            account: ObjectRef::read(&own["serviceaccount"]).unwrap_or_default(),
            pod: ObjectRef::read(&own["pod"]),
            secret: ObjectRef::read(&own["secret"]),
            node: ObjectRef::read(&own["node"]),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut own = Map::new();
        own.insert("namespace".to_owned(), self.namespace.as_str().into());
        let bound = [
            ("node", &self.node),
            ("pod", &self.pod),
            ("secret", &self.secret),
        ];
        for (key, named) in bound {
            if let Some(named) = named {
                own.insert(key.to_owned(), named.to_value());
            }
        }
        own.insert("serviceaccount".to_owned(), self.account.to_value());
        let user = User::service_account(&self.namespace, &self.account.name);
        json!({
            "aud": self.audiences,
            "exp": self.expiry,
            "iat": self.not_before,
            "iss": ISSUER,
            "jti": self.id,
            "kubernetes.io": own,
            "nbf": self.not_before,
            "sub": user.name,
        })
    }

    /// The user of the token, if all objects that it refers to still exist.
    ///
    /// # Errors
    /// Kubernetes' message for a token that is not valid any longer.
    pub(crate) fn valid_user(&self, state: &State) -> Result<User, String> {
        let now = state.clock.now();
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let later = |at: Timestamp, by| at.saturating_add(by).unwrap_or(Timestamp::MAX);
        if later(at(self.expiry), LEEWAY) < now {
            return Err("service account token has expired".to_owned());
        }
        if later(now, LEEWAY) < at(self.not_before) {
            return Err("service account token is not valid yet".to_owned());
        }
        self.check_account(state)?;
        let bound = [
            (&self.secret, "secrets", "Secret"),
            (&self.pod, "pods", "Pod"),
        ];
        for (named, plural, kind) in bound {
            if let Some(named) = named {
                self.check_bound(state, named, plural, kind)?;
            }
        }
        if let (None, Some(node)) = (&self.pod, &self.node) {
            self.check_bound(state, node, "nodes", "Node")?;
        }
        Ok(self.user())
    }

    fn check_account(&self, state: &State) -> Result<(), String> {
        let (namespace, name) = (&self.namespace, &self.account.name);
        let account = find(state, "serviceaccounts", namespace, name);
        let account =
            account.ok_or_else(|| format!("serviceaccounts \"{name}\" not found"))?;
        let uid = meta::uid(&account);
        if uid != self.account.uid {
            return Err(format!(
                "service account UID ({uid}) does not match claim ({})",
                self.account.uid
            ));
        }
        if is_long_deleted(state, &account) {
            return Err(format!(
                "service account {namespace}/{name} has been deleted"
            ));
        }
        Ok(())
    }

    fn check_bound(
        &self,
        state: &State,
        named: &ObjectRef,
        plural: &str,
        kind: &str,
    ) -> Result<(), String> {
        let namespace = if kind == "Node" { "" } else { &self.namespace };
        let gone = || "service account token has been invalidated".to_owned();
        let found = find(state, plural, namespace, &named.name).ok_or_else(gone)?;
        let uid = meta::uid(&found);
        if uid != named.uid {
            // The message for a Secret spells the kind in lower case.
            let what = kind.to_lowercase();
            let shown = if kind == "Secret" { "secret" } else { kind };
            return Err(format!(
                "{shown} UID ({uid}) does not match service account {what} ref claim ({})",
                named.uid
            ));
        }
        if is_long_deleted(state, &found) {
            return Err(gone());
        }
        Ok(())
    }

    fn user(&self) -> User {
        let mut user = User::service_account(&self.namespace, &self.account.name);
        user.uid.clone_from(&self.account.uid);
        let mut extra = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                user.extra.insert(key, vec![value.to_owned()]);
            }
        };
        extra("credential-id", &format!("JTI={}", self.id));
        for (named, name, uid) in [
            (&self.pod, "pod-name", "pod-uid"),
            (&self.node, "node-name", "node-uid"),
        ] {
            if let Some(named) = named {
                extra(name, &named.name);
                extra(uid, &named.uid);
            }
        }
        user
    }
}

/// An object of the core group.
pub(crate) fn find(
    state: &State,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Option<Object> {
    let bucket = state.store.known_bucket(&GroupResource::new("", plural))?;
    state.get(bucket, &Key::new(namespace, name)).cloned()
}

fn is_long_deleted(state: &State, object: &Value) -> bool {
    let deleted = meta::text(object, "deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|at| {
        at.saturating_add(LEEWAY).unwrap_or(Timestamp::MAX) < state.clock.now()
    })
}
