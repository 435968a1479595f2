//! Files that are created once and kept, protected against concurrent creation and damage.

use crate::draft::Draft;
use crate::error::PkiError;
use crate::{input, limits};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Start of every file's first line, followed by the digest of the content after that line.
const HEADER: &str = "shakedown-cache sha256=";

/// Limit of attempts to read or create a file.
const MAX_TRIES: usize = 5;

/// A folder of such files.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    notices: Mutex<Vec<String>>,
}

impl Cache {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.into(), notices: Mutex::default() }
    }

    /// Notices about damaged files that were regenerated since the last call.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The content of `folder/name`, parsed by `read`; created by `make` if the file does not exist.
    ///
    /// A truncated, changed or unparsable file is regenerated. If several processes create the same file at once,
    /// the first wins, and all use its file.
    pub(crate) fn fetch<T, E: From<PkiError>>(
        &self,
        folder: &str,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
        make: impl Fn() -> Result<String, E>,
    ) -> Result<T, E> {
        let folder = self.root.join(folder);
        let path = folder.join(name);
        let fail = |action, source| PkiError::File { path: path.clone(), action, source };
        let mut damage = String::new();
        for _ in 0..MAX_TRIES {
            match input::read(&path, limits::MAX_FILE_BYTES) {
                Ok(bytes) => {
                    match bytes.as_deref().ok_or("too large".to_owned()).and_then(unwrap).and_then(&read) {
                        Ok(value) => return Ok(value),
                        Err(reason) => {
                            self.discard(&path, bytes.as_deref(), &reason)
                                .map_err(|source| fail("removing", source))?;
                            damage = reason;
                        }
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(fail("reading", source).into()),
            }
            make_folder(&folder).map_err(|source| fail("making the folder", source))?;
            let text = make()?;
            write_new(&folder, &path, &text).map_err(|source| fail("writing", source))?;
        }
        Err(fail("reading back", std::io::Error::new(std::io::ErrorKind::InvalidData, damage)).into())
    }

    /// Removes a damaged file, unless another process has already put a new one in its place.
    /// `damaged` is its content; `None` if that is too large.
    fn discard(&self, path: &Path, damaged: Option<&[u8]>, reason: &str) -> std::io::Result<()> {
        if input::read(path, limits::MAX_FILE_BYTES).is_ok_and(|bytes| bytes.as_deref() == damaged) {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let notice = format!("{}: {reason}; regenerated", path.display());
            self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        }
        Ok(())
    }
}

/// Creates a folder that only its owner can enter.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file that appears complete or not at all, and never replaces another.
fn write_new(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let content = format!("{HEADER}{}\n{text}", hex(&openssl::sha::sha256(text.as_bytes())));
    match Draft::write(folder, 0o600, content.as_bytes())?.name(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes the header and checks the digest.
fn unwrap(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not a text".to_owned())?;
    let (line, content) = text.split_once('\n').ok_or("cut in the first line")?;
    let digest = line.strip_prefix(HEADER).ok_or("not a file of this cache")?;
    if digest == hex(&openssl::sha::sha256(content.as_bytes())) {
        Ok(content)
    } else {
        Err("the content does not match its digest".into())
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
