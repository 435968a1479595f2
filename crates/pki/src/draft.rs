//! Files that appear complete or not at all, even if their writer is killed.
//!
//! A draft is a file `.new-…` in the folder of the final file, locked while its writer lives; [`remove_left_over`]
//! removes unlocked drafts.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const PREFIX: &str = ".new-";

/// A file that is complete on disk, but does not have its final name yet.
#[derive(Debug)]
pub struct Draft(NamedTempFile);

impl Draft {
    /// Writes a draft in `folder`; the umask restricts `mode`.
    ///
    /// # Errors
    ///
    /// The system's error without the name of the draft.
    pub fn write(folder: &Path, mode: u32, content: &[u8]) -> Result<Self> {
        Self::written(folder, mode, content).map_err(|error| match error.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code),
            None => error.kind().into(),
        })
    }

    fn written(folder: &Path, mode: u32, content: &[u8]) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let mut file =
            builder.prefix(PREFIX).permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
        lock(file.as_file());
        file.write_all(content)?;
        file.as_file().sync_all()?;
        Ok(Self(file))
    }

    /// Gives the draft its final name.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name exists; otherwise the system's error.
    pub fn name(self, path: &Path) -> Result<()> {
        self.0.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    /// Gives the draft its final name, and replaces an existing file.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the name is that of a device, pipe, socket or folder; otherwise the system's error.
    pub fn replace(self, path: &Path) -> Result<()> {
        refuse_special(path)?;
        self.0.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// Rejects a name that exists and is not a regular file.
///
/// # Errors
///
/// `InvalidInput` for a device, a pipe, a socket, a folder, and a link to one.
pub fn refuse_special(path: &Path) -> Result<()> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let reason = "not a regular file; accepted: another name";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
    }
    Ok(())
}

/// The folders of a path that do not exist, the innermost first.
pub fn missing_folders(folder: &Path) -> Vec<PathBuf> {
    let is_missing =
        |path: &&Path| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    folder.ancestors().take_while(is_missing).map(Into::into).collect()
}

/// Removes folders of [`missing_folders`] that were created for files that could not be written, unless not empty.
pub fn remove_made(folders: &[PathBuf]) {
    for folder in folders {
        match std::fs::remove_dir(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return,
            _ => {}
        }
    }
}

/// Removes drafts of killed writers in a folder: files of this user that are not locked. Unreadable files stay.
pub fn remove_left_over(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let names = entries.flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name.to_str().is_some_and(is_draft)) {
        let path = folder.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(&path, flags, Mode::empty()).map(File::from) else { continue };
        let is_ours = file
            .metadata()
            .is_ok_and(|about| about.is_file() && about.uid() == rustix::process::geteuid().as_raw());
        if is_ours && lock(&file) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// True for names by `tempfile`: the prefix and six letters or digits.
fn is_draft(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Locks a file without waiting; false if it is already locked, or if locks are not supported.
fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn draft(folder: &Path) -> Draft {
        Draft::write(folder, 0o600, b"key").expect("written")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries =
            std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn existing_file_is_not_replaced() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("name");
        let draft = draft(folder.path());
        std::fs::write(&path, "old").expect("written");
        assert_eq!(draft.name(&path).expect_err("taken").kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        assert_eq!(names(folder.path()), ["name"]);
    }

    #[test]
    fn replacing_leaves_one_file_with_the_requested_mode() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("name");
        let draft = draft(folder.path());
        std::fs::write(&path, "old").expect("written");
        draft.replace(&path).expect("replaced");
        assert_eq!(std::fs::read(&path).expect("read"), b"key");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["name"]);
    }

    #[test]
    fn only_unlocked_drafts_are_removed() {
        let folder = tempfile::tempdir().expect("folder");
        for name in [".new-abc123", ".new-notours", ".new-", "key.pem"] {
            std::fs::write(folder.path().join(name), "key").expect("written");
        }
        std::os::unix::fs::symlink("key.pem", folder.path().join(".new-linked")).expect("linked");
        let written = draft(folder.path());
        remove_left_over(folder.path());
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left.len(), 5, "{left:?}");
        assert!(!left.contains(&".new-abc123".to_owned()), "{left:?}");
        drop(written);
    }

    #[test]
    fn special_files_are_not_replaced() {
        let folder = tempfile::tempdir().expect("folder");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        std::os::unix::fs::symlink("/dev/null", folder.path().join("device")).expect("linked");
        for name in ["socket", "device"] {
            let path = folder.path().join(name);
            let before = path.symlink_metadata().expect("there").ino();
            assert_eq!(
                draft(folder.path()).replace(&path).expect_err("special").kind(),
                ErrorKind::InvalidInput
            );
            assert_eq!(path.symlink_metadata().expect("there").ino(), before);
        }
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, ["device", "socket"]);
    }
}
