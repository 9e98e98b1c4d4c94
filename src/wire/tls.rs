//! TLS for `wss://`: which authorities are trusted, and the handshake.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::MaybeTlsStream;

use super::ConnectError;

/// The authorities whose signature on a server's certificate counts. By default those that browsers trust.
#[derive(Debug, Clone, Default)]
pub struct Trust(Option<Own>);

/// Certificates that are trusted besides, and what follows from them.
#[derive(Debug, Clone)]
struct Own {
    config: Arc<ClientConfig>,
    certificates: Arc<[CertificateDer<'static>]>,
}

/// Why a file with certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// It holds no certificate.
    #[error("{0} holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)")]
    Empty(String),
    /// It holds something that is none.
    #[error("{path}: {reason}")]
    Bad {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Trust {
    /// Trusts the certificates of a PEM file besides the usual authorities.
    ///
    /// # Errors
    /// See [`TrustError`].
    pub fn with_file(path: &Path) -> Result<Self, TrustError> {
        let shown = path.display().to_string();
        let bytes = crate::input::read(path, crate::input::CERTIFICATES)
            .map_err(|error| TrustError::Unreadable { path: shown.clone(), error })?;
        let bad = |reason: String| TrustError::Bad { path: shown.clone(), reason };
        let mut roots = usual();
        let mut own = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            let certificate = certificate.map_err(|error| match error {
                pem::Error::NoItemsFound => TrustError::Empty(shown.clone()),
                error => bad(format!("no certificates in PEM form: {error}")),
            })?;
            own.push(certificate.clone().into_owned());
            roots.add(certificate).map_err(|error| bad(format!("a certificate cannot be used: {error}")))?;
        }
        if own.is_empty() {
            return Err(TrustError::Empty(shown));
        }
        let config = config(roots).map_err(|error| bad(error.to_string()))?;
        Ok(Self(Some(Own { config: Arc::new(config), certificates: own.into() })))
    }

    /// The certificates that are trusted besides those of the usual authorities, in DER form.
    pub(crate) fn own(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().flat_map(|own| own.certificates.iter().map(AsRef::as_ref))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        match &self.0 {
            Some(own) => Ok(Arc::clone(&own.config)),
            None => config(usual()).map(Arc::new),
        }
    }
}

fn usual() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Does the TLS handshake with the server that must prove to be `host`.
pub(super) async fn secure(
    host: &str,
    stream: TcpStream,
    trust: &Trust,
) -> Result<MaybeTlsStream<TcpStream>, ConnectError> {
    let config = trust.config().map_err(|error| ConnectError::Tls(error.to_string()))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare)
        .map_err(|_| ConnectError::Tls(format!("`{host}` is not a valid name for a certificate")))?;
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => Ok(MaybeTlsStream::Rustls(stream)),
        Err(error) => Err(ConnectError::Tls(explain(&error))),
    }
}

/// A TLS error as a user can act on it.
pub(crate) fn explain(error: &std::io::Error) -> String {
    use rustls::CertificateError as Wrong;
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let why = match cause {
        Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
            Wrong::UnknownIssuer => "no trusted authority has signed the server's certificate",
            // The verifier's own error, which has no type of its own here.
            Wrong::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "the server shows an authority's certificate as its own (basicConstraints CA:TRUE)"
            }
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
                "the server's certificate is for another name"
            }
            Wrong::Expired | Wrong::ExpiredContext { .. } => "the server's certificate has expired",
            _ => "the server's certificate is refused",
        },
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS; is it a ws:// server?",
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the server ended the connection during the TLS handshake; is it a ws:// server?"
        }
        _ => return error.to_string(),
    };
    format!("{why} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_certificates_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let error = Trust::with_file(&path).expect_err("absent").to_string();
        assert!(error.contains("ca.pem cannot be read"), "{error}");
        for (text, expected) in [
            ("", "holds no certificate"),
            ("nonsense", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be used"),
            ("-----BEGIN CERTIFICATE-----\n####\n-----END CERTIFICATE-----\n", "no certificates in PEM form"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "no certificates in PEM form"),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = Trust::with_file(&path).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
