//! What no real server does on demand: other limits, zstd, wrong bytes, refused tokens, certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use re::digest_function::Value::{Blake3, Sha256};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use warpcc_cache::{Digest, Key};
use warpcc_remote::auth::{Origin, Secret};
use warpcc_remote::backend::UploadSource;
use warpcc_remote::grpc::Deadlines;
use warpcc_remote::{Auth, Backend, Grpc, RemoteError};

use crate::fake::{Fake, UploadMode};
use crate::{block_on, bytes_of, client};

fn with(port: u16, auth: Auth) -> Grpc {
    let address = format!("grpc://127.0.0.1:{port}/an/instance");
    Grpc::new(
        address.parse().expect("address"),
        auth,
        Deadlines::default(),
    )
    .expect("server")
}

#[test]
fn a_limit_of_64_kib_is_kept_to() {
    block_on(async {
        let mode = UploadMode {
            batch: 65_536,
            ..UploadMode::default()
        };
        let (fake, port) = Fake::start(mode, None).await;
        let server = with(port, Auth::default());
        let sizes = [
            1, 30_000, 40_000, 65_280, 65_281, 65_535, 65_536, 65_537, 300_000, 700,
        ];
        let blobs: Vec<Vec<u8>> = sizes.iter().map(|&s| bytes_of(s, s as u64)).collect();
        let sources: Vec<_> = blobs
            .iter()
            .map(|b| (Digest::of_bytes(b), UploadSource::Bytes(b.clone())))
            .collect();
        let digests: Vec<_> = sources.iter().map(|(digest, _)| *digest).collect();
        server.write(&sources).await.expect("written");
        let read = server.read_small(&digests).await.expect("read");
        assert!(read.iter().map(Option::as_ref).eq(blobs.iter().map(Some)));
        let seen = fake.seen.lock().expect("lock").clone();
        let names = |start: &str| seen.iter().filter(|s| s.starts_with(start)).count();
        assert!(names("batch of") >= 3, "{seen:?}");
        assert_eq!(names("an/instance/uploads/"), 5, "{seen:?}");
        assert_eq!(names("an/instance/blobs/"), 5, "{seen:?}");
    });
}

#[test]
fn zstd_where_it_is_offered() {
    let folder = tempfile::tempdir().expect("folder");
    block_on(async {
        let mode = UploadMode {
            zstd: true,
            ..UploadMode::default()
        };
        let (fake, port) = Fake::start(mode, None).await;
        let server = with(port, Auth::default());
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, vec![7; 9 << 20]).expect("write");
        let digest = Digest::of_file(&from).expect("digest");
        server
            .write(&[(digest, UploadSource::File(from.clone()))])
            .await
            .expect("written");
        assert!(server.read_large(&digest, &to).await.expect("read"));
        assert_eq!(fs::read(&from).expect("read"), fs::read(&to).expect("read"));
        let seen = fake.seen.lock().expect("lock").clone();
        assert_eq!(seen.len(), 2);
        assert!(
            seen.iter()
                .all(|name| name.contains("/compressed-blobs/zstd/")),
            "{seen:?}"
        );
    });
}

#[test]
fn wrong_bytes_are_never_handed_on() {
    let folder = tempfile::tempdir().expect("folder");
    for zstd in [false, true] {
        for mode in [
            UploadMode {
                spoils: true,
                zstd,
                ..UploadMode::default()
            },
            UploadMode {
                exaggerates: true,
                zstd,
                ..UploadMode::default()
            },
        ] {
            block_on(async {
                let (_, port) = Fake::start(mode, None).await;
                let server = with(port, Auth::default());
                for size in [10, 6 << 20] {
                    let bytes = bytes_of(size, 3);
                    let digest = Digest::of_bytes(&bytes);
                    server
                        .write(&[(digest, UploadSource::Bytes(bytes))])
                        .await
                        .expect("written");
                    let read = server.read_small(&[digest]).await;
                    assert!(read.is_err(), "{size}");
                    let to = folder.path().join("to");
                    let read = server.read_large(&digest, &to).await;
                    assert!(
                        matches!(read, Err(RemoteError::WrongBytes { .. })),
                        "{read:?}"
                    );
                    assert!(!to.exists());
                }
            });
        }
    }
}

#[test]
fn bytes_of_another_digest_are_not_taken_up() {
    block_on(async {
        let (_, port) = Fake::start(UploadMode::default(), None).await;
        let server = with(port, Auth::default());
        let digest = Digest::of_bytes(b"these");
        let written = server
            .write(&[(digest, UploadSource::Bytes(b"those".to_vec()))])
            .await;
        assert!(
            matches!(written, Err(RemoteError::Answer { .. })),
            "{written:?}"
        );
        // The empty one is known without asking, and no other digest is of no bytes.
        let nothing = Digest {
            hash: [1; 32],
            size: 0,
        };
        assert!(matches!(
            server.read_small(&[nothing]).await,
            Err(RemoteError::WrongBytes { .. })
        ));
    });
}

#[test]
fn a_server_without_sha256_is_not_used() {
    block_on(async {
        let mode = UploadMode {
            functions: vec![Blake3 as i32],
            ..UploadMode::default()
        };
        let (_, port) = Fake::start(mode, None).await;
        let fault = with(port, Auth::default())
            .capabilities()
            .await
            .expect_err("no SHA-256")
            .to_string();
        assert!(fault.contains("SHA-256"), "{fault}");
        let mode = UploadMode {
            functions: vec![Blake3 as i32, Sha256 as i32],
            ..UploadMode::default()
        };
        let (_, port) = Fake::start(mode, None).await;
        assert!(with(port, Auth::default()).capabilities().await.is_ok());
    });
}

