//! TLS as a client: whom to trust, and what a server's name has to be.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::config::Roots;

/// Why the roots of trust, or a server's name, are of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file cannot be read as certificates.
    #[error("{path} cannot be read as certificates: {cause}")]
    File { path: String, cause: String },
    /// There is none to be trusted.
    #[error("no certificate authority was found in {0}")]
    Empty(String),
    /// It cannot be the name on a certificate, or stand in a head.
    #[error("{0} is no valid name of a host")]
    Name(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// A client that trusts these roots and offers no protocol by name.
pub(crate) fn client(roots: &Roots) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(trusted(roots)?)
        .with_no_client_auth();
    Ok(client)
}

/// The name that a server's certificate has to bear.
pub(crate) fn name(host: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))
}

fn trusted(roots: &Roots) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::Bundled => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Roots::Native => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            for certificate in certificates(path)? {
                store.add(certificate).map_err(|error| unreadable(path, &error))?;
            }
        }
    }
    if store.is_empty() {
        let place = match roots {
            Roots::Bundled => "the built-in list".to_owned(),
            Roots::Native => "the machine's list".to_owned(),
            Roots::File(path) => path.display().to_string(),
        };
        return Err(TlsError::Empty(place));
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, cause: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { path: path.display().to_string(), cause: cause.to_string() }
}
