//! Writes what was made into a folder: whole files, private keys for their owner only.

use crate::CertsError;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// One file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Where.
    pub path: PathBuf,
    /// What is in it.
    pub what: &'static str,
    /// Its length.
    pub bytes: usize,
}

/// One file to be written.
pub(crate) struct Sheet {
    pub name: &'static str,
    pub what: &'static str,
    pub content: Vec<u8>,
    /// Whether it holds a private key.
    pub is_private: bool,
}

impl Sheet {
    pub(crate) fn public(name: &'static str, what: &'static str, content: impl Into<Vec<u8>>) -> Self {
        Self { name, what, content: content.into(), is_private: false }
    }

    pub(crate) fn private(name: &'static str, what: &'static str, content: impl Into<Vec<u8>>) -> Self {
        Self { name, what, content: content.into(), is_private: true }
    }
}

/// Writes all of them; nothing is written where one of them exists and may not be replaced.
pub(crate) fn write(folder: &Path, sheets: &[Sheet], replace: bool) -> Result<Vec<Written>, CertsError> {
    for sheet in sheets {
        let path = folder.join(sheet.name);
        if !replace && path.symlink_metadata().is_ok() {
            return Err(CertsError::Exists { path });
        }
    }
    std::fs::create_dir_all(folder).map_err(|source| CertsError::File {
        path: folder.into(),
        action: "making the folder",
        source,
    })?;
    // All of them are on the disk before the first has its name: a full disk leaves none.
    let drafts: Vec<_> = sheets.iter().map(|sheet| draft(folder, sheet)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    for (sheet, draft) in sheets.iter().zip(drafts) {
        let path = folder.join(sheet.name);
        let named = if replace { draft.persist(&path) } else { draft.persist_noclobber(&path) };
        named.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => CertsError::Exists { path: path.clone() },
            _ => CertsError::File { path: path.clone(), action: "writing", source: error.error },
        })?;
        written.push(Written { path, what: sheet.what, bytes: sheet.content.len() });
    }
    Ok(written)
}

/// A sheet in a file that has no name of its own yet.
fn draft(folder: &Path, sheet: &Sheet) -> Result<NamedTempFile, CertsError> {
    let fail = |source| CertsError::File { path: folder.join(sheet.name), action: "writing", source };
    let mode = if sheet.is_private { 0o600 } else { 0o644 };
    let mode = mode_of(&folder.join(sheet.name))
        .map_or(mode, |there| if sheet.is_private { there & mode } else { there });
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(folder)
        // Its own words would name the draft.
        .map_err(|error| fail(error.kind().into()))?;
    file.write_all(&sheet.content).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    Ok(file)
}

/// Who may do what with a file that is to be replaced: its successor is open to nobody else.
fn mode_of(path: &Path) -> Option<u32> {
    let there = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(there.permissions().mode() & 0o777)
}
