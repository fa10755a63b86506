//! OpenDAL's client for a layer: its options from the URL's parts and parameters.

use std::collections::BTreeMap;

use opendal::{Operator, services};

use crate::http;
use crate::settings::Layer;

/// The client for `service`, OpenDAL's name of what `layer`'s URL names.
///
/// # Errors The service has no such parameter, or a folder cannot be made.
pub fn operator(service: &str, layer: &Layer) -> opendal::Result<Operator> {
    let url = layer.url();
    let mut options: BTreeMap<String, String> = url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut set = |name: &str, value: &str| {
        if !value.is_empty() {
            options.insert(name.to_owned(), value.to_owned());
        }
    };
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    match service {
        "s3" | "gcs" => {
            set("bucket", host);
            set("root", url.path());
        }
        "azblob" => {
            set("container", host);
            set("root", url.path());
        }
        "redis" => {
            set("endpoint", &format!("{}://{host}{port}", url.scheme()));
            // redis://host/2 is database 2, to redis' own tools too.
            set("db", url.path().trim_matches('/'));
        }
        "memcached" => {
            set("endpoint", &format!("tcp://{host}{port}"));
            set("root", url.path());
        }
        "webdav" => {
            let scheme = if url.scheme() == "webdavs" {
                "https"
            } else {
                "http"
            };
            set("endpoint", &format!("{scheme}://{host}{port}"));
            set("root", url.path());
        }
        "fs" => {
            set("root", &http::decoded(url.path()));
            // It is on the same share, so that a file can be put in place by a rename.
            set(
                "atomic_write_dir",
                &format!("{}/tmp", http::decoded(url.path())),
            );
        }
        _ => set("root", &format!("{host}{}", url.path())),
    }
    if service != "fs" {
        set("username", &http::decoded(url.username()));
        set(
            "password",
            &http::decoded(url.password().unwrap_or_default()),
        );
    }
    Ok(match service {
        "s3" => Operator::from_iter::<services::S3>(options)?.finish(),
        "gcs" => Operator::from_iter::<services::Gcs>(options)?.finish(),
        "azblob" => Operator::from_iter::<services::Azblob>(options)?.finish(),
        "redis" => Operator::from_iter::<services::Redis>(options)?.finish(),
        "memcached" => Operator::from_iter::<services::Memcached>(options)?.finish(),
        "webdav" => Operator::from_iter::<services::Webdav>(options)?.finish(),
        _ => Operator::from_iter::<services::Fs>(options)?.finish(),
    })
}
