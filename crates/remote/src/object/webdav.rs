//! The folders of a WebDAV server, which must be there before the first upload.
//!
//! OpenDAL makes the folders of a file whenever it writes one. Two writers then ask for the same folder at the same time, and the
//! second one may be answered with an error: WsgiDAV says 500, others 409 or 423. So they are made here, once in a
//! process, and a failure is tried again: what another machine has made by then is found.

use std::time::Duration;

use opendal::{ErrorKind, Operator};
use tokio::sync::OnceCell;

/// Where results and blobs are.
const FOLDERS: [&str; 2] = ["ac/", "cas/"];

/// The pause before the next try, while another client makes the same folder. A random part of up to the same length is
/// added.
const PAUSE: Duration = Duration::from_millis(20);

/// The folders of one server.
#[derive(Default)]
pub struct Folders {
    made: OnceCell<()>,
}

impl Folders {
    /// Makes them, once in a process; concurrent callers wait.
    ///
    /// # Errors
    /// The server's, of the last try.
    pub async fn make(&self, operator: &Operator) -> opendal::Result<()> {
        let making = || async {
            for folder in FOLDERS {
                make(operator, folder).await?;
            }
            Ok(())
        };
        self.made.get_or_try_init(making).await.copied()
    }
}

/// Makes `folder` and those above it. Each of them may be made by somebody else at the same time, and cost a try.
async fn make(operator: &Operator, folder: &str) -> opendal::Result<()> {
    let above = operator.info().root().matches('/').count();
    for _ in 0..=above {
        match operator.create_dir(folder).await {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE.mul_f64(1.0 + fastrand::f64())).await,
        }
    }
    operator.create_dir(folder).await
}