#[test]
fn each_status_has_its_fault() {
    use tonic::Code;
    for code in [
        Code::Internal,
        Code::ResourceExhausted,
        Code::Unavailable,
        Code::PermissionDenied,
    ] {
        block_on(async {
            let mode = UploadMode {
                fails: Some(code),
                ..UploadMode::default()
            };
            let (_, port) = Fake::start(mode, None).await;
            let fault = with(port, Auth::default())
                .result(&Key([0; 32]))
                .await
                .expect_err("fails");
            let fits = match code {
                Code::Unavailable => matches!(fault, RemoteError::Unreachable { .. }),
                Code::PermissionDenied => matches!(fault, RemoteError::Refused { .. }),
                _ => matches!(fault, RemoteError::Answer { .. }),
            };
            assert!(fits, "{code:?}: {fault:?}");
        });
    }
}

#[test]
fn an_expired_token_is_read_again_and_never_shown() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("token");
    fs::write(&path, "sesame-1\n").expect("write");
    let helper = folder.path().join("helper");
    let text = "#!/bin/sh\nread question\n[ \"$1\" = get ] || exit 1\n\
        token=$(cat \"${0%/*}/token\")\n\
        echo \"{\\\"headers\\\":{\\\"Authorization\\\":[\\\"Bearer $token\\\"]}}\"\n";
    fs::write(&helper, text).expect("write");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("chmod");
    let from_file = Auth {
        token: Some(Origin::File(path.clone())),
        ..Auth::default()
    };
    let from_helper = Auth {
        helper: Some(helper),
        ..Auth::default()
    };
    for auth in [from_file, from_helper] {
        block_on(async {
            fs::write(&path, "sesame-1\n").expect("write");
            let token = Arc::new(Mutex::new(Some("Bearer sesame-1".to_owned())));
            let mode = UploadMode {
                token: Arc::clone(&token),
                ..UploadMode::default()
            };
            let (_, port) = Fake::start(mode, None).await;
            let server = with(port, auth.clone());
            let large = bytes_of(5 << 20, 1);
            let blob = [(Digest::of_bytes(&large), UploadSource::Bytes(large))];
            server.write(&blob).await.expect("the first token");
            *token.lock().expect("lock") = Some("Bearer sesame-2".to_owned());
            let fault = server.missing(&[blob[0].0]).await.expect_err("expired");
            assert!(matches!(fault, RemoteError::Refused { .. }), "{fault:?}");
            assert!(!fault.to_string().contains("sesame"), "{fault}");
            assert!(!format!("{fault:?}{server:?}").contains("sesame"));
            fs::write(&path, "sesame-2\n").expect("write");
            server.write(&blob).await.expect("the second token");
            assert_eq!(server.missing(&[blob[0].0]).await.expect("asked"), []);
        });
    }
}

#[test]
fn a_given_token_that_is_refused_is_a_fault() {
    block_on(async {
        let mode = UploadMode::default();
        *mode.token.lock().expect("lock") = Some("Bearer right".to_owned());
        let (_, port) = Fake::start(mode, None).await;
        let token = Some(Origin::Given(Secret::new("wrong-one")));
        let server = with(
            port,
            Auth {
                token,
                ..Auth::default()
            },
        );
        let fault = server.result(&Key([0; 32])).await.expect_err("wrong");
        assert!(matches!(fault, RemoteError::Refused { .. }), "{fault:?}");
        assert!(!fault.to_string().contains("wrong-one"), "{fault}");
    });
}

/// An authority, with a certificate for 127.0.0.1 and a key.
struct Issued {
    authority: String,
    certificate: String,
    key: String,
}

fn issue() -> Issued {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("key")).expect("authority");
    let key = KeyPair::generate().expect("key");
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])
        .expect("names")
        .signed_by(&key, &authority)
        .expect("certificate");
    Issued {
        authority: authority.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

#[test]
fn certificates_count_on_both_sides() {
    let folder = tempfile::tempdir().expect("folder");
    let (ours, theirs) = (issue(), issue());
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("write");
        path
    };
    let roots = file("roots.pem", &ours.authority);
    let strangers = file("strangers.pem", &theirs.authority);
    let client_pair = (
        file("client.pem", &ours.certificate),
        file("client.key", &ours.key),
    );
    block_on(async {
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(&ours.certificate, &ours.key))
            .client_ca_root(Certificate::from_pem(&ours.authority));
        let (_, port) = Fake::start(UploadMode::default(), Some(tls)).await;
        let ask = async |roots: &std::path::Path, client: Option<_>| {
            let auth = Auth {
                roots: Some(roots.to_owned()),
                client,
                ..Auth::default()
            };
            let address = format!("grpcs://127.0.0.1:{port}")
                .parse()
                .expect("address");
            let server = Grpc::new(address, auth, Deadlines::default())?;
            server.result(&Key([0; 32])).await
        };
        let fine = ask(&roots, Some(client_pair.clone())).await;
        assert!(matches!(fine, Ok(None)), "{fine:?}");
        let stranger = ask(&strangers, Some(client_pair.clone())).await;
        let fault = stranger.expect_err("another authority");
        assert!(
            matches!(fault, RemoteError::Unreachable { .. }),
            "{fault:?}"
        );
        assert!(fault.to_string().contains("certificate"), "{fault}");
        let anonymous = ask(&roots, None).await;
        assert!(
            matches!(anonymous, Err(RemoteError::Unreachable { .. })),
            "{anonymous:?}"
        );
        let missing = ask(&folder.path().join("none.pem"), None).await;
        assert!(
            matches!(missing, Err(RemoteError::Local { .. })),
            "{missing:?}"
        );
        // Without encryption, to a server that wants it.
        let plain = client(&format!("grpc://127.0.0.1:{port}"))
            .result(&Key([0; 32]))
            .await;
        assert!(plain.is_err());
    });
}
