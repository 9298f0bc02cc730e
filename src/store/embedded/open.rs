//! Opening the store's file: whose it is, whether it is sound, and why not.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageError};
use tracing::info;

use super::tables;

/// The form of the tables that this build writes.
const FORMAT: u64 = 1;
/// Pages kept in memory, at most.
const CACHE: usize = 64 << 20;

/// Why the store's file cannot be used. Nothing of it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error("{path} is in use by {by}: one file serves one process", path = path.display())]
    Held {
        /// The file.
        path: PathBuf,
        /// Who, as far as can be told.
        by: String,
    },
    /// It is no store, or it is damaged.
    #[error(
        "{path} is not a sound store of Seam ({cause}): move it away, or name another file",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// A newer release wrote it.
    #[error("{path} was written by a newer release of Seam (format {format})", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// The system does not let it be read and written.
    #[error("{path} cannot be read and written", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Opens the file, or makes it, for this user alone.
pub(super) fn open(path: &Path, capacity: usize) -> Result<Database, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let is_new = !path.exists();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(io(io::Error::other("it is not a regular file")));
    }
    let backend = FileBackend::new(file).map_err(|error| explained(path, error))?;
    let open = || {
        Database::builder()
            .set_cache_size(capacity.min(CACHE))
            // Damage is to be told at the start, not met by a request; the file is small enough.
            .set_check_integrity_on_open(true)
            .create_with_backend(backend)
    };
    // redb panics where some damage should be impossible.
    let opened = catch_unwind(AssertUnwindSafe(open)).map_err(|_| damaged(path, "it is inconsistent"))?;
    let database = opened.map_err(|error| explained(path, error))?;
    if is_new {
        sync_folder(path).map_err(io)?;
    } else {
        make_private(path).map_err(io)?;
    }
    Ok(database)
}

/// Makes the tables where there are none, and checks their form. Whether they are empty.
pub(super) fn prepare(database: &Database, path: &Path) -> Result<bool, OpenError> {
    let prepared = catch_unwind(AssertUnwindSafe(|| tables::prepare(database, FORMAT)));
    match prepared.map_err(|_| damaged(path, "it is inconsistent"))? {
        Ok((FORMAT, is_empty)) => Ok(is_empty),
        Ok((format, _)) => Err(OpenError::Newer { path: path.to_owned(), format }),
        Err(error) => Err(damaged(path, &error.to_string())),
    }
}

fn explained(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::Held { path: path.to_owned(), by: holder(path) }
        }
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
            OpenError::Io { path: path.to_owned(), source: error }
        }
        other => damaged(path, &other.to_string()),
    }
}

fn damaged(path: &Path, cause: &str) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), cause: cause.to_owned() }
}

/// The folder's entry of a new file has to reach the disk, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// What is in it is the conversation: nobody else's business.
fn make_private(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    let open_to_others = mode & 0o077;
    if open_to_others == 0 {
        return Ok(());
    }
    info!(path = %path.display(), "the store's file was open to others and is made private");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700))
}

/// The process that holds the file's lock, as the kernel tells it.
fn holder(path: &Path) -> String {
    let unknown = || "another process".to_owned();
    let (Ok(file), Ok(locks)) = (std::fs::metadata(path), std::fs::read_to_string("/proc/locks")) else {
        return unknown();
    };
    let pid = locks.lines().find_map(|line| locked_by(line, file.dev(), file.ino()));
    pid.map_or_else(unknown, |pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} {}", name.trim()).trim_end().to_owned()
    })
}

/// The process of a line of `/proc/locks` that is about this file: `1: FLOCK  ADVISORY  WRITE 71 fe:00:131 0 EOF`.
fn locked_by(line: &str, device: u64, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (pid, place) = (fields.get(4)?, fields.get(5)?);
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    (*place == format!("{major:02x}:{minor:02x}:{inode}")).then(|| pid.parse().ok()).flatten()
}
