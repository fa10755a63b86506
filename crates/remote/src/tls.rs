//! TLS for HTTP clients: rustls with ring; the system's certificate authorities, or given ones in their place.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::auth::Auth;
use crate::error::RemoteError;

/// Sets the cryptographic library for clients that are created without [`config`].
pub fn choose_provider() {
    // A second call fails, but the first one was ours.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The TLS configuration of a client for `auth`. `needed` is false for servers without TLS: reading the system's
/// authorities takes milliseconds.
///
/// # Errors
/// A file that cannot be read or holds no certificate.
pub fn config(auth: &Auth, needed: bool) -> Result<ClientConfig, RemoteError> {
    let mut roots = RootCertStore::empty();
    match &auth.roots {
        Some(path) => {
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|e| local(path, &e.to_string()))?;
            }
        }
        None if needed => {
            // Some of a system's authorities may be unreadable; without any, the handshake says so.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
        None => {}
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| local(Path::new("TLS"), &e.to_string()))?
        .with_root_certificates(roots);
    match &auth.client {
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key_der =
                PrivateKeyDer::from_pem_file(key).map_err(|e| local(key, &e.to_string()))?;
            builder
                .with_client_auth_cert(chain, key_der)
                .map_err(|e| local(certificate, &e.to_string()))
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, RemoteError> {
    let read = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| local(path, &e.to_string()))?;
    match read.is_empty() {
        true => Err(local(path, "holds no certificate (PEM)")),
        false => Ok(read),
    }
}

fn local(path: &Path, why: &str) -> RemoteError {
    RemoteError::Local {
        path: path.display().to_string(),
        why: why.to_owned(),
    }
}
