//! Real servers from the registries, each in a folder of its test, on a free port of this machine, gone with the test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server that ends with the test.
pub struct Server {
    child: Child,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// The shared cache in it, as `WARPCC_REMOTE` names it.
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its workers would outlive a kill.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// Starts it. In `url`, `PORT` stands for the port.
fn start(mut command: Command, port: u16, folder: &Path, url: &str) -> Server {
    let log = fs::File::create(folder.join("server.log")).expect("the log");
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("the log"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|e| panic!("{:?} cannot be started: {e}", command.get_program()));
    let url = url.replace("PORT", &port.to_string());
    let mut server = Server { child, port, url };
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = server.child.try_wait().ok().flatten();
        let said = || fs::read_to_string(folder.join("server.log")).unwrap_or_default();
        assert!(ended.is_none(), "the server ended: {}", said());
        assert!(
            begin.elapsed() < Duration::from_secs(180),
            "no server: {}",
            said()
        );
        thread::sleep(Duration::from_millis(20));
    }
    server
}

fn fresh(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("the server's folder");
    folder.to_path_buf()
}

/// A certificate for 127.0.0.1 and its key, as files.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Signed by nobody but itself.
    pub fn new(folder: &Path) -> Self {
        let folder = fresh(folder);
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
        let made = made.expect("a certificate");
        let paths = Self {
            certificate: folder.join("cert.pem"),
            key: folder.join("key.pem"),
        };
        fs::write(&paths.certificate, made.cert.pem()).expect("the certificate");
        fs::write(&paths.key, made.signing_key.serialize_pem()).expect("the key");
        paths
    }
}

/// nginx with WebDAV, which has all that the HTTP caching protocol asks for.
pub fn nginx(folder: &Path, tls: Option<&Certificate>) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let at = folder.display();
    let (ssl, files) = match tls {
        Some(Certificate { certificate, key }) => (
            " ssl",
            format!(
                "ssl_certificate {}; ssl_certificate_key {};",
                certificate.display(),
                key.display()
            ),
        ),
        None => ("", String::new()),
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary
        .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
        .join(" ");
    let user = if rustix::process::getuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let text = format!(
        "{user} daemon off; worker_processes 1; pid {at}/pid; error_log stderr;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log {at}/access.log; {temporary} client_max_body_size 0;\n\
           server {{ listen 127.0.0.1:{port}{ssl}; {files} root {at}/data;\n\
             location / {{ dav_methods PUT; create_full_put_path on; }} }} }}\n"
    );
    let config = folder.join("nginx.conf");
    fs::write(&config, text).expect("the configuration");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).arg("-c").arg(&config);
    let url = match tls {
        Some(tls) => format!(
            "https://127.0.0.1:PORT/cache|ca={}",
            tls.certificate.display()
        ),
        None => "http://127.0.0.1:PORT/cache".to_owned(),
    };
    start(command, port, &folder, &url)
}

/// memcached, with room for blobs of more than its usual 1 MB.
pub fn memcached(folder: &Path) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-I", "64m", "-m", "256", "-u", "root"]);
    command.args(["-p", &port.to_string()]);
    start(command, port, &folder, "memcached://127.0.0.1:PORT/team")
}

/// redis, in memory.
pub fn redis(folder: &Path) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let mut command = Command::new("redis-server");
    command
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--requirepass",
            "open-sesame",
        ])
        .args(["--port", &port.to_string(), "--dir"])
        .arg(&folder);
    start(
        command,
        port,
        &folder,
        "redis://:open-sesame@127.0.0.1:PORT/1",
    )
}

/// Python with the packages of the tests' servers.
fn python(arguments: &[&str]) -> Command {
    let packages = std::env::var_os("WARPCC_TEST_SERVERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/servers"),
        PathBuf::from,
    );
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", packages).args(arguments);
    command
}

/// The variables with which a client talks to [`s3`].
pub const S3_VARIABLES: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "any"),
    ("AWS_SECRET_ACCESS_KEY", "thing"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

/// moto: not S3, but a server from PyPI with its protocol. It keeps objects in memory and checks no signature.
pub fn s3(folder: &Path) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let text = "from moto.server import main; main()";
    let mut command = python(&["-c", text, "-H", "127.0.0.1"]);
    command.args(["-p", &port.to_string()]);
    let server = start(
        command,
        port,
        &folder,
        "s3://bucket/team?endpoint=http://127.0.0.1:PORT&region=us-east-1",
    );
    run_python(&[
        "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], method='PUT'))",
        &format!("http://127.0.0.1:{port}/bucket"),
    ]);
    server
}

