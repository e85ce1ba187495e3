//! The key that signs service account tokens.
//!
//! Whatever the header of a token says, only ES256 with our own key is accepted: that a library
//! selects the algorithm from the header is a known source of vulnerabilities. Times come from the
//! server's clock, which a token library would not read.

use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Maximum length of a token, in bytes.
const MAX_TOKEN_LENGTH: usize = 16 * 1024;

/// A key for signing tokens with ES256 (RFC 7518). Clones share it.
#[derive(Clone)]
pub struct TokenKey(Arc<OnceLock<Pair>>);

struct Pair {
    key: EcdsaKeyPair,
    document: Vec<u8>,
}

/// A key could not be generated, or the document is not a key.
#[derive(Debug, thiserror::Error)]
#[error("the token signing key could not be {0}")]
pub struct KeyError(&'static str);

impl TokenKey {
    /// A key that is generated at its first use.
    pub(crate) fn lazy() -> Self {
        Self(Arc::default())
    }

    /// Generates a key.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let key = Self::lazy();
        key.pair()?;
        Ok(key)
    }

    /// Reads the key from a PKCS #8 document, as returned by [`pkcs8`](Self::pkcs8).
    ///
    /// # Errors
    /// The bytes are not a P-256 key.
    pub fn from_pkcs8(document: &[u8]) -> Result<Self, KeyError> {
        let pair = read(document.to_vec()).ok_or(KeyError("read"))?;
        let key = Self::lazy();
        // The key is not shared yet, so it is not set.
        let _ = key.0.set(pair);
        Ok(key)
    }

    /// The key as a PKCS #8 document; store it where only its owner can read it.
    ///
    /// # Errors
    /// The key is not generated yet and the operating system returns no randomness.
    pub fn pkcs8(&self) -> Result<&[u8], KeyError> {
        Ok(&self.pair()?.document)
    }

    fn pair(&self) -> Result<&Pair, KeyError> {
        if let Some(pair) = self.0.get() {
            return Ok(pair);
        }
        let random = SystemRandom::new();
        let created =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = created.map_err(|_| KeyError("generated"))?;
        let pair = read(document.as_ref().to_vec()).ok_or(KeyError("generated"))?;
        Ok(self.0.get_or_init(|| pair))
    }

    /// Signs a token (JWT) with these claims.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        let pair = self.pair()?;
        let header = json!({"alg": "ES256", "kid": pair.id()});
        let head = URL_SAFE_NO_PAD.encode(header.to_string());
        let body = URL_SAFE_NO_PAD.encode(claims.to_string());
        let text = format!("{head}.{body}");
        let signed = pair.key.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signed.map_err(|_| KeyError("used"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token; `None` if this key has not signed it.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        if token.len() > MAX_TOKEN_LENGTH {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (head, body) = text.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Value = serde_json::from_slice(&decode(head)?).ok()?;
        if header["alg"] != "ES256" {
            return None;
        }
        let public = self.0.get()?.key.public_key().as_ref().to_vec();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(text.as_bytes(), &decode(signature)?)
            .ok()?;
        serde_json::from_slice(&decode(body)?).ok()
    }

    /// The public key as a JSON Web Key Set (RFC 7517).
    ///
    /// # Errors
    /// The key is not generated yet and the operating system returns no randomness.
    pub(crate) fn published(&self) -> Result<Value, KeyError> {
        let pair = self.pair()?;
        // An uncompressed point: a 4, then both coordinates of 32 bytes.
        let point = pair.key.public_key().as_ref();
        let coordinate = |from: usize| {
            URL_SAFE_NO_PAD.encode(point.get(from..from + 32).unwrap_or_default())
        };
        Ok(json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": pair.id(), "crv": "P-256", "alg": "ES256",
            "x": coordinate(1), "y": coordinate(33),
        }]}))
    }
}

impl Pair {
    fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.key.public_key().as_ref()))
    }
}

fn read(document: Vec<u8>) -> Option<Pair> {
    let random = SystemRandom::new();
    let key =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &random);
    key.ok().map(|key| Pair { key, document })
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_signed_by_the_key_are_accepted() {
        let key = TokenKey::generate().unwrap();
        let claims = json!({"sub": "a"});
        let token = key.sign(&claims).unwrap();
        assert_eq!(key.verify(&token), Some(claims));
        assert_eq!(TokenKey::generate().unwrap().verify(&token), None);
        let (rest, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = rest.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(json!({"sub": "b"}).to_string());
        assert_eq!(key.verify(&format!("{head}.{other}.{signature}")), None);
        let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        assert_eq!(key.verify(&format!("{none}.{other}.")), None);
        assert_eq!(key.verify("x"), None);
    }

    #[test]
    fn a_stored_key_accepts_the_tokens_that_it_signed_before() {
        let key = TokenKey::generate().unwrap();
        let token = key.sign(&json!({"sub": "a"})).unwrap();
        let retained = TokenKey::from_pkcs8(key.pkcs8().unwrap()).unwrap();
        assert!(retained.verify(&token).is_some());
        assert!(TokenKey::from_pkcs8(b"x").is_err());
    }
}