/// gcp-storage-emulator: not Google Cloud Storage, but a server from PyPI with its protocol, in memory, for anybody. Fields
/// without a value, which it writes as null and Google leaves out, are left out.
pub fn gcs(folder: &Path) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let text = "
import json, sys, types
from gcp_storage_emulator import server
from gcp_storage_emulator.__main__ import main
without = lambda o: {n: v for n, v in o.items() if v is not None} if isinstance(o, dict) else o
server.json = types.SimpleNamespace(**{**vars(json), 'dumps': lambda o: json.dumps(without(o))})
sys.exit(main())
";
    let mut command = python(&["-c", text, "start", "--host=127.0.0.1", "--in-memory"]);
    command.args(["--default-bucket=bucket", &format!("--port={port}")]);
    let url = "gcs://bucket/team?endpoint=http://127.0.0.1:PORT\
               &allow_anonymous=true&disable_vm_metadata=true&disable_config_load=true";
    start(command, port, &folder, url)
}

/// WsgiDAV, a WebDAV server with folders, for one user.
pub fn webdav(folder: &Path) -> Server {
    let folder = fresh(folder);
    let port = free_port();
    let root = fresh(&folder.join("data"));
    let config = serde_json::json!({
        "host": "127.0.0.1",
        "port": port,
        "provider_mapping": { "/": root },
        "simple_dc": { "user_mapping": { "*": { "cache": { "password": "open-sesame" } } } },
        "logging": { "enable": true, "enable_loggers": [] },
    });
    let file = folder.join("wsgidav.json");
    fs::write(&file, config.to_string()).expect("the configuration");
    let text = "from wsgidav.server.server_cli import run; run()";
    let mut command = python(&["-c", text, "--config"]);
    command.arg(&file);
    start(
        command,
        port,
        &folder,
        "webdav://cache:open-sesame@127.0.0.1:PORT/team/cuda",
    )
}

/// Azurite, Microsoft's own emulator of Azure's blobs, where `WARPCC_TEST_AZURITE` names the folder that npm put it into:
/// its 460 packages take longer to install than all other servers together.
pub fn azblob(folder: &Path) -> Option<Server> {
    let installed = PathBuf::from(std::env::var_os("WARPCC_TEST_AZURITE")?);
    let folder = fresh(folder);
    let port = free_port();
    let mut command = Command::new("node");
    command
        .arg(installed.join("node_modules/azurite/dist/src/blob/main.js"))
        .args(["--blobHost", "127.0.0.1", "--inMemoryPersistence"])
        .args(["--disableTelemetry", "--skipApiVersionCheck"])
        .args(["--blobPort", &port.to_string()])
        .current_dir(&folder);
    let (name, key) = AZURITE;
    let url = format!(
        "azblob://cache/team?endpoint=http://127.0.0.1:PORT/{name}&account_name={name}&account_key={}",
        key.replace('+', "%2B")
    );
    let server = start(command, port, &folder, &url);
    run_python(&[
        MAKE_CONTAINER,
        &format!("http://127.0.0.1:{port}/{name}/cache"),
        name,
        key,
    ]);
    Some(server)
}

/// The account that Azurite has, and its key: in its documentation.
const AZURITE: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);

/// Azure's signature of one request: twelve fields of which the method alone says something, headers, what it is about.
const MAKE_CONTAINER: &str = "
import sys, hmac, base64, email.utils, urllib.request as r
url, name, key = sys.argv[1:]
headers = {'x-ms-date': email.utils.formatdate(usegmt=True), 'x-ms-version': '2021-08-06'}
lines = ''.join(f'{n}:{v}\\n' for n, v in headers.items())
text = 'PUT' + '\\n' * 12 + lines + f'/{name}/{name}/cache\\nrestype:container'
sign = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), 'sha256')).decode()
headers.update({'Authorization': f'SharedKey {name}:{sign}', 'Content-Length': '0'})
r.urlopen(r.Request(url + '?restype=container', method='PUT', headers=headers))
";

fn run_python(arguments: &[&str]) {
    let made = Command::new("python3").arg("-c").args(arguments).output();
    let made = made.expect("python3");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}
